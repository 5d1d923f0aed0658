"""What comes of a patch is what kubectl makes of it, by Kubernetes' own code."""

from __future__ import annotations

import json
import subprocess
from copy import deepcopy
from pathlib import Path

import yaml

from tests.cluster.programs import program
from tests.compiler.manifests.merging.test_strategic import PATCHES, TEMPLATE, in_order, laid


def test_what_comes_of_a_patch_is_what_kubectl_makes_of_it(tmp_path: Path) -> None:
    head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "chat"}}
    file = tmp_path / "deployment.yaml"
    file.write_text(yaml.safe_dump({**head, "spec": {"template": deepcopy(TEMPLATE)}}))
    for patch in yaml.safe_load(PATCHES.read_text()):
        text = json.dumps({"spec": {"template": patch}})
        command = [
            str(program("kubernetes-1.34", "kubectl")),
            "patch",
            "--local",
            "-f",
            str(file),
            "-p",
            text,
            "-o",
            "json",
        ]
        made = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

        template = made["spec"]["template"]
        template["metadata"].pop("creationTimestamp", None)
        assert in_order(laid(patch).body) == in_order(template), patch
