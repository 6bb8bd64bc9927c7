"""The process's side of Hermes: its runtime, and the turn that an agent or a tool call is in."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs.setters import NO_OP

from hermes_ext._log import logger
from hermes_ext._redaction import redacted
from hermes_ext._values import define, field
from hermes_ext.hooks.table import HookName
from hermes_ext.hosts.hermes.adapter.person import notices
from hermes_ext.hosts.hermes.adapter.person.approvals import approver, is_interactive
from hermes_ext.hosts.hermes.adapter.places import has_processes, machine_now, session_directory
from hermes_ext.hosts.hermes.adapter.state import state
from hermes_ext.hosts.hermes.adapter.turns.batches import BATCH, is_batch
from hermes_ext.hosts.hermes.home.lost_hooks import note_lost_hooks
from hermes_ext.rules import Rules
from hermes_ext.runtime import Runtime
from hermes_ext.trust.place import project_of
from hermes_ext.turns import state as turn_state
from hermes_ext.turns.turn import Turn

if TYPE_CHECKING:
    from hermes_ext.confine import Confinement
    from hermes_ext.hooks.payloads import ToolCall

# Of tasks that are over: a thread that is left behind comes soon or never.
REMEMBERED_TASKS: Final = 1024

_PAST_THE_TURN: Final = (
    "a turn began past AIAgent.run_conversation, so {who} did not see the input. Disable the "
    "plugin that begins it, or disable {who}."
)


def _weakly(agent: Any) -> Callable[[], Any]:
    return weakref.ref(agent) if agent is not None else lambda: None


@define(eq=False, on_setattr=NO_OP)  # else each assignment looks for a converter
class TurnData:
    """What the adapter keeps for one turn: on `Turn.host`, gone with it.

    Attributes:
        agent: gives the agent that runs the turn, as long as there is one.
        stray_task: the task of a call from outside of any turn, which is not to be found by it.
        verdicts: of the tool calls that were judged and have not run yet.
        call_ids: Hermes's ids of the calls that were judged.
        request: what was decided on the newest request to the model.
        stopped: the reply of a blocked or answered request, to every later one of the turn.
        summary: whether the request under way is the one after the iteration limit.
    """

    agent: Any = field(converter=_weakly)
    stray_task: str | None = None
    verdicts: list[Any] = field(factory=list)
    call_ids: set[str] = field(factory=set)
    request: Any = None
    stopped: Any = None
    summary: bool = False


def rules_for(*ids: str | None) -> Rules:
    """What is in force where a session works, by its task's id and its own; else in this context.

    It is loaded once for each Hermes home, and once for each project.
    """
    here = None if ids else turn_state.current_turn()
    if isinstance(here, Turn) and not here.closed:
        return here.rules
    return runtime().for_directory(session_directory(*ids))


def may_withhold_input() -> bool:
    """Whether an extension in this context, or in any project known so far, handles input."""
    hook = HookName.TRANSFORM_USER_INPUT
    return rules_for().manager.has(hook) or runtime().has_anywhere(hook)


def runtime() -> Runtime:
    """The runtime of the Hermes home that this context works for."""
    home = _home()
    runtime = state.runtimes.get(home)
    if runtime is None:
        with state.loading:
            runtime = state.runtimes.get(home)
            if runtime is None:
                runtime = _load(home)
                state.runtimes[home] = runtime
    return runtime


def loaded() -> Runtime | None:
    """The runtime of this context's home, if that is loaded already."""
    return state.runtimes.get(_home())


def _home() -> Path:
    constants = sys.modules.get("hermes_constants") or import_module("hermes_constants")
    home = constants.get_hermes_home()
    return home if isinstance(home, Path) else Path(home)


