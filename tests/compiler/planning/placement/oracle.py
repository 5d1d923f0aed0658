"""An independent judge of layouts: grows sets of slices from the catalog's raw files, one instance at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

Vector = tuple[int, ...]
"""How many instances of each profile, in the order of the data file."""


@dataclass(frozen=True)
class Board:
    """A model as its data file says it."""

    names: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    memory_slices: int
    engines: dict[str, int]

    def vector(self, counts: dict[str, int]) -> Vector:
        return tuple(counts.get(name, 0) for name in self.names)

    def counts(self, vector: Vector) -> dict[str, int]:
        return {name: count for name, count in zip(self.names, vector, strict=True) if count}

    def within_limits(self, vector: Vector) -> bool:
        """No count is over its maximum and no media engine is used twice."""
        if any(count > row["max_instances"] for row, count in zip(self.rows, vector, strict=True)):
            return False
        return all(
            sum(row[engine] * count for row, count in zip(self.rows, vector, strict=True)) <= total
            for engine, total in self.engines.items()
        )


@cache
def board(id_: str) -> Board:
    text = (resources.files("gpuplan.compiler.catalog") / "data" / f"{id_.lower()}.yaml").read_text()
    mig = yaml.safe_load(text)["mig"]
    rows = tuple(mig["profiles"])
    return Board(tuple(row["name"] for row in rows), rows, mig["memory_slices"], mig.get("engines", {}))


@cache
def sets_of_placements(id_: str, names: tuple[str, ...]) -> frozenset[frozenset[tuple[str, int]]]:
    """All sets of (profile, start) that share no slice, the empty one included, whatever the limits."""
    spots = [
        (row["name"], start, frozenset(range(start, start + row["memory_slices"])))
        for row in board(id_).rows
        if row["name"] in names
        for start in row["starts"]
    ]
    found: set[frozenset[tuple[str, int]]] = set()

    def grow(index: int, chosen: frozenset[tuple[str, int]], taken: frozenset[int]) -> None:
        found.add(chosen)
        for later in range(index, len(spots)):
            name, start, slices = spots[later]
            if not slices & taken:
                grow(later + 1, chosen | {(name, start)}, taken | slices)

    grow(0, frozenset(), frozenset())
    return frozenset(found)


@cache
def valid_vectors(id_: str) -> frozenset[Vector]:
    """Every layout that fits, the empty one included."""
    judge = board(id_)
    vectors = {
        tuple(sum(one == name for one, _ in placements) for name in judge.names)
        for placements in sets_of_placements(id_, judge.names)
    }
    return frozenset(vector for vector in vectors if judge.within_limits(vector))


def all_vectors(id_: str, most: int) -> list[Vector]:
    """Every layout of at most so many instances with no count more than one over its profile's maximum."""
    vectors: list[Vector] = [()]
    for row in board(id_).rows:
        counts = range(row["max_instances"] + 2)
        vectors = [(*vector, count) for vector in vectors for count in counts if sum(vector) + count <= most]
    return vectors
