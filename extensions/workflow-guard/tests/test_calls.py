"""Which tool calls are blocked without a plan."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Guard = Callable[..., Any]

RUNS = {"pass", "confine"}

V4A = "*** Begin Patch\n{}\n*** End Patch"


def write(path: Any) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": "x"}


def replace(path: Any) -> tuple[str, dict[str, Any]]:
    return "patch", {"mode": "replace", "path": path, "old_string": "a", "new_string": "b"}


def v4a(*lines: str) -> tuple[str, dict[str, Any]]:
    return "patch", {"mode": "patch", "patch": V4A.format("\n".join(lines))}


def shell(command: str) -> tuple[str, dict[str, Any]]:
    return "terminal", {"command": command}


def update(path: str) -> tuple[str, dict[str, Any]]:
    return v4a(f"*** Update File: {path}", "@@", "-a", "+b")


ALLOWED = {
    "the plan": write("plans/active/plan.md"),
    "under an allowed folder": write("handoff/notes/today.md"),
    "dot": write("./plans//x.md"),
    "there and back": write("src/../plans/x.md"),
    "replace": replace("plans/active/plan.md"),
    "replace without mode": ("patch", {"path": "plans/x.md", "old_string": "a", "new_string": "b"}),
    "patch": update("plans/x.md"),
    "list": write(["plans/x.md", "handoff/y.md"]),
    "a name of another case": ("Write_File", {"path": "plans/x.md", "content": "x"}),
    "redirection": shell("echo note >> plans/x.md"),
    "here-document": shell("mkdir -p plans/active && cat > plans/active/plan.md <<'EOF'\nGo.\nEOF"),
    "tee": shell("ls | tee plans/x.md"),
    "moved among the plans": shell("mv plans/first.md plans/second.md"),
    "the plan is removed": shell("rm -rf plans/active/plan.md"),
    "code": ("execute_code", {"code": "open('plans/x.md', 'w').write('x')"}),
    "patch of several": v4a(
        "*** Add File: plans/a.md",
        "+*** Update File: src/not-a-header.py",
        "*** Delete File: handoff/b.md",
        "*** Move File: plans/c.md -> handoff/c.md",
        "*** Update File: plans/d.md",
        "@@ heading @@",
        " context",
        "+more",
        "*** End of File",
    ),
}

BLOCKED = {
    "a file": write("app.py"),
    "a name that begins alike": write("plansX/x.md"),
    "the folder above": write("plans/../app.py"),
    "far above": write("plans/../../outside.txt"),
    "other case": write("PLANS/x.md"),
    "absolute": write("/etc/hosts"),
    "home": write("~/plans/x.md"),
    "somebody's home": write("~root/x"),
    "backslashes": write("plans\\..\\app.py"),
    "leading space": write(" plans/x.md"),
    "empty": write(""),
    "blank": write("  "),
    "no path": ("write_file", {"content": "x"}),
    "nothing": ("write_file", {}),
    "null": write(None),
    "number": write(5),
    "second path": ("write_file", {"path": "plans/x", "content": "", "file_path": "app.py"}),
    "replace": replace("app.py"),
    "replace nothing": ("patch", {}),
    "replace, and a patch too": (
        "patch",
        {**replace("plans/x.md")[1], "patch": update("app.py")[1]["patch"]},
    ),
    "patch, and a path too": ("patch", {**update("plans/x.md")[1], "path": "app.py"}),
    "patch is a list": ("patch", {"mode": "patch", "patch": ["*** Update File: plans/x.md"]}),
    "patch without a path": ("patch", {"mode": "patch", "patch": V4A.format("+x")}),
    "patch of one in two": v4a(
        "*** Update File: plans/x.md", "+a", "*** Update File: app.py", "+b"
    ),
    "update": update("app.py"),
    "add": v4a("*** Add File: app2.py", "+x"),
    "delete": v4a("*** Delete File: app.py"),
    "move out of": v4a("*** Move File: app.py -> plans/app.py"),
    "move into": v4a("*** Move File: plans/x.md -> app.py"),
    "move to": v4a("*** Update File: plans/x.md", "*** Move to: app.py", "+x"),
    "no spaces": v4a("***Update File:app.py", "+x"),
    "many spaces": v4a("***   Update    File:    app.py   ", "+x"),
    "tabs": v4a("***\tDelete\tFile:\tapp.py"),
    "odd spaces": v4a("***\u2003Delete\u00a0File:\u2028app.py"),
    "carriage return": v4a("*** Update File: plans/x.md\r", "+a\r", "*** Delete File: app.py\r"),
    "no markers": ("patch", {"mode": "patch", "patch": "*** Delete File: app.py"}),
    "before the beginning": (
        "patch",
        {"mode": "patch", "patch": f"*** Delete File: app.py\n{update('plans/x.md')[1]['patch']}"},
    ),
    "behind the end": (
        "patch",
        {"mode": "patch", "patch": f"{update('plans/x.md')[1]['patch']}\n*** Delete File: app.py"},
    ),
    "lower case": v4a("*** Update File: plans/x.md", "*** delete file: app.py"),
    "unknown header": v4a("*** Update File: plans/x.md", "*** Truncate File: app.py"),
    "list": write(["plans/x.md", "app.py"]),
    "redirection": shell("echo x > app.py"),
    "redirection among others": shell("echo x > plans/x.md; ls > app.py"),
    "a link": shell("ln -s first.md plans/second.md"),
    "a second name": shell("ln plans/first.md plans/second.md"),
    "a link by code": (
        "execute_code",
        {"code": "import os\nos.symlink('first.md', 'plans/active/plan.md')"},
    ),
    "no document": shell("echo x > plans/x.py"),
    "a directory": shell("rm -rf plans/old"),
    "the plans": shell("rm -rf plans"),
    "a copy of a directory": shell("cp -r . plans/x.md"),
    "code": ("execute_code", {"code": "open('app.py', 'w')"}),
    "a folder that is not there": shell("mkdir -p handoff/new ../plans"),
    "the folder itself": shell("rmdir handoff"),
    "known beside unknown": shell("make; echo x > app.py"),
    "typed, and known": ("process", {"action": "submit", "session_id": "p", "data": "rm app.py"}),
    "cron": ("cronjob", {"action": "create", "prompt": "fix it", "schedule": "1h"}),
    "browser click": ("browser_click", {"ref": "@e1"}),
    "speech": ("text_to_speech", {"text": "x", "output_path": "app.py"}),
    "MCP": ("mcp_files_write", {"path": "plans/x.md"}),
    "no name": ("", {}),
}

CONFINED = {
    "tests": shell("python -m pytest -q"),
    "a linter in a folder": shell("cd src && ../.venv/bin/ruff check . 2>&1 | tail -5"),
    "code that is not understood": shell("python -c 'import app; app.main()'"),
    "an unknown program": shell("make > plans/x.md"),
    "a program that is not known before it runs": shell("$(cat plans/x.md)"),
    "names that are made at run time": shell("ls *.py | xargs rm"),
    "no path": shell('rm "$f"'),
    "a folder for temporary files": shell('T=$(mktemp -d) && make > "$T/log"'),
    "a file that nothing goes to": shell("nohup make > /dev/null 2>&1"),
    "no command": ("terminal", {}),
    "in the background": ("terminal", {"command": "npm start", "background": True}),
    "code": ("execute_code", {"code": "import app"}),
    "typed": ("process", {"action": "submit", "session_id": "p", "data": "x"}),
    "no action": ("process", {}),
    "odd action": ("process", {"action": ["list"]}),
}

HARMLESS = {
    "read_file": {"path": "app.py"},
    "search_files": {"pattern": "x"},
    "todo": {"todos": []},
    "memory": {"action": "add", "target": "memory", "content": "x"},
    "clarify": {"question": "?"},
    "skill_view": {"name": "x"},
    "web_search": {"query": "x"},
    "delegate_task": {"goal": "look around"},
    "process": {"action": "poll", "session_id": "p"},
    "cronjob": {"action": "list"},
    "terminal": {"command": "git diff HEAD~1 | head -5; grep -rn TODO src && ls -la"},
    "execute_code": {"code": "print(sum(range(10)))"},
    "Read_File": {"path": "app.py"},
    "read_file ": {"path": "app.py"},
}


@pytest.mark.parametrize(("tool", "args"), ALLOWED.values(), ids=ALLOWED)
def test_allowed_writes_pass(untouched: Any, tool: str, args: dict[str, Any]) -> None:
    """Without a plan, a call may write the plan and under the allowed paths."""
    outcome = untouched.call(tool, args)
    assert outcome.action in RUNS, outcome.message


@pytest.mark.parametrize("confines", [True, False])
def test_commands_make_no_allowed_folder(guarded: Guard, confines: bool) -> None:
    """A confined command cannot make one that is not there; a tool for files can."""
    guard = guarded(confines=confines)
    blocked = guard.call(*shell("mkdir -p plans/active && echo Go. > plans/active/plan.md"))
    assert "must not change 'plans', 'plans/active', 'plans/active/plan.md'." in blocked.message
    hint = "Use write_file to write there: a command cannot, because plans does not exist yet."
    assert hint in blocked.message
    assert not guard.call(*write("plans/active/plan.md")).blocked


def test_why_a_folder_is_not_handed_out(guarded: Guard) -> None:
    """A command that cannot write there gets the reason, each time."""
    guard = guarded()
    guard.write("plans/run.sh", "echo")
    for name in ("b", "c"):
        blocked = guard.call(*shell(f"echo a > plans/{name}.md"))
        why = "Use write_file to write there: a command cannot, because plans/run.sh is not a doc"
        assert why in blocked.message


@pytest.mark.parametrize("call", [write("plans/x.md"), shell("echo x > plans/x.md")], ids=str)
def test_what_is_in_the_way_of_every_write(guarded: Guard, call: Any) -> None:
    """Where no tool can write a plan, no message asks for one: the user has to help."""
    guard = guarded()
    (guard.root / "plans").mkdir()
    os.link(guard.write("kept.md"), guard.root / "plans/hard.md")
    assert guard.call(*call).message == (
        "There is no plan yet, so "
        f"{call[0]} must not change 'plans/x.md'. Nothing can be written in plans: hard.md has "
        "a hard link elsewhere. Only the user can change that."
    )


@pytest.mark.parametrize("path", ["plans/active/plan.md", "plans/x.md", "real/plans/x.md"])
def test_a_plan_behind_a_link(guarded: Guard, path: str) -> None:
    """A write to the plan through a link is refused: links are not followed."""
    guard = guarded()
    (guard.root / "real/plans").mkdir(parents=True)
    (guard.root / "plans").symlink_to("real/plans")
    message = guard.call(*write(path)).message
    assert message.count("A symbolic link leads from plans to real/plans, and links are") == 1
    assert message.endswith(
        "plan_path and allowed_paths of extensions.workflow-guard in config.yaml."
    )
    (guard.root / "plans").unlink()
    (guard.root / "handoff").symlink_to("real/plans")
    message = guard.call(*write("handoff/x.md")).message
    assert "A symbolic link leads from handoff to real/plans" in message
    assert "First write the plan to plans/active/plan.md with write_file" in message


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (shell("ln -s first.md plans/second.md"), "'plans/second.md'. Links cannot be made there."),
        (shell("ls > /tmp/x"), "'/tmp/x'. Write temporary files to $TMPDIR."),
        (write("/tmp/x"), "'/tmp/x'. First write the plan"),
        (shell("ls > x"), "'x'. First write the plan"),
    ],
    ids=str,
)
def test_what_to_do_instead(guarded: Guard, call: Any, told: str) -> None:
    """Where there is another way, the message says so."""
    guard = guarded()
    (guard.root / "plans").mkdir()
    assert f"must not change {told}" in guard.call(*call).message


def test_a_call_without_a_path_is_no_matter_of_settings(guarded: Guard) -> None:
    """No user is asked to let a tool for files write anything because a call was wrong."""
    assert "allowed_tools" not in guarded().call("write_file", {"content": "x"}).message


def test_files_among_the_plans_are_written_confined(guarded: Guard) -> None:
    """A confined command could make a link of a folder just before a tool writes there."""
    guard = guarded()
    assert guard.call(*write("plans/x.md")).action in RUNS
    (guard.root / "plans").mkdir()
    for call in (write("plans/x.md"), update("plans/x.md"), write("plans/new/x.md")):
        assert guard.call(*call).confinement.writable == (guard.root / "plans",)
    assert guard.call(*update("app.py")).blocked
    # Such a command may have been started when the folder was handed out.
    guard.write("plans/left.py")
    assert written_by_make(guard) == []
    assert guard.call(*write("plans/x.md")).confinement.writable == (guard.root / "plans",)


def test_files_in_a_part_of_the_plans(guarded: Guard) -> None:
    """Where the folder as a whole cannot be held, what is written in can be; else nothing runs."""
    guard = guarded()
    source = guard.write("elsewhere.md")
    (guard.root / "plans/active").mkdir(parents=True)
    (guard.root / "plans/linked.md").hardlink_to(source)
    active = guard.call(*write("plans/active/plan.md"))
    assert active.confinement.writable == (guard.root / "plans/active",)
    blocked = guard.call(*write("plans/x.md")).message
    assert "must not change 'plans/x.md'. Nothing can be written in plans: linked.md has" in blocked
    assert "First write the plan to plans/active/plan.md with write_file" in blocked


def test_folders_in_folders(guarded: Guard) -> None:
    """A thousand of them keep nobody from looking around."""
    guard = guarded()
    (guard.root / "plans").mkdir()
    at = os.open(guard.root / "plans", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    assert written_by_make(guard) == []
    assert guard.call(*shell("ls")).action in RUNS
    subprocess.run(["rm", "-r", guard.root / "plans/d"], check=True)  # Python cannot


@pytest.mark.parametrize(("tool", "args"), BLOCKED.values(), ids=BLOCKED)
def test_other_writes_are_blocked(untouched: Any, tool: str, args: dict[str, Any]) -> None:
    """Without a plan, whatever can write elsewhere is blocked, with what to do in the message."""
    outcome = untouched.call(tool, args)
    assert outcome.blocked
    assert outcome.blocked_by == "workflow-guard"
    assert not any(step.error for step in outcome.steps)
    assert "no plan yet" in outcome.message
    assert "write the plan to plans/active/plan.md with write_file" in outcome.message


@pytest.mark.parametrize(("tool", "args"), CONFINED.values(), ids=CONFINED)
def test_what_nobody_knows_runs_confined(guarded: Guard, tool: str, args: dict[str, Any]) -> None:
    """It can write the allowed folders; where the host cannot confine it is blocked."""
    guard = guarded()
    for folder in ("plans", ".pytest_cache", "coverage"):
        (guard.root / folder).mkdir()
    outcome = guard.call(tool, args)
    assert outcome.action == "confine"
    found = outcome.confinement
    assert found.writable == tuple(
        guard.root / each for each in ("plans", ".pytest_cache", "coverage")
    )
    assert [each.text for each in found.reasons] == ["no plan yet"]
    blocked = guarded(confines=False).call(tool, args)
    assert blocked.blocked_by == "workflow-guard"
    assert "no plan yet" in blocked.message
    assert "cannot be confined: this host cannot confine processes" in blocked.message
    assert "First write the plan to plans/active/plan.md with write_file" in blocked.message
    assert (
        "Calls that only read still run: read_file, search_files, and commands" in blocked.message
    )


@pytest.mark.parametrize(("tool", "args"), HARMLESS.items(), ids=HARMLESS)
def test_reading_passes(untouched: Any, tool: str, args: dict[str, Any]) -> None:
    """Without a plan, tools that only read, or write nothing of a project's, run."""
    outcome = untouched.call(tool, args)
    assert outcome.action in RUNS, outcome.message


