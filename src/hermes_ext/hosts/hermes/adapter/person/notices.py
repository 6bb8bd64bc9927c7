"""What a person sees of the rules: each line where they look, on every surface.

    hermes chat             through Hermes's own printer, above the prompt
    TUI, desktop            a status event of the session
    messaging gateway       what a rule did: a status message in that chat; what is not in force is
                            for whoever runs the gateway: standard error and the log
    -z, chat -q, API, cron  standard error, past Hermes's redirected streams; never standard output
    ACP                     standard error

Two kinds of lines: `say` is for what the person must know before they rely on a rule, `show` for
what a rule did.
"""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Callable
from typing import Any, Final

from hermes_ext._log import logger
from hermes_ext._redaction import redacted
from hermes_ext._text import printable_lines
from hermes_ext.hooks.source import OWN
from hermes_ext.hosts.hermes.adapter.state import state
from hermes_ext.hosts.hermes.adapter.wraps.survey import tool_names
from hermes_ext.loading.tool_patterns import dead_guards
from hermes_ext.records import BROKEN
from hermes_ext.rules import Rules
from hermes_ext.turns.notices import Notice
from hermes_ext.turns.services import Services
from hermes_ext.turns.state import current_turn
from hermes_ext.turns.turn import Turn

_DIM: Final = "\x1b[2m{}\x1b[0m"
_IN_CHAT: Final = "/extensions why"
_IN_SHELL: Final = "hermes extensions why"
_WHO: Final = f"{OWN}: "

# Programs whose person has a screen of Hermes's, and clients that get nothing but the answer.
_SCREENS: Final = frozenset({"tui", "desktop"})
_NO_CHATS: Final = frozenset({"", "cli", "api", "api_server", "batch", "cron", "acp"})


def say(text: str, *, log: bool = True, again: bool = False) -> None:
    """A line that the person must see: once per process, and once per session on a screen.

    `log`: Hermes's log has it too. `again`: it is so once more, and is said once more.
    """
    text = redacted(text)
    first = text not in state.said
    state.said.add(text)
    if log and first:
        logger.warning("%s", text)
    agent = _agent_here()
    send = _screen_of(agent)
    if send is not None:
        seen = state.said_on_screen.setdefault(agent, set())
        first = text not in seen
        seen.add(text)
    if not first and not again:
        return
    line = _WHO + printable_lines(text)
    if send is None or not send("warn", line):
        _print(line)


def say_last(text: str) -> None:
    """The line with which the process ends at once: Hermes's own printer would be too late."""
    _to_stderr(_WHO + printable_lines(redacted(text)))


def report(rules: Rules, services: Services) -> None:
    """All that is not in force of these, and all that is wrong in the configuration."""
    if rules.refusal is not None:
        say(rules.refusal)
    reported = rules.refusal or ""
    for record in rules.records:
        broken = record.status in BROKEN and record.configured_on
        if broken and record.reason not in reported:
            say(f"extension {record.name} is not in force ({record.status}): {record.reason}")
            reported += record.reason
    for problem in rules.problems:
        if str(problem) not in reported:
            say(str(problem))
    for notice in filter(None, (*rules.notices, services.store.problem)):
        say(notice, log=False)  # the runtime has logged it
    if rules.handlers:
        _report_dead_guards(rules, services)
    _report_commands(rules)


def _report_dead_guards(rules: Rules, services: Services) -> None:
    if rules.manager not in state.matched:
        state.matched.add(rules.manager)
        for text in dead_guards(rules.records, lambda: services.tools, tool_names):
            say(text)


def _report_commands(rules: Rules) -> None:
    if not rules.commands:
        return
    from hermes_ext.hosts.hermes.adapter.person.commands import taken_by_hermes

    for name, owner in taken_by_hermes(rules.commands).items():
        extension = rules.commands[name].extension
        say(
            f"/{name} of the extension {extension} is never called, because {owner} has a"
            " command of this name; rename it"
        )


def say_anew(text: str) -> None:
    """What the runtime has logged, each time that it is so anew."""
    say(text, log=False, again=True)


def failed(text: str) -> None:
    """A handler failed. One-shot mode turns all logs off, so the line goes to the person."""
    if logging.root.manager.disable >= logging.WARNING:
        say(text, log=False)


