"""Checks on who reads hand-written configurations, and on labels that choose from them (GPU638, GPU695)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gpuplan.compiler.base.diagnostics import Finding, Origin, Severity
from gpuplan.compiler.base.plain import mapping, sequence, text, value_at
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.checks.formats import Problem
from gpuplan.compiler.checks.formats.files import Config, holds_config, is_config, mig_configs, plugin_configs
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.hand_files import HandFiles
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, Layout, Plan
from gpuplan.compiler.planning.plugin_configs import configuration
from gpuplan.compiler.policy.models import ClusterMigStrategy, Install
from gpuplan.features.components.checks.components import config_names
from gpuplan.features.components.checks.objects import labels_of

# --- Who reads them ----------------------------------------------------------------------------------------------

FORMER_NAMESPACE = "gpu-operator-resources"


@check("GPU638", "config-that-nobody-reads", Severity.WARNING)
def config_that_nobody_reads(files: HandFiles) -> Iterator[Finding]:
    """A hand-written file of the device plugin or of the MIG manager is in a ConfigMap that nobody reads.

    ## Why
    The operator mounts the ConfigMaps that its ClusterPolicy names, out of its own namespace, and no others. gpuplan
    names those that it writes; another one has no effect, whatever is in it. In the namespace `gpu-operator-resources`
    operands were up to release v1.8 (`assets/` of NVIDIA/gpu-operator v1.8.2); since v1.9.0 they are in the operator's
    own. There it is an error.

    ## Instead
    Say it in the policy: pools and layouts are what gpuplan writes these files of. For a device plugin of your own,
    name the ConfigMap in its pods, or ignore the finding with a comment.
    """
    plan = files.plan
    if plan is None:
        return
    operator = plan.cluster.gpu_operator
    own, specs = operator.namespace, [found.body.get("spec") for found in files.of_kind("ClusterPolicy")]
    named = {name for spec in (*specs, operator.spec.values) for _, name in config_names(spec)}
    bodies = (operator.spec.values, *(written.body for written in plan.hand_written))
    for name, namespace, at, namespace_at in _config_maps(files):
        is_elsewhere = namespace not in ("", own)
        is_known = is_elsewhere or operator.spec.install is not Install.EXTERNAL
        is_named = name in named if is_elsewhere else False
        if is_known and (is_named or not is_mentioned(name, bodies)):
            yield unread(name, namespace if is_elsewhere else "", own, namespace_at if is_elsewhere else at)


def unread(name: str, namespace: str, home: str, at: Origin) -> Finding:
    is_former = namespace == FORMER_NAMESPACE
    former = f"operands have been in the operator's own namespace since v1.9.0, before in `{FORMER_NAMESPACE}`"
    return Finding(
        at,
        f"nobody reads ConfigMap `{name}`{f' in namespace `{namespace}`' if namespace else ''}",
        label=f"the operator reads those of `{home}`" if namespace else "no ClusterPolicy, Helm value or pod names it",
        notes=(former,) if is_former else ("the operator mounts the ConfigMaps that gpuplan writes",),
        help="describe the pools in the policy and remove it: gpuplan writes this file",
        severity=Severity.ERROR if is_former else None,
    )


def _config_maps(files: HandFiles) -> Iterator[tuple[str, str, Origin, Origin]]:
    """Name, namespace and places of both, for each ConfigMap with such a file, those that kustomize makes included."""
    made = [name for item in files.kustomizations for _, _, name in item.generators]
    for found in files.of_kind("ConfigMap"):
        is_made = any(found.name == name or found.name.startswith(f"{name}-") for name in made)
        if not found.is_patch and not is_made and any(map(holds_config, mapping(found.body.get("data")).values())):
            at, namespace_at = found.place("metadata", "name"), found.place("metadata", "namespace")
            yield found.name, text(found.metadata.get("namespace")), at, namespace_at
    for kustomization in files.kustomizations:
        for at, generator, name in kustomization.generators:
            paths = (text(path).rpartition("=")[2] for path in sequence(generator.get("files")))
            documents = (found for path in paths for found in files.find_documents(kustomization.path_of(path)))
            if any(is_config(mapping(body)) for _, body in documents):
                namespace = text(generator.get("namespace") or kustomization.body.get("namespace"))
                yield name, namespace, at / "name", at / "name"


def is_mentioned(name: str, bodies: Iterable[object]) -> bool:
    """Whether the name stands anywhere but where the ConfigMap gets it, or a patch is aimed at it."""
    whole = re.compile(rf"(?<![-\w.]){re.escape(name)}(?![-\w.])")
    return any(whole.search(value) for body in bodies for value in _texts(body))


def _texts(value: object, key: str = "") -> Iterator[str]:
    """The texts of a body, but for names of ConfigMaps, and what patches are for."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, key)
    elif isinstance(value, Mapping):
        is_map = value.get("kind") == "ConfigMap" or key == "configMapGenerator"
        for field, item in mapping(value).items():
            if field != "target" and not (is_map and field in ("metadata", "name")):
                yield from _texts(item, field)


# --- Equal instances ---------------------------------------------------------------------------------------------


