"""`image build`, `sandbox acceptance`: what scripts run in."""

from typing import Annotated, Literal

import typer

from tallystick.cli import options


def build(
    *,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="IMAGE",
            help="Build on this image, which has the daemon's version of Python; by default on the registry's, or on "
            "one made of this host's interpreter.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Build the image of the docker sandbox and pin it; running launches keep theirs."""
    import anyio

    from tallystick.cli import sandboxing
    from tallystick.cli.terminal import say, say_json
    from tallystick.engine import paths, sandboxes

    pin = anyio.run(sandboxes.build_image, sandboxing.state_directory(), base, sandboxing.tell)
    if as_json:
        say_json(pin)
    else:
        say(f"pinned {pin.image}\nin {paths.home() / sandboxes.PIN_NAME}, built on {pin.base}")
    return 0


def acceptance(
    *,
    driver: Annotated[
        Literal["docker", "locked"] | None,
        typer.Option("--driver", help="The driver to try; by default the one that the daemon would use."),
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Try every known way out of the sandbox; exit with 0 only when all walls hold."""
    import anyio

    from tallystick.cli import sandboxing
    from tallystick.cli.terminal import say, say_json

    found = anyio.run(sandboxing.tried, driver)
    if as_json:
        say_json(found)
    else:
        say(sandboxing.table(found))
    return 0 if found.holds else 1
