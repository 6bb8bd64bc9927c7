"""Wrapping the functions of `seams`, and telling how the wraps stand.

Each function is wrapped once, after its module's own import, wherever Python finds it: in the
module, in the class, or in one that the class inherits from. What is not as its wrapper knows it
(other parameters, another kind of function) is not wrapped, and is reported as unfit.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, Final, Literal

from hermes_ext._log import logger
from hermes_ext._text import printable
from hermes_ext._values import field, frozen
from hermes_ext.hosts.hermes.adapter.person import commands
from hermes_ext.hosts.hermes.adapter.state import state
from hermes_ext.hosts.hermes.adapter.turns import inbound_log
from hermes_ext.hosts.hermes.adapter.wraps.after_import import when_imported
from hermes_ext.hosts.hermes.adapter.wraps.seams import SEAMS, Seam

_MARK: Final = "__hermes_ext_seam__"

# In the module: what of it is wrapped. A plugin may have wrapped our wrap since, and hides it.
_DONE: Final = "__hermes_ext_wrapped__"

Status = Literal["attached", "waiting", "missing", "unfit", "bare", "taken"]


@frozen
class Standing:
    """How one wrap stands in this process.

    Attributes:
        seam: which.
        status: `attached`; `waiting` for its module to be imported; `missing` from a module that is
            there; `unfit` where the function is not as the wrapper knows it; `bare` where nothing
            was wrapped; `taken` where the wrap was there and nothing leads to it any more.
        function: what a caller meets in its place; None where that is the package's own.
        fault: of an unfit function.
    """

    seam: Seam
    status: Status
    function: Any = field(default=None, eq=False)
    fault: str = ""

    @property
    def lost(self) -> bool:
        """Whether what the wrap is for cannot be done."""
        return self.status not in {"attached", "waiting"}

    def __str__(self) -> str:
        name, who = str(self.seam), self.stranger
        if self.status == "missing":
            return f"this Hermes has no {name}"
        if self.status == "unfit":
            return f"{name} of this Hermes {self.fault}"
        if self.status == "bare":
            return f"hermes-ext did not attach to {name}"
        if self.status == "attached":
            return f"{who} stands before {name}" if who else f"hermes-ext is attached to {name}"
        if who is None:
            return f"in place of hermes-ext's wrap, Hermes's own {name} is back"
        return f"{name} was taken by {who}"

    @property
    def stranger(self) -> str | None:
        """Whose function stands there, where it is neither Hermes's nor ours."""
        plugin, place = owner_of(self.function, self.seam.module)
        return f"the plugin {printable(plugin)}" if plugin else printable(place) if place else None


def attach() -> None:
    """Wrap everything, now or when its module has been imported. Doing it again changes nothing."""
    for module in dict.fromkeys(seam.module for seam in SEAMS):
        when_imported(module, _attach_module)
    when_imported("tui_gateway.server", commands.in_tui)
    for module in inbound_log.LINES:
        when_imported(module, inbound_log.attach)


def _attach_module(module: ModuleType) -> None:
    for seam in SEAMS:
        if seam.module == module.__name__:
            _wrap(module, seam)


def _wrap(module: ModuleType, seam: Seam) -> None:
    if _is_done_otherwise(seam):
        return
    owner, name = _owner(module, seam)
    raw = None if owner is None else inspect.getattr_static(owner, name, None)
    if raw is None:
        if not seam.newer:
            logger.info("this Hermes has no %s, so hermes-ext cannot attach there", seam)
        return
    done: dict[str, str] = module.__dict__.setdefault(_DONE, {})
    if seam.name in done:
        return
    kind = type(raw) if isinstance(raw, (staticmethod, classmethod)) else None
    original = raw if kind is None else raw.__func__
    done[seam.name] = fault = _fault_of(original, seam, static=kind is staticmethod)
    if fault:
        logger.info("%s of this Hermes %s, so hermes-ext cannot attach there", seam, fault)
        return
    wrapped = _in_confined_calls(original, seam) if seam.confines else _wrapped(original, seam)
    setattr(owner, name, wrapped if kind is None else kind(wrapped))


def _fault_of(original: Any, seam: Seam, *, static: bool) -> str:
    """Why the wrapper would not fit around a function; empty where it does."""
    if not callable(original):
        return "is not a function"
    if inspect.iscoroutinefunction(original) and not inspect.iscoroutinefunction(seam.wrapper):
        return "is asynchronous"
    if not seam.takes:
        return ""  # reading a signature takes as long as all the rest
    found = list(inspect.signature(original).parameters.values())
    if "." in seam.name and not static:
        found = found[1:]  # self
    for name, parameter in zip_longest(seam.takes, found[: len(seam.takes)]):
        if parameter is not None and parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            # It hands on what it is given: what that is cannot be told by name.
            return "" if not seam.by_name else f"does not say which argument is {name}"
        if parameter is None or parameter.name != name:
            told = ", ".join(str(each) for each in found)
            return f"takes ({told}), where hermes-ext expects ({', '.join(seam.takes)}) first"
    return ""


