"""`doctor` with the canary: its page, its JSON, its JUnit file, its exit code, its options."""

from __future__ import annotations

import ast
import inspect
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import tests.cli.conftest as commands
from tests.cli.conftest import Home, Output

from hermes_ext import doctor
from hermes_ext._prog import Prog
from hermes_ext.cli import main
from hermes_ext.cli._junit import junit_xml
from hermes_ext.cli._page import Page
from hermes_ext.confine import support
from hermes_ext.doctor import CHECKS
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes import checks
from hermes_ext.hosts.hermes.adapter.wraps.seams import CALLED
from hermes_ext.hosts.hermes.canary import trial
from hermes_ext.hosts.hermes.canary.proofs import Proof, Status, Suspect, skipped
from hermes_ext.hosts.hermes.canary.surfaces import SURFACES
from hermes_ext.hosts.hermes.canary.trial import Canary

home = commands.home

Found = Callable[[Canary], None]

DISPATCH = "tools.registry.ToolRegistry.dispatch"
TAKEN = Suspect(
    DISPATCH, "taken", "thief", "thief, line 4", f"{DISPATCH} was taken by the plugin thief"
)


def proofs(*broken: Proof) -> tuple[Proof, ...]:
    """All twelve, good but for these."""
    instead = {(proof.surface, proof.hook): proof for proof in broken}
    return tuple(
        instead.get((surface, hook), Proof(surface, hook, Status.OK, 1, 1))
        for surface in SURFACES
        for hook in CALLED
    )


GOOD = Canary(proofs(), plugins=("nice",), seconds=4.2)
BAD = Canary(
    proofs(
        *(
            Proof(
                surface,
                HookName.TRANSFORM_TOOL_RESULT,
                Status.NOT_REACHED,
                0,
                2,
                "it did not fire",
                (TAKEN,),
            )
            for surface in SURFACES[:2]
        ),
        Proof("chat", HookName.BEFORE_LLM_CALL, Status.REPEATED, 5, 4, "it fired 2 times for r"),
    ),
    culprits=("thief",),
)


@pytest.fixture
def comes_to(monkeypatch: pytest.MonkeyPatch) -> Found:
    """Has the trial come to this, which test_trial.py has the real Hermes come to."""

    def found(canary: Canary) -> None:
        monkeypatch.setattr(trial, "try_canary", lambda home, **options: canary)

    return found


def examined(home: Home, *argv: str) -> Output:
    """`doctor` with the canary, in a home that Hermes loads the package from."""
    assert main(["install"]) == 0
    home.capsys.readouterr()
    code = main(["doctor", *argv])
    captured = home.capsys.readouterr()
    return Output(code, captured.out, captured.err, "doctor")


def cases(xml: bytes) -> dict[tuple[str, str], ElementTree.Element]:
    """The test cases of a JUnit document, whose counts are right, by class and name."""
    root = ElementTree.fromstring(xml)
    assert root.tag == "testsuites"
    found = root.findall("testsuite/testcase")
    for suites in ([root], root.findall("testsuite")):
        for attribute, path in (
            ("tests", ".//testcase"),
            ("failures", ".//failure"),
            ("skipped", ".//skipped"),
        ):
            told = sum(int(suite.get(attribute, "-1")) for suite in suites)
            assert told == len(root.findall(path))
    by_name = {(case.get("classname", ""), case.get("name", "")): case for case in found}
    assert len(by_name) == len(found)
    return by_name


