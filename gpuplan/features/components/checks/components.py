"""Checks on how hand-written files join the generated ones (GPU481, GPU625-627, GPU640-646)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity, SourceFile, WholeFile
from gpuplan.compiler.base.plain import mapping, text, value_at
from gpuplan.compiler.base.wording import misspelling
from gpuplan.compiler.catalog.openshift import NFD_NAMESPACE
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import mistyped, name_of, those_there_are
from gpuplan.compiler.documents import file_of
from gpuplan.compiler.planning.apis import find_chart
from gpuplan.compiler.planning.grants import SYSTEM_NAMESPACE
from gpuplan.compiler.planning.hand_files import Kustomization, are_parts_unsure, parts_of, read
from gpuplan.compiler.planning.plan import Component, Mig, Plan, Stage
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.policy.models import ClusterMigStrategy, Install
from gpuplan.features.components.checks.references import Files, charts, references, texts

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
    files, below = read(plan), f"overlays/{plan.cluster.name}/kustomize/"
    listed = {
        item.path_of(value.rpartition("=")[2])  # `key=path` in generators
        for item in files.kustomizations
        for value in texts(item.body)
        if "\n" not in value
    }
    firsts = {found.path: found for found in reversed(files.objects) if "/" in found.path.removeprefix(below)}
    for path in sorted(firsts.keys() - listed):
        yield Finding(
            firsts[path].place("metadata", "name"),
            f"no kustomization lists the file of {firsts[path].title}",
            label="never applied",
            notes=(f"{path} is named in no `kustomization.yaml`",),
            help=f"add `{path.rpartition('/')[2]}` to `resources` of the kustomization beside it",
        )


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
        if problem := _problem(component, bodies.get(component.folder, {})):
            field, what, label, help_ = problem
            yield Finding(
                component.at / field if component.at and field else origin_of(component),
                f"`{component.folder}` {what}",
                label=label,
                notes=("nothing in the folder reaches the cluster",),
                help=help_,
            )


_VERSION = "kustomize.config.k8s.io/v1alpha1"


def _problem(component: Component, body: Mapping[str, object]) -> tuple[str, str, str, str] | None:
    """The field at fault, what is wrong, the label and the help, or None where kustomize takes the folder."""
    if component.at is None:
        help_ = "add a kustomization.yaml with `kind: Component`"
        return "", "has no kustomization.yaml, or an empty one", "not a Component", help_
    if component.kind != "Component":
        what = f"is a {component.kind}, not a Component" if component.kind else "does not say `kind: Component`"
        return "kind", what, "must be `Component`", f"write `apiVersion: {_VERSION}` and `kind: Component`"
    if body.get("apiVersion", _VERSION) != _VERSION:
        what = "has the wrong version for a Component"
        return "apiVersion", what, "must end in `v1alpha1`", f"write `apiVersion: {_VERSION}`"
    if all(body[key] in (None, [], {}) for key in body.keys() - {"apiVersion", "kind", "metadata"}):
        help_ = "list the files under `resources` or `patches`"
        return "resources", "is an empty Component", "kustomize refuses it", help_
    return None


def origin_of(component: Component) -> Origin:
    """A Component as such: where its kustomization begins."""
    return component.at or Origin(WholeFile(SourceFile(component.folder, "")))


@check("GPU641", "component-not-included")
def component_not_included(plan: Plan) -> Iterator[Finding]:
    """A hand-written folder or file has no place in the output.

    ## Why
    A Component joins the stage that its folder is named after, or the namespace below `namespaces/`. Any other folder
    belongs to no stage, so that no Application applies it, and files beside the stages are read by nobody.

    ## Instead
    Move it into the folder of a stage: `gpu-operator`, `partitions`, `scheduling`, `queues`, `namespaces`,
    `monitoring`, `workloads`. A namespace that belongs to no tenant, or a pool that does not exist, is a warning.
    """
    stages = [stage.value for stage in Stage]
    for component in plan.components:
        if component.stage not in stages:
            message = f"`{component.folder}` is not the folder of a stage"
            yield _homeless(origin_of(component), message, component.stage, stages)
        elif component.part is not None and not are_parts_unsure(plan, stage := Stage(component.stage)):
            parts = parts_of(plan, stage)
            what = "a pool that does not exist" if stage.is_by_pool else "a namespace of no tenant"
            if component.part not in parts:
                found = _homeless(origin_of(component), f"`{component.folder}` is for {what}", component.part, parts)
                yield replace(found, severity=Severity.WARNING)
    folder = f"overlays/{plan.cluster.name}/kustomize/"
    for written in plan.hand_written:
        path = file_of(written.at).path
        if path == folder + written.stage:
            yield _homeless(Origin(written.at.source), f"`{path}` lies beside the stages", written.stage, stages)


def _homeless(at: Origin, message: str, name: str, known: list[str]) -> Finding:
    notes, help_ = those_there_are(known), "move it into the folder that it belongs to"
    meant = misspelling(name, known)
    return mistyped(at, message, meant, "belongs to nothing", help_, *notes, write="rename the folder to `{}`")


# --- Objects that gpuplan writes, too ----------------------------------------------------------------------------


@check("GPU625", "object-written-by-gpuplan")
def object_written_by_gpuplan(plan: Plan) -> Iterator[Finding]:
    """A hand-written object is one that gpuplan writes itself.

    ## Why
    kustomize refuses a build with two objects of one kind and name: "may not add resource with an already registered
    id". The whole folder then fails to sync.

    ## Instead
    Write a patch that changes the generated object, or say it in the policy.
    """
    places = {("PriorityClass", found.name): name_of(found.at) for found in plan.priority_classes}
    for tenant in plan.tenants:
        places |= {("Namespace", name): (tenant.at / "namespaces").key for name in tenant.spec.namespaces}
    written: dict[tuple[str, str], tuple[Label, ...]] = {("Namespace", SYSTEM_NAMESPACE): ()}
    written |= {identity: (Label(at, "generated from here"),) for identity, at in places.items()}
    for found in read(plan).of_kind("Namespace", "PriorityClass"):
        if not found.is_patch and (found.kind, found.name) in written:
            yield Finding(
                found.place("metadata", "name"),
                f"{found.title} is written by gpuplan, too",
                label="the build would have two",
                related=written[found.kind, found.name],
                notes=("kustomize refuses two objects of one kind and name",),
                help="move it from `resources` to `patches`",
            )


@check("GPU627", "cluster-policy-contradicted")
def cluster_policy_contradicted(plan: Plan) -> Iterator[Finding]:
    """A hand-written patch of the ClusterPolicy takes back what follows from the policy.

    ## Why
    The two ConfigMaps and the MIG strategy of the ClusterPolicy are what makes nodes do as planned. `mig.strategy`
    overrides every pool's own; another `config.name` takes away the configurations that node labels choose from;
    `migManager.config.default` can be `all-disabled` or empty, and the CRD refuses a layout there. With `install: helm`
    there is no ClusterPolicy to patch: the chart makes it from the values.

    ## Instead
    Say it in the policy: `migStrategy` in the cluster, layouts and pools. With `install: helm`, other fields are values
    of the chart: `gpuOperator.values`.
    """
    operator = plan.cluster.gpu_operator
    for found in read(plan).of_kind("ClusterPolicy") if operator.spec.install is Install.HELM else ():
        # Kyverno has a kind of this name, too.
        is_operators = found.group == "nvidia.com" or (not found.group and found.stage == Stage.GPU_OPERATOR)
        if found.is_patch and is_operators:
            yield Finding(
                found.place("kind"),
                "there is no ClusterPolicy to patch: the Helm chart makes it",
                label="patches nothing",
                related=(Label(operator.at / "install", "not in this folder"),),
                help="write the chart's values for it under `gpuOperator.values`",
            )


def decided_fields(plan: Plan) -> dict[tuple[str, ...], tuple[object, ...]]:
    """Fields of a ClusterPolicy below `spec` that gpuplan decides, with the values that contradict nothing."""
    strategy = plan.cluster.gpu_operator.spec.mig_strategy
    has_mig = any(isinstance(pool.sharing, Mig) for pool in plan.parts)
    return {
        ("mig", "strategy"): () if strategy is ClusterMigStrategy.PER_POOL else (strategy.value,),
        ("migManager", "config", "name"): (),
        ("migManager", "config", "default"): (ALL_DISABLED,),
        ("devicePlugin", "config", "name"): (),
        ("devicePlugin", "config", "default"): ("",),
        ("devicePlugin", "enabled"): (True,) if plan.pools else (True, False),
        ("migManager", "enabled"): (True,) if has_mig else (True, False),
    }


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
        for key, what in _TRANSFORMERS.items() if kustomization.is_component else ():
            if kustomization.body.get(key):
                yield Finding(
                    (kustomization.at / key).key,
                    f"`{key}` in a Component {what}",
                    label="not only what the Component adds",
                    notes=("transformers of a Component run over all that the including kustomization has gathered",),
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
        for at, _, target in kustomization.patches:
            if target.get("kind") == "ClusterPolicy" and not target.get("group"):
                name = "" if target.get("name") else f" and `name: {plan.cluster.gpu_operator.cluster_policy}`"
                yield Finding(
                    at / "target" / "kind",
                    "patch is for every ClusterPolicy, Kyverno's included",
                    label="no group",
                    notes=("`nvidia.com` and `kyverno.io` both have a kind ClusterPolicy",),
                    help=f"add `group: nvidia.com`{name}",
                )


@check("GPU644", "remote-resource", Severity.WARNING)
def remote_resource(plan: Plan) -> Iterator[Finding]:
    """A hand-written kustomization takes files from another place.

    ## Why
    The same commit then builds to something else next week, or to nothing when the place cannot be reached: Argo CD's
    repository server may have no way out. Nothing that comes from there is checked here: gpuplan runs kustomize without
    a network, and does not build what needs one.

    ## Instead
    Copy the files into the folder, and name the version they are of in a comment.
    """
    files = read(plan)
    for kustomization in files.kustomizations:
        yield from remote_references(kustomization, files)


def remote_references(kustomization: Kustomization, files: Files) -> Iterator[Finding]:
    for reference in references(kustomization, files):
        if reference.is_remote:
            yield Finding(
                reference.at,
                f"`{reference.name}` is taken from another place at build time",
                label="not in this repository",
                notes=("the output no longer follows from the commit alone",),
                help="copy it into the folder and list the copy",
            )
    for at, what in charts(kustomization, files):
        yield Finding(
            at,
            f"`{what}` downloads a chart at build time",
            label="not in this repository",
            notes=("kustomize renders charts only with `--enable-helm`, which Argo CD does not set by default",),
            help="render the chart into files, or give it an Application of its own",
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
    files, operator = read(plan), plan.cluster.gpu_operator
    used = {
        name: found.place("spec", part, "config", "name")
        for found in files.of_kind("ClusterPolicy")
        for part, name in config_names(found.body.get("spec"))
    }
    used |= {name: operator.at / "values" for _, name in config_names(operator.spec.values)}
    for kustomization in files.kustomizations:
        keeps_names = mapping(kustomization.body.get("generatorOptions")).get("disableNameSuffixHash") is True
        if keeps_names or kustomization.body.get("configurations"):
            continue
        for at, generator, name in kustomization.generators:
            if name in used and mapping(generator.get("options")).get("disableNameSuffixHash") is not True:
                yield Finding(
                    at / "name",
                    f"ConfigMap `{name}` gets a hash in its name that nothing follows",
                    label=f"becomes `{name}-<hash>`",
                    related=(Label(used[name], f"goes on naming `{name}`"),),
                    help="add `options: {disableNameSuffixHash: true}`",
                )


def config_names(values: object) -> Iterator[tuple[str, str]]:
    """The ConfigMaps that the parts of a ClusterPolicy or of Helm values name, with the part."""
    for part, value in mapping(values).items():
        if name := text(value_at(value, ("config", "name"))):
            yield part, name


# --- Namespaces ------------------------------------------------------------------------------------------------------


@check("GPU481", "namespace-nobody-makes", Severity.NOTE)
def namespace_nobody_makes(plan: Plan) -> Iterator[Finding]:
    """A hand-written object is in a namespace that nothing here makes.

    ## Why
    Neither the policies nor the Components of the cluster make the namespace, and Argo CD's Applications do not. Where
    the cluster does not have it already, the sync of the whole folder fails, in Argo CD and in Flux. The AppProject
    allows writes there because of this object alone.

    ## Instead
    Put the object into a tenant's namespace, or add the Namespace to the Component, unless something else makes it.
    """
    if plan.cluster.argocd is None and plan.cluster.flux is None:
        return
    files, cluster, chart = read(plan), plan.cluster, find_chart(plan.cluster)
    known = {*plan.owners, cluster.gpu_operator.namespace, SYSTEM_NAMESPACE, NFD_NAMESPACE, *plan.scheduler.namespaces}
    if chart:
        known |= {*chart.facts.creates, *chart.facts.namespaces}
    if cluster.monitoring:
        known |= {cluster.monitoring.namespace, cluster.monitoring.spec.dashboards.namespace or ""}
    known |= {found.name for found in files.of_kind("Namespace") if not found.is_patch}
    for found in files.objects:
        namespace = text(found.metadata.get("namespace"))
        is_of_each_cluster = namespace == "default" or namespace.startswith(("kube-", "openshift-"))
        if namespace and not (found.is_patch or namespace in known or is_of_each_cluster):
            known.add(namespace)
            yield Finding(
                found.place("metadata", "namespace"),
                f"nothing here makes namespace `{namespace}`",
                label="must be there already",
                help=f"add a Namespace `{namespace}` to the Component, unless something else makes it",
            )
