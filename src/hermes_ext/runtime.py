"""What a host uses: a runtime with its handlers, and a turn to call the hooks in.

    runtime = Runtime.from_config(cwd=Path.cwd())
    with runtime.turn(session_id="s1", platform="cli") as turn:
        outcome = turn.intercept_tool_call("write_file", {"path": "a.py"}, tool_call_id="c1")
        if outcome.blocked:
            result = outcome.as_tool_result()

Each method of a turn has an `a…` twin to await. Turns are thread-safe: parallel tool calls of one
turn share it.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from attrs import Factory, define, evolve, field

from hermes_ext._log import logger
from hermes_ext._prog import Prog
from hermes_ext.chain.manager import HookManager
from hermes_ext.effects import Machine
from hermes_ext.exceptions import RegistrationError, StateError
from hermes_ext.hooks.commands import Command, build_commands, commands_of
from hermes_ext.hooks.handler import Handler
from hermes_ext.hooks.payloads import or_unknown
from hermes_ext.hooks.registration import build_handlers, registrations_of
from hermes_ext.hooks.source import OWN, Source
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.default import default_host
from hermes_ext.loading.records import ExtensionRecord
from hermes_ext.turns.approval import Approver
from hermes_ext.turns.data_folders import DataFolders
from hermes_ext.turns.numbers import TurnNumbers
from hermes_ext.turns.schemas import SchemaChecks, ToolSchemas
from hermes_ext.turns.store import MemoryStore, SessionStore
from hermes_ext.turns.turn import Turn

if TYPE_CHECKING:
    from hermes_ext.chain.outcome import Cause
    from hermes_ext.effects import ToolTable
    from hermes_ext.loading.directories import Still
    from hermes_ext.loading.finding.projects import ProjectStack
    from hermes_ext.loading.loader import Base, Loaded
    from hermes_ext.loading.reloading.in_force import InForce
    from hermes_ext.settings.config import ExtensionsConfig, Problem
    from hermes_ext.turns.decisions import DecisionLog
    from hermes_ext.turns.notices import Notice, Notify
    from hermes_ext.turns.session_state import SessionState


class Runtime:
    """Handlers, compiled and ready, and the turns that call them.

    Args:
        handlers: functions marked with `register_hook`, `hookimpl` or `register_command`, objects
            that have such methods, or modules. Each module's functions form one extension, named
            after it.
        config: settings that the handlers get as `config`.
        approver: asked when a handler asks; gets an `ApprovalRequest`, returns whether the call
            may run. None: nobody is there, and `ask` blocks.
        tool_schemas: JSON Schemas of the tools' arguments by tool name, or a function of the
            name; rewritten arguments are checked against them.
        home: where session state and the handlers' `data_dir` are kept (`<home>/…`); None keeps
            the state in memory, and the folders until the runtime is gone.

    Raises:
        RegistrationError: a handler cannot work: it names an argument that its hook does not have,
            or nothing in `handlers` is marked.
        OrderCycleError: `before` and `after` contradict each other.
        TypeError: `handlers` is one handler instead of a list of them.
    """

    _turn_class: type[Turn] = Turn

    def __init__(
        self,
        handlers: Iterable[Any] = (),
        *,
        config: Any = None,
        approver: Approver | None = None,
        tool_schemas: ToolSchemas | None = None,
        home: str | Path | None = None,
    ) -> None:
        schemas = SchemaChecks(tool_schemas) if tool_schemas is not None else None
        data = DataFolders(None if home is None else Path(home))
        shared = _Shared(approver, False, None, MemoryStore(), schemas, data=data)
        if home is not None:
            shared.store = _store_in(Path(home), shared)
        self._setup(*_made_of(handlers, config), shared)

    @classmethod
    def from_config(
        cls,
        *,
        cwd: str | Path | None = None,
        home: str | Path | None = None,
        approver: Approver | None = None,
        tool_schemas: ToolSchemas | None = None,
        command: str = "hermes-ext",
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """The runtime that the user's `config.yaml` describes.

        Args:
            cwd: the directory that the work happens in; the process's own by default.
            home: the Hermes home, `~` for the user's folder; by default the one that Hermes takes.
            approver: as for `Runtime`.
            tool_schemas: as for `Runtime`.
            command: how the user calls our commands in this host, for what `notices` say.
            clock: seconds since the epoch; what the age of session state is measured by.

        Never raises for what a user or an extension wrote: `records`, `problems` and `notices`
        tell. A turn in another directory has the extensions of that directory's project: see
        `for_directory`.
        """
        from hermes_ext.loading.reloading.in_force import InForce
        from hermes_ext.turns.decisions import DecisionLog, LogLevel

        home = Path(home).expanduser().absolute() if home else default_host().home()
        directory = Path(cwd) if cwd else _working_directory()
        log = DecisionLog(home / "logs" / "extensions.jsonl", notify=logger.warning)
        shared = _Shared(
            approver,
            False,
            log,
            MemoryStore(),
            SchemaChecks(tool_schemas) if tool_schemas is not None else None,
            command,
            data=DataFolders(home),
        )
        store = shared.store = _store_in(home, shared, clock)

        def taken(config: ExtensionsConfig) -> None:
            log.level = LogLevel(config.log)
            shared.notify = config.notify
            shared.approve_without_human = config.ask_without_human == "approve"
            shared.machine = _machine_of(config, shared.machine)

        in_force: InForce[Self] = InForce(
            home,
            lambda loaded: cls._loaded(loaded, shared),
            taken=taken,
            tell=shared.tell_not_taken,
            agent_at_work=shared.is_agent_at_work,
        )
        with suppress(StateError):  # said by the store
            store.sweep(in_force.config.state_days)
        in_force.without._projects, in_force.without._directory = in_force, directory
        return in_force.without.for_directory(directory)

    @classmethod
    def _on(cls, base: Base, shared: _Shared, directory: Path | None) -> Self:
        """On what was loaded, whatever becomes of the files."""
        from hermes_ext.loading.directories import Still

        still: Still[Self] = Still(base, lambda loaded: cls._loaded(loaded, shared))
        still.without._projects, still.without._directory = still, directory
        return still.without.for_directory(directory)

    @classmethod
    def _loaded(cls, loaded: Loaded, shared: _Shared) -> Self:
        runtime = cls.__new__(cls)
        place = tuple(each.project.root for each in loaded.projects.shown)
        handlers = (*loaded.handlers, *own_guards(loaded))
        runtime._setup(handlers, loaded.commands, shared, shared.counting_on(place))
        shared.managers.setdefault(place, WeakSet()).add(runtime.manager)
        runtime._owners |= {package: name for name, package in loaded.packages.items()}
        runtime.records = loaded.records
        runtime.problems = loaded.problems
        runtime._homes = loaded.homes
        runtime.refusal, runtime.cause = loaded.refusal, loaded.cause
        runtime.tell_of(loaded.projects)
        return runtime

    def _setup(
        self,
        handlers: Sequence[Handler],
        commands: Iterable[Command],
        shared: _Shared,
        previous: HookManager | None = None,
    ) -> None:
        self.manager = HookManager(handlers, previous)
        self._asked_for_numbers = any("turn_number" in each.wants for each in handlers)
        self.commands = {command.name: command for command in commands}
        self.records: tuple[ExtensionRecord, ...] = ()
        self.problems: tuple[Problem, ...] = ()
        self.notices: tuple[str, ...] = ()
        self.refusal: str | None = None
        self.cause: Cause | None = None
        self._shared = shared
        self._homes: Mapping[str, Path] = {}
        self._projects: InForce[Any] | Still[Any] | None = None
        self._directory: Path | None = None
        self._owners = {handler.function.__module__: handler.extension for handler in handlers}

    def tell_of(self, projects: ProjectStack) -> None:
        """Let `notices` say what of these projects is not in force as it is on the disk."""
        from hermes_ext.loading.finding.projects import notices

        self.notices = notices(projects, Prog(self._shared.command))

    @property
    def approver(self) -> Approver | None:
        """Asked when a handler asks; the same in all directories."""
        return self._shared.approver

    @approver.setter
    def approver(self, approver: Approver | None) -> None:
        self._shared.approver = approver

    @property
    def on_failure(self) -> Callable[[str], None] | None:
        """Called with one line for each handler that failed, beside the log; None by default."""
        return self._shared.on_failure

    @on_failure.setter
    def on_failure(self, listener: Callable[[str], None] | None) -> None:
        self._shared.on_failure = listener

    @property
    def on_slow(self) -> Callable[[str], None] | None:
        """Called with one line for each handler that a turn has waited for longer than 10 seconds.

        Handlers with a time limit are not among them. The line is in the log, too. It is called in
        a thread of its own, while the handler runs. None by default.
        """
        return self._shared.on_slow

    @on_slow.setter
    def on_slow(self, listener: Callable[[str], None] | None) -> None:
        self._shared.on_slow = listener

    @property
    def on_notice(self) -> Callable[[Notice], None] | None:
        """Called with what a rule did, for the person who talks to the agent; None by default.

        It is called in the thread of the hook, with `Notice.line()` as what to show. The user's
        `extensions.notify` decides what is reported, and equal events of a turn are reported once
        and, as their number, at its end.
        """
        return self._shared.on_notice

    @on_notice.setter
    def on_notice(self, listener: Callable[[Notice], None] | None) -> None:
        self._shared.on_notice = listener

    @property
    def notify(self) -> Notify:
        """What `on_notice` is called for: `blocks` (the default), `all` or `off`."""
        return self._shared.notify

    @property
    def on_not_taken(self) -> Callable[[str], None] | None:
        """Called with the line that `not_taken` gets, beside the log; None by default."""
        return self._shared.on_not_taken

    @on_not_taken.setter
    def on_not_taken(self, listener: Callable[[str], None] | None) -> None:
        self._shared.on_not_taken = listener

    @property
    def on_store_problem(self) -> Callable[[str], None] | None:
        """Called with the line that `store_problem` gets, beside the log; None by default."""
        return self._shared.on_store_problem

    @on_store_problem.setter
    def on_store_problem(self, listener: Callable[[str], None] | None) -> None:
        self._shared.on_store_problem = listener

    @property
    def store_problem(self) -> str | None:
        """Why session state cannot be read or stored at the moment; None while it can."""
        return self._shared.store.problem

    @property
    def not_taken(self) -> str | None:
        """Why extensions that changed on the disk are not in force; None while all are."""
        return None if self._projects is None else self._projects.not_taken

    @property
    def agent_at_work(self) -> Callable[[], bool]:
        """Tells whether a process that the agent started is running, while no turn is open.

        What changes meanwhile may be its doing and is not taken: see `docs/security.md`. By default
        there is none.
        """
        return self._shared.agent_at_work

    @agent_at_work.setter
    def agent_at_work(self, asked: Callable[[], bool]) -> None:
        self._shared.agent_at_work = asked

    @property
    def approve_without_human(self) -> bool:
        """Whether the user has `ask` approved where nobody can be asked."""
        return self._shared.approve_without_human

    @property
    def log(self) -> DecisionLog | None:
        """Where decisions are written; None for a runtime that was made of a list of handlers."""
        return self._shared.log

    @property
    def schemas(self) -> SchemaChecks | None:
        """What rewritten tool arguments are checked against."""
        return self._shared.schemas

    @property
    def machine(self) -> Machine:
        """Where the tools run, for `hermes_ext.effects`; the same in all directories."""
        return self._shared.machine

    @machine.setter
    def machine(self, machine: Machine) -> None:
        self._shared.machine = machine

    @property
    def tools(self) -> ToolTable:
        """The host's tools: those of `machine`, by default Hermes's."""
        return self.machine.tools or default_host().tools()

    def machine_for(self, tool_name: str, cwd: Path | None) -> Machine:
        """Where a call of this tool runs."""
        schema = None if self.schemas is None else self.schemas.schema_of(tool_name)
        return self._shared.machine.at(cwd, schema)

    def for_directory(self, directory: str | Path | None) -> Self:
        """The runtime for work in a directory: with the extensions of the project that it is in.

        Those of `from_config` share session state, decision log and approver. A runtime that was
        made of a list of handlers is the same everywhere. Project extensions are used only where
        the user trusts them; what is not used is told in `notices`.
        """
        if self._projects is None:
            return self
        try:
            chosen: Self = self._projects.at(None if directory is None else Path(directory))
        except Exception as error:
            # A fault of ours. Whether the project has a guard is unknown, so no tool runs.
            logger.exception("the extensions for %s could not be chosen", directory)
            chosen = self._refusing(error)
        chosen._projects, chosen._directory = self._projects, self._directory
        for text in chosen.notices:
            self._shared.tell(text)
        return chosen

    def _refusing(self, error: Exception) -> Self:
        """What holds everywhere, and no tool runs."""
        assert self._projects is not None
        base: Runtime = self._projects.without
        runtime = type(self).__new__(type(self))
        runtime._setup(tuple(base.manager.handlers), base.commands.values(), self._shared)
        runtime._owners |= base._owners
        runtime.records, runtime.problems = base.records, base.problems
        runtime.refusal = (
            f"Tool calls are refused because the extensions for this directory could not be chosen "
            f"({type(error).__name__}: {error})"
        )
        return runtime

    def has_anywhere(self, hook: HookName) -> bool:
        """Whether a handler waits for the hook here or in a project that a turn has been in."""
        everywhere = (self,) if self._projects is None else self._projects.made()
        return any(runtime.manager.has(hook) for runtime in everywhere)

    def command(
        self,
        name: str,
        args: str = "",
        *,
        session_id: str,
        conversation_id: str | None = None,
        cwd: str | Path | None = None,
        platform: str | None = None,
    ) -> str:
        """Run a slash command that an extension has registered.

        Args:
            name: without the slash.
            args: what was typed behind it.
            session_id: the session that it was typed in.
            conversation_id: that session's conversation, whose state the command gets; the
                session id by default.
            cwd: the session's directory, by default that of `from_config`, else the process's. The
                extensions of its project are the ones that are asked.
            platform: where the user is: `cli`, `telegram`, …

        Returns:
            The text for the user; "" for none.

        Raises:
            CommandError: no extension has the command, or it failed: `str(error)` is for the user.
        """
        from hermes_ext.turns.commands import run_command, unknown_command

        directory = Path(cwd) if cwd is not None else self._directory or _working_directory()
        with self._choosing():
            here = self.for_directory(directory)
            command = here.commands.get(name)
            if command is None:
                raise unknown_command(name, here.commands)
            conversation = conversation_id or session_id
            return run_command(
                command,
                args,
                session_id=session_id,
                conversation_id=conversation,
                session_state=here.session_state(conversation, command.extension),
                data_dir=lambda: here.data_dir(command.extension),
                cwd=directory,
                platform=platform,
            )

    def _choosing(self) -> AbstractContextManager[None]:
        """While open, what is chosen inside keeps its modules."""
        return nullcontext() if self._projects is None else self._projects.choosing()

    @property
    def handlers(self) -> tuple[Handler, ...]:
        """All handlers, in no particular order; `manager.order(hook)` has the order."""
        return tuple(self.manager.handlers)

    def _number(self, conversation_id: str, turns_before: int) -> int | None:
        """The number of a turn that begins; None where nobody asks for it: counting writes."""
        recorded = self.log is not None and self.log.level == "payloads" and not self.idle
        if not recorded and not self._asked_for_numbers:
            return None
        return self._shared.numbers.next(conversation_id, turns_before)

    @property
    def idle(self) -> bool:
        """Whether no hook has anything to do: no handler, and nothing that must be refused."""
        return not self.manager.handlers and self.refusal is None

    def turn(
        self,
        *,
        session_id: str,
        platform: str | None = None,
        conversation_id: str | None = None,
        turn_id: str | None = None,
        turn_number: int | None = None,
        turns_before: int = 0,
        task_id: str | None = None,
        origin: str = "user",
        interactive: bool | None = None,
        model: str | None = None,
        cwd: Path | None = None,
        project_root: Path | None = None,
        is_subagent: bool = False,
        parent_session_id: str | None = None,
        sender_id: str | None = None,
        chat_id: str | None = None,
    ) -> Turn:
        """Begin a turn; use it in `with` (or `async with`), or call `close()`.

        Args:
            session_id: the host's session.
            platform: where the user is: `cli`, `telegram`, …
            conversation_id: stays the same over compression, resume and restart, and is shared by
                subagents; the session id by default.
            turn_id: the host's id of the turn; made up by default.
            turn_number: 1 for the first turn of the conversation. By default turns are counted in
                the session store, for as long as a handler asks for the number: then it never goes
                back in a conversation and never repeats, whatever becomes of its messages. While
                the store is unavailable a handler that asks for it fails (`on_store_error`).
            turns_before: how many turns came before as far as the host knows; counting starts
                from it in a conversation of which the store knows nothing.
            task_id: the host's task.
            origin: where the input came from: `user, api, cron, batch, subagent, background,
                steer, extension`.
            interactive: whether a person is there.
            model: the model's name.
            cwd: the session's working directory; by default that of `from_config`, else the
                process's. Where that was removed, handlers get None. The turn has the extensions
                of its project: `turn.runtime` is what `for_directory(cwd)` gives.
            project_root: the repository it is in.
            is_subagent: whether another agent started this one.
            parent_session_id: that agent's session.
            sender_id: who wrote, on a chat platform.
            chat_id: in which chat.
        """
        directory = cwd or self._directory or _working_directory()
        with self._choosing():
            if self._projects is not None:
                self._projects.turn_begins()
            chosen = self.for_directory(directory)
            conversation = conversation_id or session_id
            not_counted: str | None = None
            if turn_number is None:
                try:
                    turn_number = chosen._number(conversation, turns_before)
                except StateError as error:
                    not_counted = str(error)
            return self._turn_class(
                chosen,
                session_id=session_id,
                conversation_id=conversation,
                turn_id=turn_id,
                turn_number=or_unknown(turn_number),
                not_counted=not_counted,
                task_id=task_id,
                platform=or_unknown(platform),
                origin=origin,
                interactive=or_unknown(interactive),
                model=or_unknown(model),
                cwd=or_unknown(directory),
                project_root=or_unknown(project_root),
                is_subagent=is_subagent,
                parent_session_id=or_unknown(parent_session_id),
                sender_id=or_unknown(sender_id),
                chat_id=or_unknown(chat_id),
            )

    @property
    def packages(self) -> Set[str]:
        """The packages that its handlers and commands are from."""
        return self._owners.keys()

    def owner_of(self, module: str) -> str | None:
        """The extension that a module belongs to, by the module's full name."""
        while module:
            if module in self._owners:
                return self._owners[module]
            module = module.rpartition(".")[0]
        return None

    def who_wait_for(self, hook: HookName) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The extensions with a handler on a hook: guards and required ones, and all of them."""
        handlers = (handler for handler in self.manager.handlers if handler.hook is hook)
        there = tuple(dict.fromkeys(handler.extension for handler in handlers))
        must = self.who_must_see_tools()
        return tuple(name for name in there if name in must), there

    def who_must_see_tools(self) -> tuple[str, ...]:
        """The extensions that must be able to refuse tool calls: guards, and required ones."""
        guards = {handler.extension for handler in self.manager.handlers if handler.guard} - {OWN}
        required = {record.name for record in self.records if record.required}
        return tuple(sorted(guards | required))

    def session_state(self, conversation_id: str, extension: str) -> SessionState:
        """What `extension` keeps for a conversation, over turns and restarts."""
        from hermes_ext.turns.session_state import SessionState

        return SessionState(self._shared.store, conversation_id, self.whole_name(extension))

    def whole_name(self, extension: str) -> str:
        """An extension's name, for a project's with the project: others elsewhere have the name.

        What is kept for it (session state, what a person has always allowed) is kept under this.
        """
        root = self._homes.get(extension)
        return extension if root is None else f"{extension} of {root}"

    def data_dir(self, extension: str) -> Path:
        """The private folder of an extension for its files; made where it is not there.

        Below `<home>/extensions-data`, a project's extensions by project; without a home a
        temporary folder.

        Raises:
            StateError: it cannot be made, or is not the user's.
        """
        return self._shared.data.of(extension, self._homes.get(extension))

    def close(self) -> None:
        """Write what is still to be written, and let go of files."""
        if self._projects is not None:
            self._projects.close()
        if self.log is not None:
            self.log.flush()
        self._shared.store.close()


@define(eq=False)
class _Shared:
    """What the runtimes of all directories have in common."""

    approver: Approver | None
    approve_without_human: bool
    log: DecisionLog | None
    store: SessionStore
    schemas: SchemaChecks | None
    command: str = ""
    machine: Machine = Factory(Machine)
    data: DataFolders = Factory(lambda: DataFolders(None))
    told: set[str] = Factory(set)
    _numbers: TurnNumbers | None = field(default=None, init=False)
    notify: Notify = "blocks"
    on_failure: Callable[[str], None] | None = None
    on_slow: Callable[[str], None] | None = None
    on_notice: Callable[[Notice], None] | None = None
    on_not_taken: Callable[[str], None] | None = None
    on_store_problem: Callable[[str], None] | None = None
    agent_at_work: Callable[[], bool] = lambda: False
    managers: dict[tuple[Path, ...], WeakSet[HookManager]] = Factory(dict)

    def counting_on(self, place: tuple[Path, ...]) -> HookManager | None:
        """A manager from before a reload, of these projects; all of them count together."""
        return next(iter(self.managers.get(place, ())), None)

    @property
    def numbers(self) -> TurnNumbers:
        """The numbers of turns, counted in the store that is used now."""
        if self._numbers is None:
            self._numbers = TurnNumbers(self.store)
        return self._numbers

    def is_agent_at_work(self) -> bool:
        """As the host says."""
        return self.agent_at_work()

    def tell_not_taken(self, text: str) -> None:
        """Tell the host what of the disk is not in force."""
        if self.on_not_taken is not None:
            self.on_not_taken(text)

    def tell_store_problem(self, text: str) -> None:
        """Tell the host that session state cannot be read or stored."""
        logger.warning("%s", text)
        if self.on_store_problem is not None:
            self.on_store_problem(text)

    def tell(self, text: str) -> None:
        """Warn once."""
        if text not in self.told:
            self.told.add(text)
            logger.warning("%s", text)


def own_guards(loaded: Loaded) -> tuple[Handler, ...]:
    """The guard that keeps the agent's tools off the rules, while there are any."""
    in_force = [record for record in loaded.records if record.loaded]
    if not in_force or loaded.base is None:
        return ()
    from hermes_ext.guard.guard import own_guard
    from hermes_ext.guard.places import Protected

    places = [record.path for record in in_force if record.path is not None]
    return (own_guard(Protected.of(loaded.base.home, loaded.config.global_dir, places)),)