def _load(home: Path) -> Runtime:
    try:
        # In no project: each turn chooses its own.
        runtime = Runtime.from_config(
            cwd=os.sep, home=home.absolute(), tool_schemas=_schema_of, command="hermes extensions"
        )
    except Exception as error:
        # A fault of ours. Whether a guard was meant to be on is unknown, so no tool runs.
        logger.exception("hermes-ext could not load its runtime")
        told = redacted(f"{type(error).__name__}: {error}")
        runtime = Runtime.refusing(
            f"the extensions could not be loaded ({told}); "
            "no tool runs until this is mended (hermes extensions doctor)"
        )
    runtime.confiner = _Confiner(runtime)
    runtime.approver = approver(lambda: runtime.approve_without_human)
    runtime.on_failure = notices.failed
    runtime.on_slow = notices.slow
    runtime.on_not_taken = notices.say_anew
    runtime.on_store_problem = notices.say_anew
    runtime.on_notice = notices.show
    runtime.agent_at_work = has_processes
    return runtime


class _Confiner:
    """The runtime's `Confiner`: what it takes is not imported before a call is confined."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def reason_not(self, call: ToolCall, confinement: Confinement) -> str | None:
        from hermes_ext.hosts.hermes.adapter.gate.confining import reason_not

        return reason_not(call, confinement, self._runtime.services.confine_minimum)

    @property
    def level(self) -> str | None:
        from hermes_ext.confine import support

        return support(self._runtime.services.confine_minimum).rung


def refusal(rules: Rules) -> str | None:
    """Why no turn may be run in this Hermes, or None; what is merely lost is said."""
    # Not at the top: what is wrapped, and what of it is lost, is said in terms of this module.
    from hermes_ext.hosts.hermes.adapter.wraps import lacking

    found = lacking.lacks(rules)
    refusal = lacking.refusal(rules, found) if found else None
    for lack in found:
        if refusal is None or str(lack) not in refusal:
            notices.say(str(lack))
    if refusal is not None:
        notices.say(refusal)
    _note_lost(rules, (*map(str, found), *state.unconfinable))
    return refusal


def _note_lost(rules: Rules, lines: tuple[str, ...]) -> None:
    """For `list` in another process; of a home where nothing is lost nothing is written."""
    last, said = state.noted
    if last() is rules and said == lines:
        return  # as in most turns: asking for the home takes long
    home = _home()
    if state.lost_hooks.get(home) != lines:
        state.lost_hooks[home] = lines
        note_lost_hooks(home, lines)
    state.noted = weakref.ref(rules), lines


def note_unconfinable(line: str) -> None:
    """For the person, and for `list`: why no call can be confined in this Hermes."""
    if line in state.unconfinable:
        return
    state.unconfinable = (line,)
    notices.say(line)
    home = _home()
    lines = state.lost_hooks[home] = (*state.lost_hooks.get(home, ()), line)
    note_lost_hooks(home, lines)


def refusal_without_turn(*ids: str | None) -> str | None:
    """The same for a request or a tool call, where its turn began without us."""
    from hermes_ext.hosts.hermes.adapter.wraps import lacking

    return refusal(rules_for(*ids)) if lacking.turn_is_lost() else None


def refusal_of_request(*ids: str | None) -> str | None:
    """Why a request may not be sent that belongs to no open turn, or None.

    Only a turn makes these requests: one that is not there was begun past the wrap, however
    well that stands.
    """
    rules = rules_for(*ids)
    refusal = refusal_without_turn(*ids) or rules.refusal
    if refusal is not None:
        return refusal
    who = rules.who_must_see_tools()
    if who:
        return f"The request was not sent: {_PAST_THE_TURN.format(who=', '.join(who))}"
    if not rules.idle:
        names = (record.name for record in rules.records if record.loaded)
        notices.say(f"not in force: {_PAST_THE_TURN.format(who=', '.join(names))}")
    return None


def open_turn(agent: Any, history: Any, task_id: str | None) -> Turn:
    """A turn for one `run_conversation` of an agent."""
    token = state.beginning.set(agent)  # what is said is for the person who talks to it
    try:
        turn = _turn_of(agent, history, task_id)
        notices.report(turn.rules, turn.services)
    finally:
        state.beginning.reset(token)
    return turn


def _looked_up(here: Runtime, turn: Turn) -> None:
    """Find out where the tools run, where anybody asks: Hermes takes long to tell."""
    if turn.looks_at_calls:
        here.machine = machine_now(here.machine)


def _turn_of(agent: Any, history: Any, task_id: str | None) -> Turn:
    session_id = str(getattr(agent, "session_id", "") or "")
    origin = origin_of(agent)
    directory = _directory_of(agent, task_id, origin)
    here = runtime()
    turn = here.turn(
        session_id=session_id,
        conversation_id=_conversation_of(agent) or session_id,
        turns_before=_user_messages(history),
        task_id=task_id,
        platform=platform_of(agent),
        origin=origin,
        interactive=_interactive,
        model=getattr(agent, "model", None) or None,
        cwd=directory,
        project_root=partial(project_of, directory),
        is_subagent=_is_subagent(agent),
        parent_session_id=getattr(agent, "_parent_session_id", None) or None,
        sender_id=getattr(agent, "_user_id", None) or None,
        chat_id=getattr(agent, "_chat_id", None) or None,
    )
    turn.host = TurnData(agent)
    _looked_up(here, turn)
    turn.attended = True  # `with` is around all that the agent does
    return turn


def _directory_of(agent: Any, task_id: str | None, origin: str) -> Path:
    """Where an agent's session works.

    A subagent and a background review work where their parent does, and start in threads and
    with tasks for which Hermes knows no directory.
    """
    inherited = state.directories.get(agent)
    if inherited is None and origin == "background":
        family = {getattr(agent, name, None) for name in ("session_id", "_parent_session_id")}
        family -= {None, ""}
        known = list(state.directories.items())
        near = (path for one, path in known if getattr(one, "session_id", "") in family)
        inherited = next(near, None)
    if inherited is not None and origin in {"background", "subagent"}:
        return inherited
    directory = session_directory(task_id, str(getattr(agent, "session_id", "") or ""))
    if directory is not inherited:
        state.directories[agent] = directory
    return directory


def child_of(parent: Any, child: Any) -> None:
    """Have a subagent work in its parent's directory."""
    turn = turn_of_agent(parent)
    directory = state.directories.get(parent) if turn is None else turn.directory
    if directory is not None:
        state.directories[child] = directory


