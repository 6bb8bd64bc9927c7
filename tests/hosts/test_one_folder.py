"""Only `hosts/` knows Hermes: no other room names its tools, modules or variables."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import hermes_ext
from hermes_ext.hosts.hermes.facts.tools import TOOLS

ROOT: Final = Path(hermes_ext.__file__).parent
MODULES: Final = (
    "acp_adapter",
    "agent",
    "batch_runner",
    "cli",
    "cron",
    "gateway",
    "hermes_bootstrap",
    "hermes_cli",
    "hermes_constants",
    "hermes_logging",
    "hermes_state",
    "hermes_time",
    "hermes_tools",
    "mcp_serve",
    "model_tools",
    "plugins",
    "providers",
    "run_agent",
    "tools",
    "toolset_distributions",
    "toolsets",
    "trajectory_compressor",
    "tui_gateway",
    "utils",
)
A_MODULE: Final = re.compile(rf"(?:{'|'.join(MODULES)})(?:\.\w+)*\Z")
A_VARIABLE: Final = re.compile(r"HERMES_(?!EXT_)\w*")

OPTION: Final = "the option `tools=` of `register_hook`, and its key in JSON"
WIRE: Final = "a key of the provider's protocol"
MEANS_SOMETHING_ELSE: Final = {
    ("_redaction/tokens.py", "discord"): "a word that tells a Discord token",
    ("cli/_options.py", "HERMES_HOME"): "what `--help` says to people",
    ("cli/_commands/doctor.py", "plugins"): "a key of what the canary tells in JSON",
    ("cli/_commands/info.py", "tools"): OPTION,
    ("cli/_trying_pages.py", "tools"): OPTION,
    ("doctor.py", "tools"): "a setting of extensions",
    ("effects/_tools.py", "patch"): "a text that changes files",
    ("effects/readings.py", "patch"): "an argument",
    ("hooks/payloads.py", "cron"): "an origin",
    ("hooks/registration.py", "tools"): OPTION,
    ("loading/finding/snapshot.py", "tools"): OPTION,
    ("replay/trying.py", "tools"): OPTION,
    ("testing/_extension.py", "cli"): "a platform",
    ("testing/model_server/anthropic.py", "tools"): WIRE,
    ("testing/model_server/chat.py", "tools"): WIRE,
    ("testing/model_server/converse.py", "tools"): WIRE,
    ("testing/model_server/responses.py", "tools"): WIRE,
}


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Strings that are statements: they say something to people only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


@functools.cache
def names_of_hermes() -> tuple[tuple[str, str, int], ...]:
    """File, word and line of each name of a tool, a module or a variable outside of `hosts/`."""
    return tuple(_names_of_hermes())


def _names_of_hermes() -> Iterator[tuple[str, str, int]]:
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if file.startswith("hosts/"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        told = set(docstrings(tree))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or node in told:
                continue
            word = node.value
            if not isinstance(word, str):
                continue
            if word in TOOLS.names or A_MODULE.match(word):
                yield file, word, node.lineno
            yield from ((file, name, node.lineno) for name in A_VARIABLE.findall(word))


def test_no_string_outside_of_hosts_names_a_tool_module_or_variable_of_hermes() -> None:
    """What a tool does, and where Hermes keeps something, is written in `hosts/hermes` only."""
    found = [each for each in names_of_hermes() if each[:2] not in MEANS_SOMETHING_ELSE]
    assert found == []


def test_each_word_that_means_something_else_is_there() -> None:
    """An entry of the list that nothing needs is removed."""
    assert MEANS_SOMETHING_ELSE.keys() - {each[:2] for each in names_of_hermes()} == set()
