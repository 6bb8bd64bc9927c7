"""A new extension: what it begins with, and its folder, written at once or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from hermes_ext.__about__ import __version__
from hermes_ext._text import canonical_name, printable
from hermes_ext.exceptions import HermesExtError
from hermes_ext.hooks.table import TABLE, HookName, Scaffold

DEFAULT_HOOK: Final = HookName.INTERCEPT_TOOL_CALL.value

_WIDTH: Final = 88  # as most formatters have it, unless they are told otherwise


def extension_files(name: str, hooks: Sequence[str], *, guard: bool) -> dict[str, str]:
    """The text of each file of a new extension, by its path in the folder.

    Args:
        name: its name, which needs no quoting anywhere.
        hooks: the hooks it has handlers for; each once.
        guard: whether the handlers are guards.
    """
    parts = [_scaffold(hook, guard) for hook in hooks]
    module = name.replace("-", "_").lower()
    return {
        "__init__.py": _code(parts),
        "extension.yaml": _manifest(name, parts),
        "README.md": _readme(name, module, parts),
        f"tests/test_{module}.py": _tests(name, parts),
    }


def _scaffold(hook: str, guard: bool) -> Scaffold:
    row = TABLE[HookName(hook)]
    return row.guard if guard else row.transformer


def _code(parts: Sequence[Scaffold]) -> str:
    names = sorted({"HookResult", *(name for part in parts for name in part.names)})
    imports = _import("hermes_ext", [*names, "register_hook"])
    if any(part.effects for part in parts):
        imports += _import("hermes_ext.effects", ["effects_of"])
    head = f'''"""{_doc(parts)}"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

{imports}'''
    return "\n\n".join([head, *(f"{part.code.strip()}\n" for part in parts)])


def _manifest(name: str, parts: Sequence[Scaffold]) -> str:
    settings = "".join(part.schema for part in parts)
    minor = ".".join(__version__.split(".")[:2])
    return f"""\
name: {name}
version: 0.1.0
description: >-
{textwrap.fill(_does(parts), _WIDTH - 10, initial_indent="  ", subsequent_indent="  ")}
requires_hermes_ext: ">={minor}"
# JSON Schema of what may stand under `extensions: {name}:` in config.yaml.
config:
  type: object
  additionalProperties: false
  properties:
{settings}"""


def _readme(name: str, module: str, parts: Sequence[Scaffold]) -> str:
    settings = "".join(f"    {part.setting}\n" for part in parts)
    return f"""\
# {name}

{textwrap.fill(_does(parts), _WIDTH)}

Nothing is set at first, so nothing happens. In `config.yaml` of your Hermes home:

```yaml
extensions:
  {name}:
{settings}```

`__init__.py` has the handlers, `extension.yaml` describes the settings, `tests/test_{module}.py`
proves it all without a model:

```sh
pytest
```
"""


def _tests(name: str, parts: Sequence[Scaffold]) -> str:
    asserts = sorted({"assert_passed", *(each for part in parts for each in part.asserts)})
    head = f'''"""What README.md says of {name}, proved."""

from __future__ import annotations

from pathlib import Path

{_import("hermes_ext.testing", ["LoadExtension", *asserts])}
EXTENSION = Path(__file__).parents[1]
'''
    quiet = "".join(f"    assert_passed(extension.{part.quiet})\n" for part in parts)
    without = f'''\
def test_nothing_happens_without_settings(load_extension: LoadExtension) -> None:
    """As it comes, it leaves everything as it is."""
    extension = load_extension(EXTENSION)
{quiet}'''
    return "\n\n".join([head, *(f"{part.test.strip()}\n" for part in parts), without])


def _does(parts: Sequence[Scaffold]) -> str:
    return " ".join(part.does for part in parts)


def _doc(parts: Sequence[Scaffold]) -> str:
    first, *others = (part.does for part in parts)
    return "\n".join([first, "", *others, ""]) if others else first


def _import(module: str, names: Sequence[str]) -> str:
    line = f"from {module} import {', '.join(names)}\n"
    if len(line) <= _WIDTH:
        return line
    listed = "".join(f"    {name},\n" for name in names)
    return f"from {module} import (\n{listed})\n"


def write_extension(root: Path, name: str, files: Mapping[str, str]) -> Path:
    """Write an extension's folder below `root`, which is made if need be; returns the folder.

    It is made under another name, which no loading looks at, and takes its own name when it is
    complete: nobody loads half of it, and of two that do this at once one fails.

    Args:
        root: where extensions are.
        name: the folder's name.
        files: the text of each file, by its path in the folder.

    Raises:
        HermesExtError: there is one of that name, however it is spelled; or it cannot be written.
    """
    folder = root / name
    try:
        root.mkdir(parents=True, exist_ok=True)
        _refuse_another(root, name)
        made = root / f".new-{secrets.token_hex(8)}"
        made.mkdir()
    except FileExistsError:
        _refuse(root, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    except OSError as error:
        _refuse(root, error)
    try:
        for relative, text in files.items():
            path = made / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        _take_name(made, folder)
    except OSError as error:
        _refuse(folder, error)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def _refuse_another(root: Path, name: str) -> None:
    for each in root.iterdir():
        other = each.stem if each.suffix == ".py" else each.name
        if canonical_name(other) == canonical_name(name) and not each.name.startswith("."):
            _refuse(each, FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)))


def _take_name(made: Path, folder: Path) -> None:
    # An empty folder is the claim: making it fails where there is anything, and a rename replaces
    # nothing but an empty folder.
    folder.mkdir()
    try:
        made.rename(folder)
    except OSError:
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise


def _refuse(path: Path, error: OSError) -> NoReturn:
    told, hint = f"{printable(path)} cannot be written: {error.strerror or error}", None
    if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
        told = f'"{printable(path.name)}" is there already, and nothing is overwritten'
        hint = "Choose another name, or remove it first"
    raise HermesExtError(told, path=path, hint=hint) from error