@contextmanager
def stray_turn(session_id: str, task_id: str | None) -> Iterator[Turn]:
    """A turn for one tool call that came from outside of any turn (a plugin's own dispatch)."""
    directory = session_directory(task_id, session_id)
    here = runtime()
    turn = here.turn(
        session_id=session_id,
        origin="extension",
        interactive=_interactive,
        cwd=directory,
        project_root=partial(project_of, directory),
    )
    # Its task id is no way to find it: the task's own next turn would be taken for two.
    turn.host = TurnData(None, task_id)
    _looked_up(here, turn)
    with turn:
        yield turn


def find_turn(context: dict[str, Any]) -> Turn | None:
    """The open turn of a tool call or request, by the ids that Hermes gives with it."""
    turn_id = _text(context.get("turn_id"))
    turn = turn_state.turn_here(turn_id)  # the usual case
    if turn is None:
        task_id = _text(context.get("task_id"))
        # What is left of a turn that is over must not slip into the session's next turn.
        late = _task_is_over(task_id)
        session_id = None if late else _text(context.get("session_id"))
        turn = turn_state.find_turn(turn_id=turn_id, task_id=task_id, session_id=session_id)
    return turn if isinstance(turn, Turn) and isinstance(turn.host, TurnData) else None


def turn_of_agent(agent: Any) -> Turn | None:
    """The turn that an agent is in, asked from any thread."""
    turn = turn_state.open_turns.find(lambda one: isinstance(one, Turn) and _runs(one, agent))
    return turn if isinstance(turn, Turn) else None


