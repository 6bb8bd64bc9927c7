"""What is replaced, where, and what is left as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.bundled import Bundled, readme_of, schema_of

# Put together here, so that nobody's scanner takes this file for a leak.
SECRETS = {
    "AWS Access Key": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub Token": "ghp_" + "aB3" * 12,
    "GitLab Token": "glpat-" + "aB3-" * 5,
    "Slack Token": "xoxb-" + "123456789012-abcdefghijkl",
    "Stripe Access Key": "sk_live_" + "aB3" * 8,
    "SendGrid API Key": "SG." + "a" * 22 + "." + "b" * 43,
    "OpenAI Key": "sk-proj-" + "aB3" * 16,
    "Anthropic Key": "sk-ant-" + "api03-" + "aB3" * 20,
    "Google API Key": "AIza" + "aB3_-" * 7,
    "Hugging Face Token": "hf_" + "aB3" * 11,
    "npm Token": "npm_" + "aB3" * 12,
    "JSON Web Token": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + "dozjgNryP4J3jVmNHl0",
    "Private Key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc+/=\n-----END RSA PRIVATE KEY-----",
}  # fmt: skip

FREE = """
commit 9fceb02d0ae598e95dc970b74767f19372d61af8
9fceb02 HEAD@{0}: commit: mend the bug
id: 123e4567-e89b-12d3-a456-426614174000
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
"integrity": "sha512-8+9WqebbFzpX9OR+Wa6O29asIogeRMzcGtAINdpMHHyAg10f05aSFVBbcEqGf/PXw1EjAZ=="
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkQmCC
see https://example.com:8080/a/b?c=d and http://localhost:3000/
git@github.com:someone/something.git
postgres://localhost:5432/app
def token_of(password: str) -> str:
password = input("Password: ")
API_KEY=$(cat key)
""".strip().splitlines()


@pytest.fixture
def on(tmp_path: Path) -> Bundled:
    return Bundled(tmp_path, "redact-secrets")


def shown(on: Bundled, text: str) -> str:
    """What the model gets of a tool's result."""
    with on.turn() as turn:
        return str(turn.transform_tool_result("read_file", {"path": "a"}, text).final(text))


@pytest.mark.parametrize(("kind", "secret"), SECRETS.items(), ids=list(SECRETS))
def test_a_secret_is_replaced_wherever_it_stands(on: Bundled, kind: str, secret: str) -> None:
    """In input, in results, in JSON; what is around it stays."""
    sign = rf"\[redacted: {kind} [0-9a-f]{{4}}\]"
    for text in (secret, f"x = '{secret}' # y", f"a\n{secret}\nb", f"key={secret}&z=1"):
        before, after = text.split(secret)
        assert re.fullmatch(re.escape(before) + sign + re.escape(after), shown(on, text)), text
    in_json = shown(on, json.dumps({"output": f"a {secret} b"}))
    assert re.fullmatch(rf"a {sign} b", json.loads(in_json)["output"])
    with on.turn() as turn:
        told = turn.transform_user_input(f"use {secret}").final("")
    assert re.fullmatch(rf"use {sign}", told)


def test_a_password_in_an_address(on: Bundled) -> None:
    text = shown(on, "postgres://me:hunter22@db:5432/x")
    assert re.fullmatch(r"postgres://me:\[redacted: .* [0-9a-f]{4}\]@db:5432/x", text)


def test_a_key_that_was_cut_off(on: Bundled) -> None:
    text = "-----BEGIN PRIVATE KEY-----\nMIIEow\nabcd\n"
    assert "MIIE" not in shown(on, text)
    assert "MIIE" not in shown(on, json.dumps({"content": text}))


@pytest.mark.parametrize("line", FREE)
def test_usual_output_is_left_alone(on: Bundled, line: str) -> None:
    assert shown(on, line) == line


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=200))
def test_a_text_without_secrets_stays_as_it_is(on: Bundled, text: str) -> None:
    with on.turn() as turn:
        outcome = turn.transform_tool_result("x", {}, text)
    if "redacted" not in str(outcome.final(text)):
        assert outcome.final(text) == text


