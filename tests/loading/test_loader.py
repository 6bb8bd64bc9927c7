"""`_loader`: from folders to handlers and records, whatever an extension does while it loads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.unloading import unload

from hermes_ext.hooks.source import Source
from hermes_ext.loading.ended import Loaded
from hermes_ext.loading.finding import discovery as _discovery
from hermes_ext.loading.finding.snapshot import read_snapshot
from hermes_ext.loading.imports.importing import PREFIX
from hermes_ext.loading.inventory import inventory
from hermes_ext.loading.loader import load
from hermes_ext.records import ExtensionRecord, Status

GOOD = """\
from hermes_ext import register_hook

@register_hook("intercept_tool_call")
def check(tool_args, config):
    return None
"""

FEATURE_REQUEST = """\
from agent.extension_hooks import HookResult, get_turn_state, register_hook

def is_implementation_request(text): return text.startswith("fix")
def has_valid_plan(): return False

@register_hook("transform_user_input", priority=10)
def my_input_hook(user_message, **kwargs):
    if is_implementation_request(user_message) and not has_valid_plan():
        return HookResult("rewrite", f"/start-feature {user_message}")
    return HookResult("pass")
"""

CONFIG_CLASS = """\
import attrs
from hermes_ext import register_hook

@attrs.frozen
class Config:
    limit: int = 3

@register_hook("before_llm_call")
def check(config):
    return config.limit
"""


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch) -> Iterator[None]:
    """Nothing bundled, and `sys.modules` as before, since loading is about both."""
    (tmp_path / "bundled").mkdir()
    monkeypatch.setattr(_discovery, "bundled_dir", lambda: tmp_path / "bundled")
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        if name.startswith((PREFIX, "agent")):
            del sys.modules[name]


class Home:
    """A Hermes home with extensions in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = path / "extensions"
        self.root.mkdir(parents=True)

    def add(self, name: str, source: str | bytes | Mapping[str, str] = GOOD) -> Path:
        """A folder with `__init__.py`, or with the files given."""
        files = source if isinstance(source, Mapping) else {"__init__.py": source}
        for relative, text in files.items():
            path = self.root / name / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.root / name

    def configure(self, text: str) -> None:
        lines = "".join(f"  {line}\n" for line in text.split("\n"))
        (self.path / "config.yaml").write_text(f"extensions:\n{lines}")

    def load(self, **options: Any) -> Loaded:
        return load(self.path, **options)

    def record(self, name: str, **options: Any) -> ExtensionRecord:
        """The record of one extension after a load in which `neighbour` was fine."""
        loaded = self.load(**options)
        assert by_name(loaded)["neighbour"].status is Status.ENABLED
        assert {each.extension for each in loaded.handlers} == {
            each.name for each in loaded.records if each.loaded and each.hooks
        }
        return by_name(loaded)[name]


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def beside(home) -> Home:
    """A home with one extension that works, which nothing else may disturb."""
    home.add("neighbour")
    return home


