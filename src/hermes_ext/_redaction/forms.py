"""Secrets that the form around them gives away: command lines, addresses, headers, markup."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Final

from attrs import frozen

from hermes_ext._redaction.names import is_secret
from hermes_ext._redaction.pieces import compiled
from hermes_ext._redaction.values import is_plain, is_random, stands_for_another

Match = re.Match[str]


@frozen
class Form:
    """One form.

    Attributes:
        signs: texts in lower case of which one is in each text with it.
        text: the pattern of the form, in which the group `value` is the secret.
        is_none: whether a match is harmless.
        kind: what is written in a placeholder; "" says no more than that it is a secret.
    """

    signs: tuple[str, ...]
    text: str
    is_none: Callable[[Match], bool]
    kind: str = ""

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when a text has one of the signs."""
        return compiled(self.text)


def _same(match: Match) -> bool:
    """`-u 1000:1000`, `--user node:node`, `--user 1000:docker`."""
    return match["user"] == match["value"] or match["user"].isdigit()


def _no_credentials(match: Match) -> bool:
    """Not a name and a password in base64."""
    value = match["value"]
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except ValueError:
        return True
    return ":" not in decoded or not decoded.isprintable()


def _a_word(match: Match) -> bool:
    return len(match["value"]) < 20 and _no_digit(match)


def _no_digit(match: Match) -> bool:
    return not any(map(str.isdigit, match["value"]))


def _no_secret(match: Match) -> bool:
    return not is_secret(match["name"]) or _is_text(match["value"])


def _is_text(value: str) -> bool:
    return is_plain(value) or (" " in value and not is_random(value))


def _short_or_a_word(match: Match) -> bool:
    return len(match["value"]) < 12 or _no_random(match)


def _no_secret_pair(match: Match) -> bool:
    value = match["value"]
    is_word = is_plain(value) and not match["name"].isupper()
    return not is_secret(match["name"]) or is_word or value[0] == "("


def _no_random(match: Match) -> bool:
    return not is_random(match["value"])


def _no_random_word(match: Match) -> bool:
    return is_plain(match["value"]) or stands_for_another(match["value"], "") or _no_random(match)


def _no_secret_attribute(match: Match) -> bool:
    """`<input type="password" value="…">`, whichever stands first."""
    names = _ATTRIBUTE.findall(f"{match['before']} {match['after']}")
    return not any(map(is_secret, names)) or is_plain(match["value"])


def _a_word_of_prose(match: Match) -> bool:
    return match["by"].islower() and is_plain(match["value"])


def _port(match: Match) -> bool:
    return match["value"].isdigit() and match[0].startswith("mongo")


def _never(_match: Match) -> bool:
    return False


def _local(match: Match) -> bool:
    """This machine, or one of its own network: what is at `db` may be anywhere."""
    return _LOCAL.match(match["host"] or "") is not None


def _local_or_a_word(match: Match) -> bool:
    return _local(match) or is_plain(match["value"]) or _no_random(match)


_ATTRIBUTE: Final = re.compile(r"\b(?i:name|key|id|type)=[\"']{1,8}([\w.:-]{1,80})")
_LOCAL: Final = re.compile(
    r"(?:localhost|[\w.-]+\.localhost|[\w.-]+\.local|127(?:\.\d{1,3}){1,3}|\[?::1\]?|0\.0\.0\.0)\.?$",
    re.IGNORECASE,
)


# An argument, and those before it; in a list of words, too: `['mysql', '-p', 'a']`.
_WORD: Final = (
    r"(?:[\"']{1,8},)?[ \t]?[\"']{0,8}"
    r"(?P<value>(?<=[\"'])[^\s\"'][^\"'\n]{0,199}|[^\s\"',-][^\s\"']{2,200})"
)
_ARGUMENTS: Final = r"[\s\"'][^\n|;]{0,200}?(?<=[\s\"'])"
_IN_ELEMENT: Final = r"\s{0,40}+(?:<!\[CDATA\[)?(?P<value>[^<>\r\n]{1,500}?)\s{0,40}(?:</|\]\]>)"
_NAME: Final = "(?:name|Name|NAME|key|Key|KEY|variable)"
_VALUE: Final = (
    r"(?:Parameter)?[vV](?:alue|ALUE)[\"']{0,8}\s{0,4}[:=]\s{0,4}[\"']{0,8}"
    r"(?P<value>[^\s\"'\\,}]{1,500})"
)
_HOST: Final = r"(?P<host>\[[\da-fA-F:.]{2,45}\]|[\w.-]{1,253})?"

