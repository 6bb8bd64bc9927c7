"""Commands of the shell itself that change where it stands or what its names mean."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from typing import Final

from hermes_ext.effects._shell.marks import HOLE
from hermes_ext.effects._shell.reading import NAME, Builtin, Reading
from hermes_ext.effects._shell.state import MOST_VALUES, Ends, State, either, forget
from hermes_ext.effects._words import Hole, Word, is_many, shown

_SILENT: Final = frozenset(
    {".", "cd", "exit", "getopts", "let", "mapfile", "read", "readarray", "shift", "source"}
)
_LEAVES: Final = frozenset({"break", "continue", "exec", "exit", "logout", "return"})
_SET_HARMLESS: Final = re.compile(r"[-+][euxv]+\Z")
_SET_NAMES: Final = frozenset({"errexit", "nounset", "pipefail", "xtrace", "verbose"})


def _quiet(run: Callable[[Reading, list[Word], State], Ends | None]) -> Builtin:
    """A command whose output is not followed. It may succeed or fail where it gives no ends."""

    def builtin(shell: Reading, words: list[Word], state: State) -> Ends:
        shell.rec.stops |= words[0] in _LEAVES and (shell.unsure > 0 or words[0] != "exit")
        if words[0] not in _SILENT and (words[0] != "cd" or "-" in words):
            shell.out.append(
                shell.files.all if words == ["exec"] else Hole(tags=shell.rec.tag(words[1:]))
            )
        return run(shell, words, state) or (state, state)

    return builtin


def _cd(shell: Reading, words: list[Word], state: State) -> Ends:
    if not shell.rec.on("cd"):
        return state, state
    rest, physical = words[1:], False
    while rest and isinstance(rest[0], str) and re.fullmatch(r"-[PLe@]+|--", rest[0]):
        option, *rest = rest
        if option == "--":
            break
        sign = re.sub(r"[^PL]", "", str(option))[-1:]
        physical = sign == "P" if sign else physical
    target: Word = rest[0] if rest else _home(shell)
    if target == "":
        return state, state
    if target == "-":
        found: tuple[str, ...] | None = state.old or None
    else:
        found = _directory(shell, target, state, physical=physical)
    if physical and found:
        found = tuple(os.path.realpath(each) for each in found)
    ends = _moved(shell, found, state, target)
    # More words are an error, but not to every shell.
    return (ends[0], state) if len(rest) > 1 else ends


def _home(shell: Reading) -> Word:
    homes = shell.rec.machine.homes
    return homes[0] if len(homes) == 1 else Hole()


def _directory(
    shell: Reading, target: Word, state: State, *, physical: bool = False
) -> tuple[str, ...] | None:
    relative = isinstance(target, str) and not re.match(r"\.{0,2}(?:/|\Z)", target)
    if relative and "CDPATH" in state.variables:
        return None
    if physical and isinstance(target, str):
        # `..` is then taken for what is above the place that a link leads to.
        bases = ("/",) if target.startswith("/") else state.cwd
        return tuple(os.path.join(each, target) for each in bases) or None
    return shell.below(state.cwd, target)


def _moved(shell: Reading, found: tuple[str, ...] | None, state: State, target: Word) -> Ends:
    moved = state.copy()
    moved.cwd, moved.old = found or (), state.cwd
    shell.rec.read(target)
    shell.rec.used(target)
    there = shell.rec.is_directory(found[0]) if found and len(found) == 1 else None
    return moved, None if there else state


def _pushd(shell: Reading, words: list[Word], state: State) -> Ends:
    operands = [each for each in words[1:] if each != "-n"]
    if "-n" in words and len(operands) == 1:
        state.stack.append(_directory(shell, operands[0], state) or ())
        return state, state
    if len(operands) != 1 or (isinstance(operands[0], str) and operands[0][:1] in "+-"):
        state.stack, state.cwd, state.old = [()], (), ()
        return state, state
    ok, failed = _moved(shell, _directory(shell, operands[0], state), state, operands[0])
    if ok is not None:
        ok.stack.append(state.cwd)
    return ok, failed


def _popd(shell: Reading, words: list[Word], state: State) -> Ends:
    if not shell.rec.on("cd"):
        return state, state
    if not state.stack:  # an error, and nothing happens
        return state, state
    moved = state.copy()
    moved.old = state.cwd
    moved.cwd = moved.stack.pop() if len(words) == 1 else ()
    if len(words) > 1:
        moved.stack = [()]
    return moved, None if moved.cwd else state


def _dirs(shell: Reading, words: list[Word], state: State) -> None:
    if len(words) > 1:
        state.stack = [] if words[1:] == ["-c"] else [()]


def _eval(shell: Reading, words: list[Word], state: State) -> Ends:
    if any(isinstance(each, Hole) for each in words):
        shell.out.append(Hole())
        shell.rec.unknown("what eval runs is not known before it runs", *words[1:])
        return state, state
    if not shell.rec.on("eval"):
        return state, state
    with shell.deeper():
        return shell.read(" ".join(str(each) for each in words[1:]), state)


def _source(shell: Reading, words: list[Word], state: State) -> Ends | None:
    held = shell.held(words[1]) if words[1:] else ()
    if words[2:]:
        state.arguments = None
    # A name without a slash is looked for elsewhere first.
    elsewhere = any(isinstance(w, str) and "/" not in w and shutil.which(w) for w in words[1:2])
    if held and not elsewhere and all(isinstance(each, str) for each in held):
        with shell.deeper():
            return either(shell.read(str(each), state.copy()) for each in held)
    shell.out.append(Hole())
    with shell.rec.under("source"):
        for each in words[1:2]:
            shell.rec.read(each)
        shell.rec.unknown("a file of commands is run, which is not looked into", *words[1:], *held)
    for each in held:
        if isinstance(each, str):
            shell.read(each, state.copy())
    shell.enter(state)
    forget(state, State(()))
    return None


def _exec(shell: Reading, words: list[Word], state: State) -> None:
    if len(words) == 1:
        return
    rest = words[1:]
    while rest and isinstance(rest[0], str) and re.fullmatch(r"-[cla]+", rest[0]):
        if rest[0] != "-c":
            # A shell that is called so reads the start-up files of the user.
            shell.rec.unknown(f"exec {rest[0]} gives a program another name", *rest)
        rest = rest[2:] if rest[0].endswith("a") else rest[1:]
    if words[1] == "-c" and any("~" in str(each) for each in rest):
        shell.rec.unknown("exec -c takes $HOME away, so what `~` stands for is not known", *rest)
    if rest:
        shell.program(rest)


def _wrapped(shell: Reading, words: list[Word], state: State) -> Ends:
    """`command`, `builtin` and `time`, which run what is behind them in this shell."""
    rest = words[1:]
    while rest and rest[0] in ("-p", "--"):
        rest = rest[1:]
    if not rest:
        return state, state
    if isinstance(rest[0], str) and rest[0].startswith("-"):
        shell.out.append(Hole())
        if words[0] == "command" and rest[0] in ("-v", "-V"):
            return state, state
        shell.rec.unknown(f"{words[0]} {rest[0]} is not known", *rest)
        return state, state
    if words[0] == "time":
        return shell.command(rest, [], state)
    return shell.not_a_function(rest, [], state)


def _trap(shell: Reading, words: list[Word], state: State) -> None:
    if len(words) > 2 and words[1] not in ("-", "-p", "-l"):
        if isinstance(words[1], Hole):
            shell.rec.unknown("what trap runs is not known before it runs")
        else:
            # It runs later: what variables are then, and where the shell stands, is not known.
            later = State(())
            later.functions = dict(state.functions)
            later.arguments = None
            for name in state.variables:
                later.variables[name] = (HOLE,)
            before = later.copy()
            with shell.deeper():
                shell.read(words[1], later)
            shell.enter(state)
            if later != before and not all(each in _AT_THE_END for each in words[2:]):
                shell.rec.unknown("what trap changes between later commands is not followed")


_AT_THE_END: Final = frozenset({"0", "EXIT", "HUP", "INT", "QUIT", "SIGINT", "SIGTERM", "TERM"})


def _sets_names(shell: Reading, words: list[Word], state: State) -> None:
    """`read`, `mapfile`, `getopts`: what the names mean afterwards is not known."""
    letters, names = _options(words, _VALUED.get(str(words[0]), ""))
    if words[0] == "getopts":
        names = names[1:2]
    if letters is None or (set(letters) & {"C", "c"}):
        shell.rec.unknown(f"{words[0]} may run something for each line", *words)
    for word in names:
        if isinstance(word, Hole) or not NAME.match(word):
            shell.rec.unknown(f"which variable {words[0]} sets is not known", word)
            continue
        given = _lines(shell.stdin) if words[0] == "read" else ()
        tags = shell.tags_of_input()
        shell.set(word, (*given, tags + HOLE), state)
        if words[0] in ("mapfile", "readarray") or "a" in (letters or ""):
            state.arrays[word] = (Hole(many=True, tags=tags),)
            del state.variables[word]
    for name in ("REPLY", "MAPFILE"):
        state.variables.pop(name, None)


def _options(words: list[Word], valued: str) -> tuple[str | None, list[Word]]:
    """The letters of a builtin's options, None where they are not known, and what is behind."""
    letters, rest = "", words[1:]
    while rest:
        word = rest[0]
        if isinstance(word, Hole):
            return (letters if not word.may_begin_with("-") else None), rest
        if not re.match(r"-[^-]", word):
            return letters, rest[1:] if word == "--" else rest
        rest = rest[1:]
        for place, letter in enumerate(word[1:], 2):
            letters += letter
            if letter in valued:
                rest = rest if word[place:] else rest[1:]
                break
    return letters, rest


