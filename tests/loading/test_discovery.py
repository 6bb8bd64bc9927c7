"""`_discovery`: what is found where, which of several is used, and that no code runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_ext.hooks.source import Source
from hermes_ext.loading.finding import discovery as _discovery
from hermes_ext.loading.finding.discovery import Candidate, Discovery, bundled_dir, discover
from hermes_ext.loading.inventory import inventory
from hermes_ext.records import ExtensionRecord, Status
from hermes_ext.settings.config import read_config

SENTINEL = "from pathlib import Path\nPath(__file__).with_name('imported').touch()\n"


@pytest.fixture(autouse=True)
def _nothing_bundled(tmp_path, monkeypatch):
    """The extensions that come with the package are not the subject here."""
    (tmp_path / "bundled").mkdir()
    monkeypatch.setattr(_discovery, "bundled_dir", lambda: tmp_path / "bundled")


@pytest.fixture
def home(tmp_path) -> Path:
    (tmp_path / "home/extensions").mkdir(parents=True)
    return tmp_path / "home"


def package(root: Path, name: str, text: str = SENTINEL) -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(text)
    return folder


def configure(home: Path, text: str) -> None:
    (home / "config.yaml").write_text(
        "extensions:\n" + "".join(f"  {x}\n" for x in text.split("\n"))
    )


def found_in(home: Path) -> Discovery:
    return discover(read_config(home), home=home)


def by_name(home: Path) -> dict[str, Candidate]:
    return {each.name: each for each in found_in(home).found}


def records(home: Path) -> dict[str, ExtensionRecord]:
    return {each.name: each for each in inventory(home).records}


@pytest.fixture
def entry_point(tmp_path, monkeypatch) -> Callable[..., Path]:
    """Installs a distribution with an entry point: a real `.dist-info` and a real package."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def install(name: str, value: str, module: str | None = None) -> Path:
        info = site / f"{name.replace('-', '_')}-1.2.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[hermes_ext.extensions]\n{name} = {value}\n")
        return package(site, module or value.partition(":")[0].replace(".", "/"))

    return install


def test_folders_and_files_are_found_without_running_them(home):
    """`NAME/__init__.py` and `NAME.py` are extensions; none of their code runs."""
    root = home / "extensions"
    package(root, "a-one")
    (root / "b_two.py").write_text(SENTINEL)
    found = by_name(home)
    assert [*found] == ["a-one", "b_two"]
    assert found["a-one"].module_file == root / "a-one/__init__.py"
    assert found["b_two"].path == root / "b_two.py"
    assert records(home)["a-one"].status is Status.ENABLED
    assert list(root.rglob("imported")) == []


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        (["guard.py"], "has no __init__.py; add one"),
        (["extension.yaml"], "has no __init__.py; add one"),
        (["pyproject.toml"], "install it with pip, or link to its package"),
    ],
)
def test_a_folder_without_init_says_what_is_missing(home, files, hint):
    """A folder that is not a package is a record that says what to do."""
    folder = home / "extensions/half"
    folder.mkdir()
    for file in files:
        (folder / file).touch()
    record = records(home)["half"]
    assert record.status is Status.NOT_AN_EXTENSION
    assert hint in record.reason


@pytest.mark.parametrize(
    "name", ["ping_island", "with space", "Upper", "2fa", "class", "a.b", "計画"]
)
def test_names_need_not_be_identifiers(home, name):
    """Any name that can be printed and is no path is found under the folder's own name."""
    package(home / "extensions", name)
    assert by_name(home)[name].status is None


@pytest.mark.parametrize("name", ["on", "Required", "a:b", "[x]"])
def test_names_that_cannot_be_configured_are_refused(home, name):
    """A name that the configuration could not tell from its own is a load error that says so."""
    package(home / "extensions", name)
    record = records(home)[name]
    assert record.status is Status.LOAD_ERROR
    assert "Rename it" in record.reason


