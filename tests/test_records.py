"""`_records`: names, printable text, and records as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes_ext._problems import Problem, did_you_mean
from hermes_ext._text import canonical_name, printable
from hermes_ext.hooks.source import Source
from hermes_ext.hooks.table import HookName
from hermes_ext.records import ExtensionRecord, HookInfo, Status
from hermes_ext.settings.names import HOOKS, RESERVED_KEYS, name_fault


def test_the_install_side_knows_all_hooks():
    """The names that the configuration accepts are those of the hooks."""
    assert set(HOOKS) == {hook.value for hook in HookName}


def test_sources_are_ranked():
    """Ties are broken in the order bundled, entry point, global, project."""
    order = [Source.BUNDLED, Source.ENTRY_POINT, Source.GLOBAL, Source.PROJECT]
    assert sorted(Source, key=lambda source: source.rank) == order


@pytest.mark.parametrize(
    "spelling",
    ["ping-island", "ping_island", "Ping Island", "PING.ISLAND", "\uff50ing-island"],
)
def test_spellings_of_one_name(spelling):
    """Case, `-`, `_`, `.`, blanks and full-width letters make no other name."""
    assert canonical_name(spelling) == "ping-island"


@pytest.mark.parametrize("name", ["class", "2fa", "a b", "a.b", "É", "計画", "x", "on-call"])
def test_names_that_are_allowed(name):
    """A name need not be a Python identifier."""
    assert name_fault(name) is None


@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "..", "../x", "a/b", "a\\b", "a:b", "a,b", "-x", "a\nb", "a\udcff", "[a]"],
)
def test_names_that_are_refused(name):
    """A path, what the configuration or a shell reads otherwise, and what cannot be printed."""
    assert name_fault(name)


@pytest.mark.parametrize("key", RESERVED_KEYS)
def test_no_extension_is_called_like_a_key(key):
    """The keys of the section are no names, however they are spelled."""
    assert "keys of the `extensions` section" in (name_fault(key) or "")
    assert name_fault(key.upper().replace("_", "-"))


def test_printable_text():
    """Bytes that are no UTF-8, escapes and line ends are written out; the rest stays."""
    assert printable("é 😀 計") == "é 😀 計"
    assert printable(Path(os.fsdecode(b"/x/caf\xff"))) == r"/x/caf\xff"
    assert printable("a\x1b[31m\nb\u202e") == r"a\x1b[31m\nb\u202e"


def test_did_you_mean():
    """The nearest known name is offered, and nothing where none is near."""
    assert (
        did_you_mean("wrokflow_guard", ["workflow-guard", "x"]) == 'Did you mean "workflow-guard"?'
    )
    assert did_you_mean("zzz", ["workflow-guard"]) is None


def test_a_problem_reads_as_one_line():
    """A problem names file, line, key, what is wrong and what to do."""
    problem = Problem(Path("/c.yaml"), 3, "extensions.on", "found a mapping", "Write a list")
    assert str(problem) == "/c.yaml:3: extensions.on: found a mapping. Write a list"
    assert str(Problem(Path("/c.yaml"), None, "", "is empty")) == "/c.yaml: is empty"
    hostile = Problem(Path("/a\nb"), 1, "a\x1b[2J", "found 'x'\nextensions: all is well")
    assert str(hostile) == r"/a\nb:1: a\x1b[2J: found 'x'\nextensions: all is well"


def test_a_record_is_json():
    """A record and its hooks become plain values that any terminal and file can take."""
    hook = HookInfo("before_llm_call", "check", 5, True, ("mcp_*",), "block", 10.0, "/x.py", 3)
    path = Path(os.fsdecode(b"/x/\xff"))
    record = ExtensionRecord("x", Source.GLOBAL, Status.ENABLED, path=path, hooks=(hook,))
    told = json.loads(json.dumps(record.to_json(), ensure_ascii=False).encode().decode())
    assert told["path"] == r"/x/\xff"
    assert (told["source"], told["status"]) == ("global", "enabled")
    assert told["hooks"][0]["tools"] == ["mcp_*"]
    assert HookInfo(**told["hooks"][0] | {"tools": ("mcp_*",)}) == hook
    assert set(told) == {field.name for field in ExtensionRecord.__attrs_attrs__}
