"""Checks on how pools share their GPUs (GPU300-349), and hand them out by claims (GPU565-569)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    Fraction,
    Isolation,
    Mig,
    MigTimeSlicing,
    Mps,
    Plan,
    Pool,
    Shares,
    TimeSlicing,
)
from gpuplan.compiler.planning.plugin_configs import configuration, is_one_file, meaning_of
from gpuplan.compiler.planning.pools import gpu_memory_mib
from gpuplan.compiler.policy.models import Allocation, Approval, ClusterMigStrategy, MigStrategy, Platform

# --- Shares ------------------------------------------------------------------------------------------------------


@check("GPU300", "too-few-shares")
def too_few_shares(plan: Plan) -> Iterator[Finding]:
    """GPUs are divided into fewer than two shares.

    ## Why
    The device plugin refuses a configuration with `replicas` below 2, and one that cannot be read takes the GPUs away
    from the node: `number of replicas must be >= 2`. One share is no sharing.

    ## Instead
    To switch sharing off write `exclusive: {}`, or leave `timeSlicing` out of a MIG pool.
    """
    for pool, sharing in _shared(plan):
        for shares in sharing.stated:
            if shares.number < 2:
                yield Finding(
                    shares.at,
                    f"pool `{pool.name}` needs at least 2 shares per device, not {shares.number}",
                    label="at least 2",
                    notes=("the device plugin does not start with fewer",),
                    help=f"to switch sharing off {_off(pool, shares)}",
                )


def _off(pool: Pool, shares: Shares) -> str:
    if shares.profile:
        return f"leave `{shares.profile}` out of `replicas`"
    kind = "mps" if isinstance(pool.sharing, Mps) else "timeSlicing"
    return (
        "leave `timeSlicing` out" if isinstance(pool.sharing, Mig) else f"write `exclusive: {{}}` in place of `{kind}`"
    )


_FULL_MPS_CAPABILITY = (7, 5)


_MOST_CLIENTS = 48


_MOST_CLIENTS_BEFORE = 16


def most_mps_clients(gpu: Gpu) -> int:
    """Return how many clients the MPS control daemon lets a GPU have.

    It asks for compute capability 7.5 although its function is called `isAtLeastVolta`, and Volta is 7.0
    (`cmd/mps-control-daemon/mps/device.go` of k8s-device-plugin v0.20.0).
    """
    return _MOST_CLIENTS if gpu.compute_capability >= _FULL_MPS_CAPABILITY else _MOST_CLIENTS_BEFORE


@check("GPU301", "too-many-mps-shares")
def too_many_mps_shares(plan: Plan) -> Iterator[Finding]:
    """GPUs are divided into more shares than MPS may have clients.

    ## Why
    The device plugin's MPS daemon allows 48 shares of a GPU, also with drivers whose MPS server takes 60 clients, and
    16 below compute capability 7.5, such as on the V100. It refuses more: `maximum allowed replicas exceeded`, and the
    node has no GPUs.

    ## Instead
    Write fewer shares, or share by time-slicing, which has no such limit and no memory limits either.
    """
    for pool, shares in _shared(plan):
        most = most_mps_clients(pool.gpu)
        if isinstance(shares, Mps) and shares.spec.replicas > most:
            major, minor = pool.gpu.compute_capability
            yield Finding(
                shares.at / "replicas",
                f"MPS cannot divide one {pool.gpu.id} into {shares.spec.replicas} shares",
                label=f"at most {most}",
                notes=(f"compute capability {major}.{minor}: {most} clients",),
                help=f"write `replicas: {most}` or fewer",
            )


MANY_SHARES = 48
"""The limit of Google's managed Kubernetes (https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus)."""


