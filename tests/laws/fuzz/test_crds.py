"""Whatever is done to a definition, objects are checked by it, or a finding names its file: never a traceback."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.manifests import Manifest, check_schemas, unusable_definitions
from tests.subjects import A_CLUSTER

CHANGES = int(os.environ.get("GPUPLAN_TEST_FUZZ", "12")) * 25
"""How many definitions to try in each way; raise it to search longer."""

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
                            "spec": {
                                "type": "object",
                                "required": ["mode"],
                                "properties": {
                                    "mode": {"type": "string", "enum": ["a", "b"], "nullable": True},
                                    "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 63},
                                    "count": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "default": 1},
                                    "size": {
                                        "x-kubernetes-int-or-string": True,
                                        "anyOf": [{"type": "integer"}, {"type": "string"}],
                                    },
                                    "items": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "object", "additionalProperties": {"type": "string"}},
                                    },
                                    "pod": {"type": "object", "x-kubernetes-embedded-resource": True},
                                },
                                "allOf": [{"not": {"required": ["count", "size"]}}],
                            },
                        },
                    }
                },
            }
        ],
    },
}
WIDGET = Manifest(
    "x",
    {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {"mode": "a", "name": "abc", "count": 1, "items": [{"a": "b"}]},
    },
    is_foreign=True,
    about=A_CLUSTER,
    trace=None,
)
TELLING_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1.5,
        10**30,
        float("nan"),
        float("inf"),
        "",
        "a",
        "(a+)+$[",
        "(?=a)",
        "\ud7ff",
        b"\xff",
    ),
    *([], {}, [None], [[]], {"": None}, {1: 2}, {"$ref": "#"}, {"type": "object"}, [{"type": "integer"}], ["type"]),
)
TELLING_BYTES = b"\x00\t\n\r \"#&'*,-.:<>?@[]`{|}!%~0\x7f\x80\xc3\xff"


def places(value: Any, route: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if route:
        yield route
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*route, key))


def changed(chance: random.Random) -> dict[str, Any]:
    """The definition with something else at one or two places, or nothing."""
    crd = deepcopy(CRD)
    for _ in range(chance.randint(1, 2)):
        *way, last = chance.choice(list(places(crd)))
        around: Any = crd
        for part in way:
            around = around[part]
        if chance.random() < 0.2:
            del around[last]
        else:
            around[last] = deepcopy(chance.choice(TELLING_VALUES))
    return crd


def check_survives(folder: Path, data: bytes) -> None:
    folder.mkdir()
    (folder / "widgets.yaml").write_bytes(data)
    try:
        misfits = check_schemas([WIDGET], "1.32", folder)
    except GpuplanError as error:
        assert "there is no CustomResourceDefinition" in error.message  # noqa: PT017 - one of two good ends
        return
    found = unusable_definitions(folder, folder)
    assert all(item.finding.at.locate().file.path == "widgets.yaml" for item in found)
    assert not (found and misfits)


@pytest.mark.parametrize("seed", range(3))
def test_changed_values_never_raise(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    for number in range(CHANGES // 3):
        text = yaml.safe_dump(changed(chance), allow_unicode=True)
        check_survives(tmp_path / str(number), text.encode(errors="surrogatepass"))


def test_changed_bytes_never_raise(tmp_path: Path) -> None:
    chance = random.Random("bytes")
    original = yaml.safe_dump(CRD).encode()
    for number in range(CHANGES // 2):
        place = chance.randrange(len(original))
        byte = chance.choice(TELLING_BYTES) if chance.random() < 0.7 else chance.randrange(256)
        check_survives(tmp_path / str(number), original[:place] + bytes([byte]) + original[place + 1 :])
