"""What people reported of hooks and plugins elsewhere, end to end: none of it happens here."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli import conftest as commands
from tests.cli.conftest import GOOD, Home
from tests.unloading import unload

from hermes_ext import HookResult, Runtime, get_turn_state, register_hook
from hermes_ext.doctor import examine
from hermes_ext.hosts.hermes.checks import host_findings
from hermes_ext.hosts.hermes.home.installing import install
from hermes_ext.loading.loader import load
from hermes_ext.records import Status

home = commands.home
installed = commands.installed

IMPORT = "from hermes_ext import HookResult, register_hook\n"
SENTINEL = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
TEXT = {"type": "text", "text": "see"}

INPUT, REQUEST = "transform_user_input", "before_llm_call"
CALL, RESULT = "intercept_tool_call", "transform_tool_result"


def handler(hook: Any, body: Callable[..., Any], **options: Any) -> Any:
    """`body` as a handler of `hook`."""
    return register_hook(hook, **options)(body)


def run_hook(runtime: Runtime, hook: str) -> Any:
    """The outcome of one sample event of a hook, in a turn of its own."""
    with runtime.turn(session_id="s") as turn:
        if hook == INPUT:
            return turn.transform_user_input("hello")
        if hook == REQUEST:
            return turn.before_llm_call([{"role": "user", "content": "hello"}], "Base.")
        if hook == CALL:
            return turn.intercept_tool_call("terminal", {"command": "ls"})
        return turn.transform_tool_result("terminal", {"command": "ls"}, "a.py")


GOOD_VALUES: dict[str, Any] = {
    INPUT: "rewritten",
    REQUEST: [{"role": "user", "content": "rewritten"}],
    CALL: {"command": "rewritten"},
    RESULT: "rewritten",
}

EXPECTED = ("expected", "may return", "needs", "Did you mean", "Tool arguments are")

# What handlers have returned by mistake, and the hooks for which it is one.
MISTAKES: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "a number": (lambda: HookResult.rewrite(123), (INPUT, REQUEST, CALL, RESULT)),
    "None": (lambda: HookResult.rewrite(None), (INPUT, REQUEST, CALL, RESULT)),
    "bytes": (lambda: HookResult.rewrite(b"x"), (INPUT, REQUEST, CALL, RESULT)),
    "a list of texts": (lambda: HookResult.rewrite(["a"]), (INPUT, REQUEST, CALL, RESULT)),
    "a text": (lambda: HookResult.rewrite("ls"), (REQUEST, CALL)),
    "a list": (lambda: HookResult.rewrite([{"a": 1}]), (CALL, RESULT)),
    "other keys": (lambda: HookResult.rewrite({1: "a"}), (INPUT, REQUEST, CALL, RESULT)),
    "nothing to inject": (lambda: HookResult.inject_system(None), (REQUEST,)),
    "a number to inject": (lambda: HookResult.inject_system(5), (REQUEST,)),
    "deny": (lambda: HookResult("deny", "no"), (INPUT, REQUEST, CALL, RESULT)),
    "capitals": (lambda: HookResult("BLOCK", "no"), (INPUT, REQUEST, CALL, RESULT)),
    "a dict": (lambda: {"action": "block"}, (INPUT, REQUEST, CALL, RESULT)),
    "a word": (lambda: "block", (INPUT, REQUEST, CALL, RESULT)),
    "True": (lambda: True, (INPUT, REQUEST, CALL, RESULT)),
    "a pair": (lambda: ("block", "x"), (INPUT, REQUEST, CALL, RESULT)),
}


@pytest.mark.parametrize(
    ("hook", "make"),
    [(hook, make) for make, hooks in MISTAKES.values() for hook in hooks],
    ids=[f"{hook}-{name}" for name, (_, hooks) in MISTAKES.items() for hook in hooks],
)
def test_a_wrong_result_is_one_error_and_the_chain_goes_on(
    hook: str, make: Callable[[], Any]
) -> None:
    """What no hook takes is told once, with who and what was expected; the others decide as ever.

    Where a tool could run because of it, it does not run.
    """

    def wrong() -> Callable[..., Any]:
        return lambda session_id: make()

    good = GOOD_VALUES[hook]
    lenient = Runtime(
        [
            handler(hook, wrong(), priority=1, on_error="pass"),
            handler(hook, lambda session_id: HookResult.rewrite(good), priority=2),
        ]
    )
    outcome = run_hook(lenient, hook)
    (error,) = outcome.errors
    assert (error.extension, error.hook, error.kind) == ("test_cases", hook, "invalid-result")
    assert "test_cases.py:" in str(error)
    assert any(word in str(error) for word in EXPECTED)
    assert outcome.value == good
    (row,) = lenient.manager.failures
    assert (row.count, row.last_kind) == (1, "invalid-result")

    outcome = run_hook(Runtime([handler(hook, wrong())]), hook)
    assert outcome.blocked is (hook == CALL)
    assert not outcome.changed
    assert len(outcome.errors) == 1


class Unreadable(Exception):
    """An exception whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def recurse(session_id: str) -> Any:
    return recurse(session_id)


