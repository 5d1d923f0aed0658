"""Annotations that Argo CD and Flux read on objects: the order of applying them, and what it takes to remove them.

What a kind needs is in `manifests/kinds/`, so that what protects it holds wherever it is written. Where the
policy chooses no tool, both tools' annotations are written: they protect whoever syncs the folders in some other way,
and other tools ignore them.
With `argocd` only its own are. With `flux` those of Argo CD that keep it from deleting stay: an Argo CD that synced the
cluster until now may read the new objects first, and only then delete its Applications with what they applied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.manifests import Hook, Manifest
from gpuplan.compiler.manifests.kinds import Care, Kind, Removal, assume_kind
from gpuplan.compiler.manifests.provenance import Routes, choosing
from gpuplan.compiler.planning.plan import Cluster, Stage
from gpuplan.compiler.planning.sync_names import COMPARE_OPTIONS, FLUX_PRUNE, FLUX_SSA, FLUX_SUBSTITUTE, SYNC_OPTIONS

HOOK: Final = "argocd.argoproj.io/hook"
HOOK_DELETE_POLICY: Final = "argocd.argoproj.io/hook-delete-policy"
SYNC_WAVE: Final = "argocd.argoproj.io/sync-wave"

_CONFIG_MAPS: Final = {
    # Argo CD prunes nothing of the operator by itself: its chart's objects cannot be told from those that hold others.
    # Old configurations wait for the next person who does.
    Stage.GPU_OPERATOR.value: Care(wave=-10, is_pruned_last=True, is_left_over=True),
    # Nothing mounts dashboards.
    Stage.MONITORING.value: Care(wave=30),
    # Whatever is pruned last waits until all else is healthy, and a training Job is that when it has ended.
    Stage.WORKLOADS.value: Care(wave=-10, prune=Removal.NEVER, is_left_over=True),
}
"""The care for ConfigMaps of some stages."""


def annotate(manifest: Manifest, cluster: Cluster) -> Manifest:
    """Return the object with the annotations for the tool that syncs the cluster, or for both."""
    if manifest.hook is not None:
        return _with_annotations(manifest, _HOOKS[manifest.hook])
    body, is_partial = manifest.body, manifest.is_partial
    stage = manifest.folder.partition("/")[0] if body["kind"] == "ConfigMap" else ""
    has_argocd, has_flux = cluster.flux is None, cluster.argocd is None
    order = manifest.order
    annotations = _annotations(body["apiVersion"], body["kind"], stage, order, is_partial, has_argocd, has_flux)
    if cluster.flux is not None and _holds_variables(body):
        annotated = _with_annotations(manifest, {**annotations, FLUX_SUBSTITUTE: "disabled"})
        return replace(annotated, trace=partial(_trace, manifest))
    return _with_annotations(manifest, annotations) if annotations else manifest


def _with_annotations(manifest: Manifest, annotations: Mapping[str, str]) -> Manifest:
    metadata = manifest.body["metadata"]
    own = metadata.get("annotations")
    merged = {**metadata, "annotations": {**own, **annotations} if own else annotations}
    return manifest.with_body({**manifest.body, "metadata": merged})


def _holds_variables(value: object) -> bool:
    """Whether some text has what Flux would take for a variable of its own, as dashboards of Grafana do.

    gpuplan's Kustomizations substitute nothing, but a fleet's root may patch `postBuild` into all that it applies:
    `SubstituteVariables` in https://github.com/fluxcd/pkg/blob/main/kustomize/kustomize_varsub.go.
    """
    if isinstance(value, str):
        return "${" in value
    if isinstance(value, Mapping):
        return any(map(_holds_variables, value.values()))
    return isinstance(value, Sequence) and any(map(_holds_variables, value))


_HOOKS: Final[Mapping[Hook, Mapping[str, str]]] = {
    Hook.SUPPORT: {HOOK: "PreSync", HOOK_DELETE_POLICY: "BeforeHookCreation,HookSucceeded,HookFailed", SYNC_WAVE: "-1"},
    Hook.BEFORE: {HOOK: "PreSync", HOOK_DELETE_POLICY: "BeforeHookCreation"},
    Hook.AFTER: {HOOK: "PostSync", HOOK_DELETE_POLICY: "BeforeHookCreation"},
}
"""Argo CD prunes no hooks, so what they need is deleted at the end of the sync, whatever its outcome: `Sync` deletes
hooks in no other place (`gitops-engine/pkg/sync/sync_context.go` there). The Jobs stay until the next, for their logs.
"""


@cache
def _annotations(
    api_version: str,
    kind: str,
    stage: str,
    order: int,
    is_partial: bool,  # noqa: FBT001 - positions make the cheaper key, and there is a key for each object
    has_argocd: bool,  # noqa: FBT001
    has_flux: bool,  # noqa: FBT001
) -> Mapping[str, str]:
    known = assume_kind(api_version.rpartition("/")[0], kind)
    care = known.care
    if stage in _CONFIG_MAPS:
        care = _CONFIG_MAPS[stage]
    elif is_partial:  # a part of an object is not the applier's to remove
        care = replace(care, prune=Removal.NEVER, delete=Removal.NEVER, is_applied_by_server=True)
    care = replace(care, wave=care.wave + order)
    argocd = _argocd(known, care, is_partial=is_partial) if has_argocd else _after_argocd(care)
    return argocd | (_flux(care, is_partial=is_partial) if has_flux else {})


def _argocd(kind: Kind, care: Care, *, is_partial: bool) -> dict[str, str]:
    """Return sync options and wave: https://argo-cd.readthedocs.io/en/stable/user-guide/sync-options/."""
    options = [
        "ServerSideApply=true" if care.is_applied_by_server else "",
        # A part of an object lacks fields that its definition requires.
        "Validate=false" if is_partial and kind.is_custom else "",
        "SkipDryRunOnMissingResource=true" if kind.is_custom else "",
        *_protections(care),
        "PruneLast=true" if care.is_pruned_last else "",
    ]
    annotations = {
        COMPARE_OPTIONS: "IgnoreExtraneous" if care.is_left_over else "",
        SYNC_OPTIONS: ",".join(filter(None, options)),
        SYNC_WAVE: str(care.wave) if care.wave else "",
    }
    return {key: value for key, value in annotations.items() if value}


