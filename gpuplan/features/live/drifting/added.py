"""Fields that others added to gpuplan's objects, and that take these out of force: `added.yaml` lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Any, Final

from gpuplan.compiler.base.plain import mapping, value_at
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.templates import read_rows
from gpuplan.features.live.drifting.objects import Observed
from gpuplan.features.live.dump import Dump

ROWS: Final = File(__file__).with_name("added.yaml")


def added_fields(written: Mapping[Identity, Mapping[str, Any]], dump: Dump) -> Iterator[tuple[Identity, Observed]]:
    """Yield the fields of objects that are ``written``, each with its object."""
    rows = read_rows(ROWS)
    for identity, body in written.items():
        item = dump.find(*identity[:2], identity.name, identity.namespace)
        kind = f"{identity.kind}.{identity.group}".rstrip(".")
        for row in (*rows["*"], *rows.get(kind, ())) if item else ():
            route, is_whole = tuple(row["at"]), "whole" in row
            live = value_at(item.body, route) if item else None
            found = {(*route, key): value for key, value in mapping(live).items()} if is_whole else {route: live}
            for place, value in found.items():
                if value not in (None, False, "", [], {}, row.get("idle")) and value_at(body, place) is None:
                    title, note = str(identity._replace(group="")), row["effect"]
                    yield identity, Observed(title, item, place, ABSENT, value, note=note, is_whole=is_whole)