def slow(text: str) -> None:
    """A handler takes long: for a person who looks at a screen while it does."""
    line = _WHO + printable_lines(text)
    send = _screen_of(_agent_here())
    if send is not None and send("warn", line):
        return
    if _prompt() is not None or _is_terminal(sys.__stderr__):
        _print(line)


def show(notice: Notice) -> None:
    """What a rule did in the turn of this context, as one line."""
    agent = _agent_here()
    send = _screen_of(agent) or _chat_of(agent)
    if send is not None:
        # A chat that edits its last status message tells messages apart by their kind.
        kind = f"{OWN}-{next(state.messages)}"
        if send(kind, notice.line(hint=_IN_CHAT)):
            return
    printer = _printer()
    if printer is not None:
        line = notice.line(_columns(), hint=_IN_CHAT)
        if _done(printer, _DIM.format(line)):
            return
    line = notice.line(hint=_IN_SHELL).removeprefix("┊ ")
    _to_stderr(_WHO + line.removeprefix(f"{OWN} "))


def _agent_here() -> Any:
    """The agent of the turn that begins, or is open, in this context; None outside of any."""
    agent = state.beginning.get()
    if agent is not None:
        return agent
    turn = current_turn()
    data = turn.host if isinstance(turn, Turn) else None
    return None if data is None else data.agent()


Send = Callable[[str, str], bool]


def _screen_of(agent: Any) -> Send | None:
    """Sends a status event to the TUI or desktop program that an agent's session is shown in."""
    return _status_of(agent) if _platform_of(agent) in _SCREENS else None


def _chat_of(agent: Any) -> Send | None:
    """Sends a status message to the chat that an agent talks to."""
    return None if _platform_of(agent) in _NO_CHATS else _status_of(agent)


def is_chat(agent: Any) -> bool:
    """Whether an agent talks to people through a messaging platform."""
    return _platform_of(agent) not in _NO_CHATS | _SCREENS


def _platform_of(agent: Any) -> str:
    return str(getattr(agent, "platform", "") or "")


def _status_of(agent: Any) -> Send | None:
    callback = getattr(agent, "status_callback", None)
    return (lambda kind, text: _done(callback, kind, text)) if callable(callback) else None


def _print(line: str) -> None:
    printer = _printer()
    if printer is None or not _done(printer, line):
        _to_stderr(line)


def _printer() -> Callable[[str], Any] | None:
    """How Hermes prints above its prompt; None while this process shows none.

    Written past it, a line is drawn over by the prompt.
    """
    if _prompt() is None:
        return None
    cli = sys.modules.get("cli")
    # The session's agent has the best one: newer Hermes holds lines back while it draws a reply.
    session = getattr(getattr(cli, "_active_agent_ref", None), "_print_fn", None)
    found = session or getattr(cli, "_cprint", None)
    return found if callable(found) else None


def _prompt() -> Any:
    """The prompt_toolkit application that draws on this process's terminal, or None."""
    module = sys.modules.get("prompt_toolkit.application")
    current = getattr(module, "get_app_or_none", None)
    try:
        app = current() if callable(current) else None
        return app if app is not None and app.is_running else None
    except Exception:  # names of another prompt_toolkit; standard error takes the line then
        logger.debug("cannot tell whether a prompt is shown", exc_info=True)
        return None


def _columns() -> int:
    try:
        return int(_prompt().output.get_size().columns)
    except Exception:  # noqa: BLE001 - a prompt that has just ended; any width will do
        return shutil.get_terminal_size().columns


def _done(send: Callable[..., Any], *args: str) -> bool:
    """Whether the host took a line."""
    try:
        send(*args)
    except Exception:  # the host's own; the line goes to standard error instead
        logger.debug("the host could not show a line", exc_info=True)
        return False
    return True


def _is_terminal(stream: Any) -> bool:
    try:
        return stream is not None and bool(stream.isatty())
    except (OSError, ValueError):  # closed
        return False


def _to_stderr(line: str) -> None:
    stream = sys.__stderr__
    if stream is not None:
        try:
            print(line, file=stream, flush=True)
        except (OSError, ValueError):
            logger.debug("standard error is closed")
