"""What is replaced, where, and what is left as it is."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from textwrap import wrap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bundled import ROOT, Bundled, readme_of, schema_of

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
    "PyPI Token": "pypi-" + "AgEIcHlwaS5vcmc" + "aB3" * 25,
    "Discord Bot Token": "M" + "aB3" * 8 + ".aBc-1F." + "aB3" * 9,
    "Mailchimp Access Key": "ab3" * 10 + "ab-us7",
    "Square OAuth Secret": "sq0csp-" + "aB3" * 14 + "a",
    "Telegram Bot Token": "110201543" + ":AA" + "aB3" * 11,
    "Twilio API Key": "SK" + "ab34" * 8,
    "Artifactory Credentials": "AKC" + "aB3" * 20,
    "Azure Storage Account access key": "AccountKey=" + "aB3/" * 21 + "aB==",
    "OpenRouter Key": "sk-or-" + "v1-" + "ab34" * 16,
    "Google OAuth Token": "ya29." + "aB3_" * 8,
    "Access Token": "gsk_" + "aB3" * 17,
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
postgres://me:${PASSWORD}@db/x https://$USER:$TOKEN@host {scheme}://{user}:{password}@{host}
redis://me:****@db and mysql://me:<password>@db and ftp://%s:%s@%s
"resolved": "https://registry.npmjs.org/a/-/a-1.0.0.tgz#b8dd8ad0c0ba1d6b4b9ef0c3a0d1d1c4a0f0b5a1"
key: Linux-node-modules-9fceb02d0ae598e95dc970b74767f19372d61af8
if "-----BEGIN PRIVATE KEY-----" in text: ...
-----BEGIN CERTIFICATE-----
aws_session_token = os.environ["AWS_SESSION_TOKEN"]
AUTHORIZATION: Bearer $TOKEN
APACHE2LICENSE APPLICATIONS sk-circle sk-fading-circle-inner-container-element
""".strip().splitlines()


