"""Checks on hand-written objects, in files or as kustomize built them (GPU620-624, GPU628, GPU634, GPU635, GPU639,
GPU649)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.plain import inside, mapping, read_text, sequence, text, value_at
from gpuplan.compiler.base.wording import listing, misspelling
from gpuplan.compiler.checks.priorities import HIGHEST, LOWEST, SYSTEM_PREFIX
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import mistyped, those_there_are
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.planning.grants import gpu_resources, has_admission_policies
from gpuplan.compiler.planning.hand_files import HandFiles, Object, is_zero, sync_options
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, POOL_LABEL
from gpuplan.compiler.planning.pods import container_limits
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.planning.sync_names import SYNC_OPTIONS
from gpuplan.compiler.policy.models import Cap
from gpuplan.features.components.checks.asking import HAMI, asks, quota_specs


@check("GPU620", "inert-quota-key")
def inert_quota_key(files: HandFiles) -> Iterator[Finding]:
    """A ResourceQuota, or what makes one, has a key for GPUs that the API server accepts and never counts.

    ## Why
    For extended resources only `requests.<resource>` counts (`isExtendedResourceNameForQuota` in Kubernetes'
    `pkg/quota/v1/evaluator/core/pods.go`). `limits.nvidia.com/gpu` and the bare `nvidia.com/gpu` are stored, get no
    `status.used` and never refuse a pod, so that the namespace looks capped and is not. HAMi's scheduler alone reads
    `limits.nvidia.com/gpu`; a quota with its keys `gpumem` or `gpucores` beside it is left alone.

    ## Instead
    Write `requests.<resource>`: extended resources have equal requests and limits, so that one number caps both.
    """
    for quota, route, spec in quota_specs(files):
        hard = mapping(spec.get("hard"))
        # HAMi's scheduler counts these itself, and `limits.nvidia.com/gpu` along with them (`pkg/device/quota.go`).
        if any(key.startswith("limits.") and HAMI.fullmatch(key.removeprefix("limits.")) for key in hard):
            continue
        for key in hard:
            resource = key.removeprefix("limits.")
            domain, slash, _ = resource.partition("/")
            is_kubernetes = domain.endswith((".k8s.io", "kubernetes.io")) or domain == "count"
            if slash and not (is_kubernetes or domain.startswith("requests.")):
                counted = f"requests.{resource}"
                yield Finding(
                    quota.place(*route, "hard", key).key,
                    f"`{key}` in {quota.title} caps nothing",
                    label="accepted, but never counted",
                    related=(Label(quota.place(*route, "hard", counted).key, "this one counts"),)
                    if counted in hard
                    else (),
                    notes=("the API server counts extended resources under `requests.` only",),
                    help="remove it" if counted in hard else f"write `{counted}`",
                )


@check("GPU649", "quota-beside-queues", Severity.WARNING)
def quota_beside_queues(files: HandFiles) -> Iterator[Finding]:
    """A hand-written ResourceQuota counts GPUs where queues cap what tenants use.

    ## Why
    A ResourceQuota refuses pods one by one as they are made (`CheckRequest` in `staging/src/k8s.io/apiserver/pkg/
    admission/plugin/resourcequota/controller.go` of kubernetes/kubernetes), and a queue lets work in as a whole. Of two
    gangs that do not fit together each may get a part of its pods past the quota, and both wait for the rest for ever.
    Work of a high class is refused before anything makes way for it. So gpuplan writes no such quota on what it grants
    where `scheduler.cap` is `queue`.

    ## Instead
    Leave the cap to the queue: write a smaller `limit` in the tenant's quota, or a `split` for its namespaces. A quota
    of zero, which refuses every pod alike, is left alone.
    """
    plan = files.plan
    if plan is None or plan.cluster.cap is not Cap.QUEUE:
        return
    counted = {f"requests.{resource}" for resource in gpu_resources(plan)}
    for quota in files.of_kind("ResourceQuota"):
        tenant = plan.owners.get(text(quota.metadata.get("namespace")))
        if tenant is None or quota.before is not None:
            continue
        hard = inside(quota.body, "spec", "hard")
        for key in hard:
            if key in counted and not is_zero(hard[key]):
                yield Finding(
                    quota.place("spec", "hard", key).key,
                    f"{quota.title} counts `{key}` beside the queues of tenant `{tenant.name}`",
                    label="refuses pods one by one",
                    notes=("two gangs may each get a part of their pods, and wait for ever",),
                    help="remove it, and write a `limit` or a `split` in the tenant's quota",
                )


@check("GPU621", "gpus-in-limit-range")
def gpus_in_limit_range(files: HandFiles) -> Iterator[Finding]:
    """A LimitRange gives GPUs to whoever asks for none, or refuses their pods.

    ## Why
    For containers, Kubernetes fills `default` from `max`, and requests from `default` or `min`
    (`SetDefaults_LimitRangeItem` in `pkg/apis/core/v1/defaults.go`). A maximum of two GPUs thereby gives two GPUs to
    every container that asks for none. A default of 0 gives none, and beside it a maximum is a bound; a request of 0
    without a limit is refused, as GPUs have equal requests and limits. A maximum for whole pods refuses pods that ask
    for no GPU (`maxConstraint` in `plugin/pkg/admission/limitranger`), and so does a ratio.

    ## Instead
    Write `allow: {unitsPerContainer: 2}` in the tenant: the admission policy refuses more and gives nobody GPUs.
    """
    fills = ("Kubernetes fills what a container leaves out from `default`, `max` and `min`",)
    for found in files.of_kind("LimitRange", ""):
        for index, item in enumerate(sequence(value_at(found.body, ("spec", "limits")))):
            for field, key, effect in limited_gpus(mapping(item), is_whole=not found.is_patch):
                yield Finding(
                    found.place("spec", "limits", index, field, key).key,
                    f"`{key}` in {found.title} {effect}",
                    label="not a bound alone",
                    notes=() if effect is _REFUSES else fills,
                    help="remove it; `allow: {unitsPerContainer: ...}` in the Tenant is a bound and nothing else",
                )


_GIVES = "gives GPUs to containers that ask for none"
_REFUSES = "refuses pods that ask for none"


def limited_gpus(limit: Mapping[str, object], *, is_whole: bool) -> Iterator[tuple[str, str, str]]:
    """Fields with GPUs of an item of a LimitRange, the resource, and what it does to pods that ask for none."""
    for field in ("max", "default", "defaultRequest", "min", "maxLimitRequestRatio"):
        for key in mapping(limit.get(field)):
            if key.startswith("nvidia.com/") and (effect := _effect(limit, field, key, is_whole=is_whole)):
                yield field, key, effect


def _effect(limit: Mapping[str, object], field: str, key: str, *, is_whole: bool) -> str:
    if limit.get("type") == "Pod" or field == "maxLimitRequestRatio":
        return _REFUSES
    given = {name: amount for name in _FILLING if (amount := mapping(limit.get(name)).get(key)) is not None}
    if is_zero(given.get(field)):
        has_limit = "default" in given or "max" in given
        return _REFUSES if is_whole and not has_limit and field in ("defaultRequest", "min") else ""
    if field == "max" and is_zero(given.get("default")):
        return ""
    is_request_zero = field == "min" and any(is_zero(given.get(name)) for name in _FILLING)
    return _REFUSES if is_request_zero else _GIVES


_FILLING = ("defaultRequest", "default", "max", "min")
"""Fields of which a container gets what it leaves out."""


@check("GPU639", "two-defaults-for-containers", Severity.WARNING)
def two_defaults_for_containers(files: HandFiles) -> Iterator[Finding]:
    """A hand-written LimitRange gives containers what one that gpuplan writes gives them in the same namespace.

    ## Why
    The API server fills in what a container leaves out from the first LimitRange that has it, in no order that anybody
    chooses (`Admit` in `plugin/pkg/admission/limitranger/admission.go` of kubernetes/kubernetes). gpuplan writes one
    where a tenant says `containers`, and on plain Kubernetes where a quota counts CPU or memory.

    ## Instead
    Say it in `containers` of the tenant, and remove the LimitRange.
    """
    plan = files.plan
    for found in files.of_kind("LimitRange", ""):
        namespace = text(found.metadata.get("namespace"))
        tenant = plan.owners.get(namespace) if plan else None
        if plan is None or tenant is None or found.before is not None:
            continue
        given = container_limits(tenant, namespace, plan.scheduler)
        for index, item in enumerate(sequence(value_at(found.body, ("spec", "limits")))):
            for field in ("default", "defaultRequest"):
                for key in inside(mapping(item), field).keys() & given.get(field, {}).keys():
                    yield Finding(
                        found.place("spec", "limits", index, field, key).key,
                        f"{found.title} and tenant `{tenant.name}` both say what {key} containers have by default",
                        label="which of them holds nobody can say",
                        help=f"say it in `containers: {{{key}: ...}}` of the Tenant, and remove it here",
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
    common = {
        key: (item.at / "commonAnnotations" / key).key
        for item in files.kustomizations
        for key in mapping(item.body.get("commonAnnotations"))
    }
    given = [(at, key, "all objects") for key, at in common.items()]
    for found in files.of_kind("Namespace", ""):
        annotations = inside(found.metadata, "annotations").keys() - common.keys()
        given += ((found.place("metadata", "annotations", key).key, key, found.title) for key in annotations)
    for at, key, what in given:
        if plugin := _ADMISSION_PLUGINS.get(key):
            yield Finding(
                at,
                f"annotation `{key.rpartition('/')[2]}` of {what} does nothing by default",
                label=f"read by the admission plugin {plugin} only",
                notes=(f"{plugin} is not among the plugins that the API server runs by default",),
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
    for node in _from_git(files, "Node"):
        options = sync_options(inside(node.metadata, "annotations"))
        missing = [f"{option}=false" for option in ("Prune", "Delete") if options.get(option) != "false"]
        if missing and not node.is_patch and not node.group:
            # Where it may not be pruned, it stays in Git, and the Application goes.
            cause = "when it leaves Git" if "Prune=false" in missing else "with its Application"
            yield Finding(
                node.place("metadata", "annotations", SYNC_OPTIONS),
                f"Node `{node.name}` is deleted {cause}",
                label=f"lacks {listing(missing)}",
                notes=("Argo CD prunes whole objects, however few of their fields are in Git",),
                help=f'write the annotation `{SYNC_OPTIONS}: "Prune=false,Delete=false,ServerSideApply=true"`',
            )


def _from_git(files: HandFiles, kind: str) -> Iterator[Object]:
    """Objects that somebody wrote: of those without a platform some were read from a cluster, which had taken them."""
    return (found for found in files.of_kind(kind) if files.plan is not None or not found.metadata.get("uid"))


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
    for found in _from_git(files, "PriorityClass"):
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
    config-manager of a running node crash-loops, and a node that starts publishes no GPUs. From operator v26.3 on both
    publish GPUs as if nothing shared or divided them (`Get` in `cmd/config-manager/main.go` of
    NVIDIA/k8s-device-plugin). `nvidia.com/mig.config` names an entry of the MIG manager's file: where there is none,
    the node ends in the state `failed`. The entries that the MIG manager generates by itself, such as `all-1g.10gb`,
    are gone once a ConfigMap is set.

    ## Instead
    Let gpuplan label the nodes of pools, or write a value that the finding names. Layouts carry a hash: `gpuplan show`
    prints their full names.
    """
    values = _label_values(files)
    for found in files.of_kind("Node", "NodeFeatureRule"):
        for route, labels in labels_of(found):
            for key, known in values.items():
                value = labels.get(key)
                # NFD fills in values that begin with `@`.
                if not isinstance(value, str) or value in known or value.startswith("@"):
                    continue
                # The value of a layout may lack its hash, or have an earlier one.
                stems = {value, value.rpartition("-")[0]}
                if value_at(found.before, (*route, key)) is None:  # else GPU686 tells of another value
                    yield mistyped(
                        found.place(*route, key),
                        f"`{key}: {value}` of {found.title} chooses nothing",
                        next((item for item in known if item.rpartition("-")[0] in stems), None)
                        or misspelling(value, known),
                        "does not exist",
                        "remove the label: gpuplan writes it for the nodes of pools",
                        *those_there_are(sorted(known)),
                    )


