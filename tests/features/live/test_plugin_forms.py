"""Files of the device plugin in the forms that NVIDIA documents become policies that build to the same meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.backends.gpu_operator.device_plugin import configurations
from gpuplan.compiler.documents.filetree import Written
from gpuplan.compiler.pipeline.loading import load_tree
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live.importing import adopt

FORMS: Mapping[str, Any] = yaml.safe_load((Path(__file__).parent / "examples" / "plugin-forms.yaml").read_text())
DUMP = "dump.yaml"


def bodies(form: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    config = {"name": "plugin", "default": form.get("default", "")}
    spec = {"mig": {"strategy": form.get("strategy", "mixed")}, "devicePlugin": {"config": config}}
    yield {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpus"}, "spec": spec}
    texts = {key: yaml.safe_dump(value, sort_keys=False) for key, value in form["files"].items()}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plugin", "namespace": "gpu"}, "data": texts}
    for index, row in enumerate(form["nodes"]):
        named = {"nvidia.com/device-plugin.config": row.get("key"), "nvidia.com/mig.config": row.get("entry")}
        labels = {"nvidia.com/gpu.product": row["product"], "nvidia.com/gpu.count": str(row["gpus"])}
        labels |= {key: value for key, value in named.items() if value}
        published = {resource: str(count) for resource, count in row["hands-out"].items()}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{index}", "labels": labels},
            "status": {"allocatable": published, "nodeInfo": {"kubeletVersion": "v1.34.1"}},
        }


def handed_out(plan: Plan, node: str) -> dict[str, int]:
    [pool] = [pool for pool in plan.pools if node in pool.nodes.names]
    return {unit.resource: unit.per_node for unit in pool.units if unit.resource}


def sharing(file: Mapping[str, Any], resources: Mapping[str, int]) -> object:
    """How a file shares what a node has, with what holds where nothing is said; `.shared` is what it is renamed to."""
    here = {name.removesuffix(".shared") for name in resources}
    return {
        way: (
            said.get("renameByDefault", False),
            way == "mps" or said.get("failRequestsGreaterThanOne", False),
            {item["name"]: item["replicas"] for item in said["resources"] if item["name"] in here},
        )
        for way, said in file.get("sharing", {}).items()
        if {item["name"] for item in said["resources"]} & here
    }


@pytest.mark.parametrize("name", FORMS)
def test_a_documented_form_builds_to_the_same_or_is_named(name: str, tmp_path: Path) -> None:
    form = FORMS[name]
    imported = adopt({DUMP: yaml.safe_dump_all(bodies(form), sort_keys=False).encode()}, tmp_path, "lab")
    tree = Written(None, {path: text.encode() for path, text in imported.files.items()})
    [plan] = load_tree(tree, ("lab",), ("lab",)).plans

    for index, row in enumerate(form["nodes"]):
        node = f"node-{index}"
        assert handed_out(plan, node) == row["hands-out"]
        [pool] = [pool for pool in plan.pools if node in pool.nodes.names]
        built = configurations(plan)[pool.labels["nvidia.com/device-plugin.config"]]
        written = form["files"][row.get("key", form.get("default"))]
        assert sharing(built, row["hands-out"]) == sharing(written, row["hands-out"])
    assert imported.report.is_valid
    untold = {row["untold"] for row in form["nodes"] if "untold" in row}
    told = [item for item in imported.report.diagnostics if item.code == "GPU809" and item.severity == "warning"]
    assert {item.code for item in told} == untold
    assert {item.finding.at.locate().file.path for item in imported.report.diagnostics} <= {DUMP}
