"""The words of shell text: quotes, variables and substitutions.

A word has one value, or one of several (behind an `if`, say), as text with marks in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from itertools import pairwise, product
from typing import Final, TypeAlias

from hermes_ext.effects._record import Recorder
from hermes_ext.effects._shell import marks
from hermes_ext.effects._shell.arithmetic import evaluated
from hermes_ext.effects._shell.expand import as_word
from hermes_ext.effects._shell.marks import EMPTY, FIELD, HOLE, MANY, TILDE
from hermes_ext.effects._shell.state import MOST_VALUES, UNKNOWN, State, Values
from hermes_ext.effects._shell.tree import HereDocument, Node, Source
from hermes_ext.effects._words import Hole, Word, is_many, tags_of

# Unquoted, these mean something that the grammar has to have seen.
_UNSEEN: Final = re.compile(r"[`;&|()<>'\"\s]|\$(?=[\w{(@*#?$!'\"-])")
_NOT_ESCAPED: Final = re.compile(r"\\(.)|([^\\]+)|\\\Z", re.DOTALL)
_IN_STRINGS: Final = re.compile(r"`|\$(?=[\w{(\[@*#?$!-])")
_NAMED: Final = re.compile(rb"[\w{(]")
_IS_ARITHMETIC: Final = re.compile(r"\$\(\([^()`;]*\)\)\Z")
_FIRST_PIPE: Final = 63
_LITERAL: Final = frozenset({"ERROR", "extglob_pattern", "regex", "word"})
_RUNS: Final = re.compile(r"(?<!\\)(?:`|\$[({])")
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_NAMES: Final = re.compile(r"[A-Za-z_]\w*")
_ESCAPES: Final = {
    "a": "\a", "b": "\b", "e": "\033", "E": "\033", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI_C: Final = re.compile(
    rb"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})"
    rb"|U([0-9a-fA-F]{1,8})|c(.))",
    re.DOTALL,
)


class WordReader:
    """Reads the words of one text.

    run, run_text: run the commands of a substitution, give their output if it is known. pipes: what
    the process substitutions print, by the names that they have.
    """

    def __init__(
        self,
        source: Source,
        recorder: Recorder,
        run: Callable[[Node, State], Word],
        run_text: Callable[[str, State], Word],
        pipes: dict[str, Word],
    ) -> None:
        self.source = source
        self.rec = recorder
        self._run = run
        self._run_text = run_text
        self.pipes = pipes

    def values(self, node: Node, state: State, *, assigned: bool = False) -> Values:
        """What a word may be, with marks; `assigned`: it is the value of an assignment."""
        if assigned and node.type not in _READERS and node.type != "concatenation":
            return ("".join(self._unquoted(node, self.source.text(node), state, True, 0, True)),)
        return self._word(node, state, first=True)

    def joined(self, nodes: Sequence[Node], state: State) -> Values:
        """What a word may be that the grammar took for several, with no blank between them."""
        if len(nodes) == 1:
            return self.values(nodes[0], state)
        parts = [self.values(nodes[0], state)]
        for before, node in pairwise(nodes):
            between = (self.source.joint(before, node) or "").replace("\\\n", "")
            parts.append((EMPTY + re.sub(r"\\(.)", r"\1", between),))
            parts.append(self._word(node, state))
        return _joined(parts)

    def words(self, node: Node, state: State) -> list[Word]:
        """A word that stays one, in each of its values."""
        return [as_word(each, self.rec) for each in self.values(node, state)]

    def strange(self, node: Node, what: str | None = None) -> None:
        """Something was not understood."""
        text = self.source.text(node)
        self.rec.unknown(f"this part of the command is not understood: {(what or text)[:80]!r}")

    # -- words ------------------------------------------------------------------------------------

    def _word(self, node: Node, state: State, *, first: bool = False) -> Values:
        kind = node.type
        reader = _READERS.get(kind)
        if reader is not None:
            return reader(self, node, state)
        if kind == "concatenation":
            return self._concatenation(node, state, first=first)
        if node.is_missing or kind == "ERROR":
            self.strange(node)
            return UNKNOWN
        return self._literal(node, state, first=first)

    def _literal(self, node: Node, state: State, *, first: bool) -> Values:
        text = self.source.text(node)
        assigned = _ASSIGNED.match(text) if first else None
        head = assigned.end() if assigned else 0
        found = "".join(self._unquoted(node, text, state, first, head))
        return (found,)

    def _unquoted(
        self, node: Node, text: str, state: State, first: bool, head: int, assigned: bool = False
    ) -> Iterable[str]:
        place = 0
        for part in _NOT_ESCAPED.finditer(text):
            escaped, bare = part[1], part[2]
            if bare is None:
                # A backslash before a line's end takes both away.
                yield "" if escaped == "\n" else EMPTY + (escaped or "\\")
            else:
                if _UNSEEN.search(bare):
                    self.strange(node)
                shown = marks.active(bare)
                if marks.SEQUENCE.fullmatch(bare.strip("{}")):
                    shown = shown.replace("..", marks.RANGE)
                starts = [0] if (first and place == 0) or not place else []
                if assigned:
                    starts += [i + 1 for i, c in enumerate(bare) if c == ":"]
                elif head:
                    starts = [head - place, *(i + 1 for i, c in enumerate(bare) if c == ":")]
                yield self._with_tildes(bare, shown, starts, state, later=not (assigned or head))
            place = part.end()

    def _with_tildes(
        self, bare: str, shown: str, starts: Sequence[int], state: State, *, later: bool
    ) -> str:
        """later: a user's name may go on behind this text, and is looked up in the whole word."""
        if "~" not in bare:
            return shown
        chars = list(shown)
        for place, each in enumerate(bare):
            if each != "~" or not (place in starts or (place and bare[place - 1] in "{,")):
                continue
            user = re.match(r"[^/:]*", bare[place + 1 :])
            name = user[0] if user else ""
            if not name and place in starts and place:
                chars[place] = self._home()
            elif not name or (later and name not in ("+", "-")):
                chars[place] = TILDE
            else:
                chars[place] = self._of_user(name, state)
                chars[place + 1 : place + 1 + len(name)] = [""] * len(name)
        return "".join(chars)

    def _home(self) -> str:
        homes = self.rec.machine.homes
        return homes[0] if len(homes) == 1 and self.rec.on("home") else HOLE

    def _of_user(self, name: str, state: State) -> str:
        if name in ("+", "-"):
            found = state.cwd if name == "+" else state.old
            return found[0] if len(found) == 1 else HOLE
        home = "" if "\0" in name else os.path.expanduser(f"~{name}")
        return home if home.startswith("/") and self.rec.machine.local else HOLE

    def _concatenation(self, node: Node, state: State, *, first: bool) -> Values:
        parts: list[Values] = []
        children = node.children
        place = node.start_byte
        for number, child in enumerate(children):
            if child.start_byte != place:
                self.strange(node)
            place = child.end_byte
            following = children[number + 1].type if number + 1 < len(children) else ""
            if child.type == "$":
                if following == "string":
                    continue
                if _NAMED.match(self.source.bytes, place):
                    self.strange(node)
            parts.append(self._word(child, state, first=first and number == 0))
        return _joined(parts)

    def _ansi_c(self, node: Node, _: State) -> Values:
        written = self.source.bytes[node.start_byte + 2 : node.end_byte - 1]
        try:
            text = _ANSI_C.sub(_unescaped, written)
        except (ValueError, OverflowError):
            self.strange(node)
            return UNKNOWN
        return (EMPTY + os.fsdecode(text.split(b"\0")[0]),)

    def _string(self, node: Node, state: State) -> Values:
        parts: list[Values] = [(EMPTY,)]
        place = node.start_byte + 1
        for child in node.children:
            if child.type in ('"', "string_content") or child.start_byte < place:
                continue
            parts.append((self._quoted(node, place, child.start_byte),))
            parts.append(self._in_quotes(child, state))
            place = child.end_byte
        end = node.end_byte - 1
        if self.source.bytes[end : end + 1] != b'"':
            self.strange(node)
        parts.append((self._quoted(node, place, end),))
        return _joined(parts)

    def _quoted(self, node: Node, begin: int, end: int) -> str:
        """Text in double quotes, between the expansions in it."""
        written = self.source.between(begin, end)
        if "\\" not in written and "$" not in written and "`" not in written:
            return written
        found = ""
        for part in _NOT_ESCAPED.finditer(written):
            escaped, bare = part[1], part[2]
            if bare is not None:
                if _IN_STRINGS.search(bare):
                    self.strange(node)
                found += bare
            elif escaped is None:
                found += "\\"
            elif escaped != "\n":
                found += escaped if escaped in '"$`\\' else f"\\{escaped}"
        return found

    def _in_quotes(self, node: Node, state: State) -> Values:
        if _IS_ARITHMETIC.match(self.source.text(node)):  # in here-documents the grammar errs
            return self._arithmetic(node, state)
        if node.type in ("simple_expansion", "expansion"):
            return tuple(self._expansion(node, state, quoted=True))
        if node.type == "command_substitution":
            return (self._substituted(node, state, quoted=True),)
        if node.type == "arithmetic_expansion":
            return self._arithmetic(node, state)
        if node.type == "$":
            return ("$",)
        self.strange(node)
        return UNKNOWN

    def here_document(self, found: HereDocument, state: State) -> Word:
        """The text of a here-document in which things are expanded."""
        values: list[Values] = []
        place = found.begin
        for child in () if found.body is None else found.body.children:
            if child.type not in ("heredoc_content", "string_content"):
                values.append(self._between(place, child.start_byte, state))
                values.append(self._in_quotes(child, state))
                place = child.end_byte
        values.append(self._between(place, max(found.end, place), state))
        text = "".join(each[0] if len(each) == 1 else marks.hole(each) for each in values)
        tags = "".join(dict.fromkeys(marks.TAGS.findall(text)))
        text = marks.plain(marks.TAGS.sub("", text))
        if found.indented:
            text = re.sub(r"(?m)^\t+", "", text)
        return Hole(text=text.replace(HOLE, "\ufffd"), tags=tags) if HOLE in text else text

    def _between(self, begin: int, end: int, state: State) -> Values:
        """Text of a here-document; what stands in backticks there, the grammar does not see."""
        text = self.source.between(begin, end)
        parts = re.split(r"(?<!\\)`", re.sub(r"\\\\", "", text))
        for inner in parts[1::2]:
            with self.rec.under("here-document"):
                self._run_text(re.sub(r"\\([`$\\])", r"\1", inner), state)
        bare = re.sub(r"\\.", "", "".join(parts[::2]))
        if _IN_STRINGS.search(bare):
            self.rec.unknown("a here-document is not understood")
        whole = re.sub(r"\\([$`\\])", r"\1", text.replace("\\\n", ""))
        return (whole,) if len(parts) == 1 else (f"{whole}{HOLE}",)

    # -- expansions -------------------------------------------------------------------------------

    def _unquoted_expansion(self, node: Node, state: State) -> Values:
        return tuple(marks.expanded(each) for each in self._expansion(node, state, quoted=False))

    def _expansion(self, node: Node, state: State, *, quoted: bool) -> Iterable[str]:
        if node.type == "simple_expansion":
            name = self.source.text(node)[1:]
            if name[:1].isdigit() and len(name) > 1:  # the parameter has one digit
                return _joined([self._argument(int(name[0]), state), (name[1:],)])
            return self.variable(name, state, quoted=quoted)
        self._nested(node, state)
        return self._parameter(node, state, quoted=quoted)

    def variable(self, name: str, state: State, *, quoted: bool = True) -> Values:
        """What `$NAME` may be."""
        if name in ("@", "*"):
            return (_fields_of(state.arguments, quoted, name),)
        if name.isdigit():
            return self._argument(int(name), state)
        if name in state.variables:
            return state.variables[name]
        if name in state.arrays:
            words = state.arrays[name]
            return UNKNOWN if not words else (marked(words[0]),)
        return self._given(name, state)

    def _given(self, name: str, state: State) -> Values:
        """A variable that the text has not set."""
        if name == "HOME":
            return self.rec.machine.homes if self.rec.on("home") else ("",)
        if name in ("PWD", "OLDPWD"):
            return (state.cwd if name == "PWD" else state.old) or UNKNOWN
        given = self.rec.variables.get(name)
        return UNKNOWN if given is None else (given,)

    def _argument(self, number: int, state: State) -> Values:
        if number == 0:
            return state.variables.get("0", UNKNOWN)
        if state.arguments is None:
            return UNKNOWN
        words = state.arguments[:number]
        if any(is_many(each) for each in words[:-1]):
            return UNKNOWN
        return (marked(words[number - 1]),) if len(words) == number else ("",)

    def _nested(self, node: Node, state: State) -> None:
        """Run the substitutions inside an expansion, whatever comes of it."""
        for child in node.children:
            if child.type in ("command_substitution", "process_substitution"):
                self._word(child, state)
            elif child.type == "arithmetic_expansion":
                self.check_arithmetic(child, state)
            elif child.type == "string":
                self._string(child, state)
            elif child.child_count:
                self._nested(child, state)
            elif child.type in _LITERAL and _RUNS.search(self.source.text(child)):
                self.strange(node)

    def _parameter(self, node: Node, state: State, *, quoted: bool) -> Values:
        """`${…}`, whose nested substitutions have been run."""
        found = _PARAMETER.match(self.source.text(node)[2:-1])
        if found is None:
            return UNKNOWN if quoted else (MANY,)
        name, subscript, rest = found["name"], found["subscript"], found["rest"]
        several = name in ("@", "*") or subscript in ("@", "*")
        if subscript and not several:
            self.evaluate(subscript, state)
        if found["bang"]:
            lists_names = several or rest in ("*", "@")
            self._check_indirect(name, "" if lists_names else subscript, state, lists_names)
        if _OFFSET.match(rest):
            self.evaluate(rest[1:], state)
        elif rest and not (_UNEVALUATED.match(rest) or (found["bang"] and rest in ("*", "@"))):
            self.rec.unknown("a part of ${…} is evaluated, which may run more")
        if rest and several and not found["bang"]:
            words = state.arguments if name in ("@", "*") else state.arrays.get(name)
            return (tags_of(words or ()) + MANY,)
        if found["bang"]:
            return (MANY,)
        if found["sharp"]:
            return UNKNOWN
        values = self.variable(name, state, quoted=quoted)
        if subscript:
            values = (self._element(name, subscript, state, quoted),)
        return self._modified(name, rest, values, node.named_children, state) if rest else values

    def _check_indirect(
        self, name: str, subscript: str | None, state: State, lists_names: bool
    ) -> None:
        """`${!x}` takes the value of x for a name, with an index in it perhaps."""
        element = subscript and (self._element(name, subscript, state, quoted=True),)
        values = () if lists_names else element or self.variable(name, state)
        if name not in ("#", "@", "*") and not all(_NAMES.fullmatch(each) for each in values):
            self.rec.unknown(f"what ${{!{name}}} stands for may run more")

    def _element(self, name: str, subscript: str, state: State, quoted: bool) -> str:
        words = state.arrays.get(name)
        if words is None:
            return HOLE
        if subscript in ("@", "*"):
            return _fields_of(words, quoted, subscript)
        if not subscript.isdigit() or any(isinstance(each, Hole) for each in words):
            return tags_of(words) + HOLE
        place = int(subscript)
        return marked(words[place]) if place < len(words) else ""

    def _modified(
        self, name: str, rest: str, values: Values, operands: Sequence[Node], state: State
    ) -> Values:
        found = _DEFAULT.match(rest)
        if found is not None:
            return self._or_default(name, found, values, operands, state)
        if not self.rec.on("pattern"):
            return values
        if any(HOLE in each or FIELD in each or MANY in each for each in values):
            return (marks.hole(values),)
        changed = [_changed(each, rest) for each in values]
        known = tuple(each for each in changed if each is not None)
        return known if known and len(known) == len(changed) else UNKNOWN

    def _or_default(
        self,
        name: str,
        found: re.Match[str],
        values: Values,
        operands: Sequence[Node],
        state: State,
    ) -> Values:
        operator, written = found[1], found[2]
        other: Values = ("",)
        if written:
            other = self.values(operands[-1], state) if len(operands) > 1 else UNKNOWN
            if len(operands) != 2 or self.source.text(operands[-1]) != written:
                other = (HOLE,)
        other = tuple(marks.plain(each) for each in other)
        if operator.endswith("?"):
            self.rec.stops = True
            return values
        if operator.endswith("+"):
            return (*other, "")
        set_here = name in state.variables and not any(
            not each or HOLE in each for each in state.variables[name]
        )
        both = values if set_here else tuple(dict.fromkeys((*values, *other)))
        if operator.endswith("="):
            state.variables[name] = both
        return both

    # -- substitutions ----------------------------------------------------------------------------

    def _substituted(self, node: Node, state: State, *, quoted: bool = False) -> str:
        with self.rec.under("substitution"):
            if self.source.text(node).startswith("`"):
                escaped = r'\\([`$\\"])' if quoted else r"\\([`$\\])"
                inner = re.sub(escaped, r"\1", self.source.text(node)[1:-1])
                output = self._run_text(inner, state)
            else:
                output = self._run(node, state)
        if isinstance(output, Hole):
            return output.prefix + output.tags + HOLE
        return output.rstrip("\n")

    def _process(self, node: Node, state: State) -> Values:
        with self.rec.under("process-substitution"):
            output = self._run(node, state)
        name = f"/dev/fd/{_FIRST_PIPE + len(self.pipes)}"
        self.pipes[name] = output
        return (name,)

    def _arithmetic(self, node: Node, state: State) -> Values:
        self.check_arithmetic(node, state)
        return UNKNOWN

    def check_arithmetic(self, node: Node, state: State) -> None:
        """An arithmetic expression: its substitutions run, and names in it may be assigned to."""
        self._nested(node, state)
        self.evaluate(self.source.text(node), state)

    def check_subscript(self, text: str, node: Node | None, state: State) -> None:
        """The index in `a[index]` is an arithmetic expression."""
        if node is not None:
            self._nested(node, state)
        found = _SUBSCRIPT.match(text)
        if found is None:
            self.rec.unknown("an index is evaluated, which may run more", text)
        elif found[1] not in ("@", "*"):
            self.evaluate(found[1], state)

    def evaluate(self, text: str, state: State) -> None:
        """The text of an expression, whose substitutions have been run."""
        self.rec.stops |= "/" in text or "%" in text  # by nothing, perhaps
        for why in evaluated(text, state):
            self.rec.unknown(why)