def fail_with(error: BaseException) -> Callable[..., Any]:
    def fail(session_id: str) -> Any:
        raise error

    return fail


CRASHES: dict[str, Callable[..., Any]] = {
    "ValueError": fail_with(ValueError("why")),
    "AssertionError": fail_with(AssertionError()),
    "RecursionError": recurse,
    "Unreadable": fail_with(Unreadable()),
    "SystemExit": fail_with(SystemExit(3)),
}


@pytest.mark.parametrize("hook", [INPUT, REQUEST, CALL, RESULT])
@pytest.mark.parametrize("kind", CRASHES)
def test_a_crash_is_one_record_of_the_log(
    hook: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A handler that raises is logged once, with extension, hook and traceback; others decide."""
    value = GOOD_VALUES[hook]
    runtime = Runtime(
        [
            handler(hook, CRASHES[kind], priority=10, on_error="pass"),
            handler(hook, lambda session_id: HookResult.rewrite(value), priority=20),
        ]
    )
    with caplog.at_level(logging.WARNING, logger="hermes_ext"):
        outcome = run_hook(runtime, hook)
    assert outcome.value == value
    (record,) = caplog.records
    told = record.getMessage()
    assert f"test_cases, {hook}: " in told
    assert kind in told
    if hook != INPUT:
        assert "Traceback (most recent call last)" in told
    run_hook(Runtime([handler(hook, lambda session_id: None)]), hook)
    assert len(caplog.records) == 1


async def test_crashes_in_an_async_host_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The awaited methods log a failure as the others do, a block by failure too."""
    runtime = Runtime([handler(CALL, fail_with(ValueError("why")), guard=True)])
    with caplog.at_level(logging.WARNING, logger="hermes_ext"):
        async with runtime.turn(session_id="s") as turn:
            assert (await turn.aintercept_tool_call("terminal", {})).blocked
    (record,) = caplog.records
    assert "test_cases, intercept_tool_call: fail raised ValueError: why" in record.getMessage()


@pytest.mark.parametrize("then", ["block", "rewrite"])
def test_the_log_keeps_a_withheld_input_to_itself(
    then: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Of an input that is blocked or replaced, a crash of another handler logs no word."""

    def careless(user_message: str) -> Any:
        raise ValueError(f"cannot parse {user_message!r}")

    runtime = Runtime(
        [
            handler(INPUT, careless, priority=1),
            handler(INPUT, lambda user_message: HookResult(then, "something else"), priority=2),
        ]
    )
    with caplog.at_level(logging.DEBUG), runtime.turn(session_id="s") as turn:
        turn.transform_user_input("my word is xyzzy-hunter2")
    (record,) = caplog.records
    assert "test_cases, transform_user_input: " in record.getMessage()
    assert "careless failed (ValueError)" in record.getMessage()
    assert "xyzzy" not in caplog.text


def test_a_hanging_handler_is_logged_with_its_limit(caplog: pytest.LogCaptureFixture) -> None:
    """A handler that runs out of time is one record that names extension, hook and limit."""
    over = threading.Event()
    runtime = Runtime(
        [
            handler(REQUEST, lambda session_id: over.wait(60) and None, timeout=0.05, priority=1),
            handler(REQUEST, lambda session_id: HookResult.inject_system("Rule."), priority=2),
        ]
    )
    with caplog.at_level(logging.WARNING, logger="hermes_ext"):
        outcome = run_hook(runtime, REQUEST)
    over.set()
    assert outcome.system_injections == ("Rule.",)
    (record,) = caplog.records
    assert "test_cases, before_llm_call: " in record.getMessage()
    assert "took longer than 0.05 s" in record.getMessage()


def test_failures_can_be_read_by_programs(home: Home) -> None:
    """Handler errors and load errors are data: who, which hook, what kind, how often and when."""
    crashing = (
        f"{IMPORT}@register_hook('before_llm_call')\n"
        "def crash():\n    raise PermissionError('token sk-123')\n"
    )
    home.add("crashing", crashing)
    home.add("broken", "import no_such_library\n")
    runtime = Runtime.from_config(home=home.path)
    for _ in range(3):
        run_hook(runtime, REQUEST)
    runtime.close()
    (row,) = runtime.manager.failures
    assert (row.extension, row.hook, row.handler) == ("crashing", REQUEST, "crash")
    assert (row.count, row.last_kind, row.last_type) == (3, "exception", "PermissionError")
    assert row.last_time > 0
    assert "sk-123" not in repr(row)
    failed = {each.name: each for each in runtime.records}["broken"]
    assert (failed.status, failed.loaded) == (Status.LOAD_ERROR, False)
    listed = {each["name"]: each for each in home.run("list", "--json").json["extensions"]}
    assert listed["broken"]["status"] == "load-error"
    assert "no_such_library" in listed["broken"]["reason"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([TEXT, IMAGE], [TEXT, IMAGE, {"type": "text", "text": "Note."}]),
        ([IMAGE], [IMAGE, {"type": "text", "text": "Note."}]),
        ([], [{"type": "text", "text": "Note."}]),
        (None, "Note."),
        ("", "Note."),
    ],
    ids=["text and image", "image", "no parts", "null", "empty"],
)
def test_text_is_injected_into_whatever_the_user_sent(content: Any, expected: Any) -> None:
    """Injected user text becomes a part behind the others, or all there is; nothing is lost."""
    runtime = Runtime([handler(REQUEST, lambda messages: HookResult.inject_user("Note."))])
    messages = [{"role": "user", "content": content}]
    with runtime.turn(session_id="s") as turn:
        sent, _ = turn.apply(turn.before_llm_call(messages), messages)
    assert sent == [{"role": "user", "content": expected}]
    assert messages == [{"role": "user", "content": content}]


@pytest.mark.parametrize("args", [None, {}, "", "{}", [], ["a"], 5], ids=repr)
@pytest.mark.parametrize("tool", ["terminal", " Terminal ", "", None], ids=repr)
def test_a_host_with_a_malformed_call(tool: Any, args: Any) -> None:
    """Handlers get a dict and guards are not fooled; what cannot be one is the host's own error."""
    seen = []

    def look(tool_args: Any) -> None:
        seen.append(type(tool_args))

    def no_shell(tool_name: str) -> Any:
        return HookResult.block("no shell")

    runtime = Runtime([handler(CALL, look), handler(CALL, no_shell, tools=["terminal"])])
    with runtime.turn(session_id="s") as turn:
        if args not in (None, "", {}):
            with pytest.raises(TypeError, match="tool_args must be a dict"):
                turn.intercept_tool_call(tool, args)
            assert seen == []
            return
        outcome = turn.intercept_tool_call(tool, args)
    assert outcome.errors == ()
    assert outcome.blocked is bool(tool)
    assert seen == [dict]


def test_the_session_is_never_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session id that another agent put into the process's environment changes nothing."""
    seen = []

    def look(state: Any, session_id: str) -> None:
        state["id"] = session_id
        seen.append((session_id, dict(get_turn_state()), dict(get_turn_state(session_id))))

    runtime = Runtime([handler(CALL, look)])
    turn, other = runtime.turn(session_id="mine"), runtime.turn(session_id="theirs")
    for name in ("HERMES_SESSION_ID", "HERMES_SESSION_KEY", "HERMES_TASK_ID"):
        monkeypatch.setenv(name, "theirs")
    turn.intercept_tool_call("t", {})
    assert seen == [("mine", {"id": "mine"}, {"id": "mine"})]
    assert dict(other.state) == {}
    turn.close()
    other.close()


# -- finding and loading --------------------------------------------------------------------------


def test_one_code_in_two_places_is_told_with_both(home: Home, installed: Path) -> None:
    """An extension that is reached in several ways runs once; list and doctor name every place."""
    folder = home.add("audit-folder")
    extensions = home.path / "extensions"
    (extensions / "alias").symlink_to(folder)
    (extensions / "alias-file.py").symlink_to(folder / "__init__.py")
    (extensions / "linked.py").symlink_to(installed / "audit_trail.py")
    home.write_config("extensions:\n  on: [audit-trail]\n")
    install(home.path)

    loaded = load(home.path)
    assert len([each for each in loaded.handlers if each.name == "check"]) == 2
    assert len({os.path.realpath(each.file) for each in loaded.handlers}) == 2
    rows = {each["name"]: each for each in home.run("list", "--json").json["extensions"]}
    statuses = [rows[name]["status"] for name in ("audit-folder", "alias", "alias-file")]
    assert sorted(statuses) == ["enabled", "shadowed", "shadowed"]
    assert sorted(rows[name]["status"] for name in ("linked", "audit-trail")) == [
        "enabled",
        "shadowed",
    ]
    told = home.process("doctor").out
    for place in (folder, extensions / "alias", extensions / "linked.py"):
        assert str(place) in told
    assert "the same code is used as" in told


def test_a_disabled_entry_point_is_not_imported(home: Home, installed: Path) -> None:
    """Off, or on and disabled at once, no command and no agent runs a line of it."""
    (installed / "audit_trail.py").write_text(SENTINEL + GOOD)
    for text in ("{}", "extensions: {on: [Audit_Trail], disabled: [audit.trail]}"):
        home.write_config(f"{text}\n")
        for argv in (["list"], ["list", "--load"], ["info", "audit-trail"], ["doctor"]):
            home.process(*argv)
        assert load(home.path).handlers == ()
    assert not (installed / "audit_trail.ran").exists()
    for spelling in ("Audit_Trail", "AUDIT.TRAIL"):
        assert home.run("enable", spelling).code == 0
    assert home.config.read_text().lower().count("trail") == 1
    home.process("list", "--load")
    assert (installed / "audit_trail.ran").exists()


def test_the_code_of_a_project_is_not_run(home: Home, tmp_path: Path) -> None:
    """Working in a repository that brings extensions runs none of them, whatever is asked."""
    root = tmp_path / "work"  # the working directory
    folder = root / ".hermes" / "extensions" / "planted"
    folder.mkdir(parents=True)
    (root / ".git").mkdir()
    (folder / "__init__.py").write_text(SENTINEL + GOOD)
    (folder.parent / "single.py").write_text(SENTINEL + GOOD)
    for argv in (["list"], ["list", "--load"], ["doctor"], ["list", "--order", CALL]):
        home.process(*argv)
    runtime = Runtime.from_config(home=home.path, cwd=root)
    run_hook(runtime, CALL)
    runtime.close()
    assert runtime.handlers == ()
    assert list(root.rglob("*.ran")) == []
    assert list(root.rglob("__pycache__")) == []


WITHOUT_ROOTS_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


def as_ordinary_user(home: Home, *argv: str) -> subprocess.CompletedProcess[str]:
    """A command of ours, run by somebody whom file modes stop."""
    command = [sys.executable, "-m", "hermes_ext.cli", *argv]
    if os.geteuid() == 0:
        command = [*WITHOUT_ROOTS_RIGHTS, *command]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=home.path)


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
@pytest.mark.skipif(
    os.name != "nt" and os.geteuid() == 0 and shutil.which("setpriv") is None,
    reason="root reads everything",
)
def test_what_may_not_be_read_stops_nobody_else(home: Home) -> None:
    """A folder, file, manifest, submodule or the whole directory without permission is one line."""
    sources = {
        "good": GOOD,
        "shut-folder": GOOD,
        "shut-file": GOOD,
        "shut-manifest": GOOD,
        "shut-module": f"from . import rules\n{GOOD}",
    }
    folders = {name: home.add(name, source) for name, source in sources.items()}
    (folders["shut-manifest"] / "extension.yaml").write_text("version: '1'\n")
    (folders["shut-module"] / "rules.py").touch()
    home.run("install")
    shut = (
        folders["shut-folder"],
        folders["shut-file"] / "__init__.py",
        folders["shut-manifest"] / "extension.yaml",
        folders["shut-module"] / "rules.py",
    )
    for path in shut:
        path.chmod(0)
    try:
        done = as_ordinary_user(home, "list", "--load", "--json")
        assert done.returncode == 1, done
        rows = {each["name"]: each for each in json.loads(done.stdout)["extensions"]}
        assert (rows["good"]["status"], rows["good"]["loaded"]) == ("enabled", True)
        for name in folders.keys() - {"good"}:
            assert rows[name]["status"] == "load-error", rows[name]
            assert "Permission denied" in rows[name]["reason"]
        assert as_ordinary_user(home, "list").returncode == 0
        (home.path / "extensions").chmod(0)
        done = as_ordinary_user(home, "doctor", "--no-canary")
        assert done.returncode == 1, done
        assert "Permission denied" in done.stdout
        assert "Traceback" not in done.stdout + done.stderr
    finally:
        for path in (home.path / "extensions", *shut):
            path.chmod(0o755)


@pytest.mark.parametrize("where", ["host", "library"])
def test_a_file_beside_is_not_taken_for_a_module_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """`import providers` beside a `providers.py` never silently gives somebody else's module."""
    site = tmp_path / "host"
    site.mkdir()
    (site / "hosts_providers.py").write_text("WHO = 'the host'\n")
    monkeypatch.syspath_prepend(site)
    if where == "host":
        import hosts_providers  # type: ignore[import-not-found]

        assert hosts_providers.WHO == "the host"
    root = tmp_path / "home" / "extensions" / "mine"
    root.mkdir(parents=True)
    (root / "hosts_providers.py").write_text("WHO = 'the extension'\n")
    (root / "json.py").write_text("raise AssertionError('not meant')\n")
    for line in ("import hosts_providers", "from hosts_providers import WHO"):
        (root / "__init__.py").write_text(f"import json\n{line}\n{GOOD}")
        try:
            loaded = load(tmp_path / "home", everything=True)
        finally:
            sys.modules.pop("hosts_providers", None)
        (record,) = (each for each in loaded.records if each.name == "mine")
        (told,) = record.warnings
        assert f"{root / '__init__.py'}:2: `import hosts_providers` is not" in told
        assert "Write `from . import hosts_providers`" in told
        assert record.loaded


def test_loading_again_gives_each_handler_once(tmp_path: Path) -> None:
    """A reload doubles nothing, what broke is off with its reason, and what runs goes on."""
    root = tmp_path / "extensions"
    source = (
        f"{IMPORT}from . import util\n@register_hook('intercept_tool_call')\n"
        "def check(state):\n    return HookResult.block(util.text())\n"
    )
    for name in ("one", "two"):
        (root / name).mkdir(parents=True)
        (root / name / "__init__.py").write_text(source)
        (root / name / "util.py").write_text(f"def text():\n    return {name!r}\n")
    before = set(sys.modules)
    first = load(tmp_path)
    for _ in range(3):
        again = load(tmp_path)
        assert [each.extension for each in again.handlers] == ["one", "two"]
        unload(again)
    (root / "one" / "util.py").write_text("def text(:\n")
    now = load(tmp_path)
    assert [each.extension for each in now.handlers] == ["two"]
    (failed,) = (each for each in now.records if each.status is Status.LOAD_ERROR)
    assert f"{root / 'one' / 'util.py'}:1: SyntaxError" in failed.reason
    # The first load is untouched by all this, code and submodules.
    assert run_hook(Runtime(first.handlers), CALL).message == "one"
    unload(now)
    unload(first)
    assert {each for each in sys.modules if each.startswith("_hermes_ext_x.")} <= before


# -- the configuration ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "refused", "told"),
    [
        ("[rule]", True, ""),
        ("rule", True, "taken as rule"),
        ("'[\"rule\"]'", True, "Take the quotes around the list away"),
        ("{rule: true}", True, "found a mapping, expected a list of names; taken as rule"),
        ("{rule: {}}", True, "found a mapping, expected a list of names; taken as rule"),
        ("{rule: false}", False, "so nothing is required"),
        ("null", False, ""),
        ("[1, no, rule]", True, 'if it is a name, write "no"'),
        ("[rule, rule, RULE]", True, ""),
        ("'rule, other'", True, "Write `required: [rule, other]`"),
    ],
)
def test_a_malformed_list_of_required_ones_is_never_silent(
    home: Home,
    value: str,
    refused: bool,
    told: str,
) -> None:
    """Each shape of `required` either holds or is an error of doctor with line, found, expected."""
    home.write_config(f"extensions:\n  required: {value}\n")
    install(home.path)
    loaded = load(home.path)
    assert (loaded.refusal is not None) is refused
    findings = examine(home.path, None, loaded)
    messages = [f"{each.where}: {each.message}. {each.hint}" for each in findings]
    if told:
        (message,) = (each for each in messages if told in each)
        assert message.startswith(f"{home.config}:2: extensions.required")
        assert "found" in message
    else:
        assert not any("found" in each and "extensions.required" in each for each in messages)