def written_by_make(guard: Any) -> list[str]:
    """Which folders a command may write that nobody knows."""
    writable = guard.call(*shell("make")).confinement.writable
    return [str(each.relative_to(guard.root)) for each in writable]


def test_folders_with_other_files_than_documents(guarded: Guard) -> None:
    """What is in them could be changed by a command, whatever its name: they are not handed out."""
    guard = guarded(allowed_paths=["plans/", "docs/", "."])
    guard.write("plans/x.md")
    guard.write("plans/.gitkeep", "")
    guard.write("docs/conf.py")
    assert written_by_make(guard) == ["plans"]
    assert guard.call(*write("docs/x.md")).confinement.writable == (guard.root / "docs",)
    assert guard.call(*write("x.md")).action == "pass"
    assert "Use write_file to write there" in guard.call(*shell("echo x > docs/x.md")).message
    guard.write("plans/x.py")
    assert written_by_make(guard) == []
    assert written_by_make(guarded(allowed_suffixes=[], allowed_paths=["docs"])) == ["docs"]
    assert written_by_make(guarded(allowed_paths=["plans", "plans/x.py"])) == ["plans"]


@pytest.mark.parametrize("linked", [False, True], ids=["a clone", "a work tree"])
def test_scratch_paths_that_git_keeps(guarded: Guard, linked: bool, tmp_path: Path) -> None:
    """They are sources that happen to have the name, and not handed out."""
    guard = guarded()
    guard.write("coverage/report.html")
    guard.write(".pytest_cache/x")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run([*git, "init", "-q", "."], cwd=guard.root, check=True)
    assert written_by_make(guard) == [".pytest_cache", "coverage"]
    subprocess.run([*git, "add", "coverage"], cwd=guard.root, check=True)
    if linked:
        subprocess.run([*git, "commit", "-qm", "x"], cwd=guard.root, check=True)
        tree = ["worktree", "add", "-q", str(tmp_path / "tree")]
        subprocess.run([*git, *tree], cwd=guard.root, check=True)
        guard = guarded(root=tmp_path / "tree")
        guard.write(".pytest_cache/x")
    assert written_by_make(guard) == [".pytest_cache"]


