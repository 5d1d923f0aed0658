"""The objects that a cluster is to have, and the differences of what runs from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.delivery import TOOLS
from gpuplan.compiler.manifests import Identity, Manifest
from gpuplan.compiler.manifests.kinds import find_kind
from gpuplan.compiler.pipeline import Report
from gpuplan.compiler.pipeline.loading import OUT
from gpuplan.compiler.planning.appliers import Applier
from gpuplan.compiler.planning.plan import Component, Plan
from gpuplan.features.components import Folder, Patched, built
from gpuplan.features.live.drifting.objects import Owner, Unjudged
from gpuplan.features.live.dump import Dump
from gpuplan.features.tracing import Source, written_for


class Planned(NamedTuple):
    """An object that a cluster is to have. Its ``body`` is what is applied, and ``path`` where that is written.

    ``artifact`` is what gpuplan writes of it, None where a Component adds all of it. ``by_hand`` is the folder whose
    Components make something of it, where they do.
    """

    body: Mapping[str, Any]
    path: str
    folder: str
    artifact: Manifest | None
    by_hand: Folder | None = None

    @property
    def tool(self) -> str:
        """The tool that an object configures, or an empty text for objects of the cluster itself."""
        first = self.path.partition("/")[0]
        return first if first in TOOLS else ""


class Platform(Value, eq=False):
    """All that a cluster is to have.

    ``passing`` are objects that are there while something is synced. ``unbuilt`` are those of folders whose Components
    nobody could build: what they make of them is not known, nor what they add. ``patched`` says what is hand-written.
    """

    plan: Plan
    objects: Mapping[Identity, Planned]
    passing: frozenset[Identity]
    unbuilt: frozenset[Identity]
    patched: Patched

    def shown_by(self, dump: Dump) -> Mapping[Identity, Mapping[str, Any]]:
        """Return the objects that a dump can show: Argo CD may run in another cluster, and then none of its objects."""
        tools = {identity for identity, one in self.objects.items() if one.tool}
        is_synced_here = any(item.identity in tools for item in dump.objects)
        return {
            identity: one.body
            for identity, one in self.objects.items()
            if (is_synced_here or not one.tool) and not _is_placed_by_others(identity)
        }

    @property
    def kinds(self) -> frozenset[tuple[str, str]]:
        """The kinds of what gpuplan writes for the cluster itself."""
        ours = (identity for identity, one in self.objects.items() if one.artifact is not None and not one.tool)
        return frozenset((identity.group, identity.kind) for identity in ours)

    @property
    def unjudged(self) -> Iterator[Unjudged]:
        """The objects that cannot be compared, with the reason."""
        placed = [identity for identity in self.objects if _is_placed_by_others(identity)]
        for identities, why in (
            (self.unbuilt, "the Components of its folder were not built"),
            (placed, "it names no namespace"),
        ):
            kinds = Counter(identity.kind for identity in identities)
            yield from (Unjudged(kind, number, why) for kind, number in sorted(kinds.items()))

    @cached_property
    def known(self) -> frozenset[Identity]:
        """The objects that are no strangers."""
        return frozenset({*self.objects, *self.passing, *self.unbuilt})


def planned(plan: Plan, root: Path, program: str = "") -> Platform:
    """Return all that a cluster is to have; ``program`` is the kustomize that builds Components, as in `validate`."""
    objects: dict[Identity, Planned] = {}
    passing: list[Identity] = []
    components: dict[str, tuple[Component, ...]] = {}
    for item in written_for(plan):
        if not isinstance(item.artifact, Manifest):
            continue
        identity = item.artifact.identity
        if item.artifact.hook is not None:
            passing.append(identity)
            continue
        objects.setdefault(identity, Planned(item.artifact.body, item.path, item.artifact.folder, item.artifact))
        components[item.artifact.folder] = item.components
    patched = built(plan, root, OUT, program) if plan.components else Patched(plan, ())
    unbuilt: list[Identity] = []
    for folder in patched.folders:
        if not folder.components:
            continue
        gone = [identity for identity, one in objects.items() if one.folder == folder.path and not one.tool]
        if folder.after is None:
            unbuilt += gone
            unbuilt += [
                Identity(item.group, item.kind, str(item.metadata.get("namespace", "")), item.name)
                for item in patched.files.objects
                if not item.is_patch and item.name and folder.holds(item.at)
            ]
        else:
            path = f"{plan.cluster.name}/{folder.path}"
            for identity, made in folder.built.items():
                if identity not in passing:
                    known = objects.get(identity, Planned(made.body, path, folder.path, None))
                    objects[identity] = known._replace(body=made.body, by_hand=folder)
            gone = [identity for identity in gone if identity not in folder.built]
        for identity in gone:
            del objects[identity]
    return Platform(plan, objects, frozenset(passing), frozenset(unbuilt), patched)


def _is_placed_by_others(identity: Identity) -> bool:
    """Whether it is in whichever namespace its applier puts it: kustomize leaves it out where nobody says it."""
    kind = find_kind(identity.group, identity.kind)
    return not identity.namespace and (kind is None or kind.is_namespaced)


class Differs(StrEnum):
    """In which way what runs is not what is written."""

    FIELD = "differs"
    """A field has another value, or none."""
    MISSING = "missing"
    """The cluster does not have the object."""
    LEFT = "left"
    """The cluster has an object that is written no more."""
    NODE = "node"
    """A node is not as its pool says."""


class NextSync(StrEnum):
    """The action of the next sync on a difference."""

    OVERWRITES = "overwrites"
    CREATES = "creates"
    FAILS = "fails"
    """The field cannot be changed: somebody has to delete the object, so that it is created again."""
    PRUNES = "prunes"
    ASKS = "asks"
    """It prunes the object when a person has agreed."""
    RELABELS = "relabels"
    """The program that labels nodes sets it again, without a sync."""
    LEAVES = "leaves"
    """It leaves it alone, because it is told to."""
    NOTHING = "nothing"
    """Nothing syncs it."""


class Drift(NamedTuple):
    """One thing that runs otherwise than the policies say.

    ``path`` is that of the field, empty where it is the whole object, and ``line`` the first that differs in a text of
    several lines. A value is None where there is none; ``has_live`` and ``is_written`` tell that from a null. ``file``
    is the one below `out/` that says it, ``sources`` are the lines of the policies that it comes from, and ``dump`` is
    the file in which the cluster shows it. ``change_class`` is that of a change from what runs to what is written.
    """

    cluster: str
    differs: Differs
    title: str
    next_sync: NextSync
    applier: Applier | None
    change_class: ChangeClass
    path: str = ""
    line: int = 0
    written: object = None
    live: object = None
    is_written: bool = False
    has_live: bool = False
    file: str = ""
    dump: str = ""
    sources: tuple[Source, ...] = ()
    owner: Owner | None = None
    note: str = ""


class Drifting(Value):
    """The differences between what runs and what the policies build: ``drifts``, worst first.

    ``left_alone`` are those that the tool which syncs is told to leave, and ``unjudged`` what the dump does not show.
    Nothing was compared if the policies have errors, or the dump; else it ``is_comparable``. ``report`` has the
    findings on the dump, in which errors are objects of others that stop work or take away what policies give.
    """

    report: Report
    cluster: str
    drifts: tuple[Drift, ...] = ()
    left_alone: tuple[Drift, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    compared: int = 0
    """The number of objects of the dump that were compared."""
    told_name: str = ""
    """The cluster's name in gpuplan's own objects of the dump, or an empty text."""
    is_comparable: bool = False
    doubt: str = ""
    """The reason to believe that the dump is of another cluster, or an empty text."""


class Comparison(NamedTuple):
    """The differences of a dump from a plan; ``number`` is how many objects were compared.

    ``opponents`` are objects of others that act against the policies. ``synced`` are the differences that follow from
    what the policies write; no sync changes the others.
    """

    drifts: tuple[Drift, ...]
    synced: tuple[Drift, ...]
    left_alone: tuple[Drift, ...]
    unjudged: tuple[Unjudged, ...]
    opponents: tuple[Diagnostic, ...]
    number: int

    @property
    def shows_anything(self) -> bool:
        return bool(self.number or self.drifts or self.left_alone or self.opponents)