def _label_values(files: HandFiles) -> dict[str, set[str]]:
    """The values that choose something, by label, those of hand-written ConfigMaps included."""
    plan = files.plan
    if plan is None:
        return {}
    pools = {pool.name for pool in plan.pools}
    labelled = (part.labels[DEVICE_PLUGIN_CONFIG_LABEL] for part in plan.parts)
    keys, entries = {*pools, *labelled}, {ALL_DISABLED, *(layout.config_name for layout in plan.mig_layouts)}
    keys.update(retained.spec.key for retained in plan.retained_plugin_configs)
    entries.update(retained.spec.config_name for retained in plan.retained_layouts)
    for found in files.of_kind("ConfigMap"):
        for key, value in mapping(found.body.get("data")).items():
            keys.add(key)
            for body in read_text(value) if "mig-configs" in text(value) else ():
                entries.update(mapping(mapping(body).get("mig-configs")))
    return {POOL_LABEL: pools, DEVICE_PLUGIN_CONFIG_LABEL: keys, MIG_CONFIG_LABEL: entries}


def labels_of(labelled: Object) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, object]]]:
    """The labels that a Node has or that a NodeFeatureRule gives, with their place."""
    if labelled.kind == "Node":
        yield ("metadata", "labels"), mapping(labelled.metadata.get("labels"))
        return
    for index, rule in enumerate(sequence(mapping(labelled.body.get("spec")).get("rules"))):
        yield ("spec", "rules", index, "labels"), mapping(mapping(rule).get("labels"))


