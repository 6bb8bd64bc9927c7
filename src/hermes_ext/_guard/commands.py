"""Judges shell text: whether it may change what is protected.

The text is read and expanded in the order in which a shell would run it, following `cd`, variables
and substitutions. Each simple command is then one of three:

- it only reads, or what it writes is known and not protected;
- it changes something protected, or a rule: refused;
- nobody knows what it does: refused if the text speaks of something protected anywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum, auto
from itertools import islice, product
from typing import Final, TypeAlias

from attrs import Factory, define, field, frozen

from hermes_ext._guard import programs
from hermes_ext._guard.look import Look
from hermes_ext._guard.mentions import SWITCHES, Mention, loosened, mention_in, mentions_in
from hermes_ext._guard.places import ANY
from hermes_ext._guard.shell import (
    SPLIT,
    Program,
    Redirect,
    Simple,
    Unreadable,
    parse,
    unescaped,
)
from hermes_ext._guard.words import Expander, State, Values

__all__ = ["JudgePython", "Refused", "judge_shell", "judge_words"]

JudgePython: TypeAlias = Callable[[str, Values], bool]
"""Judges Python text in directories: True if it only reads; raises `Refused`."""

_NESTED: Final = 12  # shells in shells
_LONGEST: Final = 300_000  # characters
_COMMANDS: Final = 2_000  # simple commands in all

# Where a shell looks for what it is to do at its start.
STARTUP_FILES: Final = frozenset(
    {".bash_login", ".bash_profile", ".bashrc", ".envrc", ".pam_environment", ".profile",
     ".zlogin", ".zprofile", ".zshenv", ".zshrc", "bash.bashrc", "config.fish", "environment",
     "profile"}
)  # fmt: skip


class Refused(Exception):  # noqa: N818 - an answer, not a failure
    """What is not to happen. by: the program or function that would do it, "" if several."""

    def __init__(self, mention: Mention, by: str = "") -> None:
        super().__init__(mention, by)
        self.mention = mention
        self.by = by


class Standing(Enum):
    """What is known of a simple command that is not refused."""

    HARMLESS = auto()
    UNKNOWN = auto()


@define
class Call:
    """A program that is run. args: its arguments; texts: what it is given to read."""

    name: str
    args: list[Values]
    state: State
    unit: int
    redirects: list[tuple[str, Values]] = field(factory=list)
    texts: list[Values] = field(factory=list)
    literal: bool = True
    # What comes after it may go elsewhere.
    cwd: Values = field(default=Factory(lambda self: self.state.cwd, takes_self=True))


@frozen
class _Said:
    """A text that stands somewhere, and where relative paths in it start from."""

    text: str
    bases: Values
    unit: int


def judge_shell(text: str, cwd: Values, look: Look, python: JudgePython) -> bool:
    """Judge the text of a command.

    Returns:
        Whether it changes nothing but what is known and not protected.

    Raises:
        Refused: it may change what is protected.
    """
    if len(text) > _LONGEST:
        raise Refused(Mention("command", "more text than can be looked at"))
    reading = Reading(look, python)
    reading.run_text(text, State(look.protected, cwd), 0)
    return reading.judged()


def judge_words(words: Sequence[str], cwd: Values, look: Look, python: JudgePython) -> bool:
    """As `judge_shell`, of a program and its arguments that no shell will read."""
    reading = Reading(look, python)
    reading.call([(each,) for each in words], State(look.protected, cwd), 0)
    return reading.judged()


@define
class Reading:
    """One text, read and expanded: its calls, and all that is said in it."""

    look: Look
    python: JudgePython
    calls: list[Call] = field(factory=list)
    said: list[_Said] = field(factory=list)
    depth: int = 0

    # -- reading --------------------------------------------------------------------------------

    def run_text(self, text: str, state: State, unit: int | None) -> None:
        """Read a text as a shell does that is in this state. unit: None if it has its own."""
        try:
            program = parse(text)
        except Unreadable:
            program = ()
            self._say((text,), state.cwd, unit or 0)
            self._say((loosened(text),), state.cwd, unit or 0)
            self.calls.append(Call("", [], state, unit or 0))
        if self.depth >= _NESTED:
            raise Refused(Mention("command", "too many shells in shells"))
        self.depth += 1
        self.run(program, state, unit)
        self.depth -= 1

    def run(self, program: Program, state: State, unit: int | None = None) -> None:
        """Go through the commands of a program in order."""
        states: dict[tuple[int, ...], State] = {(): state}
        for simple in program:
            for length in range(1, len(simple.scope) + 1):
                scope = simple.scope[:length]
                if scope not in states:
                    states[scope] = states[scope[:-1]].copy()
            here = states[simple.scope]
            here.move_on(simple.chained, simple.sure)
            self._simple(simple, here, simple.unit if unit is None else unit)

    def _simple(self, simple: Simple, state: State, unit: int) -> None:
        expander = Expander(state, lambda program, inner: self._printed(program, inner, unit))
        self._assign(simple, expander)
        redirects, texts = self._redirects(simple.redirects, expander, state, unit)
        fields: list[Values] = []
        for word in simple.words:
            fields += expander.fields(word)
        for value in fields:
            self._say(value, state.cwd, unit)
        changed = {name for name, _ in simple.assignments if simple.words}
        if not fields:
            if redirects:
                self._add(Call(":", [], state, unit, redirects, texts))
            return
        if changed:
            self._check_homes(changed, fields)
        literal = isinstance(simple.words[0][0], str) and len(simple.words[0]) == 1
        made = Call("", fields, state, unit, redirects, texts, literal)
        self._resolve(made, fields)

    def _assign(self, simple: Simple, expander: Expander) -> None:
        for name, word in simple.assignments:
            if name in SWITCHES:
                raise Refused(Mention("switch", name))
            for value in expander.fields(word) if simple.loop else [expander.text(word)]:
                self._say(value, expander.state.cwd, simple.unit)
                expander.state.assign(name, value)

    def _redirects(
        self, redirects: Iterable[Redirect], expander: Expander, state: State, unit: int
    ) -> tuple[list[tuple[str, Values]], list[Values]]:
        files: list[tuple[str, Values]] = []
        texts: list[Values] = []
        for redirect in redirects:
            if redirect.operator.startswith("<<"):
                text = expander.text(redirect.word)
                texts.append(text)
                self._say(text, state.cwd, unit)
                continue
            for value in expander.fields(redirect.word):
                files.append((redirect.operator, value))
                self._say(value, state.cwd, unit)
        return files, texts

    def _say(self, values: Values, bases: Values, unit: int) -> None:
        self.said += [_Said(each.replace(SPLIT, " "), bases, unit) for each in values if each]

    def _check_homes(self, changed: set[str], fields: Sequence[Values]) -> None:
        program = programs.base_name(fields[0][0])
        own = program in programs.OWN_PROGRAMS | programs.HERMES_PROGRAMS
        if "HOME" in changed and own:
            raise Refused(Mention("switch", "HOME"), program)

    # -- which program it is --------------------------------------------------------------------

    def call(self, fields: Sequence[Values], state: State, unit: int) -> None:
        """Add a program that is run with these words."""
        for value in fields:
            self._say(value, state.cwd, unit)
        self._resolve(Call("", list(fields), state, unit), fields)

    def _resolve(self, made: Call, fields: Sequence[Values]) -> None:
        """Find out what is really run, and add that."""
        for program in fields[0][:4]:
            name = programs.base_name(program)
            alias = made.state.aliases.get(program) if made.literal else None
            if alias is not None and alias.split()[:1] != [program]:
                words = " ".join(_quoted(value[0]) for value in fields[1:])
                self.run_text(f"{alias} {words}", made.state, made.unit)
                continue
            call = Call(name, list(fields[1:]), made.state, made.unit, made.redirects, made.texts)
            self._add(call)

    def _add(self, call: Call) -> None:
        if len(self.calls) > _COMMANDS:
            raise Refused(Mention("command", "more commands than can be looked at"))
        builtin = _BUILTINS.get(call.name)
        if builtin is not None:
            builtin(self, call)
        if call.name in programs.WRAPPERS:
            self._unwrap(call)
        elif call.name in programs.SHELLS:
            self._shell(call)
        elif call.name == "find":
            self._found(call)
            self.calls.append(call)
        else:
            self.calls.append(call)
            self._inner(call)

    def _unwrap(self, call: Call) -> None:
        args, fed = programs.after_wrapper(call.name, call.args)
        if call.name == "command" and any(each[0] in ("-v", "-V") for each in call.args[:1]):
            self.calls.append(Call("which", args, call.state, call.unit, call.redirects))
            return
        if call.name == "env":
            args = self._environment(call, args)
        elif call.name in ("sudo", "doas"):
            args = self._variables(call, args)
        if fed:
            args.append((ANY,))
        if call.redirects or not args:
            self.calls.append(Call(":", [], call.state, call.unit, call.redirects, call.texts))
        if args:
            self._resolve(Call("", args, call.state, call.unit, [], call.texts), args)

    def _environment(self, call: Call, args: list[Values]) -> list[Values]:
        given = programs.arguments(call.args, "uCS", "--unset", "--chdir", "--split-string")
        for name in (each for value in given.value("-u", "--unset") for each in value):
            if name in SWITCHES:
                raise Refused(Mention("switch", name), "env")
        for value in given.value("-S", "--split-string"):
            for text in value:
                self.run_text(text, call.state.copy(), call.unit)
        args = self._variables(call, args)
        for value in given.value("-C", "--chdir"):
            call.state = call.state.at(
                tuple(os.path.join(base, each) for each, base in product(value, call.state.cwd))
            )
        program = programs.base_name(args[0][0]) if args else ""
        own = program in programs.OWN_PROGRAMS | programs.HERMES_PROGRAMS
        emptied = any(each[0] in ("-", "-i", "--ignore-environment") for each in call.args)
        if own and (emptied or any(each[0].startswith("HOME=") for each in call.args)):
            raise Refused(Mention("switch", "HERMES_HOME"), "env")
        return args

    def _variables(self, call: Call, args: list[Values]) -> list[Values]:
        """What comes after the `NAME=value` words of `env` and `sudo`."""
        rest = list(args)
        while rest and (rest[0][0] == "-" or re.match(r"[A-Za-z_]\w*=", rest[0][0])):
            _no_switch(rest.pop(0), call.name)
        return rest

    def _shell(self, call: Call) -> None:
        """A shell: what it is told to run is run here too."""
        plain = [value for value in call.args if not value[0].startswith("+")]
        given = programs.arguments(plain, "oO", "--rcfile", "--init-file")
        operands = list(given.operands)
        script = programs.base_name(operands[0][0]) if operands and not given.has("c") else ""
        if script in _OURS:
            self._add(Call(script, operands[1:], call.state, call.unit))
        inner = call.state.copy()
        if given.has("c"):
            texts = operands[:1] or [(ANY,)]
            inner.set_arguments(operands[2:])
        elif operands and not given.has("s"):
            texts = []
        else:
            texts = [*call.texts, *self._printed_before(call)]
        for value in texts:
            for text in value:
                if text != ANY:
                    self.run_text(text.replace(ANY, "${__unknown}"), inner, call.unit)
        known = bool(texts) and not any(ANY in text for value in texts for text in value)
        name = ":" if known else call.name
        args = [] if known else call.args
        self.calls.append(Call(name, args, call.state, call.unit, call.redirects))

    def _printed_before(self, call: Call) -> Iterator[Values]:
        """What the commands before it in its pipeline print, for one that reads that."""
        for other in self.calls:
            if other.unit == call.unit and other.name in _PRINTERS:
                yield _PRINTERS[other.name](self, other)

    def _found(self, call: Call) -> None:
        """What `find` runs."""
        words = [field[0] for field in call.args]
        for place, word in enumerate(words):
            if word not in ("-exec", "-execdir", "-ok", "-okdir"):
                continue
            ends = [each for each in range(place, len(words)) if words[each] in (";", "+")]
            end = ends[0] if ends else len(words)
            args = [_with_found(field) for field in call.args[place + 1 : end]]
            if args:
                self._resolve(Call("", args, call.state, call.unit), args)

    def _inner(self, call: Call) -> None:
        """Programs that the arguments of another name: `uv run python -c …`."""
        if call.name in programs.TEXT_RUNNERS:
            for text in _joined(programs.arguments(call.args, "njdI").operands):
                self.run_text(text, call.state, call.unit)
        elif call.name in ("su", "runuser", "script", "flock"):
            for value in programs.arguments(call.args, "cuws", "--command").value(
                "-c", "--command"
            ):
                for text in value:
                    self.run_text(text, call.state.copy(), call.unit)
        if call.name in _JUDGES or programs.only_reads(call.name, call.args):
            return
        for place, value in enumerate(call.args):
            name = programs.base_name(value[0])
            if name in programs.SHELLS or programs.PYTHON.match(name) or name in _OURS:
                rest = list(call.args[place + 1 :])
                self._add(Call(name, rest, call.state, call.unit, [], call.texts))
                return

    # -- what is printed ------------------------------------------------------------------------

    def _printed(self, program: Program, state: State, unit: int) -> Values:
        """What a substitution prints, as far as that can be told; its commands are added."""
        begin = len(self.calls)
        self.run(program, state, unit)
        made = self.calls[begin:]
        if len(program) != 1 or len(made) != 1 or made[0].redirects:
            return (ANY,)
        printer = _PRINTERS.get(made[0].name)
        return printer(self, made[0]) if printer else (ANY,)

    # -- judging --------------------------------------------------------------------------------

    def judged(self) -> bool:
        """Whether all of it is harmless; raises `Refused`."""
        unknown = [call for call in self.calls if self._standing(call) is Standing.UNKNOWN]
        self._check_lists()
        if unknown:
            self._check_all_said(unknown)
        return not unknown

    def _standing(self, call: Call) -> Standing:
        standing = _JUDGES.get(call.name, _unknown)(self, call)
        for operator, value in call.redirects:
            if operator != "<" and self._written(value, call):
                standing = Standing.UNKNOWN
        return standing

    def _written(self, value: Values, call: Call) -> bool:
        """Whether it is unknown what is written to; raises if it is something protected."""
        if all(text.isdigit() or text in ("-", "/dev/null") for text in value):
            return False
        self.check(value, call)
        startup = any(os.path.basename(text) in STARTUP_FILES for text in value)
        if startup:
            self._check_startup(call)
        return any(ANY in text for text in value)

    def _check_startup(self, call: Call) -> None:
        """Nothing that turns rules off is for a file that a shell reads at its start."""
        for said in self.said:
            for mention in mentions_in(said.text, (), self.look):
                raise Refused(mention, call.name)

    def _check_all_said(self, unknown: Sequence[Call]) -> None:
        units = {call.unit: call.name for call in unknown}
        for said in dict.fromkeys(self.said):
            mention = mention_in(said.text, said.bases, self.look)
            if mention is None:
                continue
            if mention.kind != "home":
                raise Refused(mention, unknown[0].name)
            if said.unit in units:
                raise Refused(mention, units[said.unit])

    def _check_lists(self) -> None:
        """What one command finds in whole folders, no other may change without looking."""
        changing = {call.unit: call for call in self.calls if _changes_what_it_is_given(call)}
        for call in self.calls:
            if call.unit in changing and call.name in programs.LISTERS | {"git"}:
                found = _listed(self, call)
                if found is not None:
                    raise Refused(Mention("place", found), changing[call.unit].name)

    def check(self, value: Values, call: Call) -> None:
        """Raise if a path is protected."""
        for text, base in product(value, call.cwd):
            place = self.look.place(text, base)
            if place is not None:
                raise Refused(Mention("place", place), call.name)

    def check_whole(self, value: Values, call: Call) -> None:
        """Raise if a path is protected, or has something protected below it."""
        self.check(value, call)
        for text, base in product(value, call.cwd):
            place = self.look.covers(text, base)
            if place is not None:
                raise Refused(Mention("place", place), call.name)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _joined(fields: Sequence[Values]) -> Iterator[str]:
    """The fields as one text; some of the texts if a field has several values."""
    yield from (" ".join(each) for each in islice(product(*fields), 16))


def _with_found(field: Values) -> Values:
    return tuple(text.replace("{}", ANY) for text in field)


def _no_switch(value: Values, by: str) -> None:
    for text in value:
        name = text.partition("=")[0].rstrip("+")
        if name in SWITCHES:
            raise Refused(Mention("switch", name), by)


# -- builtins that change what comes after them -------------------------------------------------


def _cd(reading: Reading, call: Call) -> None:
    operands = programs.arguments(call.args).operands
    if call.name == "popd" or (operands and operands[0] == ("-",)):
        call.state.go(call.state.before)
        return
    targets = operands[0] if operands else call.state.value("HOME")
    call.state.go(
        tuple(
            text if text[:1] in ("/", ANY) else f"{base}/{text}"
            for text, base in product(targets, call.cwd)
        )
    )


def _declare(reading: Reading, call: Call) -> None:
    for value in call.args:
        _no_switch(value, call.name)
        name, equals, _ = value[0].partition("=")
        if equals:
            call.state.assign(name, tuple(text.partition("=")[2] for text in value))


def _unset(reading: Reading, call: Call) -> None:
    for value in call.args:
        _no_switch(value, call.name)
        call.state.assign(value[0], ("",))


def _read(reading: Reading, call: Call) -> None:
    for value in programs.arguments(call.args, "adinNptu").operands:
        call.state.assign(value[0], (ANY,))


def _set(reading: Reading, call: Call) -> None:
    given = programs.arguments(call.args, "o")
    if given.operands:
        call.state.set_arguments(given.operands)


def _alias(reading: Reading, call: Call) -> None:
    for value in call.args:
        name, equals, text = value[0].partition("=")
        if equals:
            call.state.aliases[name] = text


def _trap(reading: Reading, call: Call) -> None:
    for text in call.args[0] if call.args else ():
        reading.run_text(text, call.state.copy(), call.unit)


def _printf_variable(reading: Reading, call: Call) -> None:
    given = programs.arguments(call.args, "v")
    for value in given.value("-v"):
        call.state.assign(value[0], _printf(reading, call))


_BUILTINS: Final[dict[str, Callable[[Reading, Call], None]]] = {
    "alias": _alias,
    "cd": _cd,
    "declare": _declare,
    "export": _declare,
    "local": _declare,
    "mapfile": _read,
    "popd": _cd,
    "printf": _printf_variable,
    "pushd": _cd,
    "read": _read,
    "readarray": _read,
    "readonly": _declare,
    "set": _set,
    "trap": _trap,
    "typeset": _declare,
    "unset": _unset,
}


# -- programs that print what they are given ----------------------------------------------------


def _echo(reading: Reading, call: Call) -> Values:
    args = list(call.args)
    escapes = False
    while args and re.fullmatch(r"-[neE]+", args[0][0]):
        escapes |= "e" in args.pop(0)[0]
    texts = tuple(_joined(args))
    return tuple(map(unescaped, texts)) if escapes else texts


_FORMAT: Final = re.compile(r"%[-0-9.]*[sbdq]")


def _printf(reading: Reading, call: Call) -> Values:
    operands = programs.arguments(call.args, "v").operands
    if not operands:
        return ("",)
    texts = []
    for form, *values in islice(product(*operands), 16):
        rest = iter(values)
        pieces = _FORMAT.split(unescaped(form))
        text = "".join(each + next(rest, "") for each in pieces[:-1]) + pieces[-1]
        texts.append(" ".join((text.replace("%%", "%"), *rest)))
    return tuple(texts)


def _pwd(reading: Reading, call: Call) -> Values:
    return call.cwd


def _dirname(reading: Reading, call: Call) -> Values:
    return tuple(os.path.dirname(text) or "." for field in call.args[-1:] for text in field)


def _basename(reading: Reading, call: Call) -> Values:
    return tuple(os.path.basename(text.rstrip("/")) for field in call.args[:1] for text in field)


def _resolved(reading: Reading, call: Call) -> Values:
    return tuple(
        text if text[:1] in ("/", ANY) else f"{base}/{text}"
        for field in call.args[-1:]
        for text, base in product(field, call.cwd)
    )


def _cat(reading: Reading, call: Call) -> Values:
    return call.texts[-1] if call.texts and not call.args else (ANY,)


def _which(reading: Reading, call: Call) -> Values:
    return call.args[-1] if call.args else (ANY,)


def _temporary(reading: Reading, call: Call) -> Values:
    return (f"/tmp/{ANY}",) if len(call.args) < 2 else (ANY,)


def _git_says(reading: Reading, call: Call) -> Values:
    words = [field[0] for field in call.args]
    if words != ["rev-parse", "--show-toplevel"]:
        return (ANY,)
    return tuple(_repository(base) for base in call.cwd)


def _repository(directory: str) -> str:
    folder = directory
    while ANY not in folder:
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return directory


def _hermes_says(reading: Reading, call: Call) -> Values:
    """`hermes config path` prints where the settings are."""
    names = {"path": "config.yaml", "env-path": ".env"}
    words = [field[0] for field in call.args]
    name = names.get(words[1]) if len(words) > 1 and words[0] == "config" else None
    return (f"{reading.look.protected.hermes_home}/{name}",) if name else (ANY,)


_PRINTERS: Final[dict[str, Callable[[Reading, Call], Values]]] = {
    "basename": _basename,
    "cat": _cat,
    "dirname": _dirname,
    "echo": _echo,
    "git": _git_says,
    "hermes": _hermes_says,
    "mktemp": _temporary,
    "printf": _printf,
    "pwd": _pwd,
    "readlink": _resolved,
    "realpath": _resolved,
    "which": _which,
}


# -- judges of single programs ------------------------------------------------------------------


def _unknown(reading: Reading, call: Call) -> Standing:
    if programs.only_reads(call.name, call.args):
        return Standing.HARMLESS
    changed = programs.changes_package(call.name, call.args)
    if changed is not None:
        raise Refused(Mention("command", changed), call.name)
    if programs.PYTHON.match(call.name):
        return _python(reading, call)
    if programs.INTERPRETERS.match(call.name):
        for value in (*call.args, *call.texts):
            reading._say(tuple(map(loosened, value)), call.cwd, call.unit)
    own_language = programs.INTERPRETERS.match(call.name) or call.name in programs.OTHER_LANGUAGES
    said = (text for value in (*call.args, *call.texts) for text in value)
    if own_language and any("HERMES_HOME" in text for text in said):
        raise Refused(Mention("home", "HERMES_HOME"), call.name)
    home = next((base for base in call.cwd if reading.look.is_home(base, "/")), None)
    spills = call.name in programs.SPILLERS or (call.name == "git" and not _git_reads(call))
    if home is not None and spills:
        raise Refused(Mention("home", home), call.name)
    for base in call.cwd:
        place = reading.look.place(base, "/")
        if place is not None:
            raise Refused(Mention("place", place), call.name)
    return Standing.UNKNOWN


def _python(reading: Reading, call: Call) -> Standing:
    """Python that stands in the command, or a module that is ours."""
    given = programs.arguments(call.args, "cmWXQ")
    codes = list(given.value("-c"))
    if given.value("-m") and not codes:
        return _module(reading, call)
    if not codes and (not given.operands or given.operands[0] == ("-",)):
        codes = [*call.texts, *reading._printed_before(call)]
    if not codes:
        return Standing.UNKNOWN
    texts = [text for value in codes for text in value]
    reads = all(ANY not in text and reading.python(text, call.cwd) for text in texts)
    return Standing.HARMLESS if reads else Standing.UNKNOWN


def _module(reading: Reading, call: Call) -> Standing:
    words = [value[0] for value in call.args]
    place = next(each for each, word in enumerate(words) if re.match(r"-[A-Za-z]*m", word))
    name = words[place].partition("m")[2]
    if not name:
        place += 1
        name = words[place]
    inner = Call(name.removesuffix(".__main__"), call.args[place + 1 :], call.state, call.unit)
    if inner.name in _OURS:
        return _rules(reading, inner)
    changed = programs.changes_package(inner.name, inner.args)
    if changed is not None:
        raise Refused(Mention("command", changed), call.name)
    return Standing.UNKNOWN


def _rules(reading: Reading, call: Call) -> Standing:
    if call.name not in _OURS:
        return Standing.UNKNOWN
    changed = programs.changes_rules(call.name, call.args)
    if changed is not None:
        raise Refused(Mention("command", changed), call.name)
    looks = [field[0] for field in call.args[:2]]
    return (
        Standing.HARMLESS
        if call.name in programs.OWN_PROGRAMS
        or (looks[:1] in (["config"], ["extensions"], ["status"], ["doctor"], ["logs"]))
        else Standing.UNKNOWN
    )


def _git_command(call: Call) -> tuple[str, list[Values], Values]:
    """The git command, its arguments, and where it runs."""
    rest = list(call.args)
    cwd = call.cwd
    while rest and rest[0][0].startswith("-"):
        option = rest.pop(0)[0]
        if option in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") and rest:
            value = rest.pop(0)
            if option == "-C":
                cwd = tuple(
                    text if text[:1] in ("/", ANY) else f"{base}/{text}"
                    for text, base in product(value, cwd)
                )
    return (rest[0][0] if rest else "", rest[1:], cwd)


def _git_reads(call: Call) -> bool:
    command, args, _ = _git_command(call)
    if any(field[0] in ("-c", "--config-env") for field in call.args[:4]):
        return False
    return not command or programs.git_only_reads(command, args)


def _git(reading: Reading, call: Call) -> Standing:
    command, args, cwd = _git_command(call)
    if command == "clean":
        given = programs.arguments(args, "e", "--exclude")
        if not given.has("n", "--dry-run"):
            for value in given.operands or ((".",),):
                reading.check_whole(value, Call(call.name, [], call.state.at(cwd), call.unit))
        return Standing.HARMLESS
    if command == "rm":
        for value in programs.arguments(args).operands:
            reading.check_whole(value, Call(call.name, [], call.state.at(cwd), call.unit))
    if _git_reads(call):
        return Standing.HARMLESS
    return _unknown(reading, call)


def _find(reading: Reading, call: Call) -> Standing:
    words = {field[0] for field in call.args}
    if words & {"-fprint", "-fprint0", "-fprintf", "-fls"}:
        return Standing.UNKNOWN
    if "-delete" in words:
        for start, base in _starts(call):
            place = reading.look.place(start, base)
            found = place or _found_below(reading, call, start, base)
            if found is not None:
                raise Refused(Mention("place", found), "find -delete")
    return Standing.HARMLESS


def _starts(call: Call) -> Iterator[tuple[str, str]]:
    """Where `find` and its like begin, each with where it is relative to."""
    starts = []
    for value in call.args:
        if value[0].startswith("-") or value[0] in ("(", "!"):
            if call.name == "find" and value[0] not in ("-H", "-L", "-P"):
                break
            continue
        starts.append(value)
    if call.name != "find" and call.name not in ("ls", "dir", "du", "tree"):
        starts = starts[1:]  # the pattern
    for value in starts or [(".",)]:
        yield from product(value, call.cwd)


def _found_below(reading: Reading, call: Call, start: str, base: str) -> str | None:
    return reading.look.holds(start, base, _names_looked_for(call))


def _names_looked_for(call: Call) -> tuple[str, ...] | None:
    """The names that `find` or `grep` is limited to; None if it is not."""
    words = [field[0] for field in call.args]
    if call.name in ("grep", "egrep", "rg"):
        given = programs.arguments(call.args, "gABCme", "--include", "--glob")
        return tuple(each[0] for each in given.value("--include", "--glob", "-g")) or None
    names = tuple(
        words[place + 1] for place, word in enumerate(words[:-1]) if word in ("-name", "-iname")
    )
    alternatives = sum(word in ("-o", "-or") for word in words)
    negated = any(word in ("!", "-not") for word in words)
    return names if names and not negated and len(names) > alternatives else None


def _listed(reading: Reading, call: Call) -> str | None:
    """Something protected that a command lists for those after it."""
    given = programs.arguments(call.args)
    if call.name == "git":
        if _git_command(call)[0] != "ls-files":
            return None
        return next(filter(None, (reading.look.covers(".", base) for base in call.cwd)), None)
    if call.name in ("grep", "egrep") and not given.has("rR", "--recursive"):
        return None
    if call.name in ("rg", "ag", "ack", "fd", "fdfind") and not given.has("uH.", "--hidden"):
        return None
    if call.name in ("ls", "dir", "tree") and not given.has("aAfR", "--all", "--almost-all"):
        return None
    return next(
        filter(None, (_found_below(reading, call, *start) for start in _starts(call))), None
    )


def _changes_what_it_is_given(call: Call) -> bool:
    """Whether a command changes files that another one names to it."""
    fed = any(ANY in text for value in call.args for text in value)
    if call.name in ("sed", "perl"):
        return fed and programs.arguments(call.args).has("i", "--in-place")
    return fed and call.name in _WRITERS and call.name not in ("mkdir", "touch")


# -- programs of which it is known what they write ----------------------------------------------


def _targets(reading: Reading, call: Call, values: Iterable[Values], *, whole: bool) -> Standing:
    known = True
    for value in values:
        (reading.check_whole if whole else reading.check)(value, call)
        known &= not any(ANY in text for text in value)
    return Standing.HARMLESS if known else Standing.UNKNOWN


def _remove(reading: Reading, call: Call) -> Standing:
    given = programs.arguments(call.args)
    whole = given.has("rR", "--recursive") or call.name == "rmdir"
    return _targets(reading, call, given.operands, whole=whole)


# The short options of each that take a value; a letter too many would swallow a path.
_WITH_VALUE: Final = {"mkdir": "m", "mkfifo": "m", "mknod": "m", "touch": "drt", "truncate": "rs"}


def _make(reading: Reading, call: Call) -> Standing:
    letters = _WITH_VALUE.get(call.name, "")
    given = programs.arguments(call.args, letters, "--mode", "--date", "--reference", "--size")
    return _targets(reading, call, given.operands, whole=False)


def _tee(reading: Reading, call: Call) -> Standing:
    operands = programs.arguments(call.args).operands
    written = [reading._written(value, call) for value in operands]
    return Standing.UNKNOWN if any(written) else Standing.HARMLESS


def _attributes(reading: Reading, call: Call) -> Standing:
    given = programs.arguments(call.args, "", "--from", "--reference")
    whole = given.has("R", "--recursive")
    # The mode or the owner may be taken for an option; looking at it too costs nothing.
    return _targets(reading, call, given.operands, whole=whole)


def _dd(reading: Reading, call: Call) -> Standing:
    outputs = [
        tuple(text[3:] for text in value) for value in call.args if value[0].startswith("of=")
    ]
    return _targets(reading, call, outputs, whole=False)


_COPY_LETTERS: Final = {"install": "tSmgo", "rsync": "efMTB"}
_COPY_OPTIONS: Final = ("--target-directory", "--suffix", "--mode", "--group", "--owner",
                                   "--rsh", "--exclude", "--include", "--filter")  # fmt: skip


def _copy(reading: Reading, call: Call) -> Standing:
    """`cp`, `mv`, `install`, `ln` and `rsync`: sources and a destination."""
    letters = _COPY_LETTERS.get(call.name, "tS")
    given = programs.arguments(call.args, letters, *_COPY_OPTIONS)
    into = given.value("-t", "--target-directory")
    sources = list(given.operands)
    if call.name == "install" and given.has("d", "--directory"):
        return _targets(reading, call, sources, whole=False)
    if not into and len(sources) > 1:
        into = (sources.pop(),)
    elif not into and call.name == "ln":
        into = ((".",),)
    _check_sources(reading, call, given, sources)
    known = _targets(reading, call, into, whole=False)
    whole = call.name in ("mv", "rsync") or given.has("aRrdT", "--archive", "--recursive")
    for source, folder in product(sources, into):
        for text, place in product(source, folder):
            _check_arrival(reading, call, text, place, whole=whole)
            if given.has("", "--parents", "--relative") or (
                call.name == "rsync" and given.has("R")
            ):
                reading.check((os.path.join(place, text.removeprefix("./")),), call)
    if whole or given.has("T", "--no-target-directory"):
        _check_replaced(reading, call, given, into)
    fed = any(ANY in text for value in sources for text in value)
    return Standing.UNKNOWN if fed else known


def _check_sources(
    reading: Reading, call: Call, given: programs.Arguments, sources: Iterable[Values]
) -> None:
    moved = call.name == "mv" or given.has("", "--remove-source-files")
    linked = call.name == "ln" or given.has("ls" if call.name == "cp" else "", "--link",
                                            "--symbolic-link")  # fmt: skip
    for value in sources:
        if moved:
            reading.check_whole(value, call)
        elif linked:
            reading.check(value, call)
            for text, base in product(value, call.cwd):
                above = reading.look.above_rules(text, base)
                if above is not None:
                    raise Refused(Mention("place", above), call.name)


def _check_arrival(reading: Reading, call: Call, source: str, folder: str, *, whole: bool) -> None:
    """What a source becomes in a folder: something with its name, or with its contents' names."""
    if ":" in folder.partition("/")[0]:
        return  # on another machine
    name = os.path.basename(source.rstrip("/"))
    names = [name] if name not in ("", ".", "..") else []
    if source.endswith(("/", "/.", "/..")) or not names:
        names += [each for base in call.cwd for each in reading.look.names_in(source, base)]
        if any(reading.look.is_home(folder, base) for base in call.cwd) and whole:
            names.append("config.yaml")
    for each in names:
        (reading.check_whole if whole and each == ".hermes" else reading.check)(
            (f"{folder}/{each}",), call
        )
        for base in call.cwd:
            if whole and reading.look.is_home(f"{folder}/{each}", base):
                raise Refused(Mention("home", f"{folder}/{each}"), call.name)


