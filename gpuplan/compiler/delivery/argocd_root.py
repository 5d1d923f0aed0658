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
from typing import Any, Final

from gpuplan.compiler.delivery.annotations import SYNC_WAVE
from gpuplan.compiler.delivery.argocd_parts import (
    RESOURCES_FINALIZER,
    RETRY,
    RETRY_NEWEST,
    automated,
    folder_path,
    git_source,
    metadata,
)
from gpuplan.compiler.delivery.argocd_traces import Traces
from gpuplan.compiler.delivery.indexes import OWN_CLUSTER
from gpuplan.compiler.manifests import HEADER, File, Manifest, to_yaml
from gpuplan.compiler.manifests.kustomization import Apart
from gpuplan.compiler.planning.appliers import Applier
from gpuplan.compiler.planning.plan import Argocd, Plan
from gpuplan.compiler.planning.subjects import about
from gpuplan.compiler.planning.sync_names import CONTENT, REVISION, root_name

FOLDER: Final = "applications"
"""Below that of the cluster: what the root syncs. Whoever applies the cluster's folder applies the root alone."""

_REVISIONS_FILE: Final = "revisions.yaml"
_GROUP: Final = "argoproj.io"
Child = tuple[Applier, Mapping[str, Any]]


def apart(*, has_children: bool) -> Apart:
    """The folder that the root syncs; ``has_children`` says that it orders some of what is there."""
    return Apart(FOLDER, (_REVISIONS_FILE,) if has_children else ())


def ordered(plan: Plan, argocd: Argocd, body: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """An Application that the root syncs: with another digest the root differs, and applies this operation.

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
            "sync": {
                **at,
                **({"prune": True} if prunes else {}),
                "syncOptions": policy["syncOptions"],
            },
            "retry": RETRY,
        },
    }


def render(plan: Plan, argocd: Argocd, children: Sequence[Child], of: Traces) -> Iterator[Manifest | File]:
    """The root, a project of its own, and what tells each of its ``children`` the commit."""
    cluster = about(plan.cluster)
    yield Manifest("", _project(plan, argocd), about=cluster, trace=of.root_project)
    yield Manifest("", _application(plan, argocd), about=cluster, trace=of.root)
    if children:
        data = (HEADER + _ABOUT_REVISIONS + to_yaml(_replacement(children))).encode()
        trace = partial(of.revisions, [applier for applier, _ in children])
        yield File(f"{FOLDER}/{_REVISIONS_FILE}", data, about=cluster, trace=trace)


def _project(plan: Plan, argocd: Argocd) -> dict[str, Any]:
    """It allows what makes others sync. The cluster's own project does not: they could allow themselves more."""
    kinds = [{"group": _GROUP, "kind": kind} for kind in ("AppProject", "Application", "ApplicationSet")]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {
            **metadata(argocd, root_name(plan.cluster.name), {SYNC_WAVE: "-10"}),
            "finalizers": [RESOURCES_FINALIZER],
        },
        "spec": {
            "description": f"What syncs the GPU configuration of the cluster {plan.cluster.name}",
            "sourceRepos": [argocd.spec.repo_url],
            "destinations": [{"server": OWN_CLUSTER, "namespace": argocd.namespace}],
            "namespaceResourceWhitelist": kinds,
        },
    }


def _application(plan: Plan, argocd: Argocd) -> dict[str, Any]:
    """It has no finalizer, so that Applications stay when it goes, and prunes none: a person does.

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
            "syncPolicy": {
                **automated(prunes=False),
                "retry": RETRY_NEWEST,
            },
        },
    }


# --- The commit --------------------------------------------------------------------------------------------------

_ABOUT_REVISIONS: Final = """\
# Argo CD writes the commit that it builds into annotations. From there kustomize copies it into each operation, so that
# all are synced at that commit.
"""


def _replacement(children: Sequence[Child]) -> dict[str, Any]:
    first = children[0][0].name
    source = {"group": _GROUP, "kind": "Application", "name": first, "fieldPath": f"metadata.annotations.[{REVISION}]"}
    targets = [
        {
            "select": {"group": _GROUP, "kind": "Application", "name": applier.name},
            "fieldPaths": ["operation.sync.revisions.1" if "sources" in body["spec"] else "operation.sync.revision"],
        }
        for applier, body in children
    ]
    return {"source": source, "targets": targets}
