"""Whoever does what a finding's help says, word by word, has a policy in which nothing is found any more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import Severity
from tests.checks.test_cases import HERE, judged, lay_out

_MARKS = re.compile(r"\n *# \|[^\n]*| # (?:error|warning|note|related): [^\n]*")

GPUS = "    - NVIDIA-A100-SXM4-80GB\n"
SELECTOR = "    selector:\n      cloud.google.com/gke-nodepool: a100\n"
PATTERN = "    namePattern: gke-.*-a100-[0-9a-f]+-[0-9a-z]+\n"
WHOLE = "  sharing: {exclusive: {}}\n"
WIDER = "      kubernetes.azure.com/agentpool: gpu\n  sharing"
SETTINGS = "    kueue:\n      configuration:\n        fairSharing: null\n        kind: Config\n"
RESOURCES = "    kueue:\n      configuration:\n        resources:\n          quotaCheckStrategy: IgnoreUndeclared\n"
MANAGER = '    values:\n      managerConfig:\n        controllerManagerConfigYaml: "{}"'

FOLLOWED: list[tuple[str, list[tuple[str, str]]]] = [
    ("GPU106/fail-pci-id", [("gpu: a16", "gpu: A2-16GB"), ("document", "")]),
    ("GPU106/fail-pci-id", [('"10de:25b6"', '"10de:25b6/10de:14a9"')]),
    ("GPU106/fail-id", [("gpu: a100-80gb", "gpu: A100-80GB"), ("document", "")]),
    ("GPU106/fail-product", [(GPUS, "    - NVIDIA-A100X\n")]),
    ("GPU106/fail-product", [("gpu: a100x", "gpu: A100-80GB"), ("document", "")]),
    ("GPU108/fail-shared", [("RTX-4090-SHARED", "RTX-4090")]),
    ("GPU165/fail-nfd", [(SELECTOR, PATTERN)]),
    ("GPU165/fail-nfd", [("nodeLabels: nfd", "nodeLabels: external")]),
    ("GPU165/fail-node", [("    selector:\n      eks.amazonaws.com/nodegroup: a100\n", "")]),
    ("GPU165/fail-node", [("nodeLabels: node", "nodeLabels: external")]),
    ("GPU166/fail-one-within-the-other", [(WIDER, WIDER.replace("  s", "      example.com/rack: r2\n  s"))]),
    ("GPU167/fail-key", [("instance type:", "node.kubernetes.io/instance-type:")]),
    ("GPU309/fail-another-profile", [("1g.20gb: 4", "1g.10gb: 4"), ("          gpu: 3\n", "")]),
    ("GPU310/fail-mps", [("mps: {", "timeSlicing: {")]),
    ("GPU472/fail-kueue", [("    install: helm\n", "    install: helm\n    version: v0.19.2\n")]),
    ("GPU473/fail-kubernetes", [("  scheduler:\n    install: helm\n", "")]),
    ("GPU473/fail-runai", [("    install: helm\n", "")]),
    ("GPU474/fail-kai", [("        gpuSharing: true\n", "")]),
    ("GPU474/fail-kueue", [(MANAGER, "    kueue:\n      configuration: {waitForPodsReady: {timeout: 5m}}")]),
    ("GPU475/fail-settings", [(SETTINGS, "")]),
    ("GPU475/fail-two-ways", [(RESOURCES, "")]),
    ("GPU475/fail-uncounted", [("          - nvidia.com/\n", ""), ('          - ""\n', "")]),
    ("GPU476/fail-older", [("v0.13.0", "v0.17.0")]),
    ("GPU477/fail-external", [("    chartRepoURL:", "    install: helm\n    version: v0.17.0\n    chartRepoURL:")]),
    ("GPU477/fail-external", [("    chartRepoURL: oci://registry.example.com/charts\n", "")]),
    ("GPU478/fail-names", [("1ST:", "FIRST:"), ("      devicePlugin:\n        MIG_STRATEGY: single\n", "")]),
    ("GPU479/fail-helm", [("    olm: {catalog: staging}\n", "")]),
    ("GPU479/fail-registry", [("    registry: registry.example.com/nvcr\n", "")]),
    ("GPU480/fail-former", [("    namespace: gpu-operator-resources\n", "")]),
    ("GPU485/fail-inherited", [("570.195.03", "570.195.03, kernelModules: proprietary")]),
    ("GPU490/fail-auto", [("    values:\n", "    values:\n      driver: {kernelModuleType: open}\n")]),
    ("GPU490/fail-own", [("kernelModules: auto", "kernelModules: open")]),
    ("GPU490/fail-volta", [("enabled: true", "enabled: false")]),
    ("GPU490/fail-volta-among-others", [("enabled: true", "enabled: false")]),
    ("GPU489/fail-unknown", [("        managerConfig: {}\n", ""), ("waitForPodReady", "waitForPodsReady")]),
    ("GPU592/fail-80-gi", [("80Gi", "81900Mi")]),
    ("GPU592/fail-no-unit", [("memory: 10\n", "memory: 10Gi\n")]),
    ("GPU593/fail-another-level", [("example.com/block", "example.com/rack")]),
    ("GPU593/fail-no-topology", [(WHOLE, f"{WHOLE}  topology: [example.com/rack]\n")]),
    ("GPU593/fail-one-node", [("required:", "preferred:")]),
    ("GPU593/fail-one-node", [("pods: 12", "pods: 8")]),
]
"""Cases with what their help says: places that are replaced; ``document`` is the one that is removed, the first."""


@pytest.mark.parametrize(
    ("name", "edits"), FOLLOWED, ids=[f"{name}-{number}" for number, (name, _) in enumerate(FOLLOWED)]
)
def test_what_the_help_says_mends_it(name: str, edits: list[tuple[str, str]], tmp_path: Path) -> None:
    text = _MARKS.sub("", (HERE / f"{name}.yaml").read_text(encoding="utf-8"))
    for old, new in edits:
        if old == "document":
            text = text.partition("---\n")[2]
            continue
        assert old in text
        text = text.replace(old, new, 1)
    case = tmp_path / "case.yaml"
    case.write_text(text, encoding="utf-8")
    found = judged(case, lay_out(case, tmp_path / "repository"))
    assert [f"{item.code} {item.finding.message}" for item in found if item.severity is not Severity.NOTE] == []