def _machine_of(config: ExtensionsConfig, machine: Machine) -> Machine:
    """The machine, with what the user's settings say of commands and tools."""
    if not config.commands:
        return evolve(machine, commands=None, read_only_tools=config.read_only_tools)
    from hermes_ext.effects._knowledge import Knowledge

    commands = Knowledge.bundled().extended(config.commands)
    return evolve(machine, commands=commands, read_only_tools=config.read_only_tools)


def _working_directory() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:  # somebody removed the directory that the process stands in
        return None


def _store_in(home: Path, shared: _Shared, clock: Callable[[], float] = time.time) -> SessionStore:
    from hermes_ext.turns.sqlite_store import STATE_FILE, SQLiteStore

    return SQLiteStore(home / STATE_FILE, notify=shared.tell_store_problem, clock=clock)


def _made_of(things: Iterable[Any], config: Any) -> tuple[tuple[Handler, ...], tuple[Command, ...]]:
    """The handlers and commands that are marked in what `Runtime` was given."""
    hooks: dict[str, list[Any]] = {}
    marked: dict[str, list[Any]] = {}
    handlers: list[Handler] = []
    if not isinstance(things, Iterable):
        name = getattr(things, "__name__", type(things).__name__)
        raise TypeError(f"Runtime takes a list of handlers, not one: write Runtime([{name}])")
    for thing in things:
        if isinstance(thing, Handler):
            handlers.append(thing)
            continue
        name = _extension_name(thing)
        commands = commands_of(thing)
        marked.setdefault(name, []).extend(commands)
        try:
            hooks.setdefault(name, []).extend(registrations_of(thing))
        except RegistrationError:
            if not commands:
                raise
    for name, registrations in hooks.items():
        handlers.extend(build_handlers(name, registrations, source=Source.GLOBAL, config=config))
    built = [
        each
        for name, of_it in marked.items()
        for each in build_commands(name, of_it, config=config)
    ]
    return tuple(handlers), tuple({each.name: each for each in reversed(built)}.values())


def _extension_name(thing: Any) -> str:
    module = thing.__name__ if inspect.ismodule(thing) else getattr(thing, "__module__", None)
    if not isinstance(module, str):
        module = type(thing).__module__
    return module.rpartition(".")[2] or "inline"
