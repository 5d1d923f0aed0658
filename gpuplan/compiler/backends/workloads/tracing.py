"""Where the objects of a workload come from: what all of them have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from gpuplan.compiler.backends.workloads.pods import (
    PREFERRED,
    REQUIRED,
    config_mount,
    laid_over,
    pod_template,
    pod_volumes,
    resource_claims,
    tolerations_among,
    units_of,
    value_of,
)
from gpuplan.compiler.backends.workloads.terms import (
    FRACTION,
    GANG,
    GPU_MEMORY,
    KAI_PREFERRED,
    KAI_REQUIRED,
    MEMORY_LIMIT,
    PORTION_LIMIT,
    TOPOLOGY,
    terms_of,
)
from gpuplan.compiler.base.diagnostics import Origin, Path
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests.merging.strategic import Patched
from gpuplan.compiler.manifests.provenance import ANY, Links, Routes, below, chosen, copied, hashed, multiplied
from gpuplan.compiler.planning.fallbacks import deciding, reach
from gpuplan.compiler.planning.kueue import ANY_TOPOLOGY, PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY, TOGETHER
from gpuplan.compiler.planning.plan import TENANT_LABEL, WORKLOAD_LABEL, Plan, Pool, Workload
from gpuplan.compiler.planning.schedulers import kai, kueue, runai
from gpuplan.compiler.planning.sources import (
    asked_by,
    local_queue_of,
    named,
    namespace_of,
    queue_by_pool_of,
    scheduler_of,
    tolerations_of,
)
from gpuplan.compiler.planning.volumes import Volume, volumes_of
from gpuplan.compiler.policy.models import PartOfGpu, ValueFrom

Several = Iterable[tuple[Path, Links]]
"""Routes that may be read more than once."""

NO_VARIABLES: Final[Mapping[str, Several]] = {}


class Traces(NamedTuple):
    """Where the objects of one workload come from."""

    plan: Plan
    workload: Workload

    def content_name(self, content: list[tuple[Path, Links]]) -> Links:
        """A digest of what a Job is stands in its name."""
        return (*named(self.workload), *hashed(link for _, links in content for link in links))

    def training_kind(self) -> Links:
        """What says which object a training is."""
        return chosen(self.workload.work_at / "kind") if self.workload.spec.training else ()

    def metadata(self, name: Links) -> Routes:
        yield ("metadata", "name"), name
        yield ("metadata", "namespace"), self.namespace()
        yield from self.labels()

    def labels(self) -> Routes:
        yield ("metadata", "labels", TENANT_LABEL), self.tenant()
        yield ("metadata", "labels", WORKLOAD_LABEL), named(self.workload)

    def namespace(self) -> Links:
        """One that is named need not be the tenant's; that it must be is said in a finding."""
        at, tenant, namespace = self.workload.at, self.workload.tenant, self.workload.namespace
        known = copied(namespace_of(tenant, namespace)) if namespace in tenant.spec.namespaces else ()
        return (*known, *chosen(at / ("tenant" if self.workload.spec.namespace is None else "namespace")))

    def tenant(self) -> Links:
        return (*named(self.workload.tenant), *chosen(self.workload.at / "tenant"))

    def _pool(self) -> Links:
        return (*named(self.workload.pool), *self._pool_chosen())

    def _pool_chosen(self) -> Links:
        return chosen(self.workload.at / "pool")

    def config_name(self) -> Links:
        at = self.workload.at / "config"
        written = [at / name for name in self.workload.spec.config]
        idle = [self.workload.work_at / "idle"] if self.workload.idle else []
        return (*named(self.workload), *hashed(copied(*written, *idle)))

    def pod(self, own: Several = (), variables: Mapping[str, Several] = NO_VARIABLES) -> Routes:
        """``own`` is about what only this kind of work has in its container, as are ``variables``, by their names."""
        own = list(own)
        routes = self._pod(own, variables)
        return self._laid_over(list(routes), own, variables) if self.workload.pod_patch else routes

    def _laid_over(self, routes: list[tuple[Path, Links]], own: Several, variables: Mapping[str, Several]) -> Routes:
        """With what the patch says in place of all else. Its lists go on where those of the pod end."""
        found = self._patched(own, variables)
        gone = {*found.replaced, *(route for route, _ in found.removed)}
        yield from ((route, links) for route, links in routes if not any(route[: len(at)] == at for at in gone))
        for route, inner in found.decided:
            keys = [key for key in found.chosen if inner[: len(key) - 1] == key[:-1]]
            at = self.workload.patch_at
            yield route, (*copied(at / inner), *chosen(*(at / key for key in keys)))
        for route, inner in found.removed:
            yield route, chosen(self.workload.patch_at / inner)

    def _patched(self, own: Several, variables: Mapping[str, Several]) -> Patched:
        workload, asked = self.workload.without_patch(), terms_of(self.plan, self.workload)
        numbers = [int(route[1]) for route, _ in own if route[0] == "ports"]
        ports = {"ports": [{"containerPort": -1}] * (max(numbers, default=-1) + 1)}
        names = dict.fromkeys(self.variables(variables), "")
        template = pod_template(self.plan, workload, asked, {}, ports, names)
        return laid_over(self.plan, self.workload, template)

    def _pod(self, own: Several, variables: Mapping[str, Several]) -> Routes:
        asked = terms_of(self.plan, self.workload)
        yield from self.labels()
        yield from self.asked(asked.pod_labels, asked.pod_annotations)
        yield ("spec", "schedulerName"), scheduler_of(self.plan)
        yield ("spec", "priorityClassName"), self.class_()
        yield ("spec", "terminationGracePeriodSeconds"), self._grace_period()
        yield from self._placement()
        yield from below(("spec", "containers", 0), self._container(own, variables))
        yield from self.security()
        yield from self.pulled()
        yield from below(("spec", "resourceClaims"), self._claims())
        yield from self._volumes()

    def pulled(self) -> Routes:
        for index in range(len(self.workload.spec.image_pull_secrets)):
            yield ("spec", "imagePullSecrets", index, "name"), copied(self.workload.at / "imagePullSecrets" / index)

    def _grace_period(self) -> Links:
        allow = self.workload.tenant.spec.allow
        own = allow.grace_period is not None
        at = self.workload.tenant.at / "allow" if own else self.plan.cluster.at / "admission"
        return (*copied(at / "gracePeriod"), *chosen(self.workload.at / "tenant"))

    def _placement(self) -> Routes:
        pools = reach(self.plan, self.workload)
        if len(pools) == 1:
            yield from self.within()
            yield ("spec", "nodeSelector"), chosen(*deciding(self.plan, self.workload))
            if self.workload.pool.spec.fallback is not None:
                yield ("spec", "nodeSelector"), scheduler_of(self.plan)
            return
        expression = ("matchExpressions", 0, "values")
        values = ("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms", 0, *expression)
        preferred = ("spec", "affinity", "nodeAffinity", PREFERRED)
        links = (*self._pool_chosen(), *chosen(*deciding(self.plan, self.workload)))
        yield ("spec", "affinity"), (*links, *scheduler_of(self.plan))
        for index in range(len(pools)):
            yield (*values, index), self._pool_by_fallback(pools, index)
            yield (*preferred, index, "preference", *expression), self._pool_by_fallback(pools, index)
        yield ("spec", "tolerations"), links
        tolerations = tolerations_among(pools)
        for pool in pools:
            at = [tolerations.index(toleration) for toleration in pool.tolerations]
            for (first, *rest), links in tolerations_of(pool):
                yield ("spec", "tolerations", at[int(first)], *rest), links

    def _pool_by_fallback(self, pools: Sequence[Pool], index: int) -> Links:
        """A pool that the workload names, or one that it falls back to."""
        if index == 0:
            return self._pool()
        return (*named(pools[index]), *chosen(*deciding(self.plan, self.workload)))

    def within(self) -> Routes:
        yield ("spec", "nodeSelector"), self._pool()
        yield ("spec", "tolerations"), self._pool_chosen()
        yield from below(("spec", "tolerations"), tolerations_of(self.workload.pool))

    def security(self) -> Routes:
        level = chosen(self.workload.tenant.at / "allow" / "podSecurity", self.workload.at / "tenant")
        yield ("spec", "securityContext", "runAsNonRoot"), level
        yield ("spec", "containers", 0, "securityContext", "capabilities"), level

    def _volumes(self) -> Routes:
        for index, volume in enumerate(pod_volumes(self.workload)):
            is_config = "configMap" in volume
            field = "configMap" if is_config else "persistentVolumeClaim"
            yield ("spec", "volumes", index, field), self.config_name() if is_config else named(self.workload)

    def _container(self, own: Several, variables: Mapping[str, Several]) -> Routes:
        at, spec = self.workload.at, self.workload.spec
        yield from program(at, spec.command, spec.args)
        if any(name not in spec.env for name in terms_of(self.plan, self.workload).env):
            yield ("env", ANY), scheduler_of(self.plan)  # its own ones come first
        for index, name in enumerate(self.variables(variables)):
            if name in spec.env:
                yield from below(("env", index), variable(at / "env" / name, spec.env[name]))
            elif name in variables:
                yield from below(("env", index), iter(variables[name]))
            else:
                yield ("env", index, "name"), scheduler_of(self.plan)
                yield ("env", index, "value"), _TERMS[name](self)
        yield from own
        for name in ("cpu", "memory"):
            yield ("resources", ANY, name), copied(at / name)
        for name in units_of(self.workload):
            yield ("resources", ANY, name), (*copied(at / "count"), *asked_by(self.plan, self.workload))
        yield from below(("resources", "claims"), self._claims())
        for index, volume in enumerate(volumes_of(self.workload), start=len(config_mount(self.workload))):
            yield from self.mount(index, volume)

    def variables(self, of_work: Iterable[str]) -> Iterable[str]:
        """The names of the container's variables in their order; ``of_work`` are those of this kind of work."""
        return dict.fromkeys([*terms_of(self.plan, self.workload).env, *of_work, *self.workload.spec.env])

    def mount(self, index: int, volume: Volume) -> Routes:
        yield ("volumeMounts", index, "mountPath"), copied(volume.at / "mountPath")

    def _claims(self) -> Routes:
        """Those of a pod, by their number, where it has any."""
        for number in range(len(resource_claims(self.workload))):
            yield (number,), chosen(self.workload.pool.at / "allocation")
            yield (number, "resourceClaimTemplateName"), asked_by(self.plan, self.workload)
            if number:
                yield (number,), chosen(self.workload.at / "count")

    def asked(self, labels: Iterable[str], annotations: Iterable[str]) -> Routes:
        """What a scheduler reads of an object, or of its pods, which is there for this scheduler."""
        for field, keys in (("labels", labels), ("annotations", annotations)):
            for key in keys:
                yield ("metadata", field, key), (*_TERMS[key](self), *scheduler_of(self.plan))

    def _queue(self) -> Links:
        """The queue in the pool, with KAI-Scheduler."""
        workload = self.workload
        chosen_by = (*chosen(workload.at / "tenant"), *self._pool_chosen())
        return (*queue_by_pool_of(workload.tenant, workload.pool), *chosen_by)

    def _local_queue(self) -> Links:
        found = local_queue_of(self.workload.tenant)
        return (*found, *chosen(self.workload.at / "tenant")) if found else ()

    def _gang(self) -> Links:
        return copied(self.workload.gang_at)

    def _together(self) -> Links:
        return (*named(self.workload), *self._level())

    def _level(self) -> Links:
        found = self.workload.closeness
        return (*(copied(found.at) if found else ()), *self._pool_chosen())

    def _least(self) -> Links:
        at = self.workload.at / "fraction"
        return copied(at / "min" if isinstance(self.workload.spec.fraction, PartOfGpu) else at)

    def _memory(self) -> Links:
        return multiplied(self.workload.at / "fraction" / "memory")

    def _most(self) -> Links:
        """It is not there where it is all that a pod has anyway."""
        at = self.workload.at / "fraction"
        return (*copied(at / "max"), *chosen(at / "min"))

    def class_(self) -> Links:
        """The class of the pods, or what says that there is none."""
        return (*(named(self.workload.priority_class) if self.workload.priority_class else ()), *self._class_named())

    def _class_named(self) -> Links:
        at, tenant = self.workload.at, self.workload.tenant
        if self.workload.spec.priority_class is not None:
            return chosen(at / "priorityClass")
        return chosen(at / "tenant", tenant.at / "priorityClasses" / 0)

    def _preemptibility(self) -> Links:
        found = self.workload.priority_class
        return (*(chosen(found.at / "preemptible") if found else ()), *self._class_named())


