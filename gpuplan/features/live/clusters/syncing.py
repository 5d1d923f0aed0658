"""The tool that syncs a cluster's folders: gpuplan's own Applications of Argo CD, or Kustomizations of Flux."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath
from typing import Final

from gpuplan.compiler.base.credentials import holds_credential
from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.planning.plan import Stage
from gpuplan.compiler.planning.sync_names import CONTENT, fit, folder_name, root_name, sync_name
from gpuplan.compiler.policy.models import Approval, Flux, FluxSource, Platform
from gpuplan.features.live.clusters.reader import (
    ABOUT_PROJECT,
    ARGOCD,
    FLUX,
    HELM,
    Reader,
    Spec,
    cleaned,
    differing,
    part,
)
from gpuplan.features.live.dump import Dump, Item

_IN_CLUSTER: Final = "https://kubernetes.default.svc"


def names(dump: Dump) -> Iterator[str]:
    """Yield the names of the clusters that gpuplan's objects for Argo CD or Flux are about."""
    for item in dump.of_kind(ARGOCD, "AppProject"):
        about = text(part(item.body, "spec", "description"))
        if about.startswith(ABOUT_PROJECT):
            yield about.removeprefix(ABOUT_PROJECT)
    for item in dump.of_kind(FLUX, "Kustomization"):
        *_, cluster, folder = ["", "", *text(part(item.body, "spec", "path")).split("/")]
        if folder == Stage.GPU_OPERATOR and item.name in (
            folder_name(cluster, folder),
            fit(f"gpu-subscriptions-{cluster}"),
        ):
            yield cluster


def read(reader: Reader, platform: Platform, usual: Approval) -> Spec:
    """Return the tool that syncs the cluster; ``usual`` is the approval of the operator where none is stated.

    An Argo CD or a Flux that syncs other things alone tells nothing of where the policies' output will be.
    """
    by_argocd, by_flux = argocd(reader, platform, usual), flux(reader, usual)
    if by_argocd is not None:
        for item, _ in [*_kustomizations(reader)][:1]:
            reader.say("two-tools-sync", item.at)
        return {"argocd": by_argocd}
    if by_flux is not None:
        return {"flux": by_flux}
    for tool, kind, field in _TOOLS:
        for item in reader.dump.of_kind(*kind)[:1]:
            reader.say("unknown-repository", item.at, tool=tool, field=field)
            return {}
    return {}


_TOOLS: Final = (
    ("Argo CD", (ARGOCD, "Application"), "`argocd: {repoURL: ...}`"),
    ("Flux", (FLUX, "Kustomization"), "`flux: {}`"),
)


# --- Argo CD -----------------------------------------------------------------------------------------------------


def argocd(reader: Reader, platform: Platform, usual: Approval) -> Spec | None:
    """Return the settings of gpuplan's AppProject and Applications; ``usual`` is the approval if none is stated."""
    project = next(filter(reader.is_own_project, reader.dump.of_kind(ARGOCD, "AppProject")), None)
    if project is None:
        return None
    reader.use(project)
    spec = mapping(project.body.get("spec"))
    applications = {item.name: (item, found) for item, found, _ in reader.applications()}
    operator, found = applications.get(sync_name(reader.cluster, Stage.GPU_OPERATOR), (None, {}))
    if operator is not None:
        reader.use(operator)
    repository = text(next(iter(sequence(spec.get("sourceRepos"))), ""))
    name, stages = reader.cluster, {stage.value for stage in Stage}
    folders: dict[str, str] = {stage: sync_name(name, stage) for stage in stages}
    of_git = (
        source
        for item, _, sources in reader.applications()
        for source in sources
        if source.get("repoURL") == repository and item.name == folders.get(text(source.get("path")).rpartition("/")[2])
    )
    source = next(of_git, {})
    is_automatic = operator is not None and (
        # An Application that a root syncs has no automated sync, and a digest of its content.
        "automated" in mapping(found.get("syncPolicy")) or CONTENT in operator.annotations
    )
    approval = (Approval.AUTOMATIC if is_automatic else Approval.MANUAL).value
    places = (
        {key: value}
        for place in map(mapping, sequence(spec.get("destinations")))
        for key in ("name", "server")
        if (value := text(place.get(key)))
    )
    if holds_credential(repository):  # Argo CD has passwords in a Secret of its own
        scheme, _, rest = repository.partition("://")
        reader.say("password-in-address", project.at / ("spec", "sourceRepos", 0))
        repository = f"{scheme}://{rest.partition('@')[2]}"
    return {
        "repoURL": repository,
        **differing(
            {
                "revision": (text(source.get("targetRevision")) or None, "main"),
                "path": (_out(text(source.get("path")), name), "out"),
                "namespace": (project.namespace or None, _ARGOCDS_NAMESPACE.get(platform, "argocd")),
                "project": (project.name, f"gpuplan-{name}"),
                "destination": (next(places, None), {"server": _IN_CLUSTER}),
                "labels": (cleaned(project.labels), {}),
                "root": (root_name(name) in applications, False),
                "operatorApproval": (approval if operator is not None else None, usual.value),
            }
        ),
    }


