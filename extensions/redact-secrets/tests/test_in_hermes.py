"""What README.md says, done by the real Hermes."""

from __future__ import annotations

import json
import re

import pytest
from tests.bundled import enable_in, prompt_in, readme_of

from hermes_ext.testing import Reply, StartSession, ToolUse

pytestmark = pytest.mark.hermes

README = readme_of("redact-secrets")
KEY = re.findall(r"glpat-\w+", README)[0]


def test_the_readmes_example(hermes_session: StartSession) -> None:
    """Enabled by its command; neither secret is in any request, and the file keeps its key."""
    prompt = prompt_in(README)
    token = re.findall(r"ghp_\w+", prompt)[0]
    calls = (
        ToolUse("read_file", {"path": "notes.txt"}),
        ToolUse("terminal", {"command": "cat notes.txt"}),
        ToolUse(
            "write_file", {"path": "notes.txt", "content": "with [redacted: GitLab Token 0a1b]"}
        ),
    )
    session = hermes_session(*(Reply(tool_calls=(call,)) for call in calls), "It is old.")
    session.hermes("extensions", *enable_in(README)).check()
    file = session.project / "notes.txt"
    file.write_text(f"the key:\n{KEY}\n", encoding="utf-8")
    run = session.run(prompt)
    assert re.fullmatch(
        r"Why is \[redacted: GitHub Token [0-9a-f]{4}\] refused\?", run.requests[0].last_user
    )
    read, shown, written = run.tool_results
    assert "[redacted: GitLab Token" in read
    assert re.fullmatch(
        r"the key:\n\[redacted: GitLab Token [0-9a-f]{4}\]\n?", json.loads(shown)["output"]
    )
    assert "[redact-secrets]" in json.loads(written)["error"]
    told = json.dumps([request.body for request in session.model.requests])
    assert token not in told
    assert KEY not in told
    assert file.read_text(encoding="utf-8") == f"the key:\n{KEY}\n"


def test_a_file_of_settings_reaches_the_model_without_its_secrets(
    hermes_session: StartSession,
) -> None:
    """`cat .env`: each name is there, and no value of those that are secret."""
    password, key = "Xk39fj" + "Q02mLpz8Vt", "hunter2" + "Tr0ub4dor"
    session = hermes_session(
        Reply(tool_calls=(ToolUse("terminal", {"command": "cat .env"}),)), "There are two."
    )
    session.hermes("extensions", *enable_in(README)).check()
    (session.project / ".env").write_text(
        f"HOST=db.example.org\nDB_PASSWORD={password}\nexport API_KEY={key}\n", encoding="utf-8"
    )
    run = session.run("Which settings are there?")
    [shown] = run.tool_results
    assert re.fullmatch(
        r"HOST=db\.example\.org\nDB_PASSWORD=\[redacted: Secret [0-9a-f]{4}\]\n"
        r"export API_KEY=\[redacted: Secret [0-9a-f]{4}\]\n?",
        json.loads(shown)["output"],
    )
    told = json.dumps([request.body for request in session.model.requests])
    assert password not in told
    assert key not in told
