"""How `doctor` ends: 1 for what is not in force as the user meant it, 0 for what is only off."""

from __future__ import annotations

import pytest
from tests.projects import GUARD, Place

from hermes_ext.hosts.hermes.facts.host_package import host_package
from hermes_ext.hosts.hermes.home.installing import install

LIMITED = """
from hermes_ext import register_hook

@register_hook("intercept_tool_call", guard=True, tools=[{!r}])
def check(tool_name): ...
"""
SKIPS = "from hermes_ext import SkipExtension\nraise SkipExtension('no rtk here')\n"


@pytest.fixture
def clean(home):
    """A home in which `doctor` finds nothing."""
    install(home.path)
    assert home.run("doctor").code == 0
    return home


def test_what_is_off_or_skips_itself_is_fine(clean):
    """Disabled and skipped extensions leave the exit code 0."""
    clean.add("skips", SKIPS)
    clean.add("silent")
    clean.run("disable", "silent")

    assert clean.run("doctor").code == 0


def test_a_nested_folder_fails(clean):
    """What is not an extension is exit code 1, with the place of the real one."""
    clean.add("nested/nested")

    output = clean.run("doctor")

    assert output.code == 1
    assert f"seems to be {clean.path / 'extensions/nested/nested'}" in " ".join(output.out.split())


@pytest.mark.skipif(host_package() is None, reason="hermes-agent is not here")
@pytest.mark.parametrize(
    ("tool", "code"),
    [("frobnicate", 1), ("Bash", 1), ("[Bb]ash", 1), ("?ash*", 1), ("write_file", 0)],
)
def test_the_tools_of_the_installed_hermes_decide(clean, tool, code):
    """A guard for a tool that the installed Hermes does not have is exit code 1."""
    clean.add("limited", LIMITED.format(tool))

    output = clean.run("doctor")

    assert output.code == code
    assert ("can match no tool" in output.out) is bool(code)


def test_a_shadowed_guard_fails(clean):
    """Of two guards of one name one is not in force, which is exit code 1."""
    clean.add("rules", GUARD)
    clean.add("rules.py", GUARD)

    assert clean.run("doctor").code == 1


@pytest.mark.parametrize("change", ["untrusted", "changed", "trusted"])
def test_a_pipeline_fails_on_a_project_that_is_not_trusted(clean, monkeypatch, tmp_path, change):
    """With `--ci` a project that is not trusted exactly as it is is exit code 1, else a note."""
    repo = Place(tmp_path, home=clean.path)
    repo.add("rules", GUARD)
    if change != "untrusted":
        repo.trust()
    if change == "changed":
        repo.add("more", GUARD)
    monkeypatch.chdir(repo.root)

    codes = {ci: clean.run("doctor", "--json", *ci) for ci in ((), ("--ci",))}

    def severities(ci: tuple[str, ...]) -> set[str]:
        return {each["severity"] for each in codes[ci].json["findings"] if each["code"] == change}

    assert codes[()].code == 0
    assert severities(("--ci",)) == (set() if change == "trusted" else {"error"})


def test_a_pipeline_fails_on_a_pin_that_matches_nothing(clean, monkeypatch):
    """With `--ci` a HERMES_EXT_TRUST that trusts nothing here is an error, else a warning."""
    monkeypatch.setenv("HERMES_EXT_TRUST", "0" * 64)

    found = {
        ci: [
            each["severity"]
            for each in clean.run("doctor", "--json", *ci).json["findings"]
            if each["code"] == "pin-unmatched"
        ]
        for ci in ((), ("--ci",))
    }

    assert found == {(): ["warning"], ("--ci",): ["error"]}