@pytest.mark.parametrize(
    "kept", [["--index-version", "4"], ["--split-index"], ["--index-version", "2"]], ids=" ".join
)
def test_scratch_paths_in_any_index(guarded: Guard, kept: list[str]) -> None:
    """However git writes down what it keeps; a submodule is kept as well."""
    guard = guarded()
    guard.write("cover.py")
    guard.write("coverage/sources.js")
    guard.write(".pytest_cache/x")
    guard.write(".pytest_cache/.git", "gitdir: elsewhere")
    for args in (["init", "-q"], ["add", "cover.py", "coverage"], ["update-index", *kept]):
        subprocess.run(["git", *args], cwd=guard.root, check=True)
    assert written_by_make(guard) == []


@pytest.mark.parametrize(
    ("setting", "path"), [("allowed_paths", "plans"), ("scratch_paths", "coverage")]
)
def test_folders_that_are_not_what_they_seem(guarded: Guard, setting: str, path: str) -> None:
    """A link, and one with a file that has a second name outside, are not handed out."""
    guard = guarded(**{setting: [path]})
    source = guard.write("src/app.md")
    (guard.root / path).symlink_to("src")
    assert written_by_make(guard) == []
    (guard.root / path).unlink()
    (guard.root / path).mkdir()
    assert written_by_make(guard) == [path]
    (guard.root / path / "x.md").hardlink_to(source)
    assert written_by_make(guard) == []


