"""Interpreters of languages: code in their words, modules, files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from hermes_ext.effects._programs.archives import unpacked
from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._programs.sed import in_place
from hermes_ext.effects._words import Hole, Word

# -- Python ---------------------------------------------------------------------------------------

_FLAGS: Final = frozenset("bBdEhIOPqRsSuvVx")
# Of `-W` and `-X`. Others import a module, or write caches elsewhere.
_HARMLESS_VALUES: Final = re.compile(
    r"(?:(?:default|error|always|module|once|ignore)(?:::\w*)?|dev|faulthandler|importtime"
    r"|no_debug_ranges|utf8(?:=[01])?|warn_default_encoding)\Z"
)


def python(call: Call) -> None:
    """`python -c CODE`, `python -m MODULE`, `python FILE`, `python` with its input."""
    words = list(call.words)
    safe_path = False
    while words:
        word = words.pop(0)
        if isinstance(word, Hole):
            call.unknown("runs what is not known before it runs", word)
            return
        if word in ("--version", "--help", "-VV"):
            return
        if word == "-" or not word.startswith("-"):
            words.insert(0, word)
            break
        if word in ("-W", "-X") and words:
            value = words.pop(0)
            word += value if isinstance(value, str) else ""
        option = _python_option(word)
        if option is None:
            call.unknown(f"{word} is not known")
            return
        flags, action, attached = option
        safe_path = safe_path or "I" in flags or "P" in flags
        if action:
            rest = [attached, *words] if attached else words
            _PYTHON_ACTIONS[action](call, rest, safe_path)
            return
        if set(flags) & {"V", "h"}:
            return
    _python_file(call, words)


def _python_option(word: str) -> tuple[str, str, str] | None:
    """The flags in a word, `c` or `m` behind them, and what is behind that."""
    for place, letter in enumerate(word[1:], 1):
        if letter in ("c", "m"):
            return word[1:place], letter, word[place + 1 :]
        if letter in ("W", "X") and _HARMLESS_VALUES.match(word, place + 1):
            return word[1:place], "", ""
        if letter not in _FLAGS:
            return None
    return word[1:], "", ""


def _python_file(call: Call, words: Sequence[Word]) -> None:
    if words and words[0] != "-":
        call.rec.read(words[0])
        for text in call.shell.held(words[0]) or (Hole(),):
            if isinstance(text, str):
                _run_code(call, text, words[1:], words[0])
            else:
                call.unknown("runs a file that is not looked into", *call.words, text)
    elif isinstance(call.shell.stdin, str):
        _run_code(call, call.shell.stdin, words[1:])
    else:
        call.unknown("runs code that is not known before it runs")


def _run_code(call: Call, code: str, args: Sequence[Word], script: Word = "") -> None:
    """Python code; what it is given it may do anything with, where it is not understood."""
    before = call.rec.doubts
    call.shell.python(code, script)
    for each in args if call.rec.doubts > before else ():
        call.rec.mention(each)


def _python_code(call: Call, words: Sequence[Word], safe_path: bool) -> None:
    if words and isinstance(words[0], str):
        _run_code(call, words[0], words[1:])
    elif words:
        call.unknown("runs code that is not known before it runs", *words)


def _python_module(call: Call, words: Sequence[Word], safe_path: bool) -> None:
    name = words[0] if words else ""
    known = call.entry.subcommand(name) if isinstance(name, str) else None
    if known is None:
        call.unknown(f"-m {name} is not known" if isinstance(name, str) else "-m is given no name")
        return
    if not safe_path and (hidden := _in_the_way(call)):
        call.unknown(f"-m {name} may load {hidden} of the directory")
    if name == "pip":
        call.shell.run(words)
    else:
        call.follow(f"{call.by} -m {name}", words[1:], known)


def _in_the_way(call: Call) -> str:
    """A module of the directory that has the name of one of Python's; "" for none."""
    rec = call.rec
    if not rec.machine.local or len(rec.cwd) != 1:
        return "modules"
    folder = rec.cwd[0]
    names: list[str] = rec.made_below(folder)
    with suppress(OSError):
        names += os.listdir(folder)
    for name in names:
        stem, dot, ending = name.partition(".")
        if stem in sys.stdlib_module_names or stem in ("pip", "sitecustomize", "usercustomize"):
            package = os.path.join(folder, name, "__init__.py")
            if dot and ending.split(".")[-1] in ("py", "pyc", "so", "pyd"):
                return name
            if not dot and (
                rec.exists(os.path.join(folder, name)) is None or os.path.exists(package)
            ):
                return name
    return ""


def venv(call: Call) -> None:
    """`python -m venv FOLDER…`."""
    for word in call.words:
        if isinstance(word, Hole) or not word.startswith("-"):
            unpacked(call, word)
        elif word not in ("--without-pip", "--clear", "--copies", "--system-site-packages"):
            # `--upgrade-deps` and `--prompt` among them.
            call.unknown(f"{word} is not known")
    if "--without-pip" not in call.words:
        call.unknown("runs ensurepip")


