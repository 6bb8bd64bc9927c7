"""The hooks as pluggy knows them: a specification for each, and each extension as a plugin."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any, Final, cast

import pluggy

from hermes_ext._values import frozen
from hermes_ext.hooks.table import EVERYWHERE, TABLE, HookDef

_PROJECT: Final = "hermes_ext"


def _spec(row: HookDef) -> Callable[..., None]:
    """A function with the hook's name, arguments and documentation."""
    # pluggy reads the arguments off the code; the text is made of the table and nothing else.
    arguments = ", ".join(
        f"{one.name}: {(row.event if one.name == 'event' else one.type)!r}"
        for one in (*row.arguments, *EVERYWHERE)
    )
    names: dict[str, Any] = {"__name__": __name__}
    exec(f"def {row.name.value}({arguments}): ...", names)
    function = names[row.name.value]
    function.__doc__ = f"{row.does}\n\n{row.fires}"
    # Historic, so that pluggy refuses wrappers and calls that would fan out past the chain.
    return pluggy.HookspecMarker(_PROJECT)(function, historic=True)  # type: ignore[no-any-return]


class _Attributes(SimpleNamespace):
    """Functions by name. pluggy looks at every attribute that `dir` lists."""

    def __dir__(self) -> list[str]:
        return [*vars(self)]


@functools.cache
def _specs() -> Any:
    return _Attributes(**{name.value: _spec(row) for name, row in TABLE.items()})


@frozen(eq=False)
class Implementation:
    """A function for a hook.

    Attributes:
        hook: the name of the hook.
        function: what the author registered.
        handler: what the chain calls; None where it is only to be checked.
        wrapper: whether it wants to be a wrapper, which pluggy refuses.
    """

    hook: str
    function: Callable[..., Any]
    handler: Any = None
    wrapper: bool = False

    @property
    def options(self) -> pluggy.HookimplOpts:
        """For pluggy, with the handler beside its own."""
        options = {
            "specname": self.hook,
            "wrapper": self.wrapper,
            "hookwrapper": False,
            "optionalhook": False,
            "tryfirst": False,
            "trylast": False,
            "handler": self.handler,
        }
        return cast("pluggy.HookimplOpts", options)


class Plugin:
    """An extension as pluggy registers it: an attribute for each of its handlers.

    Attributes:
        name: the extension.
    """

    def __init__(self, name: str, implementations: Iterable[Implementation]) -> None:
        self.name = name
        self._own = {f"handler_{n}": one for n, one in enumerate(implementations)}
        vars(self).update({n: _for_pluggy(one.function) for n, one in self._own.items()})

    @property
    def hooks(self) -> tuple[str, ...]:
        """The hooks that it has handlers for, each once."""
        return tuple(dict.fromkeys(one.hook for one in self._own.values()))

    def __dir__(self) -> list[str]:
        # pluggy looks at every attribute: without this, registering takes seven times as long.
        return [*self._own]

    def __repr__(self) -> str:
        return f"<extension {self.name!r}>"


def _for_pluggy(function: Any) -> Callable[..., Any]:
    # pluggy takes no partials and callable objects, and reads no made-up signatures.
    if isinstance(function, FunctionType) and "__signature__" not in vars(function):
        return function
    if isinstance(function, MethodType):
        return function
    call = getattr(type(function), "__call__", None)  # noqa: B004 - the method is wanted
    if isinstance(call, FunctionType) and not isinstance(function, FunctionType):
        return MethodType(call, function)

    def called(**arguments: Any) -> Any:
        return function(**arguments)

    return called


class Plugins(pluggy.PluginManager):
    """The extensions in force, each registered once."""

    def __init__(self) -> None:
        super().__init__(_PROJECT)
        self.add_hookspecs(_specs())

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> pluggy.HookimplOpts | None:
        """What pluggy asks of each attribute of a plugin."""
        implementation: Implementation = plugin._own[name]
        return implementation.options

    def handlers(self, hook: str) -> list[Any]:
        """The handlers of a hook, as pluggy has them."""
        caller: pluggy.HookCaller = getattr(self.hook, hook)
        return [impl.opts["handler"] for impl in caller.get_hookimpls()]  # type: ignore[typeddict-item]


def refusal_of(implementation: Implementation) -> pluggy.PluginValidationError | None:
    """What pluggy has against a function for a hook, None if nothing."""
    plugins = Plugins()
    try:
        plugins.register(Plugin("extension", [implementation]), "extension")
        plugins.check_pending()
    except pluggy.PluginValidationError as error:
        return error
    return None
