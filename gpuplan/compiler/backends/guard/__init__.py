"""The back end of guards: Jobs that Argo CD runs before it changes the labels of a pool's nodes, and after.

mig-manager drains nothing and coordinates nothing: it partitions a node as soon as its label changes, fails while pods
hold the GPUs, and does not try again (NVIDIA/gpu-operator#262). The first Job fails the sync before that; the second
waits until it is done, or fails. Both only read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from gpuplan.compiler.backends.base import text_of
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import Hook, Manifest
from gpuplan.compiler.manifests.bodies import new_object
from gpuplan.compiler.manifests.provenance import Links, Routes, below, chosen, copied, hashed, multiplied, summed
from gpuplan.compiler.manifests.templates import filled_body, read_rows
from gpuplan.compiler.planning.appliers import find_applier_to_nodes
from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL, POOL_LABEL, Mig, Plan, Pool, Stage
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.sources import has_mig_of, mig_config_of, named, names_of, operator_namespace
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.planning.sync_names import fit
from gpuplan.compiler.policy.models import Guard, NodeLabels, Platform

_FILE: Final = Path(__file__).with_name("objects.yaml")
_SCRIPT: Final = "guard.py"
_SETTINGS: Final = "settings.json"
_FOLDER: Final = "/gpuplan"


def render(plan: Plan) -> Iterator[Manifest]:
    """Yield the guards.

    There are none if no Argo CD runs hooks, if others label the nodes, or if a pool's GPUs have no MIG.
    """
    for pool in plan.pools:
        applier, guard = find_applier_to_nodes(plan, pool), pool.spec.disruption.guard
        if applier is not None and applier.runs_hooks and guard is not None and (targets := _targets(pool)):
            yield from _guard(plan, pool, guard, targets)


def _guard(plan: Plan, pool: Pool, guard: Guard, targets: list[dict[str, Any]]) -> Iterator[Manifest]:
    folder, namespace = f"{Stage.PARTITIONS.value}/{pool.name}", plan.cluster.gpu_operator.namespace
    name = fit(f"gpuplan-guard-{pool.name}", _LONGEST_NAME)
    labels = {"app.kubernetes.io/name": "gpuplan-guard", POOL_LABEL: pool.name}
    settings = {
        "pool": pool.name,
        "namespace": namespace,
        "timeoutSeconds": seconds(guard.timeout),
        "targets": targets,
        # Without its label, the operator gives a node that leaves the pool a configuration, unless the label stays
        # (`updateGPUStateLabels` in `controllers/nodelabeling_controller.go` of NVIDIA/gpu-operator).
        "leaving": ALL_DISABLED if plan.cluster.spec.node_labels is NodeLabels.NFD else None,
    }
    script = Path(__file__).with_name("script.py").read_text("utf-8")
    data = {_SCRIPT: script, _SETTINGS: json.dumps(settings, indent=2) + "\n"}
    # A kubelet may still know what another ConfigMap of that name has held, so the name changes with its content.
    config_map = f"{name}-{sha256(json.dumps(data).encode()).hexdigest()[:8]}"
    values = {
        "name": name,
        "namespace": namespace,
        "labels": labels,
        "cluster_metadata": {"name": name, "labels": labels},
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "config_map": config_map,
        "image": guard.image,
        "user": None if plan.cluster.spec.platform is Platform.OPENSHIFT else _NOBODY,
        "folder": _FOLDER,
        "script": _SCRIPT,
        "settings": _SETTINGS,
    }
    texts = new_object("v1", "ConfigMap", config_map, namespace, labels=labels, immutable=True, data=data)
    of, why = _Traces(plan, pool), text_of("why-guard")
    for body in filled_body(read_rows(_FILE)["accounts"], values):
        trace = of.account if body["kind"] == "ServiceAccount" else of.rights
        yield Manifest(folder, body, hook=Hook.SUPPORT, about=about(pool), trace=trace, why=why)
    yield Manifest(folder, texts, hook=Hook.SUPPORT, about=about(pool), trace=of.texts, why=why)
    for hook, limit in ((Hook.BEFORE, _BEFORE_SECONDS), (Hook.AFTER, seconds(guard.timeout) + _START_SECONDS)):
        metadata = {"name": f"{name}-{hook.value}", "namespace": namespace, "labels": labels}
        job = filled_body(read_rows(_FILE)["job"], values | {"metadata": metadata, "limit": limit, "verb": hook.value})
        yield Manifest(folder, job, hook=hook, about=about(pool), trace=partial(of.job, hook), why=why)


_LONGEST_NAME: Final = 63 - len(f"-{Hook.BEFORE.value}")
"""The length that the name of a pool's guard may have: that of a Job is the value of a label of its pods."""

