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
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

from attrs import evolve

from hermes_ext._log import logger
from hermes_ext._problems import Problem
from hermes_ext._prog import Prog
from hermes_ext.chain.manager import HookManager
from hermes_ext.chain.outcome import Cause
from hermes_ext.effects import Machine
from hermes_ext.exceptions import RegistrationError, StateError
from hermes_ext.hooks.handler import Handler
from hermes_ext.hooks.payloads import Scope
from hermes_ext.hooks.source import Source
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.default import default_host
from hermes_ext.records import ExtensionRecord
from hermes_ext.rules import Rulebook, Rules, owners_of
from hermes_ext.turns.approval import Approver
from hermes_ext.turns.schemas import SchemaChecks, ToolSchemas
from hermes_ext.turns.services import Services
from hermes_ext.turns.turn import Turn

if TYPE_CHECKING:
    from hermes_ext.confine import Minimum
    from hermes_ext.effects import ToolTable
    from hermes_ext.hooks.commands import Command
    from hermes_ext.settings.config import ExtensionsConfig
    from hermes_ext.turns.confining import Confiner, Unavailable
    from hermes_ext.turns.decisions.log import DecisionLog
    from hermes_ext.turns.notices import Notice, Notify
    from hermes_ext.turns.plugin_view import PluginView
    from hermes_ext.turns.session_state import SessionState

T = TypeVar("T")


class _Of(Generic[T]):
    """An attribute of the runtime's services or rules, as one of the runtime's own."""

    def __init__(self, owner: Literal["services", "rules"]) -> None:
        self._owner = owner

    def __set_name__(self, cls: type[Runtime], name: str) -> None:
        self._name = name

    def __get__(self, runtime: Runtime, cls: type[Runtime]) -> T:
        found: T = getattr(getattr(runtime, self._owner), self._name)
        return found

    def __set__(self, runtime: Runtime, value: T) -> None:
        raise AttributeError(f"Runtime.{self._name} cannot be set")