_ARGOCDS_NAMESPACE: Final = {Platform.OPENSHIFT: "openshift-gitops"}


def _out(path: str, cluster: str) -> str | None:
    """Where the output lies, by the path of a folder two levels below."""
    if not path:
        return None
    above = path.removeprefix("./").rpartition("/")[0]
    return normpath(above.removesuffix(cluster) or ".")


# --- Flux --------------------------------------------------------------------------------------------------------


def flux(reader: Reader, usual: Approval) -> Spec | None:
    """Return the settings of gpuplan's Kustomizations."""
    found = [*_kustomizations(reader)]
    if not found:
        return None
    item, folder = found[0]
    reader.use(item)
    spec = mapping(item.body.get("spec"))
    source = mapping(spec.get("sourceRef"))
    defaults = Flux.model_construct()
    usual_source = FluxSource.model_construct()
    of_source = {"kind": usual_source.kind.value, "name": usual_source.name}
    stated = {name: text(source.get(name)) or None for name in ("kind", "name", "namespace")}
    named = differing({name: (value, of_source.get(name)) for name, value in stated.items()})
    path = text(spec.get("path")).removesuffix(f"/{folder}") + "/x"
    interval = text(spec.get("interval"))
    for end in ("m0s", "h0m"):  # Go prints `10m0s`
        interval = interval[: 1 - len(end)] if interval.endswith(end) else interval
    operator = folder_name(reader.cluster, Stage.GPU_OPERATOR)
    releases = [release for release in reader.dump.of_kind(HELM, "HelmRelease") if release.name == operator]
    appliers = releases or [one for one in reader.dump.of_kind(FLUX, "Kustomization") if one.name == operator]
    is_suspended = any(part(applier.body, "spec", "suspend") is True for applier in appliers)
    approval = (Approval.MANUAL if is_suspended else Approval.AUTOMATIC).value
    return differing(
        {
            "source": (named, {}),
            "path": (_out(path, reader.cluster), defaults.path),
            "namespace": (item.namespace, defaults.namespace),
            "interval": (interval or None, defaults.interval),
            "serviceAccountName": (text(spec.get("serviceAccountName")) or None, None),
            "kubeConfigSecret": (text(part(spec, "kubeConfig", "secretRef", "name")) or None, None),
            "labels": (cleaned(item.labels), {}),
            "operatorApproval": (approval if appliers else None, usual.value),
        }
    )


def _kustomizations(reader: Reader) -> Iterator[tuple[Item, str]]:
    """Yield those of the cluster's folders, with the folder."""
    for item in reader.dump.of_kind(FLUX, "Kustomization"):
        _, found, folder = f"/{text(part(item.body, 'spec', 'path'))}".rpartition(f"/{reader.cluster}/")
        is_stage = found and folder.partition("/")[0] in (stage.value for stage in Stage)
        if is_stage and item.name == folder_name(reader.cluster, folder):
            yield item, folder
