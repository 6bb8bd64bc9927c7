"""Extensions of projects: loaded where they are trusted, and only what was trusted."""

from __future__ import annotations

import importlib.util
import inspect
import os
import py_compile
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.projects import GOOD, GUARD, Place

from hermes_ext import Runtime
from hermes_ext.hooks.source import Source
from hermes_ext.loading.ended import Loaded
from hermes_ext.loading.finding import discovery
from hermes_ext.loading.imports.importing import PREFIX
from hermes_ext.loading.inventory import inventory
from hermes_ext.loading.loader import load
from hermes_ext.records import ExtensionRecord, Status

SENTINEL = "import pathlib\npathlib.Path({!r}).touch()\n"


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing bundled, and `sys.modules` as before."""
    (tmp_path / "bundled").mkdir()
    monkeypatch.setattr(discovery, "bundled_dir", lambda: tmp_path / "bundled")
    monkeypatch.delenv("HERMES_EXT_TRUST", raising=False)
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        if name.startswith((PREFIX, "agent")):
            del sys.modules[name]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def loaded(place: Place, cwd: Path | None = None) -> Loaded:
    return load(place.home, cwd or place.root)


def rows(loaded: Any, name: str) -> dict[Source | None, ExtensionRecord]:
    return {each.source: each for each in loaded.records if each.name == name}


def verdict_of(place: Place, **args: Any) -> str | None:
    """What a fresh runtime in the project says of a call; None where it may run."""
    runtime = Runtime.from_config(home=place.home, cwd=place.root)
    with runtime.turn(session_id="s") as turn:
        outcome = turn.intercept_tool_call("jot", args)
    return outcome.message if outcome.blocked else None


def test_untrusted_code_does_not_run_and_is_named(place: Place, tmp_path: Path) -> None:
    """Nothing of it is imported or parsed: there are names, a status and a reason."""
    ran = tmp_path / "ran"
    place.add("one", SENTINEL.format(str(ran)) + GOOD)
    place.add("two", {"__init__.py": SENTINEL.format(str(ran)), "extension.yaml": "description: x"})
    result = loaded(place)
    assert not ran.exists()
    assert result.handlers == ()
    assert {each.name: each.status for each in result.records} == {
        "one": Status.UNTRUSTED,
        "two": Status.UNTRUSTED,
    }
    assert all(each.description is None for each in result.records)
    assert [each.status for each in inventory(place.home, place.root).records] == [
        Status.UNTRUSTED,
        Status.UNTRUSTED,
    ]


def test_an_untrusted_project_takes_no_place_and_sets_nothing(place: Place) -> None:
    place.add("rule", GUARD, to_home=True)
    place.add("rule", GOOD)
    place.settings("rule: {limit: 99}\n")
    result = loaded(place)
    assert rows(result, "rule")[Source.GLOBAL].status is Status.ENABLED
    assert rows(result, "rule")[Source.PROJECT].status is Status.UNTRUSTED
    assert dict(result.settings["rule"]) == {}
    assert verdict_of(place, stop=True) == "from the guard"


def test_trusted_code_runs(place: Place) -> None:
    place.add("rule")
    place.trust()
    result = loaded(place)
    assert rows(result, "rule")[Source.PROJECT].status is Status.ENABLED
    assert verdict_of(place, stop=True) == "from the project"


@pytest.mark.parametrize("below", ["", "src/deep"])
def test_it_is_found_from_anywhere_in_the_repository(place: Place, below: str) -> None:
    place.add("rule")
    place.trust()
    (place.root / below).mkdir(parents=True, exist_ok=True)
    assert rows(loaded(place, place.root / below), "rule")[Source.PROJECT].loaded


def test_it_is_not_found_outside(place: Place, tmp_path: Path) -> None:
    place.add("rule")
    place.trust()
    assert loaded(place, tmp_path).records == ()


def test_project_local_false_looks_for_nothing(place: Place) -> None:
    place.add("rule")
    place.trust()
    place.config("  project_local: false\n")
    assert loaded(place).records == ()
    assert inventory(place.home, place.root).records == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "__init__.py").write_text(GOOD + "#"),
        lambda folder: (folder / "data.txt").write_text("y"),
        lambda folder: (folder / "new.py").touch(),
        lambda folder: (folder / "helper.py").unlink(),
        lambda folder: (folder / "helper.py").rename(folder / "helped.py"),
        lambda folder: (folder.parent.parent / "extensions.yaml").write_text("rule: {}\n"),
    ],
    ids=["changed", "data", "added", "removed", "renamed", "settings"],
)
def test_any_change_ends_the_trust(place: Place, change: Any) -> None:
    files = {"__init__.py": GOOD, "helper.py": "X = 1\n", "data.txt": "x"}
    folder = place.add("rule", files)
    place.trust()
    change(folder)
    result = loaded(place)
    assert rows(result, "rule")[Source.PROJECT].status is Status.UNTRUSTED
    assert result.handlers == ()


def test_planted_bytecode_is_not_run(place: Place, tmp_path: Path) -> None:
    """Neither beside the source, nor cached and marked as not to be checked, nor by `sys.path`."""
    ran = tmp_path / "ran"
    own = "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nimport pathhelper\n"
    folder = place.add(
        "rule",
        {"__init__.py": f"{own}from . import helper\n{GOOD}", "helper.py": "", "pathhelper.py": ""},
    )
    place.trust()
    evil = tmp_path / "evil.py"
    evil.write_text(SENTINEL.format(str(ran)))
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for name in ("__init__", "helper", "pathhelper"):
        source = str(folder / f"{name}.py")
        py_compile.compile(
            str(evil), importlib.util.cache_from_source(source), invalidation_mode=unchecked
        )
        py_compile.compile(str(evil), f"{source}c", invalidation_mode=unchecked)
    result = loaded(place)
    sys.path[:] = [each for each in sys.path if each != str(folder)]
    sys.modules.pop("pathhelper", None)
    assert rows(result, "rule")[Source.PROJECT].status is Status.ENABLED
    assert not ran.exists()


def test_what_was_hashed_is_what_runs(place: Place, tmp_path: Path) -> None:
    """A thread that swaps the files all the time gets nothing of its own run."""
    ran = tmp_path / "ran"
    good = {"__init__.py": f"from . import helper\n{GOOD}", "helper.py": "from . import last\n"}
    folder = place.add("rule", {**good, "last.py": ""})
    place.trust()
    evil = SENTINEL.format(str(ran))
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for name, text in (("last.py", ""), ("helper.py", good["helper.py"])):
                for content in (evil, text):
                    (folder / "swap").write_text(content)
                    os.replace(folder / "swap", folder / name)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = {rows(loaded(place), "rule")[Source.PROJECT].status for _ in range(60)}
    finally:
        stop.set()
        thread.join()
    assert not ran.exists()
    assert seen <= {Status.ENABLED, Status.UNTRUSTED}


def test_a_lazy_import_gets_what_was_trusted(place: Place, tmp_path: Path) -> None:
    """Also of a module that is changed, or appears, after the load."""
    ran = tmp_path / "ran"
    late = GOOD.replace("    return", "    from . import late\n    late.seen()\n    return")
    again = late.replace("late.seen()", "late.seen()\n    try:\n        from . import planted\n"
                         "    except ImportError:\n        pass")  # fmt: skip
    folder = place.add("rule", {"__init__.py": again, "late.py": "def seen(): pass\n"})
    place.trust()
    runtime = Runtime.from_config(home=place.home, cwd=place.root)
    with runtime.turn(session_id="s") as turn:
        (folder / "late.py").write_text(SENTINEL.format(str(ran)) + "def seen(): pass\n")
        (folder / "planted.py").write_text(SENTINEL.format(str(ran)))
        assert turn.intercept_tool_call("jot", {"stop": True}).message == "from the project"
    assert not ran.exists()


RAISES = """\
from hermes_ext import register_hook

