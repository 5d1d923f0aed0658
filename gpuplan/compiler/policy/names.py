"""The types of names in policies: what in the cluster is called so, and what a name may be for that."""

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

from typing import Annotated, Any, Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value

LONGEST_LABEL: Final = 63
LONGEST_SUBDOMAIN: Final = 253

_PART: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_LABEL: Final = f"^{_PART}$"
DNS_SUBDOMAIN: Final = rf"^{_PART}(\.{_PART})*$"

_LABEL: Final = regex(DNS_LABEL)
_SUBDOMAIN: Final = regex(DNS_SUBDOMAIN)


class Naming(Value):
    """A kind of name; ``carrier`` says what in the cluster has it. Its form is a rule of its own, not of the type.

    What breaks it is read all the same, and GPU120 and GPU121 tell of it: the rest of the policy can be judged.
    """

    what: str
    carrier: str
    is_subdomain: bool = False

    @property
    def form(self) -> str:
        return "DNS subdomain" if self.is_subdomain else "DNS label"

    @property
    def longest(self) -> int:
        return LONGEST_SUBDOMAIN if self.is_subdomain else LONGEST_LABEL

    def is_spelt(self, name: str) -> bool:
        return (_SUBDOMAIN if self.is_subdomain else _LABEL).fullmatch(name) is not None

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401 - pydantic's own
        return {**handler(core), **self.rule}

    @property
    def rule(self) -> dict[str, Any]:
        """Return the part of a JSON Schema that holds a name to its form."""
        return {"pattern": DNS_SUBDOMAIN if self.is_subdomain else DNS_LABEL, "maxLength": self.longest}


class Reference(Value):
    """A name of something that has the name elsewhere in the policies, where it is judged."""

    naming: Naming

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401 - pydantic's own
        return {**handler(core), **self.naming.rule}


class Titled(Value):
    """A mark on the `metadata` of a document that says what its name has to be."""

    naming: Naming

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401 - pydantic's own
        return {**handler(core), "properties": {"name": self.naming.rule}}


# --- Documents -----------------------------------------------------------------------------------------------------

CLUSTER: Final = Naming("cluster", "the folders `overlays/<name>/` and `out/<name>/` are called so")
POOL: Final = Naming(
    "pool", "nodes carry it as the label `gpuplan.dev/pool`; it is a key of the device plugin's configuration"
)
GPU: Final = Naming("GPU model", "names of DeviceClasses have it, and labels of machines that are scaled")
LAYOUT: Final = Naming("layout", "nodes carry it, with a hash, as the label `nvidia.com/mig.config`")
PRIORITY_CLASS: Final = Naming("priority class", "the PriorityClass is called so", is_subdomain=True)
TENANT: Final = Naming("tenant", "namespaces carry it as the label `gpuplan.dev/tenant`")
WORKLOAD: Final = Naming("workload", "its objects are called so, and its pods carry it as a label")
RETAINED: Final = Naming("retained", "it tells what is retained apart")
PRICES: Final = Naming("prices", "it tells lists of prices apart")
DEMAND: Final = Naming("demand", "it tells demands apart")

PoolName = Annotated[str, Reference(POOL)]
LayoutName = Annotated[str, Reference(LAYOUT)]
PriorityClassName = Annotated[str, Reference(PRIORITY_CLASS)]
TenantName = Annotated[str, Reference(TENANT)]

# --- Objects of the cluster ----------------------------------------------------------------------------------------

NAMESPACE: Final = Naming("namespace", "the Namespace is called so")

Namespace = Annotated[str, NAMESPACE]
ResourceFlavor = Annotated[str, Naming("ResourceFlavor", "the ResourceFlavor is called so", is_subdomain=True)]
ClusterQueue = Annotated[str, Naming("ClusterQueue", "the ClusterQueue is called so", is_subdomain=True)]
LocalQueue = Annotated[str, Naming("LocalQueue", "work carries it as the label `kueue.x-k8s.io/queue-name`")]
Cohort = Annotated[str, Naming("Cohort", "the Cohort is called so", is_subdomain=True)]
Queue = Annotated[str, Naming("queue", "work carries it as the label `kai.scheduler/queue`")]
NamespaceOfTenant = Annotated[str, Reference(NAMESPACE)]
ClusterPolicy = Annotated[str, Naming("ClusterPolicy", "the ClusterPolicy is called so", is_subdomain=True)]
AppProject = Annotated[str, Naming("AppProject", "the AppProject is called so", is_subdomain=True)]
FluxSourceName = Annotated[str, Naming("Flux source", "the source is called so", is_subdomain=True)]
ServiceAccount = Annotated[str, Naming("service account", "the ServiceAccount is called so", is_subdomain=True)]
CatalogSource = Annotated[str, Naming("catalog", "the CatalogSource is called so", is_subdomain=True)]
StorageClass = Annotated[str, Naming("StorageClass", "the StorageClass is called so", is_subdomain=True)]
Secret = Annotated[str, Naming("secret", "the Secret is called so", is_subdomain=True)]
ConfigMap = Annotated[str, Naming("ConfigMap", "the ConfigMap is called so", is_subdomain=True)]
Gateway = Annotated[str, Naming("Gateway", "the Gateway is called so", is_subdomain=True)]
Listener = Annotated[str, Naming("listener", "the listener of the Gateway is called so", is_subdomain=True)]
IngressClass = Annotated[str, Naming("IngressClass", "the IngressClass is called so", is_subdomain=True)]
TriggerAuthentication = Annotated[
    str, Naming("ClusterTriggerAuthentication", "the ClusterTriggerAuthentication is called so", is_subdomain=True)
]