def test_a_name_that_is_no_utf8(home):
    """Undecodable bytes in a file name are printed as escapes, and others still load."""
    package(home / "extensions", "good")
    folder = os.fsencode(home / "extensions") + b"/caf\xff"
    os.mkdir(folder)
    with open(folder + b"/__init__.py", "w"):
        pass
    found = records(home)
    assert found["good"].status is Status.ENABLED
    assert found[r"caf\xff"].status is Status.LOAD_ERROR
    assert found[r"caf\xff"].reason.encode()
    assert str(found[r"caf\xff"].to_json()).encode()


def test_either_spelling_of_a_name_disables_once(home):
    """Folder, manifest and configuration may spell a name differently; it stays one extension."""
    folder = package(home / "extensions", "ping_island")
    (folder / "extension.yaml").write_text("name: ping-island\n")
    configure(home, "disabled: [Ping-Island]")
    (record,) = inventory(home).records
    assert (record.name, record.status) == ("ping_island", Status.DISABLED)
    assert record.warnings == ()
    assert f"{home / 'config.yaml'}:2" in record.reason


def test_a_manifest_with_another_name_is_a_warning(home):
    """The folder's name counts, and the difference is told."""
    folder = package(home / "extensions", "guard-main")
    (folder / "extension.yaml").write_text("name: guard\nversion: 2.0\ndescription: Guards.\n")
    record = records(home)["guard-main"]
    assert (record.version, record.description) == ("2.0", "Guards.")
    assert "says 'guard'; the folder's name counts" in record.warnings[0]


def test_a_folder_wins_over_a_file_of_its_name(home):
    """`x/` is used and `x.py` is not; both places are told."""
    folder = package(home / "extensions", "x")
    file = home / "extensions/X.py"
    file.touch()
    used, shadowed = sorted(found_in(home).found, key=lambda each: each.status is not None)
    assert (used.path, used.also_at) == (folder, (file,))
    assert f"{file} has the same name and is not used" in used.warnings
    assert (shadowed.path, shadowed.status) == (file, Status.SHADOWED)
    assert str(folder) in shadowed.reason


def test_an_entry_point_is_found_without_importing_it(home, entry_point):
    """Its place, version and manifest are known although neither it nor its parents ran."""
    folder = entry_point("nested-guard", "outer.inner")
    (folder.parent / "__init__.py").write_text("raise SystemExit('imported')")
    (folder / "extension.yaml").write_text("description: Nested.\n")
    record = records(home)["nested-guard"]
    assert (record.source, record.path) == (Source.ENTRY_POINT, folder)
    assert (record.version, record.description) == ("1.2", "Nested.")
    assert record.status is Status.DISABLED
    assert "off until extensions.on names them" in record.reason
    assert not {"outer", "outer.inner"} & set(sys.modules)


def test_an_entry_point_is_on_when_it_is_named(home, entry_point):
    """`extensions.on` turns it on, in any spelling; `disabled` wins over `on`."""
    entry_point("pip-guard", "pip_guard")
    configure(home, "on: [Pip_Guard]")
    assert records(home)["pip-guard"].status is Status.ENABLED
    configure(home, "on: [pip-guard]\ndisabled: [pip-guard]")
    record = records(home)["pip-guard"]
    assert (record.status, record.configured_on) == (Status.DISABLED, False)


@pytest.mark.parametrize("value", ["no_such_module", "os.path.nope", "json.nope"])
def test_an_entry_point_to_nowhere(home, entry_point, tmp_path, value):
    """An entry point whose module is not there is a load error, once it is on."""
    entry_point("lost", value, module="other")
    configure(home, "on: [lost]")
    record = records(home)["lost"]
    assert record.status is Status.LOAD_ERROR
    assert f"names {value!r}, and there is no such module" in record.reason


def test_one_extension_through_two_channels_is_one(home, entry_point):
    """An entry point that is also linked into the global directory is used once, from there."""
    folder = entry_point("guard", "guard_pkg")
    link = home / "extensions/guard"
    link.symlink_to(folder)
    used, shadowed = sorted(found_in(home).found, key=lambda each: each.status is not None)
    assert (used.source, used.path, used.also_at) == (Source.GLOBAL, link, (folder,))
    assert shadowed.source is Source.ENTRY_POINT
    assert "the same code is used as global extension 'guard'" in shadowed.reason