@register_hook("intercept_tool_call", guard=True)
def check(tool_args):
    raise RuntimeError("\\x1b[2J")  # as it was trusted: \u00fc
"""


def test_a_traceback_shows_what_was_trusted(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Not what lies in the file's place by then, and nothing that a terminal would obey."""
    file = place.add("agent", RAISES) / "__init__.py"
    place.trust()
    runtime = Runtime.from_config(home=place.home, cwd=place.root)
    file.write_text("\n\n\n\n    all is well \x1b[2J\n")
    with runtime.turn(session_id="s") as turn:
        outcome = turn.intercept_tool_call("jot", {})
    assert outcome.blocked
    told = "\n".join(record.getMessage() for record in caplog.records)
    assert "# as it was trusted: \u00fc" in told
    assert "all is well" not in told
    assert "\x1b" not in told
    module = next(
        module for name, module in sys.modules.items() if name.startswith(f"{PREFIX}.agent")
    )
    assert "as it was trusted" in inspect.getsource(module.check)


def test_data_comes_out_of_the_verified_files(place: Place) -> None:
    source = (
        "import importlib.resources, pkgutil\n"
        "from hermes_ext import HookResult, register_hook\n"
        '@register_hook("intercept_tool_call")\n'
        "def check(tool_args):\n"
        "    files = importlib.resources.files(__name__)\n"
        '    with (files / "data" / "words.txt").open() as file:\n'
        "        one = file.read()\n"
        '    two = pkgutil.get_data(__name__, "data/words.txt").decode()\n'
        '    names = sorted(each.name for each in (files / "data").iterdir())\n'
        '    return HookResult.block(f"{one} {two} {names}")\n'
    )
    folder = place.add("rule", {"__init__.py": source, "data/words.txt": "trusted"})
    place.trust()
    runtime = Runtime.from_config(home=place.home, cwd=place.root)
    with runtime.turn(session_id="s") as turn:
        (folder / "data/words.txt").write_text("changed")
        told = turn.intercept_tool_call("jot", {}).message
    assert told == "trusted trusted ['words.txt']"