def _finding() -> Any:
    """The module, as the loader imports it."""
    folder = ROOT / "extensions/redact-secrets"
    spec = importlib.util.spec_from_file_location(
        "redact_secrets_under_test",
        folder / "__init__.py",
        submodule_search_locations=[str(folder)],
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return importlib.import_module(f"{spec.name}.finding")


finding = _finding()
FINDER = finding.finder_for(False, (), ())


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
    for before, after in ((" ", " "), ("a\n", "\nb"), ("\r\n", "\r\n"), ("\t'", "'"), ('"', '"')):
        told: Any = {"output": f"{before}{secret}{after}", "exit_code": 0}
        for _ in range(2):  # what stands in a text of JSON in a text of JSON is found too
            told = json.dumps(told)
        told = json.loads(json.loads(shown(on, told)))
        assert re.fullmatch(re.escape(before) + sign + re.escape(after), told["output"])
        assert told["exit_code"] == 0
    with on.turn() as turn:
        told = turn.transform_user_input(f"use {secret}").final("")
    assert re.fullmatch(rf"use {sign}", told)


@pytest.mark.parametrize("password", ["hunter22", "pa$$w0rd!", "a%40b", "x:y", "it;is(1,2)"])
def test_a_password_in_an_address(on: Bundled, password: str) -> None:
    for user in ("me", ""):
        text = shown(on, f"postgres://{user}:{password}@db:5432/x")
        assert re.fullmatch(rf"postgres://{user}:\[redacted: .* [0-9a-f]{{4}}\]@db:5432/x", text)


@pytest.mark.parametrize(
    "text",
    [
        "aws_secret_access_key = {}",
        "AWS_SECRET_ACCESS_KEY={}\n",
        '"SecretAccessKey": "{}",',
        "aws key: '{}'",
        "Authorization: Bearer {}",
        "-H 'authorization: token {}'",
        "//registry.npmjs.org/:_authToken={}\nalways-auth=true",
    ],
)
def test_a_secret_that_only_its_name_tells(on: Bundled, text: str) -> None:
    """What is around it stays; in JSON too."""
    secret = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYzEXAMPLEKE"
    before, after = text.split("{}")
    whole = text.format(secret)
    for told in (shown(on, whole), json.loads(shown(on, json.dumps(whole)))):
        assert told.startswith(before)
        assert told.endswith(after)
        assert "[redacted: " in told
        assert secret not in told


BODY = "\n".join(["MIIEow" + "aB3/" * 14 + "+Q"] * 4 + ["abcd=="])
HEADERS = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233\n\n"
KEYS = {
    "whole": f"-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----",
    "encrypted": f"-----BEGIN RSA PRIVATE KEY-----\n{HEADERS}{BODY}\n-----END RSA PRIVATE KEY-----",
    "cut off": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{BODY}",
    "encrypted and cut off": f"-----BEGIN EC PRIVATE KEY-----\n{HEADERS}{BODY}",
    "without its begin": f"{BODY}\n-----END PRIVATE KEY-----",
    "PGP": f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{BODY}\n-----END PGP PRIVATE KEY BLOCK-----",
    "SSH2": f"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{BODY}\n"
    "---- END SSH2 ENCRYPTED PRIVATE KEY ----",
    "PuTTY": f"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 5\n{BODY}\nPrivate-MAC: 00aa",
    "in one line": f"-----BEGIN PRIVATE KEY----- {BODY} -----END PRIVATE KEY-----".replace(
        "\n", " "
    ),
    "in a program": "\n".join(
        f'    "{line}\\n" +' for line in ("-----BEGIN PRIVATE KEY-----", *BODY.split("\n"))
    ),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=list(KEYS))
def test_a_private_key_of_several_lines(on: Bundled, key: str) -> None:
    """Nothing of it is left, however its lines end and are numbered; what is around it stays."""
    numbered = "\n".join(f"{number:6}|{line}" for number, line in enumerate(key.split("\n"), 1))
    for form in (key, key.replace("\n", "\r\n"), numbered):
        text = f"the first line.\n{form}\n(the last line)"
        for told in (shown(on, text), json.loads(shown(on, json.dumps(text)))):
            assert "[redacted: Private Key" in told
            assert "aB3/" not in told
            assert "abcd" not in told
            assert told.startswith("the first line.")
            assert told.endswith("(the last line)")
        alone = shown(on, json.dumps({"output": form.removesuffix("abcd"), "exit_code": 0}))
        assert "aB3/" not in alone
        assert json.loads(alone)["exit_code"] == 0


@pytest.mark.parametrize("line", FREE)
def test_usual_output_is_left_alone(on: Bundled, line: str) -> None:
    assert shown(on, line) == line


def test_no_program_is_changed() -> None:
    """Nothing in the sources of this package is taken for a secret."""
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert FINDER.replaced(text, lambda secret: "0000") == text, file


def test_an_image_is_left_alone() -> None:
    data = b64encode(Random(1).randbytes(100_000)).decode()
    for text in (data, f"data:image/png;base64,{data}", "\n".join(wrap(data[:9000], 76))):
        assert FINDER.replaced(text, lambda secret: "0000") == text


WORDS = st.one_of(
    st.text(max_size=20), st.sampled_from(["\\n", '\\"', "://", "key", " = ", "sk-", "-----"])
)


@settings(max_examples=80)
@given(st.lists(WORDS).map("".join))
def test_a_text_without_secrets_stays_as_it_is(text: str) -> None:
    """Byte for byte, but for what is announced in its place."""
    told = FINDER.replaced(text, lambda secret: "0000")
    assert told == text or "[redacted: " in told


@settings(max_examples=80)
@given(st.lists(st.one_of(WORDS, st.sampled_from([*SECRETS.values(), *KEYS.values()]))))
def test_what_was_replaced_stays(parts: list[str]) -> None:
    """Looking once more finds no more: a request says what the result said."""
    told = FINDER.replaced("\n".join(parts), lambda secret: "0000")
    assert FINDER.replaced(told, lambda secret: "1111") == told


@pytest.mark.parametrize(
    "text",
    [
        *(
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----A\n",
            "PuTTY-User-Key-File-2:",
        ),
        *("eyJ-", "eyJaaaaaaaaa.", "sk-", "//x:_authToken", "://a:", "aws key ", "xoxb-1-", "+"),
        *("-----BEGIN PRIVATE KEY-----" + " " * 50_000, "ibm_key" + " " * 50_000, "cl_key \t"),
    ],
)
def test_a_text_that_is_made_to_take_long(text: str) -> None:
    """Takes no longer than another one of its length; nothing here would end soon otherwise."""
    FINDER.replaced((text * (100_000 // len(text) + 1))[:100_000] + ".", lambda secret: "0000")


def test_a_long_text_is_searched_and_given(on: Bundled) -> None:
    """Nothing is withheld for its length; what is at its end is found."""
    secret = SECRETS["GitHub Token"]
    text = "some words\n" * 400_000
    told = shown(on, f"{text}{secret}\n")
    assert told.startswith(text)
    assert secret not in told


def test_secrets_that_overlap_are_replaced_as_one() -> None:
    """Nothing of either is left."""
    finder = finding.finder_for(False, (("A", "abc+d"), ("B", "cd+e")), ())
    assert finder.replaced("xabcdex", lambda secret: "0000") == "x[redacted: A 0000]x"


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


def test_where_nothing_can_be_stored(on: Bundled) -> None:
    """Secrets are replaced all the same, and have the same sign in this process."""
    on.without_store()
    secret = SECRETS["GitHub Token"]
    first = shown(on, secret)
    assert secret not in first
    assert shown(on, secret) == first
    with on.turn() as turn:
        assert secret not in str(turn.transform_user_input(f"it is {secret}").value)
        assert not turn.transform_user_input("hello").blocked


def test_nothing_of_a_secret_is_kept(on: Bundled) -> None:
    """Not in the state on disk, and not in that of the turn, which other extensions see."""
    with on.turn() as turn:
        for secret in SECRETS.values():
            turn.transform_tool_result("x", {}, secret)
            turn.before_llm_call([{"role": "user", "content": secret}], "")
        in_memory = repr(dict(turn.state))
    on.runtime.close()
    kept = b"".join(path.read_bytes() for path in on.home.glob("extensions-state.db*"))
    assert kept
    for secret in SECRETS.values():
        assert secret.encode()[:16] not in kept
        assert secret[:16] not in in_memory


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


def test_what_the_model_has_called_tools_with(on: Bundled) -> None:
    """Secrets in the arguments of earlier calls are replaced, and the arguments stay JSON."""
    secret = SECRETS["GitHub Token"]
    function = {"name": "terminal", "arguments": json.dumps({"command": f'a "\n{secret}"', "n": 1})}
    other = {"name": "todo", "arguments": '{"a":  1}'}
    calls = [{"id": "1", "function": function}, {"id": "2", "function": other}]
    messages = [{"role": "assistant", "content": None, "tool_calls": calls}]
    with on.turn() as turn:
        [told] = turn.before_llm_call(messages, "").final(messages)
    args = json.loads(told["tool_calls"][0]["function"]["arguments"])
    assert re.fullmatch(r'a "\n\[redacted: GitHub Token [0-9a-f]{4}\]"', args["command"])
    assert args["n"] == 1
    assert told["tool_calls"][1] == calls[1]


def test_threads(on: Bundled) -> None:
    """Parallel calls of one turn give one sign for one secret."""
    secret = SECRETS["GitLab Token"]
    with on.turn() as turn, ThreadPoolExecutor(8) as pool:
        told = {
            each.final("")
            for each in pool.map(
                lambda number: turn.transform_tool_result("x", {"n": number}, secret), range(40)
            )
        }
    assert len(told) == 1


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
    random = "c3VwZXIgbG9uZyBzdHJpbmcgc2hvdWxkIGNhdXNlIGVub3VnaCBlbnRyb3B5"
    assert shown(on, f'x = "{random}"') == f'x = "{random}"'
    on.restarted(high_entropy=True)
    for quoted in (f'x = "{random}"', f"x = '{'0123456789abcdef' * 2}'", f'"{random}" + b'):
        assert "[redacted: High Entropy String" in shown(on, quoted)
    for plain in (
        '"a text of several words"',
        '"aaaaaaaaaaaaaaaaaaaaaaaa"',
        '"123456789012345678"',
    ):
        assert shown(on, plain) == plain


@pytest.mark.parametrize("keywords", [True, False])
def test_what_is_assigned_to_the_names_of_secrets(tmp_path: Path, keywords: bool) -> None:
    """It is always replaced; the setting that once turned it on is accepted."""
    on = Bundled(tmp_path, "redact-secrets", keywords=keywords)
    password = "Xk39fj" + "Q02mLpz8Vt"
    sign = r"\[redacted: Secret [0-9a-f]{4}\]"
    for before, after in (("DB_PASSWORD=", "\n"), ("export API_KEY=", ""), ("password: ", "\n")):
        told = shown(on, f"{before}{password}{after}")
        assert re.fullmatch(re.escape(before) + sign + after, told)
    same = re.findall(sign, shown(on, f"A_TOKEN={password}\nB_TOKEN={password}\n"))
    assert len(same) == 2
    assert len(set(same)) == 1


def test_a_pattern_that_is_none_closes(tmp_path: Path) -> None:
    """The result is withheld, and the setting is named."""
    on = Bundled(tmp_path, "redact-secrets", patterns={"Bad": "("})
    with on.turn() as turn:
        outcome = turn.transform_tool_result("x", {}, "text")
    assert outcome.blocked
    assert "extensions.redact-secrets.patterns.Bad" in str(outcome.errors[0])


@pytest.mark.parametrize("pattern", ["x*", "(?:(a)|b)c", "(a)?bc"])
def test_own_patterns_of_any_form(pattern: str) -> None:
    """An empty match replaces nothing; a group that did not match is not what is meant."""
    finder = finding.finder_for(False, (("Own", pattern),), ())
    assert finder.replaced("-bc-", lambda secret: "0000") in ("-bc-", "-[redacted: Own 0000]-")
    assert ("bc" in finder.replaced("-bc-", lambda secret: "0000")) == (pattern == "x*")


def test_names_that_would_break_a_placeholder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="patterns"):
        Bundled(tmp_path, "redact-secrets", patterns={'a"]': "x"})


def test_settings_are_documented() -> None:
    """The page names every setting, and each has a default and a description."""
    for name, setting in schema_of("redact-secrets")["properties"].items():
        assert f"`{name}`" in readme_of("redact-secrets")
        assert "default" in setting
        assert setting["description"]