@check("GPU302", "very-many-shares", Severity.WARNING)
def very_many_shares(plan: Plan) -> Iterator[Finding]:
    """GPUs are time-sliced into very many shares.

    ## Why
    Every share may run a process, each with a CUDA context in the GPU's memory, and all wait for one another's turns.
    The device plugin has no limit; Google's managed Kubernetes refuses more than 48 containers for one GPU, whether
    they share by time or by MPS.

    ## Instead
    Write fewer shares. If the number is what all GPUs of a node should have together, divide it by `gpusPerNode`.
    """
    for pool, sharing in _shared(plan):
        for shares in () if isinstance(sharing, Mps) else sharing.stated:
            if shares.number > MANY_SHARES:
                yield Finding(
                    shares.at,
                    f"{shares.number} shares take turns on one device of pool `{pool.name}`",
                    label="per device, not per node",
                    notes=(f"Google's managed Kubernetes allows {MANY_SHARES} for one GPU",),
                    help=f"write `{shares.profile or 'replicas'}: {MANY_SHARES}` or fewer",
                )


@check("GPU303", "unit-memory-too-small")
def unit_memory_too_small(plan: Plan) -> Iterator[Finding]:
    """A pool's units have less memory than the pool says that they need.

    ## Why
    `memoryPerUnitMiB` is the least memory that a unit must offer to be of use. Shares divide the GPU's memory: MPS
    enforces it, time-slicing leaves it to the pods, of which one then takes what the others need. A MIG device offers
    less than the number in its name: a `1g.10gb` of an A100 has 9,728 MiB.

    ## Instead
    Write fewer shares or a larger profile, or lower `memoryPerUnitMiB` if less is enough.
    """
    for pool, unit in ((part, unit) for part in plan.parts for unit in part.units):
        need, memory_mib, shares = pool.spec.memory_per_unit or 0, unit.memory_mib, pool.shares_of(unit)
        if memory_mib is None or memory_mib >= need:
            continue
        needed = Label(pool.at / "memoryPerUnitMiB", "needed")
        message = f"unit `{unit.name}` of pool `{pool.name}` has {memory_mib} MiB, and {need} MiB are needed"
        if shares is None or shares.number < 2:
            layout = (Label(pool.sharing.layout_at, "the layout"),) if isinstance(pool.sharing, Mig) else ()
            label = f"`{unit.name}` has {memory_mib} MiB"
            yield Finding(needed.at, message, label, layout, help=_enough(pool.gpu, need))
            continue
        whole = memory_mib * shares.number
        fewer = f"write `{shares.profile or 'replicas'}: {whole // need}`"
        yield Finding(
            shares.at,
            message,
            label=f"leaves {memory_mib} MiB",
            related=(needed,),
            notes=(f"{whole} MiB divided by {shares.number}",),
            help=fewer if whole // need > 1 else _off(pool, shares) if whole >= need else _enough(pool.gpu, need),
        )


def _enough(gpu: Gpu, need: int) -> str:
    """Return what of the model has so much memory."""
    sizes = {item.name: item.memory_mib or (item.memory_gib or 0) * 1024 for item in gpu.plain_profiles}
    if fitting := [name for name, size in sizes.items() if size >= need]:
        return f"profiles with enough memory: {listing(fitting)}"
    if gpu_memory_mib(gpu) >= need:
        return "write `exclusive: {}`: only the whole GPU has enough"
    return f"lower `memoryPerUnitMiB`: a whole {gpu.id} has {gpu_memory_mib(gpu)} MiB"


@check("GPU304", "shares-not-refused", Severity.WARNING)
def shares_not_refused(plan: Plan) -> Iterator[Finding]:
    """Containers may ask for several shares of a time-sliced GPU.

    ## Why
    Two shares are not twice the GPU: they may be of the same one, and get one turn like everybody else's. What a pod
    gains is what the next one cannot have. With `failRequestsGreaterThanOne` the device plugin refuses such a pod
    (`UnexpectedAdmissionError`) and its owner learns of the mistake.

    ## Instead
    Leave `failRequestsGreaterThanOne` out. Who needs more than a share needs a pool of whole GPUs.
    """
    for pool, shares in _shared(plan):
        if not isinstance(shares, Mps) and not shares.spec.fail_requests_greater_than_one:
            yield Finding(
                shares.at / "failRequestsGreaterThanOne",
                f"containers may ask for several shares of pool `{pool.name}`",
                label="more shares, not more GPU",
                notes=("two shares may be of one GPU, and bring no more time on it",),
                help="leave `failRequestsGreaterThanOne` out",
            )