def test_all_is_well(home: Home, comes_to: Found, tmp_path: Path) -> None:
    """Exit code 0, every proof on the page and in the JSON, and a test case for each."""
    comes_to(GOOD)
    file = tmp_path / "reports" / "doctor.xml"

    page = examined(home, "--ci", "--junit", str(file))
    told = examined(home, "--ci", "--json")

    assert (page.code, told.code) == (0, 0)
    assert page.out.count(" ok") == 12
    assert "Tried in Hermes, with nice" in page.out
    assert [(p["surface"], p["hook"], p["status"]) for p in told.json["canary"]["proofs"]] == [
        (surface, hook, "ok") for surface in SURFACES for hook in CALLED
    ]
    by_name = cases(file.read_bytes())
    assert {name for group, name in by_name if group == "hermes-ext.checks"} == {
        *CHECKS,
        *checks.CHECKS,
    }
    assert {(g, n) for g, n in by_name if g != "hermes-ext.checks"} == {
        (f"hermes-ext.canary.{surface}", str(hook)) for surface in SURFACES for hook in CALLED
    }
    assert not any(case.findall("failure") for case in by_name.values())


def test_something_is_wrong(home: Home, comes_to: Found, tmp_path: Path) -> None:
    """Exit code 1; page, JSON and JUnit name the hook, the function and the plugin."""
    comes_to(BAD)
    file = tmp_path / "doctor.xml"

    page = examined(home, "--junit", str(file))
    told = examined(home, "--json", "--junit", str(file))

    assert (page.code, told.code) == (1, 1)
    assert "not reached" in page.out
    assert "fired 5 times, not 4" in page.out
    assert "hermes plugins disable thief" in page.out
    found = {f["code"]: f for f in told.json["findings"] if f["code"].startswith("canary-")}
    assert set(found) == {"canary-not-reached", "canary-repeated"}
    message = found["canary-not-reached"]["message"]
    assert message.startswith("on one-shot and chat, transform_tool_result: not reached: ")
    assert "ToolRegistry.dispatch was taken by the plugin thief" in message
    assert found["canary-not-reached"]["where"] == TAKEN.seam
    by_name = cases(file.read_bytes())
    failures = {key: case.find("failure") for key, case in by_name.items()}
    failing = {key for key, failure in failures.items() if failure is not None}
    assert failing == {
        ("hermes-ext.canary.one-shot", "transform_tool_result"),
        ("hermes-ext.canary.chat", "transform_tool_result"),
        ("hermes-ext.canary.chat", "before_llm_call"),
    }
    failure = failures["hermes-ext.canary.chat", "transform_tool_result"]
    assert failure is not None
    assert (failure.get("type"), failure.get("message")) == ("not-reached", "it did not fire")
    assert "taken by the plugin thief" in str(failure.text)