class _Division(Value):
    """The parts of an entry by the boards that they are for: the profiles, and whether MIG is on."""

    parts: tuple[tuple[str, bool, frozenset[str]], ...]

    @property
    def is_equal(self) -> bool:
        """Whether all GPUs of a node are divided into instances of one profile, or none is."""
        boards = {board for board, _, _ in self.parts}
        for board in boards:
            mine = [(is_on, profiles) for other, is_on, profiles in self.parts if other == board]
            if len({is_on for is_on, _ in mine}) > 1 or len({name for _, names in mine for name in names}) > 1:
                return False
        return True


@check("GPU695", "single-chosen-for-unequal-instances")
def single_chosen_for_unequal_instances(files: HandFiles) -> Iterator[Finding]:
    """Nodes are told to divide GPUs unequally and to publish them under the strategy `single`.

    ## Why
    Under `single` every MIG device is `nvidia.com/gpu`. The device plugin exits where a node has several kinds
    (`more than one MIG device type present on node`, `assertAllMigDevicesAreValid` in `internal/rm/device_map.go` of
    NVIDIA/k8s-device-plugin v0.19.3) or divides only some of its GPUs, and the node has no GPUs at all. The strategy is
    the cluster's, or that of the file which `nvidia.com/device-plugin.config` chooses.

    ## Instead
    Choose an entry of one profile on all GPUs, or the strategy `mixed`. An entry that no label chooses is a warning,
    where the strategy of the whole cluster is `single`.
    """
    plan = files.plan
    if plan is None:
        return
    divisions, strategies = _divisions(files, plan), _strategies(files, plan)
    overriding = plan.cluster.gpu_operator.spec.mig_strategy
    for found in files.of_kind("Node", "NodeFeatureRule"):
        for route, labels in labels_of(found) if found.before is None else ():
            entry, key = text(labels.get(MIG_CONFIG_LABEL)), text(labels.get(DEVICE_PLUGIN_CONFIG_LABEL))
            strategy = strategies.get(key) if overriding is ClusterMigStrategy.PER_POOL else overriding.value
            if strategy == ClusterMigStrategy.SINGLE and entry in divisions and not divisions[entry].is_equal:
                yield Finding(
                    found.place(*route, MIG_CONFIG_LABEL),
                    f"`{entry}` of {found.title} divides GPUs unequally, and its strategy is `single`",
                    label="the device plugin exits",
                    notes=(EXITS,),
                    help="choose an entry with one profile on all GPUs, or a configuration with `migStrategy: mixed`",
                )
    if overriding is ClusterMigStrategy.SINGLE:
        for config in mig_configs(files):
            for problem in unequal_entries(config):
                yield from (replace(item, severity=Severity.WARNING) for item in config.findings((problem,), EXITS))


EXITS = "the plugin exits where a node's MIG devices are of several kinds, or only some of its GPUs have any"


def unequal_entries(config: Config) -> Iterator[Problem]:
    for name, division in _by_name(config.body).items():
        if not division.is_equal:
            message = f"entry `{name}` divides GPUs unequally, and the cluster's strategy is `single`"
            help_ = "write one profile for all GPUs, or `gpuOperator.migStrategy: perPool` in the Cluster"
            yield Problem(("mig-configs", name), message, "no node can choose it", help_)


def _divisions(files: HandFiles, plan: Plan) -> dict[str, _Division]:
    """Return the division of GPUs by each entry, by name."""
    found = {name: division for config in mig_configs(files) for name, division in _by_name(config.body).items()}
    own: dict[str, tuple[tuple[str, bool, frozenset[str]], ...]] = {}
    for layout in plan.mig_layouts:
        own[layout.config_name] = (*own.get(layout.config_name, ()), *_of_layout(layout).parts)
    found |= {name: _Division(parts) for name, parts in own.items()}
    return found | {item.spec.config_name: _of_layout(item.layout) for item in plan.retained_layouts}


def _by_name(body: Mapping[str, object]) -> dict[str, _Division]:
    entries = mapping(body.get("mig-configs")).items()
    divisions: dict[str, _Division] = {}
    for entry, items in entries:
        parts: list[tuple[str, bool, frozenset[str]]] = []
        for part in map(mapping, sequence(items)):
            profiles = frozenset(name for name, count in mapping(part.get("mig-devices")).items() if count)
            parts.append((str(part.get("device-filter") or ""), part.get("mig-enabled") is True, profiles))
        divisions[entry] = _Division(tuple(parts))
    return divisions


def _of_layout(layout: Layout) -> _Division:
    made = [{name for name, count in entry.instances.items() if count > 0} for entry in layout.entries]
    return _Division(
        tuple(
            (layout.gpu.id, entry.mig_enabled, frozenset(names))
            for entry, names in zip(layout.entries, made, strict=True)
        )
    )


def _strategies(files: HandFiles, plan: Plan) -> dict[str, str]:
    """The strategy of each file of the device plugin, by key."""
    overriding = plan.cluster.gpu_operator.spec.mig_strategy
    bodies: dict[str, Mapping[str, object]] = {item.spec.key: item.config for item in plan.retained_plugin_configs}
    for part in plan.parts:
        bodies[part.labels[DEVICE_PLUGIN_CONFIG_LABEL]] = configuration(part, overriding)
    bodies |= {config.key: config.body for config, _ in plugin_configs(files) if config.key}
    return {key: text(value_at(body, ("flags", "migStrategy"))) or "none" for key, body in bodies.items()}