@check("GPU305", "share-named-like-more", Severity.WARNING)
def share_named_like_more(plan: Plan) -> Iterator[Finding]:
    """A share has the same resource name as what another pool hands out undivided.

    ## Why
    With `rename: false` a share is published as `nvidia.com/gpu`, just as a whole GPU. A pod that asks for one gets
    either, by chance of scheduling: a quarter of a GPU without isolation, or all of it. A ResourceQuota counts both as
    one.

    ## Instead
    Leave `rename` out: shares are then `nvidia.com/gpu.shared`.
    """
    undivided: dict[str, Pool] = {}
    for pool in plan.parts:
        for unit in pool.units:
            if unit.resource and unit.isolation in (Isolation.WHOLE_GPU, Isolation.HARDWARE):
                undivided.setdefault(unit.resource, pool)
    for pool, shares in _shared(plan):
        named = [unit.resource for unit in pool.units if unit.resource and unit.isolation in _SHARED]
        alike = next((resource for resource in named if resource in undivided), None)
        other = undivided.get(alike or "")
        if not shares.spec.rename and other and other.name != pool.name:
            yield Finding(
                shares.at / "rename",
                f"a share of pool `{pool.name}` looks like what pool `{other.name}` hands out undivided",
                label=f"both are `{alike}`",
                related=(Label((other.at / "sharing").key, f"hands out `{alike}`, too"),),
                notes=("a pod that asks for the resource gets either",),
                help=f"leave `rename` out: shares are then `{alike}.shared`",
            )


_SHARED = (Isolation.MPS, Isolation.NONE)


def _shared(plan: Plan) -> Iterator[tuple[Pool, TimeSlicing | MigTimeSlicing | Mps]]:
    return ((pool, pool.shares) for pool in plan.parts if pool.shares)


@check("GPU309", "shares-of-absent-profile")
def shares_of_absent_profile(plan: Plan) -> Iterator[Finding]:
    """A pool divides MIG devices of a profile that its layout does not have.

    ## Why
    The device plugin skips a resource that the node does not have (`updateDeviceMapWithReplicas` in
    `internal/rm/device_map.go` of NVIDIA/k8s-device-plugin), so that nothing is divided. GPUs that stay whole beside
    partitioned ones are no profile, and gpuplan does not divide them.

    ## Instead
    Name profiles as the layout does. To divide all of them alike write one number.
    """
    for pool, sharing in _shared(plan):
        if not isinstance(pool.sharing, Mig):
            continue
        entries = pool.sharing.layout.entries
        there = list(dict.fromkeys(name for entry in entries for name, many in entry.instances.items() if many))
        stated = {shares.profile for shares in sharing.stated}
        left = joined([f"`{name}`" for name in there if name not in stated], "or")
        for shares in sharing.stated if there else ():
            if shares.profile and shares.profile not in there:
                yield Finding(
                    shares.at.key,
                    f"pool `{pool.name}` has no `{shares.profile}` to divide",
                    label="nothing is divided",
                    related=(Label(pool.sharing.layout_at, f"has {listing(there)}"),),
                    help=f"write {left}, or leave `{shares.profile}` out" if left else f"leave `{shares.profile}` out",
                )


# --- Strategies --------------------------------------------------------------------------------------------------


@check("GPU306", "mps-under-mixed")
def mps_under_mixed(plan: Plan) -> Iterator[Finding]:
    """A pool shares by MPS on a cluster whose MIG strategy is `mixed` everywhere.

    ## Why
    The device plugin does not start with both: `using --mig-strategy=mixed is not supported with MPS`. It does not
    matter that the pool's GPUs are not partitioned.

    ## Instead
    Leave `migStrategy` out, so that MIG pools say `mixed` for themselves, or share by time-slicing.
    """
    operator = plan.cluster.gpu_operator
    for pool in plan.parts if operator.spec.mig_strategy is ClusterMigStrategy.MIXED else ():
        if isinstance(pool.sharing, Mps):
            yield Finding(
                pool.sharing.at.key,
                f"MPS in pool `{pool.name}` does not work under the cluster's strategy `mixed`",
                label="the device plugin would not start",
                related=(Label(operator.at / "migStrategy", "holds for every pool"),),
                help="leave `migStrategy` out of the Cluster, or write `timeSlicing` here",
            )


