"""Checks on what a workload asks for and how it is written (GPU577-599)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from string import digits

from pydantic import BaseModel

from gpuplan.compiler.base.credentials import holds_credential, is_credential
from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Path, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import items, mapping
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of, number
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.planning.apis import needed_api
from gpuplan.compiler.planning.discovered import HOST_LABEL
from gpuplan.compiler.planning.fallbacks import reach
from gpuplan.compiler.planning.grants import refuses_more_than_one
from gpuplan.compiler.planning.plan import Fraction, FractionRequest, Isolation, Plan, Workload
from gpuplan.compiler.planning.pods import patched_containers, room_on_node, volumes_of
from gpuplan.compiler.planning.pools import gpu_memory_mib
from gpuplan.compiler.planning.serving import is_called
from gpuplan.compiler.planning.workspaces import FILES, files_of
from gpuplan.compiler.policy.models import Autoscaling, Batch, Inference, Training, ValueFrom, Workspace
from gpuplan.compiler.policy.texts import quantity_meant

# --- Units -------------------------------------------------------------------------------------------------------


@check("GPU577", "several-shares")
def several_shares(plan: Plan) -> Iterator[Finding]:
    """A workload's pods ask for more than one share of a GPU.

    ## Why
    Shares of a GPU are handed out without looking which GPU they are of. Two of them are not twice the memory or twice
    the time: they may be of one GPU, where a process gets one turn like everybody else's. The device plugin therefore
    refuses containers that ask for several (`UnexpectedAdmissionError`), and so do gpuplan's admission rules.

    ## Instead
    Ask for one share. Who needs more than a share needs a larger one, a MIG profile or a whole GPU. Where the pool says
    `failRequestsGreaterThanOne: false` this is a warning.
    """
    for workload in plan.workloads:
        pool, unit = workload.pool, workload.unit
        part = pool.part_with(unit)
        if workload.spec.count > 1 and part.shares_of(unit):
            is_refused = refuses_more_than_one(pool, unit)
            yield Finding(
                workload.at / "count",
                f"a pod of `{workload.name}` asks for {workload.spec.count} shares of pool `{pool.name}`",
                label="refused by the device plugin" if is_refused else "more shares, not more GPU",
                related=(Label(part.sharing.at.key, "shares"),),
                notes=("shares may be of one GPU, and bring no more time or memory on it",),
                help="leave `count` out, or use a pool with larger units",
                severity=None if is_refused else Severity.WARNING,
            )


@check("GPU578", "several-mig-devices", Severity.WARNING)
def several_mig_devices(plan: Plan) -> Iterator[Finding]:
    """A workload's pods ask for more than one MIG device.

    ## Why
    A CUDA process sees one MIG device, the first of those that its container has
    (https://docs.nvidia.com/datacenter/tesla/mig-user-guide/mig-device-names.html). The others stay idle unless the
    container starts a process for each; between those there is neither NVLink nor CUDA's inter-process communication.

    ## Instead
    Ask for one larger profile, or for more pods of one device each.
    """
    for workload in plan.workloads:
        pool, unit = workload.pool, workload.unit
        if workload.spec.count > 1 and unit.isolation is Isolation.HARDWARE:
            larger = [other.name for other in pool.units if other.gpu_weight > unit.gpu_weight]
            yield Finding(
                workload.at / "count",
                f"a pod of `{workload.name}` asks for {workload.spec.count} `{unit.name}`, and a CUDA process sees one",
                label="the others stay idle",
                notes=(f"pool `{pool.name}` also hands out {listing(larger)}",) if larger else (),
                help="leave `count` out and run more pods, or ask for a larger profile",
            )


@check("GPU580", "fraction-does-not-match-pool")
def fraction_does_not_match_pool(plan: Plan) -> Iterator[Finding]:
    """A workload asks for a fraction where there are none, or for no fraction where there is nothing else.

    ## Why
    On a pool of fractions pods ask for a part of a GPU, or of its memory, by an annotation. On other pools they ask for
    whole units by a resource, and the annotation does nothing, or is refused next to it. `count` counts units, of which
    a pod with a fraction has none.

    ## Instead
    Write `fraction` on pools with `sharing: {fraction: {}}`, and `count` on all others.
    """
    for workload in plan.workloads:
        name, pool, fraction = workload.name, workload.pool, workload.fraction
        shared = pool.part_with(workload.unit).sharing
        sharing = (Label(shared.at.key, "how the pool is shared"),)
        if fraction and not isinstance(shared, Fraction):
            yield Finding(
                fraction.at.key,
                f"pool `{pool.name}` of workload `{name}` does not hand out fractions",
                label=f"it hands out {listing([unit.name for unit in pool.units])}",
                related=sharing,
                notes=_with_enough(workload, fraction),
                help="leave `fraction` out, or use a pool with `sharing: {fraction: {}}`",
            )
        elif isinstance(shared, Fraction) and not fraction:
            yield Finding(
                workload.at / "pool",
                f"workload `{name}` does not say which fraction of a GPU its pods need",
                label="hands out fractions",
                related=sharing,
                help="add `fraction: 0.5`, or use a pool with `sharing: {exclusive: {}}` for whole GPUs",
            )
        elif fraction and workload.spec.count > 1:
            yield Finding(
                workload.at / "count",
                f"workload `{name}` has both a count and a fraction",
                label="has no effect on a fraction",
                related=(Label(fraction.at, "a part of one GPU"),),
                help="leave `count` out; for more GPUs run more pods",
            )


def _with_enough(workload: Workload, fraction: FractionRequest) -> tuple[str, ...]:
    """Return the smallest unit of the pool that has the memory that is asked for, as a note."""
    need = fraction.memory_mib
    sized = [(unit.memory_mib, unit.name) for unit in workload.pool.units if unit.memory_mib is not None]
    enough = min((found for found in sized if need is not None and found[0] >= need), default=None)
    return (f"`unit: {enough[1]}` has {enough[0]} MiB",) if enough else ()


_LEAST_MIB = 100
"""A CUDA context alone takes more on every GPU of the catalog."""


@check("GPU592", "memory-out-of-range")
def memory_out_of_range(plan: Plan) -> Iterator[Finding]:
    """A workload asks for more GPU memory than a GPU of its pool has, or for too little to run anything.

    ## Why
    A fraction is of one GPU. KAI-Scheduler divides whole hundreds of MiB of what the label `nvidia.com/gpu.memory` says
    (`getNodeGpuMemory` in `pkg/scheduler/api/node_info/node_info.go`), so that of the 81,920 MiB of an A100-80GB it
    hands out 81,900: a pod that asks for `80Gi` waits for ever. A number without a unit is bytes, as everywhere in
    Kubernetes, and below 100 MiB no CUDA process starts.

    ## Instead
    Ask for less, or write a unit: `10Gi`. A pod that needs a whole GPU runs on a pool with `sharing: {exclusive: {}}`.
    """
    for workload in plan.workloads:
        fraction = workload.fraction
        if fraction is None or fraction.memory_mib is None or _LEAST_MIB <= fraction.memory_mib <= fraction.gpu_mib:
            continue
        is_little = fraction.memory_mib < _LEAST_MIB
        yield Finding(
            fraction.at / "memory",
            f"`{workload.name}` asks for {fraction.memory_mib} MiB of a GPU that has {fraction.gpu_mib} MiB to divide",
            label="less than a CUDA process needs" if is_little else "no pod starts",
            related=(Label(workload.pool.at / "gpu", f"{gpu_memory_mib(workload.pool.gpu)} MiB, in whole hundreds"),),
            help="write a unit, such as `memory: 10Gi`"
            if is_little
            else f"write `memory: {fraction.gpu_mib}Mi` or less",
        )


# --- The tenant's own --------------------------------------------------------------------------------------------


@check("GPU581", "namespace-not-of-tenant")
def namespace_not_of_tenant(plan: Plan) -> Iterator[Finding]:
    """A workload runs in a namespace that its tenant does not have.

    ## Why
    A pod belongs to the tenant of its namespace: it would use that one's quota, under its priority classes, or none.

    ## Instead
    Name one of the tenant's namespaces, or the tenant that the namespace belongs to.
    """
    for workload in plan.workloads:
        tenant, owner = workload.tenant, plan.owners.get(workload.namespace)
        if workload.namespace not in tenant.spec.namespaces:
            yield Finding(
                workload.at / "namespace",
                f"namespace `{workload.namespace}` of workload `{workload.name}` is not one of tenant `{tenant.name}`",
                label=f"belongs to tenant `{owner.name}`" if owner else "belongs to no tenant",
                related=(Label((tenant.at / "namespaces").key, f"`{tenant.name}` has these"),),
                help=f"write `namespace: {tenant.spec.namespaces[0]}`"
                if tenant.spec.namespaces
                else "name a tenant that has namespaces",
            )


# --- Pods --------------------------------------------------------------------------------------------------------


@check("GPU583", "workload-contradicts-itself")
def workload_contradicts_itself(plan: Plan) -> Iterator[Finding]:
    """Two numbers of a workload contradict each other.

    ## Why
    A gang larger than the job can never start. Pods that come one after the other, as those of `trials`, can neither
    start together nor find one another, and no more of them run at once than there are in all. The API server refuses
    an autoscaler whose `minReplicas` is above its `maxReplicas`, and `maxFailedIndexes` without tries of each pod or
    with more than there are pods. A range of a fraction begins at its smaller end.

    ## Instead
    Correct one of the two. `replicas` outside of what the autoscaler keeps to is a warning: it changes them at once.
    """
    for workload in plan.workloads:
        name, fraction = workload.name, workload.fraction
        match workload.work:
            case Training(pods=pods, gang=int(gang)) if gang > pods:
                at = workload.work_at
                yield Finding(
                    at / "gang",
                    f"a gang of {gang} cannot start together: `{name}` has {pods} pods",
                    label=f"{pods} at most",
                    related=(Label(at / "pods", "all there are"),),
                    help=f"write `gang: {pods}` or less",
                )
            case Batch() as batch:
                yield from _trials(workload, batch)
            case Inference(autoscaling=Autoscaling() as scaling):
                yield from _scaling(workload, workload.work, scaling)
            case _:
                pass
        if fraction is not None and fraction.least > fraction.most:
            least, most = number(fraction.least), number(fraction.most)
            yield Finding(
                fraction.at / "min",
                f"`{name}` asks for at least {least} of a GPU and for at most {most}",
                label=f"above {most}",
                related=(Label(fraction.at / "max", "the most"),),
                help=f"write `{{min: {most}, max: {least}}}`",
            )


_MANY = 100_000
_MOST_FAILED_OF_MANY = 10_000
"""`completionsSoftLimit` and `maxFailedIndexesLimitForHighCompletions` in `pkg/apis/batch/validation/validation.go` of
kubernetes/kubernetes, for Jobs whose pods have tries of their own."""


def _trials(workload: Workload, batch: Batch) -> Iterator[Finding]:
    name, at, trials, pods = workload.name, workload.work_at, batch.trials, batch.pods
    if trials is not None:
        in_all = (Label(at / "trials", f"{trials} in all"),)
        if trials < pods:
            yield Finding(
                at / "pods",
                f"`{name}` runs {pods} pods at once, and has {trials} in all",
                label=f"{trials} at most",
                related=in_all,
                help=f"write `pods: {trials}` or less",
            )
        if workload.elastic is None and workload.gang is not None and workload.gang > 1:
            yield Finding(
                at / "gang",
                f"trials of `{name}` come one after the other, and {workload.gang} of its pods are to start together",
                label="never all at once",
                related=in_all,
                help="leave `gang` out",
            )
        if workload.peers is not None:
            yield Finding(
                (at / "peers").key,
                f"trials of `{name}` come one after the other, and cannot wait for one another",
                label="never all there",
                related=in_all,
                help="leave `peers` out, or `trials`",
            )
    has_many = batch.completions > _MANY and batch.backoff_limit_per_index is not None
    if has_many and (batch.max_failed_indexes is None or batch.max_failed_indexes > _MOST_FAILED_OF_MANY):
        yield Finding(
            at / ("pods" if trials is None else "trials"),
            f"`{name}` has more than {_MANY:,} pods, and more than {_MOST_FAILED_OF_MANY:,} may fail for good",
            label="refused by the API server",
            help=f"add `maxFailedIndexes: {_MOST_FAILED_OF_MANY}`, or less",
        )
    if batch.max_failed_indexes is not None and batch.backoff_limit_per_index is None:
        yield Finding(
            at / "maxFailedIndexes",
            f"`{name}` says how many pods may fail for good, and not when one has",
            label="refused by the API server",
            help="add `backoffLimitPerIndex: 0`, or as many tries as each pod has",
        )
    elif batch.max_failed_indexes is not None and batch.max_failed_indexes > batch.completions:
        yield Finding(
            at / "maxFailedIndexes",
            f"{batch.max_failed_indexes} pods of `{name}` may fail for good, and it has {batch.completions}",
            label="refused by the API server",
            related=(Label(at / ("pods" if trials is None else "trials"), "all there are"),),
            help=f"write `maxFailedIndexes: {batch.completions}` or less, or leave it out",
        )


def _scaling(workload: Workload, work: Inference, scaling: Autoscaling) -> Iterator[Finding]:
    name, least, most = workload.name, scaling.min_replicas, scaling.max_replicas
    at = workload.work_at / "autoscaling"
    low, high = at / "minReplicas", at / "maxReplicas"
    if least > most:
        yield Finding(
            low,
            f"`{name}` has at least {least} replicas and at most {most}",
            label=f"above {most}",
            related=(Label(high, "the most"),),
            help=f"write `minReplicas: {most}` or less; or, if they are swapped, "
            f"`minReplicas: {most}, maxReplicas: {least}`",
        )
    elif not least <= work.replicas <= most and work.replicas != 1:  # one is what is left out
        is_less = work.replicas < least
        yield Finding(
            workload.work_at / "replicas",
            f"`{name}` begins with {work.replicas} replicas, and its autoscaler keeps {least} to {most}",
            label="changed at once",
            related=(Label(low if is_less else high, "the fewest" if is_less else "the most"),),
            help=f"write `replicas: {least if is_less else most}`, or leave it out",
            severity=Severity.WARNING,
        )


@check("GPU593", "topology-level-not-there")
def topology_level_not_there(plan: Plan) -> Iterator[Finding]:
    """Pods are to share a level that their pool's topology does not have, or that is too small for them.

    ## Why
    Levels are node labels, which the pool lists in `topology`, and schedulers know no others: Kueue and KAI-Scheduler
    never start work that names another one. The level `kubernetes.io/hostname` is one node: what requires it must fit
    on one.

    ## Instead
    Name a level of the pool's `topology`, or add it there. Write `preferred` where one node is too small.
    """
    for workload in plan.workloads:
        topology, pool, asked = workload.topology, workload.pool, workload.work_at / "topology"
        if topology is None:
            continue
        levels, level = pool.spec.topology, topology.required or topology.preferred or ""
        at = asked / ("preferred" if topology.required is None else "required")
        if level not in levels:
            yield Finding(
                at,
                f"pool `{pool.name}` of workload `{workload.name}` has no topology level `{level}`",
                label="no such level" if levels else "the pool has no `topology`",
                related=(Label((pool.at / "topology").key, f"has {listing(levels)}"),) if levels else (),
                help=f"write {joined([f'`{found}`' for found in levels], 'or')}"
                if levels
                else f"add `topology: [{level}]` to pool `{pool.name}`",
            )
        elif level == HOST_LABEL and topology.required:
            yield from _beyond_node(workload, at, level)


def _beyond_node(workload: Workload, at: Origin, level: str) -> Iterator[Finding]:
    """Find pods that must share a node, and do not fit on one."""
    room = max(room_on_node(workload, part).pods for part in workload.pool.parts)
    field, pods = ("pods", workload.most_pods) if workload.ends else ("podsPerReplica", workload.pods_per_replica)
    if room < pods:
        yield Finding(
            at,
            f"{pods} pods of `{workload.name}` must be on one node, and a node has room for {room}",
            label="never start",
            related=(Label(workload.work_at / field, f"{pods} pods"),),
            help=f"write `topology: {{preferred: {level}}}`, or `{field}: {room}`",
        )


_TRIES_OF_EACH_POD = (1, 29)
"""The release from which on `JobBackoffLimitPerIndex` is on by default."""


@check("GPU557", "no-tries-of-each-pod")
def no_tries_of_each_pod(plan: Plan) -> Iterator[Finding]:
    """A job gives each of its pods tries of its own, and the cluster's Kubernetes knows none.

    ## Why
    Before 1.29 the API server drops `backoffLimitPerIndex` without a word, unless a feature gate is on
    (`JobBackoffLimitPerIndex` in `pkg/features/kube_features.go` of kubernetes/kubernetes). The Job would then take six
    tries for all pods together, and the seventh failure of any ends the others.

    ## Instead
    Write `backoffLimit`, with the tries of all pods together, or upgrade the cluster.
    """
    version = plan.cluster.spec.kubernetes
    if (parse_version(version) or _TRIES_OF_EACH_POD) >= _TRIES_OF_EACH_POD:
        return
    for workload in plan.workloads:
        work = workload.work
        if isinstance(work, Batch) and work.backoff_limit_per_index is not None:
            tries = work.backoff_limit_per_index * work.completions
            yield Finding(
                workload.work_at / "backoffLimitPerIndex",
                f"Kubernetes {version} knows no tries of each pod of `{workload.name}`",
                label="dropped before 1.29",
                related=(Label(plan.cluster.at / "kubernetes", "the cluster's version"),),
                help=f"write `backoffLimit: {tries}` instead, or upgrade the cluster to 1.29 or later",
            )


@check("GPU595", "gang-without-peers", Severity.NOTE)
def gang_without_peers(plan: Plan) -> Iterator[Finding]:
    """Pods that start together have no names by which they could find one another.

    ## Why
    A pod of a Job resolves others only where a headless Service exists, and the pods name it as their `subdomain`
    (https://kubernetes.io/docs/tasks/job/job-with-pod-to-pod-communication/). Without both, torchrun on several nodes
    never finds its first one, and the pods hold their GPUs until it gives up.

    ## Instead
    Write `peers: {}`. It makes the training another Job: one that runs starts from the beginning, so add it to those
    that are to come. Pods that do not talk, or that meet elsewhere, need none of it: ignore the note.
    """
    for workload in plan.workloads:
        match workload.work:
            case Training(pods=pods, trials=None, gang=int(gang), peers=None) if 1 < gang <= pods:
                yield Finding(
                    workload.work_at / "gang",
                    f"{gang} pods of `{workload.name}` start together and have no names for one another",
                    label="cannot resolve each other",
                    help="write `peers: {}` beside it",
                )
            case _:
                pass


# --- Containers --------------------------------------------------------------------------------------------------


@check("GPU584", "image-not-pinned", Severity.WARNING)
def image_not_pinned(plan: Plan) -> Iterator[Finding]:
    """An image has no tag, or the tag `latest`.

    ## Why
    What runs is then decided by the day on which a node pulls the image, and not by Git: two replicas can differ, a
    review shows nothing, and nothing leads back to what ran before.

    ## Instead
    Name a version, or a digest (`@sha256:...`), which cannot change.
    """
    for workload in plan.workloads:
        images = [(workload.at / "image", workload.spec.image)]
        if workload.canary is not None and workload.canary.image is not None:
            images.append((workload.work_at / "canary" / "image", workload.canary.image))
        if workload.spec.model and workload.spec.model.download:
            images.append((workload.at / "model" / "download" / "image", workload.spec.model.download.image))
        patched = ((found.at / "image", found.body.get("image")) for found in patched_containers(workload))
        images += [(at, image) for at, image in patched if isinstance(image, str)]
        for at, image in images:
            name, _, digest = image.partition("@")
            tag = digest or name.rpartition("/")[2].partition(":")[2]  # a `:` before the last `/` is that of a port
            if tag in ("", "latest"):
                yield Finding(
                    at,
                    f"image `{image}` of workload `{workload.name}` is not pinned to a version",
                    label="means `latest`" if not tag else "another image tomorrow",
                    help="add a tag with a version, or a digest",
                )


@check("GPU585", "model-volume-out-of-reach")
def model_volume_out_of_reach(plan: Plan) -> Iterator[Finding]:
    """A workload's pods cannot all mount a volume of its own, or nothing can fill it.

    ## Why
    A `ReadWriteOnce` volume is attached to one node. The scheduler does not keep pods to it: those on other nodes stay
    in `ContainerCreating`, with their GPUs taken. A `ReadOnlyMany` volume is mounted read-only, for the download as
    well.

    ## Instead
    Use `ReadWriteMany` and a StorageClass that offers it, or have one pod.
    """
    for workload, volume in ((found, volume) for found in plan.workloads for volume in volumes_of(found)):
        spec, pods = volume.spec, workload.most_pods
        message = ""
        reached = reach(plan, workload)
        if spec.access_mode == "ReadWriteOnce" and pods > 1 and sum(pool.nodes.count for pool in reached) > 1:
            message = f"{pods} pods of `{workload.name}` may be on several nodes, and its volume on one"
            widest = max(reached, key=lambda pool: pool.nodes.count)
            has = f"pool `{widest.name}` has {count(widest.nodes.count, 'node')}"
            falls = f", and `{reached[0].name}` falls back" if widest.nodes.count == 1 else ""
            related = Label(widest.nodes.at / "count", f"{has}{falls}")
        elif spec.access_mode == "ReadOnlyMany" and spec.download is not None:
            message = f"the download cannot write to the volume of `{workload.name}`"
            related = Label((volume.at / "download").key, "writes to the volume")
        if message:
            yield Finding(
                volume.at / "accessMode",
                message,
                label="attached to one node" if spec.access_mode == "ReadWriteOnce" else "mounted read-only",
                related=(related,),
                help="write `accessMode: ReadWriteMany`, or leave it out",
            )


# --- Text that the API server reads ------------------------------------------------------------------------------

_LEAST_MEMORY = 2**20
_MOST_CPUS = 4096


@check("GPU586", "unlikely-quantity")
def unlikely_quantity(plan: Plan) -> Iterator[Finding]:
    """An amount of CPU, memory or storage is not a quantity, or hardly the one that was meant.

    ## Why
    The API server refuses what it cannot read, such as `32 GB`. It takes `32` for 32 bytes and `32m` for thousandths of
    a byte, in which no container starts.

    ## Instead
    Write CPUs as `4` or `500m`, memory and storage with a unit: `32Gi`.
    """
    for workload in plan.workloads:
        spec = workload.spec
        cpus = parse_quantity(spec.cpu) if spec.cpu else Decimal(1)
        if cpus is None or not 0 < cpus <= _MOST_CPUS:
            meant = re.sub(r"^`([0-9.]+)`$", r'`"\1"`', quantity_meant(spec.cpu or ""))
            has_meaning = (parse_quantity(meant.strip('`"')) or _MOST_CPUS) < _MOST_CPUS
            yield Finding(
                workload.at / "cpu",
                f"`{spec.cpu}` of workload `{workload.name}` is not a number of CPUs",
                label="no node has so many" if cpus and cpus > 0 else "cpu",
                help=f"write {meant if has_meaning else 'a number such as `4`, or thousandths such as `500m`'}",
            )
        if spec.memory:
            yield from _unlikely_bytes(workload.at / "memory", "memory", spec.memory, workload)
        for volume in volumes_of(workload):
            yield from _unlikely_bytes(volume.at / "size", "storage", volume.spec.size, workload)


def _unlikely_bytes(at: Origin, counted: str, text: str, workload: Workload) -> Iterator[Finding]:
    size = parse_quantity(text)
    if size is None or size < _LEAST_MEMORY:
        yield Finding(
            at,
            f"`{text}` of workload `{workload.name}` is not an amount of {counted}"
            if text
            else f"workload `{workload.name}` asks for an empty amount of {counted}",
            label=f"{number(size.normalize())} bytes" if size is not None else str(at.path[-1]),
            help=f"write {quantity_meant(text) or 'a number with a unit, such as `32Gi`'}",
        )


_SYSTEM_PATHS = ("/dev", "/proc", "/sys")
_LONGEST_KEY = 253
_MOST_CONFIG = 2**20
_KEY = regex(r"[-._a-zA-Z0-9]+")


@check("GPU587", "unusable-file-name")
def unusable_file_name(plan: Plan) -> Iterator[Finding]:
    """A path or a file's name cannot be what it says in a container.

    ## Why
    Files of `config` are keys of a ConfigMap: letters, digits, `-`, `_` and `.`, no folders, one MiB together. A volume
    is mounted at an absolute path without a `:`; over `/`, `/dev`, `/proc` or `/sys` nothing starts, over
    `/etc/workload` it hides the files of `config`, and two volumes need two paths.

    ## Instead
    Write an absolute path of its own, such as `/models`, and file names without `/`.
    """
    for workload in plan.workloads:
        spec, at = workload.spec, workload.at
        for name in spec.config:
            if flaw := _flaw_of_key(name):
                key = (at / "config" / name).key
                yield _unusable(key, f"file name `{name}`", workload, flaw, "a name such as `settings.yaml`")
        size = sum(len(name) + len(text.encode()) for name, text in spec.config.items())
        if size > _MOST_CONFIG:
            yield Finding(
                (at / "config").key,
                f"config of workload `{workload.name}` is too large",
                label=f"{size} bytes, and a ConfigMap holds {_MOST_CONFIG}",
                help="bring large files in the image or in the `model` volume",
            )
        taken = [*_SYSTEM_PATHS, *([FILES] if files_of(workload) else [])]
        for volume in volumes_of(workload):
            path = volume.spec.mount_path
            if flaw := _flaw_of_path(path, taken):
                instead = f"a path of its own, such as `{volume.example}`"
                yield _unusable(volume.at / "mountPath", f"path `{path}`", workload, flaw, instead)
            taken.append(_plain(path))


def _unusable(at: Origin, title: str, workload: Workload, flaw: str, instead: str) -> Finding:
    return Finding(at, f"{title} of workload `{workload.name}` cannot be used", label=flaw, help=f"write {instead}")


def _flaw_of_key(name: str) -> str:
    """Return why a ConfigMap has no such key, or an empty text.

    (`IsConfigMapKey` in `pkg/util/validation/validation.go` of kubernetes/apimachinery.)
    """
    if not _KEY.fullmatch(name):
        return "letters, digits, `-`, `_` and `.` only"
    if name == "." or name.startswith(".."):
        return "is or looks like a folder"
    return f"at most {_LONGEST_KEY} characters" if len(name) > _LONGEST_KEY else ""


def _plain(path: str) -> str:
    return "/".join(["", *(part for part in path.split("/") if part not in ("", "."))])


def _flaw_of_path(path: str, taken: Sequence[str]) -> str:
    """Return why nothing can be mounted at a path. ``taken`` are the paths that hold something."""
    plain = _plain(path)
    if not path.startswith("/"):
        return "must begin with `/`"
    if ":" in path:
        return "must not have a `:`"
    if ".." in path.split("/"):
        return "must not lead upwards"
    # A mount lies at or below a path, or hides it.
    hidden = [root for root in taken if f"{plain}/".startswith(f"{root}/") or f"{root}/".startswith(f"{plain}/")]
    if not plain or hidden:
        return f"hides `{hidden[0] if plain else '/'}`"
    return ""


# What every cluster takes (`IsEnvVarName` in `pkg/util/validation/validation.go` of kubernetes/apimachinery). The API
# server also takes other printable characters since 1.32 (`IsRelaxedEnvVarName`), which shells cannot name.
_VARIABLE = regex(r"(?!\.$|\.\.)[-._a-zA-Z][-._a-zA-Z0-9]*")


@check("GPU588", "unusable-variable")
def unusable_variable(plan: Plan) -> Iterator[Finding]:
    """An environment variable has a name that Kubernetes does not take, or takes away the GPUs that pods ask for.

    ## Why
    The container toolkit gives a container no GPU where `NVIDIA_VISIBLE_DEVICES` is `void` or `none`, and a variable of
    the pod comes after that of the device plugin (`GenerateRunContainerOptions` in `pkg/kubelet/kubelet_pods.go` of
    kubernetes/kubernetes). Variables that choose devices are refused by admission (GPU423), but for this one from a
    ConfigMap on a pod with a fraction, which is how schedulers of fractions write it: a ConfigMap of the tenant's
    would choose any GPU of the node.

    ## Instead
    Leave the variable out. A container sees the GPUs that it asks for, and no others.
    """
    for workload in plan.workloads:
        for at, env, has_gpus in _environments(workload):
            yield from _unusable_variables(workload, at, env, has_gpus=has_gpus)


def _environments(workload: Workload) -> Iterator[tuple[Origin, Mapping[str, str | ValueFrom], bool]]:
    """Yield the variables of each container, and whether it asks for GPUs."""
    yield workload.at / "env", workload.spec.env, True
    if workload.canary is not None:
        yield workload.work_at / "canary" / "env", workload.canary.env, True
    if workload.spec.model and (download := workload.spec.model.download):
        yield workload.at / "model" / "download" / "env", download.env, False


def _unusable_variables(
    workload: Workload, around: Origin, env: Mapping[str, str | ValueFrom], *, has_gpus: bool
) -> Iterator[Finding]:
    for name, value in env.items():
        at = (around / name).key
        if name == "NVIDIA_VISIBLE_DEVICES" and value in _NO_DEVICES and has_gpus:
            yield Finding(
                at,
                f"workload `{workload.name}` asks for GPUs and sets `{name}: {value}`",
                label="takes them away",
                help="leave it out",
            )
        elif name == "NVIDIA_VISIBLE_DEVICES" and isinstance(value, ValueFrom) and workload.fraction and has_gpus:
            yield Finding(
                at,
                f"workload `{workload.name}` asks for a fraction of a GPU and takes `{name}` from elsewhere",
                label="the scheduler chooses the GPU",
                help="leave it out",
            )
        elif not _VARIABLE.fullmatch(name):
            yield Finding(
                at,
                f"`{name}` of workload `{workload.name}` is not the name of a variable",
                label="letters, digits, `_`, `-` and `.`, with no digit and no `..` first",
                help="write a name such as `LOG_LEVEL`",
            )


_NO_DEVICES = ("void", "none")
"""The values that the container toolkit reads as no device (`internal/config/image/devices.go` there)."""


@check("GPU599", "secret-in-a-policy", Severity.WARNING)
def secret_in_a_policy(plan: Plan) -> Iterator[Finding]:
    """A workload says what looks like a token, a private key or an address with a password, or a variable called so.

    ## Why
    A policy is in Git, what is built of it too, and a Deployment can be read by everybody who may look at the
    namespace. A secret that was pushed once is known, also when a later commit takes it out. Of a workspace,
    `JUPYTER_TOKEN`, `PASSWORD` and `HASHED_PASSWORD` are what Jupyter and code-server let people in by.

    ## Instead
    Revoke it, put the new one into a Secret by whatever brings secrets to the cluster, and name that:
    `{secretKeyRef: {name: hugging-face, key: token}}`.
    """
    for workload in plan.workloads:
        for at, env, _ in _environments(workload):
            for name, value in env.items():
                lets_in = isinstance(workload.work, Workspace) and name in _LETS_IN and bool(value)
                if isinstance(value, str) and (is_credential(name, value) or lets_in):
                    instead = f"`{name}: {{secretKeyRef: {{name: <Secret>, key: <key>}}}}`"
                    yield _secret(workload, (at / name).key, name, instead)
        for found in patched_containers(workload):
            for index, item in enumerate(items(found.body.get("env"))):
                variable = mapping(item)
                plain = variable.get("value")
                if isinstance(plain, str) and is_credential(str(variable.get("name")), plain):
                    instead = "`valueFrom: {secretKeyRef: {name: <Secret>, key: <key>}}` in place of it"
                    at = (found.at / "env" / index / "value").key
                    yield _secret(workload, at, str(variable.get("name")), instead)
        for route, text in _texts_beside_variables(workload.spec, ()):
            if holds_credential(text):
                yield Finding(
                    workload.at / route,
                    f"`{'.'.join(map(str, route))}` of workload `{workload.name}` has what looks like a secret",
                    label="in Git, and in the cluster for all to read",
                    help="revoke it, put the new one into a Secret, and read it from a variable with `secretKeyRef`",
                )


def _texts_beside_variables(value: object, route: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, BaseModel):  # `model_dump` would build the serializer of WorkloadSpec: 15 ms of a start
        value = {field.alias or name: getattr(value, name) for name, field in type(value).model_fields.items()}
    if isinstance(value, str):
        yield route, value
    elif isinstance(value, Mapping | Sequence):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            if key != "env":
                yield from _texts_beside_variables(item, (*route, key))


def _secret(workload: Workload, at: Origin, variable: str, instead: str) -> Finding:
    return Finding(
        at,
        f"variable `{variable}` of workload `{workload.name}` has what looks like a secret",
        label="in Git, and in the cluster for all to read",
        help=f"revoke it, and write {instead}",
    )


_LETS_IN = ("JUPYTER_TOKEN", "PASSWORD", "HASHED_PASSWORD")
"""`jupyter_server/auth/identity.py` of jupyter-server/jupyter_server, and `src/node/cli.ts` of coder/code-server."""


@check("GPU589", "service-name-begins-with-digit")
def service_name_begins_with_digit(plan: Plan) -> Iterator[Finding]:
    """The name of a workload that has a Service begins with a digit, which a Service's name cannot.

    ## Why
    The Service of an inference workload or of a workspace has its name, that of a training with `peers` begins with it,
    and Services are the one common kind whose name must begin with a letter (RFC 1035). The pods would be there, and
    nobody could reach them. A LeaderWorkerSet makes Services that begin with its name, and is refused, and so is a
    JobSet (`ValidateCreate` in `pkg/webhooks/jobset_webhook.go` there).

    ## Instead
    Begin the name with a letter. A service that needs no Service says `port: none`.
    """
    for workload in plan.workloads:
        has_service = is_called(workload.work) or workload.peers is not None
        needing = "Service" if has_service else needed_api(workload)
        if needing and workload.name[:1] in digits:
            yield Finding(
                name_of(workload.at),
                f"workload name `{workload.name}` begins with a digit, and its {needing} cannot",
                label="must begin with a letter",
                help=f"rename it, for example to `model-{workload.name}`",
            )
