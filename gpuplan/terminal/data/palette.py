"""The colours and the patterns of drawings. Each colour is a pair: the light one and the dark one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PAGE: Final = ("#ffffff", "#12161c")
INK: Final = ("#14181f", "#eef2f6")
FAINT: Final = ("#4a5361", "#b4bdc9")
LINE: Final = ("#5b6472", "#8d98a7")
TINTS: Final[Mapping[str, tuple[str, str]]] = {
    "orange": ("#f8d9a8", "#6b4511"),
    "green": ("#b5e3cf", "#145740"),
    "pink": ("#efc8de", "#6b2f54"),
    "yellow": ("#f3ecab", "#565008"),
    "teal": ("#bfe6ec", "#155064"),
    "red": ("#f7c9b8", "#703019"),
    "violet": ("#d6cdf4", "#43387a"),
    "grey": ("#d9dee5", "#3c4551"),
}
"""Those of tenants, which differ for most who tell few colours apart; nothing is told by them alone."""
SIZES: Final = (
    ("#e3ecf7", "#223349"),
    ("#cfdff2", "#294060"),
    ("#bbd2ed", "#2f4d77"),
    ("#a8c5e8", "#365a8e"),
    ("#93b6e1", "#3c66a3"),
)
"""Those of parts of GPUs, the larger the stronger; each has its name on it."""

PATTERNS: Final = (
    "<defs>"
    '<pattern id="gp-lines" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="gp-mark" d="M1 0v7"/></pattern>'
    '<pattern id="gp-dots" width="7" height="7" patternUnits="userSpaceOnUse">'
    '<circle class="gp-mark" cx="3" cy="3" r="1"/></pattern>'
    '<pattern id="gp-bars" width="7" height="7" patternUnits="userSpaceOnUse">'
    '<path class="gp-mark" d="M0 3h7"/></pattern>'
    '<pattern id="gp-nothing" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">'
    '<rect class="gp-ground" width="6" height="6"/><path class="gp-gap" d="M1 0v6"/></pattern>'
    "</defs>"
)
