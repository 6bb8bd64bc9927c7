"""Messages to people are sent in working hours only.

Tools that send are known by name (`tools`), programs that send by theirs (`programs`). What `curl`
posts is not known to be a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, time, timedelta
from fnmatch import fnmatchcase
from typing import Any
from zoneinfo import ZoneInfo

from hermes_ext import CallVerdict, HookResult, ToolCall, register_hook
from hermes_ext.effects import Command, effects_of

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def now(zone: str) -> datetime:
    """The time there; tests put their own clock here."""
    return datetime.now(ZoneInfo(zone) if zone else None)


@register_hook("intercept_tool_call", guard=True)
def in_working_hours(event: ToolCall, config: Mapping[str, Any]) -> CallVerdict:
    """Refuse what sends something, outside of the hours."""
    if not sends(event, config) or is_open(now(config["zone"]), config):
        return None
    hours = f"{config['from']} to {config['until']}, {', '.join(config['days'])}"
    return HookResult.block(
        f"Messages are sent {hours} {config['zone'] or 'local time'}. Write a draft, and say so.",
        metadata={"setting": "extensions.working_hours"},
    )


def sends(event: ToolCall, config: Mapping[str, Any]) -> bool:
    name, effects = event.tool_name.strip().casefold(), effects_of(event)
    if any(fnmatchcase(name, pattern.casefold()) for pattern in config["tools"]):
        return event.tool_args.get("action") != "list"  # what channels there are
    if any(
        runs(each, program.split()) for each in effects.commands for program in config["programs"]
    ):
        return True
    told = (*effects.texts, *effects.unknown)  # what a program is given, and what is imported
    words = {word for text in told for word in re.findall(r"\w+", text)}
    return not words.isdisjoint(config["programs"])


def runs(command: Command, words: list[str]) -> bool:
    """Whether it is that program with these words; one that is not known may be any."""
    given = command.args
    return command.name in (words[0], None) and (None in given or set(words[1:]).issubset(given))


def is_open(at: datetime, config: Mapping[str, Any]) -> bool:
    begin, end = time.fromisoformat(config["from"]), time.fromisoformat(config["until"])
    day, clock = at, at.time()
    if end <= begin:  # over midnight: the early hours belong to the day before
        day = at - timedelta(days=1) if clock < end else at
        inside = clock >= begin or clock < end
    else:
        inside = begin <= clock < end
    return inside and DAYS[day.weekday()] in config["days"]
