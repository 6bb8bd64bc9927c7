from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.projects import GOOD, GUARD, Place

from hermes_ext.confine import Rung, Support
from hermes_ext.doctor import Finding, Severity, examine, is_broken
from hermes_ext.hosts.hermes import checks
from hermes_ext.hosts.hermes.adapter.wraps.survey import Survey
from hermes_ext.hosts.hermes.checks import host_findings
from hermes_ext.hosts.hermes.facts.host_package import host_package
from hermes_ext.hosts.hermes.home.installing import install
from hermes_ext.hosts.hermes.home.sentinel import NAME as SENTINEL
from hermes_ext.loading.inventory import inventory
from hermes_ext.loading.loader import load
from hermes_ext.trust.store import TrustStore

REGISTER = "from hermes_ext import register_hook\n"
CHECK = REGISTER + '@register_hook("intercept_tool_call"{})\ndef check(tool_name): ...\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the plugin on, so that a test finds only what it put there."""
    for name in ("HERMES_EXT_OFF", "HERMES_EXT_TRUST"):
        monkeypatch.delenv(name, raising=False)
    install(tmp_path)
    return tmp_path


def add(home: Path, name: str, code: str) -> None:
    folder = home / "extensions" / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(code)


def configure(home: Path, text: str) -> None:
    with (home / "config.yaml").open("a") as file:
        file.write(text)


def examined(home: Path) -> list[Finding]:
    loaded = load(home)
    found = (*examine(home, None, loaded), *host_findings(home, loaded))
    return [finding for finding in found if finding.code != "no-hermes-agent"]


def only(home: Path) -> Finding:
    findings = examined(home)
    assert len(findings) == 1, findings
    return findings[0]


def test_nothing_wrong_is_no_finding(home):
    """A home where all is well gives no finding."""
    add(home, "fine", CHECK.format(""))

    assert examined(home) == []


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("import no_such_library\n", "no_such_library"),
        (REGISTER + '@register_hook("intercept_tool_cal")\ndef f(): ...\n', "intercept_tool_call"),
        (REGISTER + '@register_hook("intercept_tool_call")\ndef f(tool): ...\n', "tool"),
    ],
    ids=["syntax", "import", "unknown hook", "unknown argument"],
)
def test_a_load_error_is_an_error_with_its_reason(home, code, told):
    """What did not load is one error that names the extension and the reason."""
    add(home, "broken", code)

    finding = only(home)

    assert (finding.severity, finding.code, finding.extension) == (
        Severity.ERROR,
        "load-error",
        "broken",
    )
    assert told in finding.message


def test_an_extension_that_registers_nothing_is_an_error(home):
    """A near miss of a hook's name is told with it."""
    add(home, "idle", "def intercept_tool_cal(tool_name): ...\n")

    finding = only(home)

    assert (finding.severity, finding.code) == (Severity.ERROR, "registers-nothing")


def test_a_missing_name_is_an_error_with_a_suggestion(home):
    """Names that are nowhere are errors with file, line, places searched and did-you-mean."""
    add(home, "workflow-rules", CHECK.format(""))
    configure(home, "extensions:\n  on: [ghost, wrokflow-rules]\n")

    findings = examined(home)

    assert [finding.severity for finding in findings] == [Severity.ERROR] * 2
    assert all(finding.where and ":" in finding.where for finding in findings)
    assert 'Did you mean "workflow-rules"?' in str(findings[1].hint)
    assert str(home / "extensions") in str(findings[0].hint)


def test_wrong_settings_are_one_error(home):
    """A setting against the schema is told once, with file and line."""
    add(home, "strict", CHECK.format(""))
    (home / "extensions" / "strict" / "extension.yaml").write_text(
        "config: {type: object, properties: {a: {type: integer}}}\n"
    )
    configure(home, "extensions:\n  strict:\n    a: many\n")

    finding = only(home)

    assert (finding.severity, finding.code) == (Severity.ERROR, "config-error")
    assert "config.yaml" in finding.message


