"""`python -P -m hermes_ext`, where no script is installed."""

import sys

from hermes_ext.cli import main

sys.exit(main())