@check("GPU310", "mps-on-openshift", Severity.NOTE)
def mps_on_openshift(plan: Plan) -> Iterator[Finding]:
    """A pool shares by MPS on OpenShift, for which nobody documents it.

    ## Why
    The GPU Operator runs MPS daemons on OpenShift as elsewhere, from v24.3.0 up to v26.7.0 by a role that may use the
    SecurityContextConstraints `privileged` (`assets/state-mps-control-daemon` of NVIDIA/gpu-operator). But NVIDIA's
    documentation of the operator has no page on MPS: the draft of one
    ([cloud-native-docs#67](https://github.com/NVIDIA/cloud-native-docs/pull/67)) was closed in 2026. The authors of Red
    Hat's [guide on partitioning](https://github.com/rh-aiservices-bu/gpu-partitioning-guide) had it fail. And on nodes
    with SELinux, which OpenShift's are, the daemon sets the context of its pipes, where it has failed before
    ([k8s-device-plugin#1105](https://github.com/NVIDIA/k8s-device-plugin/issues/1105)).

    ## Instead
    Try it on one node: the daemon's pod is ready, and two pods run on one GPU. Time-slicing and MIG are documented for
    OpenShift.
    """
    for pool in plan.pools if plan.cluster.spec.platform is Platform.OPENSHIFT else ():
        if pool.runs_mps:
            yield Finding(
                (pool.at / "sharing").key,
                f"MPS in pool `{pool.name}` is not documented for OpenShift",
                label="shared by MPS",
                related=(Label(plan.cluster.at / "platform", "the platform"),),
                help="try it on one node first, or write `timeSlicing` in place of `mps`",
            )


@check("GPU311", "plugin-key-of-two-pools", ignorable=False)
def plugin_key_of_two_pools(plan: Plan) -> Iterator[Finding]:
    """Two pools have one key in the device plugin's file, and are shared in different ways.

    ## Why
    Nodes name a key by the label `nvidia.com/device-plugin.config`, and a key has one file. The file may divide one
    resource for some pools and another resource for others: the device plugin skips a resource that a node lacks. It
    cannot divide one resource in two ways.

    ## Instead
    Keep the key (`names.devicePluginConfig`) for pools that are shared alike, and leave it out of the others: their
    nodes get another label, and a file that says the same.
    """
    strategy = plan.cluster.gpu_operator.spec.mig_strategy
    parts = sorted(plan.parts, key=lambda part: part.keys.own != part.name)
    meanings = [
        meaning_of(configuration(part, strategy), (unit.resource for unit in part.units if unit.resource))
        for part in parts
    ]
    for number, part in enumerate(parts):
        key = part.labels[DEVICE_PLUGIN_CONFIG_LABEL]
        before = (
            other
            for other, meaning in zip(parts[:number], meanings, strict=False)
            if other.labels[DEVICE_PLUGIN_CONFIG_LABEL] == key and not is_one_file(meanings[number], meaning)
        )
        first = next(before, part)
        if first.name != part.name:
            yield Finding(
                part.at / "names" / "devicePluginConfig",
                f"`{key}` is the key of pool `{first.name}`, too, which shares its GPUs otherwise",
                label="one key for two files",
                related=(Label(first.sharing.at.key, f"pool `{first.name}` is shared so"),),
                help="leave `devicePluginConfig` out here: the nodes get another label, and share their GPUs as before",
            )


