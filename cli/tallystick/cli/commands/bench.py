"""`bench`: measure this build, this machine, and the providers that are configured."""

from typing import Annotated

import typer

from tallystick.cli import options

#: A bench has options of its own: what stands behind its name is left to it.
PASSED_ON = {"allow_interspersed_args": False, "ignore_unknown_options": True}


def bench(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Which one; without it they are listed.")] = None,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[OPTIONS]", help="The bench's own, see tally bench NAME --help.")
    ] = None,
    *,
    as_json: options.Json = False,
) -> int:
    """Measure: the fanout of a provider, the durable path, the paper's figures; list what can be measured."""
    from tallystick.bench import catalogue

    if name is not None:
        return catalogue.run(name, [*(words or []), *(["--json"] if as_json else [])])
    from tallystick.cli.terminal import say, say_json

    known = catalogue.listing()
    if as_json:
        say_json({"benches": known})
    else:
        width = max(len(each.name) for each in known)
        say("\n".join(f"{each.name:<{width}}  {each.question}" for each in known))
    return 0