def test_one_code_under_two_names_is_one(home, entry_point):
    """Links are followed: the same code does not run twice under another name."""
    folder = entry_point("guard", "guard_pkg")
    (home / "extensions/renamed").symlink_to(folder)
    found = by_name(home)
    assert found["renamed"].status is None
    assert found["guard"].status is Status.SHADOWED
    assert "the same code" in found["guard"].reason


def test_a_global_extension_replaces_a_bundled_one(home, tmp_path):
    """Of one name, the global one is used, whether it works or not."""
    package(tmp_path / "bundled", "guard")
    bundled = records(home)["guard"]
    assert (bundled.source, bundled.status) == (Source.BUNDLED, Status.DISABLED)
    package(home / "extensions", "Guard")
    found = {each.source: each for each in found_in(home).found}
    assert found[Source.GLOBAL].status is None
    assert found[Source.BUNDLED].status is Status.SHADOWED


def test_what_is_bundled_is_found_in_installation_or_checkout(monkeypatch):
    """The package's own folder exists here, and holds only packages."""
    monkeypatch.undo()
    root = bundled_dir()
    assert root is not None
    assert root.name in {"bundled", "extensions"}


def test_entries_that_cannot_be_read_hide_no_others(home):
    """A dangling link and a link to itself are load errors; the rest is found."""
    root = home / "extensions"
    package(root, "good")
    (root / "gone").symlink_to(home / "nowhere")
    (root / "loop").symlink_to(root / "loop")
    (root / "file.py").symlink_to(root / "file.py")
    (root / "README").symlink_to(root / "README")
    found = records(home)
    assert found["good"].status is Status.ENABLED
    assert found["gone"].status is Status.LOAD_ERROR
    assert "is a link to" in found["gone"].reason
    for name in ("loop", "file", "README"):
        assert found[name].status is Status.LOAD_ERROR
        assert "cannot be read" in found[name].reason


@pytest.mark.parametrize("closed", ["shut", "shut/__init__.py", "."])
def test_permissions_that_are_missing_hide_no_others(home, monkeypatch, closed):
    """A closed folder or file is a load error, a closed directory a problem; nothing raises.

    The permission error is injected, because the tests may run as a user whom modes do not stop.
    """
    root = home / "extensions"
    package(root, "good")
    package(root, "shut")
    scandir, opened, target = os.scandir, os.open, os.path.normpath(root / closed)

    def refuse(call):
        def asked(path, *args, **kwargs):
            if os.path.normpath(path) == target:
                raise PermissionError(13, "Permission denied", str(path))
            return call(path, *args, **kwargs)

        return asked

    monkeypatch.setattr(_discovery.os, "scandir", refuse(scandir))
    monkeypatch.setattr(_discovery.os, "open", refuse(opened))
    seen = inventory(home)
    if closed == ".":
        assert "extensions.global_dir: " in str(seen.problems[0])
        assert "Permission denied" in str(seen.problems[0])
        return
    found = {each.name: each for each in seen.records}
    assert found["good"].status is Status.ENABLED
    assert found["shut"].status is Status.LOAD_ERROR
    assert "Permission denied" in found["shut"].reason


def test_a_global_directory_that_is_not_there(home, monkeypatch):
    """The default one need not exist; one that the user names should."""
    monkeypatch.setenv("HOME", str(home / "user"))
    (home / "extensions").rmdir()
    assert inventory(home).problems == ()
    configure(home, "global_dir: ~/.hermes/extensions/")
    assert inventory(home).problems == ()
    configure(home, "enabled: true\nglobal_dir: /no/such/place")
    (problem,) = inventory(home).problems
    assert str(problem).startswith(
        f"{home / 'config.yaml'}:3: extensions.global_dir: /no/such/place"
    )


def test_the_global_directory_may_be_elsewhere(home, tmp_path):
    """`global_dir` is used instead of the home's own folder."""
    package(tmp_path / "elsewhere", "there")
    package(home / "extensions", "here")
    configure(home, f"global_dir: {tmp_path / 'elsewhere'}")
    assert [*by_name(home)] == ["there"]


