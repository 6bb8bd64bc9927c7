"""What is sent when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hermes_ext.testing import (
    FakeClock,
    LoadedExtension,
    LoadExtension,
    assert_blocked,
    assert_passed,
)

EXTENSION = Path(__file__).parents[1]
SEND = ("send_message", {"action": "send", "target": "telegram", "message": "Done."})
At = Callable[..., LoadedExtension]


@pytest.fixture
def at(load_extension: LoadExtension, monkeypatch: pytest.MonkeyPatch) -> At:
    """The extension at a time in Berlin; 2030-01-07 is a Monday."""

    def loaded(time: str, **config: Any) -> LoadedExtension:
        extension = load_extension(EXTENSION, config={"zone": "Europe/Berlin", **config})
        clock = FakeClock(datetime.fromisoformat(time).replace(tzinfo=ZoneInfo("Europe/Berlin")))
        monkeypatch.setattr(extension.module, "now", lambda zone: clock.now(ZoneInfo(zone)))
        return extension

    return loaded


@pytest.mark.parametrize(
    ("time", "config", "open_"),
    [
        ("2030-01-07 08:59:59", {}, False),
        ("2030-01-07 09:00", {}, True),
        ("2030-01-07 16:59:59", {}, True),
        ("2030-01-07 17:00", {}, False),
        ("2030-01-12 12:00", {}, False),
        ("2030-01-12 12:00", {"days": ["sat"]}, True),
        ("2030-01-07 23:00", {"from": "22:00", "until": "06:00"}, True),
        ("2030-01-12 05:59", {"from": "22:00", "until": "06:00"}, True),
        ("2030-01-12 22:00", {"from": "22:00", "until": "06:00"}, False),
        ("2030-01-07 05:00", {"from": "22:00", "until": "06:00"}, False),
        ("2030-01-08 06:00", {"from": "22:00", "until": "06:00"}, False),
        ("2030-01-07 12:00", {"days": []}, False),
    ],
)
def test_hours(at: At, time: str, config: dict[str, Any], open_: bool) -> None:
    """The end does not belong to them; over midnight they are the day's that they began on."""
    assert at(time, **config).call(*SEND).blocked is not open_


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        SEND,
        ("send_message", {"message": "Done."}),
        (" Send_Message", {}),
        ("yb_send_dm", {}),
        ("mcp_slack_post_message", {}),
        ("mcp_mail_send", {}),
        ("terminal", {"command": "echo hi | mail -s hi a@example.com"}),
        ("terminal", {"command": "hermes --profile x send --to telegram hi"}),
        ("terminal", {"command": "hermes $what hi"}),
        ("terminal", {"command": "bash -c 'cd /tmp; sendmail x < y'"}),
        ("execute_code", {"code": "import subprocess\nsubprocess.run(['mutt', 'a@example.com'])"}),
        ("execute_code", {"code": "import smtplib\nsmtplib.SMTP('localhost')"}),
    ],
)
def test_every_way_to_send(at: At, tool: str, args: dict[str, Any]) -> None:
    """Refused at night, for every session; allowed at noon."""
    night = at("2030-01-07 03:00")
    assert_blocked(night.call(tool, args), by="working_hours", match="09:00 to 17:00")
    assert_blocked(night.call(tool, args, session_id="cron", origin="cron", interactive=False))
    assert_passed(at("2030-01-07 12:00").call(tool, args))


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("send_message", {"action": "list"}),
        ("terminal", {"command": "pytest tests/test_email.py -k sendmails"}),
        ("write_file", {"path": "draft.md", "content": "mail"}),
        ("read_file", {"path": "mail"}),
        ("terminal", {"command": "hermes sessions list"}),
    ],
)
def test_the_rest_goes_on_at_night(at: At, tool: str, args: dict[str, Any]) -> None:
    """What only looks like a message."""
    assert_passed(at("2030-01-07 03:00").call(tool, args))


def test_the_real_clock(load_extension: LoadExtension) -> None:
    """A zone that nobody knows closes; all hours are open hours."""
    hours = {
        "from": "00:00",
        "until": "00:00",
        "days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
    }
    assert_passed(load_extension(EXTENSION, config=hours).call(*SEND))
    lost = load_extension(EXTENSION, config={"zone": "Europe/Nowhere"})
    with lost.expect_failure("Nowhere"):
        assert lost.call(*SEND).blocked
