"""The kinds of work that Kueue knows, and what it holds back of each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog.loading import facts, frozen
from gpuplan.compiler.catalog.operators import parse_version


class Held(StrEnum):
    """The thing that waits for a quota: the object itself, suspended, or its pods, gated."""

    OWNER = "owner"
    PODS = "pods"


class Says(StrEnum):
    """The way in which an object says how many pods it has; `admission/kueue.yaml` reads each."""

    ROLES = "roles"
    GROUPS = "groups"
    JOBS = "jobs"
    SIZE = "size"
    WHOLE = "whole"


class Filled(Value):
    """A field of the spec that Kueue fills in ``since`` a release of its own.

    The kind's controller has it from the minor release ``first`` on, ``before`` another one where that is not empty.
    """

    since: str
    field: str
    first: str
    before: str = ""

    @property
    def releases(self) -> str:
        """Those of the controller that have it."""
        return self.first if self.before else f"{self.first} or newer"


class Framework(Value):
    """A kind. ``suspend`` is the field of one that is held back as a whole, empty for others.

    ``makes`` are kinds, of this table, of the objects that its controller makes of it; pods name it as their controller
    where it ``owns_pods``. ``since`` is the first release of Kueue that has it; one that is ``always`` there needs no
    word in the policy. Its spec ``says`` in the field ``at`` how many pods there are, and names one count alone in a
    subresource where it ``scales``. ``elastic`` is the first release of Kueue that counts one which grows by slices,
    empty where none does. ``fills`` is what Kueue writes into one that it admits, the oldest first, for a controller of
    the ``project``.
    """

    kind: str
    api: str
    resource: str
    integration: str
    held: Held
    since: str
    source: str
    suspend: str = ""
    makes: tuple[str, ...] = ()
    owns_pods: bool = False
    always: bool = False
    says: Says | None = None
    at: str = ""
    scales: bool = False
    elastic: str = ""
    project: str = ""
    fills: tuple[Filled, ...] = ()

    def filled_by(self, release: str) -> Filled | None:
        """Return the fields that a release of Kueue fills in."""
        known, found = parse_version(release) or (), None
        for item in self.fills:
            found = item if (parse_version(item.since) or ()) <= known else found
        return found

    @property
    def group(self) -> str:
        return self.api.rpartition("/")[0]

    @property
    def type(self) -> str:
        """Return the version and kind that an object of it has."""
        return f"{self.api} {self.kind}"


@cache
def frameworks() -> Mapping[str, Framework]:
    """Those that a policy may name, and what is always there, by kind."""
    return _table("frameworks")


def known_to_kueue() -> tuple[Framework, ...]:
    """All that Kueue has, those beside the policy last."""
    return (*frameworks().values(), *_table("others").values())


@cache
def _table(name: str) -> Mapping[str, Framework]:
    table = facts("scheduler_data", "frameworks.yaml")
    return {row["kind"]: _framework(row, table["sources"]) for row in table[name]}


def _framework(row: Mapping[str, Any], sources: str) -> Framework:
    says = Says(row["says"]) if "says" in row else None
    fills = tuple(Filled(**item) for item in row.get("fills", ()))
    read = {"held": Held(row["held"]), "says": says, "source": f"{sources}{row['source']}", "fills": fills}
    return Framework(**{**frozen(row), **read})


class Slices(Value):
    """The feature gate by which Kueue counts what grows in slices: off ``since`` one release, ``on`` from another."""

    gate: str
    since: str
    on: str


def slices() -> Slices:
    return Slices(**facts("scheduler_data", "frameworks.yaml")["slices"])


def enabled(kinds: Collection[str]) -> tuple[Framework, ...]:
    """Those that Kueue must know where it is to know some kinds: with what is always there, and with what they make."""
    wanted = {*kinds, *(kind for chosen in kinds for kind in _made(chosen))}
    return tuple(found for found in frameworks().values() if found.always or found.kind in wanted)


def _made(kind: str) -> Iterator[str]:
    for made in frameworks()[kind].makes:
        yield made
        yield from _made(made)
