"""Strategic merge patches, with kustomize as the judge of what comes of them."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from gpuplan.compiler.manifests.merging.strategic import Patched, patched
from gpuplan.compiler.manifests.shapes import shape_of_pods
from tests import kustomizing

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "chat"}, "annotations": {"a": "1", "b": "2"}},
    "spec": {
        "nodeSelector": {"pool": "gpus"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 100},
        "imagePullSecrets": [{"name": "one"}],
        "containers": [
            {
                "name": "main",
                "image": "example.com/chat:1",
                "command": ["serve"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "ports": [{"name": "http", "containerPort": 8000}, {"name": "grpc", "containerPort": 8001}],
                "readinessProbe": {"tcpSocket": {"port": "http"}},
                "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "unit-0"}]},
                "volumeMounts": [{"name": "config", "mountPath": "/etc/workload", "readOnly": True}],
            }
        ],
        "volumes": [{"name": "config", "configMap": {"name": "chat"}}],
    },
}

PATCHES = Path(__file__).with_name("patches.yaml")


def laid(patch: object) -> Patched:
    assert isinstance(patch, dict)
    return patched(deepcopy(TEMPLATE), patch, shape_of_pods("1.34"))


def test_what_comes_of_a_patch_is_what_kustomize_makes_of_it(tmp_path: Path) -> None:
    """kustomize puts what is new before what is there: items are compared by what tells them apart."""
    patches = yaml.safe_load(PATCHES.read_text())
    built = _built(patches, tmp_path)

    assert len(built) == len(patches) > 20
    for number, patch in enumerate(patches):
        found = laid(patch)
        assert found.faults == (), patch
        assert in_order(found.body) == in_order(built[f"case-{number}"]), patch


def _built(patches: list[Any], folder: Path) -> dict[str, Any]:
    """The templates of as many Deployments, each with its patch, by their names; one run takes all."""
    head = {"apiVersion": "apps/v1", "kind": "Deployment"}
    objects, lines = [], []
    for number, patch in enumerate(patches):
        name = f"case-{number}"
        objects.append({**head, "metadata": {"name": name}, "spec": {"template": deepcopy(TEMPLATE)}})
        laid_over = {**head, "metadata": {"name": name}, "spec": {"template": patch}}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(laid_over))
        lines.append({"path": f"{name}.yaml"})
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({"resources": ["objects.yaml"], "patches": lines}))
    return {
        item["metadata"]["name"]: item["spec"]["template"] for item in yaml.safe_load_all(kustomizing.kustomize(folder))
    }


def in_order(value: Any) -> Any:
    """Lists of named items in the order of their names; kustomize leaves out what has become empty."""
    if isinstance(value, dict):
        return {
            key: part for key, item in value.items() if (part := in_order(item)) not in ({}, []) or key == "emptyDir"
        }
    if isinstance(value, list):
        items = [in_order(item) for item in value]
        return (
            sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
            if items and all(isinstance(item, dict) for item in items)
            else items
        )
    return value


def test_what_is_there_stays_where_it_is() -> None:
    patch = {"spec": {"containers": [{"name": "proxy"}, {"name": "main", "env": [{"name": "C"}, {"name": "A"}]}]}}
    containers = laid(patch).body["spec"]["containers"]

    assert [container["name"] for container in containers] == ["main", "proxy"]
    assert [variable["name"] for variable in containers[0]["env"]] == ["A", "B", "C"]


def test_what_is_patched_stays_as_it_was() -> None:
    before = deepcopy(TEMPLATE)

    patched(before, {"spec": {"nodeSelector": {"zone": "a"}, "volumes": [{"name": "x"}]}}, shape_of_pods("1.34"))

    assert before == TEMPLATE


def test_each_leaf_is_known_by_its_place_in_the_patch() -> None:
    patch = {"spec": {"containers": [{"name": "main", "args": ["x"]}, {"name": "proxy", "env": [{"name": "Z"}]}]}}

    assert laid(patch).decided == (
        (("spec", "containers", 0, "args", 0), ("spec", "containers", 0, "args", 0)),
        (("spec", "containers", 1, "name"), ("spec", "containers", 1, "name")),
        (("spec", "containers", 1, "env", 0, "name"), ("spec", "containers", 1, "env", 0, "name")),
    )


def test_what_goes_is_known_by_what_takes_it_away() -> None:
    patch = {"spec": {"volumes": [{"name": "config", "$patch": "delete"}], "nodeSelector": None}}

    found = laid(patch)

    assert found.body["spec"]["volumes"] == []
    assert "nodeSelector" not in found.body["spec"]
    assert found.removed == (
        (("spec", "volumes", 0), ("spec", "volumes", 0)),
        (("spec", "nodeSelector"), ("spec", "nodeSelector")),
    )


def test_a_version_that_is_not_known_is_patched_as_the_newest_one() -> None:
    assert shape_of_pods("1.99").field("spec").field("volumes").merge_key == "name"
