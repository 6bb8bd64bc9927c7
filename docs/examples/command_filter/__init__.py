"""Commands whose output is long run through `rtk`, which shortens it for the model.

Where rtk is not installed the extension is skipped. Only a single command that surely changes
nothing is rewritten: a guard that knows `git push` may not know `rtk git push`. So that guards read
the rewritten ones too, say in config.yaml: `extensions: {effects: {commands: {rtk: {runs: 0}}}}`.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from typing import Any

from hermes_ext import CallResult, HookResult, SkipExtension, ToolCall, register_hook
from hermes_ext.effects import effects_of

FILTER = "rtk"

if shutil.which(FILTER) is None:
    raise SkipExtension(f"{FILTER} is not on PATH")


# A command that is not shortened is no reason to refuse it.
@register_hook("intercept_tool_call", tools=["terminal"], on_error="pass")
def shorten(event: ToolCall, config: Mapping[str, Any]) -> CallResult:
    """Put the filter in front of a command that it knows."""
    effects = effects_of(event)
    if event.machine is None or not event.machine.local:  # the filter is here
        return None
    if effects.may_write or len(effects.commands) != 1:
        return None
    (command,) = effects.commands
    whole = event.tool_args["command"].strip()
    # With a pipe, a redirection, `&`, variables or a program's path the words would be others.
    if shlex.split(whole) != [command.name, *command.args]:
        return None
    if command.name not in config["commands"]:
        return None
    return HookResult.rewrite({**event.tool_args, "command": f"{FILTER} {whole}"})
