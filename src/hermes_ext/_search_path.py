"""Keeping the working directory out of what Python searches for modules.

An agent writes files there. `python -m` puts it first, and so does an empty entry of `PYTHONPATH`,
which `PYTHONPATH=$PYTHONPATH:/x` makes: a file `yaml.py` or `json.py` would be imported in place of
the real one, in the process that holds the rules.

This is the first module of the package that is imported, so it imports only what each start of
Python has imported, and names of the host, and there is no `from __future__`.
"""

import os
import sys

from hermes_ext.hosts.hermes.facts import names

_HERE = ("", os.curdir)
_OWN = "hermes_ext"
# Another program that is run by name, pytest say, may want its working directory.
_PROGRAMS = (_OWN, *names.PROGRAMS)
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


def is_own_command() -> bool:
    """Whether this process is `hermes-ext` or `python -m hermes_ext…`, while it starts."""
    program = sys.argv[0] if getattr(sys, "argv", None) else ""
    name = os.path.basename(program)
    if name.removesuffix(".exe").removesuffix("-script.py") == "hermes-ext":
        return True
    return program == "-m" and _run_by_name().split(".")[0] == _OWN


def is_in_host() -> bool:
    """Whether the host's own program runs in this process."""
    return names.PACKAGE in sys.modules


def drop_working_directory() -> None:
    """Take the working directory off `sys.path` where nobody has named it.

    It stays where it is written out in `PYTHONPATH`, and where this package or the host lies in it.
    """
    try:
        cwd = os.getcwd()
    except OSError:  # it is gone, and so is what could be in it
        cwd = ""
    written = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    host = getattr(sys.modules.get(names.PACKAGE), "__file__", None)
    roots = {package, host and os.path.dirname(os.path.dirname(os.path.abspath(host)))}
    gone = {*_HERE}
    first = not sys.flags.safe_path and _run_by_name().split(".")[0] in _PROGRAMS
    if cwd not in roots and cwd not in written and (first or _names_here(written)):
        gone.add(cwd)
    standard = os.path.dirname(os.__file__)
    end = sys.path.index(standard) if standard in sys.path else len(sys.path)
    # What comes after the standard library is of a .pth file: somebody has installed it.
    sys.path[:end] = [each for each in sys.path[:end] if each not in gone]


def environment() -> dict[str, str]:
    """The environment for a child process, whose `PYTHONPATH` does not have its directory."""
    env = dict(os.environ)
    written = env.pop("PYTHONPATH", "").split(os.pathsep)
    named = [each for each in written if not _is_here(each)]
    return {**env, "PYTHONPATH": os.pathsep.join(named)} if named else env


def _names_here(written: list[str]) -> bool:
    # One empty entry is what an unset variable splits into.
    return written != [""] and any(map(_is_here, written))


def _is_here(entry: str) -> bool:
    """Whether an entry is the working directory, whichever that is: "", `.`, `./`."""
    return os.path.normpath(entry or os.curdir) == os.curdir


def _run_by_name() -> str:
    """The module of `python -m`; "" where Python was started in another way."""
    words = iter(sys.orig_argv[1:])
    for option in words:
        if option in _WITH_VALUE:
            next(words, None)
        elif not option.startswith("-"):
            return ""  # a script and its own arguments
        elif not option.startswith("--") and option.endswith("m"):
            return next(words, "")
    return ""