@pytest.mark.parametrize("value", ["hermes-ext", "'[hermes-ext]'", "{hermes-ext: true}"])
def test_a_plugin_list_of_the_wrong_kind_is_an_error_of_doctor(home: Home, value: str) -> None:
    """Hermes silently enables nothing from such a value, so doctor says it."""
    home.write_config(f"plugins:\n  enabled: {value}\n")
    findings = [
        each for each in host_findings(home.path, load(home.path)) if each.code == "plugin-off"
    ]
    assert len(findings) == 1
    assert "plugins.enabled" in findings[0].message
    assert "expected a list" in findings[0].message


def test_a_name_that_is_nowhere_fails_doctor(home: Home) -> None:
    """Enabled and not installed is exit code 1, with the folders searched and the near name."""
    home.add("workflow-rules")
    home.run("install")
    with home.config.open("a") as file:
        file.write("extensions:\n  on: [ghost, wrokflow-rules]\n")
    output = home.process("doctor")
    assert output.code == 1
    assert "ghost" in output.out
    assert str(home.path / "extensions") in output.out
    assert 'Did you mean "workflow-rules"?' in output.out


FEATURE_REQUEST = """\
extensions:
  enabled: true
  global_dir: ~/.hermes/extensions/
  project_local: true  # load from .hermes/extensions/ in cwd

  # Per-extension config (optional)
  workflow-guard:
    plan_path: plans/active/plan.md
    blocked_tools: [write, edit, patch]
    allowed_paths: [plans/, handoff/]
"""