def test_known_changes_of_scratch_paths(guarded: Guard) -> None:
    """Commands may make them, tools for files may not; and no links."""
    guard = guarded()
    guard.write("coverage/old.html")
    assert guard.call(*shell("rm -rf coverage/*; echo x > coverage/new.js")).action == "confine"
    for call in (
        write("coverage/x.md"),
        shell("rm -rf coverage"),
        shell("ln -s ../app.py coverage/x"),
        shell("echo x > .hypothesis"),
    ):
        assert guard.call(*call).blocked, call


@pytest.mark.parametrize(
    ("tool", "args"), [shell("ls"), ("execute_code", {"code": "print(1)"})], ids=["ls", "code"]
)
def test_what_seems_to_read_is_confined_too(
    guarded: Guard, tool: str, args: dict[str, Any]
) -> None:
    """The kernel holds it, whatever was read of it."""
    assert guarded().call(tool, args).action == "confine"
    assert guarded(confines=False).call(tool, args).confined.kept_by == "effects"


def test_a_tool_whose_server_says_that_it_only_reads(guarded: Guard) -> None:
    """It runs, unless the user blocks it."""
    call = ("mcp_github_get_issue", {"number": 2})
    assert guarded().call(*call).blocked
    assert guarded().call(*call, read_only=True).action == "pass"
    assert guarded(blocked_tools=["mcp_*"]).call(*call, read_only=True).blocked


