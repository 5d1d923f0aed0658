"""Routes that all objects of a workload have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gpuplan.compiler.backends.workloads.bodies import (
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
from gpuplan.compiler.base.diagnostics import Origin, Path
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests.merging.strategic import Patched
from gpuplan.compiler.manifests.provenance import ANY, Links, Routes, below, chosen, copied, hashed, multiplied
from gpuplan.compiler.planning import sources
from gpuplan.compiler.planning.fallbacks import deciding, reach
from gpuplan.compiler.planning.kueue import PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY, TOGETHER
from gpuplan.compiler.planning.plan import TENANT_LABEL, WORKLOAD_LABEL, Plan, Pool, Workload
from gpuplan.compiler.planning.pods import Volume, volumes_of
from gpuplan.compiler.planning.schedulers import kai, kueue, runai
from gpuplan.compiler.policy.models import PartOfGpu, ValueFrom

Several = Iterable[tuple[Path, Links]]
"""Routes that may be read more than once."""

NO_VARIABLES: Final[Mapping[str, Several]] = {}


class Traces(NamedTuple):
    """Routes of the objects of one workload."""

    plan: Plan
    workload: Workload

    def content_name(self, content: list[tuple[Path, Links]]) -> Links:
        """Return the places of a name with a digest of what a Job is."""
        return (*sources.named(self.workload), *hashed(link for _, links in content for link in links))

    def training_kind(self) -> Links:
        """Return what says which object a training is."""
        return chosen(self.workload.work_at / "kind") if self.workload.spec.training else ()

    def metadata(self, name: Links) -> Routes:
        yield ("metadata", "name"), name
        yield ("metadata", "namespace"), self.namespace()
        yield from self.labels()

    def labels(self) -> Routes:
        yield ("metadata", "labels", TENANT_LABEL), self.tenant()
        yield ("metadata", "labels", WORKLOAD_LABEL), sources.named(self.workload)

    def namespace(self) -> Links:
        """Return the places of the namespace.

        One that is named need not be the tenant's; a finding says that it must be.
        """
        at, tenant, namespace = self.workload.at, self.workload.tenant, self.workload.namespace
        known = copied(sources.namespace_of(tenant, namespace)) if namespace in tenant.spec.namespaces else ()
        return (*known, *chosen(at / ("tenant" if self.workload.spec.namespace is None else "namespace")))

    def tenant(self) -> Links:
        return (*sources.named(self.workload.tenant), *chosen(self.workload.at / "tenant"))

    def _pool(self) -> Links:
        return (*sources.named(self.workload.pool), *self._pool_chosen())

    def _pool_chosen(self) -> Links:
        return chosen(self.workload.at / "pool")

    def config_name(self) -> Links:
        at = self.workload.at / "config"
        written = [at / name for name in self.workload.spec.config]
        idle = [self.workload.work_at / "idle"] if self.workload.idle else []
        return (*sources.named(self.workload), *hashed(copied(*written, *idle)))

    def pod(self, listening: Several = (), variables: Mapping[str, Several] = NO_VARIABLES) -> Routes:
        """Yield the routes of a pod; ``listening`` is about what only this kind of work has in its container."""
        listening = list(listening)
        routes = self._pod(listening, variables)
        return self._laid_over(list(routes), listening, variables) if self.workload.pod_patch else routes

    def _laid_over(
        self, routes: list[tuple[Path, Links]], listening: Several, variables: Mapping[str, Several]
    ) -> Routes:
        """Yield the routes with what the patch says in place of all else.

        Its lists go on where those of the pod end.
        """
        found = self._patched(listening, variables)
        gone = {*found.replaced, *(route for route, _ in found.removed)}
        yield from ((route, links) for route, links in routes if not any(route[: len(at)] == at for at in gone))
        for route, inner in found.decided:
            keys = [key for key in found.chosen if inner[: len(key) - 1] == key[:-1]]
            at = self.workload.patch_at
            yield route, (*copied(at / inner), *chosen(*(at / key for key in keys)))
        for route, inner in found.removed:
            yield route, chosen(self.workload.patch_at / inner)

    def _patched(self, listening: Several, variables: Mapping[str, Several]) -> Patched:
        workload, asked = self.workload.without_patch(), terms_of(self.plan, self.workload)
        numbers = [int(route[1]) for route, _ in listening if route[0] == "ports"]
        ports = {"ports": [{"containerPort": -1}] * (max(numbers, default=-1) + 1)}
        names = dict.fromkeys(self.variables(variables), "")
        template = pod_template(self.plan, workload, asked, {}, ports, names)
        return laid_over(self.plan, self.workload, template)

    def _pod(self, listening: Several, variables: Mapping[str, Several]) -> Routes:
        asked = terms_of(self.plan, self.workload)
        yield from self.labels()
        yield from self.asked(asked.pod_labels, asked.pod_annotations)
        yield ("spec", "schedulerName"), sources.scheduler_of(self.plan)
        yield ("spec", "priorityClassName"), self.class_()
        tenant = self.workload.tenant
        is_tenants = tenant.spec.allow.grace_period is not None
        at = tenant.at / "allow" if is_tenants else self.plan.cluster.at / "admission"
        grace = (*copied(at / "gracePeriod"), *chosen(self.workload.at / "tenant"))
        yield ("spec", "terminationGracePeriodSeconds"), grace
        yield from self._placement()
        yield from below(("spec", "containers", 0), self._container(listening, variables))
        yield from self.security()
        yield from self.pulled()
        yield from below(("spec", "resourceClaims"), self._claims())
        for index, volume in enumerate(pod_volumes(self.workload)):
            is_config = "configMap" in volume
            field = "configMap" if is_config else "persistentVolumeClaim"
            yield ("spec", "volumes", index, field), self.config_name() if is_config else sources.named(self.workload)

    def pulled(self) -> Routes:
        for index in range(len(self.workload.spec.image_pull_secrets)):
            yield ("spec", "imagePullSecrets", index, "name"), copied(self.workload.at / "imagePullSecrets" / index)

    def _placement(self) -> Routes:
        pools = reach(self.plan, self.workload)
        if len(pools) == 1:
            yield from self.within()
            yield ("spec", "nodeSelector"), chosen(*deciding(self.plan, self.workload))
            if self.workload.pool.spec.fallback is not None:
                yield ("spec", "nodeSelector"), sources.scheduler_of(self.plan)
            return
        expression = ("matchExpressions", 0, "values")
        values = ("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms", 0, *expression)
        preferred = ("spec", "affinity", "nodeAffinity", PREFERRED)
        links = (*self._pool_chosen(), *chosen(*deciding(self.plan, self.workload)))
        yield ("spec", "affinity"), (*links, *sources.scheduler_of(self.plan))
        for index in range(len(pools)):
            yield (*values, index), self._pool_by_fallback(pools, index)
            yield (*preferred, index, "preference", *expression), self._pool_by_fallback(pools, index)
        yield ("spec", "tolerations"), links
        tolerations = tolerations_among(pools)
        for pool in pools:
            at = [tolerations.index(toleration) for toleration in pool.tolerations]
            for (first, *rest), links in sources.tolerations_of(pool):
                yield ("spec", "tolerations", at[int(first)], *rest), links

    def _pool_by_fallback(self, pools: Sequence[Pool], index: int) -> Links:
        """Return the places of a pool that the workload names, or of one that it falls back to."""
        if index == 0:
            return self._pool()
        return (*sources.named(pools[index]), *chosen(*deciding(self.plan, self.workload)))

    def within(self) -> Routes:
        yield ("spec", "nodeSelector"), self._pool()
        yield ("spec", "tolerations"), self._pool_chosen()
        yield from below(("spec", "tolerations"), sources.tolerations_of(self.workload.pool))

    def security(self) -> Routes:
        level = chosen(self.workload.tenant.at / "allow" / "podSecurity", self.workload.at / "tenant")
        yield ("spec", "securityContext", "runAsNonRoot"), level
        yield ("spec", "containers", 0, "securityContext", "capabilities"), level

    def _container(self, listening: Several, variables: Mapping[str, Several]) -> Routes:
        at, spec = self.workload.at, self.workload.spec
        yield from program(at, spec.command, spec.args)
        if any(name not in spec.env for name in terms_of(self.plan, self.workload).env):
            yield ("env", ANY), sources.scheduler_of(self.plan)  # its own ones come first
        for index, name in enumerate(self.variables(variables)):
            if name in spec.env:
                yield from below(("env", index), variable(at / "env" / name, spec.env[name]))
            elif name in variables:
                yield from below(("env", index), iter(variables[name]))
            else:
                yield ("env", index, "name"), sources.scheduler_of(self.plan)
                yield ("env", index, "value"), self._term(name)
        yield from listening
        for name in ("cpu", "memory"):
            yield ("resources", ANY, name), copied(at / name)
        for name in units_of(self.workload):
            yield ("resources", ANY, name), (*copied(at / "count"), *sources.asked_by(self.plan, self.workload))
        yield from below(("resources", "claims"), self._claims())
        for index, volume in enumerate(volumes_of(self.workload), start=len(config_mount(self.workload))):
            yield from self.mount(index, volume)

    def variables(self, of_work: Iterable[str]) -> Iterable[str]:
        """Return the names of the container's variables in their order; ``of_work`` are those of this kind of work."""
        return dict.fromkeys([*terms_of(self.plan, self.workload).env, *of_work, *self.workload.spec.env])

    def mount(self, index: int, volume: Volume) -> Routes:
        yield ("volumeMounts", index, "mountPath"), copied(volume.at / "mountPath")

    def _claims(self) -> Routes:
        """Yield the routes of a pod's claims, by their number."""
        for number in range(len(resource_claims(self.workload))):
            yield (number,), chosen(self.workload.pool.at / "allocation")
            yield (number, "resourceClaimTemplateName"), sources.asked_by(self.plan, self.workload)
            if number:
                yield (number,), chosen(self.workload.at / "count")

    def asked(self, labels: Iterable[str], annotations: Iterable[str]) -> Routes:
        """Yield the routes of what a scheduler reads of an object, or of its pods."""
        for field, keys in (("labels", labels), ("annotations", annotations)):
            for key in keys:
                yield ("metadata", field, key), (*self._term(key), *sources.scheduler_of(self.plan))

    def _term(self, key: str) -> Links:
        """Return the places of a label, an annotation or a variable of `terms_of`."""
        workload, tenant, pool = self.workload, chosen(self.workload.at / "tenant"), self._pool_chosen()
        fraction, priority = workload.at / "fraction", workload.priority_class
        level = (*(copied(workload.closeness.at) if workload.closeness else ()), *pool)
        match key:
            case kueue.QUEUE_LABEL:
                queue = sources.local_queue_of(workload.tenant)
                return (*queue, *tenant) if queue else ()
            case kai.QUEUE_LABEL:
                return (*sources.queue_by_pool_of(workload.tenant, workload.pool), *tenant, *pool)
            case kueue.PRIORITY_LABEL:
                return self.class_()
            case kai.PREEMPTIBILITY_LABEL:
                return (*(chosen(priority.at / "preemptible") if priority else ()), *self._class_named())
            case _ if key in (kai.NODE_POOL_LABEL, runai.NODE_POOL_LABEL, TOPOLOGY):
                return self._pool()
            case _ if key in (PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY, KAI_PREFERRED, KAI_REQUIRED):
                return level
            case _ if key == TOGETHER:
                return (*sources.named(workload), *level)
            case _ if key == GANG:
                return copied(workload.gang_at)
            case _ if key == FRACTION:
                return copied(fraction / "min" if isinstance(workload.spec.fraction, PartOfGpu) else fraction)
            case _ if key == GPU_MEMORY:
                return multiplied(fraction / "memory")
            case _ if key in (PORTION_LIMIT, MEMORY_LIMIT):  # not there if it is all that a pod has anyway
                return (*copied(fraction / "max"), *chosen(fraction / "min"))
            case _:  # ANY_TOPOLOGY
                return pool

    def class_(self) -> Links:
        """Return the places of the class of the pods, or of what says that there is none."""
        return (
            *(sources.named(self.workload.priority_class) if self.workload.priority_class else ()),
            *self._class_named(),
        )

    def _class_named(self) -> Links:
        at, tenant = self.workload.at, self.workload.tenant
        if self.workload.spec.priority_class is not None:
            return chosen(at / "priorityClass")
        return chosen(at / "tenant", tenant.at / "priorityClasses" / 0)


def program(at: Origin, command: Sequence[str], args: Sequence[str]) -> Routes:
    """Yield the routes of what a container runs."""
    yield ("image",), copied(at / "image")
    for field, texts in (("command", command), ("args", args)):
        for index in range(len(texts)):
            yield (field, index), copied(at / field / index)


def variable(at: Origin, value: str | ValueFrom) -> Routes:
    """Yield the routes of a variable, and the value that it has or where that stands."""
    yield ("name",), chosen(at)
    if isinstance(value, str):
        yield ("value",), copied(at)
        return
    for field in value_of(value)["valueFrom"]:
        yield from ((("valueFrom", field, part), copied(at / field / part)) for part in ("name", "key"))
