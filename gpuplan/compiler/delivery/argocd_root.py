"""The root Application, which syncs a cluster's other ones in order.

Sync waves order the objects of one sync. For the root these are Applications, and an Application that has changed is
not one that is synced. So what is to be in order has no automated sync: it holds an `operation`, by which Argo CD syncs
it as soon as the root has applied it, at the root's own commit. The root waits for the end of that sync and for health,
by the check in `argocd_health/root/`, before it begins the next wave (docs/adr/0022). Argo CD's source says so in
`processRequestedAppOperation` and `setOperationState` (`controller/appcontroller.go`), `newSyncOperationResult`
(`controller/sync.go`) and `Sync` (`gitops-engine/pkg/sync/sync_context.go`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from posixpath import normpath
from typing import Any, Final

from gpuplan.compiler.delivery.annotations import SYNC_WAVE
from gpuplan.compiler.delivery.argocd_traces import Traces
from gpuplan.compiler.delivery.indexes import OWN_CLUSTER
from gpuplan.compiler.manifests import HEADER, File, Manifest, to_yaml
from gpuplan.compiler.manifests.kustomization import Apart
from gpuplan.compiler.planning.appliers import Applier
from gpuplan.compiler.planning.plan import Argocd, Plan
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.planning.sync_names import CONTENT, REVISION, root_name

# --- Parts of all objects for Argo CD -----------------------------------------------------------------------------

RESOURCES_FINALIZER: Final = "resources-finalizer.argocd.argoproj.io"
"""On a project it keeps it until no Application names it; on an Application it removes its objects with it."""

RETRY: Final = {"limit": 5, "backoff": {"duration": "30s", "factor": 2, "maxDuration": "10m"}}
"""Argo CD does not sync one commit twice unless it is told to, and on a new cluster definitions come one by one."""
RETRY_NEWEST: Final = {**RETRY, "refresh": True}
"""The same with the newest commit, which may be the one that mends what has failed.