def test_with_a_plan_nothing_is_blocked(guarded: Guard) -> None:
    """With a plan, every call goes through."""
    guard = guarded()
    guard.write("plans/active/plan.md")
    assert {guard.call(*call).action for call in BLOCKED.values()} == {"pass"}


def test_the_plan_counts_from_its_writing_on(guarded: Guard) -> None:
    """In one turn: blocked, then the plan is written, then allowed."""
    guard = guarded()
    with guard.runtime.turn(session_id="s1", cwd=guard.cwd, project_root=guard.root) as turn:
        assert turn.intercept_tool_call(*write("app.py"), tool_call_id="c1").blocked
        assert not turn.intercept_tool_call(*write("plans/active/plan.md")).blocked
        guard.write("plans/active/plan.md")
        assert not turn.intercept_tool_call(*write("app.py"), tool_call_id="c2").blocked


def test_the_message_names_what_was_refused(guarded: Guard) -> None:
    """Of several paths the refused ones are named, and odd characters are escaped."""
    message = (
        guarded().call(*v4a("*** Delete File: plans/a.md", "*** Delete File: b\x1b[2J")).message
    )
    assert "patch must not change 'b\\x1b[2J'." in message
    assert "Until then only plans/active/plan.md and documents (.md, .markdown, " in message
    assert ") in plans/ and handoff/ may be written." in message


