"""The kinds of Kubernetes objects that gpuplan knows: how to apply and remove them, and what a change disturbs."""

from __future__ import annotations

from gpuplan.compiler.manifests.kinds.model import (
    QUEUE_OF_PODS as QUEUE_OF_PODS,
    Care as Care,
    Disturbance as Disturbance,
    Immutable as Immutable,
    Judgement as Judgement,
    Kind as Kind,
    Removal as Removal,
    Route as Route,
    route_of as route_of,
)
from gpuplan.compiler.manifests.kinds.registry import (
    assume_kind as assume_kind,
    find_kind as find_kind,
    get_kind as get_kind,
    known_kinds as known_kinds,
)
