"""Programs that run others: env, sudo, xargs, shells, watch."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from attrs import evolve

from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._variables import risky_variable
from hermes_ext.effects._words import ANYTHING, Hole, Word, beginning, is_many, shown, tags_of

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_MOST_RUNS: Final = 50


def env(call: Call) -> None:
    """`env NAME=VALUE… COMMAND`."""
    call.check_options()
    words = list(call.operands)
    cleared = call.has("-i", "--ignore-environment") or "HOME" in call.values("-u", "--unset")
    if words[:1] == ["-"]:
        cleared = True
        del words[0]
    for text in call.values("-S", "--split-string"):
        split = _split_string(text)
        if split is None:
            call.unknown("-S is not followed")
            return
        words = [*split, *words]
    if cleared and any("~" in str(each) for each in words):
        # Some shells then take it as it is written, others look the home up.
        call.unknown("takes $HOME away, so what `~` stands for is not known")
    _run_with_assignments(call, words, call.last("-C", "--chdir"))


def _split_string(text: Word) -> list[Word] | None:
    # What is split may begin with options of `env` itself.
    if isinstance(text, Hole) or re.search(r"[\\$#]|\A\s*-", text):
        return None
    try:
        return list(shlex.split(text))
    except ValueError:
        return None


def _run_with_assignments(call: Call, words: Sequence[Word], folder: Word | None = None) -> None:
    assignments: list[tuple[str, Word]] = []
    for word in words:
        text = beginning(word)
        if not _ASSIGNMENT.match(text):
            break
        name, _, value = text.partition("=")
        assignments.append((name, Hole(value) if isinstance(word, Hole) else value))
        if is_many(word):
            call.unknown("runs what is not known before it runs")
    rest = words[len(assignments) :]
    if rest:
        call.shell.run(rest, cwd=folder, assignments=assignments)
    elif any(risky_variable(*each) for each in assignments):
        call.unknown("sets what is not known")


def sudo(call: Call) -> None:
    """`sudo`, `doas`: run a command, as another user."""
    call.check_options()
    if not any(given.option and given.option.harmless for given in call.found.options):
        _run_with_assignments(call, call.operands)


def nohup(call: Call) -> None:
    """`nohup`: what the command prints may go to a file."""
    call.check_options()
    if call.operands:
        call.write("nohup.out")
        for home in call.rec.machine.homes:
            call.write(f"{home}/nohup.out")
        call.shell.run(call.operands)


def watch(call: Call) -> None:
    """`watch`: gives its words to a shell, or runs them."""
    call.check_options()
    words = call.operands
    if not words:
        return
    if call.has("-x", "--exec"):
        call.shell.run(words)
    elif any(isinstance(each, Hole) for each in words):
        call.unknown("runs what is not known before it runs")
    else:
        call.sh(" ".join(map(str, words)), stdin="")


def flock(call: Call) -> None:
    """`flock FILE COMMAND`: makes the file."""
    call.check_options()
    if not call.operands:
        return
    lock, rest = call.operands[0], call.operands[1:]
    if not (isinstance(lock, str) and lock.isdigit()) and not call.rec.is_directory(lock):
        call.write(lock)
    if rest and rest[0] in ("-c", "--command") and len(rest) > 1:
        call.do_shell(rest[1])
    elif rest:
        call.shell.run(rest)


def busybox(call: Call) -> None:
    """`busybox NAME WORDS`: its programs know fewer options than those that are known here."""
    if call.words and isinstance(call.words[0], str) and not call.words[0].startswith("-"):
        call.shell.run(call.words)
    elif call.words:
        call.unknown("is not followed here")


def test(call: Call) -> None:
    """`test`, `[`: what stands behind `-v` is evaluated, with the commands in it."""
    words = call.words
    for before, word in zip(("", *words), words, strict=False):
        if isinstance(word, Hole):
            runs = word.many or before in ("-v", "-R") or isinstance(before, Hole)
        else:
            runs = "[" in word and word != "[" and ("$" in word or "`" in word)
        if runs:
            call.unknown("may evaluate what is not known before it runs")
            return


# A line of a crontab: five fields or a name for them, and a command.
_CRON_LINE: Final = re.compile(r"[ \t]*(?:@\w+|[\d*](?:\S*[ \t]+\S+){4})[ \t]+(\S.*)")


def later(call: Call) -> None:
    """`at TIME`, `batch`: a shell runs what they are fed, when other files may be there."""
    call.unknown("runs other programs")
    text = call.shell.stdin
    if isinstance(text, str):
        call.sh(text, stdin=Hole())
    elif text is not None:
        call.unknown("runs commands that are not known before it runs")


def crontab(call: Call) -> None:
    """`crontab FILE`, `crontab -`: the commands of its lines run in the home directory."""
    if call.has("-l"):
        return
    call.unknown("runs what its files say, or what it is given")
    text = call.shell.stdin
    homes = call.rec.machine.homes
    with call.at(homes[0] if homes else Hole()):
        for line in text.splitlines() if isinstance(text, str) else ():
            found = _CRON_LINE.match(line)
            if found:
                call.sh(found[1], stdin=Hole())


# -- xargs ----------------------------------------------------------------------------------------


def xargs(call: Call) -> None:
    """`xargs COMMAND`: adds words of its input."""
    call.check_options()
    command = call.operands or ["echo"]
    marker = _marker(call)
    text = _input(call)
    items = None if isinstance(text, Hole) else _items(call, text)
    if items is None:
        tags = tags_of([text]) + call.rec.tag(shown(text).split())
        _run_item(call, command, marker, Hole(many=marker is None, text=shown(text), tags=tags))
        return
    if marker is not None:
        for item in items[:_MOST_RUNS]:
            _run_item(call, command, marker, item)
        if len(items) > _MOST_RUNS:
            call.unknown("runs a command for very many words")
            _run_item(call, command, marker, Hole())
        return
    size = _batch(call, len(items))
    if size is None:
        call.unknown("runs a command for words that are not known", *items)
        _run_item(call, command, None, ANYTHING)
        return
    for place in range(0, max(len(items), 1), size):
        call.shell.run([*command, *items[place : place + size]], stdin="")


def _marker(call: Call) -> str | None:
    """What stands for the words, with `-I`."""
    if call.has("-I"):
        value = call.last("-I")
        return value if isinstance(value, str) else ""
    if call.has("-i", "--replace"):
        value = call.last("-i", "--replace")
        return "{}" if value is None else value if isinstance(value, str) else ""
    return None


def _input(call: Call) -> Word:
    """What it takes its words from."""
    file = call.last("-a", "--arg-file")
    held = ([] if call.shell.stdin is None else [call.shell.stdin]) if file is None else None
    texts = call.shell.held(file) if held is None and file is not None else held or ()
    text = "\n".join(map(shown, texts))
    return texts[0] if len(texts) == 1 else Hole(text=text, tags=tags_of(texts))


def _items(call: Call, text: str) -> list[str] | None:
    """The words of the input; None where it is not known."""
    if call.has("-E", "-e", "--eof"):
        return None
    delimiter = "\0" if call.has("-0", "--null") else call.last("-d", "--delimiter")
    if delimiter is not None:
        return _split(text, delimiter)
    if _marker(call) is None:
        # Quotes are taken as a shell takes them, backslashes not quite.
        try:
            return None if "\\" in text else shlex.split(text)
        except ValueError:
            return None
    if re.search(r"['\"\\]", text):
        return None
    return [line.lstrip() for line in text.split("\n") if line.strip()]


def _split(text: str, delimiter: Word) -> list[str] | None:
    if isinstance(delimiter, str):
        delimiter = {"\\n": "\n", "\\t": "\t", "\\0": "\0"}.get(delimiter, delimiter)
    if isinstance(delimiter, Hole) or len(delimiter) != 1:
        return None
    return text.removesuffix(delimiter).split(delimiter) if text else []


def _batch(call: Call, count: int) -> int | None:
    """How many words each command gets; None where that is not known."""
    if call.has("-L", "-l", "--max-lines", "-s", "--max-chars"):
        return max(count, 1) if count <= 1 else None
    size = call.last("-n", "--max-args")
    if size is None:
        return max(count, 1)
    if not isinstance(size, str) or not size.isdigit() or not int(size):
        return None
    return int(size) if count / int(size) <= _MOST_RUNS else None


def _run_item(call: Call, command: Sequence[Word], marker: str | None, item: Word) -> None:
    if marker is None:
        call.shell.run([*command, item], stdin="")
    elif marker:
        call.shell.run([_replaced(each, marker, item) for each in command], stdin="")
    else:
        call.unknown("replaces what is not known before it runs")


def _replaced(word: Word, marker: str, item: Word) -> Word:
    if isinstance(word, Hole):
        return Hole("", many=word.many, tags=tags_of((word, item)))
    if marker not in word:
        return word
    if isinstance(item, str):
        return word.replace(marker, item)
    return evolve(item, prefix=word.partition(marker)[0] + item.prefix)


# -- shells ---------------------------------------------------------------------------------------

_FLAGS: Final = frozenset("aefhklmnuvxBCEHPTil")
_LONG: Final = frozenset(
    {"--login", "--noprofile", "--norc", "--posix", "--verbose", "--noediting"}
)
_SETTINGS: Final = ("pipefail", "errexit", "nounset", "xtrace")
_PLAIN: Final = re.compile(r"[\w\s./:,@%+\-'\"|;&<>=]*\Z")
_POSIX: Final = frozenset({"sh", "dash", "ash"})


def shell(call: Call) -> None:
    """`sh -c CODE`, `sh FILE`, `sh` with its input."""
    letters, words = _shell_options(call)
    _check_settings(call, letters or set())
    call.rec.stops |= bool(letters and letters & {"e", "u"})
    if letters is None:
        call.unknown("runs what is not known before it runs")
    elif "c" in letters:
        _code(call, words)
    elif words and "s" not in letters:
        call.rec.read(words[0])
        for text in call.shell.held(words[0]) or (Hole(),):
            if isinstance(text, str):
                _code(call, [text, *words])
            else:
                call.unknown("runs a file that is not looked into", *call.words, text)
    elif isinstance(call.shell.stdin, str):
        _code(call, [call.shell.stdin, Hole(), *words], stdin=Hole())
    else:
        call.unknown("runs commands that are not known before it runs")


def _check_settings(call: Call, letters: set[str]) -> None:
    """What the shell runs before anything else."""
    names: list[str] = []
    if call.name == "zsh":
        names += [".zshenv"]
    if "l" in letters:
        names += [".profile", ".bash_profile", ".bash_login"]
        names += [".zprofile", ".zlogin", ".bash_logout"]
    if "i" in letters:
        names += [".bashrc", ".zshrc", ".kshrc"]
    for name in names:
        if call.is_at_home(name) and not _is_usual(call, name):
            call.unknown(f"runs ~/{name} first")


def _is_usual(call: Call, name: str) -> bool:
    """Whether the user has nothing but what each new user gets."""
    if not call.rec.machine.local:
        return False
    try:
        with open(f"/etc/skel/{name}", "rb") as file:
            usual = file.read(100_000)
        for home in call.rec.machine.homes:
            with open(f"{home}/{name}", "rb") as file:
                if file.read(100_001) != usual or call.rec.exists(f"{home}/{name}") is None:
                    return False
    except OSError:
        return False
    return True


def _shell_options(call: Call) -> tuple[set[str] | None, list[Word]]:
    """The letters of its options, and the words behind; None where they are not known."""
    words, letters = list(call.words), set[str]()
    while words:
        word = words[0]
        if isinstance(word, Hole):
            known = not word.may_begin_with("-") and not word.may_begin_with("+")
            return (letters if known else None), words
        if word[:1] not in ("-", "+") or word in ("-", "+"):
            break
        del words[0]
        if word in ("--", "-"):
            break
        if word in _LONG:
            letters |= {"l"} if word == "--login" else set()
            continue
        letters |= set(word[1:])
        if not letters <= _FLAGS | {"c", "o", "s"}:
            return None, words
        if "o" in word and (not words or words.pop(0) not in _SETTINGS):
            return None, words
    return letters, words


def _code(call: Call, words: Sequence[Word], stdin: Word | None = None) -> None:
    if not words:
        return
    code = words[0]
    if isinstance(code, Hole):
        call.unknown("runs what is not known before it runs", *words)
        return
    args = words[1:]  # without one, `$0` is what the shell was called by
    if call.name in _POSIX:
        call.sh(code, args, stdin=stdin)
        return
    call.shell.text(code, args, stdin=stdin)
    if call.name not in ("bash", "rbash") and not _PLAIN.match(code):
        call.unknown("may read this in another way than bash does", code)