@pytest.fixture
def entry_point(tmp_path, monkeypatch) -> Iterator[Callable[..., Path]]:
    """Installs a distribution with an entry point: a real `.dist-info` and a real package."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    modules: list[str] = []

    def install(name: str, module: str, source: str) -> Path:
        modules.append(module)
        info = site / f"{name.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[hermes_ext.extensions]\n{name} = {module}\n")
        (site / module).mkdir()
        (site / module / "__init__.py").write_text(source)
        return site / module

    yield install
    for name in list(sys.modules):
        if name.partition(".")[0] in modules:
            del sys.modules[name]


def by_name(loaded: Loaded) -> dict[str, ExtensionRecord]:
    return {each.name: each for each in loaded.records if each.status is not Status.SHADOWED}


def modules() -> set[str]:
    return set(sys.modules) - {PREFIX}


# --- what works ----------------------------------------------------------------------------------


def test_an_extension_becomes_handlers_and_a_record(home):
    """A folder that registers a hook gives its handler, and a record that says so."""
    folder = home.add("my-guard", {"__init__.py": GOOD, "extension.yaml": "version: 1.4\n"})
    loaded = home.load()
    (handler,) = loaded.handlers
    assert (handler.extension, handler.source, handler.name) == ("my-guard", Source.GLOBAL, "check")
    (record,) = loaded.records
    assert (record.status, record.reason, record.loaded) == (Status.ENABLED, "", True)
    assert (record.configured_on, record.version) == (True, "1.4")
    assert record.import_seconds is not None
    (hook,) = record.hooks
    assert (hook.hook, hook.on_error, hook.priority) == ("intercept_tool_call", "block", 100)
    assert (hook.file, hook.line) == (str(folder / "__init__.py"), 3)
    assert (loaded.problems, loaded.refusal) == ((), None)


def test_the_feature_requests_own_lines_run_in_an_extension(home):
    """They stand in `__init__.py` as they are in the request, and do what it says."""
    home.add("workflow", FEATURE_REQUEST)
    (handler,) = home.load().handlers
    assert handler.priority == 10
    assert handler.function("fix the bug").value == "/start-feature fix the bug"


def test_single_files_load(home):
    """`NAME.py` is an extension of its own; it does not see its neighbours."""
    (home.root / "one.py").write_text(GOOD)
    (home.root / "two.py").write_text("from . import one\n")
    loaded = home.load()
    assert by_name(loaded)["one"].hooks[0].hook == "intercept_tool_call"
    assert by_name(loaded)["two"].status is Status.LOAD_ERROR


def test_hooks_in_any_module_of_the_extension_count(home):
    """The decorator adds to the extension that is being loaded, wherever it stands."""
    home.add(
        "x",
        {
            "__init__.py": "from . import deep\nfrom .deep import more",
            "deep/__init__.py": "",
            "deep/more.py": GOOD,
        },
    )
    assert [each.extension for each in home.load().handlers] == ["x"]


@pytest.mark.parametrize(
    "name", ["a-one", "with space", "2fa", "class", "a.b", "計画", "ping_island"]
)
def test_relative_imports_work_whatever_the_folder_is_called(home, name):
    """A name that is no identifier is a package like any other."""
    home.add(name, {"__init__.py": f"from .util import WHO\n{GOOD}", "util.py": "WHO = 1\n"})
    assert by_name(home.load())[name].status is Status.ENABLED


def test_submodules_of_one_name_never_meet(home):
    """Each extension gets its own `util`, at import and in an import inside a handler later on."""
    source = (
        "from hermes_ext import register_hook\nfrom .util import WHO\n"
        "@register_hook('before_llm_call')\n"
        "def who():\n    from . import late\n    from . import util\n"
        "    return WHO, util.WHO, late.WHO\n"
    )
    for name in ("a-one", "b-two"):
        mine = f"WHO = {name!r}\n"
        home.add(name, {"__init__.py": source, "util.py": mine, "late.py": mine})
    loaded = home.load()
    said = {each.extension: each.function() for each in loaded.handlers}
    assert said == {"a-one": ("a-one",) * 3, "b-two": ("b-two",) * 3}
    assert not {"util", "late"} & modules()


def test_an_absolute_import_never_finds_a_neighbour(beside):
    """`import util` is no file of this or any other extension, and the error says what to write."""
    beside.add("a-one", {"__init__.py": GOOD, "sibling_util.py": ""})
    beside.add("b-two", {"__init__.py": "import sibling_util\n", "sibling_util.py": ""})
    record = beside.record("b-two")
    assert record.status is Status.LOAD_ERROR
    assert "No module named 'sibling_util'. Write `from . import sibling_util`" in record.reason


def test_unloading_one_load_leaves_another(home):
    """Two loads have modules of their own; `unload` takes away those of one."""
    home.add("x", {"__init__.py": f"from . import util\n{GOOD}", "util.py": ""})
    before = modules()
    first, second = home.load(), home.load()
    assert len(modules() - before) == 4
    unload(first)
    assert {each.rpartition(".")[0] for each in modules() - before} >= {second.packages["x"]}
    unload(second)
    assert modules() == before


@pytest.mark.parametrize(
    "source",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
        b"# -*- coding: latin-1 -*-\nTEXT = '\xe9'\n" + GOOD.encode(),
    ],
    ids=["bom", "crlf", "latin-1"],
)
def test_source_encodings(home, source):
    """A byte order mark, CRLF and a coding line load as in any Python file."""
    home.add("x", source)
    assert by_name(home.load())["x"].status is Status.ENABLED


def test_a_home_whose_path_is_no_utf8(tmp_path):
    """Undecodable bytes, blanks and emoji above an extension do not stop it, and print."""
    home = Home(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xff \xf0\x9f\x98\x80")))
    home.add("x")
    home.add("broken", "1 / 0\n")
    loaded = home.load()
    assert by_name(loaded)["x"].status is Status.ENABLED
    for record in loaded.records:
        assert str(record.to_json()).encode()
    assert r"caf\xff" in by_name(loaded)["broken"].reason
    assert {each.status for each in inventory(home.path).records} >= {Status.ENABLED}


# --- what the configuration says -----------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["disabled: [X-1]", "enabled: false", "on: [x_1]\ndisabled: [x_1]"]
)
def test_what_is_off_is_not_imported(home, text):
    """A disabled extension gives no handler, and not a line of it runs."""
    folder = home.add("x_1", "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n")
    home.configure(text)
    (record,) = home.load().records
    assert record.status is Status.DISABLED
    assert not (folder / "ran").exists()


def test_the_environment_turns_everything_off(home, monkeypatch):
    """With the switch set nothing loads and nothing is refused, `required` or not."""
    home.add("x")
    home.configure("required: [x]")
    gone = home.add("y") / "__init__.py"
    home.load()
    gone.unlink()
    before = read_snapshot(home.path)
    monkeypatch.setenv("HERMES_EXT_OFF", "1")
    loaded = home.load()
    assert (loaded.handlers, loaded.refusal) == ((), None)
    assert loaded.records[0].status is Status.DISABLED
    assert len(read_snapshot(home.path)) == 2
    assert read_snapshot(home.path) == before


def test_one_hook_of_an_extension_can_be_off(home):
    """`disabled: ["name:hook"]` leaves its other hooks."""
    home.add("x", GOOD + "@register_hook('before_llm_call')\ndef other(): return None\n")
    home.configure("disabled: ['x:before_llm_call', 'x:transform_tool_result']")
    loaded = home.load()
    assert [each.hook for each in loaded.handlers] == ["intercept_tool_call"]
    (warning,) = loaded.records[0].warnings
    assert "transform_tool_result, which it does not register" in warning


def test_observe_and_priorities_reach_the_handlers(home):
    """The user's configuration has the last word about both."""
    home.add(
        "x", GOOD + "@register_hook('before_llm_call', priority=7)\ndef other(): return None\n"
    )
    home.configure("observe: [X]\npriorities: {x: 5, 'x:intercept_tool_call': 1}")
    handlers = {each.hook: each for each in home.load().handlers}
    assert all(each.observe for each in handlers.values())
    assert handlers["intercept_tool_call"].priority == 1
    assert handlers["before_llm_call"].priority == 5


