"""A cluster that gpuplan made is read by the commands that `gpuplan import` names, and comes back as it was.

What no cluster shows, `LOST` lists: a tenant's guarantee where ResourceQuotas alone bound it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpuplan.compiler.pipeline import build
from gpuplan.features.live.importing import adopt, write_import
from tests.cluster.comparisons import Record, content
from tests.cluster.delivery import MANAGER, deliveries, identity
from tests.cluster.dumps import collect
from tests.cluster.example import ExampleCluster
from tests.cluster.processes import until
from tests.features.live.round_trip import LOST

FROM_GIT = ("gpu-operator/values.yaml", "scheduling/kueue-configuration.yaml", "partitions/node-groups.yaml")
"""Files of out/ that nothing applies; people have them where they are merged into what is."""


def test_what_was_imported_changes_nothing(example: ExampleCluster, tmp_path: Path, record: Record) -> None:
    leave_own_definitions(example)
    imported = adopt(dict(dump(example, tmp_path / "cache")), tmp_path, example.name)
    write_import(imported, tmp_path)
    built = build(tmp_path, (example.name,), kustomize="off")
    assert [item.finding.message for item in built.report.diagnostics if item.is_error] == []
    for path, data in built.tree.items():
        (tmp_path / "out" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / path).write_bytes(data)

    objects = {
        identity(body): body
        for folder in deliveries(example.control_plane, tmp_path, example.name)
        for body in folder.objects
    }

    before = {identity(body) for folder in example.folders for body in folder.objects}
    assert sorted(objects.keys() - before) == []
    assert sorted(before - objects.keys()) == []
    kept = {name: body for name, body in objects.items() if f"{body['kind']} {body['metadata']['name']}" not in LOST}
    changed = [name for name, body in kept.items() if is_changed(example, body)]
    record(f"{example.name}: objects that an import changes", [], changed)


def leave_own_definitions(example: ExampleCluster) -> None:
    """Remove definitions of kinds that other tests had served: whoever has them is taken to use them."""
    own = {body["apiVersion"].partition("/")[0] for folder in example.folders for body in folder.objects}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for found in example.api.list(definitions):
        if found["spec"]["group"] not in own:
            remove(example, f"{definitions}/{found['metadata']['name']}")


def remove(example: ExampleCluster, path: str) -> None:
    example.api.delete(path)
    until(lambda: example.api.find(path) is None, "it is gone")


def is_changed(example: ExampleCluster, body: Mapping[str, Any]) -> bool:
    api = example.api
    live = api.get(api.path_of(body))
    return content(live) != content(api.apply(body, manager=MANAGER, dry_run=True))


def dump(example: ExampleCluster, cache: Path) -> Iterator[tuple[str, bytes]]:
    """What kubectl prints, and files from Git."""
    yield from collect(example.control_plane, cache)
    for path in FROM_GIT:
        if (example.out / path).exists():
            yield path, (example.out / path).read_bytes()
