"""Count what one `write_file` call costs on its way through this package, in the real Hermes.

    python benchmarks/count_call.py            # the figures, and the modules in order
    python benchmarks/count_call.py --check    # exit 1 where a bar is missed

Hermes runs in this process, in a scratch home, against a model server on loopback that plays a
script. The home has one extension with one passing handler, and the decision log is on. The first
call of a process also imports what is imported late, so the second call is counted: from the moment
Hermes begins the tool call until its result is among the messages for the model and the log has its
line.

A profile function in every thread but the watchdog's sees each call and each return:

- modules: the files of `hermes_ext` in which a Python function is entered, in order of first entry;
  what only the thread that writes the decision log enters comes last. The package's own guard is in
  force while any extension is. It is a handler, as the extension's is: the modules that it alone
  enters are listed apart, and the bar is for the others.
- copies: the distinct dicts with the call's arguments (its names, and the text that marks it) that
  any frame holds in a local variable, is given or returns, and that this package made, the guard
  included: the innermost frame that is neither the standard library's nor compiled from text is
  ours when the dict first shows. Each dict is held until the end, so that no two have one `id`.
- coercions: calls of Hermes's `coerce_tool_args` by this package.
- digests: texts with the mark that this package gives to `hashlib.sha256`, which is wrapped.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from report import Report, run

COPIES_BAR = 4
DIGESTS_BAR = 4
MODULES_BAR = 25

WATCHDOG = "hermes-ext-watchdog"  # looks once a second, whether there is a call or not
LOG_THREAD = "hermes-ext-decisions"
MARK = "counted, word by word"
EXTENSION = """\
from hermes_ext import register_hook


@register_hook("intercept_tool_call")
def passing(tool_name, tool_args):
    return None
