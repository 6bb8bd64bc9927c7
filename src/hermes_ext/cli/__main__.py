"""`python -m hermes_ext.cli`, where no script is installed."""

from __future__ import annotations

import sys

from hermes_ext.cli import main

sys.exit(main())
