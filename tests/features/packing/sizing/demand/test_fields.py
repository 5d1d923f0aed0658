"""Every field of a `Demand` acts: another value of it, or none, asks for something else."""

from __future__ import annotations

import pytest

from gpuplan.compiler.policy.models import parts_of_language
from gpuplan.features.packing import document as demand
from gpuplan.features.packing.sizing.demand import from_files
from gpuplan.features.packing.sizing.needs import Need
from tests.laws.acting.test_fields import HEADING

HEAD = "apiVersion: gpuplan.dev/v1\nkind: Demand\nmetadata: {name: asked}\n"
WORK = "team: a, pods: 4, memory: 9Gi"
POINT = "size: 1, requestsPerSecond: 50, latency: 10ms"
SERVICE = f"requestsPerSecond: 100, throughput: [{{{POINT}}}]"


def needs(*works: str, growth: str = "") -> str:
    return HEAD + "spec:\n" + growth + "  needs:\n" + "".join(f"    - {{{work}}}\n" for work in works)


def service(said: str) -> str:
    return needs(f"team: a, service: {{{said}}}")


def point(said: str) -> str:
    return service(f"requestsPerSecond: 100, throughput: [{{{said}}}]")


def changed(text: str, before: str, after: str) -> tuple[str, str]:
    assert before in text
    return text, text.replace(before, after, 1)


ACTS = {
    "Demand.spec": (needs(WORK), needs("team: b, pods: 1, memory: 1Gi")),
    "DemandSpec.needs": (needs(WORK), needs(WORK, "team: b, pods: 1, memory: 1Gi")),
    "DemandSpec.growth": (needs(WORK), needs(WORK, growth="  growth: 50%\n")),
    "DemandedWork.team": changed(needs(WORK), "team: a", "team: b"),
    "DemandedWork.tenant": changed(needs(WORK), "team: a", "team: a, tenant: lab"),
    "DemandedWork.name": changed(needs(WORK), "team: a", "team: a, name: notebooks"),
    "DemandedWork.pods": changed(needs(WORK), "pods: 4", "pods: 5"),
    "DemandedWork.service": (needs(WORK), service(SERVICE)),
    "DemandedWork.memory": changed(needs(WORK), "9Gi", "10Gi"),
    "DemandedWork.compute": (needs(WORK), needs(f"{WORK}, compute: 25%")),
    "DemandedWork.computeOf": (
        needs(f"{WORK}, compute: 25%, computeOf: A100-80GB"),
        needs(f"{WORK}, compute: 25%, computeOf: H100-80GB"),
    ),
    "DemandedWork.gpus": (needs(WORK), needs(f"{WORK}, gpus: 2")),
    "DemandedWork.isolation": (needs(WORK), needs(f"{WORK}, isolation: mps")),
    "DemandedWork.engines": (needs(WORK), needs(f"{WORK}, engines: {{dec: 1}}")),
    "DemandedWork.models": (needs(WORK), needs(f"{WORK}, models: [A100-80GB]")),
    "DemandedWork.growth": (needs(WORK), needs(f"{WORK}, growth: 50%")),
    "DemandedWork.burst": (needs(WORK), needs(f"{WORK}, burst: 9")),
    **{
        f"MediaEngines.{engine}": (
            needs(f"{WORK}, engines: {{{engine}: 1}}"),
            needs(f"{WORK}, engines: {{{engine}: 2}}"),
        )
        for engine in ("dec", "enc", "jpeg", "ofa")
    },
    "DemandedService.requestsPerSecond": changed(service(SERVICE), "100", "200"),
    "DemandedService.latency": (service(SERVICE), service(f"{SERVICE}, latency: 30ms")),
    "DemandedService.throughput": (service(SERVICE), point(POINT.replace("50", "60"))),
    "DemandedService.maxProcesses": (service(SERVICE), service(f"{SERVICE}, maxProcesses: 2")),
    "MeasuredThroughput.size": (point(POINT), point(POINT.replace("size: 1", "size: 2"))),
    "MeasuredThroughput.batch": (point(POINT), point(f"{POINT}, batch: 4")),
    "MeasuredThroughput.processes": tuple(
        service(f"requestsPerSecond: 100, maxProcesses: 2, throughput: [{{{said}}}]")
        for said in (POINT, f"{POINT}, processes: 2")
    ),
    "MeasuredThroughput.requestsPerSecond": (point(POINT), point(POINT.replace("50", "60"))),
    "MeasuredThroughput.latency": (point(POINT), point(POINT.replace("10ms", "20ms"))),
}
"""For each field two demands that differ in it alone."""


def test_every_field_of_a_demand_is_tried() -> None:
    fields = {
        f"{model.__name__}.{field.alias or name}"
        for model in parts_of_language()
        if model.__module__ == demand.__name__
        for name, field in model.model_fields.items()
        if (field.alias or name) not in HEADING
    }
    assert ACTS.keys() == fields


@pytest.mark.parametrize("field", ACTS)
def test_a_field_acts(field: str) -> None:
    one, other = (asked(text) for text in ACTS[field])
    assert one != other


def asked(text: str) -> list[dict[str, object]]:
    """What is asked for, wherever that is written."""
    found, diagnostics = from_files({"demand.yaml": text.encode()})
    assert [item.finding.headline for item in diagnostics] == []
    return [{name: getattr(need, name) for name in Need.__annotations__ if name != "at"} for need in found]