def test_bundled_and_installed_ones_load_when_named(home, tmp_path, entry_point):
    """They are off until `extensions.on` names them, and come before global ones."""
    (tmp_path / "bundled/zz").mkdir()
    (tmp_path / "bundled/zz/__init__.py").write_text(GOOD)
    entry_point("yy", "yy_package", f"from yy_package import util\n{GOOD}")
    (tmp_path / "site/yy_package/util.py").touch()
    home.add("xx")
    assert [each.extension for each in home.load().handlers] == ["xx"]
    home.configure("on: [zz, yy]")
    loaded = home.load()
    assert [each.extension for each in loaded.handlers] == ["zz", "yy", "xx"]
    assert by_name(loaded)["yy"].source is Source.ENTRY_POINT


@pytest.mark.parametrize(
    "line",
    [
        "overridable: [yy]",
        "project_may_set: [yy.plan]",
        "priorities: {yy: 1}",
        "disabled: ['yy:before_llm_call']",
    ],
)
def test_an_installed_extension_is_known_wherever_it_is_named(home, entry_point, line):
    """One that is off is no unknown name."""
    entry_point("yy", "yy_package", GOOD)
    home.configure(line)
    assert home.load().problems == ()


def test_an_installed_extension_that_was_imported_before(home, entry_point):
    """A second load, or a host that imported it, does not lose its hooks."""
    source = "from hermes_ext import register_hook\nfrom . import rules\n"
    folder = entry_point("yy", "yy_package", source)
    (folder / "rules.py").write_text(GOOD)
    home.configure("on: [yy]")
    for _ in range(3):
        assert [each.name for each in home.load().handlers] == ["check"]


