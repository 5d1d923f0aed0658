"""`Demand` documents, and tables with the same meaning: what they say, item by item."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.documents import Document, read_text
from gpuplan.compiler.documents.rules import TOO_LARGE
from gpuplan.compiler.documents.text import decode
from gpuplan.compiler.policy.marks import models_in, types_in
from gpuplan.compiler.policy.parse import origin_of, parse_as
from gpuplan.features.packing.document import Demand, DemandedWork
from gpuplan.features.packing.rules import NO_DEMAND
from gpuplan.features.packing.sizing.demand.tables import (
    RowDocument,
    Table,
    cells_of,
    number_in,
    too_long,
    whole_number_in,
    wrong_header,
)


class Asked(NamedTuple):
    """An item of a demand, with its place, and the growth that holds for it where it says none."""

    work: DemandedWork
    at: Origin
    growth: float | str | None = None


Read = tuple[tuple[Asked, ...], tuple[Diagnostic, ...]]

MOST_NEEDS: Final = 10_000
"""The most items of a demand: nobody can judge an answer to more, and it takes more than a minute."""


def too_many(at: Origin) -> Diagnostic:
    """The finding on the first item that is one too many; whoever counts reads none of those that belong together."""
    finding = Finding(
        at,
        f"demand has more than {MOST_NEEDS:,} items",
        label="one too many",
        help="write equal pods of a team as one item, with their number in `pods`",
    )
    return TOO_LARGE.report(finding)


# --- Documents ---------------------------------------------------------------------------------------------------


def asked_in_documents(name: str, content: bytes, before: int = 0) -> Read:
    """Return the items of the `Demand` documents in a file; ``before`` is how many items other files have."""
    file, refusal = decode(name, content)
    if refusal is not None:
        return (), (refusal,)
    documents, unread = read_text(name, file.text)
    found, asked, left = list(unread), list[Asked](), MOST_NEEDS - before
    for document in documents:
        if document.kind != Demand.__name__:
            found.append(_no_demand(document))
            continue
        match document.data:
            case {"spec": {"needs": list(needs)}}:
                number = len(needs)
            case _:
                number = 0
        if number > left:
            found.append(too_many(document.origin / "spec" / "needs" / left))
            break
        left -= number
        demand, wrong, left_out = parse_as(document, Demand)
        found += wrong
        at = origin_of(document, left_out) / "spec"
        for index, work in enumerate(demand.spec.needs if demand else ()):
            asked.append(Asked(work, at / "needs" / index, demand.spec.growth if demand else None))
    return tuple(asked), tuple(found)


def _no_demand(document: Document) -> Diagnostic:
    said = f"is a `{document.kind}`" if document.kind else "has no `kind`"
    finding = Finding(
        document.origin / "kind" if document.kind else document.origin,
        f"document {said}, and no `Demand`",
        label="not demand",
        notes=("gpuplan reads the platform's grants as demand if you name no file",),
        help="remove it, or write `kind: Demand`",
    )
    return NO_DEMAND.report(finding)


# --- Tables ------------------------------------------------------------------------------------------------------


def is_demand(table: Table) -> bool:
    return "team" in table.names or bool({"pods", "memory"} <= table.names)


def asked_in_table(table: Table, before: int = 0) -> Read:
    """Return the rows as items: columns are called as the fields of an item in a document."""
    if len(table.rows) > MOST_NEEDS - before:
        return (), (too_many(RowDocument(table, table.rows[MOST_NEEDS - before], {}).origin),)
    found = [*wrong_header(table, tuple(_columns()), ("team",)), *too_long(table)]
    if not table.rows:
        finding = Finding(
            table.header, "table of demand has no rows", label="nothing below it", help="add a row for each need"
        )
        found.append(NO_DEMAND.report(finding))
    if found:
        return (), tuple(found)
    asked: list[Asked] = []
    for row in table.rows:
        data = _nested(cells_of(table, row), table.separator)
        document = RowDocument(table, row, data)
        work, wrong, left_out = parse_as(document, DemandedWork)
        found += wrong
        if work is not None:
            asked.append(Asked(work, origin_of(document, left_out)))
    return tuple(asked), tuple(found)


@cache
def _columns() -> Mapping[str, object]:
    """Return the type of each column's cells, as in `_READERS`: text, a number, a whole one or words."""
    DemandedWork.model_rebuild()
    return dict(_columns_of(DemandedWork, ""))


def _columns_of(model: type[BaseModel], before: str) -> Iterator[tuple[str, object]]:
    for name, field in model.model_fields.items():
        column = f"{before}{field.alias or name}"
        parts = [*types_in(field.annotation)]
        inner = next(models_in(field.annotation), None)
        is_list = any(get_origin(part) is list for part in parts)
        if inner is not None and not is_list:
            yield from _columns_of(inner, f"{column}.")
        elif any(get_origin(part) is list and str in types_in(get_args(part)[0]) for part in parts if inner is None):
            yield column, list[str]
        else:
            yield column, next((kind for kind in (float, int) if kind in parts), str)


def _nested(cells: Mapping[str, str], separator: str) -> Mapping[str, Any]:
    """Return the cells as a document has them."""
    data: dict[str, Any] = {}
    for column, cell in cells.items():
        *route, name = column.split(".")
        here = data
        for part in route:
            here = here.setdefault(part, {})
        kind = _columns()[column]
        here[name] = _READERS[kind](cell, separator)
    return data


_WORD: Final = re.compile(r"[^\s,;|]+")
_READERS: Final[Mapping[object, Callable[[str, str], object]]] = {
    str: lambda cell, _: cell,
    int: whole_number_in,
    float: number_in,
    list[str]: lambda cell, _: _WORD.findall(cell),
}


def tables_named(asked: Sequence[Asked]) -> Iterator[tuple[Asked, str]]:
    """The files with measured throughput that items name."""
    for item in asked:
        if item.work.service and isinstance(item.work.service.throughput, str):
            yield item, item.work.service.throughput