@check("GPU312", "default-configuration-of-nobody", ignorable=False)
def default_configuration_of_nobody(plan: Plan) -> Iterator[Finding]:
    """The default key of the device plugin is one that its ConfigMap does not have.

    ## Why
    A node without the label `nvidia.com/device-plugin.config` reads the default key. If the ConfigMap has no such key,
    config-manager fails: `specified config does not exist` (`updateConfigName` in `cmd/config-manager/main.go` of
    NVIDIA/k8s-device-plugin). The device plugin of the node does not start, and the node publishes no GPUs.

    ## Instead
    Keep the key for a pool (`names.devicePluginConfig`), or define it in a `Retained`. Or leave the default out: nodes
    without the label then publish whole GPUs.
    """
    operator = plan.cluster.gpu_operator
    default = operator.spec.default_device_plugin_config
    keys = {part.labels[DEVICE_PLUGIN_CONFIG_LABEL] for part in plan.parts}
    keys |= {kept.spec.key for kept in plan.retained_plugin_configs}
    if default is not None and default not in keys:
        yield Finding(
            operator.at / "defaultDevicePluginConfig",
            f"no pool has the key `{default}`, which nodes without a label read",
            label="the device plugin of such a node does not start",
            help=f"write `names: {{devicePluginConfig: {default}}}` in a pool, or remove the field"
            + (f"; the keys are {listing(sorted(keys), 4)}" if keys else ""),
        )


@check("GPU737", "mps-restarts-unasked", Severity.WARNING)
def mps_restarts_unasked(plan: Plan) -> Iterator[Finding]:
    """The GPU Operator is synced without a person on a cluster where GPUs are shared by MPS.

    ## Why
    All pools' configurations of the device plugin are in one ConfigMap, whose name changes with what is in it and
    stands in the pods of the MPS control daemon (`TransformMPSControlDaemon` in `controllers/object_controls.go` of
    NVIDIA/gpu-operator). So whatever changes it, such as a pool that is added, another pool's replicas or a rollout's
    first step, restarts the daemons on all nodes with MPS. A daemon takes the MPS server along (`Stop` in
    `cmd/mps-control-daemon/mps/daemon.go` of NVIDIA/k8s-device-plugin), and every CUDA process there fails. With
    `devicePluginConfig: fixed` the name stays (GPU755), but another release of the operator, or another setting that
    is in these pods, restarts them all the same.

    ## Instead
    Leave `operatorApproval` out: on such a cluster a person starts each sync of the operator, when those nodes are
    empty.
    """
    for delivery in (plan.cluster.argocd, plan.cluster.flux):
        mps = [pool for pool in plan.pools if pool.runs_mps]
        if mps and delivery is not None and delivery.operator_approval is Approval.AUTOMATIC:
            keeps_file = plan.cluster.gpu_operator.keeps_plugin_file
            what = "the operator's release or settings" if keeps_file else "the device plugin's file"
            yield Finding(
                delivery.at / "operatorApproval",
                f"changes of {what} end what runs in pool `{mps[0].name}`, and nobody is asked",
                label="synced by itself",
                related=(
                    Label(mps[0].at / "sharing", f"MPS daemons restart with {'them' if keeps_file else 'the file'}"),
                ),
                help="leave `operatorApproval` out, which means `manual` here",
            )


@check("GPU755", "mps-restarts-with-other-pools", Severity.NOTE)
def mps_restarts_with_other_pools(plan: Plan) -> Iterator[Finding]:
    """A pool shares GPUs by MPS, and a change of another pool ends what runs there.

    ## Why
    With `devicePluginConfig: perContent`, which is the default, the device plugin's ConfigMap has another name whenever
    any pool's sharing changes, and the name stands in the pods of the MPS control daemon: the daemons of all nodes
    restart, and every CUDA process there fails (GPU737). With `fixed` the name stays. What changes is a key of the
    ConfigMap and the label of that pool's nodes, and no other node is touched.

    ## Instead
    Write `devicePluginConfig: fixed`. It is itself a change of that kind, once: drain the nodes with MPS, run
    `gpuplan retain --write`, and sync the operator before the pools.
    """
    operator = plan.cluster.gpu_operator
    mps = next((pool for pool in plan.pools if pool.runs_mps), None)
    if mps is not None and len(plan.pools) > 1 and not operator.keeps_plugin_file:
        other = next(pool for pool in plan.pools if pool is not mps)
        yield Finding(
            operator.at / "devicePluginConfig",
            f"another sharing of pool `{other.name}` ends what runs in pool `{mps.name}`, too",
            label="one file for all pools, named after its content",
            related=(Label(mps.at / "sharing", "MPS daemons restart with the file"),),
            help="write `devicePluginConfig: fixed`, when the nodes with MPS are empty",
        )