def _after_argocd(care: Care) -> dict[str, str]:
    protections = _protections(care)
    return {SYNC_OPTIONS: ",".join(protections)} if protections else {}


def _protections(care: Care) -> list[str]:
    """Return what keeps Argo CD from deleting an object, by itself or at all."""
    return [f"{option}={value}" for option, value in (("Prune", care.prune), ("Delete", care.delete)) if value]


def _flux(care: Care, *, is_partial: bool) -> dict[str, str]:
    """Return annotations for Flux, which cannot ask, so what Argo CD asks about stays."""
    stays = care.prune or care.delete or care.is_pruned_last
    return ({FLUX_PRUNE: "disabled"} if stays else {}) | ({FLUX_SSA: "merge"} if is_partial else {})


# --- Where it comes from -----------------------------------------------------------------------------------------

# What a kind needs, and by which tool, is gpuplan's own: an object that is annotated comes from where it came from.


def _trace(manifest: Manifest) -> Routes:
    """Yield the routes of an object. What decides texts with variables decides that Flux is told not to fill them
    in."""
    for route, links in manifest.trace() if manifest.trace else ():
        yield route, links
        if route and _holds_variables(_part(manifest.body, route)):
            yield ("metadata", "annotations", FLUX_SUBSTITUTE), choosing(links)


def _part(value: object, route: Path) -> object:
    """Return what is at a route, if it leads to one place in the object itself."""
    for key in route:
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value
