"""The commands name the Hermes that is here, under whatever name it was installed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome

from hermes_ext.hosts.hermes.facts.host_package import host_package

pytestmark = [pytest.mark.hermes, pytest.mark.each_host]

INSTALL = "from hermes_ext.cli import main\nraise SystemExit(main(['install']))"


def test_install_and_doctor(hermes: Callable[..., HermesHome]) -> None:
    """`install` advises no other Hermes; `doctor` finds no error and names this one."""
    home = hermes(plugins=())
    assert "not in this Python" not in home.python(INSTALL).check().stdout
    examined = home.cli("extensions", "doctor", "--no-canary")
    assert str(host_package()) in examined.check().stdout