def turn_is_over(context: dict[str, Any]) -> bool:
    """Whether a call belongs to a turn that has ended (or was never seen to begin)."""
    here = turn_state.current_turn()
    if context.get("turn_id") or (here is not None and here.closed):
        return True
    return _task_is_over(_text(context.get("task_id")))


def task_ends(task_id: str | None) -> None:
    """A turn ends whose task was made for it alone: nobody else may call under its id."""
    if not task_id:
        return
    with state.lock:
        state.ended_tasks[task_id] = None
        while len(state.ended_tasks) > REMEMBERED_TASKS:
            state.ended_tasks.popitem(last=False)


def _task_is_over(task_id: str | None) -> bool:
    return task_id in state.ended_tasks


def _runs(turn: Turn, agent: Any) -> bool:
    return isinstance(turn.host, TurnData) and turn.host.agent() is agent


def current_agent_turn(agent: Any) -> Turn | None:
    """The turn that `agent` runs in this context."""
    turn = turn_state.current_turn()
    return turn if isinstance(turn, Turn) and not turn.closed and _runs(turn, agent) else None


def origin_of(agent: Any) -> str:
    """Where an agent's input comes from, in the words of the contract."""
    writes_as = getattr(agent, "_memory_write_origin", "")
    # A copy of the agent answers what a person asks with `/btw` in newer Hermes.
    is_kept = writes_as == "side_question" or not getattr(agent, "_persist_disabled", False)
    if writes_as == "background_review" or not is_kept:
        return "background"
    if _is_subagent(agent):
        return "subagent"
    platform = str(getattr(agent, "platform", "") or "")
    if platform == "cron" or os.environ.get("HERMES_CRON_SESSION"):
        return "cron"
    if is_batch(agent):
        return BATCH
    return {"api_server": "api", "api": "api"}.get(platform, "user")


def platform_of(agent: Any) -> str | None:
    """The platform of an agent; the batch runner's have none of their own."""
    return getattr(agent, "platform", None) or (BATCH if is_batch(agent) else None)


def _is_subagent(agent: Any) -> bool:
    return int(getattr(agent, "_delegate_depth", 0) or 0) > 0


def _interactive() -> bool | None:
    approval = sys.modules.get("tools.approval")
    if approval is None:
        return None
    try:
        return is_interactive(approval)
    except Exception:  # noqa: BLE001 - names of another Hermes; the argument is then unknown
        return None


def _conversation_of(agent: Any) -> str | None:
    """The id that stays the same over compression and is shared by subagents."""
    root = getattr(agent, "_conversation_root_id", None)
    if callable(root):
        found = root()
        return str(found) if found else None
    start = getattr(agent, "_parent_session_id", None) or getattr(agent, "session_id", None)
    return conversation_of_session(getattr(agent, "_session_db", None), start)


def conversation_of_session(database: Any, start: Any) -> str | None:
    """The same for a session, by Hermes's database of them; the session's id without one."""
    for _ in range(64):  # a chain of compressions; a loop in the data must not hang the turn
        row = database.get_session(start) if database is not None and start else None
        parent = row.get("parent_session_id") if isinstance(row, dict) else None
        if not parent:
            break
        start = parent
    return str(start) if start else None


def _user_messages(history: Any) -> int:
    return sum(1 for m in history or () if isinstance(m, dict) and m.get("role") == "user")


def _schema_of(tool_name: str) -> Any:
    registry = sys.modules.get("tools.registry")
    if registry is None:
        return None
    schema = registry.registry.get_schema(tool_name)
    return schema.get("parameters") if isinstance(schema, dict) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def hook_is_on(turn: Turn, hook: HookName) -> bool:
    """Whether any handler waits for the hook in this turn."""
    return turn.rules.manager.has(hook)
