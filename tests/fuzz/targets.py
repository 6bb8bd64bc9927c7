"""What is fuzzed: each target takes bytes, and raises where a promise is broken.

A target raises nothing else: what the code under it may refuse, it may refuse.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from attrs import frozen
from tests.fuzz.supply import Dict, HostileDict, List, Number, Supply, Text

from hermes_ext import HookResult, Runtime, ToolCall, register_hook
from hermes_ext._problems import Problem
from hermes_ext._text import canonical_name
from hermes_ext.chain.fold import run
from hermes_ext.chain.manager import HookManager
from hermes_ext.cli import slash
from hermes_ext.effects import Effects, Machine, effects_of
from hermes_ext.exceptions import ConfigError, ResultError
from hermes_ext.hooks.payloads import LLMRequest, Scope, ToolResult, UserInput
from hermes_ext.hooks.registration import build_handlers, collecting
from hermes_ext.hooks.source import Source
from hermes_ext.hooks.table import TABLE, Action, HookName
from hermes_ext.hosts.hermes.adapter.gate.verdicts import plain
from hermes_ext.settings import patterns
from hermes_ext.settings.by_schema import schema_fault
from hermes_ext.settings.config import read_config
from hermes_ext.settings.editing import ListEdit, edit_lists
from hermes_ext.settings.manifest import incompatibility, parse_manifest
from hermes_ext.settings.merging import merged_settings
from hermes_ext.trust.place import Project
from hermes_ext.trust.store import TrustStore, is_still_trusted
from hermes_ext.trust.tree import read_tree
from hermes_ext.trust.walk import TreeError
from hermes_ext.turns.decisions.canonical import canonical_json
from hermes_ext.turns.decisions.level import LogLevel
from hermes_ext.turns.decisions.line import DecisionEvent, build_line
from hermes_ext.turns.decisions.log import DecisionLog
from hermes_ext.turns.decisions.reading import read_decisions

__all__ = ["SECONDS", "TARGETS", "Broken", "Target"]

SECONDS: Final = 10.0
"""CPU seconds that nothing may take that is given a few hundred bytes."""


class Broken(AssertionError):
    """A promise does not hold."""


@frozen
class Target:
    """One thing that is fuzzed.

    run: raises where a promise is broken. promises: what it tries, in a line. words: the file with
    what texts are made of that get further than random bytes do.
    """

    name: str
    run: Callable[[bytes], None]
    promises: str
    words: Path

    @property
    def tokens(self) -> tuple[bytes, ...]:
        """What its texts are made of; () where it takes no text."""
        if not self.words.exists():
            return ()
        lines = self.words.read_text("ascii").splitlines()
        texts = (line[1:-1].encode().decode("unicode_escape") for line in lines)
        return tuple(text.encode("utf-8", "surrogatepass") for text in texts)

    @property
    def seeds(self) -> tuple[bytes, ...]:
        """What it begins with."""
        return tuple(each.read_bytes() for each in sorted((CORPUS / self.name).glob("*")))


TARGETS: Final[dict[str, Target]] = {}


CORPUS: Final = Path(__file__).parent / "corpus"
_WORDS: Final = Path(__file__).parent / "tokens"


def target(promises: str, *, like: str = "") -> Callable[[Callable[[bytes], None]], Any]:
    """Names a function as a target. like: the target whose tokens it uses."""

    def named(function: Callable[[bytes], None]) -> Callable[[bytes], None]:
        @functools.wraps(function)
        def run_limited(data: bytes) -> None:
            with limited(SECONDS), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # e.g. of coroutines that were dropped
                function(data)

        name = function.__name__
        words = _WORDS / f"{like or name}.txt"
        TARGETS[name] = Target(name, run_limited, promises, words)
        return run_limited

    return named


def holds(promise: object, told: str, *values: object) -> None:
    """Raises unless the promise holds."""
    if not promise:
        raise Broken(": ".join([told, *(repr(value)[:400] for value in values)]))


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises where this takes more CPU time. Only the main thread can be told so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    late: list[bool] = []

    def stop(*_: object) -> None:
        late.append(True)
        raise Broken(f"it takes more than {seconds} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    # Foreign code, and ours where a handler's failure is meant, catches what `stop` raises.
    holds(not late, f"it takes more than {seconds} s")


@functools.cache
def scratch() -> Path:
    """A folder of this process for what is read from the disk."""
    folder = Path(tempfile.mkdtemp(prefix="hermes-ext-fuzz-")).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def folder_of(name: str) -> Path:
    """A folder of a target."""
    made = scratch() / name
    made.mkdir(mode=0o700, exist_ok=True)
    return made


def _lines(data: bytes) -> int:
    """At least as many lines as any reader of YAML counts."""
    return len(re.split(rb"\r\n|[\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9]", data))


def _check_problems(problems: tuple[Problem, ...], file: Path, data: bytes) -> None:
    for problem in problems:
        holds(problem.file == file, "a problem names another file", problem)
        line = problem.line
        holds(line is None or 1 <= line <= _lines(data) + 1, "no such line", problem, data)
        holds(str(problem).isprintable(), "a problem is not printable", problem)
        json.dumps(problem.to_json())


def _yaml(data: bytes) -> Any:
    """What PyYAML makes of it; None where it makes nothing of it."""
    # What is nested deeply ends the process in some versions of libyaml, so it is not used.
    try:
        return yaml.load(data.decode("utf-8-sig"), Loader=yaml.SafeLoader)
    except Exception:  # noqa: BLE001 - whatever PyYAML raises
        return None


# -- configuration --------------------------------------------------------------------------------


@target(
    "config.yaml: reading raises nothing; problems have a place; what is wrong loosens nothing",
)
def config(data: bytes) -> None:
    home = folder_of("config")
    file = home / "config.yaml"
    file.write_bytes(data)
    read = read_config(home)
    _check_problems(read.problems, file, data)
    names = {*read.settings, *read.on, *read.disabled, "workflow-guard", ""}
    for name in names:
        read.is_on(name), read.is_disabled(name), read.is_required(name), read.hooks_off(name)
        read.is_overridable(name), read.is_observed(name), read.priority_of(name, "x")
        read.project_may_set_path(name, ("a", "b")), read.line_of_name("on", name)
        merged = merged_settings(name, read)
        _check_problems(merged.problems, file, data)
        holds(merged.origins is not None, "origins")
    document = _yaml(data)
    section = document.get("extensions") if isinstance(document, dict) else None
    if isinstance(section, dict):
        if section.get("enabled") is not False:
            holds(read.enabled, "enabled is false though nothing says so", section)
        if str(section.get("ask_without_human")).lower() != "approve":
            holds(read.ask_without_human == "block", "approves by itself", section)
        if str(section.get("confine_unavailable")).lower() != "ask":
            holds(read.confine_unavailable == "block", "runs unconfined after a yes", section)
        if str(section.get("confine_minimum")).lower() != "landlock":
            holds(read.confine_minimum == "namespaces", "takes less than namespaces", section)
        for key in ("disabled", "observe", "overridable", "project_may_set"):
            if not isinstance(section.get(key), list):
                holds(getattr(read, key) == (), f"{key} is no list and names somebody", section)


@target(
    "config.yaml: every start succeeds; what is required and missing has all calls refused",
    like="config",
)
def start(data: bytes) -> None:
    home = folder_of("start")
    (home / "config.yaml").write_bytes(data)
    (home / "work").mkdir(exist_ok=True)
    read = read_config(home)
    if read.global_dir_given:
        return  # it might name any folder of this machine, whose code would be loaded
    required = read.required if read.enabled else ()
    runtime = Runtime.from_config(home=home, cwd=home / "work")
    try:
        missing = [name for name in required if canonical_name(name) != "workflow-guard"]
        holds(runtime.refusal or not missing, "a required extension is missing", missing)
        with runtime.turn(session_id="s") as turn:
            outcome = turn.intercept_tool_call("read_file", {"path": "a"})
            holds(outcome.blocked or not runtime.refusal, "not refused")
    finally:
        runtime.close()


@target(
    "enable, disable: what PyYAML reads is the same but for the list; comments stay; or refused",
    like="config",
)
def edits(data: bytes) -> None:
    file = folder_of("edits") / "config.yaml"
    supply = Supply(data[:2])
    key, adds = supply.pick(("on", "disabled")), supply.byte() % 3 > 0
    name = "fresh-name" if adds else "a"
    text = data[2:]
    file.write_bytes(text)
    edit = ListEdit("extensions", key, (name,) if adds else (), () if adds else (name,))
    try:
        edited = edit_lists(file, [edit], same=canonical_name)
    except ConfigError as error:
        holds(file.read_bytes() == text, "it refused, and wrote", error)
        holds(error.path == file and "\n" not in str(error), "an error without its file", error)
        return
    after = file.read_bytes()
    if not edited.changes:
        holds(after == text, "it changed nothing, and wrote")
        return
    old, new = _yaml(text), _yaml(after)
    if old is None and text.strip():
        return  # Hermes reads neither
    holds(isinstance(new, dict), "no mapping any more", text, after)
    holds(_other(old, key) == _other(new, key), "something else changed", text, after)
    had, has = _named(old, key), _named(new, key)
    if adds:
        # A number or a yes in such a list is the text that is written.
        holds(has == [*had, name], "another list", text, after)
    else:
        left = [each for each in had if canonical_name(str(each)) != canonical_name(name)]
        holds(has == left, "another list", text, after)
    comments = [line.strip() for line in text.splitlines() if line.strip().startswith(b"#")]
    if adds:
        there = iter(line.strip() for line in after.splitlines())
        holds(all(comment in there for comment in comments), "a comment is gone", text, after)
    again = edit_lists(file, [edit], same=canonical_name)
    holds(not again.changes, "twice is not once", text, after)
    found = canonical_name(name) in map(canonical_name, getattr(read_config(file.parent), key))
    if _is_alone(new):
        holds(found is adds, "it reads otherwise than it writes", text, after)


def _is_alone(document: Any) -> bool:
    """Whether no other key of the section is read as `on`."""
    section = document.get("extensions")
    return not (isinstance(section, dict) and {True, "on"} <= set(section))


def _key_of(section: Any, key: str) -> Any:
    return True if key == "on" and key not in section and True in section else key


def _named(document: Any, key: str) -> list[Any]:
    section = document.get("extensions") if isinstance(document, dict) else None
    found = section.get(_key_of(section, key)) if isinstance(section, dict) else None
    return found if isinstance(found, list) else []


def _other(document: Any, key: str) -> str:
    """What stands beside the list; a section that has nothing else counts as none."""
    if not isinstance(document, dict):
        return repr(document or {})
    section = document.get("extensions")
    rest = {name: value for name, value in document.items() if name != "extensions"}
    if isinstance(section, dict):
        left = {name: each for name, each in section.items() if name != _key_of(section, key)}
        return repr(rest | ({"extensions": left} if left else {}))
    return repr(rest | ({"extensions": section} if section is not None else {}))


@target(
    "extension.yaml and settings under its schema: raise nothing, problems have a place",
)
def manifest(data: bytes) -> None:
    said, _, settings = data.partition(b"%%\n")
    folder = folder_of("manifest")
    file = folder / "extension.yaml"
    read = parse_manifest(file, said)
    _check_problems(read.problems + read.warnings, file, said)
    if read.problems:
        return
    fault = incompatibility(read)
    holds(fault is None or fault.isprintable(), "the reason is not printable", fault)
    with quick_patterns():
        wrong = schema_fault(read)
        if wrong is not None:
            _check_problems((wrong,), file, said)
        indented = b"".join(b"    " + line for line in settings.splitlines(keepends=True))
        (folder / "config.yaml").write_bytes(b"extensions:\n  x:\n" + indented)
        merged = merged_settings("x", read_config(folder), read)
        for problem in merged.problems + merged.warnings:
            holds(str(problem).isprintable(), "a problem is not printable", problem)
        holds(merged.origins is not None, "origins")


@contextlib.contextmanager
def quick_patterns() -> Iterator[None]:
    """Patterns are tried for a moment only, so that many can be tried."""
    before = patterns.PATTERN_SECONDS
    patterns.PATTERN_SECONDS = 0.3
    try:
        yield
    finally:
        patterns.PATTERN_SECONDS = before


@target(
    "patterns in a schema of settings: what is let through gets done",
)
def regex(data: bytes) -> None:
    pattern, _, text = data.decode("utf-8", "surrogateescape").partition("\n")
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError, ValueError):
        return
    text = (text * 4)[:60]
    with quick_patterns():
        ends = patterns.patterns_end({"pattern": pattern}, text)
    if ends:
        compiled.search(text)  # the time is limited


# -- trust ----------------------------------------------------------------------------------------

_DIGEST: Final = "a" * 64


@target(
    "trusted.json: only what it says is trusted; damaged is an error with the file, never a yes",
)
def trust_store(data: bytes) -> None:
    home = folder_of("trust_store")
    store = TrustStore(home)
    store.folder.mkdir(mode=0o700, exist_ok=True)
    store.file.touch(mode=0o600)
    store.file.write_bytes(data)
    try:
        entries = store.entries()
        trusted = is_still_trusted(Path("/p"), _DIGEST, home)
    except ConfigError as error:
        holds(error.path == store.file and error.hint, "an error without its file", error)
        holds("\n" not in str(error), "an error of several lines", error)
        return
    holds(all(each.path.is_absolute() for each in entries), "a path that is not absolute", entries)
    told = json.loads(data)
    said = any(
        Path(each["path"]) == Path("/p") and each["digest"] == _DIGEST for each in told["trusted"]
    )
    holds(trusted is said, "trust that nobody gave, or lost", told)


@target(
    "a copy of a trusted tree: it is what was trusted, or none",
)
def trust_copy(data: bytes) -> None:
    home = folder_of("trust_copy")
    store = TrustStore(home)
    copies = store.folder / "copies"
    copies.mkdir(mode=0o700, parents=True, exist_ok=True)
    for digest in (_DIGEST, hashlib.sha256(b"").hexdigest()):
        (copies / f"{digest}.zip").write_bytes(data)
        files = store.copy(digest)
        if files is not None:
            holds(_digest_of(files) == digest, "another tree", files)


def _digest_of(files: Mapping[str, bytes]) -> str:
    """The digest as the documents describe it."""
    lines = [
        os.fsencode(path) + b"\0" + hashlib.sha256(data).hexdigest().encode() + b"\n"
        for path, data in files.items()
    ]
    return hashlib.sha256(b"".join(sorted(lines))).hexdigest()


@target(
    "a project's tree: the digest is that of the documents, and any change is another one",
)
def tree(data: bytes) -> None:
    supply = Supply(data)
    root = folder_of("tree") / "project"
    shutil.rmtree(root, ignore_errors=True)
    top = root / ".hermes" / "extensions"
    top.mkdir(parents=True)
    files: dict[str, bytes] = {}
    while not supply.empty and len(files) < 6:
        name, content = supply.raw(30), supply.raw(60)
        parts = [part for part in name.split(b"/") if part not in (b"", b".", b"..")]
        path = b"/".join([os.fsencode(top), *parts])
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "xb") as file:
                file.write(content)
        except (OSError, ValueError):
            continue
        if b"__pycache__" not in parts[:-1] and not parts[-1].endswith((b".pyc", b".pyo")):
            files["/".join(["extensions", *map(os.fsdecode, parts)])] = content
    try:
        found = read_tree(Project(root))
    except TreeError as error:
        holds("\n" not in str(error), "an error of several lines", error)
        return
    holds(found.digest == _digest_of(files), "another digest", files, dict(found.files))
    found.names()
    for path, content in files.items():
        holds(found.read(path) == content, "another content", path)
        (root / ".hermes" / path).write_bytes(content + b"x")
        try:
            changed = read_tree(Project(root)).digest
        except TreeError:
            changed = ""
        holds(changed != found.digest, "a change is not seen", path)
        break


# -- handlers -------------------------------------------------------------------------------------

_EVENTS: Final[dict[HookName, Any]] = {
    HookName.TRANSFORM_USER_INPUT: lambda: UserInput("hello"),
    HookName.BEFORE_LLM_CALL: lambda: LLMRequest([{"role": "user", "content": "x"}], "system"),
    HookName.INTERCEPT_TOOL_CALL: lambda: ToolCall("terminal", {"command": "ls"}, "c1"),
    HookName.TRANSFORM_TOOL_RESULT: lambda: ToolResult("terminal", {"command": "ls"}, "c1", "a"),
}
_ARGUMENTS: Final = ("action", "value", "metadata", "keep", "key")


class Lying(HookResult):  # type: ignore[type-arg]
    """A result whose class is not ours."""

    @property  # type: ignore[override]
    def metadata(self) -> Any:
        raise SystemExit("metadata")


def _result(supply: Supply) -> Any:
    """What a handler may return: results, results that were broken, and anything else."""
    kind = supply.byte() % 8
    if kind == 0:
        return supply.value()
    if kind == 1:
        return supply.odd()
    if kind == 2:
        return _later
    action = supply.pick([*Action])
    value = supply.value() if supply.flag() else supply.pick(("text", {"command": "x"}, [{}]))
    metadata = supply.value() if supply.flag() else None
    made = Lying if kind == 3 else HookResult
    try:
        result = made(action, value, metadata if isinstance(metadata, dict) else None)
    except (Exception, SystemExit):  # noqa: BLE001 - refused where it is made, by whatever
        result = made(Action.PASS)
    if kind == 4:  # of a class that is frozen, so somebody means it
        name = supply.pick(_ARGUMENTS)
        with contextlib.suppress(Exception):
            object.__setattr__(result, name, supply.value())
    return result


async def _later() -> None:
    return None


def _good(result: Any, allowed: frozenset[Action]) -> bool:
    """Whether it may be more than a failure."""
    if result is None:
        return True
    known = isinstance(result, HookResult) and type(result.action) is Action
    return known and result.action in allowed


@target("what a handler returns: never raises to the host, and a broken result is no pass")
def results(data: bytes) -> None:
    supply = Supply(data)
    hook = supply.pick([*HookName])
    guard = supply.flag()
    policy = supply.pick((None, "block", "pass", "ask"))
    if policy == "ask" and hook is not HookName.INTERCEPT_TOOL_CALL:
        policy = None
    observe = supply.byte() > 200
    returned = _result(supply)
    second = _result(supply) if supply.flag() else None
    rows = [(returned, guard, policy, observe), (second, True, None, False)]
    handlers = [
        _handler(hook, value, f"e{place}", guard=is_guard, on_error=on_error, observe=seen)
        for place, (value, is_guard, on_error, seen) in enumerate(rows)
    ]
    event = _EVENTS[hook]()
    manager = HookManager(handlers)
    try:
        outcome = run(
            manager.chain(hook.value, "terminal"), event, Scope(session_id="s"),
            strict=supply.flag(),
        )  # fmt: skip
    except Exception as error:
        raise Broken(f"a chain raised {type(error).__name__}: {error}") from error
    allowed = TABLE[hook].verdicts if guard else TABLE[hook].actions
    broken = not _good(returned, allowed)
    by_default = "block" if guard or hook is HookName.INTERCEPT_TOOL_CALL else "pass"
    if broken and not observe and (policy or by_default) == "block":
        holds(outcome.blocked, "a broken result is a pass", type(returned))
    if broken and not observe and policy == "ask":
        holds(outcome.action >= Action.ASK or outcome.asks, "a broken result is a pass")
    if not _good(second, TABLE[hook].verdicts) and not (outcome.blocked or outcome.answered):
        raise Broken(f"a guard's broken result is a pass: {type(second)}")
    _check_outcome(outcome, event)


def _handler(hook: HookName, value: Any, extension: str, *, observe: bool, **options: Any) -> Any:
    def answers(event: Any) -> Any:
        # Made in the call: nobody awaits what a handler would have returned that is not called.
        return _later() if value is _later else value

    answers.__name__ = extension
    if options["on_error"] is None:
        del options["on_error"]
    with collecting() as collected:
        register_hook(hook, **options)(answers)
    (built,) = build_handlers(
        extension, collected, source=Source.GLOBAL, config=None, observe=observe
    )
    return built


def _check_outcome(outcome: Any, event: Any) -> None:
    """What a host and the log do with an outcome."""
    holds(outcome.action in [*Action], "an action that there is not", outcome.action)
    outcome.final(event.value)
    json.dumps([step.to_json() for step in outcome.steps])
    if outcome.blocked:
        told = json.loads(outcome.as_tool_result())
        holds(
            told["blocked_by_extension"] is True and "error" in told, "a block without words", told
        )
    told = {**outcome.to_json(), "value": outcome.final(event.value), "metadata": {}}
    for level in LogLevel:
        event_of_log = DecisionEvent(hook="x", before=event.value, outcome=told)
        if level is not LogLevel.OFF:
            canonical_json(build_line(event_of_log, level))


@target("HookResult(…): ResultError, or a result that is right")
def hook_result(data: bytes) -> None:
    supply = Supply(data)
    action = supply.value(1) if supply.byte() > 200 else supply.pick([*Action, *map(str, Action)])
    value = supply.value(2) if supply.flag() else supply.text()
    options: dict[str, Any] = {}
    if supply.flag():
        options["metadata"] = supply.value(2)
    if supply.flag():
        options["keep"] = supply.pick(("turn", "request", supply.value(1)))
    if supply.flag():
        options["key"] = supply.pick(("key", supply.value(1)))
    try:
        result = HookResult(action, value, **options)
    except ResultError as error:
        holds("\n" not in str(error).strip() or True, "")
        return
    except (RuntimeError, SystemExit):  # raised by methods of the value
        return
    holds(type(result.action) is Action, "no action", result.action)
    needs_text = {Action.BLOCK, Action.ASK, Action.INJECT_SYSTEM, Action.INJECT_USER}
    if result.action in needs_text:
        holds(type(result.value) is str and result.value.strip(), "no text", action)
    if result.action is Action.ANSWER:
        holds(type(result.value) is str, "no text", action)
    if result.action is Action.PASS:
        holds(result.value is None, "a pass with a value")
    holds(type(result.metadata) is dict, "metadata of another class")
    holds(result.keep in ("turn", "request"), "keep", result.keep)
    holds(result.key is None or type(result.key) is str, "key", result.key)


# -- tool calls -----------------------------------------------------------------------------------


@target("tool arguments: a guard sees what runs, whatever they are made of")
def tool_args(data: bytes) -> None:
    supply = Supply(data)
    args = {}
    for _ in range(supply.byte() % 4 + 1):
        with contextlib.suppress(RuntimeError):  # a hostile key beside another one
            args[supply.key()] = supply.value()
    if supply.flag():
        args = supply.pick((Dict, HostileDict, dict))(args)
    try:
        runs = plain(args)
    except (TypeError, RecursionError):
        runs = None  # it can be neither judged nor run
    except SystemExit as error:
        raise Broken("a value's own method ended the process") from error
    if runs is None:
        return
    holds(_is_plain(runs), "a value of another class is left", runs)
    holds(canonical_json(plain(runs)) == canonical_json(runs), "plain twice is another", runs)
    seen: list[Any] = []

    def guard(tool_args: dict[str, Any]) -> None:
        seen.append(canonical_json(tool_args))
        tool_args["changed"] = "by the guard"

    runtime = Runtime([register_hook("intercept_tool_call", guard=True)(guard)])
    texts = all(isinstance(key, str) for key in runs)
    with runtime.turn(session_id="s") as turn:
        outcome = turn.intercept_tool_call("mcp_tool", runs)
        final = outcome.final(runs)
    holds(seen or outcome.blocked, "nobody judged it")
    if seen and texts:
        holds(seen[0] == canonical_json(final), "the guard saw another call", seen, final)
    effects_of(ToolCall("terminal", runs, "c"), machine=_MACHINE)


def _is_plain(value: Any) -> bool:
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, Text | Number | Dict | List | HostileDict):
            return False
        if type(item) is dict:
            todo += [*item, *item.values()]
        elif type(item) in (list, tuple, set, frozenset):
            todo += item
        elif item is not None and type(item) not in (str, int, float, bool, bytes):
            return False
    return True


_PLACE: Final = Path("/nowhere/project")
_NEW: Final = Path("/nowhere/else/new")
_MACHINE: Final = Machine(cwd=_PLACE, homes=("/nowhere/home",), environ={})
_MOST: Final = 3_000


def _effects(tool: str, args: dict[str, Any]) -> Effects:
    found = effects_of(ToolCall(tool, args, "c"), machine=_MACHINE)
    # What it says of a fault of its own: it fails closed, and is a fault all the same.
    ours = [each for each in found.unknown if "cannot be understood (" in each]
    holds(not ours, "a fault of ours", ours)
    size = sum(map(len, (found.reads, found.changes, found.commands, found.mentions, found.texts)))
    holds(size <= _MOST * 10, "too much is listed", size)
    holds(found.exact or found.may_write, "not exact, and writes nothing")
    paths = (*found.reads, *found.writes, *found.searches, *found.mentions)
    holds(all(path.is_absolute() for path in paths), "a path is not absolute", paths)
    return found


@target(
    "patches: every path that a reader of the format finds is named, or more may be",
)
def patch(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    found = _effects("patch", {"mode": "patch", "patch": text})
    if not found.exact:
        return
    for path in _named_in(text):
        of_home = path == "~" or path.startswith("~/")
        at_home = path.replace("~", "/nowhere/home", 1) if of_home else path
        named = os.path.normpath(_PLACE / at_home.replace("\0", "\ufffd"))
        # Two slashes in front are one to Linux, and no other than two to `normpath`.
        place = Path(f"/{named.lstrip('/')}")
        holds(place in found.writes, "a path is not named", path, text)


_HEADERS: Final = (
    re.compile(r"\*\*\*\s*Update\s+File:\s*(.+)"),
    re.compile(r"\*\*\*\s*Add\s+File:\s*(.+)"),
    re.compile(r"\*\*\*\s*Delete\s+File:\s*(.+)"),
    re.compile(r"\*\*\*\s*Move\s+File:\s*(.+?)\s*->\s*(.+)"),
)


def _named_in(text: str) -> set[str]:
    """The paths that Hermes's reader finds, and one that only looks at headers."""
    named = set()
    for line in text.split("\n"):
        for header in _HEADERS:
            if match := header.match(line):
                named |= {part.strip() for part in match.groups()}
                break
    with contextlib.suppress(ImportError):
        from tools.patch_parser import parse_v4a_patch

        for operation in parse_v4a_patch(text)[0]:
            named |= {operation.file_path, operation.new_path or operation.file_path}
    return named - {""}


