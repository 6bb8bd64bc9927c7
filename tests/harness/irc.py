"""An IRC server on loopback with room for one bot: the one chat platform that needs nobody else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

BOT = "hermes-bot"


class ChatServer:
    """What people say to the bot, and what it says to them."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._bot: socket.socket | None = None
        self._said: list[tuple[str, str]] = []
        self._changed = threading.Condition()
        self._joined = False

    @property
    def env(self) -> dict[str, str]:
        """The variables that send Hermes's adapter here."""
        return {
            "IRC_SERVER": "127.0.0.1",
            "IRC_PORT": str(self._listener.getsockname()[1]),
            "IRC_USE_TLS": "false",
            "IRC_NICKNAME": BOT,
            "IRC_CHANNEL": "#room",
            "IRC_ALLOW_ALL_USERS": "true",
        }

    def say(self, who: str, text: str) -> None:
        """A person writes to the bot; what it said to them before is forgotten."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._joined, 120), "the bot has not come"
            self._said = [each for each in self._said if each[0] != who]
            assert self._bot is not None
            self._bot.sendall(f":{who}!{who}@here PRIVMSG {BOT} :{text}\r\n".encode())

    def hears(self, who: str, text: str, timeout: float = 120) -> str:
        """Wait until the bot has said a text to a person; returns all that it said to them."""
        deadline = monotonic() + timeout
        with self._changed:
            while text not in self._told(who):
                left = deadline - monotonic()
                if left <= 0 or not self._changed.wait(left):
                    raise AssertionError(f"{who} has not heard {text!r} but:\n{self._told(who)}")
            return self._told(who)

    def _told(self, who: str) -> str:
        return "\n".join(text for whom, text in self._said if whom == who)

    def serve(self) -> None:
        """Take the bot's lines until it or the server goes."""
        with suppress(OSError):
            self._bot, _ = self._listener.accept()
            with self._bot, self._bot.makefile(encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    self._line(line.rstrip("\r\n"))

    def _line(self, line: str) -> None:
        command, _, rest = line.partition(" ")
        with self._changed:
            if command == "USER" and self._bot is not None:
                self._bot.sendall(f":here 001 {BOT} :Welcome\r\n".encode())
            elif command == "JOIN":
                self._joined = True
            elif command == "PRIVMSG":
                whom, _, text = rest.partition(" :")
                self._said.append((whom, text))
            self._changed.notify_all()

    def close(self) -> None:
        """Hang up."""
        self._listener.close()
        if self._bot is not None:
            with suppress(OSError):
                self._bot.shutdown(socket.SHUT_RDWR)


@contextmanager
def chat_server() -> Iterator[ChatServer]:
    """A server that runs until the block ends."""
    server = ChatServer()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(10)
