"""How a model is asked for scripts: the part ``[authoring]`` of the configuration (docs/repair.md)."""

from typing import Annotated

import msgspec


class AuthoringSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which model writes and repairs scripts, and what one call of it may take.

    ``provider``: a name under ``[providers]``, or that of a provider which needs no settings. ``model`` takes the place
    of the one that it is configured with. ``estimate`` (USD) is what the budget sets aside for a call, ``timeout`` how
    long (s) it may take, ``max_tokens`` how long its answer may be, ``attempts`` how many scripts are asked for.
    """

    provider: str | None = None
    model: str | None = None
    estimate: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 0.05
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 300.0
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    attempts: Annotated[int, msgspec.Meta(ge=1, le=20)] = 3