@check("GPU634", "gpu-request-without-limit")
def gpu_request_without_limit(files: HandFiles) -> Iterator[Finding]:
    """A hand-written workload requests GPUs without an equal limit.

    ## Why
    Extended resources cannot be overcommitted, so that requests and limits must be equal. The API server refuses a pod
    with a request alone: `Limit must be set for non overcommitable resources`. A limit alone is enough; the request
    follows from it.

    ## Instead
    Write the resource in `limits`, and leave it out of `requests`.
    """
    for ask in (ask for ask in asks(files) if ask.is_gpu):
        if not ask.is_limit and str(ask.limits.get(ask.resource)) != str(ask.amount):
            limit = ask.limits.get(ask.resource)
            # The smaller number is what both say at least: help asks for no more.
            least = min((ask.amount, limit), key=_number) if limit is not None else ask.amount
            yield Finding(
                ask.at,
                f"{ask.of.title} requests `{ask.resource}` without {'a' if limit is None else 'an equal'} limit",
                label="refused by the API server",
                notes=("requests and limits of extended resources are equal",),
                help=f"write `limits: {{{ask.resource}: {least}}}`, and remove it from `requests`",
            )


def _number(amount: object) -> Decimal:
    return parse_quantity(str(amount)) or Decimal(0)


@check("GPU635", "resource-not-handed-out", Severity.WARNING)
def resource_not_handed_out(files: HandFiles) -> Iterator[Finding]:
    """A hand-written workload asks for a GPU resource that it cannot get.

    ## Why
    What a pool publishes follows from its sharing: under MIG with the strategy `mixed` there is no `nvidia.com/gpu`,
    and renamed shares are `nvidia.com/gpu.shared`. A pod that asks for a resource of no pool waits for ever. In the
    namespaces of tenants admission refuses it, which GPU422 tells.

    ## Instead
    Ask for one of the resources that the finding names.
    """
    plan = files.plan
    if plan is None or plan.broken.pools or plan.broken.incomplete_tenants:
        return
    offered = sorted({unit.resource for pool in plan.pools for unit in pool.units if unit.resource})
    judged = plan.owners if has_admission_policies(plan.cluster) else ()
    for ask in (ask for ask in asks(files) if ask.is_gpu):
        is_judged = text(ask.of.metadata.get("namespace")) in judged
        if ask.is_limit and not is_zero(ask.amount) and not is_judged and ask.resource not in offered:
            yield Finding(
                ask.at,
                f"{ask.of.title} asks for `{ask.resource}`, which no pool hands out",
                label="never scheduled",
                notes=those_there_are(offered),
                help=f"ask for {listing(offered, 3, 'or')}" if offered else "remove it: no pool has GPUs",
            )
