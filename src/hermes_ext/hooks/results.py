"""What a handler answers: `HookResult`, and the types of what each hook takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, ParamSpec, TypeAlias, cast

from hermes_ext._text import near_names
from hermes_ext._values import frozen
from hermes_ext.exceptions import ResultError
from hermes_ext.hooks.sendable import has_surrogates, sendable_text
from hermes_ext.hooks.table import ACTIONS, Action

_BY_NAME: dict[str, Action] = {action.value: action for action in Action}

_Pass: TypeAlias = Literal["pass", Action.PASS]
_Rewrite: TypeAlias = Literal["rewrite", Action.REWRITE]
_Block: TypeAlias = Literal["block", Action.BLOCK]
_Answer: TypeAlias = Literal["answer", Action.ANSWER]
_Confine: TypeAlias = Literal["confine", Action.CONFINE]
_Ask: TypeAlias = Literal["ask", Action.ASK]
_Inject: TypeAlias = Literal[
    "inject_system", "inject_user", Action.INJECT_SYSTEM, Action.INJECT_USER
]
AnyAction: TypeAlias = _Pass | _Rewrite | _Block | _Answer | _Ask | _Confine | _Inject
Keep: TypeAlias = Literal["request", "turn"]

if TYPE_CHECKING:
    # The default (PEP 696) lets authors annotate with a bare `HookResult`; `typing` has it from
    # 3.13 on and `typing_extensions` is no dependency at run time.
    from typing_extensions import TypeVar

    from hermes_ext.confine import Network
    from hermes_ext.hooks.bounds import Bounds

    A_co = TypeVar("A_co", bound=AnyAction, covariant=True, default=Any)
else:
    from typing import TypeVar

    A_co = TypeVar("A_co", covariant=True)

P = ParamSpec("P")
R = TypeVar("R")


def _names_checked(make: Callable[P, R]) -> Callable[P, R]:
    """An argument that is missing or unknown is a `ResultError`, as a bad value is."""

    @wraps(make)
    def checked(*values: P.args, **named: P.kwargs) -> R:
        try:
            return make(*values, **named)
        except TypeError as error:
            if error.__traceback__ and error.__traceback__.tb_next:  # of code within
                raise
            from hermes_ext.hooks.bounds import wrong_arguments

            raise wrong_arguments(error, values, named) from None

    return checked


@frozen(init=False, slots=False)  # slots would make building one twice as slow
class HookResult(Generic[A_co]):
    """A handler's answer. Frozen; what cannot be right raises `ResultError` here.

    Attributes:
        action: an `Action`, or its name.
        value: what the action needs: the new value (`rewrite`: `str`, `dict` or `list`), the text
            (`block`, `inject_system`, `inject_user`: not blank), the reply or tool result
            (`answer`: `str`; empty for a silent answer), the reason (`ask`: not blank), the
            bounds (`confine`: `Bounds`, or a mapping of its attributes). Ignored, and None, for
            `pass`. In texts, a lone surrogate becomes U+FFFD, because no host can send one.
        metadata: what later handlers of the same chain see as `metadata`; keys are strings.
        keep: for injections, `"request"` (the default: this request only) or `"turn"` (for every
            further request of the turn, once, at the same place).
        key: for `ask`, what a yes covers; without it, exactly this tool with exactly these
            arguments.

    Raises:
        ResultError: unknown action, value of a wrong type, a blank text, or an option that does
            not belong to the action.
    """

    action: A_co  # type: ignore[misc]  # in the generated __attrs_init__; sound, as it is frozen
    value: Any
    metadata: Mapping[str, Any]
    keep: Keep
    key: str | None

    def __init__(
        self,
        action: A_co,
        value: Any = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        keep: Keep = "request",
        key: str | None = None,
    ) -> None:
        known = _BY_NAME.get(action) if isinstance(action, str) else None
        if known is None:
            raise _unknown_action(action)
        if keep != "request":
            _check_keep(known, keep)
        if key is not None:
            key = _checked_key(known, key)
        fields = {
            "action": known,
            "value": _VALUE_CHECKS[known](known, value),
            "metadata": {} if metadata is None else _checked_metadata(metadata),
            "keep": keep,
            "key": key,
        }
        object.__setattr__(self, "__dict__", fields)

    @classmethod
    def pass_(
        cls, *, metadata: Mapping[str, Any] | None = None
    ) -> HookResult[Literal[Action.PASS]]:
        """No opinion; the same as returning None, but can carry metadata."""
        return PASS if metadata is None else HookResult(Action.PASS, None, metadata)

    @classmethod
    def rewrite(
        cls, value: Any, *, metadata: Mapping[str, Any] | None = None
    ) -> HookResult[Literal[Action.REWRITE]]:
        """Go on with `value`: text or parts (input), messages, tool args, or the result's text."""
        return HookResult(Action.REWRITE, value, metadata)

    @classmethod
    def block(
        cls, message: str, *, metadata: Mapping[str, Any] | None = None
    ) -> HookResult[Literal[Action.BLOCK]]:
        """Refuse, and say why. Ends the chain."""
        return HookResult(Action.BLOCK, message, metadata)

    @classmethod
    def answer(
        cls, value: str, *, metadata: Mapping[str, Any] | None = None
    ) -> HookResult[Literal[Action.ANSWER]]:
        """Reply to the user without the model, or give a tool's result without running it.

        An empty reply is a silent answer: the turn ends, and the user is shown nothing.
        """
        return HookResult(Action.ANSWER, value, metadata)

    @classmethod
    @_names_checked
    def confine(
        cls,
        writable: Sequence[str | PathLike[str]] = (),
        network: Network = "host",
        *,
        reason: str,
        or_exact: bool = False,
        advice: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> HookResult[Literal[Action.CONFINE]]:
        """Let this tool call run, and let what it starts change only `writable`.

        The kernel keeps to it, whatever the call runs. Does not end the chain. Where several
        handlers confine, only what all of them allow may change. A call that cannot be confined is
        blocked, or asked about where the user's `extensions.confine_unavailable` is `ask`.

        Args:
            writable: directories of the project; relative ones start at its root. What is not a
                real directory of the project is left out. Nothing by default.
            network: `host` for the host's network, `none` for none.
            reason: why, for the model and the person: "no plan yet".
            or_exact: whether a call runs that cannot be confined, but whose effects are exact and
                change nothing outside of `writable`.
            advice: sentences for the model if the call is blocked; "" for none.
            metadata: as for every action.
        """
        from hermes_ext.hooks.bounds import Bounds  # every extension waits for what is at the top

        bounds = Bounds(writable, network, reason, or_exact, advice)
        return HookResult(Action.CONFINE, bounds, metadata)

    @classmethod
    def ask(
        cls, reason: str, key: str | None = None, *, metadata: Mapping[str, Any] | None = None
    ) -> HookResult[Literal[Action.ASK]]:
        """Let a person decide about this tool call. Does not end the chain."""
        return HookResult(Action.ASK, reason, metadata, key=key)

    @classmethod
    def inject_system(
        cls, text: str, *, keep: Keep = "request", metadata: Mapping[str, Any] | None = None
    ) -> HookResult[Literal[Action.INJECT_SYSTEM]]:
        """Add `text` to the end of the system prompt, for this request (or the whole turn)."""
        return HookResult(Action.INJECT_SYSTEM, text, metadata, keep=keep)

    @classmethod
    def inject_user(
        cls, text: str, *, keep: Keep = "request", metadata: Mapping[str, Any] | None = None
    ) -> HookResult[Literal[Action.INJECT_USER]]:
        """Add `text` behind everything else, for this request (or the whole turn)."""
        return HookResult(Action.INJECT_USER, text, metadata, keep=keep)


def _unknown_action(action: object) -> ResultError:
    names = list(_BY_NAME)
    close = near_names(action, names, most=1, cutoff=0.6) if isinstance(action, str) else []
    if isinstance(action, str) and not close and action.lower() in ("deny", "refuse", "reject"):
        close = ["block"]
    hint = f"Did you mean {close[0]!r}?" if close else f"Actions are {', '.join(names)}"
    return ResultError(f"HookResult has no action {action!r}", hint=hint)


def _nothing(_action: Action, _value: object) -> None:
    return None


def _text(action: Action, value: object) -> str:
    # By its own methods a text of another class may tell something else than it holds.
    if not isinstance(value, str) or not str.strip(value):
        raise ResultError(
            f"HookResult {action.value!r} needs a text, "
            + ("the text is empty" if isinstance(value, str) else f"got {_shown(value)}"),
            hint=f"Write HookResult.{action.value}('what to say')",
        )
    return sendable_text(str.__str__(value))


def _is_text(key: object) -> bool:
    return isinstance(key, str)


def _reply(action: Action, value: object) -> str:
    if not isinstance(value, str):
        raise ResultError(
            f"HookResult {action.value!r} needs a str, got {_shown(value)}",
            hint="For structured data use json.dumps(…)",
        )
    return sendable_text(str.__str__(value))


def _replacement(action: Action, value: object) -> object:
    if isinstance(value, str):
        return sendable_text(str.__str__(value))
    if isinstance(value, dict) and not all(map(_is_text, value)):
        raise ResultError(
            f"HookResult {action.value!r} got a dict with keys that are not str",
            hint="Tool arguments are a dict with str keys",
        )
    if not isinstance(value, (dict, list)):
        raise ResultError(
            f"HookResult {action.value!r} needs a str, dict or list, got {_shown(value)}",
            hint="Input and results are str, tool arguments dict, messages list",
        )
    return value


def _bounds(_action: Action, value: object) -> Bounds:
    from hermes_ext.hooks.bounds import Bounds

    return Bounds.of(value)


_CHECKS: Final = {
    "bounds": _bounds,
    "nothing": _nothing,
    "other": _replacement,
    "reply": _reply,
    "text": _text,
}
_VALUE_CHECKS: Final = {action: _CHECKS[row.value] for action, row in ACTIONS.items()}


def _shown(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__}"


def _checked_metadata(metadata: object) -> dict[str, Any]:
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        raise ResultError(
            f"metadata must be a dict with str keys, got {_shown(metadata)}",
            hint="Write metadata={'name': value}",
        )
    return dict(metadata)


def _check_keep(action: Action, keep: object) -> None:
    if keep != "turn":
        raise ResultError(f"keep must be 'request' or 'turn', got {keep!r}")
    if ACTIONS[action].option != "keep":
        raise ResultError(f"keep='turn' belongs to injections, not to {action.value!r}")


def _checked_key(action: Action, key: object) -> str:
    if ACTIONS[action].option != "key":
        raise ResultError(f"key= belongs to 'ask', not to {action.value!r}")
    if not isinstance(key, str) or not str.strip(key):
        raise ResultError(f"key= must be a text, got {_shown(key)}")
    text = str.__str__(key)
    # Not U+FFFD, which would give two keys the same name: a yes to one is none to the other.
    return ascii(text) if has_surrogates(text) else text


PASS: Final = cast("HookResult[Literal[Action.PASS]]", HookResult(Action.PASS))

InputResult: TypeAlias = HookResult[_Pass | _Rewrite | _Answer | _Block] | None
InputVerdict: TypeAlias = HookResult[_Pass | _Block] | None
RequestResult: TypeAlias = HookResult[_Pass | _Inject | _Rewrite | _Answer | _Block] | None
RequestVerdict: TypeAlias = HookResult[_Pass | _Block] | None
CallResult: TypeAlias = HookResult[_Pass | _Rewrite | _Answer | _Ask | _Confine | _Block] | None
CallVerdict: TypeAlias = HookResult[_Pass | _Ask | _Confine | _Block] | None
ToolOutputResult: TypeAlias = HookResult[_Pass | _Rewrite | _Block] | None
ToolOutputVerdict: TypeAlias = HookResult[_Pass | _Block] | None
