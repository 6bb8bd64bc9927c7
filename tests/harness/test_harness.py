"""The harness itself, proved with Hermes as it is: no plugin of ours enabled."""

from __future__ import annotations

import http.client
import json
import os
import threading
from collections.abc import Callable
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from tests.harness.compare import files, plain
from tests.harness.home import HermesHome
from tests.harness.warm import warm_start

from hermes_ext.hosts.hermes.process.gateway import free_port
from hermes_ext.hosts.hermes.process.processes import cold_start
from hermes_ext.testing.model_server import ModelRequest, Reply, ScriptedModel, ToolUse

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

FORMS = {
    "chat_completions": "chat",
    "anthropic_messages": "anthropic",
    "codex_responses": "responses",
    "bedrock_converse": "converse",
}


def write(name: str, content: str) -> ToolUse:
    return ToolUse("write_file", {"path": name, "content": content})


@pytest.mark.hermes
@pytest.mark.parametrize("api_mode", FORMS)
def test_tool_call_and_answer(
    model_factory: ModelFactory, hermes: HomeFactory, api_mode: str
) -> None:
    """A `-z` run writes the file that the script asks for and prints the final text."""
    pytest.importorskip(
        {"anthropic": "anthropic", "converse": "boto3"}.get(FORMS[api_mode], "openai")
    )
    model = model_factory([Reply("Writing.", (write("a.txt", "héllo"),)), Reply("All done. ✓")])
    home = hermes(model, plugins=(), api_mode=api_mode)
    run = home.oneshot("please write")
    assert run.returncode == 0, run
    assert run.stdout == "All done. ✓\n", run
    assert (home.project / "a.txt").read_text(encoding="utf-8") == "héllo"
    first, second = model.main_requests
    assert first.form == FORMS[api_mode]
    assert first.stream
    assert "please write" in first.last_user
    assert "write_file" in first.tool_names
    assert "Hermes" in first.system
    [(call_id, result)] = second.tool_results
    assert call_id == "call_1"
    assert "a.txt" in result
    assert model.exhausted == 0


