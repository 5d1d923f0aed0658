"""The fields of a Pool, and of the Gpu and the MigLayout that it may name."""

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.policy import names, texts
from gpuplan.compiler.policy.marks import ESSENTIAL, INDEPENDENT, MAIN, Judged, Keyed, Main, Words
from gpuplan.compiler.policy.models.cluster import Approval, MigStrategy, PoolDriver
from gpuplan.compiler.policy.models.shared import (
    GpuModel,
    GpusPerNode,
    Instances,
    Model,
    Positive,
    Taint,
    Vocabulary,
    exactly_one,
)
from gpuplan.compiler.policy.schedules import window_meant


class Reserve(Model):
    """The part of each node that is for pods of no tenant, such as those of DaemonSets."""

    cpu: Annotated[texts.Quantity, Words("reserved CPU")] = "0"
    """CPUs, such as `2`."""
    memory: Annotated[texts.Quantity, Words("reserved memory")] = "0"
    """Memory, such as `16Gi`."""


class Nodes(Model):
    """The nodes of a pool: alike in GPU model, GPU count and sharing."""

    count: Annotated[Positive, MAIN]
    """The number of nodes in the pool, by which capacity is counted."""
    gpus_per_node: Annotated[GpusPerNode, Words("GPUs per node")]
    """The number of GPUs in each node."""
    names: Annotated[list[str] | None, ESSENTIAL, Judged("GPU147")] = None
    """The nodes' names, where they are fixed."""
    name_pattern: Annotated[str | None, ESSENTIAL, Judged("GPU141")] = None
    """A regular expression (RE2) that the whole node name must match, where nodes come and go. Two pools' patterns must
    not match the same name.
    """
    selector: Annotated[dict[str, str], Judged("GPU167"), ESSENTIAL] = Field(default_factory=dict)
    """Labels that nodes have from whoever makes them, such as `node.kubernetes.io/instance-type` or
    `cloud.google.com/gke-nodepool`: nodes with all of them are the pool's. Only with `nodeLabels: external`: no rule of
    Node Feature Discovery sees labels.
    """
    match_boards: Annotated[bool, ESSENTIAL] = False
    """Whether the pool takes only nodes with its GPU model, by PCI ids (`nodeLabels: nfd`). With `names` or
    `namePattern` it takes the nodes that match both, else all nodes with the model.
    """
    cpu: Annotated[texts.Quantity | None, Words("CPU")] = None
    """The number of CPUs that each node has for pods, such as `192`: `kubectl describe node` calls it allocatable."""
    memory: texts.Quantity | None = None
    """The memory that each node has for pods, such as `1900Gi`; allocatable as well."""
    reserve: Reserve = Reserve.model_construct()
    """The part of CPU and memory that is for pods of no tenant."""


class Exclusive(Model):
    """One pod has one whole GPU."""


class TimeSlicing(Model):
    """Several pods take turns on one GPU, without isolation of memory or of faults."""

    replicas: Annotated[int, Words("shares")]
    """Into how many shares each GPU is divided; at least 2."""
    rename: bool = True
    """Publish the shares as `<resource>.shared` (`renameByDefault`), so that nobody mistakes a share for a GPU and
    quotas can tell them apart.
    """
    fail_requests_greater_than_one: bool = True
    """Refuse containers that ask for two or more shares: more shares are not more GPU time, and may be of one GPU."""


class Mps(Model):
    """Several pods run on one GPU at once through CUDA MPS, each with an equal share of memory and threads."""

    replicas: Annotated[int, Words("shares")]
    """Into how many shares each GPU is divided: 2 to 48, to 16 below compute capability 7.5."""
    rename: bool = True
    """Publish the shares as `<resource>.shared` (`renameByDefault`)."""


Replicas = Annotated[
    dict[str, int],
    Field(json_schema_extra={"propertyNames": {"format": Vocabulary.MIG_PROFILE.value}}, min_length=1),
    Judged("GPU309"),
]
"""Shares by MIG profile."""


class MigTimeSlicing(Model):
    """Several pods take turns on one MIG device, without isolation of its memory or of faults."""

    replicas: Annotated[int | Replicas, Words("shares")]
    """Into how many shares each MIG device is divided; at least 2. By profile, such as `{1g.10gb: 4, 2g.20gb: 2}`,
    devices of other profiles stay undivided.
    """
    rename: bool = True
    """Publish the shares as `<resource>.shared` (`renameByDefault`), so that nobody takes a share for a MIG device."""
    fail_requests_greater_than_one: bool = True
    """Refuse containers that ask for two or more shares: they may be of one device."""


