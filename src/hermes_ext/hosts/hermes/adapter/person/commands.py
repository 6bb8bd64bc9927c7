"""Slash commands of extensions, where a person types them: command line, TUI, messaging gateway.

Hermes looks a plugin's command up by its name and calls it with the text behind it, and nothing
else: neither session nor directory. So the functions that handle what was typed are wrapped to note
whose words these are, and the look-ups are wrapped to have our extensions' commands among the
plugins', as they are where that session works. Both survive `discover_plugins(force=True)`.

A command never raises here: the gateway takes what an unknown or failing command was for a message
to the model.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from hermes_ext._log import logger
from hermes_ext._redaction import redacted
from hermes_ext._text import printable
from hermes_ext._values import frozen
from hermes_ext.exceptions import CommandError
from hermes_ext.hosts.hermes.adapter import host
from hermes_ext.hosts.hermes.adapter.host import conversation_of_session
from hermes_ext.hosts.hermes.adapter.places import session_directory
from hermes_ext.hosts.hermes.adapter.state import held, state

if TYPE_CHECKING:
    from hermes_ext.hooks.commands import Command

_TUI_METHODS: Final = ("command.dispatch", "slash.exec")


@frozen
class Typed:
    """Where a command was typed.

    Attributes:
        session: gives the session's id; asked when an extension's command runs, since to know it
            the gateway begins the session. It may raise what the host raises.
        begun: gives it too, None where the session has not begun.
        platform: as for turns.
        database: Hermes's sessions, None where it has none.
        in_a_loop: whether the caller can await, and must not be held up.
        cwd: the session's directory, where the surface knows it itself.
    """

    session: Callable[[], str]
    begun: Callable[[], str | None]
    platform: str | None
    database: Any = None
    in_a_loop: bool = False
    cwd: Path | None = None

    @property
    def directory(self) -> Path:
        """Where the session works."""
        return self.cwd or session_directory()


# -- what is typed --------------------------------------------------------------------------------


def in_command_line(original: Callable[..., Any], cli: Any, *args: Any, **kwargs: Any) -> Any:
    """Around `HermesCLI.process_command`."""

    def session() -> str:
        return str(getattr(cli, "session_id", "") or "")

    typed = Typed(session, session, "cli", database=getattr(cli, "_session_db", None))
    with held(state.typed, typed):
        return original(cli, *args, **kwargs)


async def in_gateway(
    original: Callable[..., Any], runner: Any, event: Any, *args: Any, **kwargs: Any
) -> Any:
    """Around `GatewayRunner._handle_message`."""
    source = getattr(event, "source", None)
    store: Any = getattr(runner, "session_store", None)

    def session() -> str:
        # The first thing that is said in a chat may be a command: the message behind it is to find
        # the state that the command has left.
        return str(store.get_or_create_session(source).session_id)

    def begun() -> str | None:
        return _session_of(store, runner._session_key_for_source(source))

    platform = getattr(getattr(source, "platform", None), "value", None)
    database = getattr(runner, "_session_db", None) or getattr(store, "_db", None)
    typed = Typed(session, begun, platform, getattr(database, "_db", database), in_a_loop=True)
    with held(state.typed, typed):
        return await original(runner, event, *args, **kwargs)


def _session_of(store: Any, key: str) -> str | None:
    """The id of the session that a gateway's store has under a key, None where it has none."""
    if hasattr(store, "peek_session_id"):
        found: str | None = store.peek_session_id(key)
        return found
    # 0.17 has no look-up by key.
    return next(
        (each.session_id for each in store.list_sessions() if each.session_key == key), None
    )


def in_tui(module: ModuleType) -> None:
    """Wrap the methods of the TUI's server that run a command."""
    methods = getattr(module, "_methods", None)
    if not isinstance(methods, dict):
        logger.info("this Hermes has no %s._methods: no slash commands there", module.__name__)
        return
    for name in _TUI_METHODS:
        original = methods.get(name)
        if callable(original) and not hasattr(original, "__hermes_ext_seam__"):
            methods[name] = _tui_method(module, original)


