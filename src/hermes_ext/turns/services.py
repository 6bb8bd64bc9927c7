"""What the turns of a process have in common, in whatever directory they work."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

from hermes_ext._log import logger
from hermes_ext._values import Factory, define, field
from hermes_ext.effects import Machine
from hermes_ext.hosts.default import default_host
from hermes_ext.rules import Rules
from hermes_ext.turns.approval import Approver
from hermes_ext.turns.data_folders import DataFolders
from hermes_ext.turns.numbers import TurnNumbers
from hermes_ext.turns.schemas import SchemaChecks, ToolSchemas
from hermes_ext.turns.store import MemoryStore, SessionStore

if TYPE_CHECKING:
    from hermes_ext.chain.outcome import ChainOutcome
    from hermes_ext.confine import Minimum
    from hermes_ext.effects import ToolTable
    from hermes_ext.hooks.payloads import Event
    from hermes_ext.turns.confining import Confiner, Unavailable
    from hermes_ext.turns.decisions.log import DecisionLog
    from hermes_ext.turns.notices import Notice, Notify
    from hermes_ext.turns.session_state import SessionState

ChainListener: TypeAlias = "Callable[[str, Event, ChainOutcome], None]"
"""Called with a hook, its event as it came in, and what came of it."""


@define(eq=False)
class Services:
    """Stores, log, approver and listeners of one `Runtime`; its attributes of the same names.

    Attributes:
        store: where session state is kept.
        data: the folders of the extensions.
        listeners: called after each chain.
        warned: what `warn_once` has said.
    """

    approver: Approver | None = None
    approve_without_human: bool = False
    confiner: Confiner | None = None
    confine_unavailable: Unavailable = "block"
    confine_minimum: Minimum = "namespaces"
    schemas: SchemaChecks | None = None
    log: DecisionLog | None = None
    store: SessionStore = Factory(MemoryStore)
    data: DataFolders = Factory(lambda: DataFolders(None))
    machine: Machine = Factory(Machine)
    notify: Notify = "blocks"
    on_failure: Callable[[str], None] | None = None
    on_slow: Callable[[str], None] | None = None
    on_notice: Callable[[Notice], None] | None = None
    on_not_taken: Callable[[str], None] | None = None
    on_store_problem: Callable[[str], None] | None = None
    agent_at_work: Callable[[], bool] = lambda: False
    listeners: list[ChainListener] = Factory(list)
    warned: set[str] = Factory(set)
    _numbers: TurnNumbers | None = field(default=None, init=False)

    @classmethod
    def kept_in(
        cls,
        home: Path | None,
        approver: Approver | None,
        tool_schemas: ToolSchemas | None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Services that keep state in this folder; None: in memory."""
        schemas = None if tool_schemas is None else SchemaChecks(tool_schemas)
        services = cls(approver, schemas=schemas, data=DataFolders(home))
        if home is not None:
            from hermes_ext.turns.sqlite_store import STATE_FILE, SQLiteStore

            services.store = SQLiteStore(
                home / STATE_FILE, notify=services.report_store_problem, clock=clock
            )
        return services

    @property
    def numbers(self) -> TurnNumbers:
        """The numbers of turns, counted in the store that is used now."""
        if self._numbers is None:
            self._numbers = TurnNumbers(self.store)
        return self._numbers

    @property
    def tools(self) -> ToolTable:
        """The host's tools: those of `machine`, by default Hermes's."""
        return self.machine.tools or default_host().tools()

    def asked_for(self, rules: Rules, *names: str) -> bool:
        """Whether a handler of these rules gets one of these arguments, or the log keeps them."""
        if rules.idle:
            return False
        recorded = self.log is not None and self.log.level == "payloads"
        return recorded or not rules.manager.wants.isdisjoint(names)

    def machine_for(self, tool_name: str, cwd: Path | None) -> Machine:
        """Where a call of this tool runs."""
        schema = None if self.schemas is None else self.schemas.schema_of(tool_name)
        return self.machine.at(cwd, schema)

    def session_state(self, rules: Rules, conversation_id: str, extension: str) -> SessionState:
        """What an extension keeps for a conversation, over turns and restarts."""
        from hermes_ext.turns.session_state import SessionState

        return SessionState(self.store, conversation_id, rules.whole_name(extension))

    def data_dir(self, rules: Rules, extension: str) -> Path:
        """As `Runtime.data_dir`, where these rules are in force."""
        return self.data.of(extension, rules.homes.get(extension))

    def is_agent_at_work(self) -> bool:
        """Whether a process that the agent started is running, as the host says."""
        return self.agent_at_work()

    def report_not_taken(self, text: str) -> None:
        """Tell the host what on the disk is not in force."""
        if self.on_not_taken is not None:
            self.on_not_taken(text)

    def report_store_problem(self, text: str) -> None:
        """Tell the host that session state cannot be read or stored."""
        logger.warning("%s", text)
        if self.on_store_problem is not None:
            self.on_store_problem(text)

    def warn_once(self, text: str) -> None:
        """Log a warning, unless it was logged before."""
        if text not in self.warned:
            self.warned.add(text)
            logger.warning("%s", text)

    def close(self) -> None:
        """Write what waits for the decision log, and close the session state."""
        if self.log is not None:
            self.log.flush()
        self.store.close()