def test_a_required_one_that_did_not_load_is_told_as_refusal(home):
    """A required extension that fails is told with its consequence for every tool call."""
    add(home, "needed", "1 / 0\n")
    configure(home, "extensions:\n  required: [needed]\n")
    install(home)

    findings = examined(home)

    assert sorted(finding.code for finding in findings) == ["load-error", "required-missing"]
    told = " ".join(f"{finding.message} {finding.hint}" for finding in findings)
    assert told.count("take it out of extensions.required") == 1
    assert "disable" not in told


def test_an_unreadable_configuration_puts_nothing_in_force(home):
    """Hermes then starts without any plugin; that is what is told, and not a refusal."""
    add(home, "needed", "x = 1\n")
    configure(home, "extensions:\n  on: [budget\n")

    (told,) = (each for each in examined(home) if each.code == "config-unreadable")

    assert told.severity is Severity.ERROR
    assert "NONE of your rules is in force" in told.message
    assert told.where == str(home / "config.yaml")


def test_a_handler_that_fails_open_is_a_note(home):
    """Every handler that lets a tool run when it fails is named, with its line."""
    add(home, "lenient", CHECK.format(', on_error="pass"'))

    finding = only(home)

    assert (finding.severity, finding.code) == (Severity.NOTE, "fails-open")
    assert finding.where is not None
    assert finding.where.endswith("__init__.py:3") or finding.where.endswith("__init__.py:2")


def test_a_handler_that_fails_open_without_its_state_is_a_note(home):
    add(home, "lenient", CHECK.format(', on_store_error="pass"'))
    finding = only(home)
    assert (finding.severity, finding.code) == (Severity.NOTE, "fails-open")
    assert 'on_store_error="pass"' in finding.message


def test_a_slow_import_is_a_warning(home):
    """An import that costs more than a second of every start is named with its time."""
    add(
        home,
        "heavy",
        "import time\nend = time.perf_counter() + 1.1\n"
        "while time.perf_counter() < end: pass\n" + CHECK.format(""),
    )

    assert only(home).code == "slow-import"


@pytest.mark.parametrize(
    ("tool", "code", "hint"),
    [
        ("write", "tool-alias", "write_file"),
        ("edit", "tool-alias", "patch"),
        ("wriet_file", "unknown-tool", 'Did you mean "write_file"?'),
        ("frobnicate", "unknown-tool", "MCP"),
    ],
)
def test_a_tool_that_hermes_does_not_have_is_told(home, tool, code, hint):
    """Names in `blocked_tools` that no tool of Hermes has are told, aliases as a note."""
    add(home, "guarding", CHECK.format(""))
    configure(home, f"extensions:\n  guarding:\n    blocked_tools: [patch, {tool}]\n")

    finding = only(home)

    assert finding.code == code
    assert hint in str(finding.hint)
    assert finding.where == f"{home / 'config.yaml'}:5"


@pytest.mark.parametrize("tool", ["write_file", "mcp_github_push", "browser_click", "mcp_*", "*"])
def test_tools_that_may_well_exist_are_not_told(home, tool):
    """Hermes's own tools, families of them, MCP tools and patterns are fine."""
    add(home, "guarding", CHECK.format(f', tools=["{tool}"]'))

    assert examined(home) == []


def test_a_misspelt_tool_of_a_handler_is_told(home):
    """`tools=` of a handler is checked as settings are: it would never be called."""
    add(home, "guarding", CHECK.format(', tools=["terminl"]'))

    assert 'Did you mean "terminal"?' in str(only(home).hint)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("{}\n", "does not name"),
        ("plugins: {enabled: [hermes-ext], disabled: [hermes-ext]}\n", "wins over"),
    ],
)
def test_a_plugin_that_hermes_does_not_load_is_told(home, config, told):
    """Extensions that Hermes never loads are an error where Hermes is, else a note."""
    (home / "config.yaml").write_text(config)

    finding = only(home)

    expected = Severity.NOTE if host_package() is None else Severity.ERROR
    assert (finding.severity, finding.code) == (expected, "plugin-off")
    assert told in finding.message


