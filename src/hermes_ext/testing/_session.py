"""The real Hermes with a scripted model, for tests of an extension."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hermes_ext._values import frozen
from hermes_ext.hosts.hermes.process.gateway import Gateway
from hermes_ext.hosts.hermes.process.home import HermesHome
from hermes_ext.hosts.hermes.process.processes import Run, Start, cold_start
from hermes_ext.testing._extension import _Place, write_below
from hermes_ext.testing.model_server import ModelRequest, Reply, ScriptedModel


@frozen(repr=False)
class SessionRun:
    """What came of one run of Hermes, or of one message to its API server.

    Attributes:
        answer: what the user got: standard output, or the answer's text.
        requests: what the model was asked in the meantime, titles and the like left out.
        tool_results: the text of each tool result that the model saw for the first time, in order.
        decisions: what the decision log has of it: one dict for each chain.
        returncode: of the process; 0, or the status if it is not 200, for the API server.
        stderr: of the process; "" for the API server.
    """

    answer: str
    requests: tuple[ModelRequest, ...]
    tool_results: tuple[str, ...]
    decisions: tuple[dict[str, Any], ...]
    returncode: int = 0
    stderr: str = ""

    def __repr__(self) -> str:
        results = "".join(f"\n- {text}" for text in self.tool_results) or " none"
        return (
            f"<SessionRun, exit code {self.returncode}, {len(self.requests)} request(s)\n"
            f"answer: {self.answer}\ntool results:{results}\nstderr: {self.stderr}>"
        )


class HermesSession:
    """A scratch Hermes. Made by the fixture `hermes_session`.

    Attributes:
        home: its Hermes home, a folder.
        project: the folder that it works in.
        model: the scripted model.
    """

    def __init__(self, installation: HermesHome, model: ScriptedModel) -> None:
        self.home = installation.home
        self.project = installation.project
        self.model = model
        self._installation = installation

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """All that the model was asked so far, titles and the like left out."""
        return tuple(self.model.main_requests)

    @property
    def decisions(self) -> tuple[dict[str, Any], ...]:
        """What is in the decision log so far: one dict for each chain."""
        file = self.home / "logs" / "extensions.jsonl"
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        return tuple(json.loads(line) for line in text.splitlines() if line)

    def write(self, path: str, text: str = "x\n") -> Path:
        """Put a file into the project; returns its path."""
        return write_below(self.project, path, text)

    def read(self, path: str) -> str:
        """The text of a file of the project."""
        return (self.project / path).read_text(encoding="utf-8")

    def run(self, prompt: str, *args: str, timeout: float = 120) -> SessionRun:
        """`hermes -z PROMPT`: one turn; what it prints is the answer.

        Args:
            prompt: what the user says.
            args: more arguments.
            timeout: seconds that it may take.

        Raises:
            AssertionError: it failed, or asked the model more often than there are replies.
            TimeoutError: it took longer; it is killed then.
        """
        return self._run(lambda: self._installation.oneshot(prompt, *args, timeout=timeout))

    def chat(self, prompt: str, *args: str, timeout: float = 120) -> SessionRun:
        """`hermes chat -q PROMPT`: one turn of a session that is kept; `--continue` goes on.

        The arguments and errors are those of `run`.
        """
        return self._run(lambda: self._installation.chat(prompt, *args, timeout=timeout))

    def hermes(self, *args: str, timeout: float = 120) -> Run:
        """Any `hermes` command, in the project; returns its exit code and output."""
        return self._installation.cli(*args, timeout=timeout)

    @contextmanager
    def api(self, *, timeout: float = 90) -> Iterator[ApiSession]:
        """The gateway with its API server, up and running; it takes some seconds.

        Args:
            timeout: seconds that it may take to come up.
        """
        with self._installation.gateway(timeout=timeout) as gateway:
            yield ApiSession(self, gateway)

    def _run(self, start: Any) -> SessionRun:
        seen = self._mark()
        done: Run = start()
        self.check()
        done.check()
        return self._since(seen, done.stdout.rstrip("\n"), done.returncode, done.stderr)

    def check(self) -> None:
        """Raises AssertionError if the model was asked more often than there are replies."""
        if self.model.exhausted:
            asked = len(self.model.main_requests)
            last = self.model.main_requests[-1]
            told = "".join(f"\n- {text}" for _, text in last.tool_results)
            raise AssertionError(
                f"the model was asked {asked} times, {self.model.exhausted} more than it has "
                f"replies; the tool results of the last request:{told or ' none'}"
            )

    def _mark(self) -> tuple[int, int]:
        return len(self.requests), len(self.decisions)

    def _since(
        self, mark: tuple[int, int], answer: str, returncode: int = 0, stderr: str = ""
    ) -> SessionRun:
        requests = self.requests[mark[0] :]
        known = len(requests[0].tool_results) if requests else 0
        results = [text for _, text in requests[-1].tool_results[known:]] if requests else []
        decisions = self.decisions[mark[1] :]
        return SessionRun(answer, requests, tuple(results), decisions, returncode, stderr)


class ApiSession:
    """Hermes' API server, running. Made by `HermesSession.api`."""

    def __init__(self, session: HermesSession, gateway: Gateway) -> None:
        self._session = session
        self._gateway = gateway

    @property
    def output(self) -> str:
        """What the gateway has printed so far."""
        return self._gateway.output

    def ask(
        self, prompt: str, *, session_id: str | None = None, timeout: float = 120
    ) -> SessionRun:
        """One message of a user.

        Args:
            prompt: what the user says.
            session_id: the session to continue; the server makes one up by default.
            timeout: seconds to wait for the answer.

        Raises:
            AssertionError: the model was asked more often than there are replies.
        """
        seen = self._session._mark()
        answer = self._gateway.ask(prompt, session_id, timeout=timeout)
        self._session.check()
        code = 0 if answer.status == 200 else answer.status
        return self._session._since(seen, answer.text, code)


@contextmanager
def open_session(
    base: Path,
    replies: Sequence[Reply | str],
    *,
    script: Any = None,
    extensions: Sequence[str | Path] = (),
    config: Mapping[str, Any] | None = None,
    hermes_config: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    git: bool = True,
    start: Start | None = None,
) -> Iterator[HermesSession]:
    """A session below `base`; the fixture's arguments are these."""
    if script is not None and replies:
        raise TypeError("give replies or a script, not both")
    made = [Reply(each) if isinstance(each, str) else each for each in replies]
    with ScriptedModel(script if script is not None else made) as model:
        installation = HermesHome(
            base, model, config=hermes_config, extra_env=env, git=git, start=start or cold_start
        )
        places = [_Place.of(each, installation.home) for each in extensions]
        section = dict(config or {})
        on = [place.name for place in places if place.by_name]
        if on:
            section["on"] = [*section.get("on", ()), *on]
        for place in places:
            if not place.by_name:
                installation.install_extension(place.path)
        installation.write_config({"extensions": section})
        yield HermesSession(installation, model)
