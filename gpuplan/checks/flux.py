"""Checks on delivery by Flux (GPU660-664)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.checks.node_labels import key_fault, value_fault
from gpuplan.checks.registry import check
from gpuplan.checks.windows import duration_seconds
from gpuplan.diagnostics import Finding, Label, Severity
from gpuplan.planning.plan import Plan
from gpuplan.policy.models import Approval, Install

# --- Windows -----------------------------------------------------------------------------------------------------


@check("GPU660", "windows-beyond-flux", Severity.WARNING)
def windows_beyond_flux(plan: Plan) -> Iterator[Finding]:
    """A pool's windows are not kept: Flux knows none.

    ## Why
    Argo CD has sync windows, Flux applies a change as soon as it sees it. A pool with `approval: automatic` would be
    repartitioned at any time of the day, with pods on its nodes. With `approval: manual` nothing changes until a person
    resumes the pool's Kustomization, and it is for that person to look at the clock; the finding is then a note.

    ## Instead
    Write `approval: manual`, and resume the Kustomization within the window. Where a change must come by itself, have
    something else resume and suspend it at these times, such as a CronJob, and ignore the finding.
    """
    if plan.cluster.flux is None:
        return
    for pool in plan.pools:
        if pool.spec.disruption.windows:
            is_automatic = pool.spec.disruption.approval is Approval.AUTOMATIC
            yield Finding(
                (pool.at / "disruption" / "windows").key,
                f"Flux does not keep the windows of pool `{pool.name}`"
                + (": a change is applied at any time" if is_automatic else ""),
                label="changes come at any time" if is_automatic else "for whoever resumes the Kustomization",
                related=(Label(plan.cluster.flux.at.key, "Flux syncs the cluster"),),
                help="write `approval: manual`" if is_automatic else "resume it within the window",
                severity=None if is_automatic else Severity.NOTE,
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
    if flux is None:
        return
    if flux.path.startswith("/") or flux.path.split("/")[0] == "..":
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
    if flux is None:
        return
    seconds = duration_seconds(flux.spec.interval)
    if seconds < _SHORTEST:
        yield Finding(
            flux.at / "interval",
            f"an interval of `{flux.spec.interval}` is too short",
            label="a minute at least" if seconds else "never again",
            help="write `10m`",
            severity=None if seconds else Severity.ERROR,
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
    operator = plan.cluster.gpu_operator
    if plan.cluster.flux is None or operator.spec.install is not Install.HELM:
        return
    scheme, separator, rest = operator.spec.chart_repo_url.rpartition("://")
    if not rest or scheme not in ("https", "http", "oci"):
        yield Finding(
            operator.at / "chartRepoURL",
            f"Flux cannot get a chart from `{operator.spec.chart_repo_url}`",
            label=f"`{scheme}://` is none of `https://`, `http://` and `oci://`" if separator else "no scheme",
            help=f"write `https://{rest}`, or `oci://{rest}` for a registry" if rest else "write the whole address",
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
    if plan.cluster.flux is None:
        return
    for key, value in plan.cluster.flux.spec.labels.items():
        at = plan.cluster.flux.at / "labels" / key
        if fault := key_fault(key):
            yield Finding(
                at.key, f"`{key}` is not a label key: {fault}", label=fault, help="such as `example.com/team`"
            )
        elif fault := value_fault(value):
            yield Finding(at, f"`{value}` is not a label value: {fault}", label=fault, help=_VALUE_HELP)


_VALUE_HELP = "a value has letters, digits, `-`, `_` and `.`, with a letter or a digit at both ends"
