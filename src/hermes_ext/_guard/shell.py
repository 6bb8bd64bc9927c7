"""Shell text as its simple commands, in order, with their words taken apart but not yet expanded.

It reads what bash reads, as far as it matters for which programs run with which words: quotes,
escapes, expansions, substitutions, here-documents, pipelines, compound commands, functions. It is
no judge of what is right: text that bash refuses may be read here, and what cannot be read raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from attrs import define, field, frozen

from hermes_ext._guard.places import ANY, MANY, ONE

# Further private code points: what is special in a word because nobody quoted it.
OPEN: Final = "\ue003"
COMMA: Final = "\ue004"
CLOSE: Final = "\ue005"
SPLIT: Final = "\ue006"
"""Where an expansion that is not quoted is split into fields."""

_SPECIAL: Final = {"*": MANY, "?": ONE, "{": OPEN, ",": COMMA, "}": CLOSE}
_OURS: Final = re.compile(f"[{ANY}-{SPLIT}]")
_NESTED: Final = 40  # substitutions in substitutions


class Unreadable(Exception):  # noqa: N818 - an answer, not a failure
    """The text is no shell text that can be read here."""


@frozen
class Variable:
    """`$NAME` or `${NAME…}`. operator: with its word, as in `${NAME:-word}`; "?" if not known."""

    name: str
    operator: str = ""
    word: Word = ()
    quoted: bool = False


@frozen
class Script:
    """`$(…)`, backticks, `<(…)` and `>(…)`; only of the first two it is the output that counts."""

    program: Program
    quoted: bool = False
    is_file: bool = False


@frozen
class Tilde:
    """`~` or `~user` at the beginning of a path."""

    user: str


@frozen
class Unknown:
    """A value that nobody can know here, and the substitutions in it."""

    inner: Word = ()


Part: TypeAlias = str | Variable | Script | Tilde | Unknown
Word: TypeAlias = tuple[Part, ...]


@frozen
class Redirect:
    """operator: `>`, `<<`, `<<<` and so on; word: the target, or the text that is given."""

    operator: str
    word: Word


@define
class Simple:
    """A simple command; without words where there are only assignments or redirections.

    unit: which of the statements at the top it belongs to. scope: the subshells it is in.
    chained: whether it runs only if the one before it did not fail. loop: its assignments are the
    values that a variable takes in turn. sure: whether no branch or loop decides if it runs.
    """

    words: list[Word] = field(factory=list)
    assignments: list[tuple[str, Word]] = field(factory=list)
    redirects: list[Redirect] = field(factory=list)
    unit: int = 0
    scope: tuple[int, ...] = ()
    chained: bool = False
    loop: bool = False
    sure: bool = True


Program: TypeAlias = tuple[Simple, ...]


def parse(text: str) -> Program:
    """The simple commands of a text.

    Raises:
        Unreadable: it cannot be taken apart.
    """
    # Code points that mean something here can mean nothing in a real command.
    reader = _Reader(_OURS.sub("_", text).replace("\r\n", "\n"))
    try:
        return reader.program()
    except RecursionError:
        raise Unreadable("too deep") from None


# -- reading ------------------------------------------------------------------------------------

_BLANK: Final = re.compile(r"(?:[ \t]|\\\n)+")
_COMMENT: Final = re.compile(r"#[^\n]*")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)(?:\[[^]\n]*\])?\+?=")
_REDIRECT: Final = re.compile(r"(?:\d+|\{\w+\})?(<<<|<<-?|<>|<&|>>|>&|>\||&>>|&>|<|>)")
_OPERATOR: Final = re.compile(r";;&|;;|;&|&&|\|\||\|&|[;&|\n()]")
_PLAIN: Final = re.compile(r"[^\s'\"\\$`*?\[{},~;&|()<>]+")
_BRACKET: Final = re.compile(r"\[[!^]?\]?[^]\s/'\"`$;&|()<>]*\]")
_NAME: Final = re.compile(r"[A-Za-z_]\w*|[0-9]+|[@*#?$!-]")
_TILDE: Final = re.compile(r"~([\w.+-]*)(?=[/:\s;&|()<>]|\Z)")
_SHORT_NAME: Final = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_INDEX: Final = re.compile(r"\[[^]\n]*\]")
_EXPANSION: Final = re.compile(r":?[-=+?]|##?|%%?|//?[#%]?|\^\^?|,,?|[:@]")
_EMPTY_PARENTHESES: Final = re.compile(r"[ \t]*\([ \t]*\)")
_ANSI_QUOTE: Final = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.S)
_BACKTICKS: Final = re.compile(r"`((?:[^`\\]|\\.)*)`", re.S)
_PLAIN_IN_QUOTES: Final = re.compile(r"[^\\$`\"]+")
_PLAIN_IN_BRACES: Final = re.compile(r"[^\\$`\"}']+")
_WORD_END: Final = frozenset(" \t\n;&|()<>")
_ANSI: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|0?([0-7]{1,3})|c.|(.))", re.S
)
_ANSI_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
                        "e": "\x1b", "E": "\x1b"}  # fmt: skip

_OPENERS: Final = frozenset({"if", "while", "until", "{"})
_CLOSERS: Final = frozenset({"fi", "done", "}", "esac"})
_BETWEEN: Final = frozenset({"then", "elif", "else", "do", "!", "time", "coproc", "in"})
_RESERVED: Final = _OPENERS | _CLOSERS | _BETWEEN | {"for", "select", "case", "function"}
_KEYWORD: Final = re.compile(rf"(?:{'|'.join(map(re.escape, _RESERVED))})(?=[\s;&|()<>]|\Z)")


def unescaped(text: str) -> str:
    r"""The text of `$'…'`, and what `printf` and `echo -e` make of a text: `\x2e` is a dot."""
    return _ANSI.sub(_ansi, text) if "\\" in text else text


def _ansi(found: re.Match[str]) -> str:
    hexadecimal = found[1] or found[2] or found[3]
    if hexadecimal:
        number = int(hexadecimal, 16)
        return chr(number) if number <= 0x10FFFF else ANY
    if found[4]:
        return chr(int(found[4], 8) & 0xFF)
    return _ANSI_LETTERS.get(found[5], found[5]) if found[5] else ANY


@define
class _Frame:
    """A compound command that is open: its kind, its scope, where its pipeline's element began."""

    kind: str
    scope: tuple[int, ...]
    element: int = 0
    piped: bool = False