def _tui_method(module: ModuleType, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(rid: Any, params: Any, *args: Any, **kwargs: Any) -> Any:
        sessions = getattr(module, "_sessions", None) or {}
        given = params.get("session_id") if isinstance(params, dict) else None
        session = sessions.get(given or "") or {}
        with held(state.typed, _typed_in_tui(session)):
            return original(rid, params, *args, **kwargs)

    call.__hermes_ext_seam__ = original.__name__  # type: ignore[attr-defined]
    return call


def _typed_in_tui(session: Mapping[str, Any]) -> Typed:
    agent = session.get("agent")
    key = getattr(agent, "session_id", None) or session.get("session_key")
    cwd = session.get("cwd")

    def known() -> str:
        return str(key or "")

    return Typed(
        session=known,
        begun=known,
        platform=getattr(agent, "platform", None) or "tui",
        database=getattr(agent, "_session_db", None),
        cwd=Path(cwd) if isinstance(cwd, str) and Path(cwd).is_dir() else None,
    )


def session_of_typed() -> str | None:
    """The session in which this context's slash command was typed; None where nobody can tell."""
    typed = state.typed.get()
    if typed is None:
        return None
    try:
        return typed.begun() or None
    except Exception:
        logger.warning("cannot tell whose slash command this is", exc_info=True)
        return None


# -- looking up -----------------------------------------------------------------------------------


def command_handler(original: Callable[..., Any], name: Any, *args: Any, **kwargs: Any) -> Any:
    """Around `get_plugin_command_handler`: a plugin's own command comes before ours."""
    found = original(name, *args, **kwargs)
    if found is not None or not isinstance(name, str):
        return found
    typed = state.typed.get()
    command = _ours().get(name)
    if typed is None or command is None:
        return None
    return functools.partial(_run_in_loop if typed.in_a_loop else _run, command, typed)


def all_commands(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Around `get_plugin_commands`: what Hermes lists, completes and takes for a command."""
    theirs = original(*args, **kwargs)
    ours = _ours()
    if not ours or not isinstance(theirs, dict):
        return theirs
    return {name: _entry(command) for name, command in ours.items()} | theirs


def _entry(command: Command) -> dict[str, Any]:
    def handler(raw_args: str) -> Any:
        typed = state.typed.get() or Typed(lambda: "", lambda: None, None)
        return _run(command, typed, raw_args)

    return {
        "handler": handler,
        "description": printable(command.help) or f"A command of {command.extension}",
        "plugin": f"hermes-ext: {command.extension}",
        "args_hint": command.args_hint,
    }


def _ours() -> Mapping[str, Command]:
    """The commands where the context's session works.

    Nothing is loaded for a mere list: Hermes asks for one while it starts, and the code of
    extensions is not to run before its time.
    """
    typed = state.typed.get()
    try:
        if typed is None:
            loaded = host.loaded()
            if loaded is None:
                return {}
            return loaded.for_directory(session_directory()).commands
        return host.runtime().for_directory(typed.directory).commands
    except Exception:
        logger.exception("the slash commands of extensions could not be looked up")
        return {}


async def _run_in_loop(command: Command, typed: Typed, raw_args: str) -> str:
    # Not the loop's own threads: the gateway needs those for every message, and commands that hang
    # could have all of them.
    run = functools.partial(copy_context().run, _run, command, typed, raw_args)
    text: str = await asyncio.wrap_future(state.commands.submit(run))
    return text


def _run(command: Command, typed: Typed, raw_args: str) -> str:
    """What the person reads."""
    try:
        session = typed.session()
        text = host.runtime().command(
            command.name,
            raw_args or "",
            session_id=session,
            conversation_id=conversation_of_session(typed.database, session),
            cwd=typed.directory,
            platform=typed.platform,
        )
    except CommandError as error:
        return str(error)
    except (Exception, SystemExit, GeneratorExit) as error:  # the latter would end a gateway
        logger.exception("/%s of %s could not be run", command.name, command.extension)
        told = printable(redacted(f"{type(error).__name__}: {error}"))
        return f"/{command.name} could not be run: {told}"
    return text or f"/{command.name}: done."


def taken_by_hermes(names: Iterable[str]) -> dict[str, str]:
    """Which of these names Hermes or another plugin has, and who: ours is never called then."""
    try:
        from hermes_cli.commands import resolve_command
        from hermes_cli.plugins import get_plugin_manager
    except ImportError:
        return {}
    theirs = getattr(get_plugin_manager(), "_plugin_commands", {})
    taken = {}
    for name in names:
        entry = theirs.get(name)
        if resolve_command(name) is not None:
            taken[name] = "Hermes itself"
        elif isinstance(entry, dict):
            taken[name] = f'the plugin "{entry.get("plugin")}"'
    return taken
