"""Shell text, read as bash runs it: which programs it starts, with which words, and where.

Every command counts, whether or not it would be reached; where it matters what happened before
(`cd`, variables), both ways are followed. What cannot be followed may write.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import ClassVar, Final, TypeAlias

from attrs import evolve, frozen

from hermes_ext.effects._commands import run_command
from hermes_ext.effects._input import may_run_input, takes_for_data
from hermes_ext.effects._knowledge import Knowledge
from hermes_ext.effects._record import Recorder, TooMuch
from hermes_ext.effects._shell import marks
from hermes_ext.effects._shell.arithmetic import COUNTING
from hermes_ext.effects._shell.expand import as_word, fields
from hermes_ext.effects._shell.files import Files
from hermes_ext.effects._shell.marks import HOLE
from hermes_ext.effects._shell.output import FIGURES, printed, prints_names, whole
from hermes_ext.effects._shell.state import (
    MOST_VALUES,
    UNKNOWN,
    Ends,
    State,
    Values,
    either,
    is_number,
    merged,
)
from hermes_ext.effects._shell.tree import (
    LONGEST,
    HereDocument,
    Item,
    Line,
    Node,
    Source,
    destinations_of,
    pipelines_of,
)
from hermes_ext.effects._shell.words import WordReader, marked
from hermes_ext.effects._variables import may_be_exported, risky_variable
from hermes_ext.effects._words import Hole, Word, is_many, shown, tags_of

NAME: Final = re.compile(r"[A-Za-z_]\w*\Z")
_NESTED: Final = 12  # shells in shells, functions in functions
_MOST_GIVEN: Final = 64  # words that may name files which the call has written
_LONGEST_VALUE: Final = 10_000  # characters; a path has 4,096

# `{a[index]}>file` keeps the descriptor there.
_KEPT_IN: Final = re.compile(r"\{\w+\[.*\]\}\Z", re.DOTALL)
# `[index]=value` in an array.
_PLACED: Final = re.compile(r"\[([^\]]*)\]?")
_EXPANDED_AGAIN: Final = re.compile(r"[$`\\'\"~*?\[{\s]")
# Where writing changes no file.
_SINKS: Final = re.compile(
    r"/dev/(?:null|zero|full|tty|stdin|stdout|stderr|fd/\d+|(?:tcp|udp)/.*)\Z"
)


@frozen
class Function:
    """What a function runs, with which redirections, and the text that it stands in."""

    body: Node
    redirects: tuple[Node, ...]
    reader: WordReader


class Reading(ABC):
    """One shell, and those that it starts.

    Attributes:
        builtins: the shell's own commands, by name.
        compounds: compound commands, by the type of their nodes.
        rec: told what happens.
        stdin: what the command at hand reads: a text, a `Hole`, or None where nothing is given.
        out: what was printed, piece by piece, since somebody looks.
        unsure: whether the command at hand may run, or not, or several times.
        files: what the call has written. pipes: what process substitutions print, by their names.
    """

    builtins: ClassVar[Mapping[str, Builtin]] = {}
    compounds: ClassVar[Mapping[str, Statement]] = {}

    def __init__(self, recorder: Recorder, stdin: Word | None = None) -> None:
        self.rec = recorder
        self.stdin = stdin
        self._state = State(recorder.cwd)
        self._given: Sequence[tuple[str, Word]] = ()
        self._depth = 0
        self._doubted = 0
        self.unsure = 0
        self._ran = 0
        self.defined_with: tuple[Node, ...] = ()
        self._followed: set[Word] = set()
        self.out: list[Word] = []
        self.pipes: dict[str, Word] = {}
        self.files = Files(recorder)

    # -- what commands start ----------------------------------------------------------------------

    def run(
        self,
        words: Sequence[Word],
        *,
        cwd: Word | None = None,
        stdin: Word | None = None,
        assignments: Sequence[tuple[str, Word]] = (),
    ) -> None:
        """A program that another one starts, in `cwd` if that is given."""
        with self.deeper(), self._in(cwd), self._reading(stdin):
            self.program(words, assignments)

    def text(self, code: str, args: Sequence[Word] = (), *, stdin: Word | None = None) -> None:
        """The text of a shell of its own: `sh -c CODE NAME ARGS…`."""
        state = State(self.rec.cwd)
        # What is not exported is not there; whether a name was exported before is not known.
        for name, values in self._state.variables.items():
            gone: Values = () if name in self._state.exported else ("",)
            state.variables[name] = tuple(dict.fromkeys((*values, *gone)))
        for name, word in self._given:
            state.variables[name] = (word if isinstance(word, str) else HOLE,)
            state.exported.add(name)
        state.arguments = tuple(args[1:])
        state.variables["0"] = UNKNOWN if not args else (marked(args[0]),)
        self._followed.add(code)
        outer, self._state, before = self._state, state, self.rec.cwd
        try:
            with self.deeper(), self._reading(stdin):
                self.read(code, state)
        finally:
            self._state = outer
            self.rec.cwd = before

    def python(self, code: str, script: Word = "") -> None:
        """Python code, run where the shell stands; `script`: the file that it is in."""
        self._followed.add(code)
        above = os.path.dirname(script) if isinstance(script, str) else ""
        folders = self.below(self.rec.cwd, above or ".") or ()
        with self._reading(Hole() if code == self.stdin else None):
            self.code(code, folders)

    @abstractmethod
    def code(self, code: str, folders: Sequence[str]) -> None:
        """Announce what Python code does; `folders`: where it looks for modules."""

    def held(self, word: Word) -> Sequence[Word]:
        """What a file may hold that the call itself writes, or a pipe; nothing if that is none."""
        if word in _INPUTS:
            return () if self.stdin is None else (self.stdin,)
        if isinstance(word, str) and word in self.pipes:
            return (self.pipes[word],)
        return self.files.get(word)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        if self._depth >= _NESTED:
            raise TooMuch(_NESTED, "shells and substitutions inside each other")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    @contextmanager
    def _in(self, cwd: Word | None) -> Iterator[None]:
        before = self.rec.cwd
        if cwd is not None:
            self.rec.cwd = self.below(before, cwd) or ()
        try:
            yield
        finally:
            self.rec.cwd = before

    @contextmanager
    def _reading(self, stdin: Word | None) -> Iterator[None]:
        before = self.stdin
        if stdin is not None:
            self.stdin = stdin
        try:
            yield
        finally:
            self.stdin = before

    def below(self, bases: tuple[str, ...], word: Word) -> tuple[str, ...] | None:
        if isinstance(word, Hole):
            return None
        if word.startswith("/"):
            return (os.path.normpath(word),)
        return tuple(os.path.normpath(os.path.join(base, word)) for base in bases) or None

    # -- texts and statements ---------------------------------------------------------------------

    def read(self, text: str, state: State) -> Ends:
        """Run a text in a shell's own state."""
        source = Source(text)
        if source.too_long:
            raise TooMuch(LONGEST, "bytes of shell text")
        if not self.files.all.text:
            self.files.all = Hole(text=text)
        if "\r" in text or "\0" in text or marks.OURS.search(text):
            self.rec.unknown("there are characters in the command that shells take in several ways")
            text = marks.OURS.sub("\ufffd", text)
            source = Source(text)
        self.rec.parsed(source.root.descendant_count)
        if source.root.has_error:
            words = re.findall(r"[^\s'\"`;&|()<>$]+", text)[:500]
            self.rec.unknown("the command is not understood as shell text", *words)
        reader = WordReader(source, self.rec, self._substitute, self._substitute_text, self.pipes)
        return self.body(source.root, state, reader)

    def _substitute(self, node: Node, state: State) -> Word:
        reader = self.reader
        # What is printed into `>(…)` comes from somewhere in the call.
        stdin = self.files.all if reader.source.text(node).startswith(">(") else None
        with self._reading(stdin):
            return self._captured(lambda inner: self.body(node, inner, reader), state)

    def _substitute_text(self, text: str, state: State) -> Word:
        with self.deeper():
            return self._captured(lambda inner: self.read(text, inner), state)

    def _captured(self, run: Callable[[State], Ends], state: State) -> Word:
        """Run in a subshell; gives what it prints."""
        kept = (self.out, self.reader)
        self.out, ran = [], self._ran
        try:
            run(state.copy())
            return self._taken(0, certain=self._is_sure(ran))
        finally:
            self.out, self.reader = kept
            self.enter(state)

    def _taken(self, mark: int, *, certain: bool = True) -> Word:
        """What was printed since `mark`, which nobody else gets."""
        pieces = self.out[mark:]
        del self.out[mark:]
        found = whole(pieces)
        if certain and not (isinstance(found, Hole) and len(pieces) > 1):
            return found
        # Where it is not known which of them it is, it may be any word of them.
        words = [word for each in pieces if isinstance(each, str) for word in each.split()]
        tags = tags_of(pieces) + (self.rec.tag(words) if words else "")
        return Hole(text=shown(found), tags=tags)

    def _is_sure(self, ran: int = 0) -> bool:
        """Whether what was read since `ran` commands surely has happened."""
        return not (self.rec.stops and self._ran - ran > 1)

    @contextmanager
    def _perhaps(self) -> Iterator[None]:
        """What is printed inside is printed, or not, or several times."""
        mark = len(self.out)
        self.unsure += 1
        try:
            yield
        finally:
            self.unsure -= 1
        if len(self.out) > mark:
            self.out.append(self._taken(mark, certain=False))

    reader: WordReader

    def enter(self, state: State) -> None:
        self._state = state
        self.rec.cwd = state.cwd

    def body(self, node: Node, state: State, reader: WordReader) -> Ends:
        """The statements that stand in a node, one after the other."""
        outer = getattr(self, "reader", None)
        self.reader = reader
        try:
            for gap in reader.source.gaps(node):
                reader.strange(node, gap)
            return self.statements(node.children, state)
        finally:
            if outer is not None:
                self.reader = outer

    def statements(self, children: Sequence[Node], state: State) -> Ends:
        ok: State | None = state
        failed: State | None = None
        first = True
        for place, child in enumerate(children):
            if not child.is_named or child.type == "comment":
                continue
            if not first and not self.rec.on("sequence"):
                break
            before = merged(ok, failed)
            if before is None:
                break
            behind = children[place + 1] if place + 1 < len(children) else None
            if behind is not None and behind.type == "&":
                with self.rec.under("background"), self._perhaps():
                    self.line(child, before.copy())
                ok, failed = before, None
            else:
                ok, failed = self.line(child, before)
            first = False
        return ok, failed

    def line(self, node: Node, state: State) -> Ends:
        """Pipelines with `&&` and `||` between them."""
        ok: State | None = state
        failed: State | None = None
        for line in pipelines_of(node):
            for strange in line.strange:
                self.reader.strange(strange)
            if line.operator == "":
                ok, failed = self._pipeline(line, state)
            elif not self.rec.on("alternative"):
                break
            elif line.operator == "&&":
                after, missed = self._behind(line, ok, failed)
                ok, failed = after, merged(failed, missed)
            else:
                after, missed = self._behind(line, failed, ok)
                ok, failed = merged(ok, after), missed
        return ok, failed

    def _behind(self, line: Line, here: State | None, other: State | None) -> Ends:
        """Run a pipeline that is reached from `here` only; what it does counts in any case."""
        if here is not None and other is None:
            return self._pipeline(line, here)
        with self._perhaps():
            if here is not None:
                return self._pipeline(line, here.copy() if here is other else here)
            if other is not None:
                self._pipeline(line, other.copy())
        return None, None

    def _pipeline(self, line: Line, state: State) -> Ends:
        if len(line.items) == 1:
            ok, failed = self._item(line.items[0], state)
        else:
            before = self.stdin
            self.unsure += 1  # they run at once: what one writes, another may read, or not
            for number, item in enumerate(line.items):
                if number and not self.rec.on("pipeline"):
                    break
                mark, ran = len(self.out), self._ran
                self._item(item, state.copy())
                before = self.stdin if number == 0 else before
                if item.mixed:
                    self.out.append(Hole())
                if number + 1 < len(line.items):
                    self.stdin = self._taken(mark, certain=self._is_sure(ran))
            self.unsure -= 1
            self.stdin = before
            self.enter(state)
            ok, failed = state, state
        return (failed, ok) if line.negated else (ok, failed)

    def _item(self, item: Item, state: State) -> Ends:
        self.enter(state)
        self.rec.step()
        self._ran += 1
        node = item.node
        if node is not None and node.type in ("command", "variable_assignment"):
            return self._simple(node, state, item)
        if node is not None and node.type == "function_definition":
            # They are for each call.
            self.defined_with, item = tuple(item.redirects), Item(node, words=item.words)
        with self._redirected(item.redirects, state):
            if item.words:
                self.reader.strange(item.words[0])
            if node is None:
                if item.redirects and self.stdin is not None:  # `$(< file)` prints it
                    self.out.append(self.stdin)
                return state, state
            reader = self.compounds.get(node.type)
            if node.type in _ONCE and reader is not None:
                return reader(self, node, state)
            with self._perhaps():
                if reader is not None:
                    return reader(self, node, state)
                self.reader.strange(node)
                return self.statements(node.children, state)

    # -- redirections -----------------------------------------------------------------------------

    @contextmanager
    def _redirected(self, redirects: Sequence[Node], state: State) -> Iterator[None]:
        before, mark = self.stdin, len(self.out)
        targets = [each for redirect in redirects for each in self.redirect(redirect, state)]
        feeds = self.stdin is not before
        try:
            yield
        finally:
            self.stdin = before if feeds else self.stdin
            self._keep(targets, mark)

    def _keep(self, targets: Sequence[_Target], mark: int) -> None:
        """What was printed since `mark` goes to the last file that it is redirected to."""
        printing = [each for each in targets if each.prints]
        content = self._taken(mark) if printing else ""
        if printing and printing[-1].word == _ELSEWHERE and content != "":
            # `2>&1` around it may bring it back.
            self.out.append(Hole(text=shown(content), tags=tags_of([content])))
        for each in targets:
            if isinstance(each.word, str) and _SINKS.match(each.word):
                continue
            text = content if printing and each is printing[-1] else ""
            if not each.prints:
                text = self.files.all
            elif each.operator.startswith("&"):
                text = Hole(text=shown(text), tags=tags_of((text,)))
            appends, certain = ">>" in each.operator, not self.unsure and self._is_sure()
            self.files.put(each.word, text, each.operator, append=appends, certain=certain)

    def redirect(self, node: Node, state: State) -> Sequence[_Target]:
        """A redirection; gives the files that are written."""
        kind = node.type
        if kind == "herestring_redirect":
            with self.rec.under("here-string"):
                values = [
                    value
                    for each in node.named_children
                    if each.type != "file_descriptor"
                    for value in self.reader.values(each, state)
                ]
                self.stdin = _text_of(values, self.rec)
        elif kind == "heredoc_redirect":
            self._here_document(node, state)
        elif kind == "file_redirect":
            return self._file_redirect(node, state)
        else:
            self.reader.strange(node)
        return ()

    def _here_document(self, node: Node, state: State) -> None:
        found = HereDocument(self.reader.source, node)
        if found.text is None:
            self.reader.strange(node)
            self.stdin = Hole()
        elif found.quoted:
            self.stdin = found.text
        else:
            with self.rec.under("here-document"):
                self.stdin = self.reader.here_document(found, state)

    def _file_redirect(self, node: Node, state: State) -> Sequence[_Target]:
        operator = next((each.type for each in node.children if not each.is_named), "")
        destinations, _ = destinations_of(node)
        descriptor = next((c for c in node.children if c.type == "file_descriptor"), None)
        number = "" if descriptor is None else self.reader.source.text(descriptor)
        if operator in (">&-", "<&-"):
            closed = number == "1" or (not number and operator == ">&-")
            return [_Target(_ELSEWHERE, operator, True)] if closed else ()
        if not destinations or operator not in _REDIRECTIONS:
            self.reader.strange(node)
            return ()
        # Several words are an error to the shell, which then runs nothing.
        words = [
            word
            for value in self.reader.joined(destinations, state)
            for word in fields(value, self.rec)
        ]
        return [each for word in words if (each := self._to_file(operator, word, number))]

    def _to_file(self, operator: str, word: Word, number: str) -> _Target | None:
        prints = number in ("", "1") and operator not in ("<>", "<", "<&")
        if operator in (">&", "<&") and isinstance(word, str) and re.fullmatch(r"\d+-?|-", word):
            if number == "2" and word == "1":
                self.out.append(Hole())  # errors, if there are any
            other = prints and word != "1" and operator == ">&"
            return _Target(_ELSEWHERE, operator, True) if other else None
        with self.rec.under("redirect"):
            # What bash finds behind `>&` it expands a second time.
            if operator == ">&" and isinstance(word, str) and _EXPANDED_AGAIN.search(word):
                self.rec.unknown("the word behind >& is expanded twice", word)
            if operator.startswith("<") and operator != "<>":
                self.rec.read(word)
                if operator == "<":
                    held = [*self.held(word)]
                    self.stdin = "" if word == "/dev/null" else _any_of(held)
                return None
            if not (isinstance(word, str) and _SINKS.match(word)):
                self.rec.write(word, operator)
        same = isinstance(word, str) and word in ("/dev/stdout", "/dev/fd/1")
        return None if same else _Target(word, operator, prints)

    # -- simple commands --------------------------------------------------------------------------

    def _simple(self, node: Node, state: State, item: Item) -> Ends:
        source = self.reader.source
        children = [node] if node.type == "variable_assignment" else node.children
        kept = filter(_KEPT_IN.match, map(source.text, children))
        for strange in (*source.gaps(node, words=True), *kept):
            self.reader.strange(node, strange)
        assignments: list[tuple[str, Node]] = []
        arguments: list[list[Node]] = []
        redirects = list(item.redirects)
        for child in children:
            if child.type == "variable_assignment":
                assignments.append(("", child))
            elif child.type.endswith("_redirect"):
                redirects.append(child)
                if child.type == "file_redirect":
                    item.words += destinations_of(child)[1]
            elif child.is_named:
                if arguments and source.joint(arguments[-1][-1], child) is not None:
                    arguments[-1].append(child)
                else:
                    arguments.append([child])
            elif child.type not in _TOKENS:
                self.reader.strange(child)
        arguments += [[each] for each in item.words]
        if not arguments:
            with self._redirected(redirects, state):
                for _, each in assignments:
                    self.assign(each, state)
            return state, state
        alternatives = [
            [fields(value, self.rec) for value in self.reader.joined(each, state)]
            for each in arguments
        ]
        alternatives += [[["-"]]] * item.dash
        # In a copy: `A=1 cmd` sets A for the command alone.
        given = self._assigned(assignments, state)
        with self._redirected(redirects, state):
            return self._each(_combined(alternatives), given, state)

    def alternatives(self, node: Node, state: State) -> list[list[Word]]:
        return [fields(value, self.rec) for value in self.reader.values(node, state)]

    def _assigned(
        self, assignments: Sequence[tuple[str, Node]], state: State
    ) -> list[tuple[str, Word]]:
        if not assignments:
            return []
        inner = state.copy()
        for _, each in assignments:
            self.assign(each, inner, told=False)
        self.enter(state)
        names = [self.name_of(each) for _, each in assignments]
        return [
            (name, _only([as_word(each, self.rec) for each in inner.variables.get(name, (HOLE,))]))
            for name in names
        ]

    def _each(
        self, words: Sequence[list[Word]], assignments: list[tuple[str, Word]], state: State
    ) -> Ends:
        """Run a command in each way in which its words may be."""
        if len(words) == 1:
            return self.command(words[0], assignments, state)
        with self._perhaps():
            return either(self.command(each, assignments, state.copy()) for each in words)

    def command(self, words: list[Word], assignments: list[tuple[str, Word]], state: State) -> Ends:
        self.enter(state)
        if not words:
            return state, state
        name = words[0]
        if isinstance(name, str) and name in state.functions:
            return self._call(name, words, assignments, state)
        return self.not_a_function(words, assignments, state)

    def not_a_function(
        self, words: list[Word], assignments: list[tuple[str, Word]], state: State
    ) -> Ends:
        name = words[0]
        builtin = self.builtins.get(name) if isinstance(name, str) else None
        if builtin is None:
            self.print(words, assignments, state)
            self._consume(name)
            return state, state
        for variable, value in assignments:
            if variable != "IFS" or name not in ("read", "mapfile", "readarray"):
                self.check_variable(variable, value)
        self._also(assignments, state)
        ends = builtin(self, words, state)
        self._consume(name)
        return ends

    def _consume(self, name: Word) -> None:
        """What a command has read is not there for the next one."""
        if isinstance(self.stdin, str) and name not in _NOT_READING:
            self.stdin = Hole(text=self.stdin) if self.stdin else ""

    def print(
        self, words: list[Word], assignments: Sequence[tuple[str, Word]], state: State
    ) -> None:
        """Run a program, and keep in mind what it prints."""
        mark = len(self.out)
        self.program(words, assignments)
        inner = self._taken(mark, certain=False) if len(self.out) > mark else Hole()
        output = printed(words, self.stdin, state, self.rec.variables, self.held)
        if isinstance(output, Hole):
            # How it begins may depend on a variable that is set for it alone.
            output = Hole(text=shown(output)) if assignments else output
            given = [text for each in words[:_MOST_GIVEN] for text in (each, *self.held(each))]
            tags = tags_of((output, inner, *given)) + self.tags_of_input()
            tags += self.rec.tag(words[1:]) if prints_names(words) else ""
            tags = "" if words[0] in FIGURES else tags
            text = output.text or (inner.text if isinstance(inner, Hole) else "")
            output = evolve(output, text=text, tags="".join(dict.fromkeys(tags)))
        self.out.append(output)

    def tags_of_input(self) -> str:
        """What printed the standard input; it may be any word of it."""
        words = "" if self.stdin is None else shown(self.stdin).replace("\ufffd", " ")
        return tags_of([self.stdin]) + (self.rec.tag(words.split()) if words.strip() else "")

    def program(self, words: Sequence[Word], assignments: Sequence[tuple[str, Word]] = ()) -> None:
        self.rec.command(words, variables=[name for name, _ in assignments])
        if not (assignments or self._given) and self._is_trusted(words):
            return
        name = words[0]
        scripts = self._scripts(words) if isinstance(name, str) else []
        for script in scripts:
            self.program(script, assignments)
        if scripts:
            return
        outer, self._doubted = self._doubted, 0
        begun = self.rec.doubts
        # What a variable is for this command alone, a shell that it starts finds, too.
        before, self._given = self._given, (*self._given, *assignments)
        try:
            if isinstance(name, Hole):
                with self.rec.under("unknown"):
                    self.rec.unknown("which program runs is not known before it runs", *words)
            else:
                run_command(words, self, assignments)
                self._copy(os.path.basename(name), words)
            self._feed(name, words, doubted=self.rec.doubts - begun > self._doubted)
        finally:
            self._given = before
            self._doubted = outer + self.rec.doubts - begun

    def _copy(self, name: str, words: Sequence[Word]) -> None:
        """What `tee`, `cp` and `mv` write is known where what they read is."""
        certain = not self.unsure and self._is_sure()
        *sources, target = [w for w in words[1:] if isinstance(w, Hole) or w[:1] != "-"] or [""]
        if name == "tee" and self.stdin is not None:
            for each in (*sources, target) if target else ():
                self.files.put(each, self.stdin, name, append="-a" in words, certain=certain)
        elif name in ("ln", "link"):
            self.files.blur()
        elif name in ("cp", "install", "mv"):
            folder = self.rec.is_directory(target) is True
            for each in sources[:_MOST_GIVEN]:
                inside = f"{target}/{os.path.basename(str(each).rstrip('/'))}"
                for text in self.held(each):
                    place = inside if folder else target
                    self.files.put(place, text, name, certain=certain and len(sources) == 1)

    def _scripts(self, words: Sequence[Word]) -> list[list[Word]]:
        """How a file is run that the call itself has written; none for any other program."""
        path = str(words[0])
        found: dict[str, None] = {}
        for each in self.files.get(path) if "/" in path else ():
            first = shown(each).partition("\n")[0]
            found[first[2:] if first.startswith("#!") else "bash"] = None
        runs = [each.split() for each in found]
        return [[*(r[1:] if os.path.basename(r[0]) == "env" else r), *words] for r in runs if r]

    def _feed(self, name: Word, words: Sequence[Word], *, doubted: bool) -> None:
        """What a program may run that it is given by another way than by its words."""
        base = "" if isinstance(name, Hole) else os.path.basename(name)
        knowledge = self.rec.machine.commands or Knowledge.bundled()
        given = [] if self.stdin in (None, "") else [self.stdin]
        if doubted:
            known = words[1:] if knowledge.knows(base) else ()
            if takes_for_data(base, words):
                given = [*self.files.below(".git")]
            else:
                pipes = [self.pipes[each] for each in words if each in self.pipes]
                given += [*pipes, *self.files.given(known)]
            for each in given:
                if each not in self._followed:
                    self.rec.mention(each)
        elif given and may_run_input(base, words) and Knowledge.bundled().knows(base):
            self.rec.unknown(f"`{base}` may run what it is fed", *given)

    def _is_trusted(self, words: Sequence[Word]) -> bool:
        trusts = self.rec.machine.trusts
        if trusts is None or self.stdin is not None:
            return False
        known = [word for word in words if isinstance(word, str)]
        return len(known) == len(words) and trusts(known)

    def _call(
        self, name: str, words: list[Word], assignments: list[tuple[str, Word]], state: State
    ) -> Ends:
        for variable, value in assignments:
            self.check_variable(variable, value)
        self._also(assignments, state)
        bodies = state.functions[name] if self.rec.on("function") else ()
        if len(bodies) > 1:
            self.out.append(Hole())
        ends = either(
            self._called(each, words, state.copy())
            if isinstance(each, Function)
            else self.not_a_function(words, assignments, state.copy())
            for each in bodies
        )
        return ends if bodies else (state, state)

    def _called(self, function: Function, words: list[Word], state: State) -> Ends:
        arguments, state.arguments = state.arguments, tuple(words[1:])
        local, state.local = state.local, {}
        with self.deeper():
            kept, self.reader = self.reader, function.reader
            try:
                with self._redirected(function.redirects, state):
                    ends = self.line(function.body, state)
            finally:
                self.reader = kept
        for ended in {id(each): each for each in ends}.values():
            if ended is not None:
                ended.arguments = arguments
                ended.leave(local)
        return ends

    def knows(self, name: str) -> bool:
        """Whether a name has a meaning that later commands count on."""
        knowledge = self.rec.machine.commands or Knowledge.bundled()
        return name in self.builtins or knowledge.knows(name)

    def _also(self, assignments: Sequence[tuple[str, Word]], state: State) -> None:
        """Variables that have another value besides: for as long as one command takes."""
        for name, word in assignments:
            value = word if isinstance(word, str) else HOLE
            values = (value, *state.variables.get(name, (HOLE,)))
            self.set(name, tuple(dict.fromkeys(values)), state, told=False)

    # -- variables --------------------------------------------------------------------------------

    def name_of(self, node: Node) -> str:
        name = node.child_by_field_name("name")
        return "" if name is None else self.reader.source.text(name).partition("[")[0]

    def assign(self, node: Node, state: State, *, told: bool = True) -> None:
        name = self.name_of(node)
        value = node.child_by_field_name("value")
        target = node.child_by_field_name("name")
        if value is not None and value.type == "array":
            self._assign_array(name, node, value, state)
            return
        values: Values = ("",)
        kind, text = "", ""
        if value is not None:
            kind, text = value.type, self.reader.source.text(value)
            read = self.reader.values(value, state, assigned=True)
            values = tuple(_as_value(as_word(each, self.rec), each) for each in read)
        if target is not None and target.type == "subscript":
            self.reader.check_subscript(self.reader.source.text(target), target, state)
            if not (state.is_number(name) and all(map(is_number, values))):
                state.numbers.discard(name)
            elif name not in state.fixed:
                state.numbers.add(name)
            state.arrays[name] = None
            state.variables.pop(name, None)
            return
        if self._is_appended(node):
            before = self.reader.variable(name, state)
            pairs = product(before, values)
            values = tuple(dict.fromkeys(f"{one}{other}" for one, other in pairs))
        self.set(name, values, state, told=told)
        counts = kind == "arithmetic_expansion" or COUNTING.fullmatch(text)
        if counts and not self._is_appended(node) and name not in state.fixed:
            state.numbers.add(name)

    def _assign_array(self, name: str, node: Node, value: Node, state: State) -> None:
        words: list[Word] = []
        certain = True
        for child in value.named_children:
            written = self.reader.source.text(child)
            ways = self.alternatives(child, state)
            placed = _PLACED.match(written)
            if placed:
                self.reader.evaluate(placed[1], state)
            # Out of a pattern they may be others, where files came or went before.
            may_differ = self.rec.has_made() and any(each in written for each in "*?[")
            certain = certain and not may_differ and not placed and len(ways) == 1
            words += ways[0]
        words = words if certain else [Hole(many=True, tags=tags_of(words))]
        state.numbers.discard(name)
        state.variables.pop(name, None)
        if self._is_appended(node):
            known = state.arrays.get(name, ())
            state.arrays[name] = None if known is None else (*known, *words)
        else:
            state.arrays[name] = tuple(words)

    def _is_appended(self, node: Node) -> bool:
        return any(each.type == "+=" for each in node.children)

    def set(self, name: str, values: Values, state: State, *, told: bool = True) -> None:
        state.numbers.discard(name)
        state.arrays.pop(name, None)
        # `x=$x$x` again and again would else double it until nothing fits in memory.
        if len(values) > MOST_VALUES or any(len(each) > _LONGEST_VALUE for each in values):
            values = (marks.hole(values),)
        if not self.rec.on("assignment"):
            values = ("",)
        self.rec.stops |= name in state.fixed
        if name in state.fixed:
            values = tuple(dict.fromkeys((*state.variables.get(name, (HOLE,)), *values)))
        state.variables[name] = values
        if told:
            self.rec.variable(name)
            kept = name in state.exported or name in self.rec.variables
            if kept or may_be_exported(name):
                self._check_exported(name, state)

    def export(self, name: str, state: State) -> None:
        """Programs get the value of a variable from now on, in later calls too."""
        state.exported.add(name)
        self._check_exported(name, state)

    def _check_exported(self, name: str, state: State) -> None:
        for each in state.variables.get(name, (HOLE,)):
            self.check_variable(name, Hole() if HOLE in each else each)

    def check_variable(self, name: str, value: Word) -> None:
        if risky_variable(name, value):
            self.rec.unknown(f"what runs later depends on ${name}, which is set here", value)


