"""Many sessions at once through the API server of the real Hermes, each with a plan of its own.

    python -m tests.load.sessions --sessions 64 --rounds 3 [--json]

All turns of a round are open at the same time: the model answers none before all have asked, and
the guard judges no session's first call before it has been asked for all. What each session may
write, and the secret that goes into everything of it, is in turn state in the first round and in
session state in all; every eighth session is in the same project, whose own guard forbids another
file. What crosses from one session to another shows in files, results and requests.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from attrs import asdict, frozen
from tests.harness.home import Gateway, HermesHome
from tests.harness.warm import warm_start
from tests.hermes.stage import plugin
from tests.load.figures import show
from tests.projects import Place

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse

PROJECTS = 8
FILES = 6
NEIGHBOURS = 9  # the file of another session
PATIENCE = 120.0

EXTENSION = """\
import threading
from pathlib import Path

from hermes_ext import HookResult, get_session_state, get_turn_state, register_hook

everybody = threading.Barrier({sessions})


@register_hook("transform_user_input")
def learn(user_message, session_id, state, session_state):
    name, round_, plan = user_message.split()
    if round_ == "1":
        session_state["plan"] = [int(digit) for digit in plan]
        session_state["secret"] = "SECRET-" + name
    state["name"], state["round"] = name, round_
    state["secret"] = session_state["secret"]


@register_hook("before_llm_call")
def tell(state, session_id):
    return HookResult.inject_system(state["secret"] + " in " + session_id)


@register_hook("intercept_tool_call")
def sign(tool_args, state, session_state):
    session_state.count("calls")
    text = f"{{get_session_state()['secret']}} {{state.count('calls')}}"
    return HookResult.rewrite({{**tool_args, "content": text}})


@register_hook("intercept_tool_call", guard=True, timeout=0)
def judge(tool_args, session_id, state, session_state):
    path = Path(tool_args["path"])
    assert get_turn_state() is state
    assert session_id == state["name"]
    assert tool_args["content"].startswith(state["secret"] + " ")
    if path.stem == "0" and path.parent.name == session_id:
        everybody.wait({patience})
    if path.parent.name != session_id or int(path.stem) not in session_state["plan"]:
        return HookResult.block("not in the plan of " + state["secret"])


@register_hook("transform_tool_result")
def stamp(result, state):
    return HookResult.rewrite(result + " for " + state["secret"])
"""

# A project's own guard: it forbids one file more, and says so if it judges another project.
PROJECT_GUARD = """\
from pathlib import Path

from hermes_ext import HookResult, register_hook


@register_hook("intercept_tool_call", guard=True)
def only_{number}(tool_args, session_id, project_root):
    if project_root.name != "p{number}" or int(session_id[1:]) % {projects} != {number}:
        return HookResult.block(f"CROSSED: {{session_id}} in {{project_root}}")
    if Path(tool_args["path"]).stem == "{number}":
        return HookResult.block("not in p{number}")
"""

# Hermes runs turns in the event loop's own pool, which on two cores has six threads.
WIDE = """\
import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(256)
run_in_executor = asyncio.BaseEventLoop.run_in_executor


def wide(loop, executor, function, *arguments):
    return run_in_executor(loop, executor or pool, function, *arguments)


def register(ctx):
    asyncio.BaseEventLoop.run_in_executor = wide
    from tools.terminal_tool import register_task_env_overrides

    for session, directory in json.loads(os.environ["DIRECTORIES"]).items():
        register_task_env_overrides(session, {"cwd": directory})
