"""A Hermes server that speaks over its standard streams, and a client at their other ends."""

from __future__ import annotations

from typing import Final

from tests.harness.home import HermesHome, Run

# The server is run as its command runs it, with pipes for its standard input and output; a
# thread at their other ends is the client. What it has to say goes on in `said`.
_PIPES: Final = """\
import json, os, sys, threading
from pathlib import Path

stdin, to_server = os.pipe()
from_server, stdout = os.pipe()
os.dup2(stdin, 0)
os.dup2(stdout, 1)
sent = os.fdopen(to_server, 'w')
got = os.fdopen(from_server)
number = 0

def tell(**message):
    sent.write(json.dumps({'jsonrpc': '2.0', **message}) + '\\n')
    sent.flush()

def until(matches):
    for line in got:
        message = json.loads(line)
        answer(message)
        if matches(message):
            return message
    raise EOFError('the server has ended')

def ask(method, params):
    global number
    number += 1
    asked = number
    tell(id=asked, method=method, params=params)
    reply = until(lambda one: one.get('id') == asked and 'method' not in one)
    assert 'result' in reply, reply
    return reply['result']

def answer(message):
    pass

def client():
    try:
        converse(*TEXTS)
        code = 0
    except BaseException:
        import traceback
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)
"""

# A server that ends before its client, or cannot even be imported, leaves nothing to wait for.
_RUN: Final = """
threading.Thread(target=client, daemon=True).start()
try:
    serve()
except BaseException:
    import traceback
    traceback.print_exc()
sys.stderr.flush()
os._exit(1)
"""


def served(home: HermesHome, client: str, *texts: str) -> Run:
    """Run a server with a client of it.

    client: Python source that defines `serve()`, `converse(*texts)`, and, for what the server sends
    unasked, `answer(message)`.
    """
    return home.python(_PIPES.replace("TEXTS", repr(texts)) + client + _RUN, timeout=240).check()