class Devices(Model):
    """The division of some GPUs of a node."""

    gpus: Annotated[Literal["all"] | list[Annotated[int, Field(ge=0)]], Words("GPUs")]
    """The GPUs' indexes as NVML counts them, from 0, or `all`."""
    instances: Instances | None = None
    """The number of GPU instances of each MIG profile."""
    enabled: bool = True
    """`false` leaves these GPUs whole, with MIG switched off."""


def division_of(text: str) -> dict[str, object]:
    """Return the field of `mig` that a text means: as many instances of a profile as fit on a GPU, or a layout."""
    slices = regex(r"([1-7])g\.[0-9]+gb").match(text)
    return {"instances": {text: 7 // int(slices[1])}} if slices else {"layout": text}


class Mig(Model):
    """GPUs divided by Multi-Instance GPU: partitions with their own memory, caches and compute."""

    layout: Annotated[names.LayoutName | None, Main(division_of)] = None
    """The MigLayout to use."""
    instances: Annotated[Instances | None, ESSENTIAL] = None
    """The number of GPU instances of each MIG profile on every GPU, written here instead of in a MigLayout."""
    devices: Annotated[list[Devices] | None, ESSENTIAL] = None
    """Instances by GPU index, written here instead of in a MigLayout."""
    config_name: Annotated[str | None, Judged("GPU723"), Words("entry"), ESSENTIAL] = None
    """The name that the division has on nodes already, beside `instances` or `devices`: as in a MigLayout."""
    strategy: Annotated[MigStrategy, Field(strict=False), ESSENTIAL] = MigStrategy.MIXED
    """`mixed` publishes each profile as its own resource (`nvidia.com/mig-1g.10gb`). `single` publishes all as
    `nvidia.com/gpu` and needs equal instances on every GPU of the node.
    """
    time_slicing: MigTimeSlicing | None = None
    """Divide MIG devices further by time-slicing, all of them or some profiles."""

    _one_source = exactly_one("layout", "instances", "devices", "a MIG layout")


class DynamicMig(Model):
    """MIG partitions that NVIDIA's driver for DRA makes when a pod claims one, and removes when it ends: no layout says
    what a GPU is divided into. Needs `allocation: dra` in all pools and the driver's alpha feature gate `DynamicMIG`.
    """

    profiles: Annotated[
        list[Annotated[str, Field(json_schema_extra={"format": Vocabulary.MIG_PROFILE.value})]],
        Field(min_length=1),
        Judged("GPU494"),
        Words("profiles on demand"),
        ESSENTIAL,
    ]
    """The MIG profiles that pods may claim, such as `1g.10gb`; each is a unit of the pool."""


class Fraction(Model):
    """Pods ask the scheduler for a fraction of a GPU; only KAI-Scheduler and Run:ai know how."""


class Sharing(Model):
    """The way in which the GPUs of a pool are shared; exactly one kind."""

    exclusive: Exclusive | None = None
    """One pod has one whole GPU."""
    time_slicing: TimeSlicing | None = None
    """Pods take turns on a GPU."""
    mps: Annotated[Mps | None, Words("MPS")] = None
    """Pods share a GPU through CUDA MPS."""
    mig: Annotated[Mig | None, Words("MIG")] = None
    """GPUs are partitioned by MIG."""
    dynamic_mig: Annotated[DynamicMig | None, Words("dynamic MIG")] = None
    """GPUs are partitioned by MIG on demand, as pods claim partitions."""
    fraction: Fraction | None = None
    """The scheduler hands out fractions of a GPU."""

    _one_kind = exactly_one("exclusive", "time_slicing", "mps", "mig", "dynamic_mig", "fraction", "a sharing kind")


class Window(Model):
    """A time in which a pool's nodes may be disturbed."""

    schedule: Annotated[str, Judged("GPU162"), Main(window_meant)]
    """When the window opens, as a cron expression of five fields, such as `0 2 * * 6`."""
    duration: texts.Duration
    """The time that the window stays open, such as `4h`."""
    time_zone: Annotated[str, Judged("GPU163")] = "UTC"
    """The time zone of the schedule, such as `Europe/Berlin`."""


class Guard(Model):
    """Jobs that Argo CD runs with each sync of a pool's nodes: before, and after it has changed their labels."""

    image: texts.Image
    """The image of both Jobs, with `python3` of Python 3.9 or newer; nothing else is needed."""
    timeout: texts.Duration = "30m"
    """The time that nodes may take to be repartitioned."""


class Disruption(Model):
    """When and how far a change may disturb a pool's nodes."""

    approval: Annotated[Approval, Field(strict=False)] = Approval.MANUAL
    """`manual`: a person starts the sync of a disruptive change."""
    windows: Annotated[list[Window], INDEPENDENT] = Field(default_factory=list)
    """The times in which nodes may be disturbed; none means any time."""
    max_unavailable: Positive = 1
    """The number of nodes that may be disturbed at once."""
    guard: Guard | None = None
    """With Argo CD: do not sync while pods hold GPUs of nodes that would be repartitioned, and wait until they were."""


class Rollout(Model):
    """A pool on its way from one way of sharing to another, some nodes after the others."""

    sharing: Sharing
    """The way in which the GPUs of these nodes are shared; in the end it becomes the pool's `sharing`."""
    nodes: Annotated[list[str], Judged("GPU730")]
    """The names of the nodes that have been moved to it; none while it is only made known."""


class Allocation(StrEnum):
    """The mechanism that hands a pool's devices to pods."""

    DEVICE_PLUGIN = "devicePlugin"
    DRA = "dra"


class Placement(StrEnum):
    """Where a scheduler puts pods first."""

    BINPACK = "binpack"
    SPREAD = "spread"


class Term(StrEnum):
    """The way in which nodes are paid for."""

    ON_DEMAND = "onDemand"
    RESERVED_1_YEAR = "reserved1Year"
    RESERVED_3_YEARS = "reserved3Years"
    SPOT = "spot"
    OWNED = "owned"


class Billing(Model):
    """The facts about a pool's nodes that decide their price."""

    node_type: texts.Line | None = None
    """Their type, by which `Prices` may have a price for them, such as `p4d.24xlarge`. Absent: the value of
    `node.kubernetes.io/instance-type` in `nodes.selector`, where that says one.
    """
    term: Annotated[Term, Field(strict=False)] = Term.ON_DEMAND
    """The payment for the nodes: `onDemand`, `reserved1Year`, `reserved3Years`, `spot`, or `owned` for your own nodes.
    The price of an own node is its depreciation and power in an hour. gpuplan uses the price for this term.
    """


class PoolNames(Model):
    """Names that things of a pool have on the cluster already, where gpuplan would give others."""

    device_plugin_config: Annotated[str | None, Judged("GPU723"), Words("configuration of the device plugin")] = None
    """The key of the pool's file for the device plugin, and the value of the node label
    `nvidia.com/device-plugin.config`, such as `tesla-t4`. Several pools may have one, where their files say the same.
    Where a `Retained` says that the key means something else, the pool has a key of its own. Absent: the pool's name.
    """
    resource_flavor: Annotated[names.ResourceFlavor | None, Words("ResourceFlavor")] = None
    """The pool's ResourceFlavor, with Kueue. Absent: the pool's name."""


class PoolSpec(Model):
    """A set of equal nodes that share their GPUs in one way."""

    gpu: Annotated[GpuModel, Words("GPU model")]
    """The GPU model as `gpuplan catalog` lists it, such as `A100-80GB`, or the name of a `Gpu` document."""
    nodes: Nodes
    """The pool's nodes."""
    sharing: Sharing
    """The way in which the GPUs are shared: exactly one kind."""
    node_labels: Annotated[dict[str, str], Judged("GPU148")] = Field(default_factory=dict)
    """More labels for the pool's nodes."""
    workload_types: Annotated[list[texts.Line], Keyed(())] = Field(default_factory=list)
    """The types of work that the pool is meant for; tenants name them in `workloadTypes`."""
    taints: Annotated[list[Taint], Keyed(("key", "effect")), INDEPENDENT] = Field(default_factory=list)
    """Taints for the pool's nodes."""
    allocation: Annotated[Allocation, Field(strict=False)] = Allocation.DEVICE_PLUGIN
    """`devicePlugin`: pods ask for extended resources such as `nvidia.com/gpu`. `dra`: pods claim devices of a
    DeviceClass, by Dynamic Resource Allocation and NVIDIA's driver for it; Kubernetes 1.34 or newer.
    """
    placement: Annotated[Placement, Field(strict=False)] | None = None
    """`binpack` fills nodes one after the other, `spread` prefers empty ones. Absent: as the scheduler does."""
    topology: list[texts.Line] = Field(default_factory=list)
    """Node labels that say where a node is, widest first, such as a block's and a rack's; the node itself may be last,
    as `kubernetes.io/hostname`. Schedulers that know topology place gangs close together.
    """
    fallback: names.PoolName | None = None
    """The pool for Workloads when this pool is full, and after it the fallback's own fallback. A Workload goes there
    only if the fallback hands out its unit, and its tenant has a quota there. The fallback must not isolate less.
    Hand-written pods name the pools themselves, by a required node affinity.
    """
    follow_units: Annotated[bool, Words("CPU and memory by units")] = False
    """Whether a quota without CPU or memory gets the part of the nodes that belongs to its units, less the reserve. A
    unit's part of a node is the unit's compute slices divided by all compute slices that the node hands out. The result
    is rounded down to thousandths of a CPU and to whole MiB.
    """
    driver: PoolDriver | None = None
    """The driver of the pool's nodes, where it is not the cluster's: then an NVIDIADriver for each such pool says what
    the GPU Operator installs there, from v26.7 on. The first of them on a cluster takes the ClusterPolicy's driver away
    from all nodes.
    """
    memory_per_unit: Annotated[int, Field(ge=1)] | None = Field(default=None, alias="memoryPerUnitMiB")
    """The GPU memory in MiB that one unit must offer to be of use here; replicas that leave less are reported."""
    disruption: Disruption = Disruption.model_construct()
    """When and how far a change may disturb the nodes."""
    rollout: Rollout | None = None
    """Another way of sharing, which some of the nodes have already; `gpuplan rollout` writes its steps."""
    names: Annotated[PoolNames, Words("names on the cluster")] = PoolNames.model_construct()
    """Names that things of the pool have on the cluster already."""
    billing: Billing = Billing.model_construct()
    """The facts about its nodes by which a `Prices` document sets their price."""


class MigListing(Model):
    """The GPU instances of a board, as its driver lists them on a node where MIG is on."""

    lgip: Annotated[texts.Lines, Words("list of profiles")]
    """The output of `nvidia-smi mig -lgip`: the profiles, by id."""
    lgipp: Annotated[texts.Lines, Words("list of placements")]
    """The output of `nvidia-smi mig -lgipp`: the places where the instances of each profile may start."""


class GpuSpec(Model):
    """A GPU model that the catalog lacks: what a node that has one says of it."""

    memory_mib: Annotated[Positive, Words("GPU memory"), ESSENTIAL] = Field(alias="memoryMiB")
    """The memory in MiB, as `nvidia-smi` prints it and the node label `nvidia.com/gpu.memory` has it."""
    compute_capability: Annotated[texts.ComputeCapability, ESSENTIAL]
    """The number that the labels `nvidia.com/gpu.compute.major` and `.minor` of its nodes give."""
    products: Annotated[list[texts.ProductLabel], Field(min_length=1), ESSENTIAL]
    """Values of the label `nvidia.com/gpu.product` on nodes with whole GPUs, such as `NVIDIA-GeForce-RTX-4090`."""
    pci: Annotated[list[texts.PciId], Words("PCI ids"), ESSENTIAL] = Field(default_factory=list)
    """The ids that `lspci -nn -d 10de:` prints in brackets, such as `10de:2684`. Where several boards have one id, the
    subsystem follows, as `lspci -nnv` prints it: `10de:25b6/10de:14a9`. Only `matchBoards` needs them.
    """
    mig: Annotated[MigListing | None, Words("MIG"), ESSENTIAL] = None
    """Its GPU instances, for a board that is to be partitioned. Absent: it is used whole, time-sliced, or through MPS.
    """


class MigLayoutSpec(Model):
    """A named division of a GPU model into MIG instances."""

    gpu: Annotated[GpuModel, Words("GPU model")]
    """The GPU model as `gpuplan catalog` lists it, or a `Gpu` document's name; profiles mean nothing without it."""
    instances: Annotated[Instances | None, ESSENTIAL] = None
    """The number of GPU instances of each profile on every GPU."""
    devices: Annotated[list[Devices] | None, ESSENTIAL] = None
    """Instances by GPU index; together they must cover every GPU."""
    config_name: Annotated[str | None, Judged("GPU723"), Words("entry"), ESSENTIAL] = None
    """The name that the division has on nodes already, such as `all-1g.10gb`: that of its entry in the MIG manager's
    file, and the value of the label `nvidia.com/mig.config`. It stands for one division for good, since an entry that
    changes under its name divides all nodes at once. Absent: the layout's name and a hash of what it says.
    """

    _one_source = exactly_one("instances", "devices", "a MIG layout")
