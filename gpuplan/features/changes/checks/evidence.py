"""Checks on what a list of nodes shows: what is retained and may go, and what is missing in it (GPU739, GPU749)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.backends import backends
from gpuplan.compiler.backends.gpu_operator import device_plugin, mig_parted
from gpuplan.compiler.base.diagnostics import Family, Finding, Severity
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.manifests import Manifest, identity_of
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    Plan,
    Retained,
    RetainedDevicePluginConfig,
    RetainedLayout,
    RetainedNodes,
    RetainedObject,
)
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.features.changes.checks.places import earlier, name_of_cluster
from gpuplan.features.changes.evidence import Lack
from gpuplan.features.changes.step import Step
from gpuplan.features.changes.wording import who_names

# --- What is retained --------------------------------------------------------------------------------------------


@check("GPU739", "retained-dropped-unseen", Severity.WARNING, family=Family.STEP)
def retained_dropped_unseen(step: Step) -> Iterator[Finding]:
    """What was retained is dropped, and nobody has shown that the cluster does not need it.

    ## Why
    A document of the kind Retained is there for what nodes and queues of the cluster still need, and policies do not
    say when they have done with it: labels move as late as somebody approves it. A node whose label names an entry or
    a file that is gone fails as soon as its MIG manager, or its device plugin, restarts.

    ## Instead
    Pass the cluster's nodes: `kubectl get nodes -o json | gpuplan validate --against HEAD --nodes -`. Where no node
    needs it there is no finding; where some do it is an error that says which, and the document has to stay.
    Kubernetes objects are not seen in nodes: look at what the document names under `until`, and say so in a comment.
    `gpuplan retain --prune --nodes FILE` says which documents may go.
    """
    kept = {_key(item) for item in step.after.retained}
    for item in step.before.retained:
        needing = step.needing(item)
        # Nodes show no objects.
        listed = "" if isinstance(item.what, RetainedObject) else "pass `--nodes FILE`; or "
        look = f"{listed}look, and say so: `# gpuplan: ignore[GPU739] REASON`"
        if _key(item) not in kept and needing != () and not _is_made(item, step.after):
            yield Finding(
                name_of_cluster(step),
                f"{_title(item)} is no longer retained, and "
                + (who_names(needing) if needing else "nobody has shown that nothing needs it"),
                label=f"`{item.name}` is gone",
                notes=(earlier(item.at, f"`{item.name}`"), f"it may go once {item.spec.until}"),
                help=f"bring `{item.name}` back until no node needs it" if needing else look,
                severity=Severity.ERROR if needing else None,
            )


def _key(retained: Retained) -> tuple[str, object]:
    match retained.what:
        case RetainedLayout(spec=spec):
            return MIG_CONFIG_LABEL, spec.config_name
        case RetainedDevicePluginConfig(spec=plugin):
            return DEVICE_PLUGIN_CONFIG_LABEL, plugin.key
        case RetainedObject(spec=kept):
            return "", identity_of(kept.manifest)
        case RetainedNodes():
            return "nodes", retained.name


def _title(retained: Retained) -> str:
    match retained.what:
        case RetainedLayout(spec=spec):
            return f"the entry `{spec.config_name}`"
        case RetainedDevicePluginConfig(spec=plugin):
            return f"the configuration `{plugin.key}`"
        case RetainedObject(spec=kept):
            identity = identity_of(kept.manifest)
            return f"{identity.kind} `{identity.name}`"
        case RetainedNodes(spec=nodes):
            return f"what nodes keep of pool `{nodes.pool}`"


def _is_made(retained: Retained, after: Plan) -> bool:
    """Whether the policies make it themselves, or nothing applies it."""
    _, name = _key(retained)
    match retained.what:
        case RetainedLayout():
            return name in mig_parted.configuration(after)["mig-configs"]
        case RetainedDevicePluginConfig():
            return name in device_plugin.configurations(after)
        case RetainedObject():
            made = (artifact for backend in backends() for artifact in backend.render(after))
            return any(isinstance(artifact, Manifest) and artifact.identity == name for artifact in made)
        case RetainedNodes():
            return after.cluster.spec.node_labels is not NodeLabels.NFD


# --- Lists -------------------------------------------------------------------------------------------------------


@check("GPU749", "nodes-not-listed", Severity.NOTE, family=Family.STEP)
def nodes_not_listed(step: Step) -> Iterator[Finding]:
    """The list of nodes lacks some that the policies count, or is of another cluster, or of one never labelled.

    ## Why
    What no node of the list names may be named by one that is not in it: `kubectl get nodes` with a selector lists a
    part, and another context lists another cluster, whose nodes the same patterns may match. So such a list is no proof
    that something may go, and patterns of a pool that lacks nodes are judged by what they may match. What the nodes
    that are there do name is a fact all the same.

    ## Instead
    List all nodes: `kubectl get nodes -o json`. Where nodes are gone for good, correct `nodes.count` or `nodes.names`.
    """
    if step.evidence is None:
        return
    if step.evidence.is_foreign:
        yield Finding(
            name_of_cluster(step),
            step.evidence.doubts[0],
            label="nothing of it is taken for proof",
            help="list the nodes of this cluster; before its first sync leave `--nodes` out",
        )
        return
    for stranger in step.evidence.strangers:
        yield Finding(
            name_of_cluster(step),
            stranger,
            label="what no node of the list names is no proof",
            help="list the nodes of this cluster; or remove the label where the pool was removed long ago",
        )
    yield from (_lacking(step, lack) for lack in step.evidence.lacks)


def _lacking(step: Step, lack: Lack) -> Finding:
    pool = step.after.find_pool(lack.pool.name)
    return Finding(
        pool.at / "nodes" / "count" if pool is not None else name_of_cluster(step),
        str(lack),
        label="what no node names may be named by these",
        help="list all nodes; or correct what the pool counts",
    )
