"""Checks on the chart that a cluster's scheduler is installed from (GPU472-477, GPU487, GPU489)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Path, Severity
from gpuplan.compiler.base.plain import inside, items, value_of
from gpuplan.compiler.base.wording import closest, listing
from gpuplan.compiler.catalog.charts import find_scheduler_chart
from gpuplan.compiler.catalog.schedulers import release_read
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.apis import find_chart
from gpuplan.compiler.planning.grants import gpu_resources
from gpuplan.compiler.planning.kueue import decided, device_class_mappings
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import Platform, SchedulerInstall


@check("GPU472", "scheduler-without-release")
def scheduler_without_release(plan: Plan) -> Iterator[Finding]:
    """A scheduler is to be installed, and the policy does not say which release.

    ## Why
    The newest release that gpuplan knows is another one tomorrow. Which one a cluster runs is decided in Git, as that
    of the GPU Operator is.

    ## Instead
    Write `scheduler.version`.
    """
    scheduler = plan.cluster.scheduler
    if _is_installed(plan) and not scheduler.version and find_scheduler_chart(scheduler.kind.value):
        yield Finding(
            scheduler.at / "install",
            f"{plan.scheduler.title} is to be installed, and no release is named",
            label="needs `version`",
            help=f"write `version: {release_read(scheduler.kind.value)}` beside it",
        )


@check("GPU473", "no-chart-of-scheduler")
def no_chart_of_scheduler(plan: Plan) -> Iterator[Finding]:
    """A scheduler is to be installed that gpuplan installs nowhere.

    ## Why
    kube-scheduler is part of Kubernetes. The command that installs Run:ai on a cluster comes from its control plane,
    with credentials that are made for this cluster and belong into no repository.

    ## Instead
    Leave `install` out. Run:ai's user interface shows the command: add the cluster there.
    """
    scheduler = plan.cluster.scheduler
    if _is_installed(plan) and find_scheduler_chart(scheduler.kind.value) is None:
        has_projects = plan.scheduler.has_projects
        yield Finding(
            scheduler.at / "install",
            f"{plan.scheduler.title} is not installed from a chart of gpuplan's",
            label="cannot be installed",
            notes=(
                "its control plane makes the command, with credentials for this cluster"
                if has_projects
                else "it comes with Kubernetes",
            ),
            help="remove `install`, and add the cluster in Run:ai's user interface"
            if has_projects
            else "remove `install`",
        )


@check("GPU474", "decided-scheduler-value")
def decided_scheduler_value(plan: Plan) -> Iterator[Finding]:
    """A Helm value of the scheduler's chart says what follows from the policy.

    ## Why
    Two places for one thing part sooner or later. Kueue's Configuration decides what its queues mean, and the policy
    decides the Configuration; KAI-Scheduler hands out fractions where a pool has them.

    ## Instead
    Say it in the policy. What else Kueue's Configuration is to say goes into `scheduler.kueue.configuration`.
    """
    scheduler = plan.cluster.scheduler
    chart = find_scheduler_chart(scheduler.kind.value)
    for route, field in chart.decided.items() if chart and _is_installed(plan) else ():
        if route[-1] in inside(scheduler.spec.values, *route[:-1]):
            yield Finding(
                (scheduler.at / "values" / route).key,
                f"value `{'.'.join(route)}` follows from the policy",
                label="decided elsewhere",
                notes=(f"it follows from `{field}`" if " " not in field else f"it follows from the {field}",),
                help=(
                    "remove it, and write what its Configuration says into `scheduler.kueue.configuration`"
                    if plan.scheduler.suspends_jobs
                    else f"remove `{route[-1]}`"
                ),
            )


@check("GPU475", "decided-kueue-setting")
def decided_kueue_setting(plan: Plan) -> Iterator[Finding]:
    """`scheduler.kueue.configuration` contradicts what the plan needs of Kueue.

    ## Why
    Fair sharing, the kinds that wait, the namespaces that are managed and what is counted follow from the policy: with
    other settings the queues would not mean what it says. What gpuplan writes stays, and yours would have no effect.
    A prefix in `excludeResourcePrefixes` would have one: Kueue counts nothing whose name begins with it, and with
    `cap: queue` nothing else caps that. Nor does it count what a transformation replaces, and it counts more of what
    one brings about (`applyResourceTransformations` in `pkg/workload/workload.go` of v0.19.2): whoever asks for a GPU
    is then let in by another amount than quotas say.

    ## Instead
    Remove it. Lists may hold more than gpuplan writes, and settings that it does not write are yours, but for
    `resources.quotaCheckStrategy: IgnoreUndeclared`: Kueue takes it for another way to say what is not counted, and
    does not start with both (`validateQuotaCheckStrategy` in `pkg/config/validation.go` of v0.19.2).
    """
    settings = plan.cluster.scheduler.spec.kueue
    if settings is None or not plan.scheduler.suspends_jobs:
        return
    at = plan.cluster.scheduler.at / "kueue" / "configuration"
    follows = decided(plan)
    for route, value in _contradictions(follows, settings.configuration, ()):
        yield Finding(
            (at / route).key,
            f"`{'.'.join(map(str, route))}` of Kueue's Configuration follows from the policy",
            label="has no effect",
            notes=(f"it is `{str(value).lower() if isinstance(value, bool) else value}`",)
            if not isinstance(value, Mapping | list)
            else (),
            help=f"remove `{route[-1]}`",
        )
    resources = settings.configuration.get("resources")
    ignores = isinstance(resources, Mapping) and resources.get("quotaCheckStrategy") == "IgnoreUndeclared"
    if ignores and "excludeResourcePrefixes" in follows["resources"]:
        yield Finding(
            (at / "resources" / "quotaCheckStrategy").key,
            "Kueue does not start with `quotaCheckStrategy: IgnoreUndeclared` beside prefixes that it excludes",
            label="another way to say what is not counted",
            notes=("gpuplan writes `excludeResourcePrefixes`, with what the policy has no quotas on",),
            help="remove `quotaCheckStrategy`",
        )
    for index, prefix, name in _excluded(plan, settings.configuration):
        yield Finding(
            at / "resources" / "excludeResourcePrefixes" / index,
            f"`{prefix}` in `excludeResourcePrefixes` keeps Kueue from counting `{name}`",
            label="quotas count it",
            help="remove it, or name what nothing counts",
        )
    yield from _transformed(plan, at / "resources" / "transformations", resources)


def _transformed(plan: Plan, at: Origin, resources: object) -> Iterator[Finding]:
    """Find transformations of what quotas count. What Kueue counts of claims comes after, and can only be added to."""
    asked = (*gpu_resources(plan), *(item.value for item in plan.compute_trees))
    counted = {*asked, *(str(mapping["name"]) for mapping in device_class_mappings(plan))}
    for index, item in enumerate(items(value_of(resources, ("transformations",)))):
        if not isinstance(item, Mapping):
            continue
        name, outputs = item.get("input"), item.get("outputs")
        if name in asked and item.get("strategy") == "Replace":
            yield Finding(
                at / index / "input",
                f"a transformation keeps Kueue from counting `{name}`",
                label="quotas count it",
                notes=("`strategy: Replace` has it count the outputs alone",),
                help="remove the transformation, or transform what nothing counts",
            )
        for output in outputs if isinstance(outputs, Mapping) else ():
            if output in counted:
                yield Finding(
                    (at / index / "outputs" / output).key,
                    f"a transformation has Kueue count `{name}` as `{output}`",
                    label="quotas count it",
                    notes=("it is added to what work asks for by that name",),
                    help=f"remove `{output}`, or name what nothing counts",
                )


def _excluded(plan: Plan, more: Mapping[str, object]) -> Iterator[tuple[int, str, str]]:
    """Yield each further prefix with the first counted resource whose name begins with it."""
    counted = (
        *gpu_resources(plan),
        *(str(mapping["name"]) for mapping in device_class_mappings(plan)),
        *(item.value for item in plan.compute_trees),
    )
    for index, prefix in enumerate(items(value_of(more, ("resources", "excludeResourcePrefixes")))):
        name = next((name for name in counted if isinstance(prefix, str) and name.startswith(prefix)), None)
        if name is not None:
            yield index, prefix, name


def _contradictions(
    decided_part: Mapping[str, object], more: Mapping[str, object], above: Path
) -> Iterator[tuple[Path, object]]:
    for key, value in more.items():
        if key not in decided_part or decided_part[key] == value:
            continue
        here = decided_part[key]
        if isinstance(here, Mapping) and isinstance(value, Mapping):
            yield from _contradictions(here, value, (*above, key))
        elif not (isinstance(here, list) and isinstance(value, list)):
            yield (*above, key), here


@check("GPU489", "unknown-kueue-setting")
def unknown_kueue_setting(plan: Plan) -> Iterator[Finding]:
    """`scheduler.kueue.configuration` has a key that Kueue's Configuration does not have.

    ## Why
    Kueue reads its Configuration strictly (`fromFile` in `pkg/config/config.go` of v0.19.2): with an unknown key its
    controller ends with an error, and nothing is admitted any more. Only the outermost keys are looked at here.

    ## Instead
    Write the key as Kueue's reference of `config.kueue.x-k8s.io/v1beta2` has it.
    """
    settings, chart = plan.cluster.scheduler.spec.kueue, find_scheduler_chart(plan.cluster.scheduler.kind.value)
    if settings is None or chart is None or not chart.settings:
        return
    for key in settings.configuration:
        if key not in chart.settings:
            nearest = closest(key, chart.settings)
            yield Finding(
                (plan.cluster.scheduler.at / "kueue" / "configuration" / key).key,
                f"Kueue's Configuration has no `{key}`",
                label="Kueue does not start",
                help=f"write `{nearest}`" if nearest else f"remove `{key}`",
            )


@check("GPU476", "scheduler-chart-not-read", Severity.WARNING)
def scheduler_chart_not_read(plan: Plan) -> Iterator[Finding]:
    """A scheduler is to be installed in a release whose chart gpuplan does not know.

    ## Why
    The values that gpuplan writes, where the chart lies and the kinds that Argo CD may write for it were read in the
    charts of some releases. Helm ignores values that a chart does not know, and Argo CD refuses kinds that it may not
    write.

    ## Instead
    Choose a release that was read, or compare the chart's values with those in the folder `scheduler`.
    """
    scheduler = plan.cluster.scheduler
    chart = find_scheduler_chart(scheduler.kind.value)
    if chart and scheduler.version and _is_installed(plan) and not chart.reads(scheduler.version):
        yield Finding(
            scheduler.at / "version",
            f"the chart of {plan.scheduler.title} {scheduler.version} was not read",
            label="chart not known",
            notes=(f"those of {listing(chart.read)} were",),
            help=f"write `version: {release_read(scheduler.kind.value)}`, or compare its values",
        )


@check("GPU487", "scheduler-not-told-of-openshift")
def scheduler_not_told_of_openshift(plan: Plan) -> Iterator[Finding]:
    """Argo CD is to install a release of KAI-Scheduler on OpenShift whose chart does not find out that it is there.

    ## Why
    On OpenShift KAI-Scheduler's pods need a SecurityContextConstraints, `kai-system`: they run as user 10000
    (`SetDefaultWhereNeeded` in `pkg/apis/kai/v1/global.go` of v0.16.8), which `restricted-v2` refuses outside of the
    range of their namespace. Up to 0.16 the chart makes it, and the binding to it, if it finds the definition of
    ClusterVersion in the cluster (`lookup` in `templates/rbac/scc.yaml`), and nothing else tells it. Argo CD renders
    charts without asking the cluster, so that nothing is found, and what the operator is to run does not start. From
    0.17 on there is a value `openshift`, which gpuplan writes. Flux and `helm upgrade` ask the cluster.

    ## Instead
    Install 0.17 or later. Where that cannot be, add the SecurityContextConstraints with its ClusterRole and
    ClusterRoleBinding to the folder `scheduler` by a kustomize Component, as the chart has them, and ignore this.
    """
    scheduler, chart = plan.cluster.scheduler, find_chart(plan.cluster)
    if chart is None or plan.cluster.argocd is None or plan.cluster.spec.platform is not Platform.OPENSHIFT:
        return
    if chart.facts.asks_for_openshift(chart.version):
        yield Finding(
            scheduler.at / "version",
            f"{plan.scheduler.title} {chart.version} does not start on OpenShift where Argo CD installs it",
            label="its chart asks the cluster whether it is OpenShift",
            notes=("Argo CD renders charts without a cluster, and the SecurityContextConstraints is left out",),
            related=(Label(plan.cluster.at / "platform", "needs a SecurityContextConstraints"),),
            help=f"write `version: {release_read(scheduler.kind.value)}`",
        )


@check("GPU477", "unused-scheduler-values", Severity.WARNING)
def unused_scheduler_values(plan: Plan) -> Iterator[Finding]:
    """The policy has values or a repository for the scheduler's chart, and somebody else installs it.

    ## Why
    Only the chart that gpuplan has installed reads them.

    ## Instead
    Write `install: helm`, or give the values to whoever installs the scheduler.
    """
    scheduler = plan.cluster.scheduler
    release = "" if scheduler.version else f" and `version: {release_read(scheduler.kind.value)}`"
    has_chart = find_scheduler_chart(scheduler.kind.value) is not None
    to_install = f"write `install: helm`{release} beside it, or " if has_chart else ""
    for field, value in (("values", scheduler.spec.values), ("chartRepoURL", scheduler.spec.chart_repo_url)):
        if value and not _is_installed(plan):
            yield Finding(
                (scheduler.at / field).key,
                f"`{field}` of the scheduler is read by nobody",
                label="has no effect",
                related=(Label(scheduler.at / "kind", "installed by somebody else"),),
                help=f"{to_install}remove `{field}`",
            )


def _is_installed(plan: Plan) -> bool:
    return plan.cluster.scheduler.spec.install is SchedulerInstall.HELM