def test_native_modules_are_refused(place: Place) -> None:
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    place.add("rule", {"__init__.py": f"from . import fast\n{GOOD}", f"fast{suffix}": "x"})
    place.trust()
    record = rows(loaded(place), "rule")[Source.PROJECT]
    assert record.status is Status.LOAD_ERROR
    assert "native module" in record.reason
    assert "install it as a package" in record.reason


def test_modules_of_one_name_do_not_meet(place: Place, tmp_path: Path) -> None:
    """In two projects, and in hyphened folders, each has its own `util`."""
    source = GOOD.replace('"from the project"', "WHO") + "from .util import WHO\n"
    place.add("a-one", {"__init__.py": source, "util.py": "WHO = 'first'\n"})
    place.trust()
    other = Place(tmp_path, "other", place.home)
    other.add("a-one", {"__init__.py": source, "util.py": "WHO = 'second'\n"})
    other.trust()
    runtime = Runtime.from_config(home=place.home, cwd=place.root)
    told = []
    for root in (place.root, other.root, place.root):
        with runtime.turn(session_id="s", cwd=root) as turn:
            told.append(turn.intercept_tool_call("jot", {"stop": True}).message)
    assert told == ["first", "second", "first"]


def test_a_failing_one_leaves_nothing_behind(place: Place) -> None:
    place.add("good")
    place.add("bad", {"__init__.py": "from . import b\n" + GOOD, "b.py": "1 / 0\n"})
    place.trust()
    result = loaded(place)
    record = rows(result, "bad")[Source.PROJECT]
    assert record.status is Status.LOAD_ERROR
    assert "b.py:1: ZeroDivisionError" in record.reason
    assert rows(result, "good")[Source.PROJECT].loaded
    assert not [name for name in sys.modules if name.startswith(f"{PREFIX}.bad")]


# -- who takes whose place ------------------------------------------------------------------------