# No variable and no format stands for itself; a password may have any character of an address.
_ADDRESS: Final = (
    r"://[^\s:/?#@\"'<>\\]{0,200}:(?!\$\{?\w{1,80}\}?@|[{<]|%[s(]|\*+@)"
    rf"(?P<value>[^\s/?#@\"'<>\\]{{1,1000}})@{_HOST}"
)
# With a slash in it, which should have been written as %2F; a port is none.
_SLASHED: Final = (
    r"://[^\s:/?#@\"'<>\\]{1,200}:(?!\d+/)(?![{$*]|%[s(])"
    rf"(?P<value>[^\s?#@\"'<>\\]{{1,200}})@(?=[\w\[]){_HOST}"
)

# A token in the place of the user.
_USER_ONLY: Final = rf"://(?P<value>[^\s:/?#@\"'<>\\]{{12,1000}})@(?=[\w\[]){_HOST}"

# Of these signs one has to be in a text; then what is looked for, and when that is harmless. What
# each begins with stands first, also before what must not be before it: `re` skips to it.
_FORMS: Final[tuple[tuple[tuple[str, ...], str, Callable[[Match], bool]], ...]] = (
    (("</", "<![cdata["), r"<(?P<name>[A-Za-z_][\w.:-]{0,80})(?:\s[^<>]{0,200})?>"
                          rf"{_IN_ELEMENT}", _no_secret),
    (("</key>", "</name>"), r"<(?P<tag>key|name)>\s{0,8}(?P<name>[\w.:-]{1,80})\s{0,8}</(?P=tag)>"
                            rf"\s{{0,40}}<(?:string|value)>{_IN_ELEMENT}", _no_secret),
    (("name=", "key="), r"<[^<>]{1,200}?\b(?:name|key)=[\"']{1,8}(?P<name>[\w.:-]{1,80})[\"']{1,8}"
                        rf"[^<>/]{{0,200}}>\s{{0,40}}(?:<(?:string|value)>)?{_IN_ELEMENT}",
     _no_secret),
    (("securestring",), r"ConvertTo-SecureString\s{1,4}"
                        r"(?:-(?i:string|asplaintext|force)\s{1,4}){0,3}"
                        r"(?:[\"']{1,8}|(?=[^\s\"'$(-]))(?P<value>[^\s\"']{2,200})", _never),
    (("identified",), r"(?P<by>(?i:identified\s{1,8}by))\s{1,8}(?:(?i:password)\s{1,8})?"
                      r"[\"']{1,8}(?P<value>[^\"'\n]{1,200})[\"']", _a_word_of_prose),
    (("pwd={", "password={"), r"(?i:pwd|password)=\{(?P<value>[^{}\s]{4,200})\}", _no_random),
    (("user ", "_password ", "passphrase "),
     r"(?:net user|rabbitmqctl (?:add_user|change_password)|wpa_passphrase)\s{1,4}"
     r"[^\s/-]\S{0,80}\s{1,4}(?P<value>[^\s/*\"'-][^\s\"']{2,200})", _no_random),
    (("sqlplus ", "oracle:thin:", "impdp ", "expdp "),
     r"(?:(?:sqlplus|impdp|expdp)\s[^\n|;]{0,80}?|oracle:thin:)\b\w{1,80}/"
     r"(?P<value>[^\s/@\"']{1,200})@", _never),
    (("default",), r"variable\s{1,4}[\"']{0,8}(?P<name>[\w-]{1,80})[\"']{0,8}\s{0,4}\{"
                   r"[^{}]{0,400}?\bdefault\s{0,8}=\s{0,8}"
                   r"[\"']{1,8}(?P<value>[^\"'\r\n]{1,500})[\"']", _no_secret),
    (("-> ",), r"(?P<name>\b[\w.-]{1,80})[\"']{0,8}\s{1,40}=\s"
               r"[\"']{1,8}[^\"'\r\n]{0,500}[\"']{1,8} -> [\"']{1,8}"
               r"(?P<value>[^\"'\r\n]{1,500})[\"']", _no_secret),
    (("%3d",), r"\b(?P<name>[\w.-]{1,80})%3[dD]"
               r"(?P<value>(?:[\w.~+/-]|%(?!26)[\dA-Fa-f]{2}){1,500})",
     _no_secret_pair),
    (("auth plain",), r"AUTH PLAIN\s{1,4}(?P<value>[A-Za-z0-9+/]{8,2000}={0,2})", _never),
    (("secret set ", "put-parameter"),
     r"(?:(?:keyvault|gh) secret set|put-parameter(?=[^\n]{0,400}SecureString))"
     rf"{_ARGUMENTS}(?:--value|--body|-b)[ =]?{_WORD}", _never),
    (("from-literal", "vault kv p", "config:set ", "secrets set "),
     r"(?:--from-literal[ =][\"']?|vault kv (?:put|patch)\s\S{1,200}\s"
     r"|(?:config:|secrets )set\s)[\w.-]{1,80}=(?P<value>[^\s\"']{1,500})", _short_or_a_word),
    ((" -p",), r"-(?<=\s-)(?:[uUl]|-?user(?:name)?)[ =]?[\"']{0,8}[\w.@\\-]{1,80}[\"']{0,8}\s{1,4}"
               rf"-p(?:assword)?[ =]?{_WORD}", _no_random),
    (("@tcp(", "@unix("), r"[\w.-]{1,80}:(?P<value>[^\s:/\"'@]{1,200})@(?:tcp|unix)\(", _never),
    ((":5432:", ":5433:", ":6432:", ":*:"),
     r":(?:5432|5433|6432|\*):[^\s:/]{1,80}:[^\s:/]{1,80}:(?P<value>[^\s:]{4,200})", _no_random),
    (("add-mask::",), r"::add-mask::(?P<value>[^\s$(][^\s()]{1,500})", _never),
    (("vault login",), rf"vault login\s{{1,4}}{_WORD}", _no_random),
    (("curl ",), r"curl\s[^\n|;]{0,200}?(?<=\s)-b\s?[\"']?[\w.-]{1,80}=(?P<value>[^\s\"';]{1,500})",
     _no_random),
    (("bearer",), r"[Bb](?:earer|EARER)\s{1,4}(?P<value>[\w.~+/=-]{12,4000})", _a_word),
    (("basic",), r"[Bb](?:asic|ASIC)\s{1,4}(?P<value>[A-Za-z0-9+/]{6,2000}={0,2})",
     _no_credentials),
    (("auth",), r"auth[\"']{1,8}\s{0,8}:\s{0,8}\\{0,8}[\"']"
                r"(?P<value>[A-Za-z0-9+/]{6,2000}={0,2})", _no_credentials),
    (("-u", "--proxy-u", "--auth"),
     r"-(?<![^\s\"']-)(?:[uU]|-user|-proxy-user|-auth)(?:\s{1,4}|=|(?=[^\s=]))\\?[\"']?"
     r"(?P<user>[^\s:\"'/]{1,200}):(?P<value>[^\s\"'\\]{1,500})", _same),
    (("curl",), r"curl\s[^\n|;]{0,200}?(?<=\s)-[a-zA-Z]{1,8}u\s{0,4}[\"']?"
                r"(?P<user>[^\s:\"'/]{1,200}):(?P<value>[^\s\"'\\]{1,500})", _same),
    (("http ", "https "), rf"https?{_ARGUMENTS}-a\s{{1,4}}[\"']?(?P<user>[^\s:\"'/]{{1,200}}):"
                          r"(?P<value>[^\s\"'\\]{1,500})", _same),
    (("mysql", "mariadb", "sshpass", "7z", "mongo", "useradd ", "rar "),
     rf"(?:(?:mysql|mariadb|mongo)\w{{0,20}}|sshpass|7za?|useradd|u?n?rar)"
     rf"{_ARGUMENTS}-h?p{_WORD}", _port),
    (("login",), r"\b(?:docker|podman|helm|oras|az|cf|skopeo)\s[^\n|;]{0,80}?"
                 rf"\blogin{_ARGUMENTS}-p=?{_WORD}", _never),
    (("-cli",), rf"(?:redis|valkey)-cli{_ARGUMENTS}-a{_WORD}", _never),
    (("zip ", "sqlcmd", "ipmitool", "bcp ", "mosquitto_", "ssh-keygen "),
     rf"(?:zip|sqlcmd|ipmitool|bcp|mosquitto_[ps]ub|ssh-keygen){_ARGUMENTS}-[PN]{_WORD}", _never),
    (("ldap",), rf"ldap[a-z]{{3,10}}{_ARGUMENTS}-w{_WORD}", _never),
    (("openssl",), rf"openssl\s+(?:enc{_ARGUMENTS}-[kK]|dgst{_ARGUMENTS}-hmac|passwd\s+-[156])"
                   rf"\s{_WORD}", _never),
    (("pass:",), r"pass:(?<!\w....:)(?P<value>[\w@#%+!*^=][^\s\"']{2,200})", _never),
    (("htpasswd",), r"htpasswd\s+-[A-Za-z]*b[A-Za-z]*\s+(?:-\S+\s+){0,4}\S{1,200}\s+"
                    r"\S{1,200}\s+(?P<value>\S{1,200})", _never),
    (("%",), r"-U(?<=\s-U)\s{0,4}[\w.\\/@-]{1,80}%(?P<value>[^\s\"']{1,200})", _never),
    (("sudo", "chpasswd", "--stdin", "--password-stdin"),
     r"\b(?:echo|printf)\s{1,9}(?:-\S{1,40}\s{1,9}){0,3}"
     r"[\"']{0,8}(?P<value>(?<=[\"'])[^\"'\n]{1,200}|[^\s|\"']{1,200})[\"']{0,8}\s{0,9}\|\s{0,9}"
     r"(?:sudo\s{1,9}(?:-\w{1,40}\s{1,9}){0,4}-[a-zA-Z]{0,9}S|sudo\s{1,9}chpasswd|chpasswd"
     r"|passwd\s{1,9}--stdin|\w[\w-]{0,40}\s[^\n|;]{0,80}--password-stdin)", _never),
    (("password", "passphrase", "passcode"),
     r"(?:assword|assphrase|asscode)(?: (?:for|of) [^\n:;,.]{1,60}?)?(?:'s| is|(?<![de]):)"
     r":?[ \t]{1,4}[\"'`]{0,8}(?P<value>[^\s\"'`,;]{4,200})", _no_digit),
    (("token is", "key is", "secret is"), r" is(?:(?<=oken is)|(?<=ey is)|(?<=ecret is))"
     r":?\s{1,4}[\"'`]{0,8}(?P<value>[^\s\"'`,;]{8,200})", _no_random_word),
    (("value=",), r"<(?P<before>[^<>]{1,400}?)\s(?i:value)=[\"']{1,8}"
                  r"(?P<value>[^\"'\r\n]{1,500})[\"']{1,8}(?P<after>[^<>]{0,400})",
     _no_secret_attribute),
    (("value",), rf"{_NAME}[\"']{{0,8}}\s{{0,4}}[:=]\s{{0,4}}"
                 r"[\"']{0,8}(?P<name>[\w.-]{1,80})[\"']{0,8}"
                 r"(?:,\s{0,60}[\"']{1,8}\w{1,20}[\"']{1,8}:\s{0,4}[\"']{1,8}\w{1,40}[\"']{1,8})?"
                 rf"(?:,\s{{0,60}}|\s{{1,60}}-?)[\"']{{0,8}}{_VALUE}", _no_secret_pair),
    (("value",), rf"[\"']{_VALUE}[\"']{{1,8}},\s{{0,60}}[\"']{{1,8}}{_NAME}[\"']{{1,8}}"
                 r"\s{0,4}:\s{0,4}[\"']{1,8}(?P<name>[\w.-]{1,80})[\"']", _no_secret_pair),
    (("password",), r"(?:login|machine)\s{1,8}(?!and\s|or\s)\S{1,200}"
                    r"(?:\s{1,8}account\s{1,8}\S{1,200})?\s{1,8}password\s{1,8}"
                    r"(?P<value>[^\s\"']{1,500}|\"[^\"\n]{1,500}\")", _never),
    (("sig=", "signature=", "code="),
     r"(?:sig=(?<!\w....)|[sS]ignature=|code=(?<=[?&]code=))"
     r"(?P<value>[\w%.~+/=-]{8,400}+)", _no_random),
)  # fmt: skip

FORMS: Final = (
    *(Form(*each) for each in _FORMS),
    Form(("://",), _ADDRESS, _local, "Basic Auth Credentials"),
    Form(("://",), _SLASHED, _local, "Basic Auth Credentials"),
    Form(("://",), _USER_ONLY, _local_or_a_word, "Basic Auth Credentials"),
)
"""All forms that are known."""
