"""Where the secrets in a text are: by the detectors of detect-secrets, and some more patterns.

Nothing is asked of any server, and nothing is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

# Modules of detect_secrets.plugins, and words of which one has to be in a text that is worth a
# look. Most texts have none, and a word is found a hundred times faster than a pattern.
_DETECTORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "artifactory": ("ArtifactoryDetector", ("akc", "ap")),
    "aws": ("AWSKeyDetector", ("a3t", "abia", "acca", "akia", "asia", "aws")),
    "azure_storage_key": ("AzureStorageKeyDetector", ("accountkey",)),
    "basic_auth": ("BasicAuthDetector", ("://",)),
    "cloudant": ("CloudantDetector", ("cloudant", "clou_", "clou-", "cl_", "cl-")),
    "discord": ("DiscordBotTokenDetector", ("discord", "bot", "token")),
    "gitlab_token": ("GitLabTokenDetector", ("glpat", "gldt", "glrt", "glft", "glsoat", "glcbt",
                                             "glptt", "glimt", "glagent", "gr1348941")),
    "ibm_cloud_iam": ("IbmCloudIamDetector", ("ibm", "iam", "bluemix")),
    "ibm_cos_hmac": ("IbmCosHmacDetector", ("ibm", "hmac", "secret_access_key")),
    "mailchimp": ("MailchimpDetector", ("-us",)),
    "npm": ("NpmDetector", ("_authtoken",)),
    "pypi_token": ("PypiTokenDetector", ("pypi-",)),
    "sendgrid": ("SendGridDetector", ("sg.",)),
    "slack": ("SlackDetector", ("xox", "hooks.slack.com")),
    "softlayer": ("SoftlayerDetector", ("softlayer", "sl_", "sl-")),
    "square_oauth": ("SquareOAuthDetector", ("sq0csp",)),
    "stripe": ("StripeDetector", ("k_live",)),
    "telegram_token": ("TelegramBotTokenDetector", ("telegram", "bot", "token")),
    "twilio": ("TwilioKeyDetector", ("ac", "sk")),
}  # fmt: skip
# What detect-secrets does not know, or finds only a part of.
_MORE: tuple[tuple[str, tuple[str, ...], str], ...] = (
    # With the text between its lines, also where the lines' ends are written as \\n.
    ("Private Key", ("private key",),
     r"-----BEGIN (?P<_kind>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----"
     r"(?:.*?-----END (?P=_kind)-----|[\sA-Za-z0-9+/=\\]*)"),
    ("Private Key", ("putty-user-key-file",),
     r"PuTTY-User-Key-File-\d:(?:.*?Private-MAC: [0-9a-f]+|[^\n]*)"),
    ("JSON Web Token", ("eyj",), r"\beyJ[\w=-]{8,}\.eyJ[\w=-]{8,}(?:\.[\w+/=-]*)*"),
    ("GitHub Token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_\w{36,}"),
    ("GitHub Token", ("github_pat_",), r"\bgithub_pat_\w{40,}"),
    ("Anthropic Key", ("sk-ant-",), r"\bsk-ant-[\w-]{20,}"),
    ("OpenAI Key", ("sk-",), r"\bsk-(?:proj-|svcacct-|admin-)?[\w-]{20,}T3BlbkFJ[\w-]{20,}"
                             r"|\bsk-(?:proj|svcacct|admin)-[\w-]{40,}"),
    ("Google API Key", ("aiza",), r"\bAIza[\w-]{35}"),
    ("Hugging Face Token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,}"),
    ("npm Token", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}"),
    ("Stripe Access Key", ("k_live_", "k_test_", "whsec_"),
     r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9+/=]{24,}"),
    ("Bearer Token", ("authorization",),
     r"(?i:\bauthorization\b\W{1,4}(?:bearer|basic|token) +)([\w.~+/=-]{16,})"),
)  # fmt: skip

_SHORTEST = 8  # characters of a secret; a shorter group is the beginning of a token

Pattern = tuple[str, re.Pattern[str], tuple[str, ...]]


class Finder:
    """Finds the secrets in a text. Thread-safe.

    patterns: kind, what it looks like, and words without which it is not looked for (none: it
    always is). scanners: detectors that say what they found, not where.
    """

    def __init__(
        self, patterns: Sequence[Pattern], scanners: Sequence[Any], allow: Sequence[str]
    ) -> None:
        self._patterns = patterns
        self._scanners = scanners
        self._allow = [re.compile(each) for each in allow]

    def replaced(self, text: str, tag: Callable[[str], str]) -> str:
        """The text with each secret replaced by its kind and a tag."""
        parts, place = [], 0
        for begin, end, kind in self._spans(text):
            parts += [text[place:begin], f"[redacted: {kind} {tag(text[begin:end])}]"]
            place = end
        return "".join(parts) + text[place:] if parts else text

    def _spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where secrets are, in order and apart from each other; of several the longest."""
        found = sorted(self._all(text), key=lambda span: (span[0], -span[1]))
        last = 0
        for begin, end, kind in found:
            secret = text[begin:end]
            if begin >= last and not any(each.fullmatch(secret) for each in self._allow):
                yield begin, end, kind
                last = end

    def _all(self, text: str) -> Iterator[tuple[int, int, str]]:
        lowered = text.lower()
        for kind, pattern, signs in self._patterns:
            if signs and not any(sign in lowered for sign in signs):
                continue
            for match in pattern.finditer(text):
                yield *_span_of(match, own=not signs), kind
        for scanner in self._scanners:
            for begin, line in _lines(text):
                for secret in scanner.analyze_string(line):
                    for match in re.finditer(re.escape(secret), line):
                        yield begin + match.start(), begin + match.end(), scanner.secret_type


