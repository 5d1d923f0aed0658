"""What is said of the values that are written, and of the lines that they come from."""

from __future__ import annotations

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.manifests.provenance import How
from gpuplan.compiler.pipeline import Report
from gpuplan.compiler.planning.appliers import Applier


class Source(NamedTuple):
    """A place that a value comes from, and what it has of it.

    ``title`` is the document there. ``page`` is where the documentation tells the rule, and ``citation`` who says a
    fact. What ``is_of_object`` holds for all values of the object: it decides that the object is there.
    """

    how: How
    file: str
    line: int
    path: str
    title: str = ""
    page: str = ""
    citation: str = ""
    is_of_object: bool = False


class TracedValue(NamedTuple):
    """A value that is written, and where it comes from; ``object_title`` is empty in a file that holds none.

    ``live`` is what was found in its place in an object of a cluster, where that is something else; None where nothing
    was. What ``is_by_hand`` is in no file of the output: a hand-written Component says it.
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
    """A value that depends on a line of a policy, and what applies it, if anything does."""

    how: How
    value: TracedValue
    applier: Applier | None
    is_of_object: bool


class Elsewhere(NamedTuple):
    """Why a line says nothing in a cluster: another one sets the value there, or takes the document away."""

    cluster: str
    file: str
    line: int
    is_removed: bool


class TracedPlace(NamedTuple):
    """A value in a policy, and all that depends on it, by cluster, applier and object.

    Where nothing does, ``note`` says why.
    """

    file: str
    line: int
    path: str
    title: str
    value: object
    uses: tuple[Use, ...]
    elsewhere: tuple[Elsewhere, ...] = ()
    note: str = ""


class Unwritten(NamedTuple):
    """Values of an object in a cluster that gpuplan does not write, summed up."""

    cluster: str
    object_title: str
    what: str
    paths: tuple[str, ...]


class Tracing(Value):
    """The answer: of a file or an object its ``values``, of a policy its ``places``.

    ``notes`` are what a reader has to know besides. The ``report`` is on the clusters that were looked at.
    """

    report: Report
    values: tuple[TracedValue, ...] = ()
    places: tuple[TracedPlace, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()
    notes: tuple[str, ...] = ()
    is_of_policy: bool = False
