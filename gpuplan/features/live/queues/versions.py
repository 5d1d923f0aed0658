"""Objects of older versions of Kueue's API, as the version that gpuplan writes has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpuplan.compiler.base.plain import mapping
from gpuplan.compiler.manifests import gvk_of
from gpuplan.features.live.queues.model import KUEUE_GROUP


def in_version(body: Mapping[str, Any], version: str) -> Mapping[str, Any] | None:
    """Return an object as another version of its kind has it, or None if that is not known.

    Kueue converts v1beta1 in the same way (`apis/kueue/v1beta1/clusterqueue_conversion.go` and `Convert_v1beta1_*` of
    Kueue v0.19.2). A Cohort of v1alpha1 has `parent` for `parentName` (`apis/kueue/v1alpha1/cohort_types.go` of v0.11).
    """
    found = gvk_of(body)
    if found.version == version:
        return body
    if found.group != KUEUE_GROUP or version != _NEWEST or found.version not in _OLDER:
        return None
    spec = {_FIELDS.get((found.kind, field), field): value for field, value in mapping(body.get("spec")).items()}
    if fungibility := mapping(spec.get("flavorFungibility")):
        spec["flavorFungibility"] = {field: _STOPS.get(str(value), value) for field, value in fungibility.items()}
    return {**body, "apiVersion": f"{KUEUE_GROUP}/{version}", "spec": spec}


_NEWEST: Final = "v1beta2"
_OLDER: Final = ("v1alpha1", "v1beta1")
_FIELDS: Final = {("ClusterQueue", "cohort"): "cohortName", ("Cohort", "parent"): "parentName"}
_STOPS: Final = dict.fromkeys(("Borrow", "Preempt"), "MayStopSearch")