def _span_of(match: re.Match[str], *, own: bool) -> tuple[int, int]:
    """Where in a match the secret is: in a group, unless that is only the kind of token.

    own: the pattern is the user's, who says what is meant.
    """
    for group in range(1, len(match.groups()) + 1):
        kind = group == match.re.groupindex.get("_kind")
        in_an_address = match.re.pattern.startswith("://")
        whole = own or in_an_address or len(match[group] or "") >= _SHORTEST
        if not kind and match[group] and whole:
            return match.span(group)
    return match.span()


@lru_cache(maxsize=8)
def finder_for(
    keywords: bool,
    high_entropy: bool,
    patterns: tuple[tuple[str, str], ...],
    allow: tuple[str, ...],
) -> Finder:
    """A finder for these settings.

    Raises:
        ValueError: a pattern of the settings is no regular expression.
    """
    found: list[Pattern] = []
    for module, (name, signs) in _DETECTORS.items():
        plugin = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
        found += [(plugin.secret_type, each, signs) for each in plugin.denylist]
    found += [(kind, re.compile(each, re.DOTALL), signs) for kind, signs, each in _MORE]
    found += [(kind, _compiled(each, f"patterns.{kind}"), ()) for kind, each in patterns]
    for place, each in enumerate(allow):
        _compiled(each, f"allow[{place}]")
    return Finder(found, _scanners(keywords, high_entropy), allow)


def _compiled(pattern: str, setting: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        place = f"extensions.redact-secrets.{setting}"
        raise ValueError(f"{place} is no regular expression: {error}") from error


def _scanners(keywords: bool, high_entropy: bool) -> list[Any]:
    found: list[Any] = []
    if keywords:
        found.append(import_module("detect_secrets.plugins.keyword").KeywordDetector())
    if high_entropy:
        module = import_module("detect_secrets.plugins.high_entropy_strings")
        found += [module.Base64HighEntropyString(), module.HexHighEntropyString()]
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    place = 0
    for line in text.splitlines(keepends=True):
        yield place, line
        place += len(line)