def test_the_same_code_through_two_channels_runs_once(home, entry_point):
    """An entry point that is linked into the global directory too gives its handlers once."""
    folder = entry_point("guard", "guard_package", GOOD)
    (home.root / "guard").symlink_to(folder)
    home.configure("on: [guard]")
    loaded = home.load(everything=True)
    assert [each.source for each in loaded.handlers] == [Source.GLOBAL]
    assert by_name(loaded)["guard"].also_at == (folder,)


def test_an_extension_that_uses_another_does_not_take_its_hooks(home, entry_point):
    """What a library registers for itself while it is imported belongs to that library."""
    entry_point("lib", "lib_package", GOOD)
    home.add("a", f"import lib_package\n{GOOD}")
    home.configure("on: [lib]")
    handlers = home.load().handlers
    assert sorted(each.extension for each in handlers) == ["a", "lib"]


def test_names_that_are_nowhere_are_told(home):
    """A name in the configuration that no source has is a problem and a `missing` record."""
    home.add("workflow-guard")
    home.configure("on: [wrokflow-guard]")
    loaded = home.load()
    assert 'Did you mean "workflow-guard"?' in str(loaded.problems[0])
    assert by_name(loaded)["wrokflow-guard"].status is Status.MISSING


def test_an_unreadable_configuration_leaves_the_global_ones_on(home):
    """The problem is told, and the rules in the global directory hold."""
    home.add("x")
    (home.path / "config.yaml").write_bytes(b"extensions:\n\ton: [a]\n")
    loaded = home.load()
    assert len(loaded.handlers) == 1
    assert "not valid YAML" in str(loaded.problems[0])


# --- settings ------------------------------------------------------------------------------------


def test_handlers_get_their_settings_read_only(home):
    """`config` is the validated mapping with the schema's defaults."""
    schema = "config: {properties: {limit: {type: integer, default: 3}}}\n"
    home.add("x", {"__init__.py": GOOD, "extension.yaml": schema})
    home.configure("x: {words: [a]}")
    loaded = home.load()
    assert loaded.handlers[0].config == {"limit": 3, "words": ("a",)}
    assert isinstance(loaded.handlers[0].config, MappingProxyType)
    assert loaded.settings["x"] is loaded.handlers[0].config


def test_handlers_get_an_instance_of_the_attrs_class(home):
    """A module's attrs class `Config` is made of the settings."""
    home.add("x", CONFIG_CLASS)
    home.configure("x: {limit: 8}")
    (handler,) = home.load().handlers
    assert handler.function(handler.config) == 8


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "__init__.py": GOOD,
                "extension.yaml": "config: {properties: {limit: {type: integer}}}",
            },
            "extensions.x.limit: found the string 'no', expected a whole number",
        ),
        (
            {"__init__.py": CONFIG_CLASS},
            "extensions.x.limit: found the string 'no', expected a whole number",
        ),
    ],
    ids=["schema", "class"],
)
def test_wrong_settings_stop_their_extension(beside, files, expected):
    """The record is `config-error` with file, line, key and what was expected."""
    beside.add("x", files)
    beside.configure("enabled: true\nx: {limit: 'no'}")
    record = beside.record("x")
    assert record.status is Status.CONFIG_ERROR
    assert record.reason.startswith(f"{beside.path / 'config.yaml'}:3: {expected}")
    assert not record.loaded
    assert expected in "".join(map(str, beside.load().problems))


