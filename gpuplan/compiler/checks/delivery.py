"""Checks on who syncs a cluster, and on what Argo CD and Flux are told (GPU650-656, GPU658-664, GPU676-679)."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath
from urllib.parse import urlsplit

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Path, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.checks.node_labels import key_fault, label_faults
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.planning.apis import find_chart
from gpuplan.compiler.planning.appliers import find_applier_to_nodes
from gpuplan.compiler.planning.plan import Plan, Stage
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.sync_names import namespace_name, sync_name
from gpuplan.compiler.policy.models import Approval, Destination, Install

# --- Who syncs ---------------------------------------------------------------------------------------------------


@check("GPU650", "two-tools-sync")
def two_tools_sync(plan: Plan) -> Iterator[Finding]:
    """A cluster is synced both by Argo CD and by Flux.

    ## Why
    Each of them writes what it finds in Git, removes what it does not find, and undoes what the other has changed.
    Their annotations on objects differ too: what Argo CD asks a person about, Flux must leave alone.

    ## Instead
    Keep one of `argocd` and `flux`. `argocd: null` in an overlay removes what the bases say.
    """
    cluster = plan.cluster
    if cluster.argocd is not None and cluster.flux is not None:
        yield Finding(
            cluster.flux.at.key,
            "Argo CD and Flux both sync the cluster",
            label="one tool too many",
            related=(Label(cluster.argocd.at.key, "the other one"),),
            help="remove `argocd` or `flux`",
        )


# --- The repository ----------------------------------------------------------------------------------------------

_IN_PATTERNS = regex(r"^!|[*?\\{}\[\]]")
"""The signs by which the AppProject takes a text for a pattern (`globMatch` in Argo CD's `app_project_types.go`)."""

_SCP_LIKE = regex(r"[^/:@\s]+@[^/:@\s]+:[^\s]+")
_WITH_BRANCH = regex(r"((?:\w+://[^/]+/|[^/]+:(?!/))[^#?]+?)(?:(?<=\.git)@|#|\?ref=)([\w./-]+)")
"""An address as pip, npm and kustomize write it: with a branch or a tag behind it."""
_SCHEMES = frozenset(("https", "http", "ssh", "git"))


@check("GPU651", "repository-not-matched")
def repository_not_matched(plan: Plan) -> Iterator[Finding]:
    """The address of the repository is one that Argo CD cannot read, or cannot match with its credentials.

    ## Why
    Argo CD finds the credentials of a repository by its address, and so does the AppProject that allows it. It compares
    addresses in lower case and without `.git` at the end, `git@host:path` like `ssh://git@host/path`, and as they are
    otherwise (`NormalizeGitURL` in its `util/git/git.go`): one with a `/` at the end is another repository. What
    follows `?`, `#` or `.git@` is part of the name, and no branch. A password in an address is in Git for everybody to
    read. With `*` the AppProject would allow other repositories too, and with `[` or `{` not this one, which holds for
    the repository of a chart as well.

    ## Instead
    Write the address as `argocd repo list` shows it, such as `https://git.example.com/platform/gpu.git` or
    `git@git.example.com:platform/gpu.git`, and give Argo CD the credentials in a Secret of its own.
    """
    argocd = plan.cluster.argocd
    if argocd is None:
        return
    fault = _fault(argocd.spec.repo_url) or ("it ends in `/`" if argocd.spec.repo_url.endswith("/") else "")
    help_ = "write it as `argocd repo list` shows it, such as `https://git.example.com/platform/gpu.git`"
    if (named := _WITH_BRANCH.fullmatch(argocd.spec.repo_url)) and not _fault(named[1]):
        fault = "a branch is no part of it"
        help_ = f"write `{named[1]}`, and `revision: {named[2]}` in the Cluster"
    if fault:
        message = f"Argo CD cannot use this address of the repository: {fault}"
        yield Finding(argocd.at / "repoURL", message, label=fault, help=help_)
    for at, address in _chart_addresses(plan):
        if fault := _pattern_fault(address):
            yield Finding(
                at,
                f"Argo CD cannot use this address of the chart's repository: {fault}",
                label=fault,
                help="write it such as `https://charts.example.com/nvidia`, or `oci://registry.example.com/nvidia`",
            )


def _chart_addresses(plan: Plan) -> Iterator[tuple[Origin, str]]:
    """Yield the repositories of charts that are installed, as the policy has them."""
    operator, chart = plan.cluster.gpu_operator, find_chart(plan.cluster)
    if operator.spec.install is Install.HELM:
        yield operator.at / "chartRepoURL", operator.spec.chart_repo_url
    if chart:
        yield plan.cluster.scheduler.at / "chartRepoURL", chart.repository


def _fault(address: str) -> str:
    if any(character.isspace() for character in address):
        return "it has blanks"
    if _SCP_LIKE.fullmatch(address):
        return _pattern_fault(address)
    try:
        parts = urlsplit(address)
        has_password = parts.password is not None
        _ = parts.port
    except ValueError:
        return "it is not a URL"
    if parts.scheme not in _SCHEMES or not parts.hostname:
        return "it is not that of a Git server"
    if has_password:
        return "it holds a password"
    if parts.query or parts.fragment:
        return "a query or a fragment is part of the name"
    return _pattern_fault(address)


def _pattern_fault(text: str) -> str:
    match = _IN_PATTERNS.search(text)
    return f"`{match[0]}` makes it a pattern" if match else ""


@check("GPU652", "output-outside-repository")
def output_outside_repository(plan: Plan) -> Iterator[Finding]:
    """`argocd.path` does not lie in the repository.

    ## Why
    Argo CD refuses a path that begins with `/`, and one that leads out of the repository. With a `*` in it the
    ApplicationSet would find the namespaces of other folders too, for other clusters.

    ## Instead
    Write where `out/` lies from the repository's root, such as `out` or `clusters/gpu/out`.
    """
    argocd = plan.cluster.argocd
    fault = _pattern_fault(argocd.path) if argocd else ""
    if argocd and normpath(argocd.path).endswith(f"out/{plan.cluster.name}"):
        yield Finding(
            argocd.at / "path",
            f"`{argocd.path}` is the folder of one cluster, and Applications look for `{plan.cluster.name}` in it",
            label="with the cluster's name",
            help=f"write `{normpath(argocd.path).removesuffix(f'/{plan.cluster.name}')}`: the cluster's folder follows",
        )
    if argocd and (fault or _leaves_its_root(argocd.path)):
        yield Finding(
            argocd.at / "path",
            f"`{argocd.path}` is not a path in the repository{f': {fault}' if fault else ''}",
            label=fault or "leads out of the repository",
            help="write it from the repository's root: `out`",
        )


def _leaves_its_root(path: str) -> bool:
    return path.startswith("/") or path.split("/", maxsplit=1)[0] == ".."


_COMMIT = regex(r"[0-9a-f]{40}|[0-9a-f]{64}")


@check("GPU653", "revision-is-a-commit")
def revision_is_a_commit(plan: Plan) -> Iterator[Finding]:
    """`argocd.revision` is a commit, which cannot be the one that holds it.

    ## Why
    The Applications are in the same repository as the folders that they name. A commit's name depends on its content,
    so what is written today can name yesterday's folders at best: a change would be synced one commit late, or never.

    ## Instead
    Write a branch, or a tag that is moved to what is to be synced.
    """
    argocd = plan.cluster.argocd
    if argocd is not None and _COMMIT.fullmatch(argocd.spec.revision.lower()):
        yield Finding(
            argocd.at / "revision",
            "a commit cannot name itself: Argo CD would sync an older one for ever",
            label="a commit",
            help="write a branch or a tag",
        )


# --- The destination ---------------------------------------------------------------------------------------------


@check("GPU654", "destination-is-no-cluster")
def destination_is_no_cluster(plan: Plan) -> Iterator[Finding]:
    """`argocd.destination` does not say the address of an API server, or one cluster's name.

    ## Why
    Argo CD finds a cluster by the exact address that it was added with, or by its name. What is no address is most
    often the name, and every Application would say that there is no such cluster. The AppProject takes both for
    patterns: with a `*` it would allow other clusters too, and an IPv6 address in brackets fits itself no more.

    ## Instead
    Write the address that `argocd cluster list` shows, or the name as `destination: {name: ...}`.
    """
    argocd = plan.cluster.argocd
    if argocd and (fault := _destination_fault(argocd.spec.destination)):
        field, message, label, help_ = fault
        yield Finding(argocd.at / "destination" / field, message, label=label, help=help_)


def _destination_fault(destination: Destination) -> tuple[Path, str, str, str] | None:
    """Return the field at fault, the message, the label and the help."""
    name, server = destination.name, destination.server
    fault = _pattern_fault(name or server or "")
    shown = "write the name that `argocd cluster list` shows"
    if name:
        return (("name",), f"`{name}` is not the name of one cluster: {fault}", fault, shown) if fault else None
    if not server:
        return (), "the destination is empty", "nothing here", shown
    if not _is_server(server):
        name = "..." if set(".:/") & set(server) else server
        help_ = f"write `https://...` as `argocd cluster list` shows it, or `destination: {{name: {name}}}`"
        return ("server",), f"`{server}` is not the address of an API server", "not an address", help_
    help_ = "write the cluster's name: `destination: {name: ...}`"
    message = f"the AppProject would not take `{server}` as it is: {fault}"
    return (("server",), message, fault, help_) if fault else None


def _is_server(address: str) -> bool:
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return False
    is_plain = not parts.query and not parts.fragment and "@" not in parts.netloc
    return parts.scheme in ("https", "http") and bool(parts.hostname) and is_plain


# --- Names and labels --------------------------------------------------------------------------------------------


@check("GPU655", "default-project")
def default_project(plan: Plan) -> Iterator[Finding]:
    """The AppProject that gpuplan writes is called `default`.

    ## Why
    Argo CD has a project of that name, which every Application belongs to that names no other. gpuplan's would replace
    it, with lists of what GPU clusters need: all other Applications would be refused.

    ## Instead
    Leave `project` out, and it is called `gpuplan-<cluster>`; or give it a name that nothing else has.
    """
    argocd = plan.cluster.argocd
    if argocd is not None and argocd.project == "default":
        yield Finding(
            argocd.at / "project",
            "the project `default` is Argo CD's own",
            label="every other Application would be refused",
            help=f"remove `project`: it is then called `gpuplan-{plan.cluster.name}`",
        )


@check("GPU676", "root-without-order", Severity.WARNING)
def root_without_order(plan: Plan) -> Iterator[Finding]:
    """A root Application has nothing to sync in order.

    ## Why
    A root starts the syncs of pools when the GPU Operator is healthy with its new files. It does so for what is synced
    by itself: with `approval: manual`, the default of pools, a person starts a sync and chooses the order, and a pool
    with windows is synced when one opens. Where a person starts the operator's sync no pool's is in order behind it.
    With `nodeLabels: external` Argo CD syncs no pool's nodes.

    ## Instead
    Leave `root` out; `gpuplan diff` says what a person syncs first. Or let Argo CD sync pools: `approval: automatic`
    without windows, where no guard is needed, and `operatorApproval: automatic`.
    """
    argocd = plan.cluster.argocd
    if argocd is None or not argocd.spec.root:
        return
    if any(applier and applier.root for applier in (find_applier_to_nodes(plan, pool) for pool in plan.pools)):
        return
    is_operator = argocd.operator_approval is Approval.MANUAL
    yield Finding(
        argocd.at / "root",
        "the root has nothing to sync in order",
        label="a person starts the GPU Operator's sync" if is_operator else "no pool is synced by itself at any time",
        help="remove `root`: a person chooses the order, as `gpuplan diff` says it",
    )


@check("GPU678", "shared-cluster-policy", Severity.WARNING)
def shared_cluster_policy(plan: Plan) -> Iterator[Finding]:
    """Argo CD is to apply a part of a ClusterPolicy that another Application may own.

    ## Why
    Where the GPU Operator itself is installed by Argo CD, its ClusterPolicy carries that Application's tracking id. The
    Application that gpuplan writes holds a part of the same object, with `FailOnSharedResource=true`: Argo CD then
    refuses the whole sync before it applies anything (`controller/state.go` and `controller/sync.go` there), and the
    ConfigMaps never arrive, while labels of nodes name what is in them. Without that option it would be worse: both
    Applications apply as `argocd-controller`, so that each takes the other's fields away. gpuplan does not see who
    owns the ClusterPolicy.

    ## Instead
    Write `clusterPolicyPatch: snippet`. gpuplan then has ConfigMaps applied and nothing else, and writes what the owner
    is to merge beside them, with a command that says whether it is. Where no Application of Argo CD owns the
    ClusterPolicy, write `clusterPolicyPatch: applied`.
    """
    operator = plan.cluster.gpu_operator
    is_stated = "cluster_policy_patch" in operator.spec.model_fields_set
    if operator.spec.install is Install.EXTERNAL and plan.cluster.argocd is not None and not is_stated:
        yield Finding(
            operator.at / "install",
            f"Argo CD may refuse to sync `{sync_name(plan.cluster.name, Stage.GPU_OPERATOR)}`: it holds a part of the "
            f"ClusterPolicy `{operator.cluster_policy}`",
            label="somebody else owns it",
            related=(Label(plan.cluster.argocd.at.key, "Argo CD syncs the cluster"),),
            help="write `clusterPolicyPatch: snippet` where an Application of Argo CD owns it, else `applied`",
        )


@check("GPU679", "labels-before-the-owner", ignorable=False)
def labels_before_the_owner(plan: Plan) -> Iterator[Finding]:
    """Argo CD labels nodes by itself, and a person is to merge what the labels name.

    ## Why
    With `clusterPolicyPatch: snippet` the operator learns of a new ConfigMap when the ClusterPolicy's owner has
    merged its name. With `approval: automatic` Argo CD labels a pool's nodes as soon as the commit is there. Labels
    that name what no mounted file has make the MIG manager call the node `failed` for good, and nodes publish no
    GPUs when their device plugin next starts, or from operator v26.3 on GPUs as if nothing shared or divided them.
    Nothing in Argo CD waits for another owner; Flux waits, by the health check that gpuplan writes.

    ## Instead
    Leave `approval` at `manual`: sync the pool when the command in the snippet says that it is merged.
    """
    if plan.cluster.argocd is None or not plan.cluster.gpu_operator.is_merged_by_owner:
        return
    for pool in plan.pools:
        applier = find_applier_to_nodes(plan, pool)
        if applier is not None and applier.is_automatic:
            yield Finding(
                pool.at / "disruption" / "approval",
                f"labels of pool `{pool.name}` may name what the ClusterPolicy's owner has not merged",
                label="Argo CD does not wait for it",
                related=(Label(plan.cluster.gpu_operator.at / "clusterPolicyPatch", "its owner merges it"),),
                help="write `approval: manual`, and sync the pool when the snippet's command says that it is merged",
            )


_OWN_PREFIX = "argocd.argoproj.io/"


@check("GPU656", "invalid-argocd-label")
def invalid_argocd_label(plan: Plan) -> Iterator[Finding]:
    """A label for Argo CD's objects has a form that Kubernetes does not take, or is Argo CD's own.

    ## Why
    Keys and values have the forms of all labels: the API server refuses the object for one that has another. Labels
    under `argocd.argoproj.io/` are how Argo CD tells its own Secrets and its instances apart.

    ## Instead
    Correct the key or the value as the finding says.
    """
    argocd = plan.cluster.argocd
    if argocd is None:
        return
    at = argocd.at / "labels"
    own = [key for key in argocd.spec.labels if key.startswith(_OWN_PREFIX) and not key_fault(key)]
    for key in own:
        yield Finding((at / key).key, f"the label `{key}` is Argo CD's own", label="not yours", help="remove it")
    yield from label_faults(at, {key: value for key, value in argocd.spec.labels.items() if key not in own})


_LONGEST_LABEL = 63


@check("GPU658", "long-application-name", Severity.WARNING)
def long_application_name(plan: Plan) -> Iterator[Finding]:
    """The name of an Application is longer than a label's value may be.

    ## Why
    An Application's own name may have 253 characters. But an Argo CD that is told to track objects by label, as all did
    by default before v3.0, writes the name on each object as the label `app.kubernetes.io/instance`, and a value has 63
    characters: every sync of that Application would fail.

    ## Instead
    Shorten the cluster's name, the pool's or the namespace's, by as many characters as the finding says. Where Argo CD
    tracks by annotation (`application.resourceTrackingMethod: annotation`), ignore the finding.
    """
    if plan.cluster.argocd is None:
        return
    cluster = plan.cluster.name
    names = [(sync_name(cluster, f"{Stage.PARTITIONS}/{pool.name}"), name_of(pool.at), "pool") for pool in plan.pools]
    names += (
        (namespace_name(cluster, namespace), tenant.at / "namespaces" / index, "namespace")
        for tenant in plan.tenants
        for index, namespace in enumerate(tenant.spec.namespaces)
    )
    for name, at, kind in names:
        if (extra := len(name) - _LONGEST_LABEL) > 0:
            yield Finding(
                at,
                f"the name of the Application `{name}` has {len(name)} characters",
                label=f"{extra} more than a label's value may have",
                help=f"shorten the name of the {kind} or of the cluster by {extra}",
            )


# --- Settings ----------------------------------------------------------------------------------------------------


@check("GPU661", "flux-path-outside-source")
def flux_path_outside_source(plan: Plan) -> Iterator[Finding]:
    """The path of `out/` does not lie in the source.

    ## Why
    The path is relative to the source's root. Flux takes the first `/` off an absolute one and does not follow `..` out
    of the source, without a word: it looks in another folder than the one that is written, and most likely finds none.

    ## Instead
    Write the path as it is in the repository: `out`, or `platform/gpu/out`.
    """
    flux = plan.cluster.flux
    if flux and _leaves_its_root(flux.path):
        inside = "/".join(part for part in flux.path.split("/") if part not in ("", ".."))
        yield Finding(
            flux.at / "path",
            f"`{flux.path}` does not lie in the source",
            label="absolute" if flux.path.startswith("/") else "leaves the source",
            help=f"write `{inside or 'out'}`",
        )


_SHORTEST = 60


@check("GPU662", "flux-interval-too-short", Severity.WARNING)
def flux_interval_too_short(plan: Plan) -> Iterator[Finding]:
    """Flux would compare the cluster with the source more often than it should, or not at all.

    ## Why
    A change in the source is applied at once, whatever the interval. The interval is for what somebody changed in the
    cluster: each time, Flux builds every folder of the cluster and has the API server try every object. Its
    documentation wants at least a minute. At an interval of zero it never compares again, which is an error.

    ## Instead
    Write `10m`, or a minute at least.
    """
    flux = plan.cluster.flux
    if flux and (interval := seconds(flux.spec.interval)) < _SHORTEST:
        yield Finding(
            flux.at / "interval",
            f"an interval of `{flux.spec.interval}` is too short",
            label="a minute at least" if interval else "never again",
            help="write `10m`",
            severity=None if interval else Severity.ERROR,
        )


@check("GPU663", "chart-repository-beyond-flux")
def chart_repository_beyond_flux(plan: Plan) -> Iterator[Finding]:
    """Flux cannot get a chart from this address.

    ## Why
    A HelmRepository takes addresses that begin with `https://`, `http://` or, for an OCI registry, `oci://`. The API
    server refuses any other, among them a registry without a scheme, as Argo CD writes it.

    ## Instead
    Write the scheme: `oci://registry.example.com/charts`.
    """
    for at, address in _chart_addresses(plan) if plan.cluster.flux else ():
        if "://" not in address:
            yield Finding(
                at,
                f"Flux cannot get a chart from `{address}`",
                label="no scheme",
                help=f"write `https://{address}`, or `oci://{address}` for a registry",
            )


@check("GPU664", "invalid-flux-label")
def invalid_flux_label(plan: Plan) -> Iterator[Finding]:
    """A label for Flux's objects has a form that Kubernetes does not take.

    ## Why
    The labels are written on every Kustomization of the cluster, and the API server refuses an object for one bad
    label: nothing of the cluster would be synced.

    ## Instead
    Correct the key or the value as the finding says.
    """
    if flux := plan.cluster.flux:
        value_help = "a value has letters, digits, `-`, `_` and `.`, with a letter or a digit at both ends"
        yield from label_faults(flux.at / "labels", flux.spec.labels, "such as `example.com/team`", value_help)