def test_the_feature_requests_settings_with_the_bundled_guard(home: Home, tmp_path: Path) -> None:
    """With its own YAML and `enable` the guard holds, however a path is spelled; doctor notes."""
    home.config.write_text(FEATURE_REQUEST)
    assert home.run("install").code == 0
    assert home.run("enable", "workflow-guard").code == 0
    kept = home.config.read_text().splitlines()
    assert [line for line in FEATURE_REQUEST.splitlines() if line not in kept] == []
    found = home.process("doctor", "--json")
    noted = [each for each in found.json["findings"] if "blocked_tools" in each["message"]]
    assert [word for each in noted for word in ("write", "edit") if f'"{word}"' in each["message"]]
    assert {each["severity"] for each in noted} <= {"note", "warning"}
    assert len(noted) == 2

    runtime = Runtime.from_config(home=home.path, cwd=tmp_path)
    decomposed = unicodedata.normalize("NFD", "plans/é.md")
    (tmp_path / "plans").mkdir()
    with runtime.turn(session_id="s", cwd=tmp_path, project_root=tmp_path) as turn:

        def blocked(tool: str, **args: Any) -> bool:
            return turn.intercept_tool_call(tool, args).blocked

        refused = ("app.py", "./app.py", "plans/../app.py", "plans//../app.py", "app.py/")
        assert [blocked("write_file", path=path, content="x") for path in refused] == [True] * 5
        allowed = ("plans/x.md", "./plans//x.md", "plans/é.md", decomposed, "handoff/x.md/")
        assert [blocked("write_file", path=path, content="x") for path in allowed] == [False] * 5
        assert blocked("write_file", file_path="app.py", content="x")
        assert blocked("write_file", path=["plans/x.md", "app.py"], content="x")
        for command in ("sed -i s/a/b/ app.py", "bash -c 'rm -rf .'", "ls\nrm -r -f x", "$(rm x)"):
            assert blocked("terminal", command=command)
    runtime.close()


