"""Make trees of names and the names above them."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.compiler.planning.tree import circles


def without_circles(above: Mapping[str, str]) -> Mapping[str, str]:
    """Return the same mapping, with nothing above the name of each circle that stands last in it."""
    places = {name: place for place, name in enumerate(above)}
    last = {max(circle, key=places.__getitem__) for circle in circles(above)}
    return {name: "" if name in last else parent for name, parent in above.items()}
