"""What is known of commands: the data that comes with the package, and what users add to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from attrs import define, frozen

from hermes_ext.effects._options import READING, Option, Table

DEEDS: Final = {
    "text": "a word that is no path",
    "read": "a file or directory that is read",
    "search": "a directory that is read with all below it",
    "write": "a file that is created or changed",
    "output": "the same, but `-` is the standard output",
    "write-tree": "a directory in which anything may be created or changed",
    "directory": "a directory that is made",
    "delete": "a name that is removed",
    "delete-tree": "a name that is removed with all below it",
    "shell": "shell text that is run",
    "unknown": "nobody can say what is done with it",
}
"""What may be done with a word, each with its meaning; the strongest last."""

_STRENGTH: Final = {deed: place for place, deed in enumerate(DEEDS)}


@frozen
class Entry:
    """What is known of a command or subcommand.

    Attributes:
        table: its options.
        operands: what is done with each operand; the last counts for all further ones.
        default: what stands for the operands where there are none; "" for nothing.
        others: whether options that are not listed change nothing.
        open: whether a word that is not known before it runs may be an option that harms.
        subcommands: by name; None where the first operand is none.
        runs: how many operands stand before the command that it runs; None if it runs none.
        unknown: why nobody can say what it does; "" if that is known.
        program: the reading in `_programs` that announces what it does.
        word_files: whether a word that begins with `@` names a file with more words.
        depends_on: files, looked for from the directory upwards, that change what it does.
    """

    table: Table
    operands: tuple[str, ...] = ("text",)
    default: str = ""
    others: bool = False
    open: bool = False
    subcommands: Mapping[str, _Raw] | None = None
    runs: int | None = None
    unknown: str = ""
    program: str = ""
    word_files: bool = False
    depends_on: tuple[str, ...] = ()
    may_harm: bool = False

    def subcommand(self, name: str) -> Entry | None:
        """What is known of a subcommand; None for nothing."""
        found = (self.subcommands or {}).get(name)
        return None if found is None else found.read(self.table)


@define(eq=False)
class _Raw:
    """An entry as it is written, read when it is first asked for."""

    written: Mapping[str, Any]
    entry: Entry | None = None

    def read(self, above: Table | None = None) -> Entry:
        if self.entry is None:
            self.entry = _entry(self.written, above)
        return self.entry


def _entry(written: Mapping[str, Any], above: Table | None) -> Entry:
    letters = " ".join(f"-{letter}" for letter in str(written.get("letters", "")))
    flags = f"{letters} {written.get('flags', '')}".strip()
    listed = {"flag": flags, "text": written.get("values")}
    below = bool(written.get("below"))
    options = tuple(
        _option(key, value, below)
        for key, value in (
            *((names, kind) for kind, names in listed.items() if names),
            # Of a name that stands twice, what is said in particular counts.
            *(written.get("options") or {}).items(),
        )
    )
    operands = tuple(str(written.get("operands", "text")).split())
    subcommands = written.get("subcommands")
    runs = written.get("runs")
    program = str(written.get("program", ""))
    harm = any(deed not in READING for deed in operands) or any(each.may_harm for each in options)
    others = written.get("others")
    listed_here = (*(each for each in above.options if each.below), *options) if above else options
    return Entry(
        table=Table(
            listed_here,
            words=bool(written.get("words")),
            numbers=bool(written.get("numbers", True)),
        ),
        operands=operands,
        default=str(written.get("default", "")),
        others=others == "flag",
        open=(others is None and (harm or bool(program)))
        or others == "unknown"
        or any(each.may_harm for each in listed_here),
        subcommands=None if subcommands is None else _by_name(subcommands),
        runs=None if runs is None else int(runs),
        unknown=str(written.get("unknown", "")),
        program=program,
        word_files=bool(written.get("word_files")),
        depends_on=tuple(written.get("depends_on", ())),
        may_harm=harm or bool(program) or bool(written.get("unknown")) or runs is not None,
    )


def _option(key: str, value: Any, below: bool) -> Option:
    names = tuple(key.split())
    if isinstance(value, str):
        return Option(names, () if value == "flag" else tuple(value.split()), below=below)
    optional = "optional" in value
    return Option(
        names,
        tuple(str(value.get("optional" if optional else "value", "")).split()),
        optional=optional,
        operands=str(value.get("operands", "")),
        default=str(value.get("default", "")),
        first=bool(value.get("first", False)),
        safe=tuple(str(value.get("safe", "")).split()),
        unknown=str(value.get("unknown", "")),
        harmless=bool(value.get("harmless", False)),
        below=bool(value.get("below", below)),
    )


def _by_name(written: Mapping[str, Any]) -> dict[str, _Raw]:
    raw = ((names, _Raw(entry or {})) for names, entry in written.items())
    return {name: each for names, each in raw for name in str(names).split()}


class Knowledge:
    """What is known of commands, by their names."""

    def __init__(self, entries: Mapping[str, _Raw]) -> None:
        self._entries: Final = entries

    @staticmethod
    @cache
    def bundled() -> Knowledge:
        """What comes with the package; read when it is first asked for."""
        return Knowledge(_by_name(data("commands.yaml")))

    def extended(self, mapping: Mapping[str, Any]) -> Knowledge:
        """The same with what users say, in the format of `commands.yaml`."""
        entries = dict(self._entries)
        for names, written in mapping.items():
            for name in str(names).split():
                known = entries.get(name)
                entries[name] = _Raw(_merged({} if known is None else known.written, written or {}))
        return Knowledge(entries)

    def knows(self, name: str) -> bool:
        """Whether a command has this name."""
        return name in self._entries

    def get(self, name: str) -> Entry | None:
        """What is known of a command; None for nothing."""
        found = self._entries.get(name)
        return None if found is None else found.read()

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)


def _merged(known: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with what is added to it."""
    if added.get("replace"):
        return dict(added)
    merged = {key: value for key, value in known.items() if key != "unknown"}
    for key, value in added.items():
        if key == "options":
            merged[key] = _with_options(merged.get(key) or {}, value or {})
        elif key == "subcommands":
            merged[key] = _with_subcommands(merged.get(key) or {}, value or {})
        else:
            merged[key] = value
    return merged


