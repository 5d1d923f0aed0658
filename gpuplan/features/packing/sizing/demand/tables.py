"""Tables as spreadsheets write them: CSV with a header row, each row and cell with its place."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import (
    Diagnostic,
    Finding,
    Location,
    Origin,
    Path,
    Position,
    SourceFile,
    Span,
    WholeFile,
)
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import closest, count, listing
from gpuplan.compiler.documents import Document, Layer
from gpuplan.compiler.documents.remarks import MAX_FINDINGS
from gpuplan.compiler.documents.rules import TOO_LARGE
from gpuplan.compiler.documents.text import check_text, decode
from gpuplan.features.packing.rules import TABLE_NOT_READ

MAX_ROWS: Final = 1_000_000
MAX_COLUMNS: Final = 1_000
_SEPARATORS: Final = ",;\t"
_HINT: Final = "sep="
"""The beginning of a first line that tells Excel the separator."""


class Table(Value):
    """The rows of a table; names of columns are as they are written, without the space around them."""

    file: SourceFile
    separator: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    header_line: int = 1

    @property
    def header(self) -> Origin:
        return Origin(_Header(self))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the columns by which tables are told apart: in lower case, without what is between words."""
        return frozenset(map(plain, self.columns))


class Row(Value):
    """The cells of one row, and the lines that it stands on."""

    cells: tuple[str, ...]
    line: int
    last: int


def plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum() or character == ".")


def read_table(name: str, content: bytes) -> tuple[Table | None, tuple[Diagnostic, ...]]:
    """The table in a file; None where nothing can be made of it."""
    file, refusal = decode(name, content)
    if refusal is None:
        refusal = check_text(file)
    return (None, (refusal,)) if refusal else table_of(file)


def table_of(file: SourceFile) -> tuple[Table | None, tuple[Diagnostic, ...]]:
    lines = file.lines
    is_hinted = lines[0].lower().startswith(_HINT)
    skipped = 1 if is_hinted else 0
    separator = lines[0][len(_HINT) : len(_HINT) + 1] if is_hinted else ""
    first = next((line for line in lines[skipped:] if line.strip()), "")
    if separator not in _SEPARATORS or not separator:
        separator = max(_SEPARATORS, key=first.count)
    reader = csv.reader((f"{line}\n" for line in lines[skipped:]), delimiter=separator, strict=True)
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    header_line = line = skipped + 1
    try:
        for cells in reader:
            start, line = line, skipped + reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            stripped = tuple(cell.strip() for cell in cells)
            if not columns:
                columns, header_line = stripped, start
                if len(columns) > MAX_COLUMNS:
                    message = f"table has more than {MAX_COLUMNS:,} columns"
                    return None, (_unread(file, start, message, "write one row for each need"),)
                continue
            if len(rows) >= MAX_ROWS:
                return None, (_unread(file, start, f"table has more than {MAX_ROWS:,} rows", "split it into several"),)
            rows.append(Row(stripped, start, line - 1))
    except csv.Error as error:
        help_ = "write it as CSV, with quotes around cells that hold the separator or line breaks"
        return None, (_unread(file, line, f"row cannot be read: {error}", help_),)
    while columns and not columns[-1]:  # what a separator at the end of lines leaves
        columns = columns[:-1]
    return Table(file, separator, columns, tuple(rows), header_line), ()


def rest_unread(file: SourceFile) -> Diagnostic:
    """The finding after which a table with `MAX_FINDINGS` is read no further."""
    message = f"file has {MAX_FINDINGS:,} findings; the rest is not read"
    return TOO_LARGE.report(Finding(Origin(WholeFile(file)), message))


def _unread(file: SourceFile, line: int, message: str, help_: str) -> Diagnostic:
    at = Origin(_Line(file, line))
    return TABLE_NOT_READ.report(Finding(at, message, help=help_))


# --- Rows --------------------------------------------------------------------------------------------------------


def wrong_header(table: Table, known: Sequence[str], needed: Sequence[str] = ()) -> Iterator[Diagnostic]:
    """Yield what is wrong with the columns: unknown ones, those that are there twice, and those that are missing."""
    seen: set[str] = set()
    for column in table.columns:
        at = table.header / column
        if column in seen:
            finding = Finding(at, f"column `{column}` is there twice", label="the table", help="remove one of them")
            yield TABLE_NOT_READ.report(finding)
        elif column not in known:
            near = closest(column, known)
            yield TABLE_NOT_READ.report(
                Finding(
                    at,
                    f"unknown column `{column}`",
                    label=f"did you mean `{near}`" if near else "not a column of this table",
                    notes=(f"the columns are {listing(known, None)}",),
                    help=f"write `{near}`" if near else "remove it",
                )
            )
        seen.add(column)
    meant = {closest(column, known) for column in table.columns if column not in known}
    for column in needed:
        if column not in seen and column not in meant:
            finding = Finding(
                table.header,
                f"table has no column `{column}`",
                label=f"`{column}` is missing",
                help=f"add the column `{column}`",
            )
            yield TABLE_NOT_READ.report(finding)


