"""What is said of what runs otherwise than the policies build."""

from __future__ import annotations

from enum import StrEnum

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.pipeline import Report
from gpuplan.compiler.planning.appliers import Applier
from gpuplan.features.live.drifting.comparing import Owner, Unjudged
from gpuplan.features.tracing import Source


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
    """What the next sync does about it."""

    OVERWRITES = "overwrites"
    CREATES = "creates"
    FAILS = "fails"
    """The field cannot be changed: somebody has to delete the object, so that it is created again."""
    PRUNES = "prunes"
    ASKS = "asks"
    """It prunes the object when a person has agreed."""
    RELABELS = "relabels"
    """What labels the nodes sets it again, without a sync."""
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
    path: str
    line: int
    written: object
    live: object
    is_written: bool
    has_live: bool
    file: str
    dump: str
    sources: tuple[Source, ...]
    owner: Owner | None
    next_sync: NextSync
    applier: Applier | None
    change_class: ChangeClass
    note: str = ""


class Drifting(Value):
    """What runs beside what the policies build: ``drifts``, worst first.

    ``left_alone`` are those that whoever syncs is told to leave, and ``unjudged`` what the dump does not show. Where
    the policies have errors nothing was compared. ``found`` are findings on the dump.
    """

    report: Report
    cluster: str
    drifts: tuple[Drift, ...] = ()
    left_alone: tuple[Drift, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    compared: int = 0
    """How many objects of the dump were compared."""
    told_name: str = ""
    """What gpuplan's own objects in the dump call the cluster; empty where they do not say."""

    @property
    def is_comparable(self) -> bool:
        return self.report.is_valid


class Comparison(NamedTuple):
    """What a dump shows of a cluster beside its plan; ``number`` is how many objects were compared.

    ``opponents`` are objects of others that act against the policies.
    """

    drifts: tuple[Drift, ...]
    left_alone: tuple[Drift, ...]
    unjudged: tuple[Unjudged, ...]
    opponents: tuple[Diagnostic, ...]
    number: int

    @property
    def shows_anything(self) -> bool:
        return bool(self.number or self.drifts or self.left_alone or self.opponents)
