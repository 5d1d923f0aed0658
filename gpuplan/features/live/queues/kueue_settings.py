"""Tell of what Kueue's queues say beside numbers, where gpuplan says something else of all queues."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.compiler.base.diagnostics import Finding
from gpuplan.compiler.base.plain import inside, mapping, sequence
from gpuplan.features.live.dump import Item
from gpuplan.features.live.queues.cohorts import cohort_of
from gpuplan.features.live.queues.told import Told

_KNOWN = frozenset(
    ("cohort", "cohortName", "fairSharing", "namespaceSelector", "parent", "parentName", "resourceGroups")
)
"""What is read elsewhere."""

_TAKEN = "the sync takes the field from whoever set it"
"""A sync leaves a field alone that it does not write, unless what set it was the same tool, or `kubectl apply`."""
_LOST: Mapping[str, tuple[object, str]] = {
    "admissionChecks": ([], f"work starts when these checks have passed, and without them where {_TAKEN}"),
    "admissionChecksStrategy": ({}, f"work starts when these checks have passed, and without them where {_TAKEN}"),
    "admissionScope": ({}, f"what teams used before counts for them, and does not where {_TAKEN}"),
    "queueingStrategy": ("BestEffortFIFO", "work that fits is now admitted before older work that does not"),
    "stopPolicy": ("None", f"it is stopped, and admits work where {_TAKEN}"),
}
"""What has no counterpart, with the value that says nothing, and what changes."""


def tell_settings(item: Item, told: Told, *, will_evict: bool | None) -> None:
    """A finding for each setting of a ClusterQueue or a Cohort that does not stay.

    ``will_evict`` says whether queues evict work for that of a higher class from now on; None where that is not known.
    """
    spec = inside(item.body, "spec")
    for field, value in spec.items():
        plain, change = _LOST.get(field, (None, ""))
        if field in _KNOWN or value in (None, plain):
            continue
        if field in _LOST:
            told.lost(item, _finding(item, field, change))
        elif field not in _OWN:
            told.lost(item, _finding(item, field, "gpuplan does not know this field"))
    if item.kind == "ClusterQueue":
        _tell_preemption(item, told, will_evict=will_evict)
        if any(len(sequence(mapping(group).get("flavors"))) > 1 for group in sequence(spec.get("resourceGroups"))):
            _tell_fungibility(item, told)


def _finding(item: Item, field: str, change: str) -> Finding:
    return Finding(
        item.at / "spec" / field,
        f"{item.title} has `{field}`, which no policy says",
        label="not carried over",
        notes=(change,),
        help="keep it as a patch in a Component in `overlays/<cluster>/kustomize/scheduling/`",
    )


# --- What gpuplan says of all queues -----------------------------------------------------------------------------

_OWN = frozenset(("preemption", "flavorFungibility"))


def _tell_preemption(item: Item, told: Told, *, will_evict: bool | None) -> None:
    """Absent means `Never` (`apis/kueue/v1beta2/clusterqueue_types.go` of Kueue v0.19.2)."""
    found = inside(item.body, "spec", "preemption")
    reclaims = found.get("reclaimWithinCohort") or "Never"
    borrows = inside(found, "borrowWithinCohort").get("policy") or "Never"
    within = found.get("withinClusterQueue") or "Never"
    if reclaims != "Any" and cohort_of(item):
        _tell_own(item, told, "reclaimWithinCohort", "a tenant takes back its guarantee from any borrower")
    if borrows != "Never":
        _tell_own(item, told, "borrowWithinCohort", "a borrower evicts others for its fair share alone")
    if within not in ("Never", "LowerPriority"):
        _tell_own(item, told, "withinClusterQueue", "of one team only work of a lower class is evicted")
    elif within == "LowerPriority" and will_evict is False:
        _tell_own(item, told, "withinClusterQueue", "no priority class of the policies evicts another")
    elif within == "Never" and will_evict:
        _tell_own(item, told, "withinClusterQueue", "work of a higher class evicts that of a lower one of its team")


def _tell_own(item: Item, told: Told, field: str, change: str) -> None:
    place = item.at / "spec" / "preemption"
    finding = Finding(
        place / field if field in inside(item.body, "spec", "preemption") else item.at / "spec",
        f"{item.title} has another `{field}` than gpuplan writes",
        label="gpuplan's own holds from the first sync on",
        notes=(change,),
        help="keep it as a patch in a Component in `overlays/<cluster>/kustomize/scheduling/`, if it has to stay",
    )
    told.otherwise(item, finding)


def _tell_fungibility(item: Item, told: Told) -> None:
    found = inside(item.body, "spec", "flavorFungibility")
    if found.get("whenCanBorrow") == found.get("whenCanPreempt") == "TryNextFlavor":
        return
    finding = Finding(
        item.at / "spec" / "flavorFungibility" if found else item.at / "spec",
        f"{item.title} has another `flavorFungibility` than gpuplan writes",
        label="gpuplan's own holds from the first sync on",
        notes=("a tenant's own idle units come first, in whatever pool, then those of others, and evictions last",),
        help="keep it as a patch in a Component in `overlays/<cluster>/kustomize/scheduling/`, if it has to stay",
    )
    told.otherwise(item, finding)
