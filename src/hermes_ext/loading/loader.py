"""Loading: what was found is imported, its handlers are built, and each ends as a record.

    Candidate     -> Imported            -> Registered      -> Ended
    what is found    its module             its marks          its handlers, and its record
    (finding)        (imports.importing)    (registering)      (ended)

`extension` takes one of them this way, `layers` the extensions of projects onto the others.

One extension that fails takes nothing else down and leaves nothing behind: no handler, no module.
The import goes on in a thread (see `importing`); whatever an extension prints while loading goes
to `sys.stdout` as it is then, so that a caller whose output is data redirects that.

What belongs to no project is loaded once, as a `Base`; each project adds its own extensions to it,
takes the places that it may take, and sets what it may set, for itself alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from hermes_ext._text import canonical_name, printable
from hermes_ext.chain.outcome import Cause
from hermes_ext.hooks.source import Source
from hermes_ext.loading.ended import (
    Base,
    Ended,
    Kept,
    Layer,
    Loaded,
    each_command_once,
    stopped,
    without_cycles,
)
from hermes_ext.loading.finding.candidate import Candidate
from hermes_ext.loading.finding.discovery import (
    Discovery,
    discover,
    load_stamp,
    named_in,
    problems_of,
)
from hermes_ext.loading.finding.projects import ProjectStack, projects_at
from hermes_ext.loading.finding.snapshot import write_snapshot
from hermes_ext.loading.imports.importing import IMPORT_SECONDS
from hermes_ext.loading.refusal import refusal_with
from hermes_ext.loading.registering import World
from hermes_ext.records import ExtensionRecord
from hermes_ext.settings.config import ExtensionsConfig, read_config, switched_off


def load(
    home: Path,
    cwd: Path | None = None,
    *,
    everything: bool = False,
    import_seconds: float = IMPORT_SECONDS,
) -> Loaded:
    """Load all extensions that are on. Raises nothing for what a user or an extension wrote.

    home: the Hermes home. cwd: the session's directory. everything: also look through the
    installed distributions when nothing in the configuration needs one, and into the sources of
    the handlers for what they will do wrong, so that the records are complete. import_seconds: how
    long one extension's import may take.
    """
    base = load_base(home, everything=everything, import_seconds=import_seconds)
    return load_projects(base, projects_at(base.config, home, cwd))


def load_base(
    home: Path,
    *,
    everything: bool = False,
    import_seconds: float = IMPORT_SECONDS,
    config: ExtensionsConfig | None = None,
    on_trial: bool = False,
    found: Sequence[Candidate] | None = None,
    before: Base | None = None,
    same: Callable[[Candidate], bool] = lambda candidate: False,
) -> Base:
    """Load what belongs to no project. The arguments are those of `load`, and:

    config: as read before; None reads it. on_trial: nothing of the load is written down. found:
    the only extensions that there are; None looks for them. before: an earlier load, whose modules
    are taken over: those of installed packages, and of the extensions whose files are the `same`.
    Their settings and handlers are made anew.
    """
    config = config or read_config(home)
    discovery = _discovered(config, home, everything) if found is None else Discovery((*found,))
    world = World.of(discovery.found)
    kept = Kept(() if before is None else before.ended)
    ended: Iterable[Ended | None] = [stopped(each, config) for each in discovery.found]
    if None in ended:
        # Not at the top: where nothing is on, a start does without what loads an extension.
        from hermes_ext.loading.extension import Loading, all_ended

        loadings = [
            Loading(each, config, world, look=everything, earlier=kept.of(each, same))
            for each in discovery.found
        ]
        ended = without_cycles(all_ended(loadings, import_seconds))
    ends = tuple(filter(None, ended))
    return Base(home, config, discovery, ends, everything, import_seconds, not on_trial)


def load_projects(base: Base, stack: ProjectStack, before: Iterable[Loaded] = ()) -> Loaded:
    """Load the extensions of projects onto a base, which stays as it is, the outermost first.

    Nothing of a project runs that `stack` does not call trusted.

    before: earlier loads of the projects, whose modules are taken over where a tree is the same.
    """
    kept = Kept(each for load in before for each in load.ended)
    layer = Layer(base.ended)
    for verdict in stack.shown:
        from hermes_ext.loading.layers import ProjectLoading

        layer = ProjectLoading(base, verdict, kept, layer).layer()
    ended = each_command_once(layer.ended)
    found = [each.candidate for each in ended]
    config = base.config
    told, missing = problems_of(config, base.home, base.discovery, found, layer.settings)
    records = (*(each.record for each in ended), *missing)
    problems = (*told, *(problem for each in ended for problem in each.problems))
    if base.remembered and not switched_off():
        # As it was loaded, also what a project has replaced.
        replaced = {id(each.candidate) for each in ended if not each.record.loaded}
        own = (e for e in ended if e.candidate.source is Source.PROJECT)
        lost = (e for e in layer.own if e.record.loaded and id(e.candidate) in replaced)
        known = (*base.ended, *own, *lost)
        stamped = ((e.record, load_stamp(e.candidate, config, e.record.status)) for e in known)
        write_snapshot(base.home, (*stamped, *((record, 0) for record in missing)))
    return Loaded(
        config,
        records,
        tuple(handler for each in ended for handler in each.handlers),
        tuple(command for each in ended for command in each.commands),
        tuple(dict.fromkeys(problems)),
        MappingProxyType({e.candidate.name: e.settings for e in ended if e.record.loaded}),
        *_refusal(config, records),
        MappingProxyType({e.candidate.name: e.package for e in ended if e.package}),
        stack,
        _homes(stack, ended),
        base,
        tuple(ended),
    )


def _homes(stack: ProjectStack, ended: Iterable[Ended]) -> Mapping[str, Path]:
    """Of a linked work tree's own extensions it is the main work tree, if its trust is theirs."""
    trees = {id(each.tree): each.trusted_at or each.project.root for each in stack.trusted}
    found = ((e.candidate.name, trees.get(id(e.candidate.tree))) for e in ended if e.record.loaded)
    return MappingProxyType({name: root for name, root in found if root is not None})


def _discovered(config: ExtensionsConfig, home: Path, everything: bool) -> Discovery:
    discovery = discover(config, home=home, entry_points=everything)
    if everything:
        return discovery
    known = {canonical_name(each.name) for each in discovery.found}
    if all(canonical_name(name) in known for _, name in named_in(config)):
        return discovery
    return discover(config, home=home)


def _refusal(
    config: ExtensionsConfig, records: Iterable[ExtensionRecord]
) -> tuple[str | None, Cause | None]:
    loaded = {canonical_name(each.name) for each in records if each.loaded}
    refusal = refusal_with(config, records, loaded)
    return refusal, None if refusal is None else _cause(config, loaded)


def _cause(config: ExtensionsConfig, loaded: Container[str]) -> Cause:
    if not config.readable:
        return Cause(file=printable(config.file), line=config.problems[0].line or 0)
    missing = tuple(each for each in config.required if canonical_name(each) not in loaded)
    line = config.line_of("required") or 0
    return Cause(missing, config.own_setting("required"), printable(config.file), line)