# -- guards that look at names --------------------------------------------------------------------


@pytest.fixture
def guarded(tmp_path: Path) -> Any:
    """A project with one protected file, and everything that keeps it so from the package."""
    from tests.bundled import Bundled

    on = Bundled(tmp_path, "protected-paths", paths=["plans/secret.md"])
    on.write("plans/secret.md", "secret\n")
    on.write("x", "x\n")
    return on


PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-secret\n+known\n*** End Patch"
SECRET = "plans/secret.md"


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("write_file", {"path": SECRET, "content": ""}),
        ("patch", {"mode": "replace", "path": SECRET, "old_string": "s", "new_string": "k"}),
        ("patch", {"mode": "patch", "patch": PATCH.format(SECRET)}),
        ("terminal", {"command": f"sed -i s/s/k/ {SECRET}"}),
        ("terminal", {"command": f"echo k | tee {SECRET}"}),
        ("terminal", {"command": f"cp x {SECRET}"}),
        ("terminal", {"command": f"python -c \"open('{SECRET}', 'w')\""}),
        ("execute_code", {"code": f"open('{SECRET}', 'w')"}),
    ],
)
def test_a_path_is_guarded_whichever_way_it_is_written(
    guarded: Any, tool: str, args: dict[str, Any]
) -> None:
    """A guard of paths that looks at write tools only misses the shell, patches and code."""
    assert guarded.call(tool, args).blocked_by == "protected-paths"


