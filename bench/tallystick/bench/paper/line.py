"""One line of the comparison."""

import msgspec


class Line(msgspec.Struct, frozen=True):
    """A figure of the paper beside ours.

    Attributes:
        study: the paper's name of the study, or its table.
        what: what is counted.
        paper: its figure.
        ours: our figure.
        reason: why they differ; empty where they do not.
        timed: whether it is a time, which is not expected to be equal.
    """

    study: str
    what: str
    paper: str
    ours: str
    reason: str = ""
    timed: bool = False

    @property
    def agrees(self) -> bool:
        """Whether the figures are the same."""
        return self.paper == self.ours

    @property
    def unexplained(self) -> bool:
        """Whether it differs and nobody says why."""
        return not (self.agrees or self.timed or self.reason)