def test_one_that_is_no_guard_is_replaced(place: Place) -> None:
    place.add("rule", GOOD.replace("from the project", "from the home"), to_home=True)
    place.add("rule")
    place.trust()
    for result in (loaded(place), inventory(place.home, place.root)):
        record = rows(result, "rule")[Source.GLOBAL]
        assert record.status is Status.SHADOWED
        assert "the project's own of this name is used" in record.reason
    assert verdict_of(place, stop=True) == "from the project"


def test_a_guard_stays_in_its_place(place: Place) -> None:
    place.add("rule", GUARD, to_home=True)
    place.add("Rule", GOOD)
    place.trust()
    for result in (loaded(place), inventory(place.home, place.root)):
        record = rows(result, "Rule")[Source.PROJECT]
        assert record.status is Status.SHADOWED
        assert "because it is a guard" in record.reason
        assert "extensions.overridable" in record.reason
        assert rows(result, "rule")[Source.GLOBAL].status is Status.ENABLED
    assert verdict_of(place, stop=True) == "from the guard"


def test_a_guard_is_replaced_where_the_user_says_so(place: Place) -> None:
    place.config("  overridable: [rule]\n  required: [rule]\n")
    place.add("rule", GUARD, to_home=True)
    place.add("rule")
    place.trust()
    assert verdict_of(place, stop=True) == "from the project"


def test_what_is_required_stays_in_its_place(place: Place) -> None:
    place.config("  required: [rule]\n")
    place.add("rule", GOOD.replace("from the project", "from the home"), to_home=True)
    place.add("rule")
    place.trust()
    assert "because it is required" in rows(loaded(place), "rule")[Source.PROJECT].reason
    assert verdict_of(place, stop=True) == "from the home"


def test_if_the_projects_own_fails_the_other_stays(place: Place) -> None:
    place.config("  overridable: [rule]\n")
    place.add("rule", GUARD, to_home=True)
    place.add("rule", "1 / 0\n")
    place.trust()
    result = loaded(place)
    assert rows(result, "rule")[Source.PROJECT].status is Status.LOAD_ERROR
    assert rows(result, "rule")[Source.GLOBAL].status is Status.ENABLED
    assert verdict_of(place, stop=True) == "from the guard"


def test_a_disabled_name_is_off_in_both_places(place: Place, tmp_path: Path) -> None:
    """And neither is imported."""
    ran = tmp_path / "ran"
    place.config("  disabled: [rule]\n")
    place.add("rule", SENTINEL.format(str(ran)) + GOOD, to_home=True)
    place.add("rule", SENTINEL.format(str(ran)) + GOOD)
    place.trust()
    assert {each.status for each in loaded(place).records} == {Status.DISABLED}
    assert not ran.exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
        f"# -*- coding: latin-1 -*-\nNAME = 'caf\xe9'\n{GOOD}".encode("latin-1"),
    ],
    ids=["byte order mark", "CRLF", "latin-1"],
)
def test_sources_in_other_forms_run(place: Place, raw: bytes) -> None:
    (place.add("rule") / "__init__.py").write_bytes(raw)
    place.trust()
    assert verdict_of(place, stop=True) == "from the project"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = 1\nname = 'open\n", "__init__.py:2: SyntaxError"),
        ("x = 1\n\0", "__init__.py:2: SyntaxError"),
        ("if 1:\n\tx = 1\n        y = 2\n", "__init__.py:3: TabError"),
    ],
)
def test_a_source_that_does_not_parse_is_told_with_its_line(
    place: Place, source: str, told: str
) -> None:
    place.add("rule", source)
    place.add("other")
    place.trust()
    result = loaded(place)
    record = rows(result, "rule")[Source.PROJECT]
    assert record.status is Status.LOAD_ERROR
    assert told in record.reason
    assert rows(result, "other")[Source.PROJECT].loaded