class _Set(_Of[T]):
    """One of the services, which the host may set."""

    def __init__(self) -> None:
        super().__init__("services")

    def __set__(self, runtime: Runtime, value: T) -> None:
        setattr(runtime.services, self._name, value)


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
        confiner: says which calls the host can run confined. None: none, and `confine` blocks.

    Raises:
        RegistrationError: a handler cannot work: it names an argument that its hook does not have,
            or nothing in `handlers` is marked.
        OrderCycleError: `before` and `after` contradict each other.
        TypeError: `handlers` is one handler instead of a list of them.
    """

    _turn_class: type[Turn] = Turn

    approver: _Set[Approver | None] = _Set()
    """Asked when a handler asks; the same in all directories."""
    on_failure: _Set[Callable[[str], None] | None] = _Set()
    """Called with one line for each handler that failed, beside the log; None by default."""
    on_slow: _Set[Callable[[str], None] | None] = _Set()
    """Called with one line for each handler that a turn has waited for longer than 10 seconds.

    Handlers with a time limit are not among them. The line is in the log, too. It is called in
    a thread of its own, while the handler runs. None by default.
    """
    on_notice: _Set[Callable[[Notice], None] | None] = _Set()
    """Called with what a rule did, for the person who talks to the agent; None by default.

    It is called in the thread of the hook, with `Notice.line()` as what to show. The user's
    `extensions.notify` decides what is reported, and equal events of a turn are reported once
    and, as their number, at its end.
    """
    on_not_taken: _Set[Callable[[str], None] | None] = _Set()
    """Called with the line that `not_taken` gets, beside the log; None by default."""
    on_store_problem: _Set[Callable[[str], None] | None] = _Set()
    """Called with the line that `store_problem` gets, beside the log; None by default."""
    agent_at_work: _Set[Callable[[], bool]] = _Set()
    """Tells whether a process that the agent started is running, while no turn is open.

    What changes meanwhile may be its doing and is not taken: see `docs/security.md`. By default
    there is none.
    """
    confiner: _Set[Confiner | None] = _Set()
    """What the host can confine; None, the default: nothing, and then `confine` blocks."""
    confine_unavailable: _Set[Unavailable] = _Set()
    """Whether a call that cannot be confined is blocked (the default), or asked about: `ask`."""
    confine_minimum: _Of[Minimum] = _Of("services")
    """The weakest confinement that the user accepts: `namespaces` (the default) or `landlock`."""
    machine: _Set[Machine] = _Set()
    """Where the tools run, for `hermes_ext.effects`; the same in all directories."""

    tools: _Of[ToolTable] = _Of("services")
    """The host's tools: those of `machine`, by default Hermes's."""
    notify: _Of[Notify] = _Of("services")
    """What `on_notice` is called for: `blocks` (the default), `all` or `off`."""
    approve_without_human: _Of[bool] = _Of("services")
    """Whether the user has `ask` approved where nobody can be asked."""
    log: _Of[DecisionLog | None] = _Of("services")
    """Where decisions are written; None for a runtime that was made of a list of handlers."""
    schemas: _Of[SchemaChecks | None] = _Of("services")
    """What rewritten tool arguments are checked against."""

    manager: _Of[HookManager] = _Of("rules")
    """The handlers, in order."""
    handlers: _Of[tuple[Handler, ...]] = _Of("rules")
    """All handlers, in no particular order; `manager.order(hook)` has the order."""
    commands: _Of[Mapping[str, Command]] = _Of("rules")
    """The slash commands, by name."""
    records: _Of[tuple[ExtensionRecord, ...]] = _Of("rules")
    """One for each extension that was found or named."""
    problems: _Of[tuple[Problem, ...]] = _Of("rules")
    """What is wrong in the configuration and the manifests."""
    notices: _Of[tuple[str, ...]] = _Of("rules")
    """What of the projects is not in force as it is on the disk."""
    refusal: _Of[str | None] = _Of("rules")
    """Why every tool call is refused; None if none is."""
    cause: _Of[Cause | None] = _Of("rules")
    """Which setting refuses them."""
    idle: _Of[bool] = _Of("rules")
    """Whether no hook has anything to do: no handler, and nothing that must be refused."""

    def __init__(
        self,
        handlers: Iterable[Any] = (),
        *,
        config: Any = None,
        approver: Approver | None = None,
        tool_schemas: ToolSchemas | None = None,
        home: str | Path | None = None,
        confiner: Confiner | None = None,
    ) -> None:
        services = Services.kept_in(None if home is None else Path(home), approver, tool_schemas)
        services.confiner = confiner
        self._begin(services, Rulebook(_rules_of(handlers, config)))

    def _begin(self, services: Services, book: Rulebook, directory: Path | None = None) -> None:
        self.services = services
        self._book = book
        self._directory = directory
        self.rules = self.for_directory(directory)

    @classmethod
    def of(cls, services: Services, book: Rulebook, directory: Path | None = None) -> Self:
        """A runtime with these rules. For the package's own use.

        Args:
            services: what its turns have in common.
            book: which rules are in force where.
            directory: where its turns work, unless they are told.
        """
        runtime = cls.__new__(cls)
        runtime._begin(services, book, directory)
        return runtime

    @classmethod
    def refusing(cls, reason: str) -> Self:
        """A runtime without handlers that refuses every tool call."""
        return cls.of(Services(), Rulebook(Rules(refusal=reason)))

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
        confiner: Confiner | None = None,
    ) -> Self:
        """The runtime that the user's `config.yaml` describes.

        Args:
            cwd: the directory that the work happens in; the process's own by default.
            home: the Hermes home, `~` for the user's folder; by default the one that Hermes takes.
            approver: as for `Runtime`.
            tool_schemas: as for `Runtime`.
            command: how the user calls our commands in this host, for what `notices` say.
            clock: seconds since the epoch; what the age of session state is measured by.
            confiner: as for `Runtime`.

        Never raises for what a user or an extension wrote: `records`, `problems` and `notices`
        tell. A turn in another directory has the extensions of that directory's project: see
        `for_directory`.
        """
        from hermes_ext.loading.reloading.in_force import InForce
        from hermes_ext.turns.decisions.log import DecisionLog

        home = Path(home).expanduser().absolute() if home else default_host().home()
        services = Services.kept_in(home, approver, tool_schemas, clock)
        services.confiner = confiner
        services.log = DecisionLog(home / "logs" / "extensions.jsonl", notify=logger.warning)
        in_force = InForce(
            home,
            Prog(command),
            taken=lambda config: configure(services, config),
            tell=services.report_not_taken,
            agent_at_work=services.is_agent_at_work,
        )
        with suppress(StateError):  # reported by the store
            services.store.sweep(in_force.config.state_days)
        return cls.of(services, in_force, Path(cwd) if cwd else _working_directory())

    @property
    def plugin_manager(self) -> PluginView:
        """The extensions in force where the runtime was made, as pluggy has registered them."""
        from hermes_ext.turns.plugin_view import PluginView

        return PluginView(
            lambda: self.for_directory(self._directory).manager.plugins, self.services
        )

    @property
    def store_problem(self) -> str | None:
        """Why session state cannot be read or stored at the moment; None while it can."""
        return self.services.store.problem

    @property
    def not_taken(self) -> str | None:
        """Why extensions that changed on the disk are not in force; None while all are."""
        return self._book.not_taken

    def for_directory(self, directory: str | Path | None) -> Rules:
        """What is in force in a directory: with the extensions of the project that it is in.

        A runtime that was made of a list of handlers has the same rules everywhere. Project
        extensions are used only where the user trusts them; `notices` say what is not used.
        """
        try:
            # Making a path of a path takes long.
            rules = self._book.at(Path(directory) if isinstance(directory, str) else directory)
        except Exception as error:
            # A fault of ours. Whether the project has a guard is unknown, so no tool runs.
            logger.exception("the extensions for %s could not be chosen", directory)
            rules = evolve(
                self._book.everywhere,
                notices=(),
                refusal="Tool calls are refused because the extensions for this directory could "
                f"not be chosen ({type(error).__name__}: {error})",
                cause=None,
            )
        for text in rules.notices:
            self.services.warn_once(text)
        return rules

    def has_anywhere(self, hook: HookName) -> bool:
        """Whether a handler waits for the hook here or in a project that a turn has been in."""
        return any(rules.manager.has(hook) for rules in self._book.all())

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
        with self._book.choosing():
            here = self.for_directory(directory)
            command = here.commands.get(name)
            if command is None:
                raise unknown_command(name, here.commands)
            conversation = conversation_id or session_id
            scope = Scope(
                session_id=session_id,
                conversation_id=conversation,
                cwd=directory,
                platform=platform,
                session_state_of=partial(self.services.session_state, here, conversation),
                data_dir_of=partial(self.services.data_dir, here),
            )
            return run_command(command, args, scope)

    def _number(self, rules: Rules, conversation_id: str, turns_before: int) -> int | None:
        """The number of a turn that begins; None where nobody asks for it: counting writes."""
        if self.services.asked_for(rules, "turn_number"):
            return self.services.numbers.next(conversation_id, turns_before)
        return None

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
        interactive: bool | Callable[[], bool | None] | None = None,
        model: str | None = None,
        cwd: Path | None = None,
        project_root: Path | Callable[[], Path | None] | None = None,
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
            interactive: whether a person is there; or what tells, called where it is asked for.
            model: the model's name.
            cwd: the session's working directory; by default that of `from_config`, else the
                process's. Where that was removed, handlers get None. The turn has the extensions
                of its project: `turn.rules` is what `for_directory(cwd)` gives.
            project_root: the repository it is in; or what tells, called where it is asked for.
            is_subagent: whether another agent started this one.
            parent_session_id: that agent's session.
            sender_id: who wrote, on a chat platform.
            chat_id: in which chat.
        """
        directory = cwd or self._directory or _working_directory()
        with self._book.choosing():
            self._book.turn_begins()
            rules = self.for_directory(directory)
            conversation = conversation_id or session_id
            if callable(interactive):
                asked = self.services.asked_for(rules, "interactive")
                interactive = interactive() if asked else None
            find_root = None
            if callable(project_root):
                find_root = project_root
                asked = self.services.asked_for(rules, "project_root")
                project_root = project_root() if asked else None
            not_counted: str | None = None
            if turn_number is None:
                try:
                    turn_number = self._number(rules, conversation, turns_before)
                except StateError as error:
                    not_counted = str(error)
            return self._turn_class(
                rules,
                self.services,
                session_id=session_id,
                conversation_id=conversation,
                turn_id=turn_id,
                turn_number=turn_number,
                not_counted=not_counted,
                task_id=task_id,
                find_root=find_root,
                platform=platform,
                origin=origin,
                interactive=interactive,
                model=model,
                cwd=directory,
                project_root=project_root,
                is_subagent=is_subagent,
                parent_session_id=parent_session_id,
                sender_id=sender_id,
                chat_id=chat_id,
            )

    def owner_of(self, module: str) -> str | None:
        """The extension that a module belongs to, by the module's full name."""
        return self.rules.owner_of(module)

    def session_state(self, conversation_id: str, extension: str) -> SessionState:
        """What `extension` keeps for a conversation, over turns and restarts."""
        return self.services.session_state(self.rules, conversation_id, extension)

    def data_dir(self, extension: str) -> Path:
        """The private folder of an extension for its files; made where it is not there.

        Below `<home>/extensions-data`, a project's extensions by project; without a home a
        temporary folder.

        Raises:
            StateError: it cannot be made, or is not the user's.
        """
        return self.services.data_dir(self.rules, extension)

    def close(self) -> None:
        """Write what is still to be written, and let go of files."""
        self._book.close()
        self.services.close()


def configure(services: Services, config: ExtensionsConfig) -> None:
    """Have services do what the user's configuration says."""
    from hermes_ext.turns.decisions.level import LogLevel

    if services.log is not None:
        services.log.level = LogLevel(config.log)
    services.notify = config.notify
    services.approve_without_human = config.ask_without_human == "approve"
    services.confine_unavailable = config.confine_unavailable
    services.confine_minimum = config.confine_minimum
    services.machine = machine_of(config, services.machine)


def machine_of(config: ExtensionsConfig, machine: Machine) -> Machine:
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


def _rules_of(things: Iterable[Any], config: Any) -> Rules:
    """The handlers and commands that are marked in what `Runtime` was given."""
    from hermes_ext.hooks.commands import build_commands, commands_of
    from hermes_ext.hooks.registration import build_handlers, registrations_of

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
    by_name = {each.name: each for each in reversed(built)}
    return Rules(HookManager(handlers, names=marked), by_name, owners=owners_of(handlers))


def _extension_name(thing: Any) -> str:
    module = thing.__name__ if inspect.ismodule(thing) else getattr(thing, "__module__", None)
    if not isinstance(module, str):
        module = type(thing).__module__
    return module.rpartition(".")[2] or "inline"
