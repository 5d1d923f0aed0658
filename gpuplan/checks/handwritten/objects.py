"""Checks on hand-written objects, in files or as kustomize built them (GPU620-624, GPU628)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpuplan.checks.handwritten.reading import HandFiles, Object, inside, mapping, read_text, sequence, text, value_at
from gpuplan.checks.priorities import HIGHEST, LOWEST, SYSTEM_PREFIX
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label, Origin, Severity
from gpuplan.patterns import regex
from gpuplan.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    POOL_LABEL,
)
from gpuplan.planning.pools import ALL_DISABLED
from gpuplan.planning.sync_names import SYNC_OPTIONS
from gpuplan.wording import listing, misspelling

# HAMi's scheduler counts these itself, and `limits.nvidia.com/gpu` along with them (`pkg/device/quota.go`).
_HAMI_KEYS = regex(r"limits\.nvidia\.com/gpu(mem|cores|mem-percentage)")


@check("GPU620", "inert-quota-key")
def inert_quota_key(files: HandFiles) -> Iterator[Finding]:
    """A ResourceQuota has a key for GPUs that the API server accepts and never counts.

    ## Why
    For extended resources only `requests.<resource>` counts (`isExtendedResourceNameForQuota` in Kubernetes'
    `pkg/quota/v1/evaluator/core/pods.go`). `limits.nvidia.com/gpu` and the bare `nvidia.com/gpu` are stored, get no
    `status.used` and never refuse a pod, so that the namespace looks capped and is not. HAMi's scheduler alone reads
    `limits.nvidia.com/gpu`; a quota with its keys `gpumem` or `gpucores` beside it is left alone.

    ## Instead
    Write `requests.<resource>`: extended resources have equal requests and limits, so that one number caps both.
    """
    for quota in files.of_kind("ResourceQuota", "ClusterResourceQuota", ""):
        route = ("spec", "quota", "hard") if quota.kind == "ClusterResourceQuota" else ("spec", "hard")
        hard = inside(quota.body, *route)
        if any(_HAMI_KEYS.fullmatch(key) for key in hard):
            continue
        for key in hard:
            resource = key.removeprefix("limits.")
            if _is_extended(resource):
                counted = f"requests.{resource}"
                yield Finding(
                    quota.place(*route, key).key,
                    f"`{key}` in {quota.title} caps nothing",
                    label="accepted, but never counted",
                    related=(Label(quota.place(*route, counted).key, "this one counts"),) if counted in hard else (),
                    notes=("the API server counts extended resources under `requests.` only",),
                    help="remove it" if counted in hard else f"write `{counted}`",
                )


def _is_extended(resource: str) -> bool:
    """Whether a quota's key, without `limits.`, is the plain name of a device plugin's resource."""
    domain, slash, _ = resource.partition("/")
    own = domain.endswith((".k8s.io", "kubernetes.io")) or domain.startswith("requests.") or domain == "count"
    return bool(slash) and not own


@check("GPU621", "gpus-in-limit-range")
def gpus_in_limit_range(files: HandFiles) -> Iterator[Finding]:
    """A LimitRange has GPUs in it.

    ## Why
    For containers, Kubernetes fills `default` from `max`, and requests from `default` or `min`
    (`SetDefaults_LimitRangeItem` in `pkg/apis/core/v1/defaults.go`). A maximum of two GPUs thereby gives two GPUs to
    every container that asks for none. A maximum for whole pods refuses pods that ask for no GPU.

    ## Instead
    Write `allow: {unitsPerContainer: 2}` in the tenant: the admission policy refuses more and gives nobody GPUs.
    """
    for found in files.of_kind("LimitRange", ""):
        for index, item in enumerate(sequence(mapping(found.body.get("spec")).get("limits"))):
            limit = mapping(item)
            for field in ("max", "default", "defaultRequest", "min", "maxLimitRequestRatio"):
                for key in mapping(limit.get(field)):
                    if key.startswith("nvidia.com/"):
                        place = found.place("spec", "limits", index, field, key).key
                        yield _limited_gpu(found, place, key, text(limit.get("type")) == "Pod")


def _limited_gpu(found: Object, place: Origin, key: str, is_pod: bool) -> Finding:  # noqa: FBT001 - reads well here
    effect = "refuses pods that ask for none" if is_pod else "gives GPUs to containers that ask for none"
    return Finding(
        place,
        f"`{key}` in {found.title} {effect}",
        label="not a bound alone",
        notes=("Kubernetes fills what a container leaves out from `default`, `max` and `min`",) if not is_pod else (),
        help="remove it; `allow: {unitsPerContainer: ...}` in the Tenant is a bound and nothing else",
    )


_ADMISSION_PLUGINS = {
    "scheduler.alpha.kubernetes.io/node-selector": "PodNodeSelector",
    "scheduler.alpha.kubernetes.io/defaultTolerations": "PodTolerationRestriction",
    "scheduler.alpha.kubernetes.io/tolerationsWhitelist": "PodTolerationRestriction",
}


@check("GPU622", "inert-namespace-annotation", Severity.WARNING)
def inert_namespace_annotation(files: HandFiles) -> Iterator[Finding]:
    """A Namespace has an annotation that only an admission plugin reads which is off by default.

    ## Why
    `PodNodeSelector` and `PodTolerationRestriction` must be switched on in the API server's flags, which managed
    clusters do not offer. Where they are off, the annotation is stored and does nothing: pods land on any node.

    ## Instead
    Leave it to the tenant's quotas: the admission policy keeps pods to the pools that the tenant has a quota on. Where
    the plugin is on, ignore the finding with a comment.
    """
    common = [
        (key, (item.at / "commonAnnotations" / key).key)
        for item in files.kustomizations
        for key in mapping(item.body.get("commonAnnotations"))
    ]
    yield from (_inert_annotation(at, key, "all objects") for key, at in common if key in _ADMISSION_PLUGINS)
    for found in files.of_kind("Namespace", ""):
        for key in mapping(found.metadata.get("annotations")):
            if key in _ADMISSION_PLUGINS and key not in dict(common):
                yield _inert_annotation(found.place("metadata", "annotations", key).key, key, found.title)


def _inert_annotation(at: Origin, key: str, what: str) -> Finding:
    return Finding(
        at,
        f"annotation `{key.rpartition('/')[2]}` of {what} does nothing by default",
        label=f"read by the admission plugin {_ADMISSION_PLUGINS[key]} only",
        notes=(f"{_ADMISSION_PLUGINS[key]} is not among the plugins that the API server runs by default",),
        help="remove it: the admission policy keeps pods to their tenant's pools",
    )


@check("GPU623", "unprotected-node")
def unprotected_node(files: HandFiles) -> Iterator[Finding]:
    """A hand-written Node may be deleted by Argo CD.

    ## Why
    A Node object with a few labels is still the Node. When it leaves Git, or its Application is deleted, Argo CD
    deletes the Node from the cluster with all that runs on it (argoproj/argo-cd#7124).

    ## Instead
    Protect it by annotation, and apply it on the server's side so that only the labels are owned; or let gpuplan put
    the labels there: `nodeLabels: nfd` needs no Node objects.
    """
    for node in files.of_kind("Node"):
        if node.is_patch or node.group:
            continue
        given = text(mapping(node.metadata.get("annotations")).get(SYNC_OPTIONS))
        options = {option.strip() for option in given.split(",")}
        missing = [option for option in ("Prune=false", "Delete=false") if option not in options]
        if missing:
            yield Finding(
                node.place("metadata", "annotations", SYNC_OPTIONS),
                f"Node `{node.name}` is deleted when it leaves Git"
                if "Prune=false" in missing
                # The other half: it stays in Git, and the Application goes.
                else f"Node `{node.name}` is deleted with its Application",
                label=f"lacks {listing(missing)}",
                notes=("Argo CD prunes whole objects, however few of their fields are in Git",),
                help=f'write the annotation `{SYNC_OPTIONS}: "Prune=false,Delete=false,ServerSideApply=true"`',
            )


@check("GPU624", "priority-class-refused")
def priority_class_refused(files: HandFiles) -> Iterator[Finding]:
    """A hand-written PriorityClass is one that the API server refuses.

    ## Why
    Names with the prefix `system-` and values above 1000000000 are the system's own, and one class alone can be the
    default.

    ## Instead
    Write a PriorityClass document in the policy: it is checked, and tenants can be allowed to use it.
    """
    classes = files.plan.priority_classes if files.plan else ()
    default = next((found for found in classes if found.spec.default), None)
    for found in files.of_kind("PriorityClass"):
        value = found.body.get("value")
        if found.name.startswith(SYSTEM_PREFIX):
            at = found.place("metadata", "name")
            yield _refused(at, f"name `{found.name}` is kept for Kubernetes itself", "leave the prefix `system-` out")
        if isinstance(value, int) and not LOWEST <= value <= HIGHEST:
            help_ = f"write a value from {LOWEST} to {HIGHEST}"
            yield _refused(found.place("value"), f"value {value} of {found.title} is out of range", help_)
        if found.body.get("globalDefault") is True and default is not None and default.name != found.name:
            at = found.place("globalDefault")
            related = Label(default.at / "default", f"`{default.name}` is the default")
            yield _refused(at, f"{found.title} is a second default", "remove `globalDefault`", related)


def _refused(at: Origin, message: str, help_: str, *related: Label) -> Finding:
    return Finding(at, message, label="refused by the API server", related=related, help=help_)


@check("GPU628", "label-selects-nothing")
def label_selects_nothing(files: HandFiles) -> Iterator[Finding]:
    """A hand-written node label chooses a configuration or a pool that does not exist.

    ## Why
    `nvidia.com/device-plugin.config` names a key of the device plugin's ConfigMap: where there is no such key, the
    config-manager of a running node crash-loops, and a node that starts publishes no GPUs. `nvidia.com/mig.config`
    names an entry of the MIG manager's file: where there is none, the node ends in the state `failed`. The entries that
    the MIG manager generates by itself, such as `all-1g.10gb`, are gone once a ConfigMap is set.

    ## Instead
    Let gpuplan label the nodes of pools, or write a value that the finding names. Layouts carry a hash: `gpuplan show`
    prints their full names.
    """
    values = _label_values(files)
    for found in files.of_kind("Node", "NodeFeatureRule"):
        for route, labels in _labels(found):
            for key, known in values.items():
                value = labels.get(key)
                # NFD fills in values that begin with `@`.
                if not isinstance(value, str) or value in known or value.startswith("@"):
                    continue
                if value_at(found.before, (*route, key)) is None:  # else GPU686 tells of another value
                    close = _with_another_hash(value, known) or misspelling(value, known)
                    yield Finding(
                        found.place(*route, key),
                        f"`{key}: {value}` of {found.title} chooses nothing",
                        label=f"did you mean `{close}`" if close else "does not exist",
                        notes=(f"there are {listing(sorted(known), 8)}",) if known else (),
                        help=f"write `{close}`"
                        if close
                        else "remove the label: gpuplan writes it for the nodes of pools",
                    )


def _with_another_hash(value: str, known: Iterable[str]) -> str | None:
    """The layout of this name as it is now; its label's value may lack the hash, or have an earlier one."""
    stems = {value, value.rpartition("-")[0]}
    return next((item for item in known if item.rpartition("-")[0] in stems), None)


def _label_values(files: HandFiles) -> dict[str, set[str]]:
    """The values that choose something, by label, those of hand-written ConfigMaps included."""
    plan = files.plan
    if plan is None:
        return {}
    pools = {pool.name for pool in plan.pools}
    keys, entries = set(pools), {ALL_DISABLED, *(layout.config_name for layout in plan.mig_layouts)}
    keys.update(retained.spec.key for retained in plan.retained_plugin_configs)
    entries.update(retained.spec.config_name for retained in plan.retained_layouts)
    for found in files.of_kind("ConfigMap"):
        for key, value in mapping(found.body.get("data")).items():
            keys.add(key)
            for body in read_text(value) if "mig-configs" in text(value) else ():
                entries.update(mapping(mapping(body).get("mig-configs")))
    return {POOL_LABEL: pools, DEVICE_PLUGIN_CONFIG_LABEL: keys, MIG_CONFIG_LABEL: entries}


def _labels(found: Object) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, object]]]:
    """The labels that a Node has or that a NodeFeatureRule gives, with their place."""
    if found.kind == "Node":
        yield ("metadata", "labels"), mapping(found.metadata.get("labels"))
        return
    for index, rule in enumerate(sequence(mapping(found.body.get("spec")).get("rules"))):
        yield ("spec", "rules", index, "labels"), mapping(mapping(rule).get("labels"))