@pytest.mark.parametrize(
    "name", ["with-hyphen", "with space", "with.dot", "Großschreibung", "名前", "1st", "class"]
)
def test_names_of_all_scripts(place: Place, name: str) -> None:
    place.add(name, {"__init__.py": "from .part import HERE\n" + GOOD, "part.py": "HERE = 1\n"})
    place.trust()
    assert rows(loaded(place), name)[Source.PROJECT].loaded


def test_a_single_file_is_an_extension(place: Place) -> None:
    folder = place.add("other")
    (folder.parent / "single.py").write_text(GOOD)
    place.trust()
    assert rows(loaded(place), "single")[Source.PROJECT].loaded


def test_a_required_one_of_a_project_refuses_until_it_is_trusted(place: Place) -> None:
    place.config("  required: [rule]\n")
    place.add("rule")
    assert "required extension is not loaded" in str(loaded(place).refusal)
    place.trust()
    assert loaded(place).refusal is None


def test_a_required_guard_that_is_broken_keeps_its_place(place: Place) -> None:
    """What does not load may be a guard; a project's extension of its name does not satisfy."""
    place.config("  required: [rule]\n")
    place.add("rule", "1 / 0\n", to_home=True)
    place.add("Rule", GOOD)
    place.trust()
    result = loaded(place)
    assert rows(result, "Rule")[Source.PROJECT].status is Status.SHADOWED
    assert "required extension is not loaded" in str(result.refusal)
    assert rows(inventory(place.home, place.root), "Rule")[Source.PROJECT].status is Status.SHADOWED


def test_nobody_has_a_place_before_or_after_the_packages_own_guard(place: Place) -> None:
    """An order that cannot be takes no rule out of force."""
    place.add("ours", GUARD, to_home=True)
    wish = "guard=True, before=['hermes-ext'], after=['Hermes_Ext']"
    place.add("theirs", GUARD.replace("guard=True", wish))
    place.trust()
    assert rows(loaded(place), "theirs")[Source.PROJECT].loaded
    assert verdict_of(place, stop=True) == "from the guard"


def test_a_cycle_takes_only_the_projects_own_out(place: Place) -> None:
    """`before` and `after` of a project cannot throw a rule of the user's out."""
    place.add("ours", GUARD.replace("guard=True", "guard=True, before=('theirs',)"), to_home=True)
    place.add("theirs", GUARD.replace("guard=True", "guard=True, before=('ours',)"))
    place.trust()
    result = loaded(place)
    assert rows(result, "ours")[Source.GLOBAL].status is Status.ENABLED
    record = rows(result, "theirs")[Source.PROJECT]
    assert record.status is Status.LOAD_ERROR
    assert "ours" in record.reason


# -- settings -------------------------------------------------------------------------------------

TELLS = """\
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call", guard={guard})
def check(config):
    return HookResult.block(f"{{config.get('plan')}} {{config.get('limit')}}")
"""


def test_a_projects_settings_reach_what_they_may(place: Place, tmp_path: Path) -> None:
    """Its own extension wholly, another's guard as far as `project_may_set` lets it, and only
    here: in another project the user's own settings count.
    """
    place.config("  project_may_set: [guarded.plan]\n  guarded: {plan: mine, limit: 1}\n")
    place.add("guarded", TELLS.format(guard=True), to_home=True)
    place.settings("guarded: {plan: theirs, limit: 99}\n")
    place.trust()
    assert verdict_of(place) == "theirs 1"
    told = [str(problem) for problem in loaded(place).problems]
    assert any("extensions.yaml:1: guarded.limit" in text for text in told)
    assert any("project_may_set" in text for text in told)
    runtime = Runtime.from_config(home=place.home, cwd=place.root)
    with runtime.turn(session_id="s", cwd=tmp_path) as turn:
        assert turn.intercept_tool_call("jot", {}).message == "mine 1"


