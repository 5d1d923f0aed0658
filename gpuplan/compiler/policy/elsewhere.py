"""Help for fields of other programs: the way in which policies say them, and the page about it."""

from __future__ import annotations

from gpuplan.compiler.base.values import NamedTuple


class Said(NamedTuple):
    """A way to say something: words that follow "say it", and the page that has more."""

    how: str
    page: str