@target(
    "shell text: never fails, has an end, and what stands before it is not lost",
)
def shell(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    _effects("terminal", {"command": text})
    if "\0" in text:
        return  # no system runs that
    # A shell reads line after line, so the first one runs whatever comes then.
    found = _effects("terminal", {"command": f"touch {_NEW}\n{text}"})
    holds(not found.exact or _NEW in found.writes, "what stands before it is lost", text)


@target(
    "Python code: never fails, has an end, and what stands before it is not lost",
)
def python(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    _effects("execute_code", {"code": text})
    code = f'open("{_NEW}", "w")\n{text}'
    try:
        compile(code, "<code>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return  # nothing of it runs
    if re.match(r"\s*from\s+__future__", text):
        return
    found = _effects("execute_code", {"code": code})
    holds(not found.exact or _NEW in found.writes, "what stands before it is lost", text)


# -- log and chats --------------------------------------------------------------------------------


@target(
    "the decision log: any file is read, and what is written after it is read back",
)
def decision_log(data: bytes) -> None:
    path = folder_of("decision_log") / "extensions.jsonl"
    supply = Supply(data[:40])
    value = supply.value()
    path.write_bytes(data)
    before = list(read_decisions(path))
    holds(all(isinstance(line, dict) for line in before), "a line is no object")
    log = DecisionLog(path, supply.pick((LogLevel.DECISIONS, LogLevel.STEPS, LogLevel.PAYLOADS)))
    outcome = {"action": supply.pick([*map(str, Action)]), "value": value, "changed": supply.flag()}
    if supply.flag():
        outcome |= {"metadata": {"a": supply.value()}, "blocked_by": supply.text()}
    log.write(DecisionEvent(hook=supply.text(), before=value, outcome=outcome, session="fuzzed"))
    holds(log.flush(60), "the log is not written")
    written = path.read_bytes()
    holds(written.startswith(data), "what stood there has changed")
    (*_, last) = read_decisions(path)
    holds(last.get("session") == "fuzzed" or "error" in last, "the line is not read back", last)
    line = written.splitlines()[-1]
    holds(line.isascii() and line.decode().isprintable(), "a control character", line)
    holds(list(read_decisions(path, last=1)) == [last], "the last line is another")


@target(
    "/extensions in a chat: a text, and nothing changes",
)
def chat(data: bytes) -> None:
    home = folder_of("chat")
    (home / "config.yaml").write_text("extensions:\n  on: [workflow-guard]\n")
    (home / "extensions").mkdir(exist_ok=True)
    (home / "extensions" / "mine.py").write_text("x = 1\n")
    before = _stamps(home)
    told = slash(data.decode("utf-8", "surrogateescape"), home=home, cwd=home / "extensions")
    holds(isinstance(told, str) and told, "no text", told)
    holds("\x1b" not in told and "\0" not in told, "a control character", told)
    after = _stamps(home)
    holds(after == before, "something changed", after.items() ^ before.items())


def _stamps(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = {}
    for path in folder.rglob("*"):
        if "cache" in path.relative_to(folder).parts:
            continue  # what was read of manifests, to be quick the next time
        stat = path.stat()
        found[str(path)] = (stat.st_mode, stat.st_size, stat.st_mtime_ns)
    return found