def _owner(module: ModuleType, seam: Seam) -> tuple[Any, str]:
    owner_name, name = _parts(seam.name)
    return (getattr(module, owner_name, None) if owner_name else module), name


@functools.cache
def _parts(name: str) -> tuple[str, str]:
    owner, _, own = name.rpartition(".")
    return owner, own


def _wrapped(original: Callable[..., Any], seam: Seam) -> Callable[..., Any]:
    wrapper = seam.wrapper

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, *args, **kwargs)

    setattr(call, _MARK, seam.name)
    return call


def _in_confined_calls(original: Callable[..., Any], seam: Seam) -> Callable[..., Any]:
    wrapper, confined = seam.wrapper, state.confined

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if confined.get() is None:
            return original(*args, **kwargs)
        return wrapper(original, *args, **kwargs)

    setattr(call, _MARK, seam.name)
    return call


def _is_done_otherwise(seam: Seam) -> bool:
    """Whether this Hermes has something else, so that nothing has to be wrapped here."""
    if seam.unless is None:
        return False
    module, _, name = seam.unless.partition(":")
    return hasattr(sys.modules.get(module), name)


# -- how the wraps stand --------------------------------------------------------------------------


def standings(hooks: Iterable[str] | None = None) -> tuple[Standing, ...]:
    """How each wrap stands that this Hermes needs, or only those that these hooks need."""
    asked = None if hooks is None else frozenset(hooks)
    chosen = (seam for seam in SEAMS if asked is None or not asked.isdisjoint(seam.hooks))
    found = (standing_of(seam) for seam in chosen if not _is_done_otherwise(seam))
    return tuple(each for each in found if not (each.status == "missing" and each.seam.newer))


def lost_to_confinement() -> tuple[Standing, ...]:
    """The wraps without which no call can be confined, and that are not there."""
    if all(map(_is_as_made, _CONFINING)):
        return ()
    found = (standing_of(_imported(seam)) for seam in _CONFINING)
    return tuple(each for each in found if each.lost)


_CONFINING: Final = tuple(seam for seam in SEAMS if seam.confines and not seam.newer)


def _imported(seam: Seam) -> Seam:
    with contextlib.suppress(Exception):  # Hermes's own import; its absence is told by the standing
        importlib.import_module(seam.module)
    return seam


def are_as_made(hooks: Iterable[str]) -> bool:
    """Whether a caller meets our own wrap at each place that these hooks need: found out quickly.

    False says nothing: `standings` tells then.
    """
    return all(map(_is_as_made, _needed_by(tuple(hooks))))


@functools.cache
def _needed_by(hooks: tuple[str, ...]) -> tuple[Seam, ...]:
    return tuple(seam for seam in SEAMS if not set(hooks).isdisjoint(seam.hooks))


def _is_as_made(seam: Seam) -> bool:
    module = sys.modules.get(seam.module)
    if module is None:
        return False
    found = _met(module, seam)
    if found is None:
        return seam.newer or _is_done_otherwise(seam)
    ours = _is_wrap(found) and vars(found).get(_MARK) == seam.name
    return ours or _is_done_otherwise(seam)


def standing_of(seam: Seam) -> Standing:
    """How one wrap stands."""
    module = sys.modules.get(seam.module)
    if module is None:
        return Standing(seam, "waiting")
    outermost = _met(module, seam)
    if outermost is None:
        return Standing(seam, "missing")
    done: dict[str, str] = vars(module).get(_DONE, {})
    if done.get(seam.name):
        return Standing(seam, "unfit", outermost, done[seam.name])
    if _leads_to_ours(outermost, seam):
        return Standing(seam, "attached", None if _is_wrap(outermost) else outermost)
    return Standing(seam, "taken" if seam.name in done else "bare", outermost)


def _met(module: ModuleType, seam: Seam) -> Any:
    """The function that a caller meets; of a method of the class, what is bound to that."""
    owner, name = _owner(module, seam)
    found: Any = getattr(owner, name, None)
    if type(found) is MethodType and found.__self__ is owner:
        return found.__func__
    return found


