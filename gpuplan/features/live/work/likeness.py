"""Whether an object of a cluster is what was written for it: the API server and controllers add to what they are given.

Whatever nobody has written counts as well, other than for drift: what the policies do not say would be lost in Git. The
defaults that no schema says are those of `pkg/apis/{core,apps,batch}/v1/defaults.go` of kubernetes/kubernetes v1.34.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Path as Route
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.manifests.merging.applied import is_same
from gpuplan.compiler.manifests.merging.shape import Shape
from gpuplan.compiler.manifests.templates import read_rows
from gpuplan.compiler.planning.kueue import ANY_TOPOLOGY, PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY, TOGETHER
from gpuplan.compiler.planning.schedulers import kueue

_ADDED: Final = Path(__file__).with_name("added.yaml")


def difference(written: object, live: object, shape: Shape, route: Route = ()) -> Route | None:
    """Where an object first differs from what would be written; None where it is the same."""
    if written == live:
        return None
    match written, live:
        case Mapping(), Mapping():
            for key, value in written.items():
                if (inner := difference(value, live.get(key, ABSENT), shape.field(key), (*route, key))) is not None:
                    return inner
            for name, value in live.items():
                key = str(name)
                if name not in written and not is_added(value, shape.field(key), (*route, key)):
                    return (*route, key)
            return None
        case list(), list() if len(written) == len(live):
            pairs = enumerate(zip(written, live, strict=True))
            found = (difference(one, other, shape.items, (*route, index)) for index, (one, other) in pairs)
            return next((item for item in found if item is not None), None)
        case _:
            return None if is_same(written, live, shape) else route


_EMPTY: Final[tuple[object, ...]] = ("", [], {}, None)
"""The values that the API server leaves out."""


def is_added(value: object, shape: Shape, route: Route) -> bool:
    """Whether what nobody has asked for at this place is a default, or a note of whoever applies or runs the object."""
    names = [part for part in route if isinstance(part, str)]
    parent, field = names[-2] if len(names) > 1 else "", names[-1]
    if parent in ("labels", "annotations") and field.startswith(_NOTES):
        return field not in _SAID_TO_KUEUE
    known = read_rows(_ADDED).get(parent, {}).get(field, ())
    if value in _EMPTY or known == "*" or value in known:
        return True
    if shape.default is not ABSENT and difference(shape.default, value, shape, route) is None:
        return True
    return isinstance(value, Mapping) and difference({}, value, shape, route) is None


_KUEUE: Final = "kueue.x-k8s.io/"
_SAID_TO_KUEUE: Final = (
    *(kueue.QUEUE_LABEL, kueue.PRIORITY_LABEL),
    *(ANY_TOPOLOGY, PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY, TOGETHER),
)
"""The labels and annotations of work for Kueue; all others that begin so are notes of Kueue on work."""

_NOTES: Final = (
    "kubectl.kubernetes.io/",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "app.kubernetes.io/instance",
    "deployment.kubernetes.io/",
    "batch.kubernetes.io/",
    "controller-uid",
    "job-name",
    "pv.kubernetes.io/",
    "volume.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "scaledobject.keda.sh/name",
    _KUEUE,
)
"""Beginnings of labels and annotations by which those that apply or run an object know it again."""