@define
class _Reader:
    text: str
    at: int = 0
    depth: int = 0
    simples: list[Simple] = field(factory=list)
    frames: list[_Frame] = field(factory=list)
    unit: int = 0
    scopes: int = 0
    chained: bool = False
    pending: list[tuple[Simple, str, bool, bool]] = field(factory=list)

    def program(self, stop: str = "") -> Program:
        """Read to the end, or to the `)` that closes a substitution."""
        if self.depth > _NESTED:
            raise Unreadable("too deep")
        self.frames.append(_Frame(stop, ()))
        ended = False
        while not ended:
            self._skip_blank()
            if self.at >= len(self.text):
                break
            ended = self._command()
        if len(self.frames) > 1 or ended != bool(stop):
            raise Unreadable("something has no end")
        self._end_of_pipeline()
        self._here_documents()
        return tuple(self.simples)

    # -- commands -------------------------------------------------------------------------------

    def _command(self) -> bool:
        """Read one thing at the place of a command; True if it ends the substitution."""
        operator = _OPERATOR.match(self.text, self.at)
        if operator:
            return self._operator(operator[0])
        keyword = _KEYWORD.match(self.text, self.at)
        if keyword:
            self.at = keyword.end()
            self._keyword(keyword[0])
        else:
            self._simple()
        return False

    def _operator(self, operator: str) -> bool:
        if operator == "(":
            self._parenthesis()
            return False
        self.at += len(operator)
        if operator == ")":
            return self._closed()
        if operator in ("|", "|&"):
            self._end_of_element()
            self.frames[-1].piped = True
            return False
        self._end_of_pipeline()
        self.chained = operator == "&&"
        if len(self.frames) == 1:
            self.unit += 1
        if operator == "\n":
            self._here_documents()
        elif operator.startswith(";") and len(operator) > 1:
            self._patterns()
        return False

    def _closed(self) -> bool:
        self._end_of_pipeline()
        kind = self.frames[-1].kind
        if kind == "(":
            self.frames.pop()
        elif kind != "$(":
            raise Unreadable("a ) without a (")
        return kind == "$("

    def _parenthesis(self) -> None:
        arithmetic = self._arithmetic(self.at, "((")
        if arithmetic is not None:
            simple = self._new()
            simple.redirects.append(Redirect("<<<", (arithmetic,)))
            return
        self.at += 1
        self._open("(", subshell=True)

    def _keyword(self, word: str) -> None:
        if word in _OPENERS:
            self._open(word)
        elif word in _CLOSERS:
            self._end_of_pipeline()
            if len(self.frames) < 2 or self.frames[-1].kind in ("(", "$("):
                raise Unreadable(f"a {word} that closes nothing")
            self.frames.pop()
        elif word in ("for", "select"):
            self._loop()
        elif word == "case":
            self._case()
        elif word == "time":
            self._take("[ \\t]+-p")
        elif word == "function":
            self._skip_blank()
            self._word()
            self._empty_parentheses()

    def _loop(self) -> None:
        self._skip_blank()
        self._open("for")
        arithmetic = self._arithmetic(self.at, "((")
        if arithmetic is not None:
            self._new().redirects.append(Redirect("<<<", (arithmetic,)))
            return
        name = _NAME.match(self.text, self.at)
        if not name:
            raise Unreadable("a for without a name")
        self.at = name.end()
        self._skip_lines()
        simple = self._new()
        simple.loop = True
        if self._take("in"):
            self._skip_blank()
            while not self._at_end_of_command():
                simple.assignments.append((name[0], self._word()))
                self._skip_blank()
        else:
            simple.assignments.append((name[0], (Unknown(),)))

    def _case(self) -> None:
        self._open("case")
        self._skip_blank()
        self._new().redirects.append(Redirect("<<<", self._word()))
        self._skip_lines()
        if not self._take("in"):
            raise Unreadable("a case without in")
        self._patterns()

    def _patterns(self) -> None:
        """The patterns before a branch of `case`."""
        if self.frames[-1].kind != "case":
            raise Unreadable("a ;; outside of case")
        self._skip_lines()
        if self.text.startswith("esac", self.at):
            return
        if self.text.startswith("(", self.at):
            self.at += 1
        while True:
            self._skip_blank()
            self._word()
            self._skip_blank()
            ending = self.text[self.at : self.at + 1]
            self.at += 1
            if ending == ")":
                return
            if ending != "|":
                raise Unreadable("a pattern without an end")

    def _simple(self) -> None:
        simple = self._new()
        while not self._at_end_of_command():
            if self._redirect(simple):
                pass
            elif not simple.words and (found := _ASSIGNMENT.match(self.text, self.at)):
                self.at = found.end()
                before: Word = (Variable(found[1]),) if found[0].endswith("+=") else ()
                simple.assignments.append((found[1], (*before, *self._value())))
            else:
                simple.words.append(self._word())
                if simple.words[-1] == ("[[",) and len(simple.words) == 1:
                    self._conditional(simple)
                elif len(simple.words) == 1 and self._empty_parentheses():
                    self.simples.remove(simple)
                    return
            self._skip_blank()

    def _conditional(self, simple: Simple) -> None:
        self._skip_lines()
        while not self._take(r"\]\]"):
            simple.words.append(self._word(inside=True))
            self._skip_lines()

    def _empty_parentheses(self) -> bool:
        """Whether a name is that of a function, whose body follows."""
        found = _EMPTY_PARENTHESES.match(self.text, self.at)
        if found:
            self.at = found.end()
            self._skip_lines()
        return found is not None

    def _redirect(self, simple: Simple) -> bool:
        found = _REDIRECT.match(self.text, self.at)
        # <( and >( are words.
        if not found or self.text.startswith(("<(", ">("), self.at):
            return False
        self.at = found.end()
        operator = found[1]
        self._skip_blank()
        if operator in ("<<", "<<-"):
            self._here_document(simple, operator)
        else:
            simple.redirects.append(Redirect(operator, self._word()))
        return True

    # -- here-documents -------------------------------------------------------------------------

    def _here_document(self, simple: Simple, operator: str) -> None:
        start = self.at
        self._word()
        written = self.text[start : self.at]
        delimiter = re.sub(r"\\(.)|['\"]", r"\1", written)
        self.pending.append((simple, delimiter, operator == "<<-", delimiter != written))

    def _here_documents(self) -> None:
        for simple, delimiter, strip, quoted in self.pending:
            lines: list[str] = []
            while self.at < len(self.text):
                line, _, _ = self.text[self.at :].partition("\n")
                self.at += len(line) + 1
                line = line.lstrip("\t") if strip else line
                if line == delimiter:
                    break
                lines.append(line)
            body = "\n".join(lines)
            word = (body,) if quoted else self._expanded(body)
            simple.redirects.append(Redirect("<<", word))
        self.pending.clear()
        self.at = min(self.at, len(self.text))

    def _expanded(self, text: str) -> Word:
        inner = _Reader(text, depth=self.depth + 1)
        return inner.quoted_text("")

    # -- scopes ---------------------------------------------------------------------------------

    def _new(self) -> Simple:
        sure = all(frame.kind in ("", "$(", "(") for frame in self.frames)
        scope = self.frames[-1].scope
        simple = Simple(unit=self.unit, scope=scope, chained=self.chained, sure=sure)
        self.chained = False
        self.simples.append(simple)
        return simple

    def _open(self, kind: str, *, subshell: bool = False) -> None:
        scope = self.frames[-1].scope
        if subshell:
            self.scopes += 1
            scope = (*scope, self.scopes)
        self.frames.append(_Frame(kind, scope, len(self.simples)))

    def _end_of_element(self) -> None:
        """What is piped runs in a subshell of its own."""
        frame = self.frames[-1]
        self.scopes += 1
        for simple in self.simples[frame.element :]:
            outer, inner = len(frame.scope), simple.scope
            simple.scope = (*inner[:outer], self.scopes, *inner[outer:])
        frame.element = len(self.simples)

    def _end_of_pipeline(self) -> None:
        if not self.frames:
            return
        frame = self.frames[-1]
        if frame.piped:
            self._end_of_element()
        frame.piped = False
        frame.element = len(self.simples)

    # -- words ----------------------------------------------------------------------------------

    def _word(self, inside: bool = False) -> Word:
        """One word. inside: of `[[ ]]`, where operators are words too."""
        parts: list[Part] = []
        start = self.at
        tilde = _TILDE.match(self.text, self.at)
        if tilde:
            parts.append(Tilde(tilde[1]))
            self.at = tilde.end()
        ends = frozenset(" \t\n") if inside else _WORD_END
        while self.at < len(self.text):
            char = self.text[self.at]
            if self.text.startswith(("<(", ">("), self.at) and not inside:
                self._process(parts)
            elif char == "(" and parts and self._is_array(parts):
                self._array(parts)
            elif char in ends:
                break
            else:
                self._piece(parts)
        if self.at == start:
            raise Unreadable("a word is missing")
        return _merged(parts)

    def _value(self) -> Word:
        """What an assignment assigns."""
        if self.at >= len(self.text) or self.text[self.at] in _WORD_END - {"("}:
            return ()
        if self.text[self.at] == "(":
            parts: list[Part] = []
            self._array(parts)
            return _merged(parts)
        return self._word()

    def _is_array(self, parts: list[Part]) -> bool:
        return isinstance(parts[-1], str) and parts[-1].endswith("=")

    def _array(self, parts: list[Part]) -> None:
        self.at += 1
        while True:
            self._skip_lines()
            if self.at >= len(self.text):
                raise Unreadable("an array without an end")
            if self.text[self.at] == ")":
                self.at += 1
                return
            parts.extend((*self._word(), SPLIT))

    def _piece(self, parts: list[Part]) -> None:
        """The next part of a word that is not quoted as a whole."""
        plain = _PLAIN.match(self.text, self.at)
        if plain:
            self.at = plain.end()
            parts.append(plain[0])
            # As in `--prefix=~/x`: not always expanded, but then it means nothing.
            tilde = _TILDE.match(self.text, self.at) if plain[0][-1] in "=:" else None
            if tilde:
                parts.append(Tilde(tilde[1]))
                self.at = tilde.end()
            return
        char = self.text[self.at]
        reading = _QUOTES.get(char)
        if reading is not None:
            reading(self, parts)
            return
        bracket = _BRACKET.match(self.text, self.at)
        if bracket:
            parts.append(ONE)
            self.at = bracket.end()
            return
        parts.append(_SPECIAL.get(char, char))
        self.at += 1

    def _single(self, parts: list[Part]) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unreadable("a quote has no end")
        parts.append(self.text[self.at + 1 : end])
        self.at = end + 1

    def _double(self, parts: list[Part]) -> None:
        self.at += 1
        parts.append("")  # even an empty quote is a word
        parts.extend(self.quoted_text('"'))
        self.at += 1

    def _escaped(self, parts: list[Part]) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following and following != "\n":
            parts.append(following)
        self.at += 2

    def _dollar(self, parts: list[Part], quoted: bool = False) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "(":
            self._substitution(parts, quoted)
        elif following == "{":
            self._parameter(parts, quoted)
        elif following == "'" and not quoted:
            self._ansi_quote(parts)
        elif following == '"' and not quoted:
            self.at += 1
            self._double(parts)
        elif name := _SHORT_NAME.match(self.text, self.at + 1):
            parts.append(Variable(name[0], quoted=quoted))
            self.at = name.end()
        else:
            parts.append("$")
            self.at += 1

    def _ansi_quote(self, parts: list[Part]) -> None:
        found = _ANSI_QUOTE.match(self.text, self.at)
        if not found:
            raise Unreadable("a quote has no end")
        parts.append(unescaped(found[1]))
        self.at = found.end()

    def _substitution(self, parts: list[Part], quoted: bool) -> None:
        arithmetic = self._arithmetic(self.at + 1, "((")
        if arithmetic is not None:
            parts.append(arithmetic)
            return
        self.at += 2
        parts.append(Script(self._inner_program(), quoted))

    def _process(self, parts: list[Part]) -> None:
        self.at += 2
        parts.append(Script(self._inner_program(), is_file=True))

    def _inner_program(self) -> Program:
        inner = _Reader(self.text, self.at, self.depth + 1)
        program = inner.program("$(")
        self.at = inner.at
        return program

    def _backticks(self, parts: list[Part], quoted: bool = False) -> None:
        found = _BACKTICKS.match(self.text, self.at)
        if not found:
            raise Unreadable("a substitution has no end")
        escapes = r"\\([`\\$\"])" if quoted else r"\\([`\\$])"
        inner = _Reader(re.sub(escapes, r"\1", found[1]), depth=self.depth + 1)
        parts.append(Script(inner.program(), quoted))
        self.at = found.end()

    def _parameter(self, parts: list[Part], quoted: bool) -> None:
        self.at += 2
        indirect = self.text[self.at : self.at + 1] in ("!", "#") and not self.text.startswith(
            "}", self.at + 1
        )
        self.at += indirect
        name = _NAME.match(self.text, self.at)
        if not name:
            raise Unreadable("an expansion without a name")
        self.at = name.end()
        index = _INDEX.match(self.text, self.at)
        if index:
            self.at = index.end()
        operator = _EXPANSION.match(self.text, self.at)
        self.at = operator.end() if operator else self.at
        word = self.quoted_text("}", in_braces=True)
        self.at += 1
        known = "?" if indirect else operator[0] if operator else ""
        parts.append(Variable(name[0], known, word, quoted))

    def _arithmetic(self, start: int, opening: str) -> Unknown | None:
        """What stands in `((…))` from `start` on, if that is what it is."""
        if not self.text.startswith(opening, start):
            return None
        depth = 0
        for place in range(start, len(self.text)):
            char = self.text[place]
            depth += (char == "(") - (char == ")")
            if char == "\n":
                return None
            if depth == 0:
                if self.text[place - 1] != ")":
                    return None
                content = self.text[start + 2 : place - 1]
                self.at = place + 1
                return Unknown(self._expanded(content))
        return None

    def quoted_text(self, ending: str, in_braces: bool = False) -> Word:
        """Text in which only `$`, backticks and backslashes are special, up to `ending`."""
        parts: list[Part] = []
        plain = _PLAIN_IN_BRACES if in_braces else _PLAIN_IN_QUOTES
        while self.at < len(self.text) and self.text[self.at] != ending:
            char = self.text[self.at]
            if found := plain.match(self.text, self.at):
                parts.append(found[0])
                self.at = found.end()
            elif char == "$":
                self._dollar(parts, quoted=not in_braces)
            elif char == "`":
                self._backticks(parts, quoted=not in_braces)
            elif char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                parts.append(following if following in '$`"\\}' else f"\\{following}")
                self.at += 2
            elif in_braces and char in "'\"":
                _QUOTES[char](self, parts)
            else:
                parts.append(char)
                self.at += 1
        if ending and self.at >= len(self.text):
            raise Unreadable("a quote has no end")
        return _merged(parts)

    # -- between words --------------------------------------------------------------------------

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        if blank:
            self.at = blank.end()
        comment = _COMMENT.match(self.text, self.at)
        if comment:
            self.at = comment.end()

    def _skip_lines(self) -> None:
        self._skip_blank()
        while self.text.startswith("\n", self.at):
            self.at += 1
            self._here_documents()
            self._skip_blank()

    def _at_end_of_command(self) -> bool:
        if self.at >= len(self.text):
            return True
        if self.text.startswith(("&>", "<(", ">("), self.at):
            return False
        return self.text[self.at] in ";&|()\n"

    def _take(self, word: str) -> bool:
        taken = re.compile(rf"{word}(?=[\s;&|()<>]|\Z)").match(self.text, self.at)
        if taken:
            self.at = taken.end()
        return taken is not None


_QUOTES: Final[dict[str, Callable[[_Reader, list[Part]], None]]] = {
    "'": _Reader._single,
    '"': _Reader._double,
    "\\": _Reader._escaped,
    "$": _Reader._dollar,
    "`": _Reader._backticks,
}


def _merged(parts: list[Part]) -> Word:
    """The parts of a word, neighbouring texts joined."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return tuple(merged) if merged else ("",)
