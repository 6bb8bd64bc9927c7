"""An extension, loaded as a user's home would load it, and turns of it without a model."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Final, Self

from hermes_ext._problems import Problem, did_you_mean
from hermes_ext._text import is_same_name
from hermes_ext._values import frozen
from hermes_ext.chain.fold import arun, run
from hermes_ext.chain.outcome import ChainOutcome
from hermes_ext.exceptions import HandlerError
from hermes_ext.hooks.payloads import EVENT_OF
from hermes_ext.hooks.table import HookName
from hermes_ext.loading.imports.importing import forget
from hermes_ext.loading.inventory import inventory
from hermes_ext.records import ExtensionRecord, Status
from hermes_ext.runtime import Runtime
from hermes_ext.testing._fakes import (
    Answers,
    FakeClock,
    FakeConfiner,
    ScriptedApprover,
    as_approver,
)
from hermes_ext.testing._outcomes import describe
from hermes_ext.testing._strict import CoroutineWatch, Finding, StateWatch
from hermes_ext.turns.approval import ApprovalRequest
from hermes_ext.turns.requests import Message
from hermes_ext.turns.schemas import ToolSchemas
from hermes_ext.turns.turn import Turn

SLOW_SECONDS: Final = 1.0

__tracebackhide__ = True  # what fails is told by the test's own line


class ExtensionNotLoadedError(AssertionError):
    """The extension could not be loaded.

    Attributes:
        record: what became of it; None where there is no such extension.
    """

    def __init__(self, message: str, record: ExtensionRecord | None = None) -> None:
        super().__init__(message)
        self.record = record


class FindingsError(AssertionError):
    """The strict mode found something.

    Attributes:
        findings: what.
    """

    def __init__(self, name: str, findings: Sequence[Finding]) -> None:
        told = "\n".join(f"- {each}" for each in findings)
        super().__init__(
            f"{name}: {len(findings)} finding(s) beside what the test asserts:\n{told}\n"
            "(load_extension(…, strict=False) turns this off)"
        )
        self.findings = tuple(findings)


@frozen
class Sent:
    """A request as it would go to the model, injections included."""

    messages: list[Message]
    system_prompt: str


class _ExaminedTurn(Turn):
    """A turn that finds out more about each handler, and tells its outcomes."""

    __slots__ = ()

    _run = staticmethod(partial(run, strict=True, timed=True))
    _arun = staticmethod(partial(arun, strict=True, timed=True))

    def _sync(self, *args: Any) -> ChainOutcome:
        outcome = super()._sync(*args)
        self.host(outcome)
        return outcome

    async def _async(self, *args: Any) -> ChainOutcome:
        outcome = await super()._async(*args)
        self.host(outcome)
        return outcome


class _ExaminedRuntime(Runtime):
    _turn_class = _ExaminedTurn


class LoadedExtension:
    """An extension under test, in a scratch home below `base`. Made by `load_extension`.

    Attributes:
        name: its name.
        path: its folder or file.
        home: the scratch Hermes home it is loaded from.
        project: the directory that its turns work in.
        runtime: the runtime that it is loaded in, alone but for the package's own guard.
        record: what loading it gave, as `hermes-ext list` shows it.
        approver: what answers its questions; None if nobody is there.
        clock: the clock given, or None.
        findings: what the strict mode has found so far.
        errors: how its handlers have failed so far.
    """

    def __init__(
        self,
        path_or_name: str | Path,
        base: Path,
        *,
        config: Mapping[str, Any] | None = None,
        extensions_config: Mapping[str, Any] | None = None,
        strict: bool = True,
        approver: Answers | ScriptedApprover | None = None,
        tool_schemas: ToolSchemas | None = None,
        project_root: Path | None = None,
        clock: FakeClock | None = None,
        cannot_confine: str | None = None,
        allow_state: Sequence[str] = (),
        slow_seconds: float = SLOW_SECONDS,
    ) -> None:
        home, project = base / "home", project_root or base / "project"
        (home / "extensions").mkdir(parents=True)
        if project_root is None:
            (project / ".git").mkdir(parents=True)
        self._place = place = _Place.of(path_or_name, home)
        self.name = place.name
        self.path = place.path
        self.home = home
        self.project = project
        self.approver = as_approver(approver)
        self.clock = clock
        self.findings: list[Finding] = []
        self.errors: list[HandlerError] = []
        self._strict = strict
        self._tool_schemas = tool_schemas
        self._confiner = FakeConfiner(cannot_confine)
        self._allow_state = tuple(allow_state)
        self._slow_seconds = slow_seconds
        self._lock = threading.RLock()
        self._told: set[Finding] = set()
        self._turns: dict[str, int] = {}
        self._expecting = 0
        self._open = 0
        self._begun: set[Turn] = set()
        self._watching = contextlib.ExitStack()
        if strict:
            self._watching.enter_context(CoroutineWatch(place.path, self._find))
        section: dict[str, Any] = {"log": "off", **(extensions_config or {})}
        if place.by_name:
            section["on"] = [*section.get("on", ()), place.name]
        else:
            place.link(home).symlink_to(place.path, target_is_directory=place.path.is_dir())
        if config is not None:
            section[place.name] = dict(config)
        self._configure(section)

    def _configure(self, section: Mapping[str, Any]) -> None:
        text = json.dumps({"extensions": dict(section)}, indent=2, ensure_ascii=False, default=str)
        (self.home / "config.yaml").write_text(f"{text}\n", encoding="utf-8")
        self._load()

    def _load(self) -> None:
        self.runtime = _ExaminedRuntime.from_config(
            home=self.home,
            cwd=self.project,
            approver=self.approver,
            tool_schemas=self._tool_schemas,
            clock=self.clock or time.time,
            confiner=self._confiner,
        )
        same = [each for each in self.runtime.records if is_same_name(each.name, self.name)]
        record = next((each for each in same if each.loaded), same[0] if same else None)
        if record is None or not record.loaded:
            problems = self.runtime.problems
            self.runtime.close()
            raise _not_loaded(self._place, self.home, record, problems)
        self.record: ExtensionRecord = record
        self._package = next(
            package
            for package, name in self.runtime.rules.owners.items()
            if name == record.name and package in sys.modules
        )
        for warning in record.warnings:
            self._find(Finding("warning", f"{warning} ({self.path})"))
        self._state = StateWatch(self._package, self._allow_state)

    @property
    def module(self) -> ModuleType:
        """Its module, as loaded: for `monkeypatch.setattr(extension.module, …)`."""
        return sys.modules[self._package]

    @property
    def settings(self) -> Any:
        """Its validated settings, as its handlers get them in `config`."""
        handlers = [each for each in self.runtime.handlers if each.extension == self.record.name]
        return handlers[0].config if handlers else None

    @property
    def data_dir(self) -> Path:
        """The folder that its handlers get as `data_dir`; it stays over `restart`."""
        return self.runtime.data_dir(self.record.name)

    @property
    def questions(self) -> list[ApprovalRequest]:
        """What its handlers asked a person, in order."""
        return [] if self.approver is None else self.approver.questions

    def restart(self, config: Mapping[str, Any] | None = None) -> None:
        """Load it anew, as the next process would: `session_state` stays, all else is new.

        Args:
            config: other settings for it; None leaves them.

        Raises:
            ExtensionNotLoadedError: it does not load now.
        """
        self._unload()
        self._turns.clear()
        if config is None:
            self._load()
            return
        raw = json.loads((self.home / "config.yaml").read_text(encoding="utf-8"))
        self._configure(raw["extensions"] | {self.name: dict(config)})

    def _unload(self) -> None:
        self.runtime.close()
        if self.record.path is None or self.record.source != "entry-point":
            forget(self._package)

    def turn(
        self, session_id: str = "test", *, platform: str = "cli", **options: Any
    ) -> DrivenTurn:
        """A turn, for `with` or `async with`. Several can be open at once.

        Args:
            session_id: the session; turns of one session are numbered.
            platform: where the user is.
            options: as for `Runtime.turn`: `conversation_id`, `origin`, `interactive`, `model`,
                `is_subagent`, `sender_id`, …; `cwd` and `project_root` are `project` by default.
        """
        conversation = options.get("conversation_id") or session_id
        with self._lock:
            number = self._turns[conversation] = self._turns.get(conversation, 0) + 1
            if self._strict and not self._open:
                self._state.begin()
            self._open += 1
        where = {"cwd": self.project, "project_root": self.project, "turn_number": number}
        opened = self.runtime.turn(session_id=session_id, platform=platform, **{**where, **options})
        self._begun.add(opened)
        return DrivenTurn(self, opened)

    def input(self, message: Any, **turn: Any) -> ChainOutcome:
        """`DrivenTurn.input` in a turn of its own."""
        with self.turn(**turn) as opened:
            return opened.input(message)

    def request(
        self, messages: str | Sequence[Message] = "hello", system_prompt: str = "", **turn: Any
    ) -> ChainOutcome:
        """`DrivenTurn.request` in a turn of its own."""
        with self.turn(**turn) as opened:
            return opened.request(messages, system_prompt)

    def call(
        self,
        tool_name: str,
        tool_args: Mapping[str, Any] | None = None,
        *,
        read_only: bool = False,
        **turn: Any,
    ) -> ChainOutcome:
        """`DrivenTurn.call` in a turn of its own."""
        with self.turn(**turn) as opened:
            return opened.call(tool_name, tool_args, read_only=read_only)

    def result(
        self, tool_name: str, tool_args: Mapping[str, Any], result: str, **turn: Any
    ) -> ChainOutcome:
        """`DrivenTurn.result` in a turn of its own."""
        with self.turn(**turn) as opened:
            return opened.result(tool_name, tool_args, result)

    def command(self, name: str, args: str = "", *, session_id: str = "test") -> str:
        """What its slash command answers.

        Args:
            name: without the slash.
            args: what was typed behind it.
            session_id: the session that it was typed in, whose `session_state` it gets.

        Raises:
            CommandError: it failed, was too late, or there is no such command.
        """
        return self.runtime.command(
            name, args, session_id=session_id, cwd=self.project, platform="cli"
        )

    def write(self, path: str, text: str = "x\n") -> Path:
        """Put a file into the project; returns its path."""
        return write_below(self.project, path, text)

    @contextlib.contextmanager
    def expect_failure(self, match: str | None = None) -> Iterator[list[HandlerError]]:
        """A handler is to fail in this block; it is no finding then.

        Args:
            match: a regular expression that is searched in the errors.

        Yields:
            A list that holds the errors once the block is over.

        Raises:
            AssertionError: nobody failed, or otherwise.
        """
        found: list[HandlerError] = []
        with self._lock:
            self._expecting += 1
            start = len(self.errors)
        try:
            yield found
        finally:
            with self._lock:
                self._expecting -= 1
                found.extend(self.errors[start:])
        if not found:
            raise AssertionError(f"expected that a handler of {self.name} fails; none did")
        if match is not None and not any(re.search(match, f"{e}\n{e.traceback}") for e in found):
            told = "\n".join(map(str, found))
            raise AssertionError(f"expected a failure that matches {match!r}, not:\n{told}")

    def left(self, turn: Turn) -> None:
        """A turn is over.

        Raises:
            FindingsError: there are findings that were not told yet.
        """
        with self._lock:
            self._open -= 1
            self._begun.discard(turn)
        self.check()

    def check(self) -> None:
        """Look for findings now.

        Raises:
            FindingsError: there are some that were not told yet.
        """
        if self._strict:
            for finding in self._state.changes():
                self._find(finding)
            self._unanswered()
        with self._lock:
            new = [each for each in self.findings if each not in self._told]
            # What is raised in another thread may never be seen; it is told again at the end.
            if threading.current_thread() is threading.main_thread():
                self._told.update(new)
        if new:
            raise FindingsError(self.name, new)

    def close(self) -> None:
        """End it: the fixture does, when the test is over.

        Raises:
            FindingsError: there are findings that were not told yet.
        """
        try:
            self.check()
        finally:
            for turn in list(self._begun):  # nobody has closed them, and none outlives its test
                turn.close()
            self._unload()
            self._watching.close()

    def saw(self, outcome: ChainOutcome) -> None:
        """Look at what a chain returned."""
        for step in outcome.steps:
            if step.extension != self.record.name:
                continue
            who = f"{step.handler} ({self._place_of(step.handler)})"
            if step.error is not None:
                with self._lock:
                    self.errors.append(step.error)
                    expected = self._expecting > 0
                if not expected:
                    trace = step.error.traceback
                    told = f"{step.error}\n{trace}".rstrip().replace("\n", "\n    ")
                    hint = "If it is to fail here: with extension.expect_failure():"
                    self._find(Finding("failed", f"{told}\n  {hint}"))
            elif step.mutated:
                self._find(
                    Finding(
                        "mutated",
                        f"{who} changed what it was given in place and returned "
                        f"{step.action.value}; nobody sees that change. "
                        "Return it with HookResult.rewrite(…), or change a copy",
                    )
                )
            took = (step.duration_ns or 0) / 1e9
            if took > self._slow_seconds and step.error is None:
                self._find(
                    Finding(
                        "slow",
                        f"{who} took {took:.2f} s, more than {self._slow_seconds:g} s; the user "
                        "waits for it. load_extension(…, slow_seconds=…) sets the limit",
                    )
                )

    def _unanswered(self) -> None:
        for request in [] if self.approver is None else self.approver.unanswered:
            told = f"the approver had no answer left for: {request.describe()}"
            self._find(Finding("unanswered", told.replace("\n", " ")))

    def _place_of(self, handler: str) -> str:
        found = [h for h in self.runtime.handlers if h.name == handler]
        return f"{found[0].file}:{found[0].line}" if found else str(self.path)

    def _find(self, finding: Finding) -> None:
        finding = Finding(finding.kind, self._place.real(finding.text, self.home))
        with self._lock:
            if self._strict and finding not in self.findings:
                self.findings.append(finding)


class DrivenTurn:
    """One turn of an extension under test. Made by `LoadedExtension.turn`.

    Its methods may be called in several threads at once; each has an `a…` twin to await.

    Attributes:
        turn: the `hermes_ext.Turn` behind it.
        outcomes: what its hooks returned, in order.
    """

    def __init__(self, extension: LoadedExtension, turn: Turn) -> None:
        self.turn = turn
        self.outcomes: list[ChainOutcome] = []
        self._extension = extension
        self._requests = 0
        self._sent: Sent | None = None
        turn.host = self._saw

    def __enter__(self) -> Self:
        self.turn.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.turn.__exit__(kind, error, trace)
        try:
            self._extension.left(self.turn)
        except FindingsError as found:
            if error is None:
                raise
            error.add_note(str(found))

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)

    def _saw(self, outcome: ChainOutcome) -> None:
        self.outcomes.append(outcome)
        self._extension.saw(outcome)

    def input(self, message: Any, **options: Any) -> ChainOutcome:
        """What becomes of what the user typed: a text, or a list of content parts.

        Args:
            message: the text or the parts.
            options: as for `Turn.transform_user_input`: `text`, `origin`, `command`.
        """
        return self.turn.transform_user_input(message, **options)

    async def ainput(self, message: Any, **options: Any) -> ChainOutcome:
        """`input`, awaited."""
        return await self.turn.atransform_user_input(message, **options)

    def request(
        self, messages: str | Sequence[Message] = "hello", system_prompt: str = "", **options: Any
    ) -> ChainOutcome:
        """What becomes of a request to the model; `sent` is what would go out.

        Args:
            messages: chat-completions messages; a text is one message of the user.
            system_prompt: the system prompt.
            options: as for `Turn.before_llm_call`; the requests of a turn are numbered.
        """
        listed, options = self._request(messages, options)
        return self._composed(
            self.turn.before_llm_call(listed, system_prompt, **options), listed, system_prompt
        )

    async def arequest(
        self, messages: str | Sequence[Message] = "hello", system_prompt: str = "", **options: Any
    ) -> ChainOutcome:
        """`request`, awaited."""
        listed, options = self._request(messages, options)
        outcome = await self.turn.abefore_llm_call(listed, system_prompt, **options)
        return self._composed(outcome, listed, system_prompt)

    @property
    def sent(self) -> Sent:
        """The last request as it would go to the model.

        Raises:
            AssertionError: there was none, or it was blocked or answered.
        """
        if self._sent is None:
            last = f"; {describe(self.outcomes[-1])}" if self.outcomes else ""
            raise AssertionError(f"no request of this turn would go to the model{last}")
        return self._sent

    def call(
        self,
        tool_name: str,
        tool_args: Mapping[str, Any] | None = None,
        *,
        tool_call_id: str | None = None,
        read_only: bool = False,
    ) -> ChainOutcome:
        """What becomes of a tool call, the questions to the approver answered.

        Args:
            tool_name: the tool.
            tool_args: its arguments.
            tool_call_id: the host's id of the call; made up by default.
            read_only: whether the tool's server says that it only reads.
        """
        args = dict(tool_args or {})
        return self.turn.intercept_tool_call(
            tool_name, args, tool_call_id=tool_call_id, read_only=read_only
        )

    async def acall(
        self,
        tool_name: str,
        tool_args: Mapping[str, Any] | None = None,
        *,
        tool_call_id: str | None = None,
        read_only: bool = False,
    ) -> ChainOutcome:
        """`call`, awaited."""
        args = dict(tool_args or {})
        return await self.turn.aintercept_tool_call(
            tool_name, args, tool_call_id=tool_call_id, read_only=read_only
        )

    def result(
        self, tool_name: str, tool_args: Mapping[str, Any], result: str, **options: Any
    ) -> ChainOutcome:
        """What becomes of a tool's result.

        Args:
            tool_name: the tool that ran.
            tool_args: its arguments.
            result: what it gave.
            options: as for `Turn.transform_tool_result`: `tool_call_id`, `status`, `duration_ms`.
        """
        return self.turn.transform_tool_result(tool_name, dict(tool_args), result, **options)

    async def aresult(
        self, tool_name: str, tool_args: Mapping[str, Any], result: str, **options: Any
    ) -> ChainOutcome:
        """`result`, awaited."""
        return await self.turn.atransform_tool_result(tool_name, dict(tool_args), result, **options)

    def fire(self, hook: str, **arguments: Any) -> ChainOutcome:
        """What becomes of an event of any hook, where no method above is for it.

        Args:
            hook: the hook.
            arguments: what the event is about, by the names of the hook's arguments.
        """
        return self.turn.fire(EVENT_OF[HookName(hook)].from_arguments(arguments))

    async def afire(self, hook: str, **arguments: Any) -> ChainOutcome:
        """`fire`, awaited."""
        return await self.turn.afire(EVENT_OF[HookName(hook)].from_arguments(arguments))

    def parallel(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> list[ChainOutcome]:
        """Tool calls at the same time, each in a thread, as a host makes them.

        Args:
            calls: tool and arguments of each.

        Returns:
            Their outcomes, in the order of the calls.
        """
        listed = list(calls)
        gate = threading.Barrier(max(1, len(listed)))

        def run_one(call: tuple[str, Mapping[str, Any]]) -> ChainOutcome:
            gate.wait()
            return self.call(*call)

        with ThreadPoolExecutor(max(1, len(listed))) as threads:
            return [*threads.map(run_one, listed)]

    @property
    def state(self) -> Any:
        """The turn's `state`, shared by all extensions."""
        return self.turn.state

    @property
    def session_state(self) -> Any:
        """The extension's `session_state` for this conversation."""
        extension = self._extension
        return extension.runtime.session_state(self.turn.conversation_id, extension.record.name)

    def _request(
        self, messages: str | Sequence[Message], options: dict[str, Any]
    ) -> tuple[list[Message], dict[str, Any]]:
        self._requests += 1
        text = isinstance(messages, str)
        listed = [{"role": "user", "content": messages}] if text else list(messages)
        return listed, {"api_call_count": self._requests, **options}  # type: ignore[return-value]

    def _composed(
        self, outcome: ChainOutcome, messages: list[Message], system_prompt: str
    ) -> ChainOutcome:
        stopped = outcome.blocked or outcome.answered
        self._sent = None if stopped else Sent(*self.turn.apply(outcome, messages, system_prompt))
        return outcome


