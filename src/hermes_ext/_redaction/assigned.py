"""Values behind the names of secrets: `DB_PASSWORD=…`, `password: …`, `"apiKey": "…"`.

The name decides that there may be a secret, how it is written decides what of it is the value, and
the value's own look whether it is one: programs are full of `password = get_password()`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from hermes_ext._redaction.names import STEM, is_header, is_password, is_secret, is_weak
from hermes_ext._redaction.pieces import found
from hermes_ext._redaction.values import is_harmless, is_plain, is_random, stands_for_another

Span = tuple[int, int]

# What is between a name and its value. In lower case, as the names are looked for.
_SIGN: Final = (
    r"(?P<sign>[\"'`]{0,8}\]?[ \t]{0,40}+(?:=>|[:?+]?=(?![=~])|[:\uff1a](?!:|//))[ \t]{0,40}+"
    r"|[\"'`]{1,8}[ \t]{0,8},[ \t]{0,8}(?=[\"'`])|\([ \t]{0,8}(?=[b@]?[\"'`])"
    r"|[ \t]{1,8}(?=[^\s|&;<>=:]))"
)
_NAMED: Final = re.compile(rf"{STEM}[\w.-]{{0,80}}+{_SIGN}")
_LONGEST_NAME: Final = 80
_NAME_CHARS: Final = re.compile(r"[\w.-]*")

_QUOTED: Final = re.compile(
    r"(?P<prefix>[rRbBuUfF@$]{0,2})(?:(?P<three>\"\"\"|''')(?P<long>.{0,4000}?)(?P=three)"
    r"|(?P<quote>\\{1,8}[\"'`])(?P<value>[^\r\n]{0,4000}?)(?<!\\)(?P=quote)"
    r"|(?P<plain>[\"'`])(?P<text>(?:[^\r\n\\]|\\.){0,4000}?)(?P=plain))",
    re.DOTALL,
)
_ITEM: Final = re.compile(
    r"\s{0,40}(?:(?P<plain>[\"']{1,8})(?P<text>[^\"'\r\n\\]{0,1000})(?P=plain)"
    r"|(?P<bare>[^\s\"'\\\[\]{}(),]{1,1000}))\s{0,40},?"
)
_ITEM_BELOW: Final = re.compile(
    r"[ \t]{0,40}\r?\n[ \t]{0,40}-[ \t]{1,8}(?P<plain>[\"']?)(?P<text>[^\s\"']{1,1000})(?P=plain)"
    r"(?=[ \t]{0,40}(?:[\r\n\"]|\Z))"
)
_LONGEST_LIST: Final = 2_000
_MORE_OF_WORD: Final = re.compile(
    r"(?:\"[^\"\r\n]{0,1000}\"|'[^'\r\n]{0,1000}'|[\w@#%+!*^=-]){1,1000}"
)
_TO_BLANK: Final = re.compile(r"[^\s\"'`]{1,4000}")
_BARE: Final = re.compile(r"[^\s\"'`,;&|<>(){}\[\]]{1,4000}")
_REST: Final = re.compile(r"[^\r\n\"'`\\]{1,8000}")
_SCHEME: Final = re.compile(
    r"(?i:bearer|basic|token|digest|apikey|negotiate|aws4-hmac-sha256|geniekey|ssws|splunk"
    r"|sso-key|key)[ \t]{1,4}"
)
_COOKIE: Final = re.compile(r"[^\s=;,]{1,200}=")
_COOKIE_PARTS: Final = re.compile(r"[=;,&\s]+")

# `password: str = "…"`, `password string = "…"`, `char *password[] = "…"`.
_TYPED: Final = re.compile(r"[*&]?[\w.\[\]<>|, ]{1,60}?[ \t]?=[ \t]?(?=[rbufRBUF@]{0,2}[\"'`])")
# In JSON, a blank is in the place of the backslash.
_NEXT_LINE: Final = r"[ \t]{0,8}(?:\r[ \t]{0,8})?\n[ \t]{1,40}"
# `String::from("…")`, `SecretStr("…")`; and the text below a name in YAML.
_WRAPPED: Final = re.compile(
    r"(?:String::from|Some|SecretStr|String|str|bytes)\((?=[bru]?[\"'])"
    r"|(?:ConvertTo-SecureString)[ \t]{1,4}(?:-String[ \t]{1,4})?(?=[\"'])"
    r"|!{1,2}\w[\w:/.-]{0,40}[ \t]{1,4}(?=[^\s|>])"
    rf"|[(\\]?{_NEXT_LINE}"
    r"(?=[\"']{1,8}[^\"'\r\n]{1,500}[\"']{1,8}[ \t]{0,8}(?:[\r\n,;)}#]|\Z))"
)
_BELOW: Final = re.compile(
    rf"(?:[|>][-+0-9]{{0,2}})?{_NEXT_LINE}(?=[^\s:\"']{{4,4000}}(?:[ \t]{{0,8}}[\r\n\"']|\Z))"
)
# What only programs have: calls, patterns, operators, assignments in a row.
_CALLED: Final = re.compile(r"\(|[A-Za-z_$][\w.$]*+(?:\(|\[|\?\.|->|::)")
_PATTERN: Final = re.compile(r"[\[({\\]")
_OPERATOR: Final = re.compile(r"[ \t]+(?:or|and|if|else|is|in|not|\+|\?|\|\||&&|==)[ \t]")
_EXPRESSION: Final = re.compile(r"[A-Za-z_$][\w$]*(?:\.[#\w$]+)*(?:==|\?|=[A-Za-z_$])")
_COLUMNS: Final = re.compile(r"\((?P<names>[^()]{1,1000})\)\s{1,40}(?i:values)\s{0,40}(?=\()")
_FIELD: Final = re.compile(
    r"[(,]\s{0,40}(?:[NEb]?(?:''(?=\s{0,40}[,)])|'{1,8}(?P<value>[^'\n]{1,1000}"
    r"(?:''[^'\n,)]{1,200}){0,8})'{1,8})|(?:[^',()]|\([^()]{0,200}\)){1,400})\s{0,40}"
    r"(?:\)\s{0,8},?\s{0,40})?"
)
_OF_A_PROGRAM: Final = re.compile(r"[._=\[{]")
# `PASS: test_a1`, `arn:aws:secretsmanager:…:123456789012:secret:a-1b2c3d`
_NO_NAME: Final = re.compile(r"PASS[ \t]*:|\w+:(?<=:\d{12}:secret:)")
_LINE_ENDS: Final = re.compile(r"[ \t]*+(?:[\r\n#]|\Z)")

# What may be before a name on a line of its own: a list, a number, a `+` of a difference, the name
# of the file, and what shells and others declare variables with.
_LEAD: Final = re.compile(
    r"[\"']?(?:[\w./-]{1,60}[:-])?(?:\d+[:|-])?"
    r"(?:[ \t]|[-+>#*]|//|export[ \t]|set[ \t]|setx[ \t]|setenv[ \t]|declare[ \t]|typeset[ \t]"
    r"|readonly[ \t]|local[ \t]|env[ \t]|arg[ \t]|run[ \t]|\\?\$env:|[\"'])*\Z",
    re.IGNORECASE,
)
_DECLARED: Final = re.compile(
    r"(?:^|[\s;&\"'])(?:ENV|ARG|setx|setenv|set(?:[ \t]-{1,2}\w+){1,3}|#define)[ \t]+\Z"
)
_LEAD_LENGTH: Final = 120
_ALONE: Final = frozenset({"pass", "pw", "pin"})  # `pass: 3, fail: 0`
_PLACEHOLDER: Final = "[redacted: "  # in which the kinds of secrets are named
_EQUALS: Final = ("=", ":=", "?=", "+=", "=>")
_LONG_WORD: Final = 8
_LONG_TOKEN: Final = 12


def assigned(text: str, shown: str, lower: str, begin: int, end: int) -> Iterator[Span]:
    """Where the values are whose names begin in a piece of a text.

    shown: the text without its escapes, see `pieces.unescaped`. lower: that in lower case.
    """
    hidden = rejected = 0  # up to where a value was found, and up to where a header has none
    for match in found(_NAMED, lower, begin, end):
        if match.start() < hidden:
            continue
        before = shown[max(match.start() - _LONGEST_NAME, 0) : match.start()]
        chars = _NAME_CHARS.match(before[::-1])
        first = match.start() - (chars.end() if chars else 0)
        name = shown[first : match.start("sign")]
        if before.rfind(_PLACEHOLDER) > before.rfind("]") or _NO_NAME.match(shown, first):
            continue
        bare = name.lstrip("-")
        known = is_secret(bare) or bare.lower() in _ALONE
        if not known or (is_header(name) and match.start() < rejected):
            continue
        place = _Place(text, shown, name, first, match["sign"], match.end())
        for span in place.values():
            yield span
            hidden = max(hidden, span[1])
        rejected = max(rejected, place.looked_at)


def inserted(shown: str) -> Iterator[Span]:
    """Where the values of a table are whose columns have such names.

    `INSERT INTO users (name, password) VALUES ('bob', '…'), ('al', '…')`
    """
    place = 0
    for match in found(_COLUMNS, shown, 0, len(shown)):
        if match.start() < place:  # within the rows of the last one
            continue
        names = [name.strip(' \t\r\n`"[]') for name in match["names"].split(",")]
        place, number = match.end(), 0
        while any(map(is_secret, names)) and (field := _FIELD.match(shown, place)):
            name, value = names[number % len(names)], field["value"]
            is_word = value is not None and is_plain(value) and not is_password(name)
            if value and is_secret(name) and not (is_word or is_harmless(value)):
                yield field.span("value")
            place, number = field.end(), number + 1


class _Place:
    """A name that is a secret's, and what is behind it."""

    def __init__(self, text: str, shown: str, name: str, first: int, sign: str, begin: int) -> None:
        self.text = text
        self.shown = shown
        self.name = name.lstrip("-")
        self.dashes = len(name) - len(self.name)
        self.sign = sign.strip("\"'`] \t").replace("\uff1a", ":")
        self.tight = self.sign in _EQUALS and sign.strip("\"'`]") == self.sign
        self.strong = is_password(self.name)
        self.first = first
        self.begin = begin
        self.looked_at = 0
        # Behind `--password= ` there is no value.
        is_empty = self.dashes > 0 and self.sign == "=" and not self.tight
        self.doubtful = is_empty or self.name.lower() in _ALONE

    def values(self) -> Iterator[Span]:
        """Where the value is; the values of a list; nothing where there is none."""
        begin = self.begin
        typed = _TYPED.match(self.shown, begin) if self.sign in ("", ":") else None
        if typed:
            begin = typed.end()
        elif not (self.sign or self.dashes or _DECLARED.search(self._before())):
            self.doubtful = True  # "the password is wrong"
        wrapped = _WRAPPED.match(self.shown, begin) or _BELOW.match(self.shown, begin)
        if wrapped and self.sign:
            begin = wrapped.end()
            # What is below a name may be a sentence as well.
            self.doubtful = self.doubtful or (
                wrapped[0].isspace() and self.shown[begin] not in "\"'"
            )
        if self.sign in (":", "=", ":=") and self.text[begin : begin + 1] == "[":
            yield from self._in_list(begin + 1)
            return
        if self.sign == ":" and self.shown[begin : begin + 1] in ("\r", "\n"):
            yield from self._in_list_below(begin)
            return
        scheme = _SCHEME.match(self.shown, begin) if is_header(self.name) else None
        begin = scheme.end() if scheme else begin
        quoted = _QUOTED.match(self.text, begin)
        span = self._in_quotes(quoted) if quoted else self._bare(begin, scheme is not None)
        if span is not None and not (self.doubtful and self._may_be_a_word(*span)):
            yield span

    def _may_be_a_word(self, begin: int, end: int) -> bool:
        value = self.text[begin:end]
        has_blank = any(char.isspace() for char in value)
        if self.sign == "" and self.name.lower() in _ALONE and not self.dashes:
            has_blank = has_blank or _OF_A_PROGRAM.search(value) is not None  # "pass sqlite3.Row"
        return len(value) < _LONG_WORD or has_blank or not is_random(value.strip("*:"))

    def _before(self) -> str:
        return self.shown[max(self.first - _LEAD_LENGTH, 0) : self.first]

    def _has_own_line(self) -> bool:
        before = self._before()
        line = before[before.rfind("\n") + 1 :]
        return len(line) < _LEAD_LENGTH and _LEAD.match(line) is not None

    def _is_nothing(self, value: str) -> bool:
        return is_harmless(value) or stands_for_another(value, self.name)

    def _in_list(self, begin: int) -> Iterator[Span]:
        limit = begin + _LONGEST_LIST
        while begin < limit and (match := _ITEM.match(self.shown, begin)):
            group = "text" if match["plain"] else "bare"
            value = match[group]
            is_value = self._is_quoted_value(value) if match["plain"] else is_random(value)
            if not self._is_nothing(value) and is_value:
                yield match.span(group)
            begin = match.end()

    def _in_list_below(self, begin: int) -> Iterator[Span]:
        limit = begin + _LONGEST_LIST
        while begin < limit and (match := _ITEM_BELOW.match(self.shown, begin)):
            if is_random(match["text"]) and not self._is_nothing(match["text"]):
                yield match.span("text")
            begin = match.end()

    def _in_quotes(self, quoted: re.Match[str]) -> Span | None:
        group = "value" if quoted["quote"] else "long" if quoted["three"] else "text"
        begin, end = quoted.span(group)
        scheme = _SCHEME.match(quoted[group]) if is_header(self.name) else None
        begin += scheme.end() if scheme else 0
        value = self.text[begin:end]
        is_pattern = "r" in quoted["prefix"].lower() and _PATTERN.search(value)
        if is_pattern or self._is_nothing(value):
            return None
        if scheme and value[0] != "[" and len(value) >= _LONG_TOKEN:
            return begin, end
        # Shells put together what stands side by side.
        is_word = self.tight and quoted["plain"] and self.name.isupper()
        more = _MORE_OF_WORD.match(self.shown, quoted.end()) if is_word else None
        if more and is_random(self.text[begin : more.end()]):
            return begin, more.end()
        return (begin, end) if self._is_quoted_value(value) else None

    def _is_quoted_value(self, value: str) -> bool:
        if "cookie" in self.name.lower() and "=" in value:
            return _is_cookie(value)
        if self.sign == ",":
            return self.dashes > 0 or is_random(value)
        if self.sign == "(":  # `set_password("…")`
            return self.strong and is_random(value)
        if any(char.isspace() for char in value):
            return (
                self.strong
                and "\n" not in value
                and (any(map(is_random, value.split())) or self._is_variable_of_a_shell())
            )
        if value.isdigit():
            return self.strong and len(value) >= 4
        return self._is_quoted_word(value)

    def _is_quoted_word(self, value: str) -> bool:
        if self.dashes or self._is_variable_of_a_shell():
            return not (is_plain(value) and is_weak(self.name))
        if is_plain(value) and not any(map(str.isdigit, value)):
            return self.strong and len(value) >= 6
        has_digits = len(value) >= _LONG_WORD and value.isalnum() and not is_plain(value)
        return is_random(value) or self.strong or has_digits

    def _is_variable_of_a_shell(self) -> bool:
        return self.tight and self.name.isupper() and self._has_own_line()

    def _bare(self, begin: int, has_scheme: bool) -> Span | None:
        if self.text[begin : begin + 1] in ("'", '"') and self.tight:
            begin += 1  # its end was cut off
        if self.sign in (",", "(") or _CALLED.match(self.shown, begin):
            return None
        if not self.sign and self.shown[begin : begin + 1] in ("-", "*", "&"):
            return None  # the next option, a pointer
        if is_header(self.name) and self.sign == ":":
            return self._header(begin, has_scheme)
        own_line = not self.dashes and self._has_own_line()
        match = (_TO_BLANK if own_line else _BARE).match(self.shown, begin)
        if match is None or match[0].endswith("..."):
            return None
        value = match[0].rstrip(",;)}" if own_line else ".")
        if self._is_nothing(value) or not self._is_bare_value(value, begin, own_line):
            return None
        return begin, begin + len(value)

    def _is_bare_value(self, value: str, begin: int, own_line: bool) -> bool:
        end = begin + len(value)
        if value.isdigit():
            return self.strong and (self.tight or self.dashes > 0 or len(value) >= 4)
        if self.dashes:
            # Behind a blank, and not behind `=`, a short word may go on with a sentence.
            is_word = self.sign == "" and len(value) < _LONG_WORD
            return is_random(value) or (not is_word and (self.dashes > 1 or self.strong))
        if self.tight:
            return self._is_variable(value, end, own_line) or is_random(value)
        if not self.sign:
            return True  # `ENV NAME value`
        return self._is_spaced_value(value, end, own_line)

    def _is_variable(self, value: str, end: int, own_line: bool) -> bool:
        """Whether `name=value` is no argument of a call and no statement of a program."""
        before = self.shown[max(self.first - 2, 0) : self.first]
        is_argument = (
            before.endswith(("(", ", "))
            or self.shown[end : end + 1] in (",", ")")
            or (self._may_be_an_expression(value) and _OPERATOR.match(self.shown, end) is not None)
            or (not own_line and _EXPRESSION.match(value) is not None)
        )
        is_word = "." in self.name or (is_weak(self.name) and not own_line)
        return not is_argument and not (is_word and is_plain(value))

    def _may_be_an_expression(self, value: str) -> bool:
        """Whether a program may go on behind `name=value`: `password=given or default`.

        Sentences have these words too: "no login with password=… in the file".
        """
        return not self.name.isupper() and (is_plain(value) or not self.strong)

    def _is_spaced_value(self, value: str, end: int, own_line: bool) -> bool:
        """Whether it is one in `name = value` and `name: value`, which programs have too."""
        line_ends = _LINE_ENDS.match(self.shown, end) is not None
        if is_plain(value):
            is_setting = own_line and line_ends and len(value) >= 6
            is_variable = self.name.isupper() and self.sign == ":"
            is_word = self.sign == ":" and value.islower()  # not `password: SecretStr`
            has_digit = any(map(str.isdigit, value))
            is_base64 = self.strong and self.sign == ":" and is_random(value)
            is_word = self.strong and (has_digit or is_word)
            return is_setting and (is_variable or is_base64 or is_word)
        if self.sign == ":" and not line_ends:
            return is_random(value)
        return is_random(value) or self.strong

    def _header(self, begin: int, has_scheme: bool) -> Span | None:
        match = _REST.match(self.shown, begin)
        if match is None:
            return None
        self.looked_at = match.end()
        value = match[0].rstrip()
        if has_scheme and "=" not in value:  # what is behind it is a sentence's
            value = (value.split(None, 1) or [""])[0]
        if self._is_nothing(value) or value[0] == "[":
            return None
        if "cookie" in self.name.lower() and "=" in value:
            is_one = _is_cookie(value)
        elif has_scheme:
            is_one = len(value) >= _LONG_TOKEN or is_random(value)
        else:
            is_long = len(value) >= 20 and not is_plain(value)
            is_one = " " not in value and (is_random(value) or is_long)
        return (begin, begin + len(value)) if is_one else None


def _is_cookie(value: str) -> bool:
    """Whether a value among those of a header is more than a word or a number: `theme=dark`."""
    return _COOKIE.match(value) is not None and any(
        is_random(each) or (each.isalnum() and not each.isalpha() and not each.isdigit())
        for each in _COOKIE_PARTS.split(value)
    )
