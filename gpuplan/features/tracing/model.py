"""The values of an answer: what is written with the places it comes from, and lines with what depends on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.manifests.provenance import How
from gpuplan.compiler.pipeline import Report
from gpuplan.compiler.planning.appliers import Applier


class Source(NamedTuple):
    """A place that a value comes from; ``how`` is the way in which the value depends on it.

    ``title`` is that of the document there, ``page`` the documentation of a rule, ``citation`` the source of a fact.
    A source that ``is_of_object`` decides that the object exists, and so holds for all values of the object.
    """

    how: How
    file: str
    line: int
    path: str
    title: str = ""
    page: str = ""
    citation: str = ""
    is_of_object: bool = False

    def as_data(self, path: Callable[[str], str]) -> dict[str, Any]:
        """Return the place as plain data; ``path`` makes a path of the platform one from where the reader stands."""
        return {
            "file": self.file if self.how in (How.RULE, How.FACT) else path(self.file),
            "line": self.line,
            "path": self.path,
            "how": self.how.value,
            "document": self.title,
            "of_object": self.is_of_object,
            **({"page": self.page} if self.page else {}),
            **({"source": self.citation} if self.citation else {}),
        }


class TracedValue(NamedTuple):
    """A value that is written, and its sources; ``object_title`` is empty in a file that holds no object.

    If an object of a cluster ``differs``, ``live`` is the value there, or None if it has none. A value that
    ``is_by_hand`` is in no file of the output: a hand-written Component has it.
    """

    cluster: str
    object_title: str
    file: str
    line: int
    path: str
    value: object
    sources: tuple[Source, ...]
    live: object = None
    differs: bool = False
    is_by_hand: bool = False


class Use(NamedTuple):
    """A value that depends on a line of a policy, and its applier, if it has one."""

    how: How
    value: TracedValue
    applier: Applier | None
    is_of_object: bool


class Elsewhere(NamedTuple):
    """A line that sets the value of another line in a cluster, or takes its document away there."""

    cluster: str
    file: str
    line: int
    is_removed: bool


class TracedPlace(NamedTuple):
    """A value in a policy, and all that depends on it, or a ``note`` why nothing does."""

    file: str
    line: int
    path: str
    title: str
    value: object
    uses: tuple[Use, ...]
    elsewhere: tuple[Elsewhere, ...] = ()
    note: str = ""


Places = tuple[tuple[TracedPlace, ...], tuple[str, ...]]
Values = tuple[tuple[TracedValue, ...], tuple[str, ...]]
"""The places or values of an answer, and notes for the reader."""


class Unwritten(NamedTuple):
    """The paths of values of one sort that an object of a cluster has and gpuplan does not write."""

    cluster: str
    object_title: str
    what: str
    paths: tuple[str, ...]


class Tracing(Value):
    """The answer: ``values`` of a file or an object, or ``places`` of a policy.

    ``notes`` are for the reader. The ``report`` is on the clusters that were looked at.
    """

    report: Report
    values: tuple[TracedValue, ...] = ()
    places: tuple[TracedPlace, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()
    notes: tuple[str, ...] = ()
    is_of_policy: bool = False