@frozen
class _Place:
    """Where an extension is. by_name: it is a bundled or an installed one."""

    name: str
    path: Path
    by_name: bool = False

    @classmethod
    def of(cls, path_or_name: str | Path, home: Path) -> Self:
        path = Path(path_or_name)
        if isinstance(path_or_name, str) and len(path.parts) == 1 and not path.exists():
            return cls._named(path_or_name, home)
        if not path.exists():
            raise ExtensionNotLoadedError(f"there is nothing at {path.absolute()}")
        path = path.resolve()
        if path.name == "__init__.py":
            path = path.parent
        if path.is_dir() and not (path / "__init__.py").is_file():
            raise ExtensionNotLoadedError(
                f"{path} is not an extension: it has no __init__.py. An extension is a folder with "
                "an __init__.py, or a single file NAME.py"
            )
        return cls(path.stem if path.is_file() else path.name, path)

    def link(self, home: Path) -> Path:
        """Where a scratch home has it."""
        return home / "extensions" / self.path.name

    def real(self, text: str, home: Path) -> str:
        """A text that names the author's files, not those that the scratch home has of them."""
        return text if self.by_name else text.replace(str(self.link(home)), str(self.path))

    @classmethod
    def _named(cls, name: str, home: Path) -> Self:
        seen = inventory(home, None)
        named = {each.name: each for each in seen.records if each.path is not None}
        found = next((each for key, each in named.items() if is_same_name(key, name)), None)
        if found is None or found.path is None:
            hint = did_you_mean(name, named) or f"There are: {', '.join(sorted(named))}."
            raise ExtensionNotLoadedError(
                f'no bundled or installed extension is called "{name}". {hint} '
                f"A folder is given as a path: Path(__file__).parents[1], or ./{name}"
            )
        return cls(found.name, found.path, by_name=True)


def _not_loaded(
    place: _Place, home: Path, record: ExtensionRecord | None, problems: Iterable[Problem]
) -> ExtensionNotLoadedError:
    if record is None:
        told = "it was not found"
    else:
        told = f"{record.status}: {record.reason}" if record.reason else str(record.status)
        if record.status is Status.ENABLED:
            told = "it was not loaded"
    more = [str(each) for each in problems if str(each) not in told]
    text = "\n".join([f"{place.name} is not loaded: {told}", *more])
    return ExtensionNotLoadedError(place.real(text, home), record)


def write_below(folder: Path, path: str, text: str) -> Path:
    """Write a file, its folders too; returns its path."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file
