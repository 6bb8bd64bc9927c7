"""What the log, and the host, get of handlers that failed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from hermes_ext._log import logger
from hermes_ext._text import printable, printable_lines
from hermes_ext.chain.fold import CompiledChain
from hermes_ext.chain.outcome import ChainOutcome, is_taken_away
from hermes_ext.exceptions import HandlerError
from hermes_ext.hooks.handler import is_store_error
from hermes_ext.hooks.table import HookName

_FRAME: Final = r'  File "[^"]*", line \d+, in \S+'


def log_failures(
    chain: CompiledChain, outcome: ChainOutcome, also: Callable[[str], None] | None
) -> None:
    """One record for each handler that failed, with its traceback.

    also: told in one line of each.
    """
    # Building an outcome's steps costs more than most chains: not where nobody can have failed.
    if chain.members.isdisjoint(chain.failures.ailing):
        return
    # What a handler raised may quote what it was given, which is to be in no log if it is gone.
    decider = outcome.decider
    failed = decider is not None and decider.error is not None
    quiet = is_taken_away(chain.hook, outcome.blocked, outcome.changed, failed)
    for step in outcome.steps:
        if step.error is None:
            continue
        if quiet:
            cause = step.error.cause
            kind = step.error.kind if cause is None else type(cause).__name__
            who = f"{step.extension}, {chain.hook.value}: {step.handler}"
            line = f"{who} failed ({kind}) at {step.error.path}:{step.error.line}"
            frames = [] if chain.hook is HookName.TRANSFORM_USER_INPUT else _frames(step.error)
            logger.warning("%s", printable_lines("\n".join([line, *frames])))
        else:
            line = " ".join(str(step.error).split())
            told = "\n".join(filter(None, (str(step.error), step.error.traceback)))
            # A store that fails says so itself, once for all handlers.
            if step.error.cause is not None and is_store_error(step.error.cause):
                logger.warning("%s", printable(line))
                continue
            logger.warning("%s", printable_lines(told))
        if also is not None:
            try:
                also(printable(line))
            except Exception:  # the host's own; the failure is in the log, and settled
                logger.warning("a failure could not be shown: %s", printable(line), exc_info=True)


def _frames(error: HandlerError) -> list[str]:
    """The places that an error's traceback names, without any text of exceptions."""
    lines = (error.traceback or "").splitlines()
    places = [line for line in lines if re.fullmatch(_FRAME, line)]
    return ["Traceback (most recent call last):", *places] if places else []
