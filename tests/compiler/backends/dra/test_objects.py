"""What claims are of: the classes, the templates, the caps on both."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest
from celpy.adapter import json_to_cel

from gpuplan.compiler.backends import dra
from gpuplan.compiler.catalog import load
from tests.compiler.backends.dra.platform import A100, H100, LARGE, SMALL, device_classes, hard, platform, templates
from tests.compiler.backends.scheduling.cel import evaluate
from tests.plans import a_plan

SXM = "NVIDIA A100-SXM4-80GB"


def device(kind: str, product: str, driver: str = "gpu.nvidia.com", **more: str) -> Any:
    """A device as the scheduler shows it to a selector; a domain without attributes is empty there."""
    attributes = {"type": kind, "productName": product, **more} if driver == "gpu.nvidia.com" else {}
    return json_to_cel({"driver": driver, "attributes": {"gpu.nvidia.com": attributes}})


DEVICES = {
    "a partition": (device("mig", SXM, profile="2g.20gb"), [SMALL]),
    "a larger one": (device("mig", SXM, profile="3g.40gb"), [LARGE]),
    "a partition of a board for PCIe": (device("mig", "NVIDIA A100 80GB PCIe", profile="2g.20gb"), [SMALL]),
    "a profile that no pool hands out": (device("mig", SXM, profile="1g.10gb"), []),
    "a whole GPU": (device("gpu", SXM), [A100]),
    "a whole GPU of another model": (device("gpu", "NVIDIA H100 80GB HBM3"), [H100]),
    "a partition of another model": (device("mig", "NVIDIA H100 80GB HBM3", profile="2g.20gb"), []),
    "a model that is larger": (device("gpu", "NVIDIA H100 96GB HBM3"), []),
    "a model whose name goes on": (device("gpu", f"{SXM} Next"), []),
    "a GPU for a virtual machine": (device("vfio", SXM), []),
    "a device of another driver": (device("gpu", SXM, driver="nic.example.com"), []),
}


@pytest.mark.parametrize("name", DEVICES)
def test_each_device_is_of_its_class_alone(name: str) -> None:
    found, classes = DEVICES[name]
    expressions = device_classes()
    assert [key for key in expressions if evaluate(expressions[key], {"device": found})] == classes


def test_drivers_that_call_a_profile_by_an_old_name_are_understood() -> None:
    gpu = next(gpu for gpu in map(load().get, load().ids()) if gpu.legacy_names)
    old, legacy = next(iter(gpu.legacy_names.items()))
    plan = a_plan(
        "apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: parts}\n"
        f"spec:\n  gpu: {gpu.id}\n  allocation: dra\n"
        f"  nodes: {{count: 1, gpusPerNode: 1}}\n  sharing: {{mig: {{instances: {{{legacy.profile}: 1}}}}}}\n"
    )
    (found,) = dra.render(plan)
    expression = found.body["spec"]["selectors"][0]["cel"]["expression"]
    product = gpu.products[0].label.replace("-", " ")
    assert evaluate(expression, {"device": device("mig", product, profile=old)})
    assert evaluate(expression, {"device": device("mig", product, profile=legacy.profile)})


def test_a_class_has_no_extended_resource() -> None:
    """By its name pods would ask for devices without a claim, past what is said of claims."""
    (found,) = (item.body for item in dra.render(platform()) if item.name == H100 and item.kind == "DeviceClass")
    assert found == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": H100},
        "spec": {"selectors": found["spec"]["selectors"]},
    }


def test_who_may_use_a_class_has_a_template_for_it() -> None:
    assert templates() == [("research", SMALL), ("research", A100), ("serving", H100)]


def test_a_template_is_for_one_device() -> None:
    (found,) = (item for item in dra.render(platform()) if (item.namespace, item.name) == ("serving", H100))
    assert found.folder == "namespaces/serving"
    assert found.body["spec"]["spec"]["devices"] == {
        "requests": [{"name": "unit", "exactly": {"deviceClassName": H100, "allocationMode": "ExactCount", "count": 1}}]
    }


def test_caps_are_by_class_and_other_ways_are_closed() -> None:
    """Pools of one model share a class: eight and one of its `2g.20gb`."""
    banned = {
        "requests.nvidia.com/gpu": "0",
        "requests.nvidia.com/gpu.shared": "0",
        "requests.nvidia.com/mig-2g.20gb": "0",
        "requests.nvidia.com/mig-3g.40gb": "0",
        "gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "0",
        "mig.nvidia.com.deviceclass.resource.k8s.io/devices": "0",
        "vfio.gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "0",
    }
    classes = {f"{name}.deviceclass.resource.k8s.io/devices": "0" for name in (SMALL, LARGE, A100, H100)}
    claims = "count/resourceclaims.resource.k8s.io"
    assert hard("web") == {**banned, **classes, claims: "0"}
    assert hard("research") == {
        **banned,
        **classes,
        f"{SMALL}.deviceclass.resource.k8s.io/devices": "9",
        f"{A100}.deviceclass.resource.k8s.io/devices": "1",
        claims: "10",
    }
    del classes[f"{H100}.deviceclass.resource.k8s.io/devices"]  # no limit
    assert hard("serving") == {**banned, **classes}


def test_clusters_without_claims_have_none_of_it() -> None:
    plan = a_plan(
        "apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: whole}\n"
        "spec: {gpu: H100-80GB, nodes: {count: 1, gpusPerNode: 8}, sharing: {exclusive: {}}}\n"
    )
    assert list(dra.render(plan)) == []


@pytest.mark.parametrize("version", ["1.34", "1.35"])
def test_objects_are_what_kubernetes_takes(version: str) -> None:
    for manifest in dra.render(platform()):
        kubernetes_validate.validate(manifest.body, version, strict=True)
