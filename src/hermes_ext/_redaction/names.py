"""Which names say that what they stand for is a secret. The package has no other list of them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# The last words of a name: `db_password`, `X-Api-Key`, `clientSecret`.
_ENDINGS_LISTED: Final = (
    "password, passwd, passphrase, passcode, passwort, pwd, pswd, secret, token, cookie, "
    "credential, cred, authorization, apikey, bearer, psk, mnemonic, api key, senha, passe, "
    "ntlm hash, nt hash, client assertion, admin key, role key, functions key, access key, "
    "secret key, private key, account key, encryption key, signing key, master key, storage key, "
    "shared key, subscription key, deploy key, service key, app key, client key, auth key, "
    "license key, hmac key, integration key, cookie key, jwt key, session key, aes key, rsa key, "
    "secret string, connection string, conn string, connection str, shared access signature, "
    "seed phrase, github pat, gh pat, gitlab pat, azure pat, devops pat, ado pat, ext pat"
)
_ENDINGS: Final = {tuple(each.split()) for each in _ENDINGS_LISTED.split(", ")}
# `db_pass`, not `pass`; `npm_auth`, not `auth`.
_ONLY_BEHIND_OTHERS: Final = frozenset({"pass", "auth", "sid", "pin", "pw", "otp"})
# Passwords in other languages: Spanish, German, Russian, Chinese, Japanese, Korean, Polish, Dutch,
# Czech, Swedish, Danish.
_ABROAD: Final = (
    "contrase[nñ]a|kennwort|\u043f\u0430\u0440\u043e\u043b\u044c|密[码碼]|パスワード|비밀번호|has[lł]o"
    "|wachtwoord|heslo|l[oö]senord|adgangskode"
)
_GLUED: Final = re.compile(
    r"(?:password|passwd|passphrase|apikey|secretkey|accesskey|privatekey|accountkey|signingkey"
    r"|authkey|(?:auth|access|refresh|session|bearer|bot|api|identity|registry|id|security|user"
    r"|csrf|sas|jwt|secret|oauth)token|(?:db|user|ssh|smtp|ftp|root|admin|store|key|my)(?:pass|pwd)"
    r"|requirepass|masterauth|(?:bind|root)pw|motdepasse|clientsecret|connectionstring|connstring"
    r"|rediscliauth|passin|passout"
    rf"|{_ABROAD})\Z"
)
_PASSWORD: Final = re.compile(
    rf"(?:password|(?:db|user)pwd|requirepass|(?:bind|root)pw|{_ABROAD})\Z"
)
# Of several tokens, these are no units of text that a model counts.
_TOKENS_OF: Final = frozenset(
    {"access", "api", "auth", "bot", "bearer", "refresh", "session", "oauth", "service", "user"}
)
# Of models, and of lists that are given page by page: the next one is asked for with it.
_NO_TOKENS: Final = frozenset(
    {"next", "page", "continuation", "pagination", "sync", "change", "eos", "bos", "pad", "unk",
     "sep", "cls", "mask", "stop", "special", "entry"}
)  # fmt: skip
# Services whose keys have no other word in their names: `STRIPE_KEY`.
_KEYS_OF: Final = frozenset(
    {"anthropic", "aws", "azure", "cloudflare", "cohere", "datadog", "deepseek", "firebase",
     "gemini", "github", "gitlab", "google", "groq", "heroku", "mailgun", "maps", "mistral",
     "openai", "openrouter", "pinecone", "segment", "sendgrid", "sentry", "slack", "ssh", "stripe",
     "supabase", "tavily", "twilio", "vercel"}
)  # fmt: skip
# Where it applies, or how it is written: `SECRET_KEY_BASE`, `DB_PASSWORD_PROD`, `passwordB64`.
_AFTERTHOUGHTS: Final = frozenset(
    {"base", "prod", "production", "staging", "stage", "dev", "development", "test", "testing",
     "live", "sandbox", "old", "new", "current", "previous", "primary", "secondary", "backup",
     "default", "main", "plain", "plaintext", "raw", "b", "base64", "value", "local", "ro", "rw",
     "readonly", "master", "replica"}
)  # fmt: skip
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LETTERS: Final = re.compile(r"[^\W\d_]+|\d+")
# Headers and sentences: what follows these alone is as often a remark.
_WEAK: Final = frozenset(
    {"token", "auth", "authorization", "cookie", "credential", "cred", "secret", "sid", "bearer",
     "mnemonic", "string", "signature", "pat", "otp"}
)  # fmt: skip
_HEADERS: Final = frozenset({"authorization", "cookie"})

STEM: Final = (
    "(?:pass|pwd|pswd|psk|secret|token|key|auth|cookie|cred|bearer|mnemonic|conn|phrase|signature"
    f"|senha|{_ABROAD}|ntlm|nt[_-]hash|client[_-]assertion"
    "|(?:sid|pin|pw|otp|pat)(?![a-z]))"
)
"""What is in each name that `is_secret` knows, in lower case, as a regular expression."""


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Whether a name is that of a secret: `DB_PASSWORD`, `apiKey`; not `max_tokens`."""
    words = _words_of(name)
    while len(words) > 1 and words[-1] in _AFTERTHOUGHTS:
        words = words[:-1]
    if not words:
        return False
    last = words[-1]
    if name in ("PASS", "_auth"):  # a variable, a setting of npm
        return True
    if last == "tokens":
        return len(words) > 1 and words[-2] in _TOKENS_OF
    if last in _ONLY_BEHIND_OTHERS:
        return len(words) > 1 and words != ("o", "auth")
    if last == "token" and words[-2:-1] and words[-2] in _NO_TOKENS:
        return False
    is_service = last == "key" and len(words) > 1 and words[-2] in _KEYS_OF
    is_glued = _GLUED.search("".join(words[-2:])) is not None
    return is_service or is_glued or any(words[-count:] in _ENDINGS for count in (1, 2, 3))


@lru_cache(maxsize=4096)
def is_password(name: str) -> bool:
    """Whether even a number or a plain word behind this name is a secret."""
    words = [word for word in _words_of(name) if word not in _AFTERTHOUGHTS] or [""]
    last = words[-1]
    is_one = last.startswith("pass") or last in ("pwd", "pswd", "pin", "pw", "senha")
    return is_one or _PASSWORD.search("".join(words[-2:])) is not None


@lru_cache(maxsize=4096)
def is_weak(name: str) -> bool:
    """Whether the name alone, with a word behind it, says little: `token: expired`."""
    words = _words_of(name)
    return bool(words) and words[-1] in _WEAK


@lru_cache(maxsize=4096)
def is_header(name: str) -> bool:
    """Whether a whole line behind the name is the secret: `Cookie: a=b; c=d`."""
    words = _words_of(name)
    return bool(words) and words[-1] in _HEADERS


def _words_of(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case, the last one in the singular."""
    name = name[-100:]
    words = [word.lower() for word in (_WORDS if name.isascii() else _LETTERS).findall(name)]
    while words and words[-1].isdigit():  # `password1`
        words.pop()
    # `passwords`, `api_keys`; but the `tokens` of models are counted.
    if words and words[-1].endswith("s") and not words[-1].endswith(("ss", "tokens")):
        words[-1] = words[-1][:-1]
    return tuple(words)
