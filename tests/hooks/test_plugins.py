"""pluggy has the hooks and the extensions, and what it refuses is behind our errors."""

from __future__ import annotations

from pathlib import Path

import pluggy
import pytest
from tests.chains import handler

from hermes_ext import hookimpl, register_hook
from hermes_ext.chain.manager import HookManager
from hermes_ext.exceptions import RegistrationError
from hermes_ext.hooks import plugins
from hermes_ext.hooks.plugins import Implementation, refusal_of
from hermes_ext.hooks.table import HookName


def passing(tool_name):
    return None


def registered_under_a_wrong_name():
    register_hook("intercept_tool_cal")(passing)


def asking_for_a_wrong_name():
    @register_hook("intercept_tool_call")
    def check(tool_nam):
        return None


def wrapping(**options):
    @hookimpl(**options)
    def intercept_tool_call(tool_name):
        yield


REFUSED = {
    "hook": (registered_under_a_wrong_name, "unknown hook 'intercept_tool_cal'", "tool_call'"),
    "argument": (asking_for_a_wrong_name, "{'tool_nam'} are declared", "'tool_name'"),
    "wrapper": (lambda: wrapping(wrapper=True), "incompatible with yield/wrapper", "guard"),
    "old wrapper": (lambda: wrapping(hookwrapper=True), "incompatible with yield", "guard"),
}


@pytest.mark.parametrize(("make", "theirs", "hint"), REFUSED.values(), ids=REFUSED)
def test_pluggy_is_behind_our_error(make, theirs, hint):
    """Raised in the author's frame, with a did-you-mean, and with pluggy's own error as cause."""
    with pytest.raises(RegistrationError) as caught:
        make()
    assert isinstance(caught.value.__cause__, pluggy.PluginValidationError)
    assert theirs in str(caught.value.__cause__)
    assert hint in caught.value.hint


def test_a_hook_without_a_specification(monkeypatch):
    """The handlers that were built for it are refused, saying whose they are and where."""
    one = handler(passing, extension="no-deploys")
    specs = vars(plugins._specs()).copy()
    del specs["intercept_tool_call"]
    monkeypatch.setattr(plugins, "_specs", lambda: plugins._Attributes(**specs))
    with pytest.raises(RegistrationError) as caught:
        HookManager([one])
    error = caught.value
    assert isinstance(error.__cause__, pluggy.PluginValidationError)
    assert "unknown hook 'intercept_tool_call'" in str(error.__cause__)
    assert (error.extension, error.hook) == ("no-deploys", "intercept_tool_call")
    assert (error.path, error.line) == (Path(__file__), passing.__code__.co_firstlineno)


def test_what_slipped_past_our_check(monkeypatch):
    """pluggy checks the arguments again when it registers an extension."""
    one = handler(passing, extension="late")
    object.__setattr__(one, "function", lambda surprise: None)
    with pytest.raises(RegistrationError, match="surprise") as caught:
        HookManager([handler(passing, extension="first"), one])
    assert caught.value.extension == "late"
    assert isinstance(caught.value.__cause__, pluggy.PluginValidationError)


def test_the_hooks_cannot_be_called_past_the_chain():
    """pluggy would fan out, with no order, policy or limit of ours."""
    hooks = HookManager([handler(passing)]).plugins.hook
    for hook in HookName:
        with pytest.raises(AssertionError, match="Cannot directly call a historic hook"):
            getattr(hooks, hook.value)()


def test_pluggy_has_nothing_against_what_is_right():
    """So it is the cause of no error that is only ours."""
    assert refusal_of(Implementation("intercept_tool_call", passing)) is None
    with pytest.raises(RegistrationError) as caught:
        register_hook("intercept_tool_call", priority="high")
    assert caught.value.__cause__ is None