def _check_replaced(
    reading: Reading, call: Call, given: programs.Arguments, into: Iterable[Values]
) -> None:
    """Where a destination is replaced as a whole."""
    if given.has("T", "--no-target-directory", "--delete", "--delete-after", "--delete-before",
                 "--delete-during", "--delete-excluded", "--del"):  # fmt: skip
        for value in into:
            reading.check_whole(value, call)


_WRITERS: Final[dict[str, Callable[[Reading, Call], Standing]]] = {
    "chgrp": _attributes,
    "chmod": _attributes,
    "chown": _attributes,
    "cp": _copy,
    "dd": _dd,
    "install": _copy,
    "ln": _copy,
    "mkdir": _make,
    "mv": _copy,
    "rm": _remove,
    "rmdir": _remove,
    "rsync": _copy,
    "shred": _remove,
    "tee": _tee,
    "touch": _make,
    "truncate": _make,
    "unlink": _remove,
}


def _carries(reading: Reading, call: Call) -> Standing:
    """What is exported stays for later commands: nothing protected may be hidden in it."""
    for value in call.args:
        for text in value:
            mention = mention_in(text.partition("=")[2], call.cwd, reading.look)
            if mention is not None:
                raise Refused(mention, call.name)
    return Standing.HARMLESS


def _sed(reading: Reading, call: Call) -> Standing:
    return Standing.HARMLESS if programs.sed_only_reads(call.args) else _unknown(reading, call)


def _awk(reading: Reading, call: Call) -> Standing:
    return Standing.HARMLESS if programs.awk_only_reads(call.args) else _unknown(reading, call)


def _harmless(reading: Reading, call: Call) -> Standing:
    return Standing.HARMLESS


_OURS: Final = programs.OWN_PROGRAMS | programs.HERMES_PROGRAMS
_JUDGES: Final[dict[str, Callable[[Reading, Call], Standing]]] = {
    **_WRITERS,
    **dict.fromkeys(_OURS, _rules),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("declare", "export", "readonly", "typeset"), _carries),
    **dict.fromkeys(("alias", "local", "trap", "unset", ":"), _harmless),
    "find": _find,
    "git": _git,
    "sed": _sed,
}
