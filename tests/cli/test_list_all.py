"""What lies beside extensions, in `list`, `list --all` and the exit code of `doctor`."""

from __future__ import annotations

import os

import pytest

MINOR = [".git", ".hidden.py", "CHANGELOG.md", "LICENSE", "README.md", "__pycache__"]


@pytest.fixture
def folder(home):
    home.add("good")
    root = home.path / "extensions"
    for name in (".git", "__pycache__"):
        (root / name).mkdir()
    for name in (".hidden.py", "CHANGELOG.md", "LICENSE", "README.md", "notes.txt"):
        (root / name).touch()
    return root


@pytest.mark.parametrize("load", [(), ("--load",)], ids=["list", "list --load"])
def test_documents_and_hidden_files_are_listed_only_on_demand(home, folder, load):
    """`list` leaves out what is expected beside extensions; `list --all` has a reason for it."""
    plain = home.run("list", "--json", *load).json["extensions"]
    everything = home.run("list", "--json", "--all", *load).json["extensions"]

    names = {each["name"] for each in plain}
    assert {"good", "notes.txt"} <= names
    more = {each["name"]: each for each in everything if each["name"] not in names}
    assert set(more) == {name.removesuffix(".py") for name in MINOR}
    assert {each["status"] for each in more.values()} == {"not-an-extension"}
    assert all(str(folder) in each["reason"] for each in more.values())
    assert "README.md is not an extension: it is a document" in home.run("list", "--all").out


def test_doctor_fails_on_what_is_not_an_extension(home, folder):
    """`doctor` names it and exits with 1; documents and hidden files are no finding."""
    output = home.run("doctor", "--json")

    found = [each for each in output.json["findings"] if each["code"] == "not-an-extension"]
    assert output.code == 1
    assert [each["extension"] for each in found] == ["notes.txt"]


def test_no_command_waits_for_a_pipe(home):
    """Every command ends beside a pipe in the folder of extensions."""
    home.add("good")
    os.mkfifo(home.path / "extensions/pipe.py")

    for command in (("list",), ("list", "--load"), ("info", "pipe"), ("doctor",)):
        assert "it is a named pipe" in home.process(*command).out
    assert home.process("disable", "good").code == 0


ALIASES = "x0: &x0 [a, a]\n" + "".join(
    f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
MERGES = "x0: &x0 {a: 1}\n" + "".join(
    f"x{n}: &x{n} {{<<: [*x{n - 1}, *x{n - 1}], k{n}: 1}}\n" for n in range(1, 40)
)


@pytest.mark.parametrize("place", ["", "extensions:\n  guard: *x11\n"], ids=["outside", "inside"])
@pytest.mark.parametrize("text", [ALIASES, MERGES], ids=["aliases", "merge keys"])
def test_a_file_that_stands_for_millions_of_values_is_one_error(home, text, place):
    """Aliases and merge keys that multiply are refused at once, with file and line."""
    home.write_config(text + place)

    output = home.run("list")

    assert output.code == 1
    assert "expands to more than 1,000,000 values by its aliases" in output.out
    assert f"{home.config}:" in output.out
    assert home.run("disable", "budget").code == 1


@pytest.mark.parametrize(
    "name",
    ["config.yaml", "cache/hermes-ext/lost-hooks.json", "cache/hermes-ext/manifests.json"],
)
def test_no_command_waits_for_a_pipe_in_place_of_a_file_of_the_home(home, name):
    """`list` and `disable` end where a pipe has the name of a file that they read."""
    home.add("good")
    file = home.path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    os.mkfifo(file)

    listed, disabled = home.process("list"), home.process("disable", "good")

    assert "good" in listed.out
    assert (listed.code, disabled.code) == ((1, 1) if name == "config.yaml" else (0, 0))