_PARAMETER: Final = re.compile(
    r"(?P<bang>!)?(?P<sharp>#(?=[\w@*]))?(?P<name>\w+|[@*#?$!-])"
    r"(?:\[(?P<subscript>[^]]*)\])?(?P<rest>.*)\Z",
    re.DOTALL,
)
_SUBSCRIPT: Final = re.compile(r"[A-Za-z_]\w*\[(.*)\]\Z", re.DOTALL)
_OFFSET: Final = re.compile(r":(?![-=?+])")
# What operators do with a value is not evaluated again; `@P` is expanded as a prompt is.
_UNEVALUATED: Final = re.compile(r":?[-=?+]|##?|%%?|//?|\^\^?|,,?|~~?|@[QULuEKkaA]\Z")
_DEFAULT: Final = re.compile(r"(:?[-=?+])(.*)\Z", re.DOTALL)
_CUT: Final = re.compile(r"(##?|%%?)(.*)\Z", re.DOTALL)
_REPLACED: Final = re.compile(r"(//?)([^/\\$'\"`]+)/?([^/\\$'\"`]*)\Z", re.DOTALL)
_SLICED: Final = re.compile(r":\s*(\d+)(?::\s*(\d+))?\Z")


def _changed(value: str, rest: str) -> str | None:
    """A variable's value with an operator applied; None where that is not followed here."""
    sliced = _SLICED.match(rest)
    if sliced:
        begin = int(sliced[1])
        return value[begin : begin + int(sliced[2])] if sliced[2] else value[begin:]
    cut = _CUT.match(rest)
    if cut and not re.search(r"[\\$'\"`\[]", cut[2]):
        return _cut(value, cut[1], cut[2])
    replaced = _REPLACED.match(rest)
    if replaced and not re.search(r"[*?\[#%]", replaced[2]):
        return value.replace(replaced[2], replaced[3], -1 if len(replaced[1]) == 2 else 1)
    return {"^^": value.upper(), ",,": value.lower()}.get(rest)


