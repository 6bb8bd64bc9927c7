"""What is found: each name and each token in each form, and nothing else of it is lost."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.redaction import samples
from tests.redaction.samples import BY_BASE64, BY_FORM, FORMS, NAMES, SERVICES, VALUES, written

from hermes_ext._redaction import redacted
from hermes_ext._redaction.finding import Finder


def parts(secret: str) -> list[str]:
    """What of a secret must not be left: any six characters of it."""
    return [secret[place : place + 6] for place in range(max(len(secret) - 5, 1))]


def assert_hidden(text: str, secret: str) -> None:
    told = redacted(text)
    assert not any(part in told for part in parts(secret)), told
    assert "[redacted" in told
    assert redacted(told) == told


@pytest.mark.parametrize("name", NAMES)
def test_what_has_the_name_of_a_secret_is_hidden_in_each_form(name: str) -> None:
    """As programs, shells and people write it, in JSON and in JSON in JSON too."""
    for value in VALUES:
        for form in FORMS:
            assert_hidden(written(form, name, value), value)
        assert_hidden(samples.nested(name, value), value)
        assert_hidden(samples.printed(name, value), value)
        assert json.loads(redacted(samples.printed(name, value)))["exit_code"] == 0
        assert value not in json.dumps(redacted({"env": {name: value}}))
        assert value not in json.dumps(redacted([{"name": name, "value": value}]))
        assert value not in repr(redacted({"ParameterKey": name, "ParameterValue": value}))


@pytest.mark.parametrize("text", BY_FORM.values(), ids=list(BY_FORM))
def test_what_has_the_form_of_a_secret_is_hidden(text: str) -> None:
    assert_hidden(text, samples.RANDOM)
    assert_hidden(json.dumps({"output": text}, ensure_ascii=False), samples.RANDOM)


@pytest.mark.parametrize("text", BY_BASE64.values(), ids=list(BY_BASE64))
def test_a_password_in_base64_is_hidden(text: str) -> None:
    assert_hidden(text, samples.BASIC.rstrip("="))


@pytest.mark.parametrize("value", ["aHVudGVyMg==", "SGVsbG9Xb3JsZA==", "cGFzc3dvcmQ="])
def test_a_password_in_base64_may_look_like_a_name(value: str) -> None:
    assert_hidden(f"data:\n  password: {value}\n", value.rstrip("="))


def test_what_a_shell_puts_together_is_one_value() -> None:
    assert_hidden(f"""export DB_PASSWORD='ab'"'"'{samples.RANDOM}'""", samples.RANDOM)


def test_a_variable_may_hold_a_sentence() -> None:
    assert "battery" not in redacted('export PASSPHRASE="correct horse battery staple"')


@pytest.mark.parametrize("service", SERVICES)
def test_a_services_token_is_hidden_in_each_form(service: str) -> None:
    """By what it looks like: the name that it has here says nothing."""
    sample = SERVICES[service]
    for form in (None, *samples.SERVICE_FORMS):
        text = sample if form is None else written(form, "note", sample)
        assert samples.secret_of(sample) not in redacted(text), form
        assert samples.secret_of(sample) not in redacted(json.dumps({"a": text})), form


@pytest.mark.parametrize("word", ["in", "is", "and", "or", "if"])
@pytest.mark.parametrize("form", ["no login with password={}", "DB_PASSWORD={}"])
def test_a_sentence_may_go_on_behind_a_password(form: str, word: str) -> None:
    """With a word that is an operator in programs; what an exception says is a sentence."""
    secret = "hunter2" * 2
    assert_hidden(f"{form.format(secret)} {word} the settings", secret)


def test_letters_and_digits_behind_the_name_of_a_secret() -> None:
    """They need not look random, as in the settings that an exception quotes."""
    secret = "abc123" + "def456"
    assert_hidden(repr({"session_cookie": secret, "port": 1}), secret)
    assert_hidden(f'{{"authorization": "{secret}"}}', secret)


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1.2.3:80", "[::1]", "me.local", "app.localhost:5432"]
)
def test_passwords_of_this_machine_are_shown(host: str) -> None:
    """They open nothing elsewhere; the name of a container may mean any machine."""
    local = f"postgres://bob:{samples.RANDOM}@{host}/x"
    assert redacted(local) == local
    assert_hidden(f"postgres://bob:{samples.RANDOM}@localhost.example.org/x", samples.RANDOM)
    assert_hidden(f"redis://:{samples.RANDOM}@cache:6379/0", samples.RANDOM)


HARMLESS = [
    "password = get_password()",
    "token: str",
    "token: Optional[str] = None,",
    "self.secret = secret",
    "self.token=token",
    'api_key=os.environ["X"]',
    "password: ${DB_PASSWORD}",
    "PASSWORD=<your password>",
    "PASSWORD=$(cat /run/secrets/db)",
    "API_KEY=your-api-key-here",
    "OPENAI_API_KEY=sk-...",
    "token: expired",
    "connect(user=user, password=password, token=tok1)",
    "const token = await getToken(user);",
    "this.password=e.password,this.token=t",
    "t.ServiceKey=class extends d{}",
    "password: z.string().min(8)",
    "secret: process.env.SECRET,",
    "token_type = 'bearer'",
    'auth = "oauth2"',
    '"cookie": "~0.7.2", "js-tokens": "^4.0.0", "tough-cookie": "4.1.3"',
    '"token": "access_token"',
    "tokens: 512, max_tokens=4096",
    "Cookie: a=b; theme=dark",
    "Authorization: Bearer instead of the key",
    "raise ValueError(f'bad token: {token!r}')",
    "private_key: PKCS7PrivateKeyTypes,",
    "api_key = settings.api_key or default",
    "session_cookie: &anchor",
    "password: '{{ vault_password }}'",
    "docker run -u node:node -u 1000:docker image",
    "see https://www.typescriptlang.org/play?code=1",
    "passwords are kept in the safe, tokens in the drawer",
    'TOKEN: "#ddd0c0"',
    "--series-token:#34d399}html{color:red}",
    "PASS: ld-elf/textaddr1",
    "#define CKA_TOKEN 0x00000001UL",
    "SRP_user_pwd *SRP_user_pwd_new(void);",
    "tool --no-ask-password --no-block",
    "the option --entry-token= described above",
    "callers pass sqlite3.Row objects",
    "a default login and password for it",
    "a **credential chain**: roles and profiles",
    "the cache key is linux-node16-modules and the token is base64url",
    "a library identified by 'name'",
    "def update(self, cookies: LooseCookies, url: URL = URL()) -> None:",
    '"NextToken": "eyJNYXJrZXIiOiBudWxsLCAiYm90b190cnVuY2F0ZSI6IDF9"',
    "arn:aws:secretsmanager:us-west-2:123456789012:secret:Database-a1b2c3",
    "INSERT INTO a (name, token_type) VALUES ('Xk39fjQ02mLp', NULL)",
    "docker run -u node -p 8080:80 image",
    "heroku config:set NODE_ENV=production2",
    'ssh-keygen -N "" -f key1',
    "zip -r a1.zip a -P\ntar xf a1.tar",
    "password for user1:\nuser1@10.0.0.1's password:",
    '<string name="forgot_password">Forgot password?</string>',
    'sshpass -p "$PASS" ssh a',
    "password:\n  type: string\n  minLength: 8",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_programs_and_people_write_is_left_alone(text: str) -> None:
    assert redacted(text) == text


PIECES = st.sampled_from(
    [
        *(written(form, name, VALUES[0]) for form in FORMS for name in NAMES[:8]),
        *SERVICES.values(),
        *BY_FORM.values(),
        *("\\", '\\"', "'", '"', "=", ": ", "\n", "[redacted]", "\ud800"),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES | st.text(max_size=6), max_size=6).map("\n".join))
def test_looking_once_more_finds_no_more(text: str) -> None:
    """Whatever stands beside each other, lone surrogates too."""
    finder = Finder()
    for tag in (None, lambda secret: "00ff"):
        told = finder.replaced(text, tag)
        assert finder.replaced(told, tag) == told


def test_a_long_text_is_searched_to_its_end() -> None:
    """Also where a piece of it ends, in the middle of a secret, and of a very long one."""
    finder = Finder()
    choose = random.Random(1)
    filler = "".join(choose.choices("abcdefghij \n", k=127_900))
    for length in (0, 60, 90, 99, 120):
        text = f"{filler}{' ' * length}DB_PASSWORD={samples.RANDOM}\n{filler}"
        assert samples.RANDOM not in finder.replaced(text)
    token = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIi" + "aB3_" * 20_000 + ".abcd"
    assert "aB3_" not in finder.replaced(f"{filler} {token} {filler}")