def test_the_off_switches_are_told(home, monkeypatch):
    """Everything off by environment or configuration is a warning that says how to undo it."""
    monkeypatch.setenv("HERMES_EXT_OFF", "1")
    configure(home, "extensions:\n  enabled: false\n")

    assert [finding.code for finding in examined(home)] == ["switched-off", "switched-off"]


def test_a_host_that_changed_is_told(home):
    """A function to attach to that is not there is an error if guards need it, else a warning."""
    seams = {
        "m.needed": "this Hermes has no m.needed",
        "m.nice": "this Hermes has no m.nice",
        "m.there": "",
    }

    findings = [
        finding
        for finding in host_findings(home, inventory(home, None), Survey(seams, ("m.needed",)))
        if finding.code == "host-changed"
    ]

    assert [(finding.severity, finding.where) for finding in findings] == [
        (Severity.ERROR, "m.needed"),
        (Severity.WARNING, "m.nice"),
    ]


@pytest.mark.parametrize(
    ("survey", "why"),
    [
        (Survey(backend="docker"), "Hermes runs commands elsewhere (terminal.backend: docker)"),
        (
            Survey({"m.start": "this Hermes has no m.start"}, confining=("m.start",)),
            "this Hermes has no m.start",
        ),
    ],
)
def test_that_no_call_can_be_confined_is_told(home, survey, why):
    """A warning where an extension handles tool calls, which may want it; else a note."""

    def told():
        found = host_findings(home, inventory(home, None), survey)
        return [each for each in found if each.code == "confinement-unavailable"]

    (alone,) = told()
    assert alone.severity is Severity.NOTE
    assert alone.message.startswith(f"calls that extensions confine are blocked here: {why}")


CONFINES = """
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call", guard=True)
def read_only(tool_name):
    return HookResult.confine(reason="no plan yet")
"""


@pytest.mark.parametrize(
    ("unavailable", "happens"), [("block", "blocked"), ("ask", "put to a person")]
)
def test_what_happens_to_confined_calls(home, monkeypatch, unavailable, happens):
    """A warning names who confines, what happens then and why; its hint has a line for each way."""
    found = Support(None, "no namespaces", ("make some", "buy some"))
    monkeypatch.setattr(checks, "support", lambda minimum: found)
    add(home, "guard", CONFINES)
    add(home, "other", GUARD)
    configure(home, f"extensions: {{confine_unavailable: {unavailable}}}\n")
    loaded = load(home, None)

    (finding,) = [
        each for each in host_findings(home, loaded) if each.code == "confinement-unavailable"
    ]

    assert finding.severity is Severity.WARNING
    assert finding.message == f"calls that guard confines are {happens} here: no namespaces"
    first, *ways = str(finding.hint).splitlines()
    assert first == "What you can do:"
    assert ways[:2] == ["- make some", "- buy some"]
    assert any("confine_unavailable: ask" in way for way in ways) is (unavailable == "block")
    named = {each.name: checks.unconfined(each, loaded.config) for each in loaded.records}
    assert named["guard"] == finding.message
    assert named["other"] is None


def test_confinement_follows_the_terminal_backend(home, monkeypatch):
    """Of an extension, by the configuration: nothing is confined elsewhere."""
    monkeypatch.setattr(checks, "support", lambda minimum: Support(Rung.NAMESPACES, "well"))
    add(home, "guard", CONFINES)
    (record,) = [each for each in load(home, None).records if each.name == "guard"]
    for backend, told in (("local", False), ("ssh", True)):
        (home / "config.yaml").write_text(f"terminal: {{backend: {backend}}}\n")
        said = str(checks.unconfined(record, load(home, None).config))
        assert ("terminal.backend: ssh" in said) is told


# -- projects -------------------------------------------------------------------------------------


@pytest.fixture
def repo(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("work"), home=home)


def in_project(repo: Place) -> list[Finding]:
    findings = examine(repo.home, repo.root, load(repo.home, repo.root))
    return [finding for finding in findings if finding.code != "no-hermes-agent"]


