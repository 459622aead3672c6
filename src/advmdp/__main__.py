"""``python -m advmdp`` is the command ``advmdp``."""

from advmdp.cli.commands import app

app(prog_name="advmdp")