def test_settings_that_are_wrong_take_no_rule_out(place: Place) -> None:
    schema = '{"config": {"type": "object", "properties": {"limit": {"type": "integer"}}}}'
    files = {"__init__.py": TELLS.format(guard=False), "extension.yaml": schema}
    place.add("theirs", files, to_home=True)
    place.settings("theirs: {limit: many, plan: x}\n")
    place.trust()
    result = loaded(place)
    assert rows(result, "theirs")[Source.GLOBAL].status is Status.ENABLED
    assert any("limit" in str(problem) for problem in result.problems)
    assert verdict_of(place) == "None None"


# -- over time ------------------------------------------------------------------------------------


def answer(runtime: Runtime, root: Path) -> str | None:
    with runtime.turn(session_id="s", cwd=root) as turn:
        outcome = turn.intercept_tool_call("jot", {"stop": True})
    return outcome.message if outcome.blocked else None


def test_a_turn_begins_with_what_is_trusted_then(place: Place) -> None:
    """In one process: untrusted, trusted, changed (the trusted stays, the change does not run),
    trusted anew, untrusted.
    """
    runtime = Runtime.from_config(home=place.home, cwd=place.home)
    folder = place.add("rule")
    assert answer(runtime, place.root) is None
    place.trust()
    assert answer(runtime, place.root) == "from the project"
    (folder / "__init__.py").write_text(GOOD.replace("from the project", "changed"))
    assert answer(runtime, place.root) == "from the project"
    place.trust()
    assert answer(runtime, place.root) == "changed"
    shutil.rmtree(place.hermes)
    assert answer(runtime, place.root) == "changed"
    place.untrust()
    assert answer(runtime, place.root) is None