def archive(call: Call) -> None:
    """`python -m zipfile -l FILE`, `python -m tarfile -c FILE …`."""
    words = call.words
    if len(words) == 2 and words[0] in ("-l", "--list", "-t", "--test"):
        call.read(words[1])
    elif len(words) > 1 and words[0] in ("-c", "--create"):
        call.write(words[1])
    elif len(words) > 1 and words[0] in ("-e", "--extract"):
        call.read(words[1])
        unpacked(call, words[2] if len(words) > 2 else ".")
        if call.by.endswith("tarfile"):
            call.unknown("-e may write where the archive says")
    else:
        call.unknown("is told what is not known")


def server(call: Call) -> None:
    """`python -m http.server PORT`."""
    if not all(isinstance(each, str) and each.isdigit() for each in call.words):
        call.unknown("is given words that are not looked into")
    call.rec.search(".")


_PYTHON_ACTIONS: Final = {"c": _python_code, "m": _python_module}

# -- Perl, Ruby, JavaScript: very little, which is often asked for ---------------------------------

# No sign by which a pattern or text runs code, or takes the value of an expression.
_PERL_PATTERN: Final = r"(?:[^/\\@$`{}\n(]|\\[^\n]|\((?!\?)|\$(?=[/|)]))*"
_PERL_VALUE: Final = r"(?:\$_|\$\d|\$F\[-?\d+\]|\$\.|\"(?:[^\"\\$@`]|\\[nt]|\$\d|\$_)*\")"
_PERL: Final = re.compile(
    rf"\s*(?:print(?:\s+{_PERL_VALUE}(?:\s*[,.]\s*{_PERL_VALUE})*)?(?:\s+(?:if|unless)\s+"
    rf"(?:\$\.\s*(?:==|<=|>=|<|>)\s*\d+|!?\s*/{_PERL_PATTERN}/[imsxg]*))?"
    rf"|s/{_PERL_PATTERN}/(?:[^/\\@$`{{}}\n]|\\[^\n]|\$\d)*/[gimsx]*)\s*;?\s*\Z"
)


def perl(call: Call) -> None:
    """`perl -ne CODE`, `perl -pi -e CODE`, where the code is of the simplest kind."""
    codes: list[Word] = []
    words, flags, suffix = list(call.words), "", None
    while words and isinstance(words[0], str) and words[0].startswith("-") and words[0] != "-":
        word = str(words.pop(0))
        # What stands behind `i` is the suffix of the copies, an `e` too.
        found = re.match(r"-([nplawv0-7]*)(?:F[^\s@${(\\]+|i(\S*)|([eE]))?\Z", word)
        if word == "--":
            break
        if found is None:
            call.unknown("runs code that is not looked into")
            return
        flags += found[1]
        suffix = suffix if found[2] is None else found[2]
        if found[3]:
            codes.append(words.pop(0) if words else "")
    if "v" in flags and not codes:
        return
    safe = codes and all(isinstance(each, str) and _PERL.match(each) for each in codes)
    # Perl takes these for more than the name of a file: `cat x|`, `>x`.
    magic = any(isinstance(each, Hole) or re.search(r"[|<>&\s]", each) for each in words)
    if not safe or magic:
        call.unknown("runs code that is not looked into")
    if suffix is not None:
        call.by = "perl -i"
        in_place(call, words, [suffix])
    else:
        for file in words:
            call.read(file)


_RUBY: Final = re.compile(
    r"\s*(?:puts|p|print)\s+(?:[A-Z]\w*(?:::[A-Z]\w*)*|\d+(?:\s*[-+*/]\s*\d+)*)\s*\Z"
)
_NODE: Final = re.compile(
    r"\s*(?:console\.log\()?(?:process\.(?:versions?|platform|arch)"
    r"|require\((?P<quote>['\"])(?P<file>\.{1,2}/[\w./-]+\.json)(?P=quote)\)"
    r"|\d+(?:\s*[-+*/]\s*\d+)*)"
    r"(?:\.(?!constructor|__)\w+|\[['\"](?!constructor|__)[\w@/. -]+['\"]\]|\[\d+\])*"
    r"(?P<close>\))?\s*;?\s*\Z"
)


def interpreter(call: Call) -> None:
    """`php -v`, `ruff --version`: one flag of those listed; everything else runs code."""
    flags = [name for option in call.entry.table.options for name in option.names]
    if [*call.words] not in [[name] for name in flags]:
        call.unknown("runs code that is not looked into")


def ruby(call: Call) -> None:
    """`ruby -e 'puts RUBY_VERSION'`."""
    if list(call.words) in (["-v"], ["--version"]):
        return
    code = call.words[1] if len(call.words) == 2 and call.words[0] == "-e" else None
    if not (isinstance(code, str) and _RUBY.match(code)):
        call.unknown("runs code that is not looked into")


def node(call: Call) -> None:
    """`node -p "require('./package.json').version"`."""
    if list(call.words) in (["-v"], ["--version"]):
        return
    evaluated = len(call.words) == 2 and call.words[0] in ("-e", "-p", "--eval", "--print", "-pe")
    code = call.words[1] if evaluated else None
    found = _NODE.match(code) if isinstance(code, str) else None
    if found is None or ("console" in found[0]) != bool(found["close"]):
        call.unknown("runs code that is not looked into")
    elif found["file"]:
        call.read(found["file"])
        # Of a file that is not there, another one may be run instead.
        if (
            call.there(found["file"]) is not True
            or call.rec.is_directory(found["file"]) is not False
        ):
            call.unknown(f"may run what stands for {found['file']}")