def _is_wrap(function: Any) -> bool:
    """Whether a function is a wrap of ours, and not one that has copied its attributes."""
    # Not isinstance, here and below: a stranger's object may answer that by running code.
    if type(function) is not FunctionType:
        return False
    return function.__code__.co_filename == _wrapped.__code__.co_filename


def _leads_to_ours(found: Any, seam: Seam) -> bool:
    """Whether a call of what stands there can reach our wrap.

    Another plugin may have wrapped what we wrapped. It need not say so by `__wrapped__`, but it has
    to keep the function somewhere that its own code reaches.
    """
    owner, _ = _owner(sys.modules[seam.module], seam)
    front, seen = [found], {id(found): found}
    while front and len(seen) < _LOOKED_AT:
        thing = front.pop(0)
        if _is_wrap(thing) and getattr(thing, _MARK, None) == seam.name:
            return True
        for held in _held_by(thing, owner, seam.module):
            if id(held) not in seen:
                seen[id(held)] = held
                front.append(held)
    return False


_LOOKED_AT: Final = 2_000


def _held_by(thing: Any, owner: Any, host_module: str) -> Iterator[Any]:
    """What a function, or an object that is called, can call; `owner` has the wrapped function."""
    kind = type(thing)
    if kind is FunctionType:
        if thing.__globals__.get("__name__") == host_module:
            return  # Hermes's own: what it calls are not our wraps of it
        yield from (held for cell in thing.__closure__ or () for held in _contents(cell))
        yield from (*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values())
        yield from _named_in(thing, owner)
    elif kind is functools.partial:
        yield from (thing.func, *thing.args, *thing.keywords.values())
    elif kind is MethodType:
        yield from (thing.__func__, thing.__self__)
    elif kind in {staticmethod, classmethod}:
        yield thing.__func__
    elif kind in {dict, MappingProxyType}:
        yield from thing.values()
    elif kind in {list, tuple, set, frozenset, deque}:
        yield from thing
    elif not issubclass(kind, ModuleType):
        yield from _attributes_of(thing)


def _named_in(function: FunctionType, owner: Any) -> Iterator[Any]:
    """What a function's code can reach by the names in it."""
    names = frozenset(_names_in(function.__code__))
    if "__wrapped__" in names:  # else it is a note of what was wrapped, and nothing calls it
        yield getattr(function, "__wrapped__", None)
    yield from (vars(owner).get(name) for name in names)  # `self.saved(...)`
    spaces = [function.__globals__, *(vars(sys.modules[n]) for n in names if n in sys.modules)]
    for space in spaces:  # and on into the modules that are found: `saved.original(...)`
        for held in map(space.get, names):
            if not issubclass(type(held), ModuleType):
                yield held
            elif not any(vars(held) is each for each in spaces):
                spaces.append(vars(held))


def _names_in(code: CodeType) -> Iterator[str]:
    """The names in a function's code, and in that of the functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from _names_in(constant)


def _attributes_of(thing: Any) -> Iterator[Any]:
    kind = type(thing)
    with contextlib.suppress(Exception):  # a stranger's object, which may answer as it likes
        yield from object.__getattribute__(thing, "__dict__").values()
    for base in kind.__mro__:
        yield from vars(base).values()
        for slot in filter(inspect.ismemberdescriptor, vars(base).values()):
            with contextlib.suppress(AttributeError):  # nothing is in it
                yield slot.__get__(thing, kind)


def _contents(cell: CellType) -> Iterator[Any]:
    with contextlib.suppress(ValueError):  # nothing is in it yet
        yield cell.cell_contents


def owner_of(function: Any, host_module: str) -> tuple[str | None, str | None]:
    """The plugin that a function comes from, and where it is; both None for the host's own."""
    while type(function) in {functools.partial, MethodType}:
        function = function.func if type(function) is functools.partial else function.__func__
    code = function.__code__ if type(function) is FunctionType else None
    # `__module__` is what `functools.wraps` has copied; the globals are those of the code.
    home = function.__globals__.get("__name__") if code else type(function).__module__
    if function is None or home == host_module:
        return None, None
    place = home if code is None else f"{home}, line {code.co_firstlineno}"
    for name, module in plugins().items():
        if module is not None and f"{home}.".startswith(f"{module.__name__}."):
            return name, place
    return None, place


def plugins() -> dict[str, ModuleType | None]:
    """Hermes's plugins by name; None for one that is not loaded."""
    host = sys.modules.get("hermes_cli.plugins")
    known = {} if host is None else getattr(host.get_plugin_manager(), "_plugins", {})
    return {name: getattr(plugin, "module", None) for name, plugin in known.items()}
