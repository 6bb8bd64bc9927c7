"""A checkpoint in git before the first write of each turn.

`refs/checkpoints/TIME` holds all files but ignored ones. Index, stash, branches and files of the
user stay as they are, and no hook runs. `git diff REF` shows what came since, `git restore
--source=REF .` goes back; `/checkpoints` lists them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hermes_ext import CallVerdict, ToolCall, TurnState, register_command, register_hook
from hermes_ext.effects import effects_of

GIT = ("git", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
WHO = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
LIST = ("for-each-ref", "--sort=-refname", "--format=%(refname)", "refs/checkpoints")


# A guard, because guards see what will run, and the last one, because others may refuse it.
@register_hook("intercept_tool_call", guard=True, priority=900, timeout=60)
def before_the_first_write(
    event: ToolCall, config: Mapping[str, Any], state: TurnState, project_root: Path | None
) -> CallVerdict:
    """Make the checkpoint. If that fails, the call is blocked: a failed handler blocks."""
    places = (project_root, *project_root.parents) if project_root else ()
    root = next((up for up in places if (up / ".git").exists()), None)
    if root is None or not effects_of(event).may_write:
        return None
    lock: threading.Lock = state.setdefault("git_checkpoint.lock", threading.Lock())
    with lock:  # parallel calls wait until there is one
        if "git_checkpoint.made" not in state:
            state["git_checkpoint.made"] = checkpoint(root, config["keep"])
    return None


@register_command("checkpoints", help="what git_checkpoint has kept, newest first")
def checkpoints(cwd: Path | None) -> str:
    return (git(cwd, *LIST) if cwd else "") or "There are none."


def checkpoint(root: Path, keep: int) -> str:
    with TemporaryDirectory() as scratch:
        index = Path(scratch, "index")
        users = root / git(root, "rev-parse", "--git-path", "index")
        if users.exists():
            shutil.copyfile(users, index)  # so that git need not read every file
        git(root, "add", "--all", GIT_INDEX_FILE=str(index))
        tree = git(root, "write-tree", GIT_INDEX_FILE=str(index))
    head = git(root, "rev-parse", "--revs-only", "HEAD")  # nothing, before the first commit
    parent = ["-p", head] if head else []
    commit = git(root, "commit-tree", tree, *parent, "-m", "checkpoint")
    ref = f"refs/checkpoints/{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    git(root, "update-ref", ref, commit)
    for old in git(root, *LIST).split()[keep:]:
        git(root, "update-ref", "-d", old)
    return ref


def git(root: Path, *args: str, **variables: str) -> str:
    env = {**os.environ, **dict.fromkeys(WHO, "checkpoint"), **variables}
    command = [*GIT, *args]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True, env=env)
    return done.stdout.strip()
