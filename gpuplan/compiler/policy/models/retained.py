"""The fields of a Retained."""

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

from typing import Annotated, Any, Literal

from pydantic import Field

from gpuplan.compiler.policy import names, texts
from gpuplan.compiler.policy.marks import ESSENTIAL, Judged, Words
from gpuplan.compiler.policy.models.cluster import MigStrategy
from gpuplan.compiler.policy.models.pool import Devices
from gpuplan.compiler.policy.models.shared import GpuModel, GpusPerNode, Instances, Model, exactly_one


class RetainedLayout(Model):
    """An entry of the MIG manager's file as it was, which nodes may still name."""

    config_name: Annotated[str, Judged("GPU723"), Words("entry")]
    """The entry's name, as in the nodes' label `nvidia.com/mig.config`: a layout's name and a hash of its content, or a
    name from a file before gpuplan, such as `all-1g.10gb`.
    """
    gpu: Annotated[GpuModel, Words("GPU model")]
    """The GPU model as `gpuplan catalog` lists it."""
    instances: Instances | None = None
    """The number of GPU instances of each profile that every GPU had."""
    devices: list[Devices] | None = None
    """Instances by GPU index."""
    gpus_per_node: Annotated[GpusPerNode | None, Words("GPUs per node")] = None
    """The number of GPUs in the nodes, where `devices` does not name all of them: the others stayed whole."""

    _one_source = exactly_one("instances", "devices", "a MIG layout")


class PluginFlags(Model):
    """The names that the device plugin gives its resources."""

    mig_strategy: Annotated[MigStrategy, Field(strict=False), Words("MIG strategy")]
    """The names that it gives MIG devices."""


class PluginResource(Model):
    """A resource that the device plugin divides."""

    name: Annotated[str, Judged("GPU724")]
    """The resource, such as `nvidia.com/gpu`, by the name that it has before it is renamed."""
    replicas: Annotated[int, Words("shares")]
    """Into how many shares each device is divided; at least 2."""


class PluginTimeSlicing(Model):
    """Shares that take turns, as the device plugin reads them."""

    rename_by_default: bool = False
    """Whether the shares are published as `<resource>.shared`."""
    fail_requests_greater_than_one: bool = False
    """Whether containers that ask for several shares are refused."""
    resources: list[PluginResource]
    """The resources that are divided."""


class PluginMps(Model):
    """Shares under CUDA MPS, as the device plugin reads them."""

    rename_by_default: bool = False
    """Whether the shares are published as `<resource>.shared`."""
    resources: list[PluginResource]
    """The resources that are divided."""


class PluginSharing(Model):
    """The way in which the device plugin divides devices; exactly one kind."""

    time_slicing: PluginTimeSlicing | None = None
    """Shares that take turns."""
    mps: Annotated[PluginMps | None, Words("MPS")] = None
    """Shares under CUDA MPS."""

    _one_kind = exactly_one("time_slicing", "mps", "a sharing kind")


class PluginConfig(Model):
    """The content of a file of the device plugin, as far as gpuplan writes such files."""

    version: Literal["v1"]
    """Always `v1`."""
    flags: PluginFlags | None = None
    """The names that it gives its resources."""
    sharing: PluginSharing | None = None
    """The way in which it divides devices; absent where it does not."""


class RetainedDevicePluginConfig(Model):
    """A file of the device plugin as it was, which nodes may still name."""

    key: Annotated[str, Judged("GPU723")]
    """The file's key as nodes have it in the label `nvidia.com/device-plugin.config`."""
    config: Annotated[PluginConfig, Words("configuration")]
    """The content of the file, as the device plugin reads it."""


class RetainedObject(Model):
    """A Kubernetes object as it was, or taken out of use."""

    folder: Annotated[str | None, Judged("GPU726")] = None
    """The folder of the cluster's output that it is applied with, such as `queues/a100-mixed`. Absent: that of its
    namespace for an object in a tenant's namespace, else `scheduling`.
    """
    manifest: Annotated[dict[str, Any], Judged("GPU725")]
    """The object, such as a ClusterQueue with `stopPolicy: Hold`."""


class RetainedNodes(Model):
    """Nodes that a pool has let go: they keep the labels of its rule, until the rule of another pool says more."""

    pool: Annotated[str, names.POOL]
    """The pool that had the nodes; what they keep is applied with its folder."""
    names: Annotated[list[str] | None, ESSENTIAL, Judged("GPU147"), Field(min_length=1)] = None
    """The nodes' names, where they were fixed."""
    name_pattern: Annotated[str | None, ESSENTIAL, Judged("GPU141")] = None
    """The regular expression (RE2) that the whole node name matched."""
    except_names: Annotated[list[str], Judged("GPU147")] = Field(default_factory=list)
    """Names that the pattern matches and that are not meant."""
    labels: Annotated[dict[str, str], Judged("GPU148")]
    """The labels that the pool's rule gave its nodes. Its taints are not kept."""

    _one_choice = exactly_one("names", "name_pattern", "which nodes are meant")


class RetainedSpec(Model):
    """A thing that no policy defines any more, but that nodes or controllers still need; exactly one."""

    mig_layout: Annotated[RetainedLayout | None, Words("MIG layout"), ESSENTIAL] = None
    """An entry of the MIG manager's file."""
    device_plugin_config: Annotated[
        RetainedDevicePluginConfig | None, ESSENTIAL, Words("configuration of the device plugin")
    ] = None
    """A file of the device plugin."""
    nodes: Annotated[RetainedNodes | None, ESSENTIAL] = None
    """Nodes that a pool has let go, with what they keep."""
    object: Annotated[RetainedObject | None, ESSENTIAL] = None
    """A Kubernetes object."""
    until: texts.Lines = Field(min_length=1)
    """When this document may be deleted, as a command to type and what it must print."""

    _one_thing = exactly_one("mig_layout", "device_plugin_config", "nodes", "object", "what is retained")
