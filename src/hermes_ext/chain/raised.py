"""What a handler raised, in a form that runs none of the handler's code when it is read."""

from __future__ import annotations

import builtins
from abc import ABCMeta
from contextlib import suppress
from typing import Any, Final


class Unreadable(Exception):  # noqa: N818 - stands for whatever a handler raised
    """Takes the place of an exception whose class overrides how Python reads exceptions."""


def readable(error: BaseException) -> BaseException:
    """The error; in place of one whose attributes are code of its own, an `Unreadable`."""
    kind = type(error)
    if type(kind) is type and (kind in _BUILT_IN or _is_plain(kind)):
        return error
    if type(kind) is ABCMeta and _is_plain(kind):
        return error
    stand_in = Unreadable(f"{_NAME(kind)}, whose class overrides how an exception is read")
    stand_in.__traceback__ = _TRACEBACK(error)
    return stand_in


def read(error: BaseException) -> None:
    """Have an error's text made once, and those of what is behind it: they may be code that takes
    long. Whoever reads them later does not wait for the first time.
    """
    from traceback import TracebackException  # late: hosts whose handlers work do without it

    with suppress(BaseException):
        one = readable(error)
        if (
            type(one) in _PLAIN
            and one.__context__ is None
            and _TEXT.issuperset(map(type, one.args))
        ):
            return
        TracebackException(type(one), one, None, lookup_lines=False)


def forget_frames(error: BaseException) -> None:
    """Take away an error's frames, which hold all that its handler has."""
    _FORGET(error, None)  # a frozen class has code for assigning, which raises


def _is_plain(kind: type) -> bool:
    classes = (one for one in kind.__mro__ if one is not object and one not in _BUILT_IN)
    return all(_READ.isdisjoint(vars(one)) for one in classes)


_BUILT_IN: Final = frozenset(
    one
    for one in vars(builtins).values()
    if isinstance(one, type) and issubclass(one, BaseException)
)
_PLAIN: Final = _BUILT_IN - {AttributeError, NameError}  # for these, Python looks into objects
_TEXT: Final = frozenset({str, int})
_READ: Final = frozenset(
    {"__cause__", "__class__", "__context__", "__getattribute__", "__notes__"}
    | {"__suppress_context__", "__traceback__"}
)
# The attributes as Python has them, whatever a class says.
_NAME: Any = type.__dict__["__name__"].__get__
_TRACEBACK: Any = BaseException.__dict__["__traceback__"].__get__
_FORGET: Any = BaseException.__dict__["__traceback__"].__set__
