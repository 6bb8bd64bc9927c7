"""The host whose home and configuration apply where no other host is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_ext.hosts.facts import HostFacts


def default_host() -> HostFacts:
    """The facts of Hermes Agent."""
    from hermes_ext.hosts.hermes.facts.hermes import HERMES

    return HERMES
