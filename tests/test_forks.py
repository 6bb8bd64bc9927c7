"""Forked children: what threads of the parent were doing does not hold them up."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent

import pytest

PROGRAM = dedent("""\
    import importlib.util, os, sys, threading
    import hermes_ext._forks

    SLOW = "hermes_ext.slow"
    begun, go = threading.Event(), threading.Event()

    class Slow:
        def find_spec(self, name, path=None, target=None):
            return importlib.util.spec_from_loader(name, self) if name == SLOW else None
        def create_module(self, spec):
            return None
        def exec_module(self, module):
            begun.set()
            go.wait()
            module.ready = True

    sys.meta_path.insert(0, Slow())
    thread = threading.Thread(target=__import__, args=(SLOW,))
    thread.start()
    begun.wait()
    os.register_at_fork(before=go.set)  # called before what was registered earlier
    child = os.fork()
    if child == 0:
        import hermes_ext.slow
        os._exit(0 if hermes_ext.slow.ready else 1)
    thread.join()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_what_another_thread_imports_is_there_in_the_child() -> None:
    """The fork waits until the module is whole; else the child would wait for it without an end."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, timeout=60)
    assert done.returncode == 0