def too_long(table: Table) -> Iterator[Diagnostic]:
    """Rows with more cells than there are columns: most often a decimal comma, or a separator within a text."""
    for row in table.rows:
        if any(row.cells[len(table.columns) :]):
            finding = Finding(
                Origin(_Line(table.file, row.line)),
                f"row has {count(len(row.cells), 'cell')}, and the table {count(len(table.columns), 'column')}",
                label=f"`{row.cells[len(table.columns)]}` is below no column",
                help=f"put a cell that holds `{table.separator}` in quotes",
            )
            yield TABLE_NOT_READ.report(finding)


def cells_of(table: Table, row: Row) -> Mapping[str, str]:
    """The cells that are not empty, by column."""
    return {column: cell for column, cell in zip(table.columns, row.cells, strict=False) if cell and column}


class RowDocument(Document):
    """A row as a document: routes into it are the columns' names, with dots between what is nested."""

    __slots__ = ("row", "table")

    def __init__(self, table: Table, row: Row, data: Mapping[str, Any]) -> None:
        super().__init__(data, (Layer(table.file, data, 0, 0, row.line - 1),))
        self.table = table
        self.row = row

    @property
    def title(self) -> str:
        return ""

    def locate(self, path: Path, *, on_key: bool = False) -> Location:  # noqa: ARG002 - a column has its key above
        for length in range(len(path), 0, -1):
            column = ".".join(str(part) for part in path[:length] if isinstance(part, str))
            if column in self.table.columns:
                return cell_location(self.table, self.row, column)
        return line_location(self.table.file, self.row.line)


def cell_location(table: Table, row: Row, column: str) -> Location:
    """Where a cell stands: its columns in the line where no quotes hide them, else the line."""
    return _cell(table, row.line, row.last, table.columns.index(column), f"column {column}")


def line_location(file: SourceFile, line: int, part: str = "") -> Location:
    text = file.lines[line - 1] if line <= len(file.lines) else ""
    return Location(file, Span(Position(line, 1), Position(line, max(len(text), 1) + 1)), part)


def _cell(table: Table, line: int, last: int, index: int, part: str) -> Location:
    text = table.file.lines[line - 1]
    cells = text.split(table.separator)
    if last > line or '"' in text or index >= len(cells):
        return line_location(table.file, line, part)
    start = sum(len(cell) + 1 for cell in cells[:index])
    blank = len(cells[index]) - len(cells[index].lstrip())
    width = max(len(cells[index].strip()), 1)
    begin = start + (blank if cells[index].strip() else 0) + 1
    return Location(table.file, Span(Position(line, begin), Position(line, begin + width)), part)


class _Header(Value):
    """The header row; routes into it are names of columns."""

    table: Table
    title: str = ""

    def locate(self, path: Path, *, on_key: bool = False) -> Location:  # noqa: ARG002 - a `Source`
        line = self.table.header_line
        if path and path[0] in self.table.columns:
            return _cell(self.table, line, line, self.table.columns.index(str(path[0])), "")
        return line_location(self.table.file, line)


class _Line(Value):
    file: SourceFile
    line: int
    title: str = ""

    def locate(self, path: Path, *, on_key: bool = False) -> Location:  # noqa: ARG002 - a `Source`
        return line_location(self.file, self.line)


# --- Cells as data -----------------------------------------------------------------------------------------------


def number_in(cell: str, separator: str) -> int | float | str:
    """A number as spreadsheets write it, with a comma where `;` divides cells; other text as it is."""
    text = cell.replace(",", ".") if separator == ";" and cell.count(",") == 1 else cell
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return cell
    return float(text) if _FRACTION.search(text) else int(text)


def whole_number_in(cell: str, separator: str) -> int | float | str:
    """The same, but for digits in groups of three: `1.000` is a thousand to some, and one to others."""
    return cell if _GROUPS.fullmatch(cell) else number_in(cell, separator)


_LONGEST_NUMBER: Final = 40
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_FRACTION: Final = re.compile(r"[.eE]")
_GROUPS: Final = re.compile(r"[+-]?[0-9]{1,3}([.,][0-9]{3})+")
