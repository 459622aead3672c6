"""``python -m advmdp`` is the command ``advmdp``."""

from advmdp.cli import app

app(prog_name="advmdp")