def test_the_message_says_what_is_not_known(guarded: Guard) -> None:
    """A call that is not understood is told why, in a line; what else there is to say, once."""
    guard = guarded()
    with guard.runtime.turn(session_id="s1", cwd=guard.cwd, project_root=guard.root) as turn:
        first = turn.intercept_tool_call("mcp_x", {"\x1b[2J": 1}, tool_call_id="c1").message
        again = turn.intercept_tool_call("mcp_x", {"b": 1}, tool_call_id="c2").message
    assert "so this call of mcp_x is blocked: " in first
    assert "add it to extensions.workflow-guard.allowed_tools" in first
    assert "\x1b" not in first
    assert again.endswith(
        ". First write the plan to plans/active/plan.md with write_file, then make this call again."
    )


def test_an_unknown_tool_can_be_allowed(guarded: Guard) -> None:
    """The message names the setting that lets an unknown tool run, and the setting does."""
    blocked = guarded().call("mcp_github_get_issue", {"number": 2})
    assert "extensions.workflow-guard.allowed_tools" in blocked.message


@pytest.mark.parametrize("allowed", ["mcp_github_*", "mcp_github_get_issue"])
def test_allowed_tools(guarded: Guard, allowed: str) -> None:
    """Names and patterns in allowed_tools let tools run, and no others."""
    guard = guarded(allowed_tools=[allowed])
    assert guard.call("mcp_github_get_issue", {}).action == "pass"
    assert guard.call("mcp_files_write", {}).blocked


def test_blocked_tools_win(guarded: Guard) -> None:
    """What both lists name is blocked altogether, and so is what only reads."""
    guard = guarded(blocked_tools=["terminal", "web_*"], allowed_tools=["*"])
    assert guard.call("terminal", {"command": "ls"}).blocked
    assert guard.call("web_search", {"query": "x"}).blocked
    assert guard.call("anything", {}).action == "pass"


def test_the_feature_requests_settings(guarded: Guard) -> None:
    """The feature request's `[write, edit, patch]` blocks write_file and patch, by path."""
    guard = guarded(
        plan_path="plans/active/plan.md",
        blocked_tools=["write", "edit", "patch"],
        allowed_paths=["plans/", "handoff/"],
    )
    for tool, args in (write("app.py"), replace("app.py"), update("app.py")):
        assert guard.call(tool, args).blocked
    for tool, args in (write("handoff/x.md"), replace("plans/x.md"), update("plans/x.md")):
        assert guard.call(tool, args).action in RUNS
    # Not named, and judged by what it does.
    assert guard.call(*shell("sed -i s/a/b/ app.py")).blocked
    assert guard.call(*shell("git status")).action in RUNS


