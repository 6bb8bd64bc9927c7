"""No edits while the repository has uncommitted changes that the agent did not make.

Every file that git calls changed must be as the agent's own calls left it. Who edits beside the
agent, or begins with half-done work, is asked to commit or stash first.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

from hermes_ext import CallVerdict, HookResult, SessionState, ToolCall, TurnState, register_hook
from hermes_ext.effects import Effects, effects_of

# A repository's own settings may name programs; git is to start none of them from here.
GIT = ("git", "-c", "core.fsmonitor=false", "--no-optional-locks")


@register_hook("intercept_tool_call", guard=True)
def keep_off(
    event: ToolCall,
    tool_call_id: str,
    state: TurnState,
    session_state: SessionState,
    project_root: Path | None,
) -> CallVerdict:
    """Block what may write where somebody else's changes are."""
    effects = effects_of(event)
    if not effects.may_write:
        return None
    if event.machine is not None and not event.machine.local:
        return HookResult.block("The files are on another machine: nobody can ask git there.")
    roots = repositories(effects, project_root)
    # `state` is shared by all extensions: names of its own keep theirs apart.
    running = [each[0] for key, each in state.items() if key.startswith("dirty_repository.")]
    for path, digest in changed(roots).items():
        own = session_state.get(str(path)) == digest
        if not own and not any(each.change_of(path) for each in running):
            return HookResult.block(
                f"{path} has changes that are not yours. Ask the user to commit."
            )
    # Also for the calls that run beside this one, and for `remember`.
    state[f"dirty_repository.{tool_call_id}"] = (effects, roots)
    return None


@register_hook("transform_tool_result", priority=900)
def remember(tool_call_id: str, state: TurnState, session_state: SessionState) -> None:
    """Note what the agent's call has changed: what it was to change, or else all that is new."""
    effects, roots = state.pop(f"dirty_repository.{tool_call_id}", (None, ()))
    for path, digest in changed(roots).items():
        if not effects.exact or effects.change_of(path):
            session_state[str(path)] = digest


def repositories(effects: Effects, project_root: Path | None) -> set[Path]:
    places = set(effects.writes)
    if not effects.exact:
        places |= {each.cwd for each in effects.commands if each.cwd}
        places |= {project_root.resolve()} if project_root else set()
    tops = (next((up for up in (p, *p.parents) if (up / ".git").exists()), None) for p in places)
    return {top for top in tops if top}


def changed(roots: Iterable[Path]) -> dict[Path, str]:
    found: dict[Path, str] = {}
    status = [*GIT, "status", "-z", "--no-renames", "--untracked-files=all"]
    for root in roots:
        told = subprocess.run(status, cwd=root, check=True, capture_output=True, text=True)
        paths = [root / entry[3:] for entry in told.stdout.split("\0")[:-1]]
        found |= {path: digest_of(path) for path in paths}
    return found


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else str(path.exists())