def test_what_confines(home: Home, comes_to: Found) -> None:
    """Page and JSON have the level of confinement, and what a confined program can still do."""
    comes_to(GOOD)
    found, told = support(), examined(home, "--json")
    assert told.json["confinement"]["level"] == (found.rung and str(found.rung))
    assert told.json["confinement"]["gaps"] == [*found.gaps]
    codes = {each["code"] for each in told.json["findings"]}
    assert ("confinement-unavailable" in codes) is (found.rung is None)
    assert found.rung is None or found.why in examined(home).out


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--ci",), 1), (("--no-canary",), 0)])
def test_it_could_not_be_tried(
    home: Home, comes_to: Found, tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    """That is told; in a pipeline, which relies on the proof, it is an error."""
    comes_to(Canary(why_not="there is no room"))
    file = tmp_path / "doctor.xml"

    page = examined(home, *options, "--junit", str(file))

    assert page.code == code
    assert ("there is no room" in page.out) == (options != ("--no-canary",))
    by_name = cases(file.read_bytes())
    case = by_name.get(("hermes-ext.canary", "tried in Hermes"))
    assert (case is None) == (options == ("--no-canary",))
    if case is not None:
        assert len(case.findall("failure")) == code
        assert len(case.findall("skipped")) == 1 - code


def test_a_surface_that_is_not_there(home: Home, comes_to: Found, tmp_path: Path) -> None:
    """It is skipped with the reason, and is no error, in a pipeline neither."""
    reason = "no API server without aiohttp"
    comes_to(Canary((*proofs()[:8], *skipped("api-server", reason))))
    file = tmp_path / "doctor.xml"

    page = examined(home, "--ci", "--junit", str(file))

    assert page.code == 0
    assert f"Skipped: {reason}." in page.out
    skips = [case.find("skipped") for case in cases(file.read_bytes()).values()]
    assert [s.get("message") for s in skips if s is not None] == [
        "no API server without aiohttp"
    ] * 4


def test_nobody_is_asked_with_no_canary(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--no-canary` starts nothing, and says so in the JSON."""

    def fails(*args: Any, **options: Any) -> Canary:
        raise AssertionError("it was tried")

    monkeypatch.setattr(trial, "try_canary", fails)
    told = examined(home, "--no-canary", "--json")
    assert told.code == 0
    assert told.json["canary"] is None


@pytest.mark.parametrize(("argv", "seconds"), [((), 120.0), (("--deadline", "45"), 45.0)])
def test_the_deadline(
    home: Home, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...], seconds: float
) -> None:
    """It has one of its own, and the one that is given is for it too."""
    given: dict[str, Any] = {}

    def note(home: Path, **options: Any) -> Canary:
        given.update(options, home=home)
        return GOOD

    monkeypatch.setattr(trial, "try_canary", note)
    assert examined(home, *argv).code == 0
    assert (given["seconds"], given["home"]) == (seconds, home.path)


def test_a_junit_file_that_cannot_be_written(home: Home, comes_to: Found, tmp_path: Path) -> None:
    """An error that names the file, as JSON with --json, and exit code 1."""
    comes_to(GOOD)
    (tmp_path / "taken").write_text("a file, not a folder\n")
    file = tmp_path / "taken" / "doctor.xml"

    told = examined(home, "--json", "--junit", str(file))

    assert told.code == 1
    assert str(file) in json.dumps(told.json)


def test_any_text_is_xml(home: Home) -> None:
    """Control characters, markup, half surrogates: the document can be parsed, the rest is kept."""
    message = "a\x00\x1b[31m<&>\"'\ud800]]>\ufffe end"
    finding = {
        "severity": "error",
        "code": "load-error",
        "extension": "bad\x07",
        "where": None,
        "message": message,
        "hint": None,
    }
    by_name = cases(junit_xml({"findings": [finding], "canary": None}))
    failure = by_name["hermes-ext.checks", "loading"].find("failure")
    assert failure is not None
    for text in (failure.get("message"), failure.text):
        assert "[31m<&>\"'" in str(text)
        assert "end" in str(text)


def test_a_code_that_no_check_has_is_not_lost() -> None:
    """It is a test case of its own."""
    finding = dict.fromkeys(("extension", "where", "hint"))
    finding |= {"severity": "error", "code": "brand-new", "message": "x"}
    by_name = cases(junit_xml({"findings": [finding], "canary": None}))
    assert by_name["hermes-ext.checks", "brand-new"].find("failure") is not None


def test_every_code_belongs_to_a_check() -> None:
    """So the test cases of a pipeline stay the same, whatever is found."""
    known = [code for by in (CHECKS, checks.CHECKS) for codes in by.values() for code in codes]
    assert len(set(known)) == len(known)
    used = set()
    sources = map(inspect.getsource, (doctor, checks))
    for call in (node for source in sources for node in ast.walk(ast.parse(source))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            at = {"Finding": 1, "_about": 2}.get(call.func.id)
            code = call.args[at] if at is not None and len(call.args) > at else None
            if isinstance(code, ast.Constant):
                used.add(code.value)
    assert len(used) > 15
    assert used <= set(known)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("plain", [False, True])
def test_no_colour_in_a_pipeline(monkeypatch: pytest.MonkeyPatch, plain: bool) -> None:
    """Some pipelines have a terminal; with --ci nothing is coloured, wrapped or shortened there."""
    for name in ("NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    settings: Mapping[str, Any] = {"plain": plain}
    stream = _Terminal()
    page = Page(stream, prog=Prog("hermes-ext"), **settings)
    page.line(("word " * 60, "red"))
    assert ("\x1b[" in stream.getvalue()) is not plain
    assert (stream.getvalue().count("\n") == 1) is plain
