"""``python -m advmdp`` is the command ``advmdp``."""

import sys

from advmdp.cli.commands import app

sys.exit(app())