def test_a_plan_outside_of_the_allowed_paths(guarded: Guard) -> None:
    """The plan may be written wherever it is, and nothing beside it."""
    guard = guarded(plan_path="docs/PLAN.md", allowed_paths=[])
    assert guard.call(*write("docs/PLAN.md")).action in RUNS
    assert "only docs/PLAN.md may be written." in guard.call(*write("docs/x.md")).message
    assert guard.call(*write("docs/PLAN.md/x")).blocked


def test_an_allowed_file(guarded: Guard) -> None:
    """An allowed path may be a single file, or absolute."""
    guard = guarded(allowed_paths=["NOTES.md", "/var/tmp/notes"])
    assert guard.call(*write("NOTES.md")).action in RUNS
    assert guard.call(*write("/var/tmp/notes/x.md")).action in RUNS
    assert guard.call(*write("plans/x.md")).blocked


@pytest.mark.parametrize(
    "path",
    ["plans/package.json", "plans/node_modules/x/lib/x.js", "plans/Makefile", "plans/.envrc"],
)
def test_only_documents_in_allowed_folders(guarded: Guard, path: str) -> None:
    """What something might run is no plan: a setting says how the names of documents end."""
    assert guarded().call(*write(path)).blocked
    assert guarded(allowed_suffixes=[]).call(*write(path)).action in RUNS
    assert guarded(allowed_paths=[path]).call(*write(path)).action in RUNS


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("search_files", {"pattern": "--pre=sh", "path": "plans"}),
        ("browser_navigate", {"url": "--executable-path=/tmp/x"}),
    ],
)
def test_harmless_tools_with_harmful_arguments(
    guarded: Guard, tool: str, args: dict[str, Any]
) -> None:
    """A tool that only reads is let through only with arguments that only read."""
    assert guarded().call(tool, args).blocked


@pytest.mark.parametrize("call", [write, replace, update], ids=["write", "replace", "patch"])
def test_links_are_resolved(guarded: Guard, call: Callable[[str], Any], tmp_path: Path) -> None:
    """A link under an allowed path that leads out, and one outside that leads in, are no way."""
    guard = guarded()
    app = guard.write("app.py", "x = 1\n")
    note = guard.write("plans/note.md")
    (guard.root / "plans/to-app").symlink_to(app)
    (guard.root / "plans/up").symlink_to(guard.root)
    (guard.root / "plans/loop").symlink_to(guard.root / "plans/loop")
    (guard.root / "to-note").symlink_to(note)
    for path in ("plans/to-app", "plans/up/app.py", "plans/loop/x", "to-note"):
        assert guard.call(*call(path)).blocked, path
    assert guard.call(*call("plans/up/plans/note.md")).action in RUNS


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        shell("cp -s ../app.py plans/x.md"),
        shell("cp -P link.md plans/x.md"),
        shell("cp -P link.md plans/active/plan.md"),
        shell("cp -P other.md plans/"),
        shell("cp -R plans/link.md plans/x.md"),
        shell("mv plans/link.md plans/x.md"),
        shell("(sleep 1; cp -d link.md plans/x.md) &"),
        shell(r"find . -name link.md -exec cp -P {} plans/x.md \;"),
        (
            "execute_code",
            {"code": "import shutil\nshutil.copy('link.md', 'plans/x.md', follow_symlinks=False)"},
        ),
        ("execute_code", {"code": "import os\nos.rename('plans/link.md', 'plans/x.md')"}),
    ],
)
def test_links_are_neither_copied_nor_moved_to_allowed_paths(
    guarded: Guard, tool: str, args: dict[str, Any]
) -> None:
    """Done in the background, a later call that was judged without the link would follow it."""
    guard = guarded()
    app = guard.write("app.py", "x = 1\n")
    guard.write("plans/first.md")
    for link in ("link.md", "plans/link.md", "other.md"):
        (guard.root / link).symlink_to(app)
    assert guard.call(tool, args).blocked
    assert not guard.call(*shell("cp -P plans/first.md plans/second.md")).blocked


