"""Make trees of names and the names above them."""

from __future__ import annotations

from collections.abc import Mapping


def without_circles(above: Mapping[str, str]) -> Mapping[str, str]:
    """The same, with nothing above the first of each circle."""
    found: dict[str, str] = {}
    for name, parent in above.items():
        seen, way = {name}, parent
        while way and way not in seen:
            seen.add(way)
            way = found.get(way, "")
        found[name] = "" if way == name else parent
    return found
