"""Wherever the package prints or keeps a text, its secrets are hidden."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bundled import ROOT, Bundled
from tests.redaction.samples import (
    BY_FORM,
    FORMS,
    NAMES,
    RANDOM,
    SERVICES,
    nested,
    printed,
    secret_of,
    written,
)

from hermes_ext import Runtime, register_hook
from hermes_ext._redaction import redacted
from hermes_ext.hosts.hermes.adapter.person import notices
from hermes_ext.hosts.hermes.adapter.state import state
from hermes_ext.runtime import logger
from hermes_ext.settings.words import shown
from hermes_ext.turns.notices import refusal

Sink = Callable[[str], str]

TEXTS = {
    **{
        f"{form}: {name}": (written(form, name, RANDOM), RANDOM) for form in FORMS for name in NAMES
    },
    **{f"nested: {name}": (nested(name, RANDOM), RANDOM) for name in NAMES},
    **{f"printed: {name}": (printed(name, RANDOM), RANDOM) for name in NAMES},
    **{form: (text, RANDOM) for form, text in BY_FORM.items()},
    **{service: (sample, secret_of(sample)) for service, sample in SERVICES.items()},
}


@register_hook("intercept_tool_call")
def raises(tool_args: dict[str, Any]) -> None:
    """Fails as a library does that says what it was given."""
    try:
        raise KeyError(tool_args["text"])
    except KeyError as error:
        raise RuntimeError(f"cannot handle {tool_args['text']}") from error


class Kept(logging.Handler):
    """What a log file would hold."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += f"{self.format(record)} {record.args} {record.exc_info}\n"


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler = Kept()
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def _failed(text: str) -> str:
    """All that is known of a handler's failure."""
    with Runtime([raises]).turn(session_id="s1") as turn:
        outcome = turn.intercept_tool_call("terminal", {"text": text})
    [error] = outcome.errors
    assert "RuntimeError" in str(error)
    told = [str(error), error.traceback, json.dumps(outcome.to_json(), default=str)]
    return "\n".join([*told, str(outcome.message), outcome.as_tool_result()])


def _logged(kept: Kept) -> Sink:
    def log(text: str) -> str:
        kept.text = ""
        try:
            raise ValueError(text)
        except ValueError:
            logger.exception("could not handle %s", text)
        logger.warning("%r", {"a": text})
        assert "Traceback" in kept.text
        return kept.text + _failed(text) + kept.text

    return log


def _withheld_by(extension: Bundled) -> Sink:
    def handled(text: str) -> str:
        message = [{"role": "user", "content": text}]
        with extension.turn() as turn:
            result = turn.transform_tool_result("terminal", {}, text).final(text)
            asked = turn.transform_user_input(text).final(text)
            sent = turn.before_llm_call(message, "").final(message)
        assert result == asked
        return f"{result}\n{sent[0]['content']}"

    return handled


def _said(text: str) -> str:
    """What is printed on the terminal."""
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "said", set())
        patch.setattr(notices, "_print", lines.append)
        notices.say(text, log=False)
    return "\n".join([*lines, str(refusal("rules", "terminal", text))])


@pytest.mark.parametrize("sink", ["values", "failures", "logs", "results", "terminal", "settings"])
def test_no_secret_comes_through(sink: str, kept: Kept, tmp_path: Path) -> None:
    sinks: dict[str, Callable[[], Sink]] = {
        "values": lambda: lambda text: json.dumps(redacted({"text": [text]}), ensure_ascii=False),
        "failures": lambda: _failed,
        "logs": lambda: _logged(kept),
        "results": lambda: _withheld_by(Bundled(tmp_path, "redact-secrets")),
        "terminal": lambda: _said,
        "settings": lambda: shown,
    }
    printed_by = sinks[sink]()
    for kind, (text, secret) in TEXTS.items():
        assert secret not in printed_by(text), kind


def test_what_cannot_be_shown_is_logged_as_such(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A foreign object's own text that fails costs neither the record nor the caller."""
    monkeypatch.setattr(logger, "propagate", False)  # pytest-xdist cannot send a lone surrogate

    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("broken")

    logger.warning("%s", Broken())
    logger.warning("%d", "no number")
    logger.warning("a lone surrogate: \ud800")
    assert kept.text.count("a message that cannot be shown") == 2
    assert "\ud800" in kept.text


def test_there_is_one_logger_and_no_way_around_it() -> None:
    """Each module logs under the name whose records are searched, and none prints a traceback."""
    around = re.compile(
        r"traceback\.print|print_exc\(|sys\.excepthook|logging\.(?:warning|error)\("
    )
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for name in re.findall(r"getLogger\(([^)]*)\)", text):
            assert name == '"hermes_ext"', file
        if file.parent.name != "_python":  # which lists what Python's own modules have
            assert not around.search(text), file


def test_there_is_one_list_of_names_and_one_of_forms() -> None:
    """Nobody decides by a pattern of his own what is secret."""
    own = re.compile(r"re\.compile\([^)]*(?:passw|secret|token\|)", re.IGNORECASE)
    for file in (ROOT / "src").rglob("*.py"):
        if file.parent.name != "_redaction":
            assert not own.search(file.read_text(encoding="utf-8")), file
