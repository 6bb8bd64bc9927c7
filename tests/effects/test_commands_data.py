"""The data of commands: its format, what comes with the package, and what users add."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.resources import files
from typing import Any

import pytest
import yaml

from hermes_ext.effects._commands import program
from hermes_ext.effects._knowledge import DEEDS, Knowledge, schema
from hermes_ext.settings.effects_settings import problems

_TEXT = files("hermes_ext.effects").joinpath("commands.yaml").read_text(encoding="utf-8")
_OF_A_PROGRAM = {"call": "Call", "return": "None"}
_DATA: dict[str, Any] = yaml.safe_load(_TEXT)


def _entries(data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for names, entry in data.items():
        yield names, entry or {}
        for below, inner in _entries((entry or {}).get("subcommands") or {}):
            yield f"{names} {below}", inner


def _without_programs(data: Mapping[str, Any]) -> dict[str, Any]:
    told = {}
    for names, entry in data.items():
        kept = {key: value for key, value in (entry or {}).items() if key != "program"}
        if "subcommands" in kept:
            kept["subcommands"] = _without_programs(kept["subcommands"])
        told[names] = kept
    return told


def test_the_data_fits_its_schema() -> None:
    """What comes with the package is written as users write it, but for `program`."""
    assert problems(_without_programs(_DATA)) == []


def test_no_name_stands_twice() -> None:
    """A command is described in one place, and so is each option of it."""
    names = [name for each in _DATA for name in each.split()]
    assert len(set(names)) == len(names) > 500
    for where, entry in _entries(_DATA):
        options = [each for key in entry.get("options") or {} for each in key.split()]
        options += f"{entry.get('flags', '')} {entry.get('values', '')}".split()
        twice = {each for each in options if options.count(each) > 1}
        assert not twice, f"{where}: {sorted(twice)}"


def test_each_program_is_there_and_used() -> None:
    """A `program` that does not exist would fail, and one that nobody names is dead."""
    named = {entry["program"] for _, entry in _entries(_DATA) if "program" in entry}
    modules = {name.partition(".")[0] for name in named}
    there = {
        f"{module}.{name}"
        for module in modules
        for name, found in vars(import_module(f"hermes_ext.effects._programs.{module}")).items()
        if name[0] != "_"
        and getattr(found, "__annotations__", None) == _OF_A_PROGRAM
        and found.__module__.endswith(f".{module}")
    }
    assert named == there
    assert all(callable(program(name)) for name in named)


def test_all_entries_can_be_read() -> None:
    """Entries are read when they are asked for, so all are asked for here."""
    knowledge = Knowledge.bundled()
    ahead = [knowledge.get(name) for name in knowledge]
    while ahead:
        entry = ahead.pop()
        assert entry is not None
        assert {*entry.operands, *(d for o in entry.table.options for d in o.values)} <= set(DEEDS)
        ahead += [entry.subcommand(name) for name in entry.subcommands or ()]


def test_nothing_is_read_before_it_is_needed() -> None:
    """`import hermes_ext` loads neither the data nor what reads it."""
    code = (
        "import sys, hermes_ext; "
        "sys.exit('yaml' in sys.modules or 'hermes_ext.effects._knowledge' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


_EXAMPLE = """
deploy:
  options:
    "-o --output": write
    "--arg": text text
    "-q --quiet": flag
    "-i --in-place": {operands: write}
    "--color": {optional: text}
    "--run": {unknown: it runs a program}
    "--dry-run": {harmless: true, below: true}
  flags: "-v --verbose"
  values: >-
    -a
    --all
  operands: text read
  default: .
  others: flag
  subcommands:
    status: {}
    "up down": {unknown: it changes machines}
    "*": null
wrap: {runs: 1, operands: text}
tool: {depends_on: [tool.toml], words: true, numbers: false}
cat: {replace: true, operands: search}
"""


def test_users_write_the_same_format() -> None:
    """Each key that is documented is taken."""
    assert problems(yaml.safe_load(_EXAMPLE)) == []


@pytest.mark.parametrize(
    ("mapping", "path", "told"),
    [
        ([], (), "mapping"),
        ({"a": {"operand": "read"}}, ("a",), "operand"),
        ({"a": {"operands": "reed"}}, ("a", "operands"), "reed"),
        ({"a": {"operands": "read  write"}}, ("a", "operands"), "read  write"),
        ({"a": {"options": {"o": "read"}}}, ("a", "options"), "o"),
        ({"a": {"options": {"-o": "reed"}}}, ("a", "options", "-o"), "reed"),
        ({"a": {"options": {"-o": {"valeu": "read"}}}}, ("a", "options", "-o"), "valeu"),
        ({"a": {"options": {"-o": {"value": "reed"}}}}, ("a", "options", "-o", "value"), "reed"),
        ({"a": {"program": "git"}}, ("a",), "program"),
        ({"a": {"runs": -1}}, ("a", "runs"), "-1"),
        ({"a": {"others": "no"}}, ("a", "others"), "no"),
        ({"a": {"unknown": ""}}, ("a", "unknown"), "non-empty"),
        ({"a": {"subcommands": {"b": {"c": 1}}}}, ("a", "subcommands", "b"), "c"),
        ({"/bin/a": {}}, ("/bin/a",), "/bin/a"),
        ({"": {}}, ("",), "is neither a name"),
        ({"a": "read"}, ("a",), "read"),
    ],
)
def test_faults_are_told_with_their_place(mapping: Any, path: tuple[str, ...], told: str) -> None:
    """The path of keys and what stands there are named."""
    ((found, message),) = problems(mapping)
    assert found == path
    assert told in message


def test_the_schema_is_one() -> None:
    """It is a valid JSON Schema."""
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema())


def test_every_deed_is_documented_at_the_head_of_the_file() -> None:
    """The comment that users read names each deed and each key."""
    head = _TEXT.partition("# -- ")[0]
    for deed in DEEDS:
        assert deed in head
    for key in schema()["$defs"]["entry"]["properties"]:
        assert f"{key}:" in head, key
