"""A check on the lists of overlays, which replace those of the bases (GPU115)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, get_origin

from pydantic import BaseModel

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.documents import Document
from gpuplan.compiler.documents.scalars import read_plain
from gpuplan.compiler.planning.plan import Plan, Pool, Tenant, UnitKey, Workload
from gpuplan.compiler.policy.marks import Keyed, find_mark
from gpuplan.compiler.policy.names import Naming, Reference
from gpuplan.compiler.policy.parse import document_of


@check("GPU115", "list-replaced", Severity.WARNING)
def list_replaced(plan: Plan) -> Iterator[Finding]:
    """A list in an overlay drops entries of the base's list, and repeats none.

    ## Why
    The maps of an overlay merge with those of the base, but its lists replace the base's, as RFC 7386 says. Entries
    that were only to be added or changed then take away all others, such as the other quotas of a tenant. An overlay
    that repeats an entry as it is has meant that, and so has an empty list.

    ## Instead
    Repeat the entries that are to stay. Where the list is meant to be shorter, ignore this rule there.
    """
    parts: tuple[Pool | Tenant | Workload, ...] = (*plan.pools, *plan.tenants, *plan.workloads)
    for part in parts:
        for lost in _dropped(plan, part):
            shown = [f"`{_in_flow(item)}`" for item in lost.items[:_SHOWN]]
            more = f", and the other {len(lost.items) - _SHOWN} there" if lost.items[_SHOWN:] else ""
            them = "it" if len(lost.items) == 1 else "them"
            all_of = "the one entry" if lost.total == 1 else f"{len(lost.items)} of the {lost.total} entries"
            yield Finding(
                (part.at / lost.field).key,
                f"`{lost.field}` of {type(part).__name__.lower()} `{part.name}` loses {all_of} that the base has",
                label="a list replaces the base's, and does not merge",
                related=(Label((lost.base.origin / "spec" / lost.field).key, "what the base says"),),
                help=f"to keep {them}, add {joined(shown)} to this list{more}; "
                f"if it is meant, write `# gpuplan: ignore[GPU115] REASON` behind `{lost.field}:`",
            )


_SHOWN: Final = 6


def dropped_units(plan: Plan) -> set[UnitKey]:
    """Return the pools and units on which a tenant of the bases has a quota that its overlay most likely forgets."""
    lost = (item for tenant in plan.tenants for lost in _dropped(plan, tenant) for item in lost.items)
    return {
        (pool.name, unit.name)
        for item in lost
        if isinstance(item, dict)
        for pool in plan.pools
        if pool.name == item.get("pool")
        for unit in pool.units
        if item.get("unit", unit.name) == unit.name
    }


class _Lost(NamedTuple):
    """The entries of a base's list that an overlay's list has not, of so many."""

    field: str
    base: Document
    items: list[object]
    total: int


def _dropped(plan: Plan, part: Pool | Tenant | Workload) -> Iterator[_Lost]:
    document = document_of(part.at)
    if document is None or not document.layers[1:]:
        return
    base, overlay = document.layers[0], document.layers[-1]
    for field, keys in _lists(type(part.spec)):
        said, new = (layer.find(("spec", field))[1] for layer in (base, overlay))
        if not isinstance(said, list) or not isinstance(new, list) or not new or any(item in new for item in said):
            continue
        named = [item for item in said if not isinstance(item, dict) or any(key in item for key in keys)]
        lost = [item for item in named if not any(_is_same(keys, item, other) for other in new) and _exists(plan, item)]
        if lost:
            yield _Lost(field, Document(base.data, (base,)), lost, len(said))


@cache
def _lists(spec: type[BaseModel]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the lists of a spec whose order says nothing, and the fields of an item that are its name."""
    found = []
    for name, field in spec.model_fields.items():
        keyed = find_mark(field, Keyed)
        is_of_names = find_mark(field, Naming) or find_mark(field, Reference)
        if get_origin(field.annotation) is list and (keyed or is_of_names):
            found.append((field.alias or name, keyed.fields if keyed else ()))
    return tuple(found)


def _is_same(keys: tuple[str, ...], entry: object, other: object) -> bool:
    """Whether two items have one name: a part that one of them leaves out does not tell them apart."""
    ours, theirs = ({keys[0]: each} if isinstance(each, str) and keys else each for each in (entry, other))
    if not isinstance(ours, Mapping) or not isinstance(theirs, Mapping):
        return ours == theirs
    both = [key for key in keys if key in ours and key in theirs]
    return bool(both) and all(ours[key] == theirs[key] for key in both)


def _exists(plan: Plan, entry: object) -> bool:
    """Whether this cluster has what an entry of the base is about: it may have other pools, cut in another way."""
    if not isinstance(entry, dict) or "pool" not in entry:
        return isinstance(entry, dict) or entry not in {name for kind, name in plan.removed if kind == "PriorityClass"}
    pool = plan.find_pool(str(entry["pool"]))
    return pool is not None and any(entry.get("unit", unit.name) == unit.name for unit in pool.units)


def _in_flow(entry: object) -> str:
    if isinstance(entry, dict):
        return f"{{{', '.join(f'{key}: {_in_flow(value)}' for key, value in entry.items())}}}"
    is_plain = isinstance(entry, str) and _PLAIN.fullmatch(entry) and read_plain(entry) == (entry, None)
    return str(entry) if is_plain else json.dumps(entry, default=str)


_PLAIN: Final = regex(r"[A-Za-z0-9][A-Za-z0-9._/@+-]*")
