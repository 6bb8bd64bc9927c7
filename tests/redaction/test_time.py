"""How long it takes: as long as a text is, whatever is in it, and never without a pause."""

from __future__ import annotations

import threading
import time

import pytest

from hermes_ext._redaction.finding import Finder

FINDER = Finder(random=True)
SHORT = 40_000

MADE_TO_BE_SLOW = [
    *("password", "password=", 'password="', "password: '", "password='''", "password: [", "pass:"),
    *('password: ["a",', "password: a, b", "password: a.b", 'password=\\"', "password str = "),
    *("a:", "a.", "-", "- ", "://a:", "://a:b@", "://:/@", "\\", "\\\\", '\\"', '"', "'''", "A1"),
    *("eyJ", " ", "\t", "\n", "=", "$", "${", "{{", "%", "İ", "\ud800", "x" * 50 + " ", "token=a,"),
    *("Bearer ", "basic ", "Cookie: a=b; ", "Authorization: Bearer ", 'auth": "', "-u a:", "sig="),
    *("<password>", '<a name="token" ', "secret secret ", "key key is ", "name: token value: "),
    *("mysql ", "mysql -p", "login a ", "docker login ", "http -a ", "ldapsearch -w", "echo a | "),
    *("htpasswd -b ", "machine a password ", "--password ", "export ", "aws key secret ", "aws'"),
    *("-----BEGIN ", "_PRIVATE KEY", "-----BEGIN PRIVATE KEY-----\n", "PuTTY-User-Key-File-2: x\n"),
    *("curl ", "curl -b a=", "<a> ", "<key>a</key>", "identified by ", "a:b@tcp(", ":*:a:b"),
    *("passwords:\n  - a1", "passwords: [x,", "PASSWORD='a'", "\x1b[0m", "password: !a "),
    *("(password) values (", ",(password) values (", '<a value="a1b2c3d4" ', "<password "),
    *('password("', "password:\n ", 'password = (\n', "['mysql', '-p", "glpat-", "pul-", "A" * 76),
    *("password for a ", 'password = "a" -> "', "password%3D", "-u a -p ", "vault kv put a "),
    *("AKIA", "cl_", "ap", "&sig", "ibm_key ", "cl_key \t", '{"a":', "["),
]  # fmt: skip


def seconds(text: str) -> float:
    began = time.process_time()
    FINDER.replaced(text)
    return time.process_time() - began


@pytest.mark.parametrize("part", MADE_TO_BE_SLOW, ids=ascii)
def test_no_text_takes_longer_than_its_length(part: str) -> None:
    """Eight times the text takes about eight times as long; the square would be 64.

    A core that is shared takes longer for the same work, so one of three tries is enough.
    """
    text = part * (SHORT // len(part) + 1)
    short = max(seconds(text[:SHORT]) for _ in range(2))
    tries = (seconds((text * 8)[: 8 * SHORT]) for _ in range(3))
    assert any(each <= 24 * max(short, 0.02) for each in tries)


def test_other_threads_have_their_turn() -> None:
    """While ten megabytes are searched, another thread never waits for a second."""
    text = "some words of a log, and a number: 12345\n" * 250_000
    waits: list[float] = []
    done = threading.Event()

    def look() -> None:
        last = time.perf_counter()
        while not done.wait(0.001):
            now = time.perf_counter()
            waits.append(now - last)
            last = now

    thread = threading.Thread(target=look)
    thread.start()
    try:
        assert FINDER.replaced(text) == text
    finally:
        done.set()
        thread.join()
    assert len(waits) > 20
    assert max(waits) < 1
