"""One command at hand: its words told apart, and the announcing of what is done with them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from hermes_ext.effects._options import Below, Read
from hermes_ext.effects._record import Recorder
from hermes_ext.effects._words import Hole, Word, beginning

if TYPE_CHECKING:
    from hermes_ext.effects._knowledge import Entry

# Where writing changes no file.
_SINK: Final = re.compile(r"/dev/(?:null|zero|full|tty|stdin|stdout|stderr|fd/\d+)\Z")


# What other shells than bash do not know, or take for something else.
_OF_BASH: Final = re.compile(
    r"""\$['"]
    |\{(?:[^{}\s"'`$]|\$\([^)]*\)|\$\{[^}]*\}|\$|"[^"]*"|'[^']*'|`[^`]*`)*(?:,|\.\.)
    |\becho\b[^\n]*\\|\becho\s+-[a-zA-Z]*[eE]|\(\(|\+=|\[\^|~[+-]
    |>\s*[^\s;|&<>]*[*?\[]
    |>\s*[^\s;|&<>"']*[$`]
    |\b(?:builtin|pushd|popd|declare|typeset|let|mapfile|readarray)\b
    |\b(?:export|readonly|local)\s[^;\n]*\$""",
    re.VERBOSE,
)


class Shell(Protocol):
    """What started a command, and can start others."""

    rec: Recorder
    stdin: Word | None

    def run(
        self,
        words: Sequence[Word],
        *,
        cwd: Word | None = None,
        stdin: Word | None = None,
        assignments: Sequence[tuple[str, Word]] = (),
    ) -> None:
        """Another command, in `cwd` if that is given."""

    def text(self, code: str, args: Sequence[Word] = (), *, stdin: Word | None = None) -> None:
        """The text of a shell of its own: `sh -c CODE NAME ARGS…`."""

    def python(self, code: str, script: Word = "") -> None:
        """Python code; `script`: the file that it is in."""

    def held(self, word: Word) -> Sequence[Word]:
        """What a file may hold that the call itself writes; nothing if it does not."""


def is_sink(word: Word) -> bool:
    """Whether writing to it changes no file."""
    return isinstance(word, str) and _SINK.match(word) is not None


class Call:
    """A command, by what is known of it.

    Attributes:
        name: its base name. by: what it is called in messages. words: those behind its name.
        entry: what is known of it. found: its words, told apart: `operands`, `has`, `values`.
    """

    def __init__(
        self,
        name: str,
        by: str,
        words: Sequence[Word],
        entry: Entry,
        shell: Shell,
        run: Callable[[Call], None],
    ) -> None:
        self.name = name
        self.by = by
        self.words = tuple(words)
        self.entry = entry
        self.shell = shell
        self.rec = shell.rec
        self._run = run
        stops = entry.subcommands is not None or entry.runs is not None
        self.found: Read = entry.table.read(self.words, permute=not stops)
        self.operands = self.found.operands
        self.has = self.found.has
        self.values = self.found.values

    def again(self, words: Sequence[Word]) -> Call:
        """The same command with other words."""
        return Call(self.name, self.by, words, self.entry, self.shell, self._run)

    def follow(self, by: str, words: Sequence[Word], entry: Entry) -> None:
        """Announce what a subcommand does."""
        self._run(Call(self.name, by, words, entry, self.shell, self._run))

    # -- what stands in it ------------------------------------------------------------------------

    def last(self, *names: str) -> Word | None:
        """The last value of one of these options."""
        found = self.values(*names)
        return found[-1] if found else None

    # -- what is announced ------------------------------------------------------------------------

    def read(self, word: Word) -> None:
        """A file or directory is read; `-` is the standard input."""
        if word != "-":
            self.rec.read(word)

    def write(self, word: Word, *, tree: bool = False) -> None:
        """A file is created or changed."""
        if isinstance(word, Below):
            self.write_below(word.prefix)
        elif not is_sink(word):
            self.rec.write(word, self.by, tree=tree)

    def write_below(self, folder: Word) -> None:
        """Files of any name are created or changed in a directory."""
        if self.rec.has_links(folder):
            self.unknown("writes where there are links", folder)
        self.rec.write(folder, self.by, tree=True)

    def change_below(self, folder: Word) -> None:
        """Files of any name are created, changed and removed in a directory."""
        self.write_below(folder)
        self.rec.delete(folder, self.by, tree=True)
        self.rec.made_directory(folder)

    def delete(self, word: Word, *, tree: bool = False) -> None:
        """A name goes away."""
        if isinstance(word, Below):
            self.rec.delete(word.prefix, self.by, tree=True)
        elif not is_sink(word):
            self.rec.delete(word, self.by, tree=tree)

    def directory(self, word: Word) -> None:
        """A directory is made."""
        self.rec.create(word, self.by)
        self.rec.made_directory(word)

    @contextmanager
    def at(self, folder: Word) -> Iterator[None]:
        """Relative paths start in another directory."""
        before = self.rec.cwd
        if isinstance(folder, Hole):
            self.rec.cwd = ()
        else:
            self.rec.cwd = tuple(
                dict.fromkeys(os.path.normpath(os.path.join(base, folder)) for base in before)
            ) or ((os.path.normpath(folder),) if folder.startswith("/") else ())
        try:
            yield
        finally:
            self.rec.cwd = before

    def there(self, word: Word) -> bool | None:
        """Whether something has this name; None if that cannot be told."""
        if isinstance(word, Hole):
            return None
        found = {self.rec.exists(each.own) for each in self.rec.places(word)}
        return found.pop() if len(found) == 1 else None

    def is_at_home(self, name: str) -> bool:
        """Whether the user has a file of this name, or may have it."""
        rec = self.rec
        return any(rec.exists(f"{home}/{name}") is not False for home in rec.machine.homes)

    def unknown(self, why: str, *words: Word) -> None:
        """More may be touched; `why` follows the command's name."""
        self.rec.unknown(f"`{self.by}` {why}", *(words or self.words))

    def writes_unknown(self, why: str, *words: Word) -> None:
        """It changes files that nobody can name before it runs; `why` as in `unknown`."""
        self.unknown(why, *words)
        self.rec.open_change(self.by)

    def do(self, deed: str, word: Word) -> None:
        """Announce a deed of `_knowledge.DEEDS`."""
        _DEEDS[deed](self, word)

    def do_shell(self, word: Word) -> None:
        """Text is run by `sh`."""
        if isinstance(word, Hole):
            self.unknown("runs what is not known before it runs", word)
        else:
            self.sh(word, stdin=Hole())

    def sh(self, code: str, args: Sequence[Word] = ("sh",), *, stdin: Word | None = None) -> None:
        """The text of a `sh`, which need not be bash."""
        self.shell.text(code, args, stdin=stdin)
        if _OF_BASH.search(code):
            self.unknown("may read this in another way than bash does", code)

    def check_options(self) -> None:
        """What options do that do more than to change how the operands are taken."""
        for given in self.found.options:
            option = given.option
            if given.unknown and not (option is None and self.entry.others):
                self.unknown(f"{given.short or given.name} {given.unknown}")
            for deed, value in zip(option.values if option else (), given.values, strict=False):
                _DEEDS[deed](self, value)
        if self.entry.word_files and any(beginning(each)[:1] == "@" for each in self.words):
            self.unknown("takes its words from a file")
        if self.found.unclear and self.entry.open:
            self.unknown("may be given options that are not known before it runs")


def _search(call: Call, word: Word) -> None:
    if isinstance(word, str) and word != "-" and call.rec.is_directory(word) is False:
        call.rec.read(word)
    elif word != "-":
        call.rec.search(word)


_DEEDS: Final[dict[str, Any]] = {
    "text": lambda call, word: None,
    "read": Call.read,
    "search": _search,
    "write": Call.write,
    "output": lambda call, word: None if word == "-" else call.write(word),
    "write-tree": lambda call, word: call.write(word, tree=True),
    "directory": Call.directory,
    "delete": Call.delete,
    "delete-tree": lambda call, word: call.delete(word, tree=True),
    "shell": Call.do_shell,
    "unknown": lambda call, word: call.unknown(
        "runs what its files say, or what it is given", word
    ),
}