"""


@frozen
class Figures:
    """What was done, and what went wrong: nothing, or texts that say it."""

    sessions: int
    rounds: int
    tool_calls: int
    allowed: int
    blocked: int
    model_requests: int
    at_once: int
    seconds: float
    crossed: tuple[str, ...]


@dataclass
class _Model:
    """The model's part: a session's calls at once, after all sessions have asked."""

    sessions: int
    root: Path
    ready: threading.Barrier = field(init=False)

    def __post_init__(self) -> None:
        self.ready = threading.Barrier(self.sessions)

    def reply(self, request: ModelRequest) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return Reply(f"Done, {request.last_user.split()[0]}.")
        try:
            self.ready.wait(PATIENCE)
        except threading.BrokenBarrierError:  # raised, it would hide who did not come
            return Reply("Not all have asked.")
        name, round_, _ = request.last_user.split()
        neighbour = f"s{(int(name[1:]) + 1) % self.sessions}"
        places = [self.root / round_ / name / f"{number}.txt" for number in range(FILES)]
        places.append(self.root / round_ / neighbour / f"{NEIGHBOURS}.txt")
        calls = [
            ToolUse("write_file", {"path": str(place), "content": "x"}, f"call_{round_}_{number}")
            for number, place in enumerate(places)  # the same ids in all sessions
        ]
        return Reply(tool_calls=tuple(calls))


def plan_of(number: int) -> set[int]:
    """What a session may write: other files for its neighbours, and always something."""
    return {file for file in range(FILES) if (number * 37 + 23) >> file & 1} or {number % FILES}


def run(base: Path, sessions: int, rounds: int) -> Figures:
    """Start Hermes below `base`, have all sessions work, and compare."""
    work = base / "work"
    model = _Model(sessions, work)
    with ScriptedModel(model.reply) as server:
        home = HermesHome(
            base / "hermes",
            server,
            start=warm_start,
            config={"gateway": {"api_server": {"max_concurrent_runs": 0}}},
        )
        home.extension("plans", EXTENSION.format(sessions=sessions, patience=PATIENCE))
        plugin(home, "wide", WIDE)
        directories = {f"s{n}": str(_project(home, n % PROJECTS)) for n in range(sessions)}
        begun = time.monotonic()
        with home.gateway(env={"DIRECTORIES": json.dumps(directories)}) as gateway:
            answers = _talk(gateway, model, sessions, rounds)
        seconds = time.monotonic() - begun
        requests = server.main_requests
    crossed = [*answers, *_in_requests(requests), *_on_disk(work, sessions, rounds)]
    results = [text for request in requests for _, text in request.tool_results]
    # A round's request has the results of the rounds before it too: only the last has all.
    last = [one for one in requests if one.messages[-1]["role"] == "tool"]
    last = [one for one in last if one.last_user.split()[1] == str(rounds)]
    results = [text for one in last for _, text in one.tool_results]
    crossed += _in_results(last, rounds)
    blocked = sum("not in " in text for text in results)
    return Figures(
        sessions,
        rounds,
        len(results),
        len(results) - blocked,
        blocked,
        len(requests),
        sessions,
        round(seconds, 1),
        tuple(crossed),
    )


def _project(home: HermesHome, number: int) -> Path:
    root = home.base / f"p{number}"
    if not root.exists():
        place = Place(home.base, f"p{number}", home.home)
        place.add(f"only-{number}", PROJECT_GUARD.format(number=number, projects=PROJECTS))
        place.trust()
    return root


def _talk(gateway: Gateway, model: _Model, sessions: int, rounds: int) -> list[str]:
    """What was wrong with the answers; after the first that is, nobody waits for anybody."""
    wrong: list[str] = []

    def say(number: int, round_: int) -> None:
        name = f"s{number}"
        plan = "".join(map(str, sorted(plan_of(number)))) if round_ == 1 else "-"
        text = f"{name} {round_} {plan}"
        answer: object
        try:
            answer = said = gateway.ask(text, session=name, timeout=2 * PATIENCE)
            if (said.status, said.text) == (200, f"Done, {name}."):
                return
        except (OSError, http.client.HTTPException) as error:
            answer = repr(error)
        wrong.append(f"{name}, round {round_}: {answer}")
        model.ready.abort()

    with ThreadPoolExecutor(sessions) as people:
        for round_ in range(1, rounds + 1):
            list(people.map(say, range(sessions), [round_] * sessions))
            if wrong:
                return [*wrong, gateway.output[-4000:]]
    return wrong


def _in_requests(requests: list[ModelRequest]) -> list[str]:
    """Requests that hold another session's secret, or not their own where it belongs."""
    wrong = []
    for request in requests:
        name = request.last_user.split()[0]
        found = set(re.findall(r"SECRET-s\d+", json.dumps(request.body)))
        told = request.system.rpartition("\n")[2]
        if found != {f"SECRET-{name}"} or told != f"SECRET-{name} in {name}":
            wrong.append(f"request of {name}: {sorted(found)}, {told!r}")
    return wrong


def _in_results(last: list[ModelRequest], rounds: int) -> list[str]:
    """Verdicts that are not the session's own."""
    wrong = []
    for request in last:
        name = request.last_user.split()[0]
        number = int(name[1:])
        results = [text for _, text in request.tool_results]
        texts = [_expected(number, file) for file in [*range(FILES), NEIGHBOURS]] * rounds
        found = [text in result for text, result in zip(texts, results, strict=False)]
        if len(results) != len(texts) or not all(found):
            wrong.append(f"results of {name}: {results}")
    return wrong


def _expected(number: int, file: int) -> str:
    """What is in the result of writing a file."""
    if file not in plan_of(number):
        return f"not in the plan of SECRET-s{number}"
    return f"not in p{file}" if file == number % PROJECTS else f" for SECRET-s{number}"


def _on_disk(work: Path, sessions: int, rounds: int) -> list[str]:
    """Files that are there and should not be, are not there, or are another's."""
    wrong = []
    for number in range(sessions):
        for round_ in range(1, rounds + 1):
            folder = work / str(round_) / f"s{number}"
            found = {int(path.stem): path.read_text() for path in folder.glob("*")}
            texts = [text.split() for text in found.values()]
            names, counts = {name for name, _ in texts}, Counter(count for _, count in texts)
            allowed = plan_of(number) - {number % PROJECTS}
            if set(found) != allowed or names - {f"SECRET-s{number}"} or set(counts.values()) - {1}:
                wrong.append(f"files of s{number}, round {round_}: {found}")
    return wrong


def main() -> int:
    """Print the figures; 1 if anything crossed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        figures = run(Path(base), asked.sessions, asked.rounds)
    show(asdict(figures), as_json=asked.json)
    return 1 if figures.crossed else 0


if __name__ == "__main__":
    sys.exit(main())