def test_parts_of_a_message(on: Bundled) -> None:
    """Only texts are changed; images stay."""
    image: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    parts = [{"type": "text", "text": f"see {SECRETS['npm Token']}"}, image]
    with on.turn() as turn:
        told = turn.transform_user_input(parts).final(parts)
    assert told[1] == image
    assert "[redacted: npm Token" in told[0]["text"]
    assert SECRETS["npm Token"] not in json.dumps(told)


def test_the_same_secret_has_the_same_sign_in_a_conversation(on: Bundled) -> None:
    one, other = SECRETS["GitHub Token"], SECRETS["GitHub Token"].replace("aB3", "xY7")
    first = shown(on, one)
    assert shown(on, one) == first
    assert shown(on, other) != first
    with on.turn(session_id="s2") as turn:
        elsewhere = turn.transform_tool_result("x", {}, f"{one} {other}").final("")
    assert elsewhere.count("[redacted: GitHub Token") == 2


def test_nothing_of_a_secret_is_kept(on: Bundled) -> None:
    """Not in the state on disk."""
    for secret in SECRETS.values():
        shown(on, secret)
    on.runtime.close()
    kept = b"".join(path.read_bytes() for path in on.home.glob("extensions-state.db*"))
    assert not any(secret.encode()[:16] in kept for secret in SECRETS.values())


def test_what_was_said_before(on: Bundled) -> None:
    """The rest of a request is looked at too, unless that is turned off."""
    secret = SECRETS["Slack Token"]
    messages = [{"role": "user", "content": f"it is {secret}"}, {"role": "tool", "content": "x"}]
    with on.turn() as turn:
        for _ in range(2):
            outcome = turn.before_llm_call(messages, "")
            assert secret not in json.dumps(outcome.final(messages))
    on.restarted(history=False)
    with on.turn() as turn:
        assert turn.before_llm_call(messages, "").action == "pass"


def test_a_placeholder_is_not_written(on: Bundled) -> None:
    """It would take the place of the secret; to speak of it is free."""
    sign = shown(on, SECRETS["AWS Access Key"])
    assert on.call("write_file", {"path": "a", "content": f"KEY={sign}"}).blocked
    assert on.call("terminal", {"command": f"echo '{sign}' > a"}).blocked
    assert on.call("write_file", {"path": "a", "content": "KEY=«redacted:AKIA…»"}).blocked
    assert not on.call("terminal", {"command": f"echo '{sign}'"}).blocked
    assert not on.call("write_file", {"path": "a", "content": "KEY=[redacted]"}).blocked


def test_settings(tmp_path: Path) -> None:
    """Own patterns, what is no secret, and the detectors that find more."""
    key = SECRETS["AWS Access Key"]
    on = Bundled(tmp_path, "redact-secrets", patterns={"Licence": "LIC-([0-9]{4})"}, allow=[key])
    assert re.fullmatch(r"LIC-\[redacted: Licence [0-9a-f]{4}\]", shown(on, "LIC-1234"))
    assert shown(on, key) == key
    on.restarted(keywords=True, high_entropy=True)
    assert "hunter2hunter2" not in shown(on, 'password = "hunter2hunter2"')
    assert "redacted" in shown(
        on, 'x = "c3VwZXIgbG9uZyBzdHJpbmcgc2hvdWxkIGNhdXNlIGVub3VnaCBlbnRyb3B5"'
    )


def test_a_pattern_that_is_none_closes(tmp_path: Path) -> None:
    """The result is withheld, and the setting is named."""
    on = Bundled(tmp_path, "redact-secrets", patterns={"Bad": "("})
    with on.turn() as turn:
        outcome = turn.transform_tool_result("x", {}, "text")
    assert outcome.blocked
    assert "extensions.redact-secrets.patterns.Bad" in str(outcome.errors[0])


def test_settings_are_documented() -> None:
    """The page names every setting, and each has a default and a description."""
    for name, setting in schema_of("redact-secrets")["properties"].items():
        assert f"`{name}`" in readme_of("redact-secrets")
        assert "default" in setting
        assert setting["description"]
