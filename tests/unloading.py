"""Taking what a test has loaded out of the process again."""

from __future__ import annotations

from hermes_ext.loading.ended import Loaded, own_packages
from hermes_ext.loading.imports.importing import forget


def unload(loaded: Loaded) -> None:
    """Take the modules of a load out of `sys.modules`; those of entry points stay."""
    for package in own_packages(loaded.ended):
        forget(package)