def test_a_project_that_is_not_trusted_is_told_once(repo):
    """One note, with all names and what to do; once it was trusted and changed, a warning."""
    repo.add("one")
    repo.add("two")

    (before,) = in_project(repo)
    repo.trust()
    between = in_project(repo)
    repo.add("three")
    (after,) = in_project(repo)

    assert (before.severity, before.code) == (Severity.NOTE, "untrusted")
    assert "one, two" in before.message
    assert f"trust {repo.root}" in str(before.hint)
    assert between == []
    assert (after.severity, after.code) == (Severity.WARNING, "changed")
    assert "three/__init__.py" in after.message


def test_a_project_that_cannot_be_used_is_a_warning(repo):
    """A link that leaves the project is told with its path; nothing can be done by trusting."""
    (repo.add("one") / "out").symlink_to("/etc")

    (finding,) = in_project(repo)

    assert (finding.severity, finding.code) == (Severity.WARNING, "refused")
    assert "one/out" in finding.message


def test_replacing_is_told(repo):
    """A replaced extension is a note; a guard that may not replace another is an error."""
    for name, code in (("free", GOOD), ("kept", GUARD)):
        repo.add(name, code, to_home=True)
        repo.add(name, code)
    repo.trust()

    kept, free = in_project(repo)

    assert (kept.severity, kept.code, kept.extension) == (Severity.ERROR, "not-replaced", "kept")
    assert "extensions.overridable" in kept.message
    assert (free.severity, free.code, free.extension) == (Severity.NOTE, "replaced", "free")
    assert str(repo.hermes) in free.message


def test_settings_of_a_project_that_do_not_count_are_told(repo):
    """What a project may not set, and names that are nobody's, are warnings with file and line."""
    repo.add("kept", GUARD, to_home=True)
    repo.settings("kept: {depth: 1}\nnobody: {}\n")
    repo.trust()

    findings = in_project(repo)

    assert {(finding.severity, finding.code) for finding in findings} == {
        (Severity.WARNING, "project-settings")
    }
    file = repo.hermes / "extensions.yaml"
    assert {finding.where for finding in findings} == {f"{file}:1", f"{file}:2"}


def test_a_required_project_extension_that_is_not_trusted_is_an_error(repo):
    """Tool calls are refused while it is not loaded, and the reason is that it is not trusted."""
    repo.add("needed")
    configure(repo.home, "extensions:\n  required: [needed]\n")
    install(repo.home)

    error, note = in_project(repo)

    assert (error.code, note.code) == ("required-missing", "untrusted")
    assert "not trusted" in error.message


@pytest.mark.parametrize(
    ("pin", "code"), [("0" * 64, "pin-unmatched"), ("abc", "pin-invalid"), (None, None)]
)
def test_a_pin_that_trusts_nothing_is_told(repo, monkeypatch, pin, code):
    """A value that is no digest, or another project's, is a warning; one that matches is none."""
    repo.add("one")
    digest = repo.trust()
    monkeypatch.setenv("HERMES_EXT_TRUST", pin or digest)

    assert [finding.code for finding in in_project(repo)] == ([code] if code else [])


@pytest.mark.parametrize("content", ["{", None], ids=["damaged", "writable"])
def test_a_list_of_trusted_projects_that_cannot_be_believed_is_an_error(repo, content):
    """A damaged list, or one that others may write, trusts nothing, which is told with its file."""
    repo.add("one")
    repo.trust()
    file = TrustStore(repo.home).file
    if content is None:
        file.chmod(0o666)
    else:
        file.write_text(content)

    error, note = in_project(repo)

    assert (error.severity, error.code, error.where) == (Severity.ERROR, "trust-store", str(file))
    assert note.code == "untrusted"


@pytest.mark.skipif(os.name != "posix", reason="these rights are POSIX's")
@pytest.mark.parametrize("name", ["", "config.yaml", "extensions", "extensions/one"])
def test_what_others_can_write_is_told(home, name):
    """Home, configuration, and extensions that any user can change are warnings."""
    add(home, "one", CHECK.format(""))
    path = home / name
    path.chmod(path.stat().st_mode | 0o002)

    finding = only(home)

    assert (finding.severity, finding.code) == (Severity.WARNING, "writable-by-others")
    assert finding.where == str(path)
    assert "chmod go-w" in str(finding.hint)


