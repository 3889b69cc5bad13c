"""Options that several commands share. This module is loaded for every `tally --help`: it imports typer alone."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout; progress goes to stderr.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, any unique beginning of it, or `last`.")]
Script = Annotated[Path, typer.Argument(metavar="SCRIPT", help="The script's file.")]
OtherScript = Annotated[Path | None, typer.Argument(metavar="[SCRIPT]", help="The rewrite; the run's own by default.")]
ScriptOption = Annotated[
    Path | None, typer.Option("--script", metavar="FILE", help="The rewrite, another way to name it.")
]
Args = Annotated[
    list[str] | None,
    typer.Option(
        "--args",
        metavar="JSON|@FILE|NAME=@FILE",
        help="The script's args: JSON, or @ and a file of it; NAME=@FILE brings in a picture or another file under a "
        "name, and may be given again.",
    ),
]
Detach = Annotated[bool, typer.Option("--detach", help="Return at once; the run is the daemon's.")]

Grant = Annotated[
    list[str] | None,
    typer.Option("--grant", metavar="NAME[,NAME]", help="Grant a capability; may be given again."),
]
EnvelopeFile = Annotated[
    Path | None,
    typer.Option("--envelope", metavar="FILE", help="Read limits from a TOML or JSON file; options win over it."),
]
Budget = Annotated[str | None, typer.Option("--budget", metavar="DOLLARS", help="Spend no more than this in the run.")]
BudgetTokens = Annotated[
    int | None, typer.Option("--budget-tokens", metavar="N", min=1, help="Use no more tokens than this in the run.")
]
Concurrency = Annotated[int | None, typer.Option("--concurrency", metavar="N", min=1, help="Calls in flight at once.")]
MaxCalls = Annotated[int | None, typer.Option("--max-calls", metavar="N", min=1, help="Calls of one launch.")]
WallClock = Annotated[
    str | None, typer.Option("--wall-clock", metavar="TIME", help="End a launch after this time: 90s, 1.5m, 2h.")
]
Repeats = Annotated[
    Literal["off", "warn", "deny", "auto"] | None,
    typer.Option("--repeats", help="What happens to a new call whose payload was already paid for."),
]
Orphans = Annotated[
    Literal["warn", "stop"] | None,
    typer.Option("--orphans", help="What happens when a rewrite skips committed calls."),
]
Fail = Annotated[
    list[str] | None,
    typer.Option(
        "--fail",
        metavar="CAP:K:KIND[:TEXT]",
        help="Fail the K-th execution of a capability (local provider only); may be given again.",
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="The model to ask; the configuration's by default.")
]
BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="A server that speaks like OpenAI's and needs no key, for --model."),
]
ModelProvider = Annotated[
    str | None, typer.Option("--provider", metavar="NAME", help="The configured provider to ask for the model.")
]
Attempts = Annotated[
    int | None, typer.Option("--attempts", metavar="N", min=1, max=20, help="Scripts to ask for at most.")
]
AutoRepair = Annotated[
    int | None,
    typer.Option(
        "--auto-repair",
        metavar="N",
        min=1,
        max=20,
        help="Let a model repair the script when it fails, unattended, with at most N rewrites.",
    ),
]
Latency = Annotated[
    str | None, typer.Option("--latency", metavar="TIME", help="Delay each call, say 50ms (local provider only).")
]