@pytest.mark.parametrize(
    "args",
    [
        {"path": SECRET},
        {"file_path": SECRET},
        {"paths": ["x", SECRET]},
        {"path": f"./{SECRET}"},
        {"path": "plans//secret.md"},
        {"path": "plans/../plans/secret.md"},
        {"path": f"{SECRET}/"},
    ],
)
def test_other_names_of_an_argument_and_other_spellings_of_a_path(
    guarded: Any, args: dict[str, Any]
) -> None:
    assert guarded.call("write_file", {**args, "content": ""}).blocked
    assert guarded.call("mcp_files_write_file", {**args, "content": ""}).blocked


def test_composed_and_decomposed_names(tmp_path: Path) -> None:
    """Where the file system has one file for both, or the rule is written the other way."""
    from tests.bundled import Bundled

    composed = unicodedata.normalize("NFC", "plans/gehéim.md")
    on = Bundled(tmp_path, "protected-paths", paths=[composed])
    for form in ("NFC", "NFD"):
        args = {"path": unicodedata.normalize(form, composed), "content": ""}
        assert on.call("write_file", args).blocked


@pytest.mark.skipif(
    sys.platform not in ("darwin", "win32"), reason="the usual file systems here regard case"
)
def test_another_case_of_a_name(guarded: Any) -> None:
    assert guarded.call("write_file", {"path": "PLANS/Secret.MD", "content": ""}).blocked


@pytest.mark.parametrize(
    "command",
    [
        "bash -c 'rm -rf x'",
        "sh -lc 'rm -rf x'",
        "env A=1 rm -rf x",
        "rm -r -f x",
        "rm --recursive x",
        "ls\nrm -rf x",
        "ls; rm -rf x",
        "ls && rm -rf x",
        "echo $(rm -rf x)",
    ],
)
def test_a_command_is_seen_however_it_is_wrapped(tmp_path: Path, command: str) -> None:
    """A guard of commands that looks at the first word misses them one level down."""
    from tests.bundled import Bundled

    on = Bundled(tmp_path, "confirm-destructive")
    on.write("x/a", "x\n")
    assert on.shell(command).action == "ask"
    assert on.call("terminal", {"command": command}).blocked
