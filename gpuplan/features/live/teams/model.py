"""A team as a dump shows it: its namespaces, and the objects in each that say what the team may do."""

from __future__ import annotations

from gpuplan.compiler.base.values import Value
from gpuplan.features.live.dump import Item
from gpuplan.features.live.queues.model import Queue


class Space(Value):
    """A namespace: its own object and gpuplan's parameters for it, where the dump has them, and what is in it.

    ``owner`` is the tenant that gpuplan wrote it for; empty where nothing says so.
    """

    name: str
    owner: str = ""
    namespace: Item | None = None
    parameters: Item | None = None
    quotas: tuple[Item, ...] = ()
    limits: tuple[Item, ...] = ()
    bindings: tuple[Item, ...] = ()

    @property
    def items(self) -> tuple[Item, ...]:
        """All that is read of it."""
        single = (self.namespace, self.parameters)
        return (*(item for item in single if item), *self.quotas, *self.limits, *self.bindings)


class Team(Value):
    """A tenant to be. ``labelled`` are gpuplan's parameters for namespaces that have the tenant's label."""

    name: str
    spaces: tuple[Space, ...] = ()
    labelled: Item | None = None
    queue: Queue | None = None

    @property
    def is_own(self) -> bool:
        """Whether it is a tenant already: gpuplan wrote the objects of its namespaces."""
        return self.labelled is not None or any(space.owner for space in self.spaces)

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(space.name for space in self.spaces)

    @property
    def sources(self) -> tuple[str, ...]:
        items = (*((self.labelled,) if self.labelled else ()), *(item for space in self.spaces for item in space.items))
        return (*(item.source for item in items), *(self.queue.sources if self.queue else ()))
