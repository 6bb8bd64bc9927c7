"""Exceptions with code of their own in the attributes that Python reads of an exception."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from tests.chains import EVENTS, SCOPE, chain, handler

from hermes_ext.chain.fold import arun, run

CALL = EVENTS["intercept_tool_call"]


def raising(kind: type[BaseException]) -> property:
    def read(_: object) -> Any:
        raise kind("read")

    return property(read)


def with_attribute(name: str, kind: type[BaseException]) -> type[BaseException]:
    return type("Odd", (Exception,), {name: raising(kind)})


@dataclass(frozen=True)
class Frozen(Exception):
    """An exception that lets nothing be set on it."""

    code: int = 3


class Truthless(Exception):
    def __bool__(self) -> bool:
        raise SystemExit


class OddName(type):
    __name__ = raising(SystemExit)


class OddClass(Exception, metaclass=OddName):
    pass


class AllOdd(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(name)


ATTRIBUTES = ["__cause__", "__class__", "__context__", "__suppress_context__", "__traceback__"]
ODD: list[type[BaseException]] = [
    *(with_attribute(name, kind) for name in ATTRIBUTES for kind in (ValueError, SystemExit)),
    OddClass,
    AllOdd,
    Frozen,
    Truthless,
]


def guards(error: type[BaseException]) -> Any:
    def plain() -> None:
        raise error

    def inside_another() -> None:
        try:
            raise error
        except error:
            raise ValueError("outer")  # noqa: B904

    async def awaited() -> None:
        raise error

    for function in (plain, inside_another):
        yield handler(function, guard=True, timeout=0)
        yield handler(function, guard=True, timeout=5)
    yield handler(awaited, guard=True)


@pytest.mark.parametrize("number", range(len(ODD)))  # pytest reads what it is given
def test_they_are_failures_as_any_other(number: int) -> None:
    error = ODD[number]
    for guard in guards(error):
        outcomes = [
            run(chain(guard), CALL, SCOPE),
            run(chain(guard), CALL, SCOPE, strict=True),
            asyncio.run(arun(chain(guard), CALL, SCOPE)),
        ]
        for outcome in outcomes:
            assert outcome.blocked
            (failure,) = outcome.errors
            assert failure.kind == "exception"
            assert "Traceback" in failure.traceback
