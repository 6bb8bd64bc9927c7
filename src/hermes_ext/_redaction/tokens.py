"""What the keys and tokens of services look like, wherever they are.

Nothing is asked of any server, and nothing is kept. The detectors of detect-secrets are used for
what each service publishes about its tokens. Not used are those that look for names and for random
text, which `assigned` and `random_text` do in time that grows with the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final

from attrs import frozen

from hermes_ext._redaction.pieces import compiled

Signs = tuple[str, ...]


@frozen
class Kind:
    """One kind of token.

    Attributes:
        name: what it is called in a placeholder.
        signs: texts in lower case of which one is in each text with such a token. Most texts have
            none, and a text is found a hundred times faster than a pattern.
        detector: the module and class of detect-secrets that has the patterns; None for our own.
            Its import takes a while, so it waits until `first` matches.
        text: the pattern `first`: the pattern itself; of a detector, what matches in lower case
            wherever its own patterns match.
    """

    name: str
    signs: Signs
    text: str
    detector: tuple[str, str] | None = None

    @property
    def first(self) -> re.Pattern[str]:
        """What is looked for first, compiled when a text has one of the signs."""
        return compiled(self.text)

    def patterns(self) -> tuple[re.Pattern[str], ...]:
        """What to look for where a sign is; of a detector, only after `first` was found."""
        return (self.first,) if self.detector is None else _denylist(*self.detector)


@cache
def _denylist(module: str, name: str) -> tuple[re.Pattern[str], ...]:
    plugin: Any = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
    return tuple(_bounded(each) for each in plugin.denylist)


def _bounded(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """Without the three runs of spaces in a row, which take hours over a long one."""
    text = pattern.pattern.replace("(?: *)", " {0,8}").replace("| +|", "| {1,8}|")
    return re.compile(text, pattern.flags)


# Kind, module and class of detect_secrets.plugins, signs, and what matches in lower case wherever
# their patterns do.
_SERVICES: Final[tuple[tuple[str, str, str, Signs, str], ...]] = (
    ("AWS Access Key", "aws", "AWSKeyDetector", ("a3t", "abia", "acca", "akia", "asia", "aws"),
     r"a(?:3t[a-z0-9]|bia|cca|kia|sia)[0-9a-z]{16}|aws[^\n]{2,50}[\"'][0-9a-z/+]{40}"),
    ("Azure Storage Account access key", "azure_storage_key", "AzureStorageKeyDetector",
     ("accountkey",), "accountkey=[a-z0-9+/=]{80}"),
    ("Cloudant Credentials", "cloudant", "CloudantDetector",
     ("clou", "cl_", "cl-", "clapi", "clkey", "clp", "cltoken"),
     "cl(?:ou|oudant)?[_-]?(?:api)?(?:key|pwd|pw|pass|token)|cloudant[.]com"),
    ("Discord Bot Token", "discord", "DiscordBotTokenDetector", (".",),
     r"\.[a-z\d_-]{6}\.[a-z\d_-]{27}"),
    ("GitLab Token", "gitlab_token", "GitLabTokenDetector",
     ("glpat-", "gldt-", "glrt-", "glft-", "glsoat-", "glcbt-", "glptt-", "glimt-", "glagent-",
      "gloas-", "gr1348941"), r"gl[a-z]{2,5}-[\w-]{20}|gr1348941[\w-]{20}"),
    ("IBM Cloud IAM Key", "ibm_cloud_iam", "IbmCloudIamDetector", ("key", "pwd", "pass", "token"),
     r"(?:key|pwd|password|pass|token)[\"'\]:=> ]{1,24}[a-z0-9_-]{44}(?![a-z0-9_-])"),
    ("IBM COS HMAC Credentials", "ibm_cos_hmac", "IbmCosHmacDetector", ("secret",),
     r"key[\"'\]:=> ]{1,24}[a-f0-9]{48}"),
    ("Mailchimp Access Key", "mailchimp", "MailchimpDetector", ("-us",), r"-us\d"),
    ("PyPI Token", "pypi_token", "PypiTokenDetector", ("pypi-",), "pypi-ag"),
    ("SendGrid API Key", "sendgrid", "SendGridDetector", ("sg.",), r"sg\.[\w-]{22}\."),
    ("Slack Token", "slack", "SlackDetector", ("xox", "hooks.slack.com"),
     r"xox[abpors]-\d|hooks\.slack\.com"),
    ("SoftLayer Credentials", "softlayer", "SoftlayerDetector",
     ("softlayer", "sl_", "sl-", "slapi", "slkey", "slp", "sltoken"),
     r"(?:softlayer|sl)[_-]?(?:api)?[_-]?(?:key|pwd|pass|token)|api\.softlayer"),
    ("Square OAuth Secret", "square_oauth", "SquareOAuthDetector", ("sq0csp",), "sq0csp-"),
    ("Stripe Access Key", "stripe", "StripeDetector", ("k_live",), "[rs]k_live_[0-9a-z]"),
    ("Twilio API Key", "twilio", "TwilioKeyDetector", ("ac", "sk"), "(?:ac|sk)[a-z0-9]{32}"),
)  # fmt: skip
# Beginnings of tokens. Behind the short ones, which names in programs have too, stand letters and
# digits only.
_LONG: Final = (
    *("xai-", "pplx-", "nvapi-", "sk-lf-", "AQ.Ab8", "ABSK", "tgp_v1_", "lsv2_pt_", "lsv2_sk_"),
    *("pcsk_", "dop_v1_", "doo_v1_", "dor_v1_", "HRKU-", "hvs.", "hvb.", "dp.pt.", "ops_eyJ"),
    *("fm2_", "cfut_", "cfat_", "pscale_pw_", "pscale_tkn_", "pscale_oauth_", "sb_secret_"),
    *("vercel_blob_rw_", "tskey-", "lin_api_", "lin_oauth_", "figd_", "sq0atp-", "sk_org_live_"),
    *("xkeysib-", "dckr_pat_", "dckr_oat_", "ATCTT3", "CCIPAT_", "PMAK-", "NRAK-", "sntrys_"),
    *("sntryu_", "glsa_", "glc_"),
)
_SHORT: Final = (
    *("gsk_", "r8_", "ntn_", "jina_", "e2b_", "rpa_", "vcp_", "vck_", "nfp_", "napi_", "rnd_"),
    *("pul-", "phx_", "sgp_", "sqp_", "squ_", "apify_api_"),
)


def _prefixed(prefixes: Signs, char: str) -> str:
    either = "|".join(map(re.escape, prefixes))
    digit = r"(?=[A-Za-z_-]{0,40}\d)"
    return rf"(?<![\w.-])(?<!sha256=)(?:{either}){digit}{char}{{20,}}+[\w.=-]*+(?<!\.)"


# What detect-secrets does not know, finds only a part of, or takes too long over.
_OUR_OWN: Final[tuple[tuple[str, Signs, str], ...]] = (
    # A line of a wrapped image may begin like one, and is longer.
    ("Artifactory Credentials", ("akc", "ap"),
     r"A(?<![\w/+.-]A)(?:KC[a-zA-Z0-9]{10,90}|P\d[a-zA-Z0-9]{8,60}"
     r"|P[A-F](?:x{8,60}|(?=[a-zA-Z]{0,40}\d)(?=[A-Z\d]{0,40}[a-z])[a-zA-Z0-9]{8,60}))"
     r"(?![\w/+.=-])"),
    # Two parts of JSON, or more parts than a name in a program has.
    ("JSON Web Token", ("eyj",), r"eyJ(?<![\w-]eyJ)[\w-]{8,}+\.(?:eyJ[\w-]{8,}+(?:\.[\w-]*+)*"
                                 r"|[\w-]*+(?:\.[\w-]{8,}+){1,3})"),
    ("GitHub Token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
     r"gh[pousr]_\w{36,}+(?:[\w-]*+\.[\w-]{16,}+){0,2}"),
    ("GitLab Token", ("glpat-", "gldt-", "glrt-"),
     r"(?<![\w-])gl(?:pat|dt|rt)-[\w-]{20,}+\.\w\w\.\w{7,9}"),
    ("GitHub Token", ("github_pat_",), r"github_pat_\w{40,}+"),
    ("Anthropic Key", ("sk-ant-",), r"sk-ant-[\w-]{20,}+"),
    ("OpenRouter Key", ("sk-or-",), r"sk-or-[\w-]{20,}+"),
    ("OpenAI Key", ("sk-",),
     r"sk-(?<!\wsk-)(?:(?:proj|svcacct|admin|None)-[\w-]{20,}+|[A-Za-z0-9]{32,}+)"),
    ("Google API Key", ("aiza",), r"AIza(?<![\w+/]AIza)[\w-]{35}(?![\w+/=-])"),
    ("Google OAuth Token", ("ya29.", "gocspx-"), r"\bya29\.[\w-]{20,}+|\bGOCSPX-[\w-]{20,}+"),
    ("Hugging Face Token", ("hf_",), r"hf_(?<!\whf_)[A-Za-z0-9]{30,}+"),
    ("npm Token", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}|(?<=_authToken=)npm_\w{8,}"),
    ("Slack Token", ("xox", "xapp-"),
     r"\bxox[a-z](?:\.xox[a-z])?-[\w-]{10,}+|\bxapp-\d-[\w-]{10,}+"),
    ("Stripe Access Key", ("k_live_", "k_test_", "whsec_"),
     r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+|\bwhsec_[A-Za-z0-9+/=]{24,}+"),
    ("Telegram Bot Token", (":aa",), r"(?<!\d)\d{8,10}:AA[\w-]{33}(?![\w-])"),
    ("AWS Secret Key", ("secret",),
     r"(?i:secret.?access.?key)\W{1,12}([A-Za-z0-9/+]{40})(?![\w/+=])"),
    ("Access Token", _LONG, _prefixed(_LONG, r"[\w-]")),
    ("Access Token", _SHORT, _prefixed(_SHORT, "[A-Za-z0-9]")),
    ("Access Token", ("tvly-", "shp", "age-secret-", "dapi", "atatt3", "sbp_", "rubygems_", "key-"),
     r"\btvly-(?:dev-|prod-)?[A-Za-z0-9]{30,}+|\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"
     r"|\bAGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{58,}+|\bdapi[a-f0-9]{32}|\bATATT3[\w=-]{30,}+"
     r"|\bsbp_[a-f0-9]{40}|\brubygems_[a-f0-9]{48}|\bkey-[a-f0-9]{32}\b"),
    ("Access Token", ("re_", "sk_", "fc-", "sdk-", "pat", "sha256~", ".atlasv1.", "azdo", "1//0",
                      "secret_"),
     r"\bre_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}+|\bsk_[a-f0-9]{48}|\bfc-[a-f0-9]{32}\b"
     r"|\bsdk-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}|\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}"
     r"|\bsha256~[\w-]{43}|\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}+|\b1//0[\w-]{40,}+"
     r"|\bsecret_[A-Za-z0-9]{43}\b|\b[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}\b"),
    ("Azure Client Secret", ("q~",), r"(?<![\w.~-])[\w.~-]{3}\dQ~[\w.~-]{31,34}(?![\w.~-])"),
    ("Vault Token", ("s.",),
     r"s\.(?<![\w.]s\.)(?=[A-Za-z]{0,24}\d)(?=[a-z\d]{0,24}[A-Z])[A-Za-z\d]{24}(?![\w.(])"),
    ("Mapbox Token", ("pk.eyj", "sk.eyj"), r"\b[ps]k\.eyJ[\w-]{8,}+\.[\w-]{10,}+"),
    ("Webhook", ("/api/webhooks/",), r"/api/webhooks/\d{10,25}/([\w-]{40,}+)"),
    ("Webhook", ("hooks.slack.com", "webhook.office.com"),
     r"(?:hooks\.slack\.com/(?:workflow|trigger)s|webhook\.office\.com/webhookb2)/([\w@/-]{20,}+)"),
    ("Password Hash", ("$6$", "$5$", "$y$", "$2b$", "$2y$", "$2a$", "$argon2"),
     r"\$(?:[65y]|2[aby]|argon2\w{1,2})\$[\w./$,=+-]{10,}+"),
)  # fmt: skip

KINDS: Final = (
    *(Kind(name, tuple(map(str.lower, signs)), each) for name, signs, each in _OUR_OWN),
    *(
        Kind(name, signs, first, (module, detector))
        for name, module, detector, signs, first in _SERVICES
    ),
)
"""All kinds that are known."""

_SHORTEST: Final = 8  # characters of a secret; a shorter group is the beginning of a token


def token_spans(kind: Kind, matches: Iterator[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Where in these matches the secrets are: in a group, unless that is only the kind of token."""
    last = 0
    for match in matches:
        begin, end = match.span()
        if kind.detector is not None and begin > last and _is_inside(match.string, begin, end):
            continue
        last = end
        groups = range(1, match.re.groups + 1)
        whole = next((one for one in groups if len(match[one] or "") >= _SHORTEST), 0)
        yield match.span(whole)


def _is_inside(text: str, begin: int, end: int) -> bool:
    """Whether it is a piece of a longer run of base64: of an image, say."""
    around = text[begin - 1 : begin] + text[end : end + 1]
    return len(around) == 2 and _IN_BASE64.issuperset(around)


_IN_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
