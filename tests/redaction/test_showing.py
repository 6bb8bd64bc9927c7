"""What the commands show of a decision log has no secret in it, however it is written."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.redaction.samples import RANDOM

from hermes_ext._redaction import redacted
from hermes_ext._redaction.showing import LONGEST

# In parts, so that nobody who searches this repository for secrets finds one.
WORD = "hunter2" + "Tr0ub4dor"
GITHUB = "ghp_" + "A1b2C3d4E5" * 4
AWS = "AKIA" + "QWERTYUIOPASDFGH"
AWS_SECRET = "wJalrXUtnFEMI" + "/K7MDENG/bPxRfiCYzzzzzzzzzz"
SLACK = "xoxb-" + "123456789012-123456789012-abcdefGHIJKLmnopqrstuvwx"
OPENAI = "sk-" + "proj-" + "a1B2c3D4" * 6
ANTHROPIC = "sk-ant-" + "api03-" + "a1B2c3D4" * 5
JWT = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N"
STRIPE = "sk_" + "live_" + "a1B2c3D4e5F6g7H8"
PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow" * 10 + "\n-----END RSA PRIVATE KEY-----"

SECRETS = [
    (f"password={WORD}", WORD),
    (f"password: {WORD}", WORD),
    (f'password = "{WORD} with blanks"', WORD),
    (f"PASSWORD='{WORD}'", WORD),
    (f"export DB_PASSWORD={WORD}; make", WORD),
    (f"mysqldump --password={WORD} db", WORD),
    (f"tool --password {WORD} --verbose", WORD),
    (f"tool --api-key '{WORD}'", WORD),
    (f"mysql -u root -p{WORD} db", WORD),
    (f"curl -u bob:{WORD} https://example.org", WORD),
    (f"curl --user 'bob:{WORD}' https://example.org", WORD),
    (f"curl -ubob:{WORD} https://example.org", WORD),
    (f"git clone https://bob:{WORD}@example.org/x.git", WORD),
    (f"postgres://bob:{WORD}@db:5432/x", WORD),
    (f"redis://:{WORD}@cache:6379/0", WORD),
    (f"https://example.org/x?access_token={WORD}&page=2", WORD),
    (f"https://b.example.org/x?X-Amz-Signature={WORD}1234", WORD),
    (f"curl -H 'Authorization: Bearer {WORD}'", WORD),
    ("curl -H 'Authorization: Basic Ym9iOmh1bnRlcjI='", "Ym9iOmh1bnRlcjI="),
    (f"authorization: Token {WORD}", WORD),
    (f"it sent Bearer {WORD} and failed", WORD),
    (f"Cookie: theme=dark; sessionid={WORD}", WORD),
    (f"Set-Cookie: sid={WORD}; Path=/; HttpOnly", WORD),
    (f"X-Api-Key: {WORD}", WORD),
    (f'{{"password": "{WORD}", "user": "bob"}}', WORD),
    (f'sent {{"clientSecret": "{WORD}"}} to the server', WORD),
    (json.dumps({"body": json.dumps({"api_key": WORD})}), WORD),
    (f'data: "{{\\"password\\": \\"{WORD}\\"}}"', WORD),
    (f"{{'passwd': '{WORD}'}}", WORD),
    (f"<password>{WORD}</password>", WORD),
    (f"machine example.org login bob password {WORD}", WORD),
    (f"os.environ['API_TOKEN'] = '{WORD}'", WORD),
    (f"config[:secret_key] => '{WORD}'", WORD),
    (f"a token: {GITHUB}", GITHUB),
    (f"echo {GITHUB} | gh auth login", GITHUB),
    (f"aws_access_key_id = {AWS}", AWS),
    (f"aws_secret_access_key = {AWS_SECRET}", AWS_SECRET),
    (f"slack {SLACK}", SLACK),
    (f"OPENAI_API_KEY={OPENAI}", OPENAI),
    (f"the key {OPENAI} was used", OPENAI),
    (f"the key {ANTHROPIC} was used", ANTHROPIC),
    (f"jwt {JWT}", JWT),
    (f"stripe {STRIPE}", STRIPE),
    (f"cat > id_rsa <<E\n{PEM}\nE", "MIIEow"),
    (json.dumps({"content": PEM}), "MIIEow"),
    (f"sshpass -p '{WORD}' ssh host", WORD),
    (f"redis-cli -h cache -a {WORD} ping", WORD),
    (f"postgres://bob:p%40ss/{WORD}@db/x", WORD),
    (f"docker login -u bob -p {WORD} registry.example.org", WORD),
    (f"echo '{WORD}' | docker login -u bob --password-stdin", WORD),
    (f"echo {WORD} | sudo -S make install", WORD),
    (f"echo 'bob:{WORD}' | chpasswd", WORD),
    (f"openssl enc -aes-256-cbc -k {WORD} -in a", WORD),
    (f"openssl rsa -in a -passin pass:{WORD}", WORD),
    (f"unzip -P {WORD} a.zip", WORD),
    (f"7z x a.7z -p{WORD}", WORD),
    (f"htpasswd -b users bob {WORD}", WORD),
    (f"ldapsearch -D cn=bob -w {WORD} uid=bob", WORD),
    (f"smbclient //host/share -U bob%{WORD}", WORD),
    ("tool --client-secret correcthorse", "correcthorse"),
    (f"kubectl create secret generic s --from-literal=dbpass={WORD}", WORD),
    (f"SECRET_KEY_BASE={WORD}", WORD),
    (f"PASS={WORD} ./run", WORD),
    (f"my password is {WORD}", WORD),
    (f"password = 'it\\'s {WORD}'", WORD),
    (f'<add key="ApiKey" value="{WORD}" />', WORD),
    (f'<input name="password" value="{WORD}">', WORD),
    ("dapi" + "0123456789abcdef" * 2, "0123456789abcdef"),
    ("rubygems_" + "0123456789abcdef" * 3, "0123456789abcdef"),
    ("tskey-" + "auth-" + "a1B2c3D4e5F6g7H8i9J0k1", "a1B2c3D4e5"),
    ("PMAK-" + "0123456789abcdef01234567" + "-0123456789abcdef0123456789abcdef01", "89abcdef"),
    ("https://example.org/api/webhooks/123456789012/" + "a1B2c3D4" * 8, "a1B2c3D4"),
    ("abc8" + "Q~" + "a1B2c3D4e5" * 3 + "x", "a1B2c3D4e5"),
    ("useradd -p '$6$" + "saltsalt$a1B2c3D4e5F6' bob", "a1B2c3D4e5"),
    (f"AccountKey={WORD};EndpointSuffix=core.windows.net", WORD),
]

HARMLESS = [
    "the password is wrong",
    "password: required",
    "Enter your password",
    "error: invalid token: expected an identifier",
    "max_tokens=4096, tokens: 512",
    "token = lexer.next_token()",
    "password = os.environ['DB_PASSWORD']",
    'password = "${DB_PASSWORD}"',
    "export TOKEN=$TOKEN; curl -H 'Authorization: Bearer $TOKEN' https://example.org",
    "secret = settings.secret",
    "api_key: null",
    '{"password": "", "token": null, "has_password": true}',
    "git show 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "session 123e4567-e89b-12d3-a456-426614174000",
    "docker run -u 1000:1000 -p 8080:80 alpine",
    "git clone https://github.com/someone/something.git",
    "ssh bob@example.org:22",
    "There is no plan yet, so patch must not change 'app.py'. First write the plan to plan.md.",
    "tokenizer = AutoTokenizer.from_pretrained('bert-base')",
    "the bearer of bad news",
    "basic authentication is off",
    "primary_key=id, foreign_key=user_id, keyboard: qwerty",
    "def check(password: str, secret: str | None = None) -> bool:",
    "rm -rf build && mkdir -p src/secrets && ls -l",
    'if token == "system" and password != "": return',
    "author: Bob, compass: north, bypass=yes",
    "docker login registry.example.org",
    "mkdir -p src && zip -r a.zip src && cp -P a b",
    "the password is in the safe",
    "key-value pairs, a compass: north, classes: 4, access: denied",
    "http://localhost:8080/a@b",
    "echo hello | sudo tee a",
    "pass: 3, fail: 0",
    "grep -w pass a | wc -l",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS, ids=[text[:40] for text, _ in SECRETS])
def test_a_secret_is_not_shown(text: str, secret: str) -> None:
    """It is gone, and what was done with it can still be read."""
    told = redacted(text)

    assert secret not in told
    assert "[redacted" in told
    assert redacted([{"command": text}]) == [{"command": told}]


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_text_stays_as_it_is(text: str) -> None:
    """Nothing is left out of what holds no secret."""
    assert redacted(text) == text


def test_a_plain_word_behind_the_key_of_a_secret_is_one() -> None:
    """In arguments and settings nothing else decides; a variable is none."""
    for word in ("default", "secret", "example", "yes", "swordfish"):
        assert redacted({"smtp_pwd": word}) == {"smtp_pwd": "[redacted]"}
    for nothing in ("", "${SMTP_PWD}", "$SMTP_PWD", "<your password>", "[redacted]"):
        assert redacted({"smtp_pwd": nothing}) == {"smtp_pwd": nothing}


def test_keys_say_what_is_secret() -> None:
    """In arguments the name decides, however deep; numbers and switches stay."""
    value = {
        "env": {"DB_PASS": "x1", "DB_USER": "bob", "PIN": 1234},
        "headers": [{"Cookie": "a=b", "Accept": "text/html"}],
        "credentials": {"user": "bob", "key": "x2"},
        "api_keys": ["x3", "x4"],
        "password": 12345678,
        "max_tokens": 100,
        "token": True,
        "secret": None,
    }

    assert redacted(value) == {
        "env": {"DB_PASS": "[redacted]", "DB_USER": "bob", "PIN": 1234},
        "headers": [{"Cookie": "[redacted]", "Accept": "text/html"}],
        "credentials": {"user": "[redacted]", "key": "[redacted]"},
        "api_keys": ["[redacted]", "[redacted]"],
        "password": "[redacted]",
        "max_tokens": 100,
        "token": True,
        "secret": None,
    }
    assert value["api_keys"] == ["x3", "x4"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(deadline=None, max_examples=60)
@given(json_values)
def test_any_value_keeps_its_form(value: Any) -> None:
    """Whatever JSON it is given, it gives JSON of the same form, and the same the second time."""
    told = redacted(value)

    assert type(told) is type(value)
    assert redacted(told) == told


def test_very_deep_and_very_long_values_end() -> None:
    """What is deeper than anybody writes is left out; of a long text the begin is shown."""
    deep: Any = "x"
    for _ in range(2_000):
        deep = [deep]
    assert "[redacted]" in json.dumps(redacted(deep))

    told = redacted("word " * LONGEST + GITHUB)
    assert told.startswith("word word")
    assert told.endswith(f"[{5 * LONGEST + len(GITHUB)} characters]")
    cut = redacted("x" * (LONGEST - 10) + " " + GITHUB)
    assert GITHUB[:9] not in cut


@pytest.mark.parametrize(
    "part",
    ["password", "password=", 'password="', "a:", "a.", "-", "://a:", "\\", '"', "A1", "eyJ", " ",
     "Bearer ", "-u a:", "<password>", "basic ", "secret secret ", "mysql ", "-----BEGIN ", "sig=",
     "\n", "${", "AKIA", "cl_", "ap", "login a ", "&sig", "=", "mysql -p", "aws key secret "],
    ids=ascii,
)  # fmt: skip
def test_no_text_takes_long(part: str) -> None:
    """A hundred thousand characters that are made to be slow take no longer than others."""
    text = part * (100_000 // len(part))
    began = time.process_time()
    redacted(text)
    assert time.process_time() - began < 10


def test_detect_secrets_is_imported_when_it_is_used() -> None:
    """Nobody waits for it whose text has nothing that looks like a token of its services."""
    code = (
        "import sys, hermes_ext\n"
        "from hermes_ext._redaction import redacted\n"
        "assert redacted('password=hunter2') == 'password=[redacted]'\n"
        "print(any(name.startswith('detect_secrets') for name in sys.modules))\n"
        "redacted('sk_' + 'live_' + 'a1B2c3D4' * 3)\n"
        "print(any(name.startswith('detect_secrets') for name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize(
    "words",
    [
        ["server", "--token", RANDOM],
        ["server", "--port", "80", "--db-password", RANDOM, "run"],
        ["curl", "-u", f"user:{RANDOM}", "https://example.org"],
        ["mysql", "-h", "db", "-p", RANDOM],
        ["-e", f"DB_PASSWORD={RANDOM}"],
    ],
)
def test_a_command_line_in_words(words: list[str]) -> None:
    shown = redacted({"args": words})["args"]
    assert RANDOM[:6] not in str(shown)
    assert len(shown) == len(words)
    kept = [one for one in words if RANDOM not in one]
    assert [one for one in shown if "[redacted" not in one] == kept


def test_words_behind_options_that_are_no_secrets_are_shown() -> None:
    words = ["grep", "-rn", "--include", "*.py", "-e", "password", "--key", "name", "src"]
    assert redacted(words) == words


@pytest.mark.parametrize("name", ["pw", "pass"])
def test_short_names_of_passwords_in_settings(name: str) -> None:
    assert redacted({"smtp": {name: "hunter" + "2"}}) == {"smtp": {name: "[redacted]"}}
    assert redacted({name: 3}) == {name: 3}
