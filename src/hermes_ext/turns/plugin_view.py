"""`Runtime.plugin_manager`: what pluggy has registered, for whoever may look and not change."""

from __future__ import annotations

from collections.abc import Callable

from hermes_ext.hooks.plugins import Plugin, Plugins
from hermes_ext.turns.services import ChainListener, Services


class PluginView:
    """The extensions in force, under the names of `pluggy.PluginManager`'s own methods.

    Nothing here registers, unregisters or blocks, so nobody can take a guard away through it. It
    always shows what is in force now, after a reload too.
    """

    __slots__ = ("_in_force", "_services")

    def __init__(self, in_force: Callable[[], Plugins], services: Services) -> None:
        self._in_force = in_force
        self._services = services

    def _all(self) -> list[Plugin]:
        return [plugin for _, plugin in self._in_force().list_name_plugin()]  # type: ignore[misc]

    @property
    def project_name(self) -> str:
        """What pluggy calls this project."""
        return self._in_force().project_name

    def list_name_plugin(self) -> list[tuple[str, Plugin]]:
        """Each extension with its name, in the order of registration."""
        return [(one.name, one) for one in self._all()]

    def get_plugins(self) -> set[Plugin]:
        """The extensions."""
        return set(self._all())

    def get_plugin(self, name: str) -> Plugin | None:
        """The extension of this name, None if it is not in force."""
        return self._in_force().get_plugin(name)

    def has_plugin(self, name: str) -> bool:
        """Whether an extension of this name is in force."""
        return self._in_force().has_plugin(name)

    def get_name(self, plugin: Plugin) -> str | None:
        """The name of an extension, None if it is not in force."""
        return self._in_force().get_name(plugin)

    def is_registered(self, plugin: Plugin) -> bool:
        """Whether an extension is in force."""
        return self._in_force().is_registered(plugin)

    def trace(self, listener: ChainListener) -> Callable[[], None]:
        """Have `listener(hook, event, outcome)` called after each chain, in the chain's thread.

        What it raises goes to the log and changes no outcome.

        Returns:
            A function that ends it.
        """
        listeners = self._services.listeners
        listeners.append(listener)

        def undo() -> None:
            if listener in listeners:
                listeners.remove(listener)

        return undo