# Options that take a value; what `read -a` takes is a name, too.
_VALUED: Final = {"read": "dinNptu", "mapfile": "dnOsuCc", "readarray": "dnOsuCc"}


def _lines(stdin: Word | None) -> tuple[str, ...]:
    """What `read` may read, besides what nobody knows: something else may have read before."""
    lines = [] if stdin is None else shown(stdin).splitlines()
    known = tuple(line.strip() for line in lines if "\ufffd" not in line)
    return known if len(lines) < MOST_VALUES else ()


def _printf(shell: Reading, words: list[Word], state: State) -> Ends:
    if words[1:2] == ["-v"]:
        return _quiet(_sets_names)(shell, words[:1] + words[2:3], state)
    if len(words) > 1 and isinstance(words[1], Hole) and words[1].may_begin_with("-v"):
        shell.rec.unknown("printf may set a variable here", *words)
    shell.print(words, (), state)
    return state, state


def _let(shell: Reading, words: list[Word], state: State) -> None:
    for word in words[1:]:
        if isinstance(word, Hole):
            shell.rec.unknown("let evaluates what is not known before it runs", word)
        else:
            shell.reader.evaluate(word, state)


def _set_options(shell: Reading, words: list[Word], state: State) -> None:
    rest = words[1:]
    shell.rec.stops = True  # -e, -u
    while rest:
        word = rest[0]
        if word in ("--", "-") or (isinstance(word, str) and word[:1] not in ("-", "+")):
            # Out of a pattern they may be others, where files came or went before.
            given = tuple(rest[1:] if word in ("--", "-") else rest)
            state.arguments = None if shell.rec.has_made() else given
            return
        if word in ("-o", "+o") and len(rest) > 1 and rest[1] in _SET_NAMES:
            rest = rest[1:]
        elif isinstance(word, str) and re.fullmatch(r"[-+][euxvC]*o", word) and len(rest) > 1:
            if rest[1] not in _SET_NAMES:
                shell.rec.unknown("an option of the shell is set", *rest[:2])
            rest = rest[1:]
        elif not (isinstance(word, str) and _SET_HARMLESS.match(word)):
            shell.rec.unknown("an option of the shell is set", word)
        rest = rest[1:]


