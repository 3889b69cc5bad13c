"""`config check`, `config show`: the daemon's configuration, without the daemon."""

from pathlib import Path
from typing import Annotated

import typer

from tallystick.cli import options

WRONG = 2

File = Annotated[Path | None, typer.Argument(metavar="[FILE]", help="The file; the daemon's own by default.")]


def check(file: File = None, *, as_json: options.Json = False) -> int:
    """Look for everything that is wrong with a configuration; exit with 2 when a daemon could not run on it.

    Keys are looked for in the environment of this command, which a daemon that it starts would have too.
    """
    from tallystick.cli import configuring
    from tallystick.cli.terminal import say, say_json
    from tallystick.engine import config_check, paths

    found = config_check.examine(paths.config_path() if file is None else file)
    if as_json:
        say_json(found)
    else:
        say(configuring.findings(found))
    return 0 if found.valid else WRONG


def show(file: File = None, *, as_json: options.Json = False) -> int:
    """Show the configuration as the daemon reads it, every default filled in."""
    from tallystick.cli import configuring
    from tallystick.cli.terminal import say, say_json
    from tallystick.engine import paths

    path = paths.config_path() if file is None else file
    shown = configuring.shown(path)
    if as_json:
        say_json({"path": str(path), "exists": path.exists(), "config": shown})
    else:
        say(configuring.as_toml(path, shown))
    return 0
