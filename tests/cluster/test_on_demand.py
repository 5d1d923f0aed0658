"""Partitions on demand by the real API server and kube-scheduler: counters keep apart what overlaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from gpuplan.compiler.catalog import load
from gpuplan.compiler.planning.plan import POOL_LABEL
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.example import ExampleCluster
from tests.cluster.outcomes import in_the_end
from tests.cluster.partitions import resource_slices
from tests.cluster.pods import a_pod
from tests.cluster.processes import until
from tests.cluster.programs import need_go
from tests.cluster.variants import VARIANT, make_variant
from tests.platforms import pool, tenant

Record = Callable[[str, object, object], None]

NODE, GPUS = "gpu-a", 2
SMALL, LARGE = "gpuplan-h100-80gb-1g.10gb", "gpuplan-h100-80gb-3g.40gb"
DOCUMENTS = (
    pool(
        "parts",
        "dynamicMig: {profiles: [1g.10gb, 3g.40gb]}",
        "allocation: dra",
        gpu="H100-80GB",
        nodes=f"count: 1, gpusPerNode: {GPUS}, names: [{NODE}]",
    ),
    tenant("small", "pool: parts, unit: 1g.10gb, guaranteed: 2"),
    tenant("large", "pool: parts, unit: 3g.40gb, guaranteed: 1, limit: none"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleCluster]:
    need_go()
    settings = "nodeLabels: external\n  dra: {partitionableDevices: true}\n  scheduler: {cap: limit}"
    root = make_variant(tmp_path_factory.mktemp("repository"), settings, "".join(DOCUMENTS), policies=None)
    with ExampleCluster.start(VARIANT, root) as started:
        for body in resource_slices(NODE, load().get("H100-80GB"), GPUS):
            started.api.create(body)
        started.api.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {POOL_LABEL: "parts"}}})
        yield started


def test_what_is_certain_is_had_beside_the_worst_that_others_can_have(cluster: ExampleCluster, record: Record) -> None:
    """Two `1g.10gb` that stand in both halves of one GPU: the other one has room for two `3g.40gb`, and no third."""
    api = cluster.api
    first = _device(api, "small", _claim(api, "small", SMALL))
    fillers = {_device(api, "default", name): name for name in [_claim(api, "default", SMALL) for _ in range(13)]}
    record("on demand: eighths that two GPUs have", 14, len({first, *fillers}))
    wanted = f"{first.removesuffix('-0')}-4"
    _remove(api, [fillers.pop(wanted)])
    second = _device(api, "small", _claim(api, "small", SMALL))
    record("on demand: the only place that is left is taken", wanted, second)
    _remove(api, [*fillers.values()])
    certain = next(unit["certain"] for unit in cluster.plan["pools"][0]["units"] if unit["name"] == "3g.40gb")
    for _ in range(certain + 1):
        _claim(api, "large", LARGE)
    record("on demand: halves had beside one eighth in each half of one GPU", certain, in_the_end(certain, _had, api))
    record(
        "on demand: why the next one waits, with six of eight memory slices free on a GPU",
        {"cannot allocate all claims"},
        in_the_end({"cannot allocate all claims"}, _reasons, api),
    )


def test_without_the_gate_nothing_keeps_partitions_apart(control_plane: ControlPlane, record: Record) -> None:
    """So GPU493 refuses it: the API server drops the counters, and every partition looks free."""
    for body in resource_slices(NODE, load().get("H100-80GB"), 1):
        control_plane.api.create(body)
    [kept] = control_plane.api.list("/apis/resource.k8s.io/v1/resourceslices")
    counted = ["sharedCounters"] if "sharedCounters" in kept["spec"] else []
    counted += [device["name"] for device in kept["spec"]["devices"] if "consumesCounters" in device]
    control_plane.api.delete(f"/apis/resource.k8s.io/v1/resourceslices/{kept['metadata']['name']}")
    record("on demand: counters that are kept without the feature gate", [], counted)


def _remove(api: Api, names: Sequence[str]) -> None:
    """Take an administrator's pods away, and wait until their claims have gone with them."""
    for name in names:
        api.delete(f"/api/v1/namespaces/default/pods/{name}")
    until(lambda: not any(_allocated(api, "default", name) for name in names), "their devices are free")


def _claim(api: Api, namespace: str, template: str) -> str:
    """A pod with a claim of a template; the administrator's, in a namespace that has none, come with their own."""
    if namespace == "default" and not api.find(f"{_TEMPLATES.format(namespace)}/{template}"):
        body = api.get(f"{_TEMPLATES.format('small')}/{template}")
        api.create({**body, "metadata": {"name": template, "namespace": namespace}})
    body = a_pod(namespace, nodeSelector={POOL_LABEL: "parts"})
    body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    body["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    name: str = api.create(body)["metadata"]["name"]
    return name


_TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates"


def _device(api: Api, namespace: str, pod: str) -> str:
    """The device that a pod's claim was given."""
    until(lambda: _allocated(api, namespace, pod), f"pod {pod} has a device")
    return _allocated(api, namespace, pod)


def _allocated(api: Api, namespace: str, pod: str) -> str:
    for claim in api.list(f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"):
        if any(owner["name"] == pod for owner in claim["metadata"].get("ownerReferences", ())):
            results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
            return str(results[0]["device"]) if results else ""
    return ""


def _had(api: Api) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in _pods(api))


def _reasons(api: Api) -> set[str]:
    waiting = [pod for pod in _pods(api) if not pod["spec"].get("nodeName")]
    texts = [found.get("message", "") for pod in waiting for found in pod["status"].get("conditions", ())]
    return {"cannot allocate all claims" if "cannot allocate all claims" in text else text for text in texts}


def _pods(api: Api) -> list[dict[str, Any]]:
    return list(api.list("/api/v1/namespaces/large/pods"))
