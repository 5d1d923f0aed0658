"""How text is to look where it will be read: colours, width, and the way to the files."""

from __future__ import annotations

from enum import StrEnum

from gpuplan.diagnostics import Location, Severity
from gpuplan.values import Value


class Style(StrEnum):
    """What a piece of text is; the value is its ANSI colour (SGR parameters)."""

    ERROR = "1;31"
    WARNING = "1;33"
    NOTE = "1;36"
    HELP = "1;32"
    FRAME = "1;34"
    STRONG = "1"
    FAINT = "2"
    ADDED = "32"
    REMOVED = "31"


SEVERITY_STYLES = {Severity.ERROR: Style.ERROR, Severity.WARNING: Style.WARNING, Severity.NOTE: Style.NOTE}


class Theme(Value):
    """Colours are used only when asked for. ``width`` is in terminal cells; source lines are cropped to it.

    ``root`` is the way from where the reader stands to the repository's root: empty, or a path that ends in ``/``.
    """

    color: bool = False
    width: int = 120
    root: str = ""

    def paint(self, text: str, style: Style) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.color and text else text

    def path(self, path: str) -> str:
        """A file's path as the reader can open it."""
        return self.root + path

    def place(self, location: Location, *, column: bool = False) -> str:
        """``pool.yaml:3``, ``demand.csv:12, column team``, or a file alone where a finding is about it as such."""
        start = location.span.start
        line = "" if location.is_whole_file else f":{start.line}"
        part = f", {location.part}" if location.part else f":{start.column}" if column and line else ""
        return f"{self.path(location.file.path)}{line}{part}"


PLAIN = Theme()
