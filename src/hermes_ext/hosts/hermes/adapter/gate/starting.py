"""Where Hermes starts processes: what each wrap does there, in a confined call and in no other.

`subprocess.Popen` confines by itself while a call is confined. What is here is what Hermes does
around it: the shell's snapshot, pseudo terminals, and processes that outlive the call.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_ext._values import define
from hermes_ext.exceptions import ConfinementError
from hermes_ext.hosts.hermes.adapter.state import held, state

if TYPE_CHECKING:
    from hermes_ext.chain.outcome import Confined
    from hermes_ext.confine import Run, Sandbox

Original = Callable[..., Any]

MARK: Final = "_hermes_ext_confined"
"""On what Hermes keeps of a process that a confined call has started: that call."""

_COMMAND: Final = "__hermes_ext_command__"
_EVALUATED: Final = f"eval '{_COMMAND}'"


class NotStarted(BaseException):
    """A process was not started, because it could not be confined.

    Hermes catches every `Exception`, and then starts the process again, or in another way.
    """


@define(eq=False)
class ConfinedCall:
    """A call that runs confined, or has run so.

    Attributes:
        confined: what the turn decided.
        sandbox: in what its processes start.
        run: what became of them.
        root: the directory of its session.
        here: tells the directory in which the session's shell is.
    """

    confined: Confined
    sandbox: Sandbox
    run: Run
    root: Path
    here: Callable[[], Path]


def of_its_own(original: Original, *args: Any, **kwargs: Any) -> Any:
    """Wraps what is no part of a call, though Hermes does it on the way.

    `LocalEnvironment.init_session` is what a login shell sets, kept for all commands;
    `CheckpointManager.ensure_checkpoint` keeps the files of a project, in newer Hermes in the call;
    `PluginManager.invoke_hook` calls other plugins.
    """
    with unconfined():
        return original(*args, **kwargs)


class unconfined:  # noqa: N801 - used as a function
    """For what Hermes does of its own accord, inside of a call that is confined."""

    def __enter__(self) -> None:
        from hermes_ext.confine import outside

        self._open = held(state.confined, None), outside()
        for each in self._open:
            each.__enter__()

    def __exit__(self, *_: object) -> None:
        for each in reversed(self._open):
            each.__exit__(None, None, None)


def execute(original: Original, environment: Any, *args: Any, **kwargs: Any) -> Any:
    """Wraps `BaseEnvironment.execute`: the setting may have changed since it was made."""
    check_is_here(environment)
    return original(environment, *args, **kwargs)


def check_is_here(environment: Any) -> None:
    """Raise where what runs a session's commands is not Hermes's own way on this machine.

    Raises:
        NotStarted: it is another, which may run them on another machine.
    """
    kind = type(environment)
    if kind is not getattr(sys.modules.get("tools.environments.local"), "LocalEnvironment", None):
        raise NotStarted(
            f"the commands of this session still run elsewhere ({kind.__name__}), where they "
            "cannot be confined; restart Hermes"
        )


def wrap_command(
    original: Original, environment: Any, command: str, cwd: str, *args: Any, **kwargs: Any
) -> str:
    """Wraps `LocalEnvironment._wrap_command`: makes a command the script that bash runs.

    That script reads the snapshot, which may set the variables that point into the private folder.
    At its end it writes the snapshot and the directory, which the kernel would refuse, in words
    among the command's own output. The directory stands in the output, too.
    """
    script = original(environment, _COMMAND, cwd, *args, **kwargs)
    before, found, after = script.partition(_EVALUATED)
    if not found or _COMMAND in after:
        raise NotStarted("this Hermes runs commands in a way that hermes-ext does not know")
    files = (
        environment._snapshot_path,
        getattr(environment, "_cwd_file", environment._snapshot_path),
    )
    kept = [line for line in after.split("\n") if not any(file in line for file in files)]
    escaped = command.replace("'", "'\\''")
    return f"{before}{_exports()}eval '{escaped}'" + "\n".join(kept)


def _exports() -> str:
    """Sets the private folder's variables, on the line of the command."""
    sandbox = _call().sandbox
    variables = sandbox.environment(os.environ)  # some add to what the user has set
    pairs = (f"{name}={shlex.quote(variables[name])}" for name in sandbox.environment({}))
    return f"export {' '.join(pairs)}; "


