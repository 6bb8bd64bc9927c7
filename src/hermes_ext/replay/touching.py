"""What handlers look at while they judge: files, programs, the network. Found out while they run.

Python tells of files that are opened, of folders that are listed, of programs and connections
(`sys.addaudithook`). It does not tell of `os.stat` and its kin, so these are wrapped. What does not
count: code, and following the links of a path, which every look at a path begins with. What is
not seen: `from os import stat` before this begins, modules in C that ask the system themselves, and
the clock.
"""

from __future__ import annotations

import functools
import os
import re
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeAlias

from hermes_ext._values import Factory, asdict, define

_FILES: Final = frozenset({"open", "os.listdir", "os.scandir", "sqlite3.connect"})
_PROGRAMS: Final = frozenset({"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec"})
_NETWORK: Final = frozenset({"socket.connect", "socket.getaddrinfo"})
_LOOKS: Final = ("stat", "lstat", "access", "readlink")
_OWN: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_NOTHING: Final = ("/dev/null", "/dev/urandom", "/dev/random", os.devnull)
_MOST: Final = 20  # of each kind


@define
class Touched:
    """What was looked at, in order, each once.

    files: opened, listed or asked about. programs: started. network: connected to.
    """

    files: dict[str, None] = Factory(dict)
    programs: dict[str, None] = Factory(dict)
    network: dict[str, None] = Factory(dict)

    def __bool__(self) -> bool:
        return bool(self.files or self.programs or self.network)

    def add(self, other: Touched) -> None:
        """What the other has, too."""
        self.files |= other.files
        self.programs |= other.programs
        self.network |= other.network

    def to_json(self) -> dict[str, list[str]]:
        """The same as lists."""
        return {name: [*found][:_MOST] for name, found in asdict(self).items()}


class Watch:
    """Notes what is looked at between `begin` and `end`, in any thread of the process.

    own: folders and files that do not count: the code of the extensions.
    """

    def __init__(self, own: Iterable[str]) -> None:
        self._found: Touched | None = None
        self._not_counted = tuple(dict.fromkeys((*own, *_code_places())))

    def begin(self) -> None:
        """Note from now on."""
        self._found = Touched()

    def end(self) -> Touched:
        """What was found since `begin`."""
        found, self._found = self._found, None
        return found or Touched()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Watch while the block runs; one watch at a time."""
        _audit.tell(self._audit)
        before = {name: getattr(os, name) for name in _LOOKS if hasattr(os, name)}
        for name, function in before.items():
            setattr(os, name, self._telling(function))
        try:
            yield
        finally:
            for name, function in before.items():
                setattr(os, name, function)
            _audit.tell(None)

    def _telling(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def told(path: Any, *args: Any, **named: Any) -> Any:
            if self._found is not None and not _follows_links(sys._getframe(1)):
                self._file(path)
            return function(path, *args, **named)

        return told

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        found = self._found
        if found is None:
            return
        if event in _FILES:
            self._file(arguments[0])
        elif event in _PROGRAMS:
            found.programs[_text(arguments[0])] = None
        elif event in _NETWORK:
            place = arguments[1] if event == "socket.connect" else arguments[0]
            found.network[_text(place)] = None

    def _file(self, path: Any) -> None:
        found = self._found
        if found is None or not isinstance(path, str | bytes | os.PathLike):
            return  # a descriptor, which somebody has opened
        name = _without_dots(os.fsdecode(path))
        if name in _NOTHING or _CODE.search(name):
            return
        if not any(_is_in(name, each) for each in self._not_counted):
            found.files[name] = None


_Listener: TypeAlias = Callable[[str, tuple[Any, ...]], None]


class _Audit:
    """Who is told of audit events. Python takes no hook away again, so there is one for all."""

    def __init__(self) -> None:
        self._listener: _Listener | None = None
        self._is_hooked = False

    def tell(self, listener: _Listener | None) -> None:
        self._listener = listener
        if not self._is_hooked:
            self._is_hooked = True
            sys.addaudithook(self._on_audit)

    def _on_audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._listener is not None:
            self._listener(event, arguments)


_audit: Final = _Audit()


def _follows_links(frame: FrameType | None) -> bool:
    """Whether it is asked only to follow the links of a path, or by the package itself."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_STDLIB) or _CODE.search(file):
            return file.startswith(_OWN + os.sep)
        if frame.f_code.co_name in _FOLLOWING:
            return True
        frame = frame.f_back
    return False


_STDLIB: Final = (sysconfig.get_path("stdlib") + os.sep, "<frozen ")
_FOLLOWING: Final = frozenset({"realpath", "_joinrealpath"})
_CODE: Final = re.compile(r"[/\\](?:site-packages|dist-packages|__pycache__)(?:[/\\]|\Z)")


def _code_places() -> Iterator[str]:
    """Where Python and its packages are."""
    yield from (sys.prefix, sys.base_prefix, _OWN, *site.getsitepackages())
    yield from (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib"))


def _is_in(name: str, folder: str) -> bool:
    return name == folder or (folder != os.sep and name.startswith(folder.rstrip(os.sep) + os.sep))


def _without_dots(name: str) -> str:
    try:
        return os.path.abspath(name)
    except OSError:  # the working directory was removed
        return name


def _text(value: Any) -> str:
    try:
        return os.fsdecode(value)
    except TypeError:
        return str(value)
