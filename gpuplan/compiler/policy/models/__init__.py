"""The policy language `gpuplan.dev/v1`: what a platform team writes, mirrored field by field, a module a kind."""

# ruff: noqa: F403, F405 - all that these modules have is the language

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

from typing import Annotated, Literal, get_args

from gpuplan.compiler.policy import names
from gpuplan.compiler.policy.marks import Words
from gpuplan.compiler.policy.models.cluster import *
from gpuplan.compiler.policy.models.pool import *
from gpuplan.compiler.policy.models.prices import *
from gpuplan.compiler.policy.models.retained import *
from gpuplan.compiler.policy.models.shared import *
from gpuplan.compiler.policy.models.tenant import *
from gpuplan.compiler.policy.models.workload import *


class Document(Model):
    """A document in a file of policies, which may hold several."""

    api_version: Annotated[Literal["gpuplan.dev/v1"], Words("apiVersion")]
    """Always `gpuplan.dev/v1`."""


class Cluster(Document):
    """A cluster: its versions, who installs the GPU Operator, who labels nodes, which scheduler divides the GPUs."""

    kind: Literal["Cluster"]
    """Always `Cluster`."""
    metadata: Annotated[Metadata, names.Titled(names.CLUSTER)]
    """The cluster's name."""
    spec: ClusterSpec
    """The cluster."""


class Pool(Document):
    """A set of equal nodes that share their GPUs in one way."""

    kind: Literal["Pool"]
    """Always `Pool`."""
    metadata: Annotated[Metadata, names.Titled(names.POOL)]
    """The pool's name."""
    spec: PoolSpec
    """The pool."""


class Gpu(Document):
    """A GPU model that the catalog lacks, as its board, its driver and its node describe it."""

    kind: Literal["Gpu"]
    """Always `Gpu`."""
    metadata: Annotated[Metadata, names.Titled(names.GPU)]
    """The model's name, which pools and layouts give as `gpu`."""
    spec: GpuSpec
    """The model."""


class MigLayout(Document):
    """A named division of a GPU model into MIG instances, which pools refer to."""

    kind: Literal["MigLayout"]
    """Always `MigLayout`."""
    metadata: Annotated[Metadata, names.Titled(names.LAYOUT)]
    """The layout's name."""
    spec: MigLayoutSpec
    """The layout."""


class PriorityClass(Document):
    """The urgency of a workload, and whether it may be evicted for another."""

    kind: Literal["PriorityClass"]
    """Always `PriorityClass`."""
    metadata: Annotated[Metadata, names.Titled(names.PRIORITY_CLASS)]
    """The class's name, which pods give as `priorityClassName`."""
    spec: PriorityClassSpec
    """The class."""


class Tenant(Document):
    """A team: its namespaces, members, priority classes and quotas."""

    kind: Literal["Tenant"]
    """Always `Tenant`."""
    metadata: Annotated[Metadata, names.Titled(names.TENANT)]
    """The tenant's name."""
    spec: TenantSpec
    """The tenant."""


class Workload(Document):
    """A team's work: a service, a training, another job that ends, or a workspace."""

    kind: Literal["Workload"]
    """Always `Workload`."""
    metadata: Annotated[Metadata, names.Titled(names.WORKLOAD)]
    """The workload's name, which its objects have too."""
    spec: WorkloadSpec
    """The workload."""


class Retained(Document):
    """A thing that must be kept after a change of the policies, until nothing in the cluster names it any more."""

    kind: Literal["Retained"]
    """Always `Retained`."""
    metadata: Annotated[Metadata, names.Titled(names.RETAINED)]
    """The document's name, which nothing refers to."""
    spec: RetainedSpec
    """The thing that is retained, and until when."""


class Prices(Document):
    """The prices of nodes with GPUs, by which the costs of pools, units, tenants and workloads are counted."""

    kind: Literal["Prices"]
    """Always `Prices`."""
    metadata: Annotated[Metadata, names.Titled(names.PRICES)]
    """The document's name, which nothing refers to."""
    spec: PricesSpec
    """The prices."""


Policy = Cluster | Pool | Gpu | MigLayout | PriorityClass | Tenant | Workload | Retained | Prices

KINDS: dict[str, type[Policy]] = {kind.__name__: kind for kind in get_args(Policy)}


def parts_of_language(model: type[Model] = Model) -> tuple[type[Model], ...]:
    """Every model of the language, those that others are made of first."""
    return tuple(part for child in model.__subclasses__() for part in (child, *parts_of_language(child)))