@pytest.mark.hermes
def test_parallel_tool_calls(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """Several calls of one reply all run, and their results go back in order."""
    calls = tuple(write(f"{n}.txt", f"text {n}") for n in range(3))
    model = model_factory([Reply(tool_calls=calls), Reply("Three files.")])
    home = hermes(model, plugins=(), git=True)
    run = home.oneshot("three files")
    assert run.stdout == "Three files.\n", run
    texts = [(home.project / f"{n}.txt").read_text(encoding="utf-8") for n in range(3)]
    assert texts == ["text 0", "text 1", "text 2"]
    assert [i for i, _ in model.main_requests[1].tool_results] == ["call_1", "call_2", "call_3"]


@pytest.mark.hermes
def test_server_error_is_retried(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """A 500 consumes a step, and Hermes asks again."""
    model = model_factory([Reply(status=500, error="overloaded"), Reply("Second try.")])
    run = hermes(model, plugins=()).oneshot("hello")
    assert run.stdout == "Second try.\n", run
    assert len(model.main_requests) == 2


@pytest.mark.hermes
def test_chat_is_saved_and_resumed(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """`chat -q` saves the session, and `--continue` sends it along."""
    model = model_factory([Reply("I heard zebra."), Reply("Still zebra.")])
    home = hermes(model, plugins=())
    assert "I heard zebra." in home.chat("say zebra").check().stdout
    assert "Still zebra." in home.chat("again", "--continue").check().stdout
    assert len(home.session_ids()) == 1
    assert [role for role, _ in home.session_rows()] == ["user", "assistant"] * 2
    second = model.main_requests[1]
    assert [m["role"] for m in second.messages] == ["user", "assistant", "user"]
    assert home.home / "state.db" in home.occurrences("say zebra")
    assert home.occurrences("say giraffe") == []


@pytest.mark.hermes
def test_a_port_that_is_taken(
    model_factory: ModelFactory, hermes: HomeFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway whose port another gateway has taken meanwhile is started with another."""
    pytest.importorskip("aiohttp")
    model = model_factory(lambda request: Reply("hello"))
    with hermes(model, plugins=()).gateway() as other:
        ports = iter([other.port, free_port()])
        monkeypatch.setattr("hermes_ext.hosts.hermes.process.home.free_port", lambda: next(ports))
        with hermes(model, plugins=()).gateway() as gateway:
            assert gateway.port != other.port
            assert gateway.ask("hi").text == "hello"


@pytest.mark.hermes
def test_gateway(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """The API server answers, streams, and continues a session by its id."""
    pytest.importorskip("aiohttp")

    def reply(request: ModelRequest) -> Reply:
        users = [m for m in request.messages if m["role"] == "user"]
        return Reply(f"{len(users)}: {request.last_user}")

    model = model_factory(reply)
    with hermes(model, plugins=()).gateway() as gateway:
        assert gateway.ask("one", session="s1").text == "1: one", gateway.output
        again = gateway.ask("two", session="s1", stream=True)
        other = gateway.ask("three", session="s2")
    assert (again.status, again.text, again.session_id) == (200, "2: two", "s1")
    assert other.text == "1: three"


@pytest.mark.hermes
def test_background_review_takes_no_step(model_factory: ModelFactory, hermes: HomeFactory) -> None:
    """The review agent offers tools like the main loop, and yet leaves the script alone."""
    pytest.importorskip("aiohttp")
    model = model_factory([Reply("first"), Reply("second")])
    home = hermes(model, plugins=(), config={"memory": {"nudge_interval": 1}})
    with home.gateway() as gateway:
        assert gateway.ask("I like zebras", session="s1").text == "first"
        model.wait_for(lambda seen: any(not request.is_main for request in seen))
        assert gateway.ask("and again", session="s1").text == "second"
    review = next(request for request in model.requests if not request.is_main)
    assert review.tools


@pytest.mark.hermes
@pytest.mark.parametrize("api_mode", ["chat_completions", "anthropic_messages"])
def test_iteration_summary_takes_a_step(
    model_factory: ModelFactory, hermes: HomeFactory, api_mode: str
) -> None:
    """The summary at the iteration limit offers no tools and belongs to the main loop."""
    if api_mode == "anthropic_messages":
        pytest.importorskip("anthropic")
    model = model_factory([Reply(tool_calls=(ToolUse("todo"),)), Reply("The summary.")])
    home = hermes(model, plugins=(), api_mode=api_mode)
    assert "The summary." in home.chat("go", "--max-turns", "1").stdout
    assert [bool(request.tools) for request in model.main_requests] == [True, False]


def test_driver(hermes: HomeFactory) -> None:
    """A Python driver runs with the home's environment and nothing else."""
    home = hermes(plugins=())
    run = home.python("import os; print(os.environ['HERMES_HOME'], os.getcwd())").check()
    assert run.stdout.split() == [str(home.home), str(home.project)]


@pytest.mark.hermes
def test_a_warm_start_is_as_good_as_a_cold_one(
    model_factory: ModelFactory, hermes: HomeFactory
) -> None:
    """Hermes sends, prints, writes and saves the same, however it was started."""
    told = []
    for start in (cold_start, warm_start):
        calls = (write("a.txt", "x"), ToolUse("terminal", {"command": "env | sort"}))
        model = model_factory([Reply(tool_calls=calls), Reply("Done.")])
        home = hermes(model, plugins=(), start=start)
        run = home.chat("please write").check()
        told.append(
            {
                "requests": [plain(home, request.body) for request in model.requests],
                "output": plain(home, [run.stdout, run.stderr]),
                "project": files(home.project),
                "home": {plain(home, str(p.relative_to(home.home))) for p in home.saved_text()},
                "rows": plain(home, home.session_rows()),
            }
        )
    assert told[0] == told[1]


PROGRAM = """
import __main__, atexit, os, sys
atexit.register(print, 'at exit')
print(__name__, __file__ == sys.argv[0], sys.argv[1:], __main__.__dict__ is globals())
print(os.getcwd(), sorted(os.environ.items()), sys.path, repr(sys.stdin.read()))
print(os.getpid() == os.getsid(0), sys.dont_write_bytecode, sys.stdout.encoding)
print('to stderr', file=sys.stderr)
print(sorted(name for name in sys.modules if name.startswith(('hermes', 'agent', 'tests'))))
exec(sys.argv[1])
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [("pass", 0), ("sys.exit(3)", 3), ("1 / 0", 1), ("os._exit(4)", 4), ("os.kill(0, 9)", -9)],
)
def test_a_program_finds_itself_as_after_a_cold_start(
    hermes: HomeFactory, end: str, code: int
) -> None:
    """A warmly started program has its own main module, environment, streams and exit code."""
    home = hermes(plugins=())
    script = home.base / "program.py"
    script.write_text(PROGRAM)
    told = []
    for start in (cold_start, warm_start):
        home.start = start
        run = home.python(script, end)
        assert run.returncode == code, run
        told.append([run.stdout, run.stderr.splitlines()[-1:]])
    assert told[0] == told[1]


@pytest.mark.parametrize("module", ["unheard_of", "click", "sitecustomize"])
def test_places_of_pythonpath_count(hermes: HomeFactory, module: str) -> None:
    """Modules are found there, and the earliest ones, also where the parent has others."""
    home = hermes(plugins=())
    place = home.base / "place"
    place.mkdir()
    (place / f"{module}.py").write_text("print(__name__, __file__)")
    script = home.base / "program.py"
    script.write_text(f"import sys\nprint('begins')\nimport {module}\nprint(sys.path)")
    told = []
    for start in (cold_start, warm_start):
        home.start = start
        run = home.python(script, env={"PYTHONPATH": os.pathsep.join([str(place), "/"])}).check()
        told.append(run.stdout)
    assert told[0] == told[1]
    assert f"{module} {place}" in told[0]


@pytest.mark.hermes
def test_what_is_parsed_ahead_is_as_parsed(hermes: HomeFactory) -> None:
    """The syntax tree of a file of Hermes is the same, and nobody else's to change."""
    home = hermes(plugins=())
    script = home.base / "program.py"
    script.write_text(
        "import ast, hashlib, importlib.util, pathlib\n"
        "tools = pathlib.Path(importlib.util.find_spec('tools').origin).parent\n"
        "for _ in range(2):\n"
        "    tree = ast.parse((tools / 'file_tools.py').read_text(encoding='utf-8'))\n"
        "    print(hashlib.sha256(ast.dump(tree).encode()).hexdigest())\n"
        "    tree.body.clear()\n"
    )
    told = []
    for start in (cold_start, warm_start):
        home.start = start
        told += home.python(script).check().stdout.split()
    assert len(told) == 4
    assert len(set(told)) == 1


def test_late_child_is_killed(hermes: HomeFactory) -> None:
    """A child that is late is killed, and what it printed is told."""
    with pytest.raises(TimeoutError, match="so far"):
        hermes(plugins=()).python(
            "import threading; print('so far', flush=True); threading.Event().wait()", timeout=1
        )


def test_script_errors_surface() -> None:
    """What a script callable raises comes out of the context, not only as a status."""

    def broken(request: ModelRequest) -> Reply:
        raise LookupError("no such step")

    model = ScriptedModel(broken)
    with pytest.raises(LookupError, match="no such step"), model:
        assert complete(model, "x") == 400


def test_wait_for_sees_requests_of_other_threads() -> None:
    """`wait_for` returns when the request has come, though its answer is held back."""
    gate = threading.Event()
    with ScriptedModel([Reply("late", delay_event=gate)]) as model:
        asking = threading.Thread(target=complete, args=(model, "slow one"))
        asking.start()
        model.wait_for(lambda seen: any(r.last_user == "slow one" for r in seen), 60)
        assert asking.is_alive()
        gate.set()
        asking.join(60)
        assert not asking.is_alive()
        with pytest.raises(TimeoutError):
            model.wait_for(lambda seen: len(seen) > 1, 0.01)


def complete(model: ScriptedModel, text: str) -> int:
    """The status of one main request to the server."""
    body = {"messages": [{"role": "user", "content": text}], "tools": [{"type": "function"}]}
    address = urlsplit(model.base_url)
    with closing(http.client.HTTPConnection("127.0.0.1", address.port, timeout=60)) as link:
        link.request("POST", "/v1/chat/completions", json.dumps(body))
        return link.getresponse().status
