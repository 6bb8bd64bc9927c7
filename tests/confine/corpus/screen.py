"""Try a command line in a throwaway copy of the whole system, and see what it would change.

The copy is an overlay of `/` in namespaces of its own: without a network, without other processes,
with few capabilities. Needs root.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from attrs import frozen
from tests.confine.corpus import machine
from tests.confine.corpus.machine import Person

_UNSHARE: Final = (
    "unshare",
    "--mount",
    "--pid",
    "--net",
    "--ipc",
    "--uts",
    "--fork",
    "--kill-child",
)
_CAPABILITIES: Final = "-all,+chown,+dac_override,+fowner,+fsetid,+setuid,+setgid,+kill"
_SECONDS: Final = 2.0
_INSIDE: Final = Path(__file__).with_name("inside_copy.py")


@frozen
class Seen:
    """How a command ended in the copy (None: too late), its errors, and what it changed."""

    status: int | None
    err: str
    changed: tuple[str, ...]


def tried(line: str, project: Path, home: Path, person: Person) -> Seen:
    """Run `line` in the copy as `person`."""
    with tempfile.TemporaryDirectory(prefix="copy-") as folder:
        user = ["setpriv", f"--reuid={person.uid}", f"--regid={person.gid}", "--clear-groups",
                f"--bounding-set={_CAPABILITIES}", "--no-new-privs"]  # fmt: skip
        asked = {
            "folder": folder,
            "command": [*user, "bash", "-c", line],
            "project": str(project),
            "watched": [str(project), str(home)],
            "variables": machine.environment(home, person),
            "seconds": _SECONDS,
        }
        command = [*_UNSHARE, sys.executable, "-I", "-S", str(_INSIDE), json.dumps(asked)]
        ended = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found = json.loads(ended.stdout)
    return Seen(found["status"], found["err"], tuple(found["changed"]))