def test_everything_can_be_turned_off(home, monkeypatch):
    """`enabled: false` and the environment's switch turn all off, with the reason."""
    package(home / "extensions", "x")
    configure(home, "enabled: false")
    assert records(home)["x"].status is Status.DISABLED
    assert "extensions.enabled is false" in records(home)["x"].reason
    configure(home, "enabled: true")
    monkeypatch.setenv("HERMES_EXT_OFF", "1")
    assert "$HERMES_EXT_OFF is set" in records(home)["x"].reason
    monkeypatch.setenv("HERMES_EXT_OFF", "0")
    assert records(home)["x"].status is Status.ENABLED


@pytest.mark.parametrize("key", ["on", "required", "disabled", "observe"])
def test_a_name_that_is_nowhere_is_told(home, key):
    """It is a problem with line, did-you-mean and the places searched, and a `missing` record."""
    package(home / "extensions", "workflow-guard")
    configure(home, f"enabled: true\n{key}: [ghost, wrokflow-guard]")
    seen = inventory(home)
    ghost, typo = map(str, seen.problems)
    assert ghost.startswith(f'{home / "config.yaml"}:3: extensions.{key}: names "ghost"')
    assert str(home / "extensions") in ghost
    assert 'Did you mean "workflow-guard"?' in typo
    missing = [each for each in seen.records if each.status is Status.MISSING]
    assert [each.name for each in missing] == ["ghost", "wrokflow-guard"]
    assert all(each.source is None and each.required is (key == "required") for each in missing)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "disbled: [a]",
            "disbled: is neither a key of the section nor the name of an installed "
            'extension. Did you mean "disabled"?',
        ),
        ("guad: {a: 1}", 'Did you mean "guard"?'),
        ("overridable: [ghost]", 'extensions.overridable: names "ghost"'),
        ("priorities: {ghost: 1}", 'extensions.priorities: names "ghost"'),
        ("project_may_set: [guad.plan]", 'names "guad", and no extension of that name'),
        ("disabled: ['ghost:before_llm_call']", 'extensions.disabled: names "ghost"'),
    ],
)
def test_unknown_keys_and_names_are_told(home, text, expected):
    """A misspelt key is not taken silently for the settings of an extension."""
    package(home / "extensions", "guard")
    configure(home, text)
    told = [str(each) for each in inventory(home).problems]
    assert len(told) == 1
    assert expected in told[0]


def test_the_samples_settings_need_their_extension(home):
    """Settings of an extension that is installed are no problem, whether it is on or not."""
    package(home / "extensions", "workflow_guard")
    configure(home, "workflow-guard: {plan_path: p}")
    assert inventory(home).problems == ()


def test_a_manifest_that_is_wrong_stops_its_extension_only(home):
    """Its record has file, line and key; a version that does not fit is `incompatible`."""
    root = home / "extensions"
    package(root, "good")
    (package(root, "wrong") / "extension.yaml").write_text("name: x\nrequires: 5\n")
    (package(root, "new") / "extension.yaml").write_text("requires_hermes_ext: '>=99'\n")
    found = records(home)
    assert found["good"].status is Status.ENABLED
    assert found["wrong"].status is Status.LOAD_ERROR
    assert "extension.yaml:2: requires: found the number '5'" in found["wrong"].reason
    assert found["new"].status is Status.INCOMPATIBLE
    assert "needs hermes-ext >=99" in found["new"].reason
    assert any("extension.yaml:2" in str(each) for each in inventory(home).problems)


def test_the_order_is_always_the_same(home, tmp_path, entry_point):
    """Found ones are sorted by rank of their source, then by name."""
    for name in ("z", "m", "a"):
        package(home / "extensions", f"g-{name}")
        package(tmp_path / "bundled", f"b-{name}")
    entry_point("e", "e_pkg")
    names = ["b-a", "b-m", "b-z", "e", "g-a", "g-m", "g-z"]
    assert [each.name for each in found_in(home).found] == names