def test_a_linked_folder_is_allowed_by_its_own_name(guarded: Guard, tmp_path: Path) -> None:
    """A link in a place of the settings leads nowhere: whoever writes there could have made it."""
    shared = tmp_path / "shared"
    shared.mkdir()
    guard = guarded(allowed_paths=["plans/", str(shared)])
    (guard.root / "plans").symlink_to(shared)
    assert guard.call(*write("plans/x.md")).action in RUNS
    assert guard.call(*write(str(shared / "x.md"))).action in RUNS
    only_the_link = guarded()
    assert only_the_link.call(*write("plans/x.md")).blocked


@pytest.mark.parametrize("target", ["src", "."])
def test_plans_that_become_a_link_open_nothing(guarded: Guard, target: str) -> None:
    """An agent that makes a link of an allowed place can write no more than before."""
    guard = guarded(allowed_paths=["plans"], allowed_suffixes=[])
    source = guard.write("src/app.py", "x = 1\n")
    (guard.root / "plans").symlink_to(target)
    for path in ("plans/app.py", "plans/src/app.py", "plans/x.md", str(source)):
        assert guard.call(*write(path)).blocked


def test_a_plan_that_is_a_link_opens_nothing(guarded: Guard) -> None:
    """Neither does its target count as the plan, nor may it be written as one."""
    guard = guarded()
    guard.write("src/app.py", "x = 1\n")
    guard.write("plans/active/other.md")
    plan = guard.root / "plans/active/plan.md"
    for target in ("../../src/app.py", "other.md"):
        plan.unlink(missing_ok=True)
        plan.symlink_to(target)
        blocked = guard.call(*write("src/app.py"))
        assert "plans/active/plan.md is a link, or lies behind one" in blocked.message
    plan.unlink()
    plan.symlink_to("../../src/app.py")
    assert guard.call(*write("plans/active/plan.md")).blocked


def test_below_the_root(guarded: Guard, tmp_path: Path) -> None:
    """Paths of calls are relative to the working directory, those of settings to the root."""
    guard = guarded(root=tmp_path)
    assert guard.cwd != guard.root
    plan = str(tmp_path / "plans/active/plan.md")
    assert guard.call(*write("../plans/active/plan.md")).action in RUNS
    assert guard.call(*write(plan)).action in RUNS
    message = guard.call(*write("plans/active/plan.md")).message
    assert (
        f"must not change '{guard.cwd}/plans/active/plan.md'. First write the plan to {plan} "
        in (message)
    )
    assert f"only {plan} and documents " in message
    assert f" in {tmp_path}/plans/ and {tmp_path}/handoff/ may be written." in message


def test_without_a_repository(guarded: Guard) -> None:
    """Where the host knows no root the working directory is the root."""
    guard = guarded()
    assert guard.call(*write("plans/x.md"), project_root=None).action in RUNS
    assert guard.call(*write("app.py"), project_root=None).blocked


def test_a_subagent_is_judged_alike(guarded: Guard) -> None:
    """A subagent's and a background review's calls are judged by the same rules."""
    guard = guarded()
    assert guard.call(*write("app.py"), is_subagent=True, origin="subagent").blocked
    assert guard.call(*write("app.py"), origin="background").blocked


def test_the_decision_names_its_setting(guarded: Guard) -> None:
    """A block says in its metadata which setting it comes from."""
    guard = guarded(blocked_tools=["terminal"])
    calls = (write("app.py"), ("terminal", {"command": "ls"}), ("mcp_x", {}))
    names = [guard.call(*call).metadata["setting"].rpartition(".")[2] for call in calls]
    assert names == ["allowed_paths", "blocked_tools", "allowed_tools"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_plan_is_none(guarded: Guard) -> None:
    """A plan that cannot be read does not count."""
    guard = guarded()
    guard.write("plans/active/plan.md").chmod(0)
    assert guard.call(*write("app.py")).blocked
