"""SVG as text: elements, how they look in light and in dark, and whole documents."""

from __future__ import annotations

from html import escape
from typing import Final

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.terminal.data.palette import FAINT, INK, LINE, PAGE, PATTERNS, SIZES, TINTS
from gpuplan.terminal.text import cells, printable


class Figure(NamedTuple):
    """A drawing: elements in a box, and what it says to who does not see it."""

    title: str
    description: str
    width: int
    height: int
    body: str


def svg_document(figure: Figure) -> str:
    """The drawing as a file of its own."""
    return f"{_svg(figure, 'gp', f'<style>{STYLE}</style>{PATTERNS}{_PAGE}', namespace=_NAMESPACE)}\n"


def svg_in_page(figure: Figure, key: str) -> str:
    """The drawing as a part of a page that has `STYLE` and `PATTERNS`; ``key`` is its own there."""
    return _svg(figure, key, "", namespace="")


def _svg(figure: Figure, key: str, before: str, *, namespace: str) -> str:
    described = f' aria-describedby="{key}-about"' if figure.description else ""
    about = f'<desc id="{key}-about">{text_of(figure.description)}</desc>' if figure.description else ""
    return (
        f'<svg{namespace} class="gp" role="img" viewBox="0 0 {figure.width} {figure.height}" '
        f'width="{figure.width}" height="{figure.height}" aria-labelledby="{key}-name"{described}>'
        f'<title id="{key}-name">{text_of(figure.title)}</title>{about}{before}{figure.body}</svg>'
    )


_NAMESPACE: Final = ' xmlns="http://www.w3.org/2000/svg"'
_PAGE: Final = '<rect class="gp-page" width="100%" height="100%"/>'

# --- Elements ----------------------------------------------------------------------------------------------------


def text_of(words: str) -> str:
    """Words as the text of an element or the value of an attribute: never markup, nothing that XML cannot hold."""
    return escape(printable(words))


def rect(x: float, y: float, width: float, height: float, looks: str, more: str = "") -> str:
    size = f'width="{_place(width)}" height="{_place(height)}"'
    return f'<rect class="{looks}" x="{_place(x)}" y="{_place(y)}" {size}{more}/>'


def line(x: float, y: float, to_x: float, to_y: float, looks: str) -> str:
    return f'<line class="{looks}" x1="{_place(x)}" y1="{_place(y)}" x2="{_place(to_x)}" y2="{_place(to_y)}"/>'


def words(x: float, y: float, markup: str, looks: str = "", anchor: str = "") -> str:
    """A line of text whose baseline is at ``y``; its ``markup`` is made by `text_of` and `said`."""
    named = f' class="{looks}"' if looks else ""
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{_place(x)}" y="{_place(y)}"{named}{anchored}>{markup}</text>'


def sourced(path: str, value: object, shown: str = "") -> str:
    """A value as a part of a line, with where it is from: a path as the report's JSON has it."""
    return f'<tspan data-path="{text_of(path)}">{text_of(shown or str(value))}</tspan>'


def moved(x: float, y: float, markup: str) -> str:
    """Elements at another place."""
    return f'<g transform="translate({_place(x)} {_place(y)})">{markup}</g>'


def _place(number: float) -> str:
    """To a hundredth, without needless digits: the same on any machine."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


# --- How wide text is --------------------------------------------------------------------------------------------

_WIDEST: Final = 0.58
"""The mean width of a character beside the size of the font: no name of the example is wider in common sans fonts."""


def text_width(text: str, size: float) -> float:
    """About how wide a text is; nobody knows the reader's font."""
    return cells(printable(text)) * size * _WIDEST


def shortened(text: str, width: float, size: float) -> str:
    """As much of a text as there is room for; nothing where that says nothing."""
    if text_width(text, size) <= width:
        return text
    fitting = int(width / (size * _WIDEST)) - 1
    return f"{text[:fitting]}\u2026" if fitting >= 3 else ""


# --- Looks -------------------------------------------------------------------------------------------------------


MARKS: Final = ("", "lines", "dots", "bars")
"""Patterns above a tint: with it they tell thirty-two things apart."""
MARK_OPACITY: Final = 0.18
FONT: Final = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','Liberation Sans',sans-serif"


def filled(x: float, y: float, width: float, height: float, index: int) -> str:
    """A box in the tint and the pattern of the ``index``-th of many things."""
    tint = [*TINTS][index % len(TINTS)]
    mark = MARKS[index // len(TINTS) % len(MARKS)]
    above = rect(x, y, width, height, "gp-above", f' fill="url(#gp-{mark})"') if mark else ""
    return rect(x, y, width, height, f"gp-{tint} gp-box") + above


def sized(x: float, y: float, width: float, height: float, size: int, looks: str) -> str:
    """A box in the tint of a size, from 0 on."""
    return rect(x, y, width, height, f"gp-size{size} {looks}")


def hatched(x: float, y: float, width: float, height: float) -> str:
    """Return a hatched box, which stands for a part that nothing takes."""
    return rect(x, y, width, height, "gp-box", ' fill="url(#gp-nothing)"')


def _rules(scheme: int) -> str:
    """Return the style rules that differ between light and dark."""
    fills = {"page": PAGE, "node": PAGE, "ground": PAGE, **TINTS}
    fills |= {f"size{size}": paint for size, paint in enumerate(SIZES)}
    return (
        f".gp text{{fill:{INK[scheme]}}}.gp .gp-faint{{fill:{FAINT[scheme]}}}"
        f".gp-box,.gp-edge,.gp-cut,.gp-node,.gp-gap{{stroke:{LINE[scheme]}}}"
        f".gp-mark{{stroke:{INK[scheme]};fill:{INK[scheme]}}}"
        + "".join(f".gp-{name}{{fill:{paint[scheme]}}}" for name, paint in fills.items())
    )


STYLE: Final = (
    f".gp text{{font-family:{FONT};font-size:11px}}.gp .gp-strong{{font-weight:600}}.gp .gp-large{{font-size:13px}}"
    ".gp .gp-small{font-size:10px}.gp .gp-title{font-size:16px}.gp-edge{fill:none;stroke-width:1.5}"
    f".gp-turn{{stroke-dasharray:3 3}}.gp-mark{{opacity:{MARK_OPACITY};stroke-width:1.6}}"
    f"{_rules(0)}@media screen and (prefers-color-scheme:dark){{{_rules(1)}}}"
)
"""A page that holds drawings has it once."""
