"""The differences between what runs and what the policies build, as they are reported."""

from __future__ import annotations

from enum import StrEnum

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.delivery.appliers import Applier
from gpuplan.compiler.pipeline import Report
from gpuplan.features.live.drifting.objects import Owner, Unjudged
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
    """The differences between what runs and what the policies build: ``drifts``, worst first.

    ``left_alone`` are those that the tool which syncs is told to leave, and ``unjudged`` what the dump does not show.
    If the policies have errors, nothing was compared. ``report`` has the findings on the dump.
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

    @property
    def is_comparable(self) -> bool:
        return self.report.is_valid


class Comparison(NamedTuple):
    """The differences of a dump from a plan; ``number`` is how many objects were compared.

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
