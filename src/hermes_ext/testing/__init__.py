"""What is needed to test an extension, with pytest or without.

Two fixtures come with the package as a pytest plugin: `load_extension` loads an extension from
its folder and drives turns without a model; `hermes_session` runs the real Hermes Agent with a
model that plays a script.

    def test_it_blocks(load_extension):
        extension = load_extension(Path(__file__).parents[1])
        outcome = extension.call("terminal", {"command": "git push --force"})
        assert_blocked(outcome, match="not allowed")

`docs/testing.md` has the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_ext.testing._extension import (
        DrivenTurn,
        ExtensionNotLoadedError,
        FindingsError,
        LoadedExtension,
        Sent,
    )
    from hermes_ext.testing._fakes import FakeClock, ScriptedApprover
    from hermes_ext.testing._outcomes import (
        assert_answered,
        assert_asked,
        assert_blocked,
        assert_confined,
        assert_injected,
        assert_passed,
        assert_rewritten,
        describe,
    )
    from hermes_ext.testing._session import ApiSession, HermesSession, SessionRun
    from hermes_ext.testing._strict import Finding
    from hermes_ext.testing.model_server import ModelRequest, Reply, ScriptedModel, ToolUse
    from hermes_ext.testing.plugin import LoadExtension, StartSession

# The pytest plugin is imported in every run of pytest; what its fixtures use only when they are.
_LATER = {
    name: module
    for module, names in {
        "_extension": "DrivenTurn ExtensionNotLoadedError FindingsError LoadedExtension Sent",
        "_fakes": "FakeClock ScriptedApprover",
        "_outcomes": "assert_answered assert_asked assert_blocked assert_confined assert_injected"
        " assert_passed assert_rewritten describe",
        "_session": "ApiSession HermesSession SessionRun",
        "_strict": "Finding",
        "model_server": "ModelRequest Reply ScriptedModel ToolUse",
        "plugin": "LoadExtension StartSession",
    }.items()
    for name in names.split()
}

__all__ = [
    "ApiSession",
    "DrivenTurn",
    "ExtensionNotLoadedError",
    "FakeClock",
    "Finding",
    "FindingsError",
    "HermesSession",
    "LoadExtension",
    "LoadedExtension",
    "ModelRequest",
    "Reply",
    "ScriptedApprover",
    "ScriptedModel",
    "Sent",
    "SessionRun",
    "StartSession",
    "ToolUse",
    "assert_answered",
    "assert_asked",
    "assert_blocked",
    "assert_confined",
    "assert_injected",
    "assert_passed",
    "assert_rewritten",
    "describe",
]


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