def _with_options(known: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Those added come first: names that stand in both are theirs."""
    taken = {name for names in added for name in str(names).split()}
    kept = {}
    for names, value in known.items():
        left = [name for name in str(names).split() if name not in taken]
        if left:
            kept[" ".join(left)] = value
    return {**kept, **added}


def _with_subcommands(known: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    merged = {name: entry for names, entry in known.items() for name in str(names).split()}
    for names, entry in added.items():
        for name in str(names).split():
            merged[name] = _merged(merged.get(name) or {}, entry or {})
    return merged


def data(name: str) -> Any:
    """What a file of this package says."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = files("hermes_ext.effects").joinpath(name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=loader)


# -- the format ---------------------------------------------------------------------------------


OPTIONS: Final = r"^-\S+(\s+-\S+)*\s*$"  # over several lines, maybe


def schema() -> dict[str, Any]:
    """The JSON Schema of `extensions.effects.commands`, and but for `program` of the data."""
    found: dict[str, Any] = data("commands.schema.yaml")
    # One pattern, and no backtracking: the words are taken from a list.
    several = "^({0})( ({0}))*$".format("|".join(DEEDS))
    found["$defs"] |= {
        "deed": {"enum": list(DEEDS)},
        "deeds": {"type": "string", "pattern": several},
        "options": {"type": "string", "pattern": OPTIONS},
    }
    return found


def stronger(one: str, other: str) -> str:
    """Which of two deeds touches more."""
    return one if _STRENGTH[one] >= _STRENGTH[other] else other
