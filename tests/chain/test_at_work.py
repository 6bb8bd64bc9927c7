"""Reading the stacks of other threads, which CPython lets nobody do without care."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

LOOKS = textwrap.dedent("""
    import gc, os, threading
    from hermes_ext.chain.at_work import awaiting, everyone

    class Garbage:
        def __init__(self):
            self.itself = self

        def __del__(self):
            os.stat(os.sep)  # lets another thread go on

    gc.set_threshold(1)
    over = threading.Event()

    def looks(look):
        while not over.is_set():
            for _ in range(3):
                Garbage()
            look()

    threads = [threading.Thread(target=looks, args=(look,)) for look in (everyone, awaiting)]
    threads += [threading.Thread(target=over.wait) for _ in range(5)]
    for each in threads:
        each.start()
    for _ in range(300):
        begun = threading.Thread(target=int)
        begun.start()
        begun.join()
    over.set()
    for each in threads:
        each.join()
    print("went on", gc.isenabled())
""")


def test_while_threads_begin_and_garbage_is_collected() -> None:
    """A collection in the middle of a look stopped the process for ever, in CPython 3.11."""
    done = subprocess.run(
        [sys.executable, "-c", LOOKS], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.stderr) == ("went on True\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_that_is_forked_during_a_look_collects_garbage() -> None:
    from hermes_ext.chain import at_work

    with at_work._no_collection:
        child = os.fork()
        if not child:
            import gc

            os._exit(0 if gc.isenabled() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
