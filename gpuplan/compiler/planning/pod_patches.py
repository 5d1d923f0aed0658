"""What workloads lay over their pods, part by part: whatever is none of its kind is nothing, and found by a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.plan import MAIN_CONTAINER, Workload

INIT_CONTAINERS: Final = "initContainers"
_LISTS: Final = (INIT_CONTAINERS, "containers")


class PatchedContainer(NamedTuple):
    """What a patch says of a container. One that ``is_init`` starts before others, and may go on beside them."""

    at: Origin
    name: str
    body: Mapping[str, Any]
    is_init: bool

    @property
    def is_added(self) -> bool:
        """Whether the policy says nothing else of it."""
        return self.name != MAIN_CONTAINER

    @property
    def goes_on(self) -> bool:
        return not self.is_init or self.body.get("restartPolicy") == "Always"


def patched_containers(workload: Workload) -> Iterator[PatchedContainer]:
    """In the order in which a pod starts them."""
    spec = spec_of_patch(workload)
    for field in _LISTS:
        for index, item in enumerate(items(spec.get(field))):
            body = mapping(item)
            if isinstance(body.get("name"), str) and "$patch" not in body:
                at = workload.patch_at / ("spec", field, index)
                yield PatchedContainer(at, body["name"], body, field == INIT_CONTAINERS)


def spec_of_patch(workload: Workload) -> Mapping[str, Any]:
    return mapping(workload.pod_patch.get("spec"))


def mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
