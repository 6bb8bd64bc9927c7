"""Hermes' gateway with its API server, as a client of it sees it."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_ext.hosts.hermes.process.processes import Started, ends_soon, text_of


@dataclass(frozen=True)
class Answer:
    """What the API server answered.

    session_id: of the `X-Hermes-Session-Id` header, "" without one.
    body: the JSON of a plain answer; of a streamed one `{"events": [...]}`.
    """

    status: int
    text: str
    session_id: str
    body: dict[str, Any]


class Gateway:
    """A running `hermes gateway run` with its API server on 127.0.0.1."""

    def __init__(self, port: int, key: str, process: Started, log: Path) -> None:
        self.port = port
        self._key = key
        self.process = process
        self._log = log

    @property
    def output(self) -> str:
        """What the gateway has printed so far."""
        return text_of(self._log)

    @property
    def port_was_taken(self) -> bool:
        """Whether something else has listened on its port."""
        return f"Port {self.port} already in use" in self.output

    def wait_until_up(self, timeout: float) -> None:
        """Block until the server answers; AssertionError if it ends or is late."""
        deadline = time.monotonic() + timeout
        while not self._answers():
            # The pause between two looks ends at once if the process does.
            if ends_soon(self.process) or time.monotonic() > deadline:
                raise AssertionError(f"no answer from the gateway:\n{self.output[-4000:]}")

    def ask(
        self,
        text: str | list[dict[str, Any]],
        session: str | None = None,
        stream: bool = False,
        *,
        timeout: float = 120,
    ) -> Answer:
        """Send one user message to `POST /v1/chat/completions`.

        session: the id of a session to continue (`X-Hermes-Session-Id`), new or old. Without it
        the server derives one from the first user message: equal texts share a session.
        """
        body = {"model": "hermes-agent", "messages": [{"role": "user", "content": text}]}
        sent = {} if session is None else {"X-Hermes-Session-Id": session}
        return self.post("/v1/chat/completions", {**body, "stream": stream}, sent, timeout)

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        timeout: float = 120,
    ) -> Answer:
        """Any POST of JSON with the bearer key; server-sent events are read to their end."""
        told = {**self.authorization, "Content-Type": "application/json"}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)) as link:
            link.request("POST", path, json.dumps(body), {**told, **(headers or {})})
            response = link.getresponse()
            raw = response.read().decode("utf-8")
        session_id = response.getheader("X-Hermes-Session-Id") or ""
        if (response.getheader("Content-Type") or "").startswith("text/event-stream"):
            events = _events(raw)
            return Answer(response.status, _streamed(events), session_id, {"events": events})
        value = json.loads(raw)
        return Answer(response.status, _plain(value), session_id, value)

    @property
    def authorization(self) -> dict[str, str]:
        """The header that its API server asks for."""
        return {"Authorization": f"Bearer {self._key}"}

    def _answers(self) -> bool:
        # With the key: another gateway that has taken the port refuses it.
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with closing(link):
            try:
                link.request("GET", "/v1/models", headers=self.authorization)
                return link.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return False


def api_server_env(port: int, key: str) -> dict[str, str]:
    """What turns the API server on, on loopback only."""
    return {
        "API_SERVER_ENABLED": "true",
        "API_SERVER_KEY": key,
        "API_SERVER_HOST": "127.0.0.1",
        "API_SERVER_PORT": str(port),
        "HERMES_ALLOW_ROOT_GATEWAY": "1",
    }


def free_port() -> int:
    """A port that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _events(raw: str) -> list[dict[str, Any]]:
    lines = (line.removeprefix("data:").strip() for line in raw.splitlines() if line[:5] == "data:")
    return [json.loads(line) for line in lines if line and line != "[DONE]"]


def _streamed(events: Sequence[Mapping[str, Any]]) -> str:
    choices = [choice for event in events for choice in event.get("choices") or []]
    return "".join((choice.get("delta") or {}).get("content") or "" for choice in choices)


def _plain(body: Mapping[str, Any]) -> str:
    choices = body.get("choices") or [{}]
    return str((choices[0].get("message") or {}).get("content") or "")
