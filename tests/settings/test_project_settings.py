"""`_project_settings`: what a project's `.hermes/extensions.yaml` may hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ext.settings.project_settings import ProjectSettings, read_project_settings

FILE = Path("/srv/project/.hermes/extensions.yaml")


def read(text: str | bytes) -> ProjectSettings:
    return read_project_settings(FILE, text if isinstance(text, bytes) else text.encode())


def told(settings: ProjectSettings) -> str:
    return "\n".join(map(str, settings.problems))


def test_names_and_their_settings():
    """The top level is names of extensions, found whatever their spelling is."""
    settings = read("My_Guard:\n  plan: a\n  tools:\n    - x\n    - y\nother: {}\n")
    assert settings.problems == ()
    assert settings.written("my-guard") == "My_Guard"
    assert settings.settings_of("my-guard") == {"plan": "a", "tools": ["x", "y"]}
    assert settings.settings_of("nobody") is None
    assert settings.line_of("My_Guard", "tools", 1) == 5
    assert settings.line_of("My_Guard", "missing") == 2


def test_without_the_file_there_is_nothing():
    """Bytes that the tree does not hold are no settings, and no problem."""
    settings = read_project_settings(FILE, None)
    assert (settings.settings, settings.problems, settings.readable) == ({}, (), True)


@pytest.mark.parametrize("text", ["", "\ufeff", "# nothing\n", "null\n", "{}\n", "my-guard:\n"])
def test_nothing_written_means_nothing(text):
    """An empty file, and an extension with nothing under it, set nothing."""
    settings = read(text)
    assert settings.readable
    assert settings.problems == ()
    assert settings.settings_of("my-guard") is None


@pytest.mark.parametrize(
    "raw",
    [
        "\ufeffa: {b: é}\n".encode(),
        "a:\r\n  b: é\r\n".encode(),
        "a:\r  b: é\r".encode(),
        "x: &x {b: é}\na: *x\n".encode(),
        "x: &x {b: é}\na: {<<: *x}\n".encode(),
    ],
    ids=["mark", "crlf", "cr", "alias", "merge"],
)
def test_what_is_read(raw):
    """A byte order mark, any line ends, aliases and merge keys."""
    settings = read(raw)
    assert settings.problems == ()
    assert settings.settings_of("a") == {"b": "é"}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("a: {}\n".encode("utf-16"), ": is UTF-16 or binary, expected UTF-8. Save it as UTF-8"),
        ("x: 1\na: é\n".encode("latin-1"), ":2: byte 0xe9 is not UTF-8"),
        (b"a:\n\tb: 1\n", ":2: is not valid YAML: found character that cannot start any token"),
        (b"a: {b\n", "is not valid YAML"),
        (b"- a\n", ":1: found a list, expected a mapping of extensions to their settings"),
        (b"on\n", ":1: found the boolean 'on', expected a mapping"),
        (b"a: {}\n---\nb: {}\n", ":2: is not valid YAML: found another document"),
        (b"- " * 9_999, "is nested too deeply"),
        (b"a: x\n" * 60_000, ": is larger than 250,000 bytes"),
    ],
    ids=["utf-16", "latin-1", "tab", "flow", "list", "word", "documents", "deep", "large"],
)
def test_a_file_that_cannot_be_used(raw, expected):
    """It is one problem with its line, and nothing of it counts."""
    settings = read(raw)
    assert not settings.readable
    assert settings.settings == {}
    assert len(settings.problems) == 1
    assert told(settings).startswith(f"{FILE}:")
    assert expected in told(settings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "extensions:\n  my-guard: {plan: a}\n",
            ":1: extensions: is not a key of this file; ignored",
        ),
        ("disabled: [my-guard]\n", ":1: disabled: is a key of the user's own configuration"),
        ("on: [x]\n", ":1: on: is a key of the user's own configuration"),
        ("true: [x]\n", ":1: true: is a key of the user's own configuration"),
        ("project-may-set: ['*']\n", ":1: project-may-set: is a key of the user's own"),
        ("a/b: {}\n", ":1: a/b: is neither a key nor the name of an extension: the name is a path"),
        ("? [a]\n: {}\n", ":1: is neither a key nor the name of an extension: it is not text"),
        ("a: {b: 1, b: 2}\n", ":1: a.b: given twice (first in line 1); the last one counts"),
        ("a: {}\nb: {}\na: {c: 1}\n", ":3: a: given twice (first in line 1); the last one counts"),
        ("a_b: {}\na-b: {}\n", ":2: a-b: the same extension as `a_b`; the last one counts"),
        ("a: &a {b: *a}\n", ":1: a: cannot be read: contains itself"),
        ("a: !!python/object:os.x {}\n", ":1: a: cannot be read: the tag python/object:os.x is"),
    ],
)
def test_what_is_left_out(text, expected):
    """Everything but settings of extensions is told with line and key, and the rest counts."""
    settings = read(text + "last: {x: 1}\n")
    assert settings.readable
    assert expected in told(settings).replace(str(FILE), "")
    assert settings.settings_of("last") == {"x": 1}
    assert not {"extensions", "disabled", "on", "true"} & set(settings.settings)


def test_the_last_of_two_counts():
    """Of a key, or of two spellings of one name, what stands last is used."""
    assert read("a: {b: 1}\na: {b: 2}\n").settings_of("a") == {"b": 2}
    settings = read("a_b: {c: 1}\nA-B: {c: 2}\n")
    assert settings.settings_of("a-b") == {"c": 2}
    assert list(settings.settings) == ["A-B"]


def test_names_of_nothing():
    """A name that is no extension's is told with the nearest one that is."""
    settings = read("workflow-gaurd: {}\nworkflow_guard: {}\nzebra: {}\n")
    first, second = settings.unknown(["workflow-guard", "other"])
    ending = "is the name of no extension that is installed or in this project; ignored"
    assert str(first) == f'{FILE}:1: workflow-gaurd: {ending}. Did you mean "workflow-guard"?'
    assert str(second) == f"{FILE}:3: zebra: {ending}"


def test_a_file_of_very_many_names_and_values_is_read():
    """What it takes grows with the file, not with its square; all of it together has a limit."""
    names = "".join(f"n{index}: {{}}\n" for index in range(15_000))
    settings = read(names)
    assert settings.written("N14999") == "n14999"
    assert len(settings.unknown(["n0"])) == 14_999
    items = ", ".join(["1"] * 20_000)
    aliases = "".join(f"n{index}: {{v: *b}}\n" for index in range(20))
    settings = read(f"base: {{v: &b [{items}]}}\n{aliases}")
    assert "stands for more than 100,000 values" in str(settings.problems[0])