def test_errors_come_first(home):
    """Findings are sorted by severity."""
    add(home, "a-lenient", CHECK.format(', on_error="pass"'))
    add(home, "b-broken", "1 / 0\n")
    configure(home, "extensions:\n  a-lenient: {blocked_tools: [frobnicate]}\n")

    severities = [finding.severity for finding in examined(home)]

    assert severities == [Severity.ERROR, Severity.WARNING, Severity.NOTE]


def test_broken_is_what_can_never_work(home):
    """Records of what failed, and of what loaded and registers nothing, count as broken."""
    add(home, "fine", CHECK.format(""))
    add(home, "idle", "x = 1\n")
    add(home, "failed", "1 / 0\n")

    loaded = load(home)
    broken = {record.name for record in loaded.records if is_broken(record, loaded.config)}

    assert broken == {"idle", "failed"}


@pytest.mark.parametrize("name", ["notes.txt", "guard.pyc", "pipe.py"])
def test_what_is_not_an_extension_is_an_error(home, name):
    """Anything else in the folder is one error with its reason."""
    path = home / "extensions" / name
    os.mkfifo(path) if name == "pipe.py" else path.touch()

    finding = only(home)

    assert (finding.severity, finding.code) == (Severity.ERROR, "not-an-extension")
    assert finding.where == str(path)


def test_disabled_and_skipped_are_no_errors(home):
    """What is off, or says itself that it cannot run here, is at most a note."""
    skip = "from hermes_ext import SkipExtension\nraise SkipExtension('no rtk')\n"
    add(home, "skips", skip)
    add(home, "silent", GUARD)
    configure(home, "extensions:\n  disabled: [silent]\n")

    assert {finding.severity for finding in examined(home)} == {Severity.NOTE}


@pytest.mark.parametrize(("code", "severity"), [(GUARD, Severity.ERROR), (GOOD, Severity.NOTE)])
def test_a_shadowed_guard_is_an_error(home, code, severity):
    """Of a folder and a file of one name, the file's guard is not in force; others are a note."""
    add(home, "rules", GOOD)
    (home / "extensions/rules.py").write_text(code)

    [finding] = [each for each in examined(home) if each.code == "shadowed"]

    assert finding.severity is severity
    assert str(home / "extensions/rules") in finding.message


def test_a_guard_that_the_user_lets_projects_replace_is_a_note(repo):
    """`overridable` names the guard, so that a project's extension in its place is no error."""
    repo.add("rules", GUARD, to_home=True)
    repo.add("rules", GOOD)
    repo.trust()
    repo.config("  overridable: [rules]\n")

    [finding] = [each for each in in_project(repo) if each.code == "replaced"]

    assert finding.severity is Severity.NOTE


def test_one_guard_in_two_places_is_a_note(home):
    """A link to a guard that is in force hides no rule."""
    add(home, "rules", GUARD)
    (home / "extensions/again").symlink_to(home / "extensions/rules")

    assert {finding.severity for finding in examined(home)} == {Severity.NOTE}


@pytest.mark.parametrize("name", ["-x", "a\nb", " ", "a:b"])
def test_a_name_that_cannot_be_typed_is_not_to_be_disabled(home, name):
    """A file whose name cannot be an extension's is to be renamed: `disable` does not take it."""
    (home / f"extensions/{name}.py").write_text(GUARD)

    finding = only(home)

    assert "Rename it" in finding.message
    assert finding.hint is None


DEAD = REGISTER + '@register_hook("intercept_tool_call", guard=True, tools={!r})\n'
DEAD += "def check(tool_name): ...\n"


@pytest.mark.parametrize(
    ("tools", "hint"),
    [
        (["Bash"], '"terminal"'),
        (["bash*"], '"terminal"'),
        (["Write", "MultiEdit"], '"write_file"'),
        (["terminl"], '"terminal"'),
        (["Run Command"], '"terminal"'),
    ],
)
def test_a_guard_that_can_match_no_tool_is_an_error(home, tools, hint):
    """A guard all of whose patterns are dead is an error that says what was probably meant."""
    add(home, "rules", DEAD.format(tools))

    finding = only(home)

    assert (finding.severity, finding.code) == (Severity.ERROR, "matches-nothing")
    assert hint in finding.message


