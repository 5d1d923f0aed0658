"""Checks on hand-written kustomize files (GPU620-649): the objects in them, and how they join the generated ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gpuplan.checks.handwork import (
    HandFiles,
    Kustomization,
    Object,
    entries,
    mapping,
    path_in,
    read,
    sequence,
    text,
)
from gpuplan.checks.handwritten_configs import CONFIG_CHECKS
from gpuplan.checks.priorities import HIGHEST, LOWEST, SYSTEM_PREFIX
from gpuplan.checks.registry import Check, check
from gpuplan.checks.wording import name_of
from gpuplan.diagnostics import Finding, Label, Origin, Severity, SourceFile, WholeFile
from gpuplan.planning.grants import SYSTEM_NAMESPACE
from gpuplan.planning.plan import Component, Plan, Stage
from gpuplan.wording import closest, listing

# --- Objects that do not do what they seem to --------------------------------------------------------------------

# HAMi's scheduler counts these itself, and `limits.nvidia.com/gpu` along with them (`pkg/device/quota.go`).
_HAMI_KEYS = re.compile(r"limits\.nvidia\.com/gpu(mem|cores|mem-percentage)").fullmatch


@check("GPU620", "inert-quota-key")
def inert_quota_key(plan: Plan) -> Iterator[Finding]:
    """A ResourceQuota has a key for GPUs that the API server accepts and never counts.

    ## Why
    For extended resources only `requests.<resource>` counts (`isExtendedResourceNameForQuota` in Kubernetes'
    `pkg/quota/v1/evaluator/core/pods.go`). `limits.nvidia.com/gpu` and the bare `nvidia.com/gpu` are stored, get no
    `status.used` and never refuse a pod, so that the namespace looks capped and is not. HAMi's scheduler alone reads
    `limits.nvidia.com/gpu`; a quota with its keys `gpumem` or `gpucores` beside it is left alone.

    ## Instead
    Write `requests.<resource>`: extended resources have equal requests and limits, so that one number caps both.
    """
    for quota in read(plan).of_kind("ResourceQuota", "ClusterResourceQuota", ""):
        route = ("spec", "quota", "hard") if quota.kind == "ClusterResourceQuota" else ("spec", "hard")
        hard = _inside(quota.body, *route)
        if any(_HAMI_KEYS(key) for key in hard):
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
def gpus_in_limit_range(plan: Plan) -> Iterator[Finding]:
    """A LimitRange has GPUs in it.

    ## Why
    For containers, Kubernetes fills `default` from `max`, and requests from `default` or `min`
    (`SetDefaults_LimitRangeItem` in `pkg/apis/core/v1/defaults.go`). A maximum of two GPUs thereby gives two GPUs to
    every container that asks for none. A maximum for whole pods refuses pods that ask for no GPU.

    ## Instead
    Write `allow: {unitsPerContainer: 2}` in the tenant: the admission policy refuses more and gives nobody GPUs.
    """
    for found in read(plan).of_kind("LimitRange", ""):
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
def inert_namespace_annotation(plan: Plan) -> Iterator[Finding]:
    """A Namespace has an annotation that only an admission plugin reads which is off by default.

    ## Why
    `PodNodeSelector` and `PodTolerationRestriction` must be switched on in the API server's flags, which managed
    clusters do not offer. Where they are off, the annotation is stored and does nothing: pods land on any node.

    ## Instead
    Leave it to the tenant's quotas: the admission policy keeps pods to the pools that the tenant has a quota on. Where
    the plugin is on, ignore the finding with a comment.
    """
    files = read(plan)
    for found in files.of_kind("Namespace", ""):
        for key in mapping(found.metadata.get("annotations")):
            if key in _ADMISSION_PLUGINS:
                yield _inert_annotation(found.place("metadata", "annotations", key).key, key, found.title)
    for kustomization in files.kustomizations:
        for key in mapping(kustomization.body.get("commonAnnotations")):
            if key in _ADMISSION_PLUGINS:
                yield _inert_annotation((kustomization.at / "commonAnnotations" / key).key, key, "all objects")


def _inert_annotation(at: Origin, key: str, what: str) -> Finding:
    return Finding(
        at,
        f"annotation `{key.rpartition('/')[2]}` of {what} does nothing by default",
        label=f"read by the admission plugin {_ADMISSION_PLUGINS[key]} only",
        notes=(f"{_ADMISSION_PLUGINS[key]} is not among the plugins that the API server runs by default",),
        help="remove it: the admission policy keeps pods to their tenant's pools",
    )


_SYNC_OPTIONS = "argocd.argoproj.io/sync-options"


@check("GPU623", "unprotected-node")
def unprotected_node(plan: Plan) -> Iterator[Finding]:
    """A hand-written Node may be deleted by Argo CD.

    ## Why
    A Node object with a few labels is still the Node. When it leaves Git, or its Application is deleted, Argo CD
    deletes the Node from the cluster with all that runs on it (argoproj/argo-cd#7124).

    ## Instead
    Protect it by annotation, and apply it on the server's side so that only the labels are owned; or let gpuplan put
    the labels there: `nodeLabels: nfd` needs no Node objects.
    """
    for node in read(plan).of_kind("Node"):
        if node.is_patch or node.group:
            continue
        given = text(mapping(node.metadata.get("annotations")).get(_SYNC_OPTIONS))
        options = {option.strip() for option in given.split(",")}
        missing = [option for option in ("Prune=false", "Delete=false") if option not in options]
        if missing:
            yield Finding(
                node.place("metadata", "annotations", _SYNC_OPTIONS),
                f"Node `{node.name}` is deleted when it leaves Git"
                if "Prune=false" in missing
                # The other half: it stays in Git, and the Application goes.
                else f"Node `{node.name}` is deleted with its Application",
                label=f"lacks {listing(missing)}",
                notes=("Argo CD prunes whole objects, however few of their fields are in Git",),
                help=f'write the annotation `{_SYNC_OPTIONS}: "Prune=false,Delete=false,ServerSideApply=true"`',
            )


@check("GPU624", "priority-class-refused")
def priority_class_refused(plan: Plan) -> Iterator[Finding]:
    """A hand-written PriorityClass is one that the API server refuses.

    ## Why
    Names with the prefix `system-` and values above 1000000000 are the system's own, and one class alone can be the
    default.

    ## Instead
    Write a PriorityClass document in the policy: it is checked, and tenants can be allowed to use it.
    """
    default = next((found for found in plan.priority_classes if found.is_default), None)
    for found in read(plan).of_kind("PriorityClass"):
        value = found.body.get("value")
        if found.name.startswith(SYSTEM_PREFIX):
            at = found.place("metadata", "name")
            yield _refused(at, f"name `{found.name}` is kept for Kubernetes itself", "leave the prefix `system-` out")
        if isinstance(value, int) and not LOWEST <= value <= HIGHEST:
            help_ = f"write a value from {LOWEST} to {HIGHEST}"
            yield _refused(found.place("value"), f"value {value} of {found.title} is out of range", help_)
        if found.body.get("globalDefault") is True and default is not None:
            at = found.place("globalDefault")
            related = Label(default.at / "default", f"`{default.name}` is the default")
            yield _refused(at, f"{found.title} is a second default", "remove `globalDefault`", related)


def _refused(at: Origin, message: str, help_: str, *related: Label) -> Finding:
    return Finding(at, message, label="refused by the API server", related=related, help=help_)


@check("GPU625", "object-written-by-gpuplan")
def object_written_by_gpuplan(plan: Plan) -> Iterator[Finding]:
    """A hand-written object is one that gpuplan writes itself.

    ## Why
    kustomize refuses a build with two objects of one kind and name: "may not add resource with an already registered
    id". The whole folder then fails to sync.

    ## Instead
    Write a patch that changes the generated object, or say it in the policy.
    """
    namespaces = {name: tenant for tenant in plan.tenants for name in tenant.namespaces}
    classes = {found.name: found for found in plan.priority_classes}
    for found in read(plan).of_kind("Namespace", "PriorityClass"):
        if found.is_patch:
            continue
        if found.kind == "PriorityClass" and found.name in classes:
            yield _written_twice(found, Label(name_of(classes[found.name].at), "generated from here"))
        elif found.kind == "Namespace" and found.name in namespaces:
            yield _written_twice(found, Label((namespaces[found.name].at / "namespaces").key, "generated from here"))
        elif found.kind == "Namespace" and found.name == SYSTEM_NAMESPACE:
            yield _written_twice(found)


def _written_twice(found: Object, *related: Label) -> Finding:
    return Finding(
        found.place("metadata", "name"),
        f"{found.title} is written by gpuplan, too",
        label="the build would have two",
        related=related,
        notes=("kustomize refuses two objects of one kind and name",),
        help="move it from `resources` to `patches`",
    )


# --- Files and folders that nothing includes ---------------------------------------------------------------------


@check("GPU626", "file-not-listed", Severity.WARNING)
def file_not_listed(plan: Plan) -> Iterator[Finding]:
    """A hand-written object lies in a file that no kustomization lists.

    ## Why
    kustomize reads the files that a `kustomization.yaml` names, and no others. The object is in Git, in review, and
    never in the cluster.

    ## Instead
    Add the file to `resources` or `patches` of the kustomization beside it, or remove it.
    """
    files = read(plan)
    listed = {path for kustomization in files.kustomizations for path in _mentioned(kustomization)}
    reported: set[str] = set()
    for found in files.objects:
        if found.path and found.path not in listed and found.path not in reported and "/" in _below(plan, found.path):
            reported.add(found.path)
            yield Finding(
                found.place("metadata", "name"),
                f"no kustomization lists the file of {found.title}",
                label="never applied",
                notes=(f"{found.path} is named in no `kustomization.yaml`",),
                help=f"add `{found.path.rpartition('/')[2]}` to `resources` of the kustomization beside it",
            )


def _mentioned(kustomization: Kustomization) -> Iterator[str]:
    """Every path that a kustomization may mean: any text in it, as seen from its folder."""
    waiting: list[object] = [kustomization.body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and "\n" not in value:
            yield path_in(kustomization, value.rpartition("=")[2])  # `key=path` in generators


def _below(plan: Plan, path: str) -> str:
    """A path as seen from the cluster's `kustomize` folder."""
    return path.removeprefix(f"overlays/{plan.cluster.name}/kustomize/")


@check("GPU640", "component-unusable")
def component_unusable(plan: Plan) -> Iterator[Finding]:
    """A hand-written folder is not a kustomize Component.

    ## Why
    Generated kustomizations include these folders under `components`. kustomize takes a folder there if its
    `kustomization.yaml` says `kind: Component` in the version `v1alpha1` and has something in it; anything else fails
    the build, or is left out with all that was written.

    ## Instead
    Begin the `kustomization.yaml` with `apiVersion: kustomize.config.k8s.io/v1alpha1` and `kind: Component`.
    """
    bodies = {kustomization.folder: kustomization.body for kustomization in read(plan).kustomizations}
    for component in plan.components:
        problem = _problem(component, bodies.get(component.folder, {}))
        if problem:
            field, message, label = problem
            at = component.at / field if component.at and field else _component_origin(component)
            yield Finding(
                at,
                message,
                label=label,
                notes=("nothing in the folder reaches the cluster",),
                help=_COMPONENT_HELP.get(field, "add a kustomization.yaml with `kind: Component`"),
            )


_COMPONENT_HELP = {
    "apiVersion": "write `apiVersion: kustomize.config.k8s.io/v1alpha1`",
    "kind": "write `apiVersion: kustomize.config.k8s.io/v1alpha1` and `kind: Component`",
    "resources": "list the files under `resources` or `patches`",
}


def _problem(component: Component, body: Mapping[str, object]) -> tuple[str, str, str] | None:
    """The field at fault, the message and the label, or None where kustomize takes the folder."""
    folder = f"`{component.folder}`"
    if component.at is None:
        return "", f"{folder} has no kustomization.yaml", "not a Component"
    if component.kind != "Component":
        kind = f"is a {component.kind}, not a Component" if component.kind else "does not say `kind: Component`"
        return "kind", f"{folder} {kind}", "must be `Component`"
    version = body.get("apiVersion", "kustomize.config.k8s.io/v1alpha1")
    if version != "kustomize.config.k8s.io/v1alpha1":
        return "apiVersion", f"{folder} has the wrong version for a Component", "must end in `v1alpha1`"
    if not any(
        value not in (None, [], {}) for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")
    ):
        return "resources", f"{folder} is an empty Component", "kustomize refuses it"
    return None


def _component_origin(component: Component) -> Origin:
    return component.at or Origin(WholeFile(SourceFile(component.folder, "")))


@check("GPU641", "component-not-included")
def component_not_included(plan: Plan) -> Iterator[Finding]:
    """A hand-written folder or file has no place in the output.

    ## Why
    A Component joins the stage that its folder is named after, or the namespace below `namespaces/`. Any other folder
    belongs to no stage, so that no Application applies it, and files beside the stages are read by nobody.

    ## Instead
    Move it into the folder of a stage: `gpu-operator`, `partitions`, `scheduling`, `namespaces`, `monitoring`,
    `workloads`. A namespace that belongs to no tenant is a warning.
    """
    stages = [stage.value for stage in Stage]
    namespaces = [name for tenant in plan.tenants for name in tenant.namespaces]
    for component in plan.components:
        if component.stage not in stages:
            message = f"`{component.folder}` is not the folder of a stage"
            yield _homeless(_component_origin(component), message, component.stage, stages)
        elif component.namespace is not None and component.namespace not in namespaces and not plan.broken.tenants:
            message = f"`{component.folder}` is for a namespace of no tenant"
            yield _homeless(_component_origin(component), message, component.namespace, namespaces, Severity.WARNING)
    folder = f"overlays/{plan.cluster.name}/kustomize/"
    for written in plan.hand_written:
        path = written.at.locate().file.path
        if path == folder + written.stage:
            yield _homeless(Origin(written.at.source), f"`{path}` lies beside the stages", written.stage, stages)


def _homeless(at: Origin, message: str, name: str, known: list[str], severity: Severity | None = None) -> Finding:
    close = closest(name, known)
    return Finding(
        at,
        message,
        label=f"did you mean `{close}`" if close else "belongs to nothing",
        notes=(f"there are {listing(known, 8)}",) if known else (),
        help=f"rename the folder to `{close}`" if close else "move it into the folder that it belongs to",
        severity=severity,
    )


# --- How hand-written files reach generated ones -----------------------------------------------------------------

_TRANSFORMERS = {
    "namespace": "moves every generated object of the stage into one namespace",
    "namePrefix": "renames every generated object of the stage",
    "nameSuffix": "renames every generated object of the stage",
}


@check("GPU642", "transformer-reaches-generated-objects")
def transformer_reaches_generated_objects(plan: Plan) -> Iterator[Finding]:
    """A Component has a transformer that changes all generated objects of its stage.

    ## Why
    A Component is not built by itself: its transformers run over everything that the including kustomization has
    gathered. `namespace` moves the generated quotas of the stage into one namespace, and stamps one onto custom
    resources that have none, such as a ClusterPolicy. `namePrefix` and `nameSuffix` rename ConfigMaps that Helm values,
    a ClusterPolicy and node labels go on calling by their old name.

    ## Instead
    Write the namespace and the name into each hand-written object. What must be transformed can be a Kustomization in a
    sub-folder, listed under the Component's `resources`.
    """
    for kustomization in read(plan).kustomizations:
        if kustomization.is_component:
            for key, effect in _TRANSFORMERS.items():
                if kustomization.body.get(key):
                    yield Finding(
                        (kustomization.at / key).key,
                        f"`{key}` in a Component {effect}",
                        label="not only what the Component adds",
                        notes=(
                            "transformers of a Component run over all that the including kustomization has gathered",
                        ),
                        help="remove it, and write names and namespaces into the hand-written objects",
                    )


@check("GPU643", "patch-target-without-group", Severity.WARNING)
def patch_target_without_group(plan: Plan) -> Iterator[Finding]:
    """A patch is for kind ClusterPolicy, of whichever group.

    ## Why
    NVIDIA's GPU Operator and Kyverno both have a kind ClusterPolicy. Without its group a target means either, and the
    patch changes Kyverno's policies where they are part of the same build.

    ## Instead
    Name the group, the kind and the name.
    """
    for kustomization in read(plan).kustomizations:
        for at, entry in entries(kustomization, "patches", "patchesJson6902"):
            target = mapping(mapping(entry).get("target"))
            if target.get("kind") == "ClusterPolicy" and not target.get("group"):
                yield Finding(
                    at / "target" / "kind",
                    "patch is for every ClusterPolicy, Kyverno's included",
                    label="no group",
                    notes=("`nvidia.com` and `kyverno.io` both have a kind ClusterPolicy",),
                    help="add `group: nvidia.com`"
                    + ("" if target.get("name") else f" and `name: {plan.cluster.gpu_operator.cluster_policy}`"),
                )


_REMOTE = re.compile(
    r"[a-z+]+://|git@|git::|(github\.com|gitlab\.com|bitbucket\.org|dev\.azure\.com)[/:]|.*\?(ref|version)=|.*\.git(//|$)",
    re.IGNORECASE,
).match


@check("GPU644", "remote-resource", Severity.WARNING)
def remote_resource(plan: Plan) -> Iterator[Finding]:
    """A hand-written kustomization takes files from another place.

    ## Why
    The same commit then builds to something else next week, or to nothing when the place cannot be reached: Argo CD's
    repository server may have no way out. Nothing that comes from there is checked here.

    ## Instead
    Copy the files into the folder, and name the version they are of in a comment.
    """
    for kustomization in read(plan).kustomizations:
        for at, value in _references(kustomization):
            if _REMOTE(value):
                yield Finding(
                    at,
                    f"`{value}` is taken from another place at build time",
                    label="not in this repository",
                    notes=("the output no longer follows from the commit alone",),
                    help="copy it into the folder and list the copy",
                )
        if "helmCharts" in kustomization.body:
            yield Finding(
                (kustomization.at / "helmCharts").key,
                "`helmCharts` downloads a chart at build time",
                label="not in this repository",
                notes=("kustomize renders charts only with `--enable-helm`, which Argo CD does not set by default",),
                help="render the chart into files, or give it an Application of its own",
            )


_PATH_LISTS = ("resources", "components", "bases", "crds", "configurations", "transformers", "generators", "validators")


def _references(kustomization: Kustomization) -> Iterator[tuple[Origin, str]]:
    """The paths that a kustomization names, with their places."""
    for at, entry in entries(kustomization, *_PATH_LISTS):
        if isinstance(entry, str) and "\n" not in entry:
            yield at, entry
    for at, entry in entries(kustomization, "patches", "patchesJson6902", "replacements"):
        yield at / "path", text(mapping(entry).get("path"))
    for at, entry in entries(kustomization, "configMapGenerator", "secretGenerator"):
        for field in ("files", "envs"):
            for index, path in enumerate(sequence(mapping(entry).get(field))):
                yield at / field / index, text(path).partition("=")[2] or text(path)
    yield kustomization.at / "openapi" / "path", text(mapping(kustomization.body.get("openapi")).get("path"))


@check("GPU645", "content-under-old-name", Severity.WARNING)
def content_under_old_name(plan: Plan) -> Iterator[Finding]:
    """A generated ConfigMap of the GPU Operator gets other content under its old name.

    ## Why
    The names of these ConfigMaps end in a hash of their content, because neither the MIG manager nor the device plugin
    looks at a ConfigMap again: a new name is what makes the operator roll them. Content that kustomize puts in later
    changes nothing on the nodes until their pods happen to restart.

    ## Instead
    Say it in the policy: pools and layouts are what these files are made of.
    """
    files = read(plan)
    own = {found.name for found in files.objects if found.kind == "ConfigMap" and not found.is_patch}
    for kustomization in files.kustomizations:
        if kustomization.stage == Stage.GPU_OPERATOR:
            generators = [(at, mapping(entry)) for at, entry in entries(kustomization, "configMapGenerator")]
            own |= {text(generator.get("name")) for _, generator in generators if _creates(generator)}
            for at, generator in generators:
                name = text(generator.get("name"))
                if not _creates(generator) and name not in own:
                    yield _changed_content(at / "behavior", name)
            for at, entry in entries(kustomization, "patches", "patchesJson6902"):
                target = mapping(mapping(entry).get("target"))
                if target.get("kind") == "ConfigMap" and text(target.get("name")) not in own:
                    yield _changed_content(at / "target", text(target.get("name")))
    for found in files.of_kind("ConfigMap"):
        if found.stage == Stage.GPU_OPERATOR and found.is_patch and found.name and found.name not in own:
            yield _changed_content(found.place("metadata", "name"), found.name)


def _creates(generator: Mapping[str, object]) -> bool:
    return generator.get("behavior") not in ("merge", "replace")


def _changed_content(at: Origin, name: str) -> Finding:
    what = f"ConfigMap `{name}` gets" if name else "ConfigMaps get"
    return Finding(
        at,
        f"generated {what} other content under the old name",
        label="the operator does not notice",
        notes=("the hash in the name is of the generated content; pods roll when the name changes",),
        help="change the policy's pools and layouts instead",
    )


@check("GPU646", "generated-name-not-followed", Severity.WARNING)
def generated_name_not_followed(plan: Plan) -> Iterator[Finding]:
    """kustomize appends a hash to a ConfigMap's name where nothing follows the new name.

    ## Why
    kustomize rewrites references that it knows, such as those in a pod. A ClusterPolicy's `config.name` and Helm values
    are not among them, so that the operator looks for a ConfigMap that does not exist, and its pods do not start.

    ## Instead
    Write `options: {disableNameSuffixHash: true}`, or teach kustomize the field under `configurations`.
    """
    files = read(plan)
    used = dict(_config_names(files))
    used.update((name, plan.cluster.gpu_operator.at / "values") for name in _names_in(plan.cluster.gpu_operator.values))
    for kustomization in files.kustomizations:
        keeps_names = mapping(kustomization.body.get("generatorOptions")).get("disableNameSuffixHash") is True
        if keeps_names or kustomization.body.get("configurations"):
            continue
        for at, entry in entries(kustomization, "configMapGenerator"):
            generator = mapping(entry)
            name = text(generator.get("name"))
            if name in used and mapping(generator.get("options")).get("disableNameSuffixHash") is not True:
                yield Finding(
                    at / "name",
                    f"ConfigMap `{name}` gets a hash in its name that nothing follows",
                    label=f"becomes `{name}-<hash>`",
                    related=(Label(used[name], f"goes on naming `{name}`"),),
                    help="add `options: {disableNameSuffixHash: true}`",
                )


def _config_names(files: HandFiles) -> Iterator[tuple[str, Origin]]:
    """The ConfigMaps that hand-written ClusterPolicies and patches of it name."""
    for found in files.of_kind("ClusterPolicy"):
        for part, value in mapping(found.body.get("spec")).items():
            name = text(mapping(mapping(value).get("config")).get("name"))
            if name:
                yield name, found.place("spec", part, "config", "name")


def _names_in(values: Mapping[str, object]) -> Iterator[str]:
    for value in values.values():
        yield from filter(None, [text(mapping(mapping(value).get("config")).get("name"))])


@check("GPU647", "component-adds-objects-to-all")
def component_adds_objects_to_all(plan: Plan) -> Iterator[Finding]:
    """The Component for all namespaces adds objects, the same ones in every namespace's folder.

    ## Why
    `namespaces/` itself is included by the folder of each namespace. An object that it adds has one name and one
    namespace, so that it comes up in each of them: Argo CD reports it as shared between Applications, and the build of
    the whole cluster fails with an already registered id.

    ## Instead
    Use `patches` there, which change what each folder has, and add objects in `namespaces/<namespace>/`.
    """
    names = [name for tenant in plan.tenants for name in tenant.namespaces]
    if len(names) < 2:
        return
    folders = {item.folder for item in plan.components if item.stage == Stage.NAMESPACES and item.namespace is None}
    for kustomization in read(plan).kustomizations:
        if kustomization.folder in folders:
            for key in ("resources", "configMapGenerator", "secretGenerator"):
                if kustomization.body.get(key):
                    yield Finding(
                        (kustomization.at / key).key,
                        f"`{key}` of the Component for all namespaces adds the same objects {len(names)} times",
                        label=f"in {listing(names, 3)}",
                        notes=("kustomize refuses two objects of one kind, namespace and name",),
                        help=f"move them to `namespaces/{names[0]}/`, or write `patches`",
                    )


def _inside(body: Mapping[str, object], *route: str) -> Mapping[str, object]:
    for part in route:
        body = mapping(body.get(part))
    return body


CHECKS: tuple[Check, ...] = (
    inert_quota_key,
    gpus_in_limit_range,
    inert_namespace_annotation,
    unprotected_node,
    priority_class_refused,
    object_written_by_gpuplan,
    file_not_listed,
    *CONFIG_CHECKS,
    component_unusable,
    component_not_included,
    transformer_reaches_generated_objects,
    patch_target_without_group,
    remote_resource,
    content_under_old_name,
    generated_name_not_followed,
    component_adds_objects_to_all,
)