Without it Argo CD retries the commit that failed until it gives up, and may never sync the one that mends it, which it
has compared by then: so it was seen with v3.3.10. The field came with 3.2; `tests/cluster/test_argocd_syncs.py` has it.
"""


def automated(*, prunes: bool) -> dict[str, Any]:
    """Return automated sync, without what is the default: Argo CD takes that away when it writes the object itself.

    So `allowEmpty` is not written: it is false where it is left out, and a folder that is empty by mistake wipes out
    nothing.
    """
    return {"automated": {**({"prune": True} if prunes else {}), "selfHeal": True}}


def metadata(argocd: Argocd, name: str, annotations: Mapping[str, str]) -> dict[str, Any]:
    return {"name": name, "namespace": argocd.namespace, **labels(argocd), "annotations": annotations}


def labels(argocd: Argocd) -> dict[str, dict[str, str]]:
    return {"labels": dict(sorted(argocd.spec.labels.items()))} if argocd.spec.labels else {}


def folder_path(argocd: Argocd, *folders: str) -> str:
    """Return the path in the repository of a folder in the output."""
    return normpath("/".join((argocd.path, *folders)))


def git_source(argocd: Argocd, path: str) -> dict[str, Any]:
    return {"repoURL": argocd.spec.repo_url, "targetRevision": argocd.spec.revision, "path": path}


# --- The root ----------------------------------------------------------------------------------------------------

FOLDER: Final = "applications"
"""The folder below that of the cluster which the root syncs. Whoever applies the cluster's folder applies the root
alone."""

_REVISIONS_FILE: Final = "revisions.yaml"
_GROUP: Final = "argoproj.io"
Child = tuple[Applier, Mapping[str, Any]]


def apart(*, has_children: bool) -> Apart:
    """Return the folder that the root syncs; ``has_children`` says that it orders some of what is there."""
    return Apart(FOLDER, (_REVISIONS_FILE,) if has_children else ())


def ordered(plan: Plan, argocd: Argocd, body: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """Return an Application that the root syncs: with another digest the root differs, and applies this operation.

    Argo CD takes the operation away when it ends, so that the root puts it there again when it next syncs. It syncs all
    that it orders then, changed or not: what has failed is no difference any more, and must come first all the same.
    """
    policy = dict(body["spec"]["syncPolicy"])
    prunes = policy.pop("automated").get("prune", False)
    revision, sources = argocd.spec.revision, body["spec"].get("sources")
    at = {"revisions": [sources[0]["targetRevision"], revision]} if sources else {"revision": revision}
    annotations = {**body["metadata"]["annotations"], CONTENT: digest, REVISION: revision}
    return {
        **body,
        "metadata": {**body["metadata"], "annotations": dict(sorted(annotations.items()))},
        "spec": {**body["spec"], "syncPolicy": policy},
        "operation": {
            "initiatedBy": {"username": root_name(plan.cluster.name)},
            "sync": {**at, **({"prune": True} if prunes else {}), "syncOptions": policy["syncOptions"]},
            "retry": RETRY,
        },
    }


def render(plan: Plan, argocd: Argocd, children: Sequence[Child], of: Traces) -> Iterator[Manifest | File]:
    """Yield the root, a project of its own, and what tells each of its ``children`` the commit."""
    cluster = about(plan.cluster)
    yield Manifest("", _project(plan, argocd), about=cluster, trace=of.root_project)
    yield Manifest("", _application(plan, argocd), about=cluster, trace=of.root)
    if children:
        kind = {"group": _GROUP, "kind": "Application"}
        source = {**kind, "name": children[0][0].name, "fieldPath": f"metadata.annotations.[{REVISION}]"}
        targets = [
            {
                "select": {**kind, "name": applier.name},
                "fieldPaths": [f"operation.sync.{'revisions.1' if 'sources' in body['spec'] else 'revision'}"],
            }
            for applier, body in children
        ]
        data = (HEADER + _ABOUT_REVISIONS + to_yaml({"source": source, "targets": targets})).encode()
        trace = partial(of.revisions, [applier for applier, _ in children])
        yield File(f"{FOLDER}/{_REVISIONS_FILE}", data, about=cluster, trace=trace)


def _project(plan: Plan, argocd: Argocd) -> dict[str, Any]:
    """Return a project that allows what makes others sync.

    The cluster's own project does not: Applications could allow themselves more.
    """
    kinds = [{"group": _GROUP, "kind": kind} for kind in ("AppProject", "Application", "ApplicationSet")]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {
            **metadata(argocd, root_name(plan.cluster.name), {SYNC_WAVE: "-10"}),
            "finalizers": [RESOURCES_FINALIZER],
        },
        "spec": {
            "description": f"Syncs the GPU configuration of the cluster {plan.cluster.name}",
            "sourceRepos": [argocd.spec.repo_url],
            "destinations": [{"server": OWN_CLUSTER, "namespace": argocd.namespace}],
            "namespaceResourceWhitelist": kinds,
        },
    }


def _application(plan: Plan, argocd: Argocd) -> dict[str, Any]:
    """Return the root. It has no finalizer, so that Applications stay when it goes, and prunes none: a person does.

    Argo CD writes the commit that it builds into an annotation of each object, and kustomize copies it from there into
    the operations. Neither is a difference that the root would have to sync.
    """
    cluster = plan.cluster.name
    path = folder_path(argocd, "argocd", cluster, FOLDER)
    annotations = {REVISION: "$ARGOCD_APP_REVISION"}
    ignored = ["/operation", f"/metadata/annotations/{REVISION.replace('/', '~1')}"]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": metadata(argocd, root_name(cluster), {SYNC_WAVE: "0"}),
        "spec": {
            "project": root_name(cluster),
            "source": {
                **git_source(argocd, path),
                "kustomize": {"commonAnnotations": annotations, "commonAnnotationsEnvsubst": True},
            },
            "destination": {"server": OWN_CLUSTER, "namespace": argocd.namespace},
            "ignoreDifferences": [{"group": _GROUP, "kind": "*", "jsonPointers": ignored}],
            "syncPolicy": {**automated(prunes=False), "retry": RETRY_NEWEST},
        },
    }


# --- The commit --------------------------------------------------------------------------------------------------

_ABOUT_REVISIONS: Final = """\
# Argo CD writes the commit that it builds into annotations. From there kustomize copies it into each operation, so that
# all are synced at that commit.
"""