"""

_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))


class Counter:
    """What is counted of one call, while `on`.

    Attributes:
        in_turn: the files that the call entered, below the package, in order.
        by_guard: those that only the package's own guard entered.
        copies: where each copy of the arguments was first seen.
        digests: where each digest of them was made.
        coercions: where each coercion of them was asked for.
    """

    def __init__(self, package: Path) -> None:
        self.package = f"{package}{os.sep}"
        self.on = False
        self.in_turn: dict[str, None] = {}
        self._entered_by_log: dict[str, None] = {}
        self._entered_by_guard: dict[str, None] = {}
        self.copies: list[str] = []
        self.digests: list[str] = []
        self.coercions: list[str] = []
        self._seen: dict[int, Any] = {}

    def watch(self) -> None:
        """See every thread that starts from now on, and this one."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        made = hashlib.sha256

        def sha256(data: bytes = b"", **options: Any) -> Any:
            if self.on and MARK.encode() in bytes(data):
                self._note(self.digests, sys._getframe(1))
            return made(data, **options)

        hashlib.sha256 = sha256

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count while open."""
        self.on = True
        try:
            yield
        finally:
            self.on = False

    @property
    def modules(self) -> list[str]:
        """All that were entered, but for the guard's."""
        return [*(self.in_turn | self._entered_by_log)]

    @property
    def by_guard(self) -> list[str]:
        return [module for module in self._entered_by_guard if module not in self.modules]

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self.on or threading.current_thread().name == WATCHDOG:
            return
        if event == "call":
            self._enters(frame)
            # What a frame begins with was made by its caller.
            self._look(frame.f_locals.values(), frame.f_back)
        else:
            self._look(frame.f_locals.values(), frame)
            if event == "return":
                self._look((argument,), frame)

    def _enters(self, frame: FrameType) -> None:
        code = frame.f_code
        if code.co_filename.startswith(self.package):
            entered = self._entered_by_guard if self._is_guard_s(frame) else self.in_turn
            if threading.current_thread().name == LOG_THREAD:
                entered = self._entered_by_log
            entered.setdefault(code.co_filename.removeprefix(self.package))
        elif code.co_name == "coerce_tool_args":
            self._note(self.coercions, frame.f_back)

    def _is_guard_s(self, frame: FrameType | None) -> bool:
        while frame is not None and frame.f_code.co_filename != f"{self.package}guard/guard.py":
            frame = frame.f_back
        return frame is not None

    def _look(self, values: Iterable[Any], frame: FrameType | None) -> None:
        for value in values:
            if isinstance(value, dict) and id(value) not in self._seen and _is_the_call(value):
                self._seen[id(value)] = value
                self._note(self.copies, frame)

    def _note(self, places: list[str], frame: FrameType | None) -> None:
        """Note the place, if what is done there is done by this package."""
        while frame is not None and _is_nobody_s(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is not None and frame.f_code.co_filename.startswith(self.package):
            file = frame.f_code.co_filename.removeprefix(self.package)
            places.append(f"{file}:{frame.f_lineno} {frame.f_code.co_name}")


def _is_the_call(value: Mapping[Any, Any]) -> bool:
    found = dict.get(value, "content") if len(value) == 2 else None
    return isinstance(found, str) and found == MARK


def _is_nobody_s(file: str) -> bool:
    return file.startswith(("<", *_LIBRARIES)) and "site-packages" not in file


def count() -> Counter:
    """The figures of one call."""
    import hermes_ext

    counter = Counter(Path(hermes_ext.__file__).parent)
    counter.watch()
    from bench_hermes import an_agent, scratch_home

    from hermes_ext.testing import ScriptedModel

    with tempfile.TemporaryDirectory() as folder, ScriptedModel(_script) as model:
        home = Path(folder)
        scratch_home(home, model)
        (home / "extensions").mkdir()
        (home / "extensions" / "passing.py").write_text(EXTENSION)
        agent = an_agent(model)
        _turn(agent)
        _around(agent, counter)
        _turn(agent)
        if (home / "project" / "notes.txt").read_text() != MARK:
            raise RuntimeError("the tool did not run")
        if '"tool":"write_file"' not in (home / "logs" / "extensions.jsonl").read_text():
            raise RuntimeError("the log has no line of the call")
        os.chdir("/")
    if not counter.modules:
        raise RuntimeError("nothing was counted")
    return counter


def _script(request: Any) -> Any:
    from hermes_ext.testing import Reply, ToolUse

    if request.messages and request.messages[-1].get("role") == "tool":
        return Reply("Done.")
    call = ToolUse("write_file", {"path": "notes.txt", "content": MARK})
    return Reply(tool_calls=(call,))


def _turn(agent: Any) -> None:
    result = agent.run_conversation("write the notes", conversation_history=[])
    if not str(result["final_response"]).startswith("Done."):
        raise RuntimeError(f"the turn went wrong: {result['final_response']!r}")


def _around(agent: Any, counter: Counter) -> None:
    """Count what happens while Hermes executes the tool calls of an answer, and is logged."""
    execute: Callable[..., Any] = agent._execute_tool_calls

    def counted(*args: Any, **kwargs: Any) -> Any:
        from hermes_ext.turns.state import current_turn

        log = current_turn().services.log
        log.flush()
        with counter.counting():
            try:
                return execute(*args, **kwargs)
            finally:
                log.flush()

    agent._execute_tool_calls = counted


def measure(report: Report) -> None:
    """Print the figures, and hold them to their bars."""
    counter = count()
    print("one write_file, one passing handler, log on: entered, in order")
    for number, module in enumerate(counter.modules, 1):
        print(f"  {number:>3}  {module}")
    print("entered by the package's own guard alone")
    for module in counter.by_guard:
        print(f"       {module}")
    for name, places in (
        ("copies of the arguments", counter.copies),
        ("digests of them", counter.digests),
        ("coercions of them", counter.coercions),
    ):
        print(name)
        for place in places:
            print(f"       {place}")
    report.bar("copies", len(counter.copies), COPIES_BAR, unit="", digits=0)
    report.bar("digests", len(counter.digests), DIGESTS_BAR, unit="", digits=0)
    report.bar("modules entered", len(counter.modules), MODULES_BAR, unit="", digits=0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, print, and say whether the bars hold."""
    return run(__doc__, arguments, measure)


if __name__ == "__main__":
    # Hermes leaves threads of its own; what was counted is printed, so do not wait for them.
    code = main()
    sys.stdout.flush()
    os._exit(code)
