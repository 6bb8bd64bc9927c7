"""Hooks that this Hermes does not let us keep, and what follows for a turn.

A hook needs certain wraps. Where one is lost (see `attaching`) the hook is not in force. Whoever
relies on it, a guard or a required extension, must not be left to believe that it is: the turn is
refused at the first place that is there (the turn, else its requests, else its tools), and where
there is none the process ends before it sends anything.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

from hermes_ext._log import logger
from hermes_ext._values import evolve, frozen
from hermes_ext.hooks.source import OWN
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes.adapter import host
from hermes_ext.hosts.hermes.adapter.person import notices
from hermes_ext.hosts.hermes.adapter.wraps import attaching
from hermes_ext.hosts.hermes.adapter.wraps.after_import import when_imported
from hermes_ext.hosts.hermes.adapter.wraps.attaching import Standing
from hermes_ext.hosts.hermes.adapter.wraps.seams import CALLED
from hermes_ext.rules import Rules

# Where a turn can be refused, by what is wrapped there.
_TURN: Final = "AIAgent.run_conversation"
_REFUSING: Final = frozenset(
    {
        _TURN,
        "run_llm_execution_middleware",
        "run_tool_execution_middleware",
        "ToolRegistry.dispatch",
    }
)


@frozen
class Lack:
    """Hooks that are not in force, for one reason.

    Attributes:
        hooks: which.
        lost: how the wraps stand that they need and that are lost; empty where nothing in Hermes
            calls them.
        extensions: those with handlers on them.
        relied_on: whether a guard, or a required extension, is among these handlers.
    """

    hooks: tuple[HookName, ...]
    lost: tuple[Standing, ...]
    extensions: tuple[str, ...]
    relied_on: bool

    def __str__(self) -> str:
        are = "is" if len(self.hooks) == 1 else "are"
        why = self.lost[0] if self.lost else "Hermes does not call it"
        more = f" (and {len(self.lost) - 1} more)" if len(self.lost) > 1 else ""
        who = listed(self.extensions)
        return f"{listed(self.hooks)} of {who} {are} not in force: {why}{more}"


def lacks(rules: Rules) -> tuple[Lack, ...]:
    """What of the hooks of these rules is not in force in this process.

    To be asked where the agent is imported; modules that Hermes imports late are imported now.
    """
    hooks: Sequence[HookName] = rules.manager.hooks
    if rules.refusal is not None:
        hooks = [one for one in HookName if one in (*hooks, HookName.INTERCEPT_TOOL_CALL)]
    if all(one in CALLED for one in hooks) and attaching.are_as_made(hooks):
        return ()
    lost_for: dict[tuple[Standing, ...], list[HookName]] = {}
    for hook in hooks:
        lost = tuple(each for each in map(_looked_at, attaching.standings([hook])) if each.lost)
        if lost or hook not in CALLED:
            lost_for.setdefault(lost, []).append(hook)
    found = tuple(_lack(rules, tuple(hooks), lost) for lost, hooks in lost_for.items())
    others = tuple(lack for lack in found if lack.extensions != (OWN,))
    # That the package's own guard is lost too need not be said where the turn is refused anyway.
    return others if any(lack.relied_on for lack in others) else found


def _lack(rules: Rules, hooks: tuple[HookName, ...], lost: tuple[Standing, ...]) -> Lack:
    required = {record.name for record in rules.records if record.required}
    handlers = [one for one in rules.manager.handlers if one.hook in hooks]
    relied_on = any(one.guard or one.extension in required for one in handlers)
    names = tuple(dict.fromkeys(one.extension for one in handlers))
    own_only = names in ((), (OWN,))
    extensions = names if own_only else tuple(name for name in names if name != OWN)
    return Lack(hooks, lost, extensions or (OWN,), relied_on or rules.refusal is not None)


def _looked_at(standing: Standing) -> Standing:
    if standing.status != "waiting":
        return standing
    try:
        importlib.import_module(standing.seam.module)
    except Exception:  # an import of Hermes's own; what it lacks is the same to us
        logger.info("%s cannot be imported", standing.seam.module, exc_info=True)
        return evolve(standing, status="missing")
    return attaching.standing_of(standing.seam)


def refusal(rules: Rules, found: tuple[Lack, ...] | None = None) -> str | None:
    """Why no turn may be run, or None where nothing that is relied on is lost."""
    found = lacks(rules) if found is None else found
    closed = [lack for lack in found if lack.relied_on]
    if not closed:
        return None
    who = dict.fromkeys(name for lack in closed for name in lack.extensions if name != OWN)
    disable = f", or disable {listed(tuple(who))}" if who else ""
    return (
        f"{'. '.join(map(str, closed))}. So no turn is run. Use a Hermes that hermes-ext knows "
        f"(`hermes-ext doctor` checks yours){disable}."
    )


def listed(names: Sequence[str]) -> str:
    """Names, as a sentence has them."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def turn_is_lost() -> bool:
    """Whether turns begin without us, so that requests and tools have to be refused instead."""
    return not attaching.are_as_made([HookName.INTERCEPT_TOOL_CALL]) and any(
        each.lost
        for each in attaching.standings([HookName.INTERCEPT_TOOL_CALL])
        if each.seam.name == _TURN
    )


def watch(ctx: Any) -> None:
    """Look for a place that can refuse a turn: once the agent is imported, and in each turn."""
    if _is_there("run_agent"):
        when_imported("run_agent", lambda module: _end_if_nowhere())
    elif sys.argv[1:2] != ["extensions"]:  # the commands that turn an extension off have to run
        _end_if_nowhere()
    hooks = sys.modules.get("hermes_cli.plugins")
    if not inspect.iscoroutinefunction(getattr(hooks, "invoke_hook", None)):
        # What another plugin takes after that import is lost too.
        ctx.register_hook("pre_llm_call", _before_the_first_request)


def _before_the_first_request(**_: Any) -> None:
    if turn_is_lost():
        _end_if_nowhere()


def _is_there(module: str) -> bool:
    try:
        return module in sys.modules or importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _end_if_nowhere() -> None:
    """End the process where rules are relied on and no place is left that could keep them."""
    places = [each for each in attaching.standings(HookName) if each.seam.name in _REFUSING]
    why = refusal(host.rules_for()) if all(_looked_at(each).lost for each in places) else None
    if why is not None:
        notices.say_last(f"{why} Hermes ends here.")
        logging.shutdown()
        # Whoever caught an exception would go on without the rules.
        os._exit(1)
