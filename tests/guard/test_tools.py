"""Tools by their arguments: every protected place, every spelling, every tool."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.guard.conftest import Ground

PLACES = [
    "config.yaml",
    ".config.yaml.lock",
    ".env",
    "active_profile",
    "hooks/x/HOOK.yaml",
    "hooks/x/handler.py",
    "shell-hooks-allowlist.json",
    "extensions/new/__init__.py",
    "extensions/mine/__init__.py",
    "plugins/p/__init__.py",
    "extensions-trust/trusted.json",
    "logs/extensions.jsonl",
    "logs/extensions.jsonl.1",
    "extensions-state.db",
    "extensions-state.db-wal",
    "cache/hermes-ext/last-load.json",
    "profiles/other/config.yaml",
    "profiles/other/extensions/x.py",
]


def v4a(path: str) -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch"


WAYS: list[tuple[str, Any]] = [
    ("write_file", lambda path: {"path": path, "content": "x"}),
    ("patch", lambda path: {"mode": "replace", "path": path, "old_string": "a", "new_string": "b"}),
    ("patch", lambda path: {"mode": "patch", "patch": v4a(path)}),
    ("patch", lambda path: {"mode": "patch", "patch": v4a("a.py").replace("Update", "Delete")
                            + f"\n*** Move File: a.py -> {path}\n"}),
    ("text_to_speech", lambda path: {"text": "x", "output_path": path}),
    ("mcp_files_write_file", lambda path: {"path": path, "content": "x"}),
    ("mcp_files_move", lambda path: {"source": "a", "destination": path}),
    ("mcp_files_batch", lambda path: {"files": [{"where": "a"}, {"where": path}]}),
    ("mcp_x", lambda path: {"anything": path}),
    ("mcp_shell_run", lambda path: {"command": f"rm {path}"}),
    ("mcp_py_run", lambda path: {"code": f"import os\nos.remove({path!r})"}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "args"), WAYS)
def test_no_tool_writes_to_a_protected_place(ground: Ground, tool: str, args: Any) -> None:
    through = [p for p in PLACES if ground.refusal(tool, args(str(ground.home / p))) is None]
    assert through == []
    assert ground.refusal(tool, args(str(ground.repo / ".hermes" / "extensions.yaml"))) is not None
    assert ground.refusal(tool, args(".hermes/extensions/x.py")) is not None
    assert ground.refusal(tool, args("src/main.py")) is None


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("mcp_fs_write_files", {"files": {".hermes/extensions/x.py": "x"}}),
        ("mcp_sh", {"command": "hermes-ext", "args": ["disable", "x"]}),
        ("mcp_sh", {"command": ["rm", "-rf", "../repo"]}),
        ("mcp_sh", {"bash": "rm -rf .hermes"}),
        ("mcp_fs_delete", {"path": "../repo"}),
        ("mcp_fs_move", {"source": "../repo", "destination": "/tmp/x"}),
        ("mcp_fs_get_and_rm", {"path": "~/.hermes/config.yaml"}),
        ("mcp_sh", {"program": "hermes-ext", "args": ["trust"]}),
        ("delegate_task", {"goal": "x", "acp_command": "hermes-ext", "acp_args": ["trust"]}),
        ("write_file", {"path": "~/.profile", "content": "export HERMES_EXT_OFF=1\n"}),
        ("terminal", {"command": "hermes -z x", "env": {"HERMES_EXT_OFF": "1"}}),
    ],
)
def test_other_shapes_of_arguments(ground: Ground, tool: str, args: dict[str, Any]) -> None:
    assert ground.refusal(tool, args) is not None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("~/.bash_aliases", "export HERMES_EXT_OFF=1"),
        ("~/.config/fish/config.fish", "set -x HERMES_EXT_OFF 1"),
        ("~/.config/fish/conf.d/x.fish", "set -gx HERMES_HOME /tmp/x"),
        ("~/.config/nushell/env.nu", "$env.HERMES_EXT_OFF = 1"),
        (
            "~/.config/systemd/user/hermes.service.d/x.conf",
            "[Service]\nEnvironment=HERMES_EXT_OFF=1",
        ),
        ("~/.config/environment.d/x.conf", "HERMES_EXT_OFF=1"),
        ("~/.tcshrc", "setenv HERMES_EXT_OFF 1"),
        ("~/.xsessionrc", "export HERMES_EXT_OFF=1"),
        ("~/Library/LaunchAgents/x.plist", "<key>HERMES_EXT_OFF</key><string>1</string>"),
        ("/etc/environment", "HERMES_EXT_OFF=1"),
        ("/etc/profile.d/x.sh", "export HERMES_EXT_OFF=1"),
        ("/etc/systemd/system/hermes.service", "Environment=HERMES_EXT_OFF=1"),
    ],
)
def test_variables_for_the_next_start(ground: Ground, path: str, text: str) -> None:
    """What shells, sessions and services start with takes no rule off, and may be written else."""
    assert ground.refusal("write_file", {"path": path, "content": f"{text}\n"}) is not None
    assert ground.shell(f"tee {path} <<'E'\n{text}\nE") is not None
    assert ground.refusal("write_file", {"path": path, "content": "export EDITOR=vi\n"}) is None


@pytest.mark.parametrize("name", [" write_file", "WRITE_FILE", "Write_File "])
def test_the_case_of_a_tools_name_does_not_matter(ground: Ground, name: str) -> None:
    args = {"path": str(ground.home / "config.yaml"), "content": ""}
    assert ground.refusal(name, args) is not None


@pytest.mark.parametrize(
    "path",
    [
        "~/.hermes/config.yaml",
        "$HOME/.hermes/config.yaml",
        "${HERMES_HOME}/config.yaml",
        "../../.hermes/config.yaml",
        ".//.hermes//extensions.yaml",
        "src/../.hermes/extensions.yaml",
        " .hermes/extensions.yaml ",
        "'.hermes/extensions.yaml'",
        ".HERMES/extensions.yaml",
        ".hermes",
        ".hermes/",
        "soft/mine/__init__.py",
        "hard",
        "file:///x/.hermes/config.yaml",
        unicodedata.normalize("NFKC", "\uff0ehermes/extensions.yaml"),
        "\uff0ehermes/extensions.yaml",
        ".her\u200bmes/extensions.yaml",
        "/somewhere/else/.hermes/x",
    ],
)
def test_spellings(ground: Ground, path: str) -> None:
    assert ground.refusal("write_file", {"path": path, "content": ""}) is not None


@pytest.mark.parametrize(
    "path",
    [
        "config.yaml",
        "extensions/x.py",
        "plugins/x.py",
        ".env",
        "src/.hermes.py",
        "hermes/config.yaml",
        "docs/.hermes-notes.md",
        "logs/extensions.jsonl",
        "~/work/other/config.yaml",
    ],
)
def test_neighbours_are_free(ground: Ground, path: str) -> None:
    assert ground.refusal("write_file", {"path": path, "content": "~/.hermes/config.yaml"}) is None


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("read_file", {"path": "~/.hermes/config.yaml"}),
        ("search_files", {"pattern": "x", "path": ".hermes"}),
        ("delegate_task", {"goal": "Tell me what is in ~/.hermes/config.yaml"}),
        ("memory", {"content": "The rules are in ~/.hermes/extensions"}),
        ("todo", {"todos": [{"content": "Look at ~/.hermes/config.yaml"}]}),
        ("cronjob", {"action": "create", "prompt": "See what ~/.hermes/config.yaml says"}),
        ("mcp_files_read_file", {"path": "/root/.hermes/config.yaml"}),
        ("mcp_git_create_issue", {"title": "x", "body": "See .hermes/extensions for the rules."}),
    ],
)
def test_reading_and_talking_are_free(ground: Ground, tool: str, args: dict[str, Any]) -> None:
    assert ground.refusal(tool, args) is None


def test_what_a_link_among_the_extensions_leads_to_is_protected(
    tmp_path: Path, ground: Ground
) -> None:
    """People develop an extension elsewhere and link it in."""
    from hermes_ext import Runtime
    from hermes_ext.guard.guard import own_guard
    from hermes_ext.guard.places import Protected

    real = tmp_path / "dev" / "rule"
    real.mkdir(parents=True)
    (ground.home / "extensions" / "rule").symlink_to(real)
    runtime = Runtime([own_guard(Protected.of(ground.home, ground.home / "extensions"))])
    with runtime.turn(session_id="s", cwd=ground.repo) as turn:
        args = {"path": str(real / "__init__.py"), "content": ""}
        assert turn.intercept_tool_call("write_file", args).blocked


PARTS = st.lists(st.sampled_from([".", "", "src/..", "./.", "src/../."]), max_size=4)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=PARTS,
    between=PARTS,
    upper=st.booleans(),
    place=st.sampled_from(PLACES),
    way=st.integers(0, 3),
)
def test_any_spelling_of_a_protected_path(
    ground: Ground, before: list[str], between: list[str], upper: bool, place: str, way: int
) -> None:
    """Detours, doubled slashes, capitals, absolute or from here: it is the same place."""
    relative = os.path.relpath(ground.home, ground.repo)
    start = (str(ground.home), relative, f"{ground.repo}/{relative}", "~/.hermes")[way]
    detour = "/".join([*before, "."]) + "/" if way == 1 else ""
    path = f"{detour}{start}/{'/'.join(each for each in between if 'src' not in each)}/{place}"
    path = path.replace(".hermes", ".HERMES") if upper and way == 3 else path
    assert ground.refusal("write_file", {"path": path, "content": ""}) is not None
    assert ground.shell(f"echo x > {path}") is not None


WORDS = st.text(st.sampled_from("abcxyz-_.0"), min_size=1, max_size=8).filter(
    lambda word: word.strip(".") and not word.startswith("-")
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, min_size=1, max_size=4))
def test_other_paths_are_free(ground: Ground, words: list[str]) -> None:
    path = "src/" + "/".join(words)
    assert ground.refusal("write_file", {"path": path, "content": ""}) is None
    assert ground.shell(f"echo x > {path}") is None