Builtin: TypeAlias = Callable[[Reading, list[Word], State], Ends]
Statement: TypeAlias = Callable[[Reading, Node, State], Ends]

_NOT_READING: Final = frozenset(
    {":", "[", "cd", "echo", "exit", "false", "let", "printf", "pwd", "return", "set", "shift",
     "test", "trap", "true"}
)  # fmt: skip
_ELSEWHERE: Final = "/dev/stderr"
_INPUTS: Final = frozenset({"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
# Of these, what stands in them prints once, in this order.
_ONCE: Final = frozenset(
    {"compound_statement", "declaration_command", "list", "subshell", "test_command",
     "unset_command", "variable_assignments"}
)  # fmt: skip
_REDIRECTIONS: Final = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<", "<>", "<&"})
_TOKENS: Final = frozenset({"\n", ";", "&"})


@frozen
class _Target:
    """A file that is written. prints: whether the standard output goes there."""

    word: Word
    operator: str
    prints: bool


def _any_of(texts: Sequence[Word]) -> Word:
    """One of these texts."""
    if len(texts) == 1:
        return texts[0]
    return Hole(text="\n".join(map(shown, texts)), tags=tags_of(texts))


def _text_of(values: Sequence[str], recorder: Recorder) -> Word:
    """The text of a here-string, in one of these ways."""
    words = [as_word(each, recorder) for each in values]
    if len(set(words)) == 1 and isinstance(words[0], str):
        return words[0]
    text = "\n".join(marks.plain(marks.TAGS.sub("", each)) for each in values)
    return Hole(text=text.replace(HOLE, "\ufffd"), tags=tags_of(words))


def _only(words: Sequence[Word]) -> Word:
    """The one value of these, or a hole."""
    distinct = list(dict.fromkeys(words))
    if len(distinct) == 1:
        return distinct[0]
    return Hole(many=any(map(is_many, distinct)), tags=tags_of(distinct))


def _as_value(word: Word, marked: str) -> str:
    """What a variable holds: with holes where it is not known."""
    return word if isinstance(word, str) else marks.plain(marked)


def _one(ways: Sequence[list[Word]]) -> list[Word]:
    return [Hole(many=True, tags=tags_of([word for way in ways for word in way]))]


def _combined(alternatives: Sequence[Sequence[list[Word]]]) -> list[list[Word]]:
    """The words of a command, in each way in which they may be."""
    count = 1
    for each in alternatives:
        count *= len(each)
    if count > MOST_VALUES:
        known = [each[0] if len(each) == 1 else _one(each) for each in alternatives]
        return [[word for each in known for word in each]]
    return [[word for words in chosen for word in words] for chosen in product(*alternatives)]
