"""Find what objects of any kind ask for: resources of their pods, quotas, and pods' own labels and annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.compiler.base.diagnostics import Origin, Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, parts_with, text, value_at
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.planning.hand_files import HandFiles, Object

_HOLDERS = ("resources", "resourcesPerNode")
"""The fields that kinds which make pods have for a container's resources, `container` of Argo's Workflow included."""
_CONTAINERS = frozenset(("container", "containers", "initContainers", "script", "sidecars"))
"""Fields of containers as Kubernetes has them. Elsewhere a kind may have its own names for resources."""


class Ask(Value):
    """A resource among a container's requests or its limits, or those of what a container is made of."""

    of: Object
    at: Origin
    resource: str
    amount: object
    limits: Mapping[str, object]
    is_limit: bool
    is_of_container: bool = True

    @property
    def is_gpu(self) -> bool:
        """Whether an amount of a resource of GPUs is stated, and not left to a program that fills it in."""
        return GPU.fullmatch(self.resource) is not None and not PLACEHOLDER.search(str(self.amount))


GPU = regex(r"nvidia\.com/(gpu|gpu\.shared|mig-.+)")
HAMI = regex(r"nvidia\.com/gpu(mem|cores|mem-percentage)")
"""Resources that HAMi counts beside GPUs."""
PLACEHOLDER = regex(r"[${}]")
"""A mark of a text that a program replaces before it is applied: `${GPUS}`, `{{inputs.parameters.gpus}}`."""


def asks(files: HandFiles) -> Iterator[Ask]:
    for found in judged(files):
        for route, part in parts_with(found.body, "requests", "limits"):
            limits = mapping(part.get("limits"))
            is_container = not _CONTAINERS.isdisjoint(route)
            for kind in ("requests", "limits") if route and route[-1] in _HOLDERS else ():
                for resource, amount in mapping(part.get(kind)).items():
                    at = found.place(*route, kind, resource).key
                    is_limit = kind == "limits"
                    yield Ask(found, at, resource, amount, limits, is_limit=is_limit, is_of_container=is_container)
        for route, part in parts_with(found.body, "gpu") if found.kind.endswith("SparkApplication") else ():
            gpu = mapping(part.get("gpu"))  # `GPUSpec` in api/v1beta2 of kubeflow/spark-operator v2.4.0
            if name := text(gpu.get("name")):
                at, amount = found.place(*route, "gpu", "name"), gpu.get("quantity")
                yield Ask(found, at, name, amount, {name: amount}, is_limit=True)


def judged(files: HandFiles) -> Iterator[Object]:
    """Yield the objects that say what they want. A definition of a kind says what others may say."""
    return (found for found in files.objects if found.kind != "CustomResourceDefinition")


class Spec(NamedTuple):
    """A part of an object, with its place in it."""

    of: Object
    route: Path
    body: Mapping[str, object]


def quota_specs(files: HandFiles) -> Iterator[Spec]:
    """Yield the specs of quotas: of ResourceQuotas, and of kinds that make one, such as Kubeflow's Profile."""
    for found in judged(files):
        for route, part in parts_with(found.body, "hard"):
            if route[:1] == ("spec",):
                yield Spec(found, route, part)


def pods(files: HandFiles) -> Iterator[Spec]:
    """Yield pods and their templates, which have `metadata` beside a `spec` with containers."""
    for found in judged(files):
        for route, part in parts_with(found.body, "spec"):
            if isinstance(value_at(part, ("spec", "containers")), list):
                yield Spec(found, route, part)
