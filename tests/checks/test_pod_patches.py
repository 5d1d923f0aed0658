"""Patches of pods of any shape are judged: each is a finding, and none is a crash."""

from __future__ import annotations

import pytest

from gpuplan.compiler.pipeline.generated import judge_asked
from tests.platforms import a_platform, document, pool, tenant

SHAPES = {
    "tolerations": "x",
    "containers": "[{name: main, env: x, ports: [{containerPort: x}], resources: [1]}]",
    "initContainers": "[{name: a, resources: {limits: {cpu: [1], memory: {a: b}}, requests: 3}}]",
    "volumes": "[{name: [a]}, [2], null]",
    "securityContext": "{runAsUser: [x]}",
    "affinity": "{podAntiAffinity: [x]}",
    "hostAliases": "1.5",
    "nodeSelector": "true",
}


@pytest.mark.parametrize("field", SHAPES)
def test_a_patch_of_a_wrong_shape_is_a_finding_at_its_line(field: str) -> None:
    patch = f"podPatch: {{spec: {{{field}: {SHAPES[field]}}}}}"
    gpus = pool("a", "exclusive: {}", "taints: [{key: nvidia.com/gpu, effect: NoSchedule}]")
    work = document("Workload", "chat", "tenant: lab", "pool: a", 'image: "x:1"', "inference: {}", patch)
    plan = a_platform(gpus, tenant("lab", "pool: a, guaranteed: 8"), work)

    found = [item for item in judge_asked(plan, ()) if item.is_error]

    assert {item.finding.at.path[:4] for item in found} == {("spec", "podPatch", "spec", field)}
