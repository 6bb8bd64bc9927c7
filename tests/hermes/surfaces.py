"""Ways of a person to say something to the real Hermes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.harness.home import HermesHome
from tests.harness.irc import chat_server

SURFACES = ("oneshot", "chat", "api", "api-stream", "messaging")

# Called with a text, and with what the answer will have in it: nothing else ends one in a chat.
Say = Callable[[str, str], str]


@contextmanager
def surface(home: HermesHome, name: str) -> Iterator[Say]:
    """A way to say something to this Hermes, in one session where the surface has them.

    What comes back is everything that the person gets to see.
    """
    if name == "oneshot":
        yield lambda text, reply: home.oneshot(text).check().stdout
    elif name == "chat":
        said: list[str] = []

        def chat(text: str, reply: str) -> str:
            run = home.chat(text, *(["--continue"] if said else [])).check()
            said.append(text)
            return run.stdout

        yield chat
    elif name == "messaging":
        # An answer is heard before its turn is over; what is said then must interrupt nothing.
        home.write_config({"display": {"busy_input_mode": "queue"}})
        with chat_server() as chats, home.gateway(env=chats.env):

            def write(text: str, reply: str) -> str:
                chats.say("ann", text)
                return chats.hears("ann", reply)

            yield write
    else:
        with home.gateway() as gateway:
            stream = name == "api-stream"

            def ask(text: str, reply: str) -> str:
                answer = gateway.ask(text, session="s1", stream=stream)
                assert answer.status == 200, answer
                return answer.text

            yield ask
