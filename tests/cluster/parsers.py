"""Asks NVIDIA's parsers and Node Feature Discovery's rule engine what they make of what gpuplan wrote."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.programs import program

MPS_ROOT = "/run/nvidia/mps"
"""What the operator gives the device plugin unless its owner says otherwise."""


class ConfigurationError(ValueError):
    """What the MIG manager or the device plugin says of files that it does not take."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node's entry of the MIG manager's file, and its GPUs; only device filters need the id of its devices."""

    mig_config: str
    gpus: int
    device_id: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """Files as text; `mig_strategy` is what the operator puts into the plugin's environment, and overrides its file."""

    mig_file: str | None = None
    plugin_file: str | None = None
    mig_strategy: str = ""
    mps_root: str = MPS_ROOT
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """An error, or what a node with these files publishes."""

    error: str
    resources: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Operator:
    """What the files of a cluster's folder tell the GPU Operator."""

    mig_configs: str
    plugin_configs: Mapping[str, str]
    default_mig_config: str
    mig_strategy: str
    has_device_plugin: bool

    def question(self, labels: Mapping[str, str], gpus_per_node: int) -> Question:
        """A node's, which chooses by labels. Without one it has the default entry, and an empty plugin's file."""
        chosen = labels.get("nvidia.com/device-plugin.config")
        if chosen is not None and chosen not in self.plugin_configs:
            raise ConfigurationError(f"device plugin: the specified configuration {chosen} does not exist")
        mig_config = labels.get("nvidia.com/mig.config", self.default_mig_config)
        return Question(
            self.mig_configs,
            None if chosen is None else self.plugin_configs[chosen],
            self.mig_strategy,
            node=Node(mig_config, gpus_per_node),
        )


def published(cluster_out: Path, labels: Mapping[str, str], gpus_per_node: int) -> dict[str, int]:
    """The extended resources of a node with these labels, by the operator's files in a cluster's folder of `out/`.

    The device plugin that says so is v0.19, which takes profiles such as `1g.10gb+me` for `1g.10gb`; v0.20 does not.
    """
    operator = read_operator(cluster_out)
    [verdict] = judge([operator.question(labels, gpus_per_node)])
    if verdict.error:
        raise ConfigurationError(verdict.error)
    return dict(verdict.resources) if operator.has_device_plugin else {}


def read_operator(cluster_out: Path) -> Operator:
    """The ConfigMaps that the Helm values or the ClusterPolicy name, as the operator's programs are given them."""
    folder = cluster_out / "gpu-operator"
    settings = _settings(folder)
    data = {
        body["metadata"]["name"]: body["data"]
        for body in map(_load, folder.glob("configmap-*.yaml"))
        if body["kind"] == "ConfigMap"
    }
    plugin, manager = settings["devicePlugin"], settings["migManager"]["config"]
    return Operator(
        mig_configs=data[manager["name"]]["config.yaml"],
        plugin_configs=data.get(plugin.get("config", {}).get("name"), {}),
        default_mig_config=manager["default"],
        mig_strategy=settings.get("mig", {}).get("strategy", ""),
        has_device_plugin=plugin.get("enabled", True),
    )


def judge(questions: Iterable[Question]) -> list[Verdict]:
    """What NVIDIA's parsers say, in the order of the questions; one run of the program answers all of them."""
    answers = _ask("nvidia", [_request(question) for question in questions])
    return [Verdict(answer["error"], answer.get("resources", {})) for answer in answers]


def start_plugin(question: Question, folder: Path) -> str:
    """What the device plugin says itself when it starts with its file; nothing if it goes on to look for GPUs."""
    file = folder / "config.yaml"
    file.write_text(question.plugin_file or "", encoding="utf-8")
    command = [
        str(program("nvidia", "nvidia-device-plugin")),
        f"--config-file={file}",
        f"--kubelet-socket={folder}/socket",
    ]
    environment = {"MPS_ROOT": question.mps_root}
    if question.mig_strategy:
        environment["MIG_STRATEGY"] = question.mig_strategy
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as plugin:
        assert plugin.stderr is not None
        for line in plugin.stderr:
            if line.endswith("Retrieving plugins.\n"):
                plugin.kill()
                return ""
            if "error starting plugins: " in line:
                return line.partition("error starting plugins: ")[2].strip()
    raise AssertionError("the device plugin ended without a word")


@dataclass(frozen=True, slots=True)
class Labelling:
    """What Node Feature Discovery sets on one node."""

    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]


def rule_labels(
    rules: Sequence[Mapping[str, Any]], node_name: str, *, extra_label_namespaces: Sequence[str] = ()
) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The labels and taints that NodeFeatureRules give to a node of this name with NVIDIA GPUs."""
    [found] = run_rules(rules, [features(node_name)], extra_label_namespaces=extra_label_namespaces)
    return dict(found.labels), [dict(taint) for taint in found.taints]


def run_rules(
    rules: Sequence[Mapping[str, Any]],
    nodes: Sequence[Mapping[str, Any]],
    *,
    extra_label_namespaces: Sequence[str] = (),
) -> list[Labelling]:
    """The same for nodes of which all features are known, in their order."""
    request = {"rules": rules, "nodes": nodes, "extraLabelNs": list(extra_label_namespaces), "enableTaints": True}
    return [Labelling(answer["labels"], tuple(answer["taints"])) for answer in _ask("nfd", request)]


def features(node_name: str, *, vendor: str = "10de", device_class: str = "0302", **device: str) -> dict[str, Any]:
    """A node's features as nfd-worker finds them: its name, and one PCI device, which is a GPU of NVIDIA's."""
    attributes = {"vendor": vendor, "class": device_class, **device}
    return {
        "flags": {},
        "attributes": {"system.name": {"elements": {"nodename": node_name}}},
        "instances": {"pci.device": {"elements": [{"attributes": attributes}]}},
    }


def _settings(folder: Path) -> dict[str, Any]:
    """The Helm values; or else the ClusterPolicy's fields, which have the same names."""
    values = folder / "values.yaml"
    if values.exists():
        return _load(values)
    [policy] = folder.glob("clusterpolicy-*.yaml")
    spec: dict[str, Any] = _load(policy)["spec"]
    return spec


def _load(path: Path) -> dict[str, Any]:
    body: dict[str, Any] = yaml.safe_load(path.read_text())
    return body


def _request(question: Question) -> dict[str, Any]:
    return {
        "migFile": question.mig_file,
        "pluginFile": question.plugin_file,
        "migStrategy": question.mig_strategy,
        "mpsRoot": question.mps_root,
        "node": None
        if question.node is None
        else {"migConfig": question.node.mig_config, "gpus": question.node.gpus, "deviceId": question.node.device_id},
    }


def _ask(family: str, request: object) -> list[Any]:
    """What a program of ours answers; it fails where the request itself is not one, and says why."""
    result = subprocess.run(
        [program(family, family)], input=json.dumps(request), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    answers: list[Any] = json.loads(result.stdout)
    return answers