def run_bash(original: Original, environment: Any, *args: Any, **kwargs: Any) -> Any:
    """Wraps `LocalEnvironment._run_bash`."""
    snapshot = Path(os.path.realpath(environment._snapshot_path))
    if _call().confined.confinement.covers(snapshot):
        raise NotStarted(f"later commands would run what it writes to {snapshot.parent}")
    return _started(original, environment, *args, **kwargs)


def spawn_local(original: Original, registry: Any, command: str, *args: Any, **kwargs: Any) -> Any:
    """Wraps `ProcessRegistry.spawn_local`, whose login shell may set the variables as well."""
    session = _started(original, registry, f"{_exports()}{command}", *args, **kwargs)
    session.command = command
    setattr(session, MARK, _call())
    return session


def adopt_local(original: Original, *args: Any, **kwargs: Any) -> Any:
    """Wraps `ProcessRegistry.adopt_local`: notes which call has started the process."""
    session = original(*args, **kwargs)
    setattr(session, MARK, _call())
    return session


def spawn_in_terminal(
    original: Original, cls: Any, argv: Any, cwd: Any = None, env: Any = None, **kwargs: Any
) -> Any:
    """Wraps `ptyprocess.PtyProcess.spawn`, which starts its process past `subprocess`.

    What it raises in the forked child goes up there: the child would go on as a second Hermes, and
    this one wait for it. So nothing is left to raise but in `preexec_fn`, where it ends the child.
    """
    from hermes_ext.confine import outside

    call = _call()
    try:
        with call.sandbox.start(argv, env, cwd=cwd) as start:

            def keep_open() -> None:
                for fd in start.pass_fds:
                    os.set_inheritable(fd, True)
                if cwd is not None:
                    os.chdir(cwd)

            with outside():
                process = original(
                    cls,
                    start.argv,
                    None,
                    start.environment,
                    preexec_fn=keep_open,
                    pass_fds=start.pass_fds,
                    **kwargs,
                )
            try:
                start.confirm()
            except BaseException:
                process.close(force=True)
                raise
    except ConfinementError as error:
        call.run.failure = error.message
        raise NotStarted(error.message) from error
    call.run.started += 1
    return process


def run_cell(original: Original, *args: Any, mode: str, **kwargs: Any) -> Any:
    """Wraps `tools.code_kernel.execute_in_session_kernel`, which feeds a Python that stays.

    There is one for each mode. So there is one for each confinement, too.
    """
    call = _call()
    confinement = call.confined.confinement
    confined = f"{mode} {confinement.writable} {confinement.network}"
    call.run.started += confined in state.kernels  # it is handed to one that was seen to start
    try:
        return original(*args, mode=confined, **kwargs)
    finally:
        if call.run.started:
            state.kernels.add(confined)


def no_scope(original: Original, *args: Any, **kwargs: Any) -> bool:
    """Wraps `_systemd_run_user_scope_available`: a confined process does not reach systemd."""
    return False


_LOOKS_AT_FILES: Final = frozenset({"add", "diff", "status"})
_KEPT_IN: Final = ("objects", "indexes")  # and not the store's configuration, which names programs


def checkpoint(original: Original, args: Any, store: Any, *more: Any, **options: Any) -> Any:
    """Wraps `tools.checkpoint_manager._run_git`, by which Hermes keeps the files of a project.

    Of a repository among them, which a confined command may have made, git starts the programs that
    its configuration names. So they can change nothing. Where nothing can be confined, no unknown
    command has run without a plan.
    """
    from hermes_ext import confine
    from hermes_ext.hosts.hermes.adapter import host

    support = confine.support("landlock")
    if args[0] not in _LOOKS_AT_FILES or support.rung is None or host.rules_for().idle:
        return original(args, store, *more, **options)
    folders = (Path(os.path.realpath(store), each) for each in _KEPT_IN)
    confinement = confine.Confinement(tuple(each for each in folders if each.is_dir()))
    private = confine.PrivateFolder.of(Path(store), confinement)
    with confine.inside(confine.Sandbox(confinement, support, private)):
        return original(args, store, *more, **options)


def _call() -> ConfinedCall:
    call = state.confined.get()
    assert call is not None, "only wraps of confined calls come here"
    return call


def _started(original: Original, *args: Any, **kwargs: Any) -> Any:
    try:
        return original(*args, **kwargs)
    except ConfinementError as error:
        raise NotStarted(error.message) from error