_NOBODY: Final = 65532
"""A user that is not root: images run as root unless told otherwise. OpenShift chooses one of the namespace's own
range."""

_BEFORE_SECONDS: Final = 600
_START_SECONDS: Final = 300
"""The time that an image may take to be pulled; the script says by itself what it has waited for in vain."""


# --- What the script reads ---------------------------------------------------------------------------------------


def _targets(pool: Pool) -> list[dict[str, Any]]:
    """Return each node's configuration, as the pool's rules give it: by name, or by a pattern for the whole name."""
    targets: list[dict[str, Any]] = []
    for part in _targeted(pool):
        target: dict[str, Any] = {"config": part.labels[MIG_CONFIG_LABEL]}
        if part.nodes.names:
            target["names"] = sorted(part.nodes.names)
        else:
            target["pattern"] = part.nodes.name_pattern
            if part.nodes.moved:
                target["except"] = sorted(part.nodes.moved)
        targets.append(target)
    return targets


def _targeted(pool: Pool) -> list[Pool]:
    parts = [part for part in pool.parts if part.nodes.names or part.nodes.name_pattern]
    return [part for part in parts if MIG_CONFIG_LABEL in part.labels]


# --- Where it comes from -----------------------------------------------------------------------------------------


class _Traces(NamedTuple):
    """Routes of the objects of a pool's guard."""

    plan: Plan
    pool: Pool

    def account(self) -> Routes:
        return self._in_namespace(named(self.pool))

    def rights(self) -> Routes:
        """Yield the routes of what the ServiceAccount may do in all namespaces."""
        yield from self._metadata(named(self.pool))
        yield ("roleRef", "name"), named(self.pool)
        yield ("subjects", 0, "name"), named(self.pool)
        yield ("subjects", 0, "namespace"), operator_namespace(self.plan.cluster)

    def texts(self) -> Routes:
        yield from self._in_namespace(self._texts_name())
        yield from below(("data", _SETTINGS), self._settings())

    def job(self, hook: Hook) -> Routes:
        guard = self.pool.at / "disruption" / "guard"
        yield from self._in_namespace(named(self.pool))
        if hook is Hook.AFTER:
            yield ("spec", "activeDeadlineSeconds"), summed(guard / "timeout")
        yield ("spec", "template", "metadata", "labels", POOL_LABEL), named(self.pool)
        pod = ("spec", "template", "spec")
        yield (*pod, "serviceAccountName"), named(self.pool)
        for field in ("runAsUser", "runAsGroup"):
            yield (*pod, "securityContext", field), chosen(self.plan.cluster.at / "platform")
        yield (*pod, "containers", 0, "image"), copied(guard / "image")
        yield (*pod, "volumes", 0, "configMap", "name"), self._texts_name()

    def _in_namespace(self, name: Links) -> Routes:
        yield ("metadata", "namespace"), operator_namespace(self.plan.cluster)
        yield from self._metadata(name)

    def _metadata(self, name: Links) -> Routes:
        """Yield the routes of metadata. Of pools without MIG, those have a guard whose GPUs could have it."""
        yield (), chosen(self.plan.cluster.at / "nodeLabels")
        if not any(isinstance(part.sharing, Mig) for part in self.pool.parts):
            yield (), (*chosen(self.pool.at / "gpu"), *has_mig_of(self.pool.gpu))
        yield ("metadata", "name"), name
        yield ("metadata", "labels", POOL_LABEL), named(self.pool)

    def _texts_name(self) -> Links:
        return (*named(self.pool), *hashed(link for _, links in self._settings() for link in links))

    def _settings(self) -> Routes:
        yield ("pool",), named(self.pool)
        yield ("namespace",), operator_namespace(self.plan.cluster)
        yield ("timeoutSeconds",), multiplied(self.pool.at / "disruption" / "guard" / "timeout")
        yield ("leaving",), chosen(self.plan.cluster.at / "nodeLabels")
        for index, part in enumerate(_targeted(self.pool)):
            yield from below(("targets", index), self._target(part))

    def _target(self, part: Pool) -> Routes:
        yield ("config",), mig_config_of(part)
        if part.nodes.names:
            yield from below(("names",), names_of(self.pool, part.nodes.names))
        else:
            yield ("pattern",), copied(self.pool.at / "nodes" / "namePattern")
            yield from below(("except",), names_of(self.pool, part.nodes.moved))
