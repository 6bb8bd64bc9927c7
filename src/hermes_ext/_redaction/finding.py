"""Where the secrets in a text are: by the detectors of detect-secrets, and some more patterns.

Nothing is asked of any server, and nothing is kept. No pattern may take long over a text that
somebody made for it: while one is looked for, nothing else in the process runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from hermes_ext._redaction.private_keys import private_keys

LONGEST = 2_000_000  # characters; a longer text is not searched, and not shown

# Ours, and those that Hermes puts in place of some secrets in files that it reads.
PLACEHOLDER = re.compile(r"\[redacted: [^\]\n]{1,80} [0-9a-f]{4}\]|«redacted[:-][^»\n]{0,80}»")

# Modules of detect_secrets.plugins, and words of which one is in each text that they find something
# in. Most texts have none, and a word is found a hundred times faster than a pattern.
_DETECTORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "aws": ("AWSKeyDetector", ("a3t", "abia", "acca", "akia", "asia", "aws")),
    "azure_storage_key": ("AzureStorageKeyDetector", ("accountkey",)),
    "cloudant": ("CloudantDetector", ("clou", "cl_", "cl-", "clapi", "clkey", "clp", "cltoken")),
    "discord": ("DiscordBotTokenDetector", (".",)),
    "gitlab_token": ("GitLabTokenDetector", ("glpat", "gldt", "glrt", "glft", "glsoat", "glcbt",
                                             "glptt", "glimt", "glagent", "gloas", "gr1348941")),
    "ibm_cloud_iam": ("IbmCloudIamDetector", ("key", "pwd", "pass", "token")),
    "ibm_cos_hmac": ("IbmCosHmacDetector", ("secret",)),
    "mailchimp": ("MailchimpDetector", ("-us",)),
    "pypi_token": ("PypiTokenDetector", ("pypi-",)),
    "sendgrid": ("SendGridDetector", ("sg.",)),
    "slack": ("SlackDetector", ("xox", "hooks.slack.com")),
    "softlayer": ("SoftlayerDetector", ("softlayer", "sl_", "sl-", "slapi", "slkey", "slp",
                                        "sltoken")),
    "square_oauth": ("SquareOAuthDetector", ("sq0csp",)),
    "stripe": ("StripeDetector", ("k_live",)),
    "twilio": ("TwilioKeyDetector", ("ac", "sk")),
}  # fmt: skip
# What detect-secrets does not know, finds only a part of, or takes too long over.
_MORE: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("Artifactory Credentials", ("akc", "ap"),
     r"(?<![\w-])(?:AKC[a-zA-Z0-9]{10,}|AP[\dA-F](?=[a-zA-Z]{0,40}\d)"
     r"(?=[A-Z\d]{0,40}[a-z])[a-zA-Z0-9]{8,})(?![\w-])"),
    # Two parts of JSON, or more parts than a name in a program has.
    ("JSON Web Token", ("eyj",), r"(?<![\w-])eyJ[\w-]{8,}\.(?:eyJ[\w-]{8,}(?:\.[\w-]*)*"
                                 r"|[\w-]*(?:\.[\w-]{8,}){1,3})"),
    ("GitHub Token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_\w{36,}"),
    ("GitHub Token", ("github_pat_",), r"github_pat_\w{40,}"),
    ("Anthropic Key", ("sk-ant-",), r"sk-ant-[\w-]{20,}"),
    ("OpenRouter Key", ("sk-or-",), r"sk-or-[\w-]{20,}"),
    ("OpenAI Key", ("sk-",), r"\bsk-(?:proj|svcacct|admin)-[\w-]{20,}|\bsk-[A-Za-z0-9]{32,}"),
    ("Google API Key", ("aiza",), r"AIza[\w-]{35}"),
    ("Google OAuth Token", ("ya29.", "gocspx-"), r"\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}"),
    ("Hugging Face Token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,}"),
    ("npm Token", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}"),
    ("npm Token", ("_authtoken",), r"(?i:_authtoken) ?= ?[\"']?([\w.+/=-]{16,})"),
    ("Slack Token", ("xox", "xapp-"),
     r"\bxox[a-z](?:\.xox[a-z])?-[\w-]{10,}|\bxapp-\d-[\w-]{10,}"),
    ("Stripe Access Key", ("k_live_", "k_test_", "whsec_"),
     r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9+/=]{24,}"),
    ("Telegram Bot Token", (":aa",), r"(?<!\d)\d{8,10}:AA[\w-]{33}(?![\w-])"),
    ("AWS Secret Key", ("secret",),
     r"(?i:secret.?access.?key)\W{1,12}([A-Za-z0-9/+]{40})(?![\w/+=])"),
    ("Access Token", ("gsk_", "xai-", "pplx-", "tvly-", "r8_", "ntn_", "_v1_"),
     r"\b(?:gsk_|xai-|pplx-|tvly-(?:dev-|prod-)?|r8_|ntn_|do[opr]_v1_)[A-Za-z0-9]{30,}"),
    ("Access Token", ("shp", "dckr_", "hvs.", "nvapi-", "age-secret-"),
     r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|\bdckr_[a-z]{2,5}_[\w-]{20,}|\bhvs\.[\w-]{24,}"
     r"|\bnvapi-[\w-]{40,}|\bAGE-SECRET-KEY-1[A-Z0-9]{58}"),
    ("Access Token", ("lin_api_", "figd_", "sq0atp-", "pmak-", "dapi", "nrak-", "sntrys_", "glsa_",
                      "atatt3", "tskey-", "sbp_", "pscale_", "rubygems_", "key-"),
     r"\blin_api_\w{32,}|\bfigd_[\w-]{30,}|\bsq0atp-[\w-]{20,}|\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}"
     r"|\bdapi[a-f0-9]{32}|\bNRAK-[A-Z0-9]{27}|\bsntrys_[\w+/=-]{20,}|\bglsa_\w{32,}"
     r"|\bATATT3[\w=-]{30,}|\btskey-[a-z]{3,10}-[\w-]{20,}|\bsbp_[a-f0-9]{40}"
     r"|\bpscale_(?:pw|tkn|oauth)_[\w.-]{30,}|\brubygems_[a-f0-9]{48}|\bkey-[a-f0-9]{32}\b"),
    ("Azure Client Secret", ("q~",), r"(?<![\w.~-])[\w.~-]{3}\dQ~[\w.~-]{31,34}(?![\w.~-])"),
    ("Vault Token", ("s.",),
     r"(?<![\w.])s\.(?=[A-Za-z]*\d)(?=[a-z\d]*[A-Z])[A-Za-z\d]{24}(?![\w.(])"),
    ("Mapbox Token", ("pk.eyj", "sk.eyj"), r"\b[ps]k\.eyJ[\w-]{8,}\.[\w-]{10,}"),
    ("Webhook", ("/api/webhooks/",), r"/api/webhooks/\d{10,25}/([\w-]{40,})"),
    ("Password Hash", ("$6$", "$5$", "$y$", "$2b$", "$2y$", "$argon2"),
     r"\$(?:[65y]|2[aby]|argon2\w{1,2})\$[\w./$,=+-]{10,}"),
    ("Bearer Token", ("authorization",),
     r"(?i:authorization)\W{1,8}(?i:bearer|basic|token) {1,8}([\w.~+/=-]{16,})"),
    # No variable and no format stands for itself; a password may have any character of an address.
    ("Basic Auth Credentials", ("://",),
     r"://[^\s:/?#@\"'<>\\]{0,200}:(?!\$\{?\w{1,80}\}?@|[{<]|%[s(]|\*+@)([^\s/?#@\"'<>\\]{1,1000})@"),
)  # fmt: skip

_SHORTEST = 8  # characters of a secret; a shorter group is the beginning of a token

Pattern = tuple[str, re.Pattern[str], tuple[str, ...]]
Span = tuple[int, int, str]


class Finder:
    """Finds the secrets in a text. Thread-safe.

    Args:
        patterns: kind, what it looks like, and words without one of which it is not looked for.
        own: kinds that the user has named, and what they look like.
        scanners: detectors that say what they found, not where.
        allow: what is no secret.
    """

    def __init__(
        self,
        patterns: Sequence[Pattern],
        own: Sequence[tuple[str, re.Pattern[str]]],
        scanners: Sequence[Any],
        allow: Sequence[re.Pattern[str]],
    ) -> None:
        self._patterns = patterns
        self._own = own
        self._scanners = scanners
        self._allow = (*allow, PLACEHOLDER)

    def replaced(self, text: str, tag: Callable[[str], str] | None = None) -> str:
        """The text with each secret replaced by its kind, and a tag where there is one."""
        if len(text) > LONGEST:
            return f"[withheld: {len(text)} characters are too many to look for secrets in]"
        parts, place = [], 0
        for begin, end, kind in self._spans(text):
            told = kind if tag is None else f"{kind} {tag(text[begin:end])}"
            parts += [text[place:begin], f"[redacted: {told}]"]
            place = end
        return "".join(parts) + text[place:] if parts else text

    def _spans(self, text: str) -> list[Span]:
        """Where secrets are, in order and apart from each other: those that overlap are one."""
        merged: list[Span] = []
        for span in sorted(self._all(text), key=lambda span: (span[0], -span[1])):
            begin, end, _ = span
            secret = text[begin:end]
            if not secret or any(each.fullmatch(secret) for each in self._allow):
                continue
            if merged and begin < merged[-1][1]:
                first, last, kind = merged.pop()
                merged.append((first, max(end, last), kind))
            else:
                merged.append(span)
        return merged

    def _all(self, text: str) -> Iterator[Span]:
        shown = _unescaped(text)
        lowered = shown.lower()
        for kind, pattern, signs in self._patterns:
            if any(sign in lowered for sign in signs):
                for match in pattern.finditer(shown):
                    yield *_span_of(match), kind
        for begin, end in private_keys(shown):
            yield begin, end, "Private Key"
        for each in {text, shown}:
            for kind, pattern in self._own:
                for match in pattern.finditer(each):
                    groups = range(1, pattern.groups + 1)
                    yield *match.span(next((one for one in groups if match[one]), 0)), kind
        for scanner in self._scanners:
            for begin, line in _lines(shown):
                for secret in scanner.analyze_string(line):
                    for match in re.finditer(re.escape(secret), line):
                        yield begin + match.start(), begin + match.end(), scanner.secret_type


def _unescaped(text: str) -> str:
    r"""The text as JSON and programs mean it, in which each place is the same: no `n` of an `\n`
    is taken for the first letter of what follows."""
    if "\\" not in text:
        return text
    for escaped, meant in (("\\n", " \n"), ("\\r", " \r"), ("\\t", " \t"), ('\\"', '""')):
        text = text.replace(escaped, meant)
    return text


def _span_of(match: re.Match[str]) -> tuple[int, int]:
    """Where in a match the secret is: in a group, unless that is only the kind of token."""
    in_an_address = match.re.pattern.startswith("://")
    for group in range(1, match.re.groups + 1):
        if match[group] and (in_an_address or len(match[group]) >= _SHORTEST):
            return match.span(group)
    return match.span()


@lru_cache(maxsize=2)
def known_patterns(thorough: bool = True) -> tuple[Pattern, ...]:
    """The kinds of secrets that are known.

    thorough: with those of detect-secrets, whose import takes a while.
    """
    found = [(kind, re.compile(each), signs) for kind, signs, each in _MORE]
    for module, (name, signs) in _DETECTORS.items() if thorough else ():
        plugin = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
        found += [(plugin.secret_type, _bounded(each), signs) for each in plugin.denylist]
    return tuple(found)


def _bounded(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """Without the three runs of spaces in a row, which take hours over a long one."""
    text = pattern.pattern.replace("(?: *)", " {0,8}").replace("| +|", "| {1,8}|")
    return re.compile(text, pattern.flags)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    place = 0
    for line in text.splitlines(keepends=True):
        yield place, line
        place += len(line)
