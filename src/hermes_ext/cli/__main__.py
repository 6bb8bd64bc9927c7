"""`python -P -m hermes_ext.cli`, where no script is installed."""

import sys

from hermes_ext.cli import main

sys.exit(main())
