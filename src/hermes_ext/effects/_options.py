"""Which words of a command are options, which are their values, and which are operands."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, takewhile
from typing import Final

from attrs import field, frozen

from hermes_ext.effects._words import Hole, Word, beginning, is_many


@frozen
class Below(Hole):
    """A path that a search finds: `prefix`, or something below it."""


@frozen
class Option:
    """An option that a command is known to have.

    Attributes:
        names: as they are written: `-o`, `--output`.
        values: what is done with each word that it takes; none for a flag.
        optional: whether the value may be left out, and then has to stand in the same word.
        operands: what becomes of the operands where it is given; "" for no change.
        default: what stands for the operands where there are none.
        first: whether its value takes the place of the first operand.
        unknown: why nobody can say what the command does where it is given; "" if that is known.
        safe: values with which `unknown` does not apply.
        harmless: whether nothing is written where it is given.
        below: whether it may stand behind the name of a subcommand too.
    """

    names: tuple[str, ...]
    values: tuple[str, ...] = ()
    optional: bool = False
    operands: str = ""
    default: str = ""
    first: bool = False
    unknown: str = ""
    safe: tuple[str, ...] = ()
    harmless: bool = False
    below: bool = False

    @property
    def may_harm(self) -> bool:
        """Whether more is written, or may be, because it is given."""
        deeds = (*self.values, self.operands)
        return bool(self.unknown) or any(deed not in READING for deed in deeds)


READING: Final = frozenset({"", "text", "read", "search"})
"""What is done with words by which nothing is written."""

_UNCLEAR: Final = Option((), unknown="may be short for several options")


@frozen
class Given:
    """An option that stands in a command; `option` is None where nobody knows it.

    name: in full, also where it is shortened. short: the name as written, if it is shortened.
    """

    option: Option | None
    name: str
    values: tuple[Word, ...] = ()
    short: str = ""

    @property
    def unknown(self) -> str:
        """Why nobody can say what happens because of it; "" if that is known."""
        option = self.option
        if option is None:
            return "is not known"
        if option.unknown and not (self.values and all(e in option.safe for e in self.values)):
            return option.unknown
        return "is shortened, and may be another option" if self.short else ""


@frozen
class Read:
    """The words of a command, told apart.

    Attributes:
        options: in the order in which they stand.
        operands: the other words.
        unclear: words that are not known and may be options, or several words.
    """

    options: list[Given] = field(factory=list)
    operands: list[Word] = field(factory=list)
    unclear: list[Hole] = field(factory=list)

    def has(self, *names: str) -> bool:
        """Whether an option with one of these names is given."""
        return any(given.name in names for given in self.options)

    def values(self, *names: str) -> list[Word]:
        """All values of the options with these names."""
        return [value for given in self.options if given.name in names for value in given.values]

    def strange(self) -> list[str]:
        """The options that nobody knows."""
        return [given.name for given in self.options if given.option is None]


class Table:
    """The options of a command.

    Read as `getopt_long` does: clusters (`-xzf a`), values in the same word or the next one
    (`-oa`, `-o a`, `--output=a`, `--output a`), abbreviations (`--out`), `--`.

    words: whether one dash begins a long name, as in `find -name` and `openssl -in`.
    numbers: whether `-20` is an option, as with `head`.
    """

    def __init__(
        self, options: Iterable[Option] = (), *, words: bool = False, numbers: bool = True
    ) -> None:
        self.options: Final = tuple(options)
        self._words = words
        self._numbers = numbers
        self._by_name: Final[Mapping[str, Option]] = {
            name: option for option in self.options for name in option.names
        }
        self._long: Final = sorted(name for name in self._by_name if name.startswith("--"))

    def read(self, words: Sequence[Word], *, permute: bool = True) -> Read:
        """Tell the words of a command, without its name, apart.

        permute: whether options may stand behind operands.
        """
        found = Read()
        ahead = deque(words)
        while ahead:
            word = ahead.popleft()
            if word == "--":
                found.operands.extend(ahead)
                break
            text = beginning(word)
            if isinstance(word, Hole) and is_unclear(word):
                found.unclear.append(word)
            if len(text) > 1 and text[0] == "-":
                self._option(text, word, ahead, found)
                continue
            found.operands.append(word)
            if not permute:
                found.operands.extend(ahead)
                break
        return found

    def _option(self, text: str, word: Word, ahead: deque[Word], found: Read) -> None:
        if self._numbers and text[1:].isdigit() and text[:2] not in self._by_name:
            return
        if text[1] == "-" or self._words:
            self._long_option(text, word, ahead, found)
        else:
            self._cluster(text, word, ahead, found)

    def _long_option(self, text: str, word: Word, ahead: deque[Word], found: Read) -> None:
        name, equals, attached = text.partition("=")
        if isinstance(word, Hole) and not equals:
            found.unclear.append(word)
            return
        full, option = self._named(name)
        short = "" if name in self._by_name or self._words else name
        if equals:
            value = Hole(attached) if isinstance(word, Hole) else attached
            found.options.append(Given(option, full, (value,), short))
        else:
            self._take(option, full, ahead, found, short)

    def _named(self, name: str) -> tuple[str, Option | None]:
        """The option of this long name, which may be shortened."""
        found = self._by_name.get(name)
        if found is not None:
            return name, found
        if self._words:
            other = name[1:] if name.startswith("--") else f"-{name}"
            return other, self._by_name.get(other)
        ahead = islice(self._long, bisect_left(self._long, name), None)
        names = [*takewhile(lambda each: each.startswith(name), ahead)]
        if len(names) == 1:
            return names[0], self._by_name[names[0]]
        return name, _UNCLEAR if any(self._by_name[each].may_harm for each in names) else None

    def _cluster(self, text: str, word: Word, ahead: deque[Word], found: Read) -> None:
        for at in range(1, len(text)):
            name = f"-{text[at]}"
            option = self._by_name.get(name)
            rest = text[at + 1 :]
            if option is None or not (option.values or option.optional):
                found.options.append(Given(option, name))
            elif rest or isinstance(word, Hole):
                value = Hole(rest) if isinstance(word, Hole) else rest
                found.options.append(Given(option, name, (value,)))
                return
            else:
                self._take(option, name, ahead, found)
                return
        if isinstance(word, Hole):
            found.unclear.append(word)

    def _take(
        self, option: Option | None, name: str, ahead: deque[Word], found: Read, short: str = ""
    ) -> None:
        """Give an option the words behind it."""
        count = 0 if option is None or option.optional else len(option.values)
        values = tuple(ahead.popleft() for _ in range(min(count, len(ahead))))
        found.unclear.extend(each for each in values if is_many(each))
        found.options.append(Given(option, name, values, short))


def is_unclear(word: Hole) -> bool:
    """Whether a word may be an option, or several words."""
    return not isinstance(word, Below) and (word.many or word.prefix in ("", "-"))
