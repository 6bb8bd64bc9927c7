"""What is no secret: checksums, lock files, images, programs."""

from __future__ import annotations

import json
import sysconfig
import zlib
from base64 import b64encode, urlsafe_b64encode
from hashlib import md5, sha1, sha256, sha512
from pathlib import Path
from random import Random
from textwrap import wrap
from uuid import UUID

import pytest

from hermes_ext._redaction.finding import Finder

FINDER = Finder()
INSTALLED = Path(sysconfig.get_path("purelib"))

# Names of packages and files that have something of a secret's.
PACKAGES = (
    *("js-tokens", "tough-cookie", "cookie", "csrf-token", "keytar", "passport", "auth0-lock"),
    *("password-generator", "secretstorage", "credentials", "better-auth", "key-tree", "left-pad"),
)


def redactions(text: str) -> list[str]:
    """What is redacted in a text."""
    return [text[begin:end] for begin, end, _ in FINDER._spans(text)]


def of_environment(pattern: str) -> list[Path]:
    return sorted(path for path in INSTALLED.glob(pattern) if path.is_file())


@pytest.mark.parametrize(
    "pattern",
    ["*.dist-info/RECORD", "*.dist-info/WHEEL", "**/package-lock.json", "**/*.lock", "**/*.sum"],
)
def test_what_is_installed_lists_no_secrets(pattern: str) -> None:
    """Nothing is redacted in the lists of the environment that the tests run in."""
    for file in of_environment(pattern):
        assert redactions(file.read_text("utf-8", errors="replace")) == [], file


def test_images_of_the_environment_are_no_secrets() -> None:
    """As `data:` addresses have them, and wrapped."""
    for file in of_environment("**/*.png"):
        data = b64encode(file.read_bytes()).decode()
        assert redactions(f'<img src="data:image/png;base64,{data}">') == [], file
        assert redactions("\n".join(wrap(data, 76))) == [], file


@pytest.mark.parametrize("seed", range(8))
def test_made_images_are_no_secrets(seed: int) -> None:
    data = Random(seed).randbytes(400_000)
    for encoded in (b64encode(data), urlsafe_b64encode(data), b64encode(zlib.compress(data))):
        text = encoded.decode()
        for written in (text, json.dumps({"image": text}), "\n".join(wrap(text[:100_000], 76))):
            assert redactions(written) == []


@pytest.mark.parametrize("seed", range(4))
def test_made_lists_of_checksums_are_no_secrets(seed: int) -> None:
    """In the forms of pip, npm, yarn, pnpm, poetry, uv, cargo and go."""
    random = Random(seed)

    def digest(kind=sha256) -> bytes:
        return kind(random.randbytes(32)).digest()

    lines = []
    for _ in range(400):
        package, version = (
            random.choice(PACKAGES),
            f"{random.randrange(20)}.{random.randrange(9)}.0",
        )
        hashed = urlsafe_b64encode(digest()).decode().rstrip("=")
        sri = b64encode(digest(sha512)).decode()
        lines += [
            f"{package}/tokens.py,sha256={hashed},{random.randrange(9000)}",
            f'"{package}": "^{version}",',
            f'"node_modules/{package}": {{ "version": "{version}", "integrity": "sha512-{sri}" }},',
            f'  resolved "https://registry.example.org/{package}.tgz#{digest(sha1).hex()}"',
            f"  integrity sha512-{sri}",
            f"  {package}: {version}",
            f"/{package}@{version}:\n  resolution: {{integrity: sha512-{sri}}}",
            f'name = "{package}"\nversion = "{version}"\nchecksum = "{digest().hex()}"',
            f'    {{file = "{package}-{version}.whl", hash = "sha256:{digest().hex()}"}},',
            f'wheels = [{{ url = "https://example.org/{hashed}/{package}.whl" }}]',
            f'content-hash = "{digest(md5).hex()}"',
            f"example.org/{package} v{version} h1:{b64encode(digest()).decode()}",
            f"{package}=={version} --hash=sha256:{digest().hex()}",
            f"id: {UUID(bytes=random.randbytes(16))} commit {digest(sha1).hex()}",
        ]
    assert redactions("\n".join(lines)) == []
    assert redactions(json.dumps({"output": "\n".join(lines)})) == []


def test_programs_are_nearly_left_alone() -> None:
    """Of the modules at the top of the standard library, at most one place in a megabyte."""
    sources = [
        path.read_text("utf-8", errors="replace")
        for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    ]
    found = [secret for text in sources for secret in redactions(text)]
    assert len(found) <= sum(map(len, sources)) / 1_000_000, found


@pytest.mark.parametrize(
    "text",
    [
        "secrets:\n  - db_password\n  - source: server.crt",
        "passwords: [required, optional]",
        "password: !Ref DatabasePassword",
        'password: !Sub "${DatabasePassword}"',
        '{"name":"api_key","value":"none"}',
        "git clone https://git@github.com/a/b",
        "https://first.last@example.org/",
        "curl -sSfLo x https://example.org:8443/a",
        "a.py:12:def main():5432:x",
        'password: "Enter your password, please"',
        "PASSWORD ?= $(shell cat password)",
        "::add-mask::$TOKEN",
        "<key>ApiKey</key><string>$(API_KEY)</string>",
        "ConvertTo-SecureString $password -AsPlainText",
        "password: SecretStr",
    ],
)
def test_forms_without_a_secret_are_left_alone(text: str) -> None:
    assert redactions(text) == []
