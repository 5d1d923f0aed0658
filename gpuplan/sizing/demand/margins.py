"""How much of what pods were measured to use is planned for."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from gpuplan.values import NamedTuple

PERCENTILE: Final = 95.0
MARGIN: Final = Fraction(1, 5)


class Measured(NamedTuple):
    """``percentile`` is that of samples, above 0 and at most 100; ``margin`` is the part that comes on top of it."""

    percentile: float = PERCENTILE
    margin: Fraction = MARGIN
