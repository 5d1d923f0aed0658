"""What counts as demand: of a platform, and of what pods were measured to use."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import Final

from gpuplan.compiler.base.values import NamedTuple

PERCENTILE: Final = 95.0
MARGIN: Final = Fraction(1, 5)


class Measured(NamedTuple):
    """``percentile`` is that of samples, above 0 and at most 100; ``margin`` is the part that comes on top of it."""

    percentile: float = PERCENTILE
    margin: Fraction = MARGIN


class Basis(StrEnum):
    """What of a platform counts as demand."""

    GUARANTEED = "guaranteed"
    """What each tenant is guaranteed."""
    LIMIT = "limit"
    """What each tenant may use at most; one without a limit, all that there is."""
    WORKLOADS = "workloads"
    """The pods of each workload, when there are most of them, as far as the limits of its tenant let them run."""
