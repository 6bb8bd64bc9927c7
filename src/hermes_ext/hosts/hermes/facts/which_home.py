"""Which folder is the Hermes home: the one that the Hermes of this Python would use."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_ext.hosts.hermes.facts.names import HOME_VARIABLE

__all__ = ["hermes_home"]


def hermes_home() -> Path:
    """The Hermes home of this process, absolute.

    Where Hermes is installed it is asked, since its releases differ: 0.19 takes `$HERMES_HOME` as
    it is written, so that `~/.hermes` is a folder `~` of the working directory, and later ones
    replace `~` and variables. Without Hermes here it is what 0.19 makes of it.
    """
    try:
        return Path(os.path.abspath(_of_hermes()))
    except ImportError:
        pass
    except RuntimeError:  # no home is known: HOME is not set, and this user has no entry
        return _NOWHERE
    written = os.environ.get(HOME_VARIABLE, "").strip()
    if written:
        return Path(os.path.abspath(written))
    default = os.path.expanduser("~/.hermes")
    return _NOWHERE if default.startswith("~") else Path(os.path.abspath(default))


_NOWHERE = Path(os.devnull, "no-home-is-known")  # what cannot be read, instead of a folder `~` here


def _of_hermes() -> Path:
    import hermes_constants

    # Not get_hermes_home where there is the other: it warns of profiles.
    asked = getattr(hermes_constants, "get_process_hermes_home", hermes_constants.get_hermes_home)
    return Path(asked())