@pytest.mark.parametrize(
    "tools",
    [
        ["*"],
        ["Terminal"],
        ["write file"],
        ["mcp_github_push"],
        ["mcp__github__*"],
        ["[m]cp_*"],
        ["mcp_*"],
        ["m*_query"],
        ["[a-z]*_query"],
        ["term*"],
        ["frobnicate"],
        ["Bash", "terminal"],
        ["Bash", "mcp_*"],
    ],
)
def test_a_guard_that_may_match_a_tool_is_no_error(home, tools):
    """One pattern that a tool, an MCP server or a plugin may have is enough."""
    add(home, "rules", DEAD.format(tools))

    assert {finding.severity for finding in examined(home)} <= {Severity.WARNING, Severity.NOTE}


def test_the_tools_of_this_hermes_decide(home):
    """Where Hermes's tools are known, a name that none has is an error, a plugin's tool is not."""
    add(home, "rules", DEAD.format(["frobnicate"]))
    loaded = load(home)

    codes = {
        tools: [
            each.code
            for each in examine(home, None, loaded, host_tools=tools)
            if each.extension == "rules"
        ]
        for tools in (("terminal",), ("terminal", "frobnicate"))
    }

    assert codes == {("terminal",): ["matches-nothing"], ("terminal", "frobnicate"): []}


@pytest.mark.parametrize("change", ["untrusted", "changed", "refused"])
def test_in_a_pipeline_a_project_that_is_not_trusted_is_an_error(repo, change):
    """With `ci`, a project that was never trusted, has changed or is refused fails the check."""
    repo.add("one", GUARD)
    if change == "changed":
        repo.trust()
        repo.add("two", GUARD)
    if change == "refused":
        os.mkfifo(repo.hermes / "extensions/pipe")

    found = {
        ci: [
            each.severity
            for each in examine(
                repo.home, repo.root, load(repo.home, repo.root), host_tools=(), ci=ci
            )
            if each.code == change
        ]
        for ci in (True, False)
    }

    assert found[True] == [Severity.ERROR]
    assert found[False] in ([Severity.NOTE], [Severity.WARNING])


@pytest.mark.parametrize(("pin", "code"), [("0" * 64, "pin-unmatched"), ("abc", "pin-invalid")])
def test_in_a_pipeline_a_pin_that_trusts_nothing_is_an_error(repo, monkeypatch, pin, code):
    """With `ci`, a HERMES_EXT_TRUST that matches no project fails the check."""
    repo.add("one")
    repo.trust()
    monkeypatch.setenv("HERMES_EXT_TRUST", pin)

    loaded = load(repo.home, repo.root)
    [severity] = [
        each.severity
        for each in examine(repo.home, repo.root, loaded, ci=True)
        if each.code == code
    ]

    assert severity is Severity.ERROR


def test_a_missing_sentinel_is_told_where_something_is_required(home):
    """With `required` set, a home without the sentinel, or with one that is off, is a warning."""
    add(home, "needed", GUARD)
    assert examined(home) == []
    configure(home, "extensions:\n  required: [needed]\n")

    missing = only(home)
    install(home)
    there = examined(home)
    config = home / "config.yaml"
    config.write_text(config.read_text().replace(SENTINEL, "other"))
    off = only(home)

    assert (missing.severity, missing.code) == (Severity.WARNING, "sentinel-missing")
    assert there == []
    assert off.code == "sentinel-missing"
    assert "plugins.enabled does not name" in off.message


def test_session_state_that_is_unavailable(home: Path) -> None:
    """An error with the reason and what to do; a home without the file has nothing wrong."""
    assert "session-state" not in {each.code for each in examine(home, home)}
    (home / "extensions-state.db").mkdir()
    [found] = [each for each in examine(home, home) if each.code == "session-state"]
    assert found.severity is Severity.ERROR
    assert "it is a folder" in found.message
    assert "Remove the folder" in str(found.hint)
    assert found.where == str(home / "extensions-state.db")