def _shift(shell: Reading, words: list[Word], state: State) -> None:
    count = words[1] if len(words) > 1 else "1"
    known = state.arguments
    several = any(is_many(each) for each in known or ())
    if known is None or several or isinstance(count, Hole) or not count.isdigit():
        state.arguments = None
    else:
        state.arguments = known[int(count) :]


def _changes_the_shell(shell: Reading, words: list[Word], state: State) -> None:
    """What gives names or patterns another meaning from now on."""
    if any(each not in ("-p", "-l", "-r", "-t", "-q", "-u", "-c") for each in words[1:]):
        shell.rec.unknown(f"`{words[0]}` changes what later commands mean", *words[1:])


_QUIET: Final[dict[str, Callable[[Reading, list[Word], State], Ends | None]]] = {
    ". source": _source,
    "alias bind compgen complete enable hash shopt": _changes_the_shell,
    "break continue return unalias": lambda shell, words, state: None,
    "cd": _cd,
    "coproc": lambda shell, words, state: shell.rec.unknown("`coproc` is not followed", *words[1:]),
    "dirs": _dirs,
    "exec": _exec,
    "exit logout": lambda shell, words, state: (None, None),
    "getopts mapfile read readarray": _sets_names,
    "let": _let,
    "popd": _popd,
    "pushd": _pushd,
    "set": _set_options,
    "shift": _shift,
    "trap": _trap,
}
BUILTINS: Final[dict[str, Builtin]] = {
    **{name: _quiet(run) for names, run in _QUIET.items() for name in names.split()},
    **dict.fromkeys(("builtin", "command", "time"), _wrapped),
    "eval": _eval,
    "printf": _printf,
}
