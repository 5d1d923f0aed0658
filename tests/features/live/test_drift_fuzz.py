"""Dumps of any shape, and fields that anybody may have changed: each is told, and nothing ends in a traceback."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest

from gpuplan.compiler.base.plain import mapping
from gpuplan.compiler.pipeline import Report
from gpuplan.features.live.drifting import Drifting, compare_with
from gpuplan.features.live.views import shown_drift
from gpuplan.features.tracing.lines import spelled
from gpuplan.terminal.text import Theme
from tests.features.live.dumps import Body, compared, dump_of, example, nodes, synced
from tests.features.live.mutations import Mutation, other_value, whole_leaves
from tests.features.live.test_fuzz import ODD, places

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = (BOMB, "[" * 20_000, "a: 2020-01-01\n? [1, 2]\n: x\n", "a: .nan\n1: 2\n", "- a\n- b\n")


@pytest.mark.parametrize("seed", range(500 if os.environ.get("GPUPLAN_TEST_PROOF") else 6))
def test_a_dump_of_any_shape_is_compared(seed: int) -> None:
    rng = random.Random(seed)
    bodies = [*synced(example("dev")), *nodes(example("dev"))]
    for _ in range(60):
        holder, key = rng.choice([*places(bodies)])
        holder[key] = deepcopy(rng.choice(ODD))

    shown([body for body in map(mapping, bodies) if body])


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_may_hold_anything(text: str) -> None:
    bodies = synced(example("dev"))
    maps = [body for body in bodies if body["kind"] == "ConfigMap" and "\n" in next(iter(body["data"].values()))]
    body = maps[0]
    key = next(iter(body["data"]))
    body["data"][key] = f"{text}\n"

    shown(bodies)
    assert any(found.title.endswith(body["metadata"]["name"]) for found in compared(bodies, "dev").drifts)


def shown(bodies: Sequence[Mapping[str, Any]]) -> None:
    found = compare_with(example("dev"), dump_of(bodies))
    drifting = Drifting(Report(found.opponents, (), (), 1), "dev", found.drifts, found.left_alone, found.unjudged, 1)
    for form in ("table", "markdown"):
        assert shown_drift(drifting, form, Theme(width=80))
    assert json.loads(shown_drift(drifting, "json", Theme()))["differences"]


@pytest.mark.parametrize("seed", range(3))
def test_one_field_of_each_object_is_told_at_its_place(seed: int) -> None:
    rng = random.Random(seed)
    bodies = synced(example("prod"))
    changed = dict(filter(None, (changed_field(body, rng) for body in bodies)))

    told: dict[str, list[str]] = {}
    for found in compared(bodies).drifts:
        told.setdefault(found.title, []).append(found.path)

    assert len(changed) > 100
    assert told.keys() == changed.keys()
    assert [title for title, path in changed.items() if not any(map(path.startswith, told[title]))] == []


def changed_field(body: Body, rng: random.Random) -> tuple[str, str] | None:
    """Change one value of an object, in place, and say which; an item's key tells which item it is."""
    leaves = [
        (route, value)
        for route, value in whole_leaves(body, ())
        if route[0] not in ("apiVersion", "kind") and route[-1] not in ("name", "namespace") and value not in _EMPTY
    ]
    metadata = body["metadata"]
    title = f"{body['kind']} {'/'.join(filter(None, (metadata.get('namespace'), metadata['name'])))}"
    if not leaves:
        return None
    route, value = rng.choice(leaves)
    put(body, Mutation(route, "replace", other_value(value, rng)))
    return title, spelled(route)


_EMPTY: tuple[Any, ...] = ({}, [], "", None)


def put(body: Any, mutation: Mutation) -> None:
    for part in mutation.route[:-1]:
        body = body[part]
    body[mutation.route[-1]] = mutation.value