@check("GPU307", "whole-gpus-lost-under-kai")
def whole_gpus_lost_under_kai(plan: Plan) -> Iterator[Finding]:
    """A pool leaves some GPUs whole beside MIG, where KAI-Scheduler cannot use them.

    ## Why
    On a node that publishes MIG devices under the strategy `mixed`, KAI-Scheduler runs MIG workloads only: `non MIG
    jobs cant run on a node with MigStrategy='mixed'`. The GPUs that the layout leaves whole lie idle, and quotas count
    them.

    ## Instead
    Divide all GPUs of the nodes, or keep whole GPUs on nodes of their own.
    """
    for pool in plan.parts if not plan.scheduler.uses_whole_gpus_beside_mig else ():
        whole = pool.find_unit("gpu")
        if isinstance(pool.sharing, Mig) and pool.sharing.spec.strategy is MigStrategy.MIXED and whole:
            yield Finding(
                pool.sharing.layout_at,
                f"KAI-Scheduler cannot use the {whole.capacity} whole GPUs of pool `{pool.name}`",
                label=f"leaves {whole.per_node} of each node's GPUs whole",
                related=(Label(plan.cluster.scheduler.at / "kind", "this cluster has KAI-Scheduler"),),
                notes=("on nodes with MIG devices under `mixed` it runs MIG workloads only",),
                help="divide all GPUs of these nodes, or keep whole GPUs on nodes of their own",
            )


# --- Containers --------------------------------------------------------------------------------------------------


@check("GPU308", "several-mig-devices-per-container", Severity.WARNING)
def several_mig_devices_per_container(plan: Plan) -> Iterator[Finding]:
    """A tenant's containers may ask for several MIG devices.

    ## Why
    A CUDA process uses one MIG device and does not see the others, and there is no traffic between MIG devices but
    through the host. A container with four of them keeps three from everybody else, unless it starts a process for
    each.

    ## Instead
    Write `unitsPerContainer: 1`, and let workloads that need more ask for a larger profile.
    """
    for tenant in plan.tenants:
        count = tenant.spec.allow.units_per_container or 0
        if count > 1 and {quota.unit.isolation for quota in tenant.quotas} == {Isolation.HARDWARE}:
            yield Finding(
                tenant.at / "allow" / "unitsPerContainer",
                f"containers of tenant `{tenant.name}` may ask for {count} MIG devices",
                label="a CUDA process uses one",
                related=(Label(tenant.quotas[0].at, f"`{tenant.quotas[0].unit.name}` is a MIG device"),),
                help="write `unitsPerContainer: 1`",
            )


# --- Claims ------------------------------------------------------------------------------------------------------


_CLAIMS_SINCE = (1, 34)
"""`resource.k8s.io/v1` is served, and Dynamic Resource Allocation on by default, since Kubernetes 1.34."""


@check("GPU565", "kubernetes-too-old-for-claims")
def kubernetes_too_old_for_claims(plan: Plan) -> Iterator[Finding]:
    """A pool is allocated by DRA on a cluster whose Kubernetes does not serve `resource.k8s.io/v1`.

    ## Why
    Dynamic Resource Allocation is stable since Kubernetes 1.34. An older API server knows only beta versions of
    DeviceClasses and claims, which are off unless somebody switches them on.

    ## Instead
    Upgrade the cluster and say so in `kubernetes`, or leave `allocation: dra` out.
    """
    cluster = plan.cluster
    major, _, minor = cluster.spec.kubernetes.partition(".")
    if (int(major), int(minor)) < _CLAIMS_SINCE:
        for pool in _claimed(plan):
            yield Finding(
                pool.at / "allocation",
                f"pool `{pool.name}` needs Kubernetes 1.34 to be claimed",
                label="needs `resource.k8s.io/v1`",
                related=(Label(cluster.at / "kubernetes", "is older"),),
                help="leave `allocation: dra` out, or upgrade the cluster",
            )