def program(at: Origin, command: Sequence[str], args: Sequence[str]) -> Routes:
    """What a container runs."""
    yield ("image",), copied(at / "image")
    for field, texts in (("command", command), ("args", args)):
        for index in range(len(texts)):
            yield (field, index), copied(at / field / index)


def variable(at: Origin, value: str | ValueFrom) -> Routes:
    """A variable, and the value that it has or where that stands."""
    yield ("name",), chosen(at)
    if isinstance(value, str):
        yield ("value",), copied(at)
        return
    for field in value_of(value)["valueFrom"]:
        yield from ((("valueFrom", field, part), copied(at / field / part)) for part in ("name", "key"))


_TERMS: Final[Mapping[str, Callable[[Traces], Links]]] = {
    kueue.QUEUE_LABEL: Traces._local_queue,
    kueue.PRIORITY_LABEL: Traces.class_,
    PREFERRED_TOPOLOGY: Traces._level,
    REQUIRED_TOPOLOGY: Traces._level,
    ANY_TOPOLOGY: Traces._pool_chosen,
    TOGETHER: Traces._together,
    kai.QUEUE_LABEL: Traces._queue,
    kai.NODE_POOL_LABEL: Traces._pool,
    kai.PREEMPTIBILITY_LABEL: Traces._preemptibility,
    runai.NODE_POOL_LABEL: Traces._pool,
    GANG: Traces._gang,
    TOPOLOGY: Traces._pool,
    KAI_PREFERRED: Traces._level,
    KAI_REQUIRED: Traces._level,
    FRACTION: Traces._least,
    GPU_MEMORY: Traces._memory,
    PORTION_LIMIT: Traces._most,
    MEMORY_LIMIT: Traces._most,
}
"""What each label and annotation of `terms_of` says."""