def _cut(value: str, operator: str, pattern: str) -> str:
    matches = re.compile(translate(pattern)).match
    lengths = range(len(value) + 1)
    if operator[0] == "#":
        ends = lengths if operator == "#" else reversed(lengths)
        return next((value[end:] for end in ends if matches(value[:end])), value)
    begins = reversed(lengths) if operator == "%" else lengths
    return next((value[:begin] for begin in begins if matches(value[begin:])), value)


def _unescaped(found: re.Match[bytes]) -> bytes:
    simple, octal, hexadecimal, short, long, control = found.groups()
    if simple is not None:
        return _ESCAPES[simple.decode()].encode()
    if control is not None:
        return bytes([ord(control) & 0x1F])
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    return chr(int(short or long, 16)).encode("utf-8", "surrogatepass")


def marked(word: Word) -> str:
    """A word as text with marks."""
    if isinstance(word, Hole):
        return word.prefix + word.tags + (MANY if word.many else HOLE) + word.suffix
    return word


def _fields_of(words: Sequence[Word] | None, quoted: bool, sign: str) -> str:
    """All of the words that `@` or `*` stand for; `"$*"` is one word."""
    if words is None:
        return MANY
    if quoted and sign == "*":
        return " ".join(map(marked, words))
    if not words:
        return FIELD  # no word at all
    return FIELD.join((EMPTY if quoted else "") + marked(each) for each in words)


def _joined(parts: Sequence[Values]) -> Values:
    if all(len(each) == 1 for each in parts):
        return ("".join(each[0] for each in parts),)
    count = 1
    for each in parts:
        count *= len(each)
    if count > MOST_VALUES:
        return ("".join(each[0] if len(each) == 1 else HOLE for each in parts),)
    return tuple("".join(each) for each in product(*parts))


_Reader: TypeAlias = Callable[[WordReader, Node, State], Values]
_READERS: Final[dict[str, _Reader]] = {
    "raw_string": lambda reader, node, _: (EMPTY + reader.source.text(node)[1:-1],),
    "ansi_c_string": WordReader._ansi_c,
    "string": WordReader._string,
    "translated_string": WordReader._string,
    "simple_expansion": WordReader._unquoted_expansion,
    "expansion": WordReader._unquoted_expansion,
    "command_substitution": lambda reader, node, state: (
        marks.expanded(reader._substituted(node, state)),
    ),
    "process_substitution": WordReader._process,
    "arithmetic_expansion": WordReader._arithmetic,
    "command_name": lambda reader, node, state: _joined(
        [reader._word(each, state, first=True) for each in node.children]
        or [reader._literal(node, state, first=True)]
    ),
}
