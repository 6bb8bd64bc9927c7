"""Writes docs/hooks.md from the hook specs: `python docs/generate_reference.py`.

With `--check` nothing is written, and the exit code is 1 where the file is stale.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

from hermes_ext._hooks.payloads import EVENT_OF
from hermes_ext._hooks.specs import ALLOWED, ARGUMENTS, VERDICTS, Action, HookName, HookSpecs

FILE = Path(__file__).with_name("hooks.md")

_NOTE = "<!-- Made from hermes_ext/_hooks/specs.py by docs/generate_reference.py: edit there. -->"
_HEAD = """\
# Hooks

How handlers are written and in which order they run: [authoring](authoring.md).
"""
_SECTIONS = {"Args:": "arguments", "Returns:": "returns", "Attributes:": "attributes"}


def reference() -> str:
    """The whole page."""
    return "\n".join([_NOTE, "", _HEAD, *_overview(), *_common(), *map(_hook, HookName)])


def _overview() -> Iterator[str]:
    yield "| hook | a transformer may return | a guard may return |"
    yield "|---|---|---|"
    for hook in HookName:
        link = f"[`{hook.value}`](#{hook.value})"
        yield f"| {link} | {_actions(ALLOWED[hook])} | {_actions(VERDICTS[hook])} |"
    yield ""


def _actions(actions: frozenset[Action]) -> str:
    return ", ".join(action.value for action in Action if action in actions)


def _common() -> Iterator[str]:
    yield "## Arguments of every hook\n"
    text = inspect.getdoc(HookSpecs) or ""
    _, _, rest = text.partition("Arguments of every hook:\n\n")
    yield rest + "\n"


def _hook(hook: HookName) -> str:
    spec = getattr(HookSpecs, hook.value)
    parts = _parsed(inspect.getdoc(spec) or "")
    hints = inspect.get_annotations(spec)
    own = ARGUMENTS[hook][: ARGUMENTS[hook].index("event")]
    lines = [f"## {hook.value}\n", parts["text"], "", "| argument | type | |", "|---|---|---|"]
    told = dict(_items(parts["arguments"]))
    lines += [f"| `{name}` | `{_type(hints[name])}` | {told[name]} |" for name in own]
    event = EVENT_OF[hook]
    lines += ["", f"`event`, of class `{event.__name__}`:\n"]
    attributes = _parsed(inspect.getdoc(event) or "")["attributes"]
    lines += [f"- `{name}`: {text}" for name, text in _items(attributes)]
    lines += ["", "**Returns.** " + _one_line(parts["returns"])]
    lines += ["", _one_line(parts["after"]), ""]
    return "\n".join(lines)


def _type(annotation: str) -> str:
    return annotation.replace(" | ", " or ")


def _parsed(text: str) -> dict[str, str]:
    """A docstring's paragraphs, its sections by name, and the paragraphs `after` them."""
    found: dict[str, list[str]] = {"text": []}
    current = "text"
    for line in text.splitlines():
        if line in _SECTIONS:
            current = _SECTIONS[line]
        elif line and not line.startswith(" ") and current != "text":
            current = "after"
        found.setdefault(current, []).append("" if line in _SECTIONS else line)
    return {name: dedent("\n".join(lines)).strip() for name, lines in found.items()}


def _items(section: str) -> Iterator[tuple[str, str]]:
    """Each `name: text` of a section, its continuation lines joined."""
    entry: list[str] = []
    for line in [*section.splitlines(), ""]:
        if entry and not line.startswith(" "):
            name, _, text = _one_line("\n".join(entry)).partition(": ")
            yield name, text
            entry = []
        if line:
            entry.append(line)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def main() -> int:
    """Write or check the page; returns the exit code."""
    made = reference()
    if "--check" not in sys.argv[1:]:
        FILE.write_text(made, encoding="utf-8")
        return 0
    if FILE.is_file() and FILE.read_text(encoding="utf-8") == made:
        return 0
    sys.stderr.write(f"{FILE} is stale: run python docs/generate_reference.py\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