def test_a_wrong_schema_is_a_load_error(beside):
    """A manifest's schema that is none is the extension's fault, not the user's."""
    beside.add("x", {"__init__.py": GOOD, "extension.yaml": "config: {type: objct}\n"})
    record = beside.record("x")
    assert record.status is Status.LOAD_ERROR
    assert "extension.yaml:1: config.type: is not a valid JSON Schema" in record.reason


# --- what goes wrong -----------------------------------------------------------------------------

IMPORT = "from hermes_ext import register_hook\n"

BROKEN = {
    "syntax": ("x = (\n", "__init__.py:1: SyntaxError: '(' was never closed"),
    "string": ("\nx = 'abc\n", "__init__.py:2: SyntaxError: unterminated string"),
    "tabs": ("if 1:\n\tx = 1\n        y = 2\n", "__init__.py:3: TabError: "),
    "null": (b"x = 1\ny = '\0'\n", "__init__.py:2: SyntaxError: source code holds null bytes"),
    "utf-16": ("x = 1\n".encode("utf-16"), "SyntaxError: source code holds null bytes; save it as"),
    "latin-1": (b"x = '\xe9'\n", "__init__.py:1: SyntaxError: "),
    "import": ("import no_such_lib\n", "ModuleNotFoundError: No module named 'no_such_lib'"),
    "native": ("raise ImportError('libfoo.so.1: cannot open')\n", "ImportError: libfoo.so.1"),
    "division": ("\n1 / 0\n", "__init__.py:2: ZeroDivisionError: division by zero"),
    "assert": ("assert 1 == 2, 'no'\n", "__init__.py:1: AssertionError: no"),
    "exit": ("import sys\nsys.exit(9)\n", ":2: SystemExit: it called sys.exit(9) while loading"),
    "generator": ("raise GeneratorExit\n", ":1: GeneratorExit"),
    "message": (
        "class E(Exception):\n    def __str__(self): 1 / 0\nraise E\n",
        "E: (its __str__ raised ZeroDivisionError)",
    ),
    "deep": ("def f(): f()\nf()\n", "RecursionError"),
    "hook": (
        f"{IMPORT}@register_hook('intercept_toolcall')\ndef f(): 0\n",
        "__init__.py:2: there is no hook 'intercept_toolcall'. Did you mean 'intercept_tool_call'",
    ),
    "option": (
        f"{IMPORT}@register_hook('before_llm_call', prio=1)\ndef f(): 0\n",
        "unknown option 'prio'. Did you mean 'priority'",
    ),
    "argument": (
        f"{IMPORT}@register_hook('before_llm_call')\ndef f(msgs): 0\n",
        "f wants 'msgs', which before_llm_call does not have",
    ),
    "name": ("from hermes_ext import registerhook\n", "cannot import name 'registerhook'"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_extension_costs_one_line(beside, kind):
    """It ends as a load error with file, line and reason; its neighbour works as before."""
    source, expected = BROKEN[kind]
    beside.add("broken", source)
    before = modules()
    record = beside.record("broken")
    assert record.status is Status.LOAD_ERROR
    assert expected in record.reason
    assert "\n" not in record.reason
    assert (record.loaded, record.hooks, record.configured_on) == (False, (), True)
    assert not any("broken" in name for name in modules() - before)
    shown = {each.name: each for each in inventory(beside.path).records}
    assert shown["broken"].reason == record.reason


def test_keyboard_interrupt_is_the_persons_own(home):
    """Control-C while an extension loads ends the program as it would anywhere."""
    home.add("x", "raise KeyboardInterrupt\n")
    before = modules()
    with pytest.raises(KeyboardInterrupt):
        home.load()
    assert not any(name.startswith(f"{PREFIX}.") for name in modules() - before)


def test_skipping_is_no_error(beside):
    """`SkipExtension` ends the load with the author's reason, also from a submodule."""
    beside.add(
        "x",
        {
            "__init__.py": f"{GOOD}\nfrom . import need\n",
            "need.py": (
                "from hermes_ext import SkipExtension\nraise SkipExtension('rtk is not on PATH')\n"
            ),
        },
    )
    record = beside.record("x")
    assert (record.status, record.reason) == (Status.SKIPPED, "rtk is not on PATH")
    assert record.hooks == ()


@pytest.mark.parametrize(
    "end",
    [
        "raise RuntimeError('set-up failed')\n",
        "@register_hook('before_llm_call')\ndef bad(nonsense): return None\n",
        "class A:\n    @register_hook('before_llm_call')\n    def method(self): return None\n",
    ],
    ids=["raises after the first hook", "third hook is wrong", "method without an instance"],
)
def test_all_handlers_or_none(beside, end):
    """If anything of an extension fails, none of its handlers is live."""
    beside.add("x", GOOD + GOOD.replace("check", "second") + end)
    record = beside.record("x")
    assert record.status is Status.LOAD_ERROR
    assert not any("x_" in name for name in modules() if name.startswith(PREFIX))


def test_nothing_of_a_failed_import_stays_and_a_repair_works_at_once(home):
    """No module of it is left, and the repaired file loads in the same process and second."""
    folder = home.add(
        "x", {"__init__.py": f"from . import a, b\n{GOOD}", "a.py": "", "b.py": "1/0"}
    )
    before = modules()
    assert by_name(home.load())["x"].reason.startswith(f"{folder / 'b.py'}:1: ZeroDivisionError")
    assert modules() == before
    (folder / "b.py").write_text("1+1")
    assert by_name(home.load())["x"].status is Status.ENABLED
    (folder / "c.py").write_text("")
    (folder / "__init__.py").write_text(f"from . import a, b, c\n{GOOD}")
    assert by_name(home.load())["x"].status is Status.ENABLED


def test_a_failed_entry_point_leaves_no_module_and_takes_none(home, entry_point):
    """Modules that its import brought are gone; those that were there before stay."""
    folder = entry_point("yy", "yy_package", "from . import first\n1 / 0\n")
    (folder / "first.py").touch()
    home.configure("on: [yy]")
    before = modules()
    record = by_name(home.load())["yy"]
    assert record.status is Status.LOAD_ERROR
    assert record.reason.startswith(f"{folder / '__init__.py'}:2: ZeroDivisionError")
    assert modules() == before
    (folder / "__init__.py").write_text(
        f"from . import first\n{GOOD}\nOLD = 'longer than before'\n"
    )
    assert by_name(home.load())["yy"].status is Status.ENABLED


def test_bytecode_is_neither_read_nor_written(home):
    """What runs is the source: stale or planted bytecode changes nothing."""
    folder = home.add(
        "x", {"__init__.py": f"from .util import WHO\n{GOOD}", "util.py": "WHO = 1\n"}
    )
    cache = folder / "__pycache__"
    cache.mkdir()
    tag = sys.implementation.cache_tag
    planted = [cache / f"__init__.{tag}.pyc", cache / f"util.{tag}.pyc", folder / "other.pyc"]
    for file in planted:
        file.write_bytes(b"planted")
    assert by_name(home.load())["x"].status is Status.ENABLED
    assert all(file.read_bytes() == b"planted" for file in planted)
    assert len(list(folder.rglob("*.pyc"))) == 3


def test_an_endless_import_costs_its_deadline(beside):
    """An import that never ends is a load error; what it would register later never counts."""
    beside.add("x", f"import threading\nthreading.Event().wait()\n{GOOD}")
    record = beside.record("x", import_seconds=1.5)
    assert record.status is Status.LOAD_ERROR
    assert "the import did not finish within 1.5 s" in record.reason
    assert str(beside.root / "x/__init__.py") in record.reason


def test_manifests_are_kept_only_where_something_is_on(home, tmp_path):
    """A home in which nothing is on stays as it is; else the bundled ones are not read anew."""
    bundled = tmp_path / "bundled" / "loop-breaker"
    bundled.mkdir()
    (bundled / "__init__.py").write_text(GOOD)
    (bundled / "extension.yaml").write_text("name: loop-breaker\n")
    kept = home.path / "cache" / "hermes-ext" / "manifests.json"
    home.load()
    assert not kept.exists()
    home.configure("on: [loop-breaker]")
    home.load()
    before = kept.read_bytes()
    assert b"loop-breaker" in before
    home.load(everything=True)
    assert kept.read_bytes() == before


def test_settings_that_are_never_made_cost_the_deadline_too(beside):
    """The author's own checks of settings are code as well."""
    limit = "    limit: int = 3\n"
    hangs = (
        "    def __attrs_post_init__(self):\n"
        "        import threading\n"
        "        threading.Event().wait()\n"
    )
    beside.add("x", CONFIG_CLASS.replace(limit, limit + hangs))
    record = beside.record("x", import_seconds=1.5)
    assert record.status is Status.LOAD_ERROR
    assert "checking its settings did not finish within 1.5 s" in record.reason
    assert record.hooks == ()


def test_a_program_with_an_endless_import_still_ends(home):
    """A loop that never ends holds up neither the load nor the end of the process."""
    home.add("loop", "while True: pass\n")
    home.add("good")
    program = (
        "import sys; from pathlib import Path; from hermes_ext.loading.loader import load\n"
        "loaded = load(Path(sys.argv[1]), import_seconds=1.5)\n"
        "print(*(f'{each.name}={each.status}' for each in loaded.records))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(home.path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert {"good=enabled", "loop=load-error"} <= set(done.stdout.split())


def test_loading_inside_an_import_does_not_wait_for_it(home, tmp_path, monkeypatch):
    """A host module that loads extensions while it is imported can be imported by them."""
    (tmp_path / "half_host.py").write_text(
        "from pathlib import Path\nfrom hermes_ext.loading.loader import load\nREADY = True\n"
        f"LOADED = load(Path({str(home.path)!r}))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    home.add("x", f"import half_host\nassert half_host.READY\n{GOOD}")
    try:
        import half_host  # type: ignore[import-not-found]

        assert half_host.LOADED.records[0].reason == ""
    finally:
        sys.modules.pop("half_host", None)


def test_extensions_load_in_parallel(home):
    """Loads in several threads at once give each its own handlers."""
    for name in ("a", "b", "c"):
        home.add(name, {"__init__.py": f"from . import util\n{GOOD}", "util.py": ""})
    loads: list[Loaded] = []
    threads = [threading.Thread(target=lambda: loads.append(home.load())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for loaded in loads:
        assert [each.extension for each in loaded.handlers] == ["a", "b", "c"]
    assert len({package for each in loads for package in each.packages.values()}) == 24


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        (
            "def intercept_tool_call(tool_args): return None\n",
            "@register_hook('intercept_tool_call')",
        ),
        (
            "def intercept_toolcall(tool_args): return None\n",
            "@register_hook('intercept_tool_call')",
        ),
        (
            "import pluggy\nhookimpl = pluggy.HookimplMarker('other')\n@hookimpl\n"
            "def before_llm_call(messages): return None\n",
            "marked for the pluggy project 'other'",
        ),
        ("x = 1\n", "Put @register_hook(...) above its functions"),
        ("from . import rules\n", "Did you mean @register_hook('before_llm_call')?"),
    ],
)
def test_registering_nothing_is_a_warning(beside, source, hint):
    """It loads, its record warns with a did-you-mean, and a required one counts as not loaded."""
    rules = "def before_llm_call(messages): return None\n"
    beside.add("x", {"__init__.py": source, "rules.py": rules})
    record = beside.record("x")
    assert (record.status, record.loaded, record.hooks) == (Status.ENABLED, True, ())
    (warning,) = record.warnings
    assert warning.startswith("registers no handler")
    assert hint in warning
    beside.configure("required: [x]")
    assert "registers no handler" in (beside.load().refusal or "")


def test_before_and_after_know_every_spelling(home):
    """`before` and `after` name extensions as the configuration does."""
    home.add("a_one", GOOD.replace('call")', 'call", after=["B-Two", "absent"])'))
    home.add("b_two")
    after = {each.extension: each.after for each in home.load().handlers}
    assert after == {"a_one": ("b_two", "absent"), "b_two": ()}


def test_a_cycle_of_before_and_after_stops_its_members(beside):
    """They are load errors that name the cycle; the others load."""
    for name, other in (("a", "b"), ("b", "a")):
        beside.add(name, GOOD.replace('call")', f'call", before=["{other}"])'))
    loaded = beside.load()
    assert [each.extension for each in loaded.handlers] == ["neighbour"]
    for name in ("a", "b"):
        record = by_name(loaded)[name]
        assert record.status is Status.LOAD_ERROR
        assert "a" in record.reason
        assert "b" in record.reason


# --- required ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("required: [good]", None),
        ("required: [broken]", "broken (load-error: "),
        ("required: [ghost]", "ghost (missing: "),
        ("required: [good]\ndisabled: [Good]", "good (disabled: "),
        ("required: [bundled-one]", "bundled-one (disabled: not on"),
        ("required: [good, broken, ghost]", "; ghost ("),
        ("enabled: false\nrequired: [good]", None),
    ],
)
def test_a_required_extension_that_is_not_loaded_refuses_tool_calls(
    home, tmp_path, config, expected
):
    """The refusal names each with its reason, and says how to get out of it."""
    (tmp_path / "bundled/bundled-one").mkdir()
    (tmp_path / "bundled/bundled-one/__init__.py").write_text(GOOD)
    home.add("good")
    home.add("broken", "1/0\n")
    home.configure(config)
    refusal = home.load().refusal
    if expected is None:
        assert refusal is None
        return
    assert refusal is not None
    assert expected in refusal
    assert f"take it out of extensions.required in {home.path / 'config.yaml'}" in refusal


# --- what is remembered --------------------------------------------------------------------------


def test_an_inventory_shows_what_the_last_load_recorded(home):
    """Hooks are known without importing, until the file changes."""
    folder = home.add(
        "x", GOOD + "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
    )
    (before,) = inventory(home.path).records
    assert (before.status, before.reason, before.hooks) == (Status.ENABLED, "not loaded yet", ())
    (loaded,) = home.load().records
    (folder / "ran").unlink()
    (shown,) = inventory(home.path).records
    assert (shown.hooks, shown.status, shown.reason) == (loaded.hooks, Status.ENABLED, "")
    assert not (folder / "ran").exists()
    os.utime(folder / "__init__.py", ns=(1, 1))
    (changed,) = inventory(home.path).records
    assert changed.reason == "changed since it was last loaded"
    assert changed.hooks == loaded.hooks


def test_a_home_that_cannot_be_written_still_loads(home):
    """Loading needs to write nothing."""
    home.add("x")
    (home.path / "cache").write_text("a file in the way")
    assert by_name(home.load())["x"].status is Status.ENABLED


def test_loading_nothing_leaves_the_home_alone(home):
    """Without extensions no file appears."""
    assert home.load() == Loaded(home.load().config)
    assert [each.name for each in home.path.iterdir()] == ["extensions"]


def test_an_inventory_checks_settings_as_loading_does(home):
    """A setting against the schema is a config-error before a load, and gone once it is mended."""
    manifest = "config: {properties: {a: {type: integer}}}\n"
    home.add("x", {"__init__.py": GOOD, "extension.yaml": manifest})
    home.configure("x: {a: many}")

    before, loaded = inventory(home.path).records[0], home.load().records[0]
    assert (before.status, before.reason) == (Status.CONFIG_ERROR, loaded.reason)

    home.configure("x: {a: 1}")
    assert inventory(home.path).records[0].status is Status.ENABLED
