"""`demo`: the main job, for real, on the embedded defaults."""

from pathlib import Path
from typing import Annotated

import typer

from tallystick.cli import options


def demo(
    *,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the pictures go.")] = Path("demo-out"),
    home: Annotated[
        Path | None, typer.Option("--home", metavar="DIR", help="State directory; a temporary one by default.")
    ] = None,
    as_json: options.Json = False,
) -> int:
    """See the main job: fail, be refused, be repaired, pay once."""
    from tallystick.cli.demo import story

    return story.tell(out, home, as_json=as_json)