def test_a_fault_of_ours_refuses(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the project cannot be judged, nobody knows which rules hold: no tool runs."""
    place.add("rule")
    runtime = Runtime.from_config(home=place.home, cwd=place.home)
    monkeypatch.setattr("hermes_ext.loading.directories.judge", lambda *_: 1 / 0)
    assert "could not be chosen (ZeroDivisionError" in str(answer(runtime, place.root))


def test_a_fault_of_ours_leaves_the_users_guards(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of other hooks too, which refuse no tool call."""
    source = GUARD.replace("intercept_tool_call", "transform_user_input")
    place.add("ours", source.replace('tool_args.get("stop")', '"stop" in user_message')
              .replace("tool_args, config", "user_message"), to_home=True)  # fmt: skip
    place.add("rule")
    runtime = Runtime.from_config(home=place.home, cwd=place.home)
    monkeypatch.setattr("hermes_ext.loading.directories.judge", lambda *_: 1 / 0)
    with runtime.turn(session_id="s", cwd=place.root) as turn:
        assert turn.transform_user_input("stop").message == "from the guard"


def test_what_lies_further_down_takes_nothing_out_of_force(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """An untrusted project within a trusted one is told, and the outer one's rules stay: in a
    process that runs, in a new one, and in the inventory. Bytecode alone is no project.
    """
    place.add("rule", GUARD)
    place.trust()
    below = place.root / "sub"
    cached = below / ".hermes" / "extensions" / "__pycache__"
    cached.mkdir(parents=True)
    (cached / "x.pyc").touch()
    runtime = Runtime.from_config(home=place.home, cwd=below)
    assert answer(runtime, below) == "from the guard"
    assert runtime.notices == ()
    (below / ".hermes" / "extensions" / "planted.py").write_text(GOOD)
    assert answer(runtime, below) == "from the guard"
    told = [record.message for record in caplog.records if "planted" in record.message]
    assert len(told) == 1
    assert f"The extensions of {place.root} stay in force there" in told[0]
    assert answer(Runtime.from_config(home=place.home, cwd=below), below) == "from the guard"
    assert loaded(place, below).projects.left_out[0].project.root == below
    assert rows(inventory(place.home, below), "rule")[Source.PROJECT].status is Status.ENABLED


def test_another_folder_of_the_same_name_is_another_project(place: Place) -> None:
    place.add("rule")
    place.trust()
    runtime = Runtime.from_config(home=place.home, cwd=place.root)
    assert answer(runtime, place.root) == "from the project"
    place.root.rename(place.root.with_name("old"))
    (place.root / ".git").mkdir(parents=True)
    assert answer(runtime, place.root) is None


def test_a_projects_extension_keeps_its_own_session_state(place: Place) -> None:
    """Not that of an extension of the same name in the home."""
    count = (
        "from hermes_ext import HookResult, register_hook\n"
        '@register_hook("intercept_tool_call")\n'
        "def check(session_state):\n"
        "    return HookResult.block(str(session_state.count('n')))\n"
    )
    place.add("budget", count, to_home=True)
    place.add("budget", count)
    place.trust()
    runtime = Runtime.from_config(home=place.home, cwd=place.home)
    told = [answer(runtime, root) for root in (place.home, place.home, place.root, place.home)]
    assert told == ["1", "2", "1", "3"]


def test_where_no_home_is_known_nothing_is_taken_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder named `~` in a repository is no home."""
    import pwd

    folder = tmp_path / "~" / ".hermes" / "extensions" / "evil"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(SENTINEL.format(str(tmp_path / "ran")))
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "HERMES_HOME"):
        monkeypatch.delenv(name, raising=False)

    def nobody(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    runtime = Runtime.from_config()
    assert not (tmp_path / "ran").exists()
    assert "cannot be read" in str(runtime.refusal)


def test_of_an_empty_folder_nothing_is_said(place: Place) -> None:
    (place.hermes / "extensions").mkdir(parents=True)
    assert Runtime.from_config(home=place.home, cwd=place.root).notices == ()


def test_what_is_in_force_is_fixed_for_a_turn(place: Place) -> None:
    place.add("rule")
    place.trust()
    runtime = Runtime.from_config(home=place.home, cwd=place.root)
    with runtime.turn(session_id="s") as turn:
        place.untrust()
        assert turn.intercept_tool_call("jot", {"stop": True}).message == "from the project"


def test_what_is_not_in_force_is_said_once(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.add("rule")
    runtime = Runtime.from_config(home=place.home, cwd=place.root)
    for _ in range(3):
        answer(runtime, place.root)
    told = [record.message for record in caplog.records if ".hermes" in record.message]
    assert len(told) == 1
    assert "rule" in told[0]
    assert f"trust {place.root}" in told[0]


def test_projects_are_judged_by_their_own_only(place: Place, tmp_path: Path) -> None:
    """Turns at the same time, in threads, each with its own project's verdict."""
    other = Place(tmp_path, "other", place.home)
    place.add("rule", GOOD.replace("from the project", "first"))
    other.add("rule", GOOD.replace("from the project", "second"))
    place.trust(), other.trust()
    runtime = Runtime.from_config(home=place.home, cwd=tmp_path)
    wrong: list[str | None] = []

    def work(root: Path, expected: str | None) -> None:
        wrong.extend(told for _ in range(50) if (told := answer(runtime, root)) != expected)

    expected = {place.root: "first", other.root: "second", tmp_path: None}
    threads = [
        threading.Thread(target=work, args=item) for item in expected.items() for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


ASKS = """
from hermes_ext import HookResult, register_hook

@register_hook("intercept_tool_call", guard=True)
def check(tool_args):
    return HookResult.ask("Deploy?", key="deploy")
"""


def test_a_yes_in_one_project_is_none_in_another(tmp_path: Path) -> None:
    """What a person allowed an extension of one project covers no other's of the same name."""
    keys: list[str] = []
    home = tmp_path / "home"
    for name in ("one", "two", "a:check:b"):
        place = Place(tmp_path / "work", name, home=home)
        place.add("rules", ASKS)
        place.trust()
        runtime = Runtime.from_config(home=home, cwd=place.root)
        runtime.approver = lambda request: not keys.append(request.rule_key)
        with runtime.turn(session_id="s") as turn:
            assert not turn.intercept_tool_call("jot", {}).blocked
        runtime.close()

    assert len(set(keys)) == 3
    assert all(key.startswith("rules of ") for key in keys)
    assert all(key.count(":") == 2 for key in keys)
