"""The names of Hermes's packages and programs.

`hermes_ext` reads this before anything may be imported from the working directory, so nothing is
imported here, `__future__` included.
"""

DISTRIBUTION = "hermes-agent"
"""What Hermes is on PyPI; a fork has another name."""

HOME_VARIABLE = "HERMES_HOME"
"""The environment variable that says where the home is."""

PACKAGE = "hermes_cli"
"""The import package that has Hermes's program and says its version."""

PROGRAMS = (PACKAGE, "run_agent", "cli", "gateway", "tui_gateway", "batch_runner", "acp_adapter")
"""What of Hermes is run by `python -m`."""
