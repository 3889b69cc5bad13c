"""What can be set of the local provider."""

from typing import Literal

import msgspec


class LocalSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the ``local`` provider, which is free of charge in reality.

    ``price``: "estimate" bills each call at the catalogue's estimate, so that budgets and demonstrations mean
    something; the cost is simulated. "zero" bills nothing.
    """

    price: Literal["estimate", "zero"] = "estimate"
