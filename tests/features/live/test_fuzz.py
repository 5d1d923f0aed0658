"""Dumps of any shape: never a traceback, and nothing of a Secret anywhere."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
import yaml

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.pipeline import build
from gpuplan.features.live.importing import adopt
from gpuplan.features.live.views import files, summary
from gpuplan.terminal.formats import Format, findings
from gpuplan.terminal.text import Theme
from tests.cli.runs import run
from tests.features.live.round_trip import is_dumped, nodes_of
from tests.laws.orders.platforms import CLUSTER, SCHEDULERS, random_platform

TIMES: Final = 2_000 if os.environ.get("GPUPLAN_TEST_PROOF") else 24
PART: Final = 24
PLANTED: Final = "hunter2-planted"
ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 7, 2**70, 1.5, float("inf"), "", "0", "x" * 300, "\0", "\u202e", "ä", "../../x", "all"),
    *([], {}, [None], [[]], [{}], {"": ""}, {"a": None}, "1g.10gb", "nvidia.com/gpu", "version: v1\nmig-configs: 3\n"),
)
SECRET: Final = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "token", "annotations": {"note": PLANTED}},
    "stringData": {"password": PLANTED},
}


@cache
def dumps() -> tuple[dict[str, Any], ...]:
    """What runs on three small clusters, as one List each."""
    return tuple(_dump(number, scheduler) for number, scheduler in enumerate(SCHEDULERS))


def _dump(seed: int, scheduler: str) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        rng = random.Random(seed)
        built = None
        while built is None or not built.tree:
            root = Path(folder) / str(rng.random())
            root.mkdir()
            random_platform(rng, scheduler=scheduler).write(root)
            built = build(root, (CLUSTER,))
    items = [body for path, data in built.tree.items() if is_dumped(path) for body in yaml.safe_load_all(data)]
    items += yaml.safe_load(nodes_of(built.report.plans[0]))["items"]
    return {"apiVersion": "v1", "kind": "List", "items": [item for item in items if isinstance(item, dict)]}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every part of a value, as what holds it and where."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from places(item)


def routes(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each part of a value is."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*above, key)
        yield from routes(item, (*above, key))


def kinds_of_places() -> Iterator[tuple[int, int, tuple[Any, ...]]]:
    """Each field of each kind once, whatever item of a list it is in: a dump, an object in it, and where."""
    seen = set()
    for number, dump in enumerate(dumps()):
        for index, body in enumerate(dump["items"]):
            for route in routes(body):
                place = body.get("kind"), tuple("" if isinstance(key, int) else key for key in route)
                if place not in seen:
                    seen.add(place)
                    yield number, index, route


def with_value(number: int, index: int, route: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A dump with another value at a place, and a Secret."""
    dump = dumps()[number]
    body = holder = deepcopy(dump["items"][index])
    for key in route[:-1]:
        holder = holder[key]
    holder[route[-1]] = value
    return {**dump, "items": [*dump["items"][:index], body, *dump["items"][index + 1 :], SECRET]}


def mutated(rng: random.Random) -> dict[str, Any]:
    dump = deepcopy(rng.choice(dumps()))
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        holder, key = rng.choice([*places(dump["items"])])
        match rng.randrange(5):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[rng.choice(["", "x" * 80, "spec", "names"])] = holder.pop(key)
            case 2:
                other, there = rng.choice([*places(dump["items"])])
                holder[key] = deepcopy(other[there])
            case _:
                holder[key] = deepcopy(rng.choice(ODD))
    dump["items"].insert(rng.randrange(len(dump["items"]) + 1), SECRET)
    return dump


def text_of(rng: random.Random, dump: dict[str, Any]) -> bytes:
    """As JSON or as YAML, whole or cut off."""
    text = json.dumps(dump) if rng.random() < 0.7 else yaml.safe_dump(dump, sort_keys=False, allow_unicode=True)
    cut = rng.randrange(len(text)) if rng.random() < 0.1 else len(text)
    return text[:cut].encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("start", range(0, TIMES, PART))
def test_a_dump_of_any_shape_is_read(start: int, tmp_path: Path) -> None:
    for seed in range(start, min(start + PART, TIMES)):
        rng = random.Random(seed)
        try:
            imported = adopt({"dump": text_of(rng, mutated(rng))}, tmp_path, "lab")
        except GpuplanError as error:
            told = str(error)
        else:
            told = findings(imported.report, Format.FULL, Theme()) + files(imported) + summary(imported, dry=True)
        assert PLANTED not in told, seed


EVERY: Final = 1 if os.environ.get("GPUPLAN_TEST_PROOF") else 40
SHAPES: Final[tuple[Any, ...]] = ({"a": "b"}, [[]], None, 7, "", [{}], {"": None}, True)


@pytest.mark.parametrize("start", range(8))
def test_any_part_of_an_object_may_have_another_shape(start: int, tmp_path: Path) -> None:
    """Each eighth place, or some of these."""
    for turn, (number, index, route) in enumerate([*kinds_of_places()][start :: 8 * EVERY]):
        dump = with_value(number, index, route, deepcopy(SHAPES[turn % len(SHAPES)]))
        try:
            imported = adopt({"dump.json": json.dumps(dump).encode()}, tmp_path, "lab")
        except GpuplanError as error:
            told = str(error)
        else:
            told = findings(imported.report, Format.FULL, Theme()) + summary(imported, dry=True)
        assert PLANTED not in told, route


def test_a_file_with_a_secret_that_cannot_be_read_shows_no_line_of_it(tmp_path: Path) -> None:
    text = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData:\n  a: '{PLANTED}\n  b: [\n"
    (tmp_path / "secret.yaml").write_text(text)

    done = run("import", "secret.yaml", "-c", "lab", cwd=tmp_path)

    assert "secret.yaml" in done.out
    assert PLANTED not in done.out + done.err
