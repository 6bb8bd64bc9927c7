"""The pytest plugin: the fixtures `load_extension` and `hermes_session`.

It is loaded in every run of pytest where this package is installed, so it imports nothing that a
run without these fixtures does not need.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from hermes_ext.hosts.hermes.process.processes import Start
    from hermes_ext.testing._extension import LoadedExtension
    from hermes_ext.testing._fakes import Answers, FakeClock, ScriptedApprover
    from hermes_ext.testing._session import HermesSession
    from hermes_ext.testing.model_server import Reply
    from hermes_ext.turns.schemas import ToolSchemas

__all__ = ["LoadExtension", "StartSession", "hermes_session", "hermes_start", "load_extension"]

_SWITCHES = ("HERMES_EXT_OFF", "HERMES_EXT_TRUST")


class LoadExtension(Protocol):
    """What the fixture `load_extension` is."""

    def __call__(
        self,
        path_or_name: str | Path,
        *,
        config: Mapping[str, Any] | None = None,
        extensions_config: Mapping[str, Any] | None = None,
        strict: bool = True,
        approver: Answers | ScriptedApprover | None = None,
        tool_schemas: ToolSchemas | None = None,
        project_root: Path | None = None,
        clock: FakeClock | None = None,
        cannot_confine: str | None = None,
        allow_state: Sequence[str] = (),
        slow_seconds: float = 1.0,
    ) -> LoadedExtension:
        """Load an extension as Hermes would, from a scratch home where it is alone.

        Args:
            path_or_name: its folder or single file; or the name of a bundled or installed one.
            config: its settings, as under its name in `config.yaml`.
            extensions_config: other keys of the section `extensions`, like `observe`.
            strict: also fail for what nobody asserts: see `Finding`.
            approver: what answers its questions: True, False, a list of answers, a function, or
                a `ScriptedApprover`. None: nobody is there, and `ask` blocks.
            tool_schemas: JSON Schemas of the tools' arguments, by tool name.
            project_root: the directory to work in; an empty one, like a repository, by default.
            cannot_confine: why the host cannot run calls confined; by default it can.
            clock: what the age of session state is measured by.
            allow_state: names in its modules that may change over turns.
            slow_seconds: how long a handler may take.

        Raises:
            ExtensionNotLoadedError: it does not load; the message says why, with file and line.
            TypeError: `cannot_confine` is not a text, or is blank.
        """


class StartSession(Protocol):
    """What the fixture `hermes_session` is."""

    def __call__(
        self,
        *replies: Reply | str,
        script: Any = None,
        extensions: Sequence[str | Path] = (),
        config: Mapping[str, Any] | None = None,
        hermes_config: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        git: bool = True,
        start: Start | None = None,
    ) -> HermesSession:
        """A scratch Hermes with extensions, and a model that gives these replies.

        Args:
            replies: what the model answers, in order; a text is a `Reply` of that text.
            script: instead, a function from each `ModelRequest` to a `Reply`.
            extensions: folders or single files, which are copied into its home; or names of
                bundled or installed ones, which are turned on.
            config: keys of the section `extensions` in its `config.yaml`, settings among them.
            hermes_config: other sections of its `config.yaml`.
            env: variables for Hermes.
            git: whether the project is a git repository.
            start: how processes are started; by default what the fixture `hermes_start` says.
        """


@pytest.fixture
def load_extension(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LoadExtension]:
    """Loads an extension and drives turns of it without a model: `load_extension(path, …)`.

    What it returns is a `hermes_ext.testing.LoadedExtension`.
    """
    from hermes_ext.hosts.default import default_host
    from hermes_ext.testing._extension import LoadedExtension

    for name in _SWITCHES:
        monkeypatch.delenv(name, raising=False)
    with ExitStack() as loaded:

        def load_one(path_or_name: str | Path, **options: Any) -> LoadedExtension:
            __tracebackhide__ = True
            base = tmp_path_factory.mktemp("extension")
            monkeypatch.setenv(default_host().home_variable, str(base / "home"))
            extension = LoadedExtension(path_or_name, base, **options)
            loaded.callback(extension.close)
            return extension

        yield load_one


@pytest.fixture(scope="session")
def hermes_start() -> Start | None:
    """How `hermes_session` starts processes; None: as usual. A `conftest.py` may have its own."""
    return None


@pytest.fixture
def hermes_session(
    tmp_path_factory: pytest.TempPathFactory, hermes_start: Start | None
) -> Iterator[StartSession]:
    """Runs the real Hermes with a scripted model: `hermes_session(*replies, extensions=[…])`.

    What it returns is a `hermes_ext.testing.HermesSession`. The test is skipped where Hermes Agent
    is not installed.
    """
    from hermes_ext.hosts.hermes.process.home import why_not
    from hermes_ext.testing._session import open_session

    missing = why_not()
    if missing is not None:
        pytest.skip(missing)
    with ExitStack() as running:

        def begin(*replies: Reply | str, **options: Any) -> HermesSession:
            base = tmp_path_factory.mktemp("hermes")
            options = {"start": hermes_start, **options}
            return running.enter_context(open_session(base, replies, **options))

        yield begin


@pytest.hookimpl(optionalhook=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """An extension's folder is a plain folder for pytest.

    It would import `__init__.py` as a package otherwise, under a name that may have a hyphen in it
    and outside of everything that loading an extension does. One that skips itself could not even
    be tested for that.
    """
    if (path / "extension.yaml").is_file() and (path / "__init__.py").is_file():
        if parent.config.getoption("importmode") == "importlib":
            _stand_in(path, parent.config.rootpath)
        return pytest.Dir.from_parent(parent, path=path)
    return None


def _stand_in(folder: Path, root: Path) -> None:
    """What pytest finds instead, where its import mode imports what is above a test."""
    parts = folder.relative_to(root).parts if folder.is_relative_to(root) else folder.parts[1:]
    name = ".".join(part.replace(".", "_") for part in parts)
    if name and name not in sys.modules:
        sys.modules[name] = package = ModuleType(name)
        package.__path__ = [str(folder)]