@check("GPU566", "two-ways-of-allocation")
def two_ways_of_allocation(plan: Plan) -> Iterator[Finding]:
    """Some pools of a cluster are allocated by DRA, others by the device plugin.

    ## Why
    Where both run on a node, each hands out the same GPUs. And the GPU Operator takes the device plugin to be on all
    nodes or on none: where a node's label keeps it away, the operator's validator waits for its resources all the same
    ([gpu-operator#2550](https://github.com/NVIDIA/gpu-operator/issues/2550)). So gpuplan switches the device plugin off
    for the whole cluster as soon as pools say `allocation: dra`.

    ## Instead
    Say the same of all pools of the cluster. An overlay can say it for one cluster alone.
    """
    claimed = _claimed(plan)
    for pool in plan.pools if claimed else ():
        if pool.spec.allocation is Allocation.DEVICE_PLUGIN:
            yield Finding(
                pool.at.key,
                f"pool `{pool.name}` needs the device plugin, which pool `{claimed[0].name}` switches off",
                label="its resources would be missing",
                related=(Label(claimed[0].at / "allocation", "allocated by DRA"),),
                help="write `allocation: dra` here as well, or leave it out of all pools",
            )


@check("GPU567", "shares-cannot-be-claimed")
def shares_cannot_be_claimed(plan: Plan) -> Iterator[Finding]:
    """A pool is allocated by DRA and divides its devices in a way that claims do not know.

    ## Why
    NVIDIA's driver publishes whole GPUs and MIG devices. Replicas belong to the device plugin: with claims, pods share
    a device by naming one claim, which a quota counts once, and the driver's settings for it are alpha. Fractions are a
    scheduler's own: it cuts them from GPUs that are published as resources.

    ## Instead
    Use `exclusive` or `mig` without `timeSlicing`, or leave `allocation: dra` out of the cluster's pools.
    """
    for pool in plan.parts:
        found = pool.sharing if isinstance(pool.sharing, Fraction) else pool.shares
        if found is not None and pool.spec.allocation is Allocation.DRA:
            yield Finding(
                found.at.key,
                f"pool `{pool.name}` is allocated by DRA, which has no {_WORDS[type(found)]}",
                label="no unit of it can be claimed",
                related=(Label(pool.at / "allocation", "allocated by DRA"),),
                help="use `exclusive` or `mig`, or leave `allocation: dra` out",
            )


_WORDS = {TimeSlicing: "time slices", MigTimeSlicing: "time slices", Mps: "shares under MPS", Fraction: "fractions"}


@check("GPU568", "claims-evict-nobody", Severity.NOTE)
def claims_evict_nobody(plan: Plan) -> Iterator[Finding]:
    """On plain Kubernetes, classes of different priority meet in a pool with claims, and evict nobody for devices.

    ## Why
    kube-scheduler evicts a pod when another fits in its place. It does not count the devices that a pod would give
    back, so that no pod is evicted for a claim. The higher class is only the next to be placed. For CPU and memory it
    evicts lower ones there as elsewhere.

    ## Instead
    Keep the caps within the pool, or use Kueue, which evicts by quota before pods are made.
    """
    for pool in _claimed(plan) if not plan.scheduler.reclaims else ():
        classes = {
            priority.name: priority
            for tenant in plan.tenants
            if any(quota.pool is pool for quota in tenant.quotas)
            for priority in tenant.priority_classes
        }.values()
        lowest = min((priority.spec.value for priority in classes), default=0)
        evicting = [priority for priority in classes if priority.spec.preempts and priority.spec.value > lowest]
        if evicting:
            yield Finding(
                pool.at / "allocation",
                f"priority classes evict nobody for devices of pool `{pool.name}`",
                label="kube-scheduler does not evict for claims",
                related=(Label(evicting[0].at / "value", f"`{evicting[0].name}` is above others of the pool"),),
                notes=(f"pods of {listing([priority.name for priority in evicting])} wait until devices are free",),
                help="keep the caps within the pool, or use a scheduler that evicts by quota",
            )


def _claimed(plan: Plan) -> list[Pool]:
    return [pool for pool in plan.pools if pool.spec.allocation is Allocation.DRA]
