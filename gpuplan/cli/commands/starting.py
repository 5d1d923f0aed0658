"""The work of `gpuplan init`: the starter platform."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from jinja2 import Environment, StrictUndefined

from gpuplan.cli.commands.wished import pools_named, pools_of_nodes
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.repository import OVERLAYS, branch_of, find_repository
from gpuplan.compiler.documents import DiskTree, find_folders
from gpuplan.compiler.documents.filetree import Written
from gpuplan.compiler.manifests.yamltext import scalar
from gpuplan.compiler.pipeline import report_on
from gpuplan.compiler.pipeline.loading import load_tree, way_to_cluster
from gpuplan.compiler.pipeline.writing import create_all
from gpuplan.compiler.planning.plan import Pool
from gpuplan.compiler.policy.parse import document_of
from gpuplan.features.live.drafts import Draft, text_of
from gpuplan.terminal.schemas import EDITOR, GIT_ATTRIBUTES, beside_policies
from gpuplan.terminal.session import Terminal, refuse_links

_SCAFFOLD = Path(__file__).parents[1] / "scaffold"
_README = "README.md"
_CLUSTER_FOLDER = "overlays/cluster/"
_OURS = ("policies", "overlays", ".gpuplan")
"""The folders that the starter writes whole: beside other files in them it would be no starter."""
_FIRST_SYNC = """\
kubectl patch configmap argocd-cm -n argocd --type merge --patch-file out/argocd/{cluster}/argocd-cm.yaml
  argocd app create gpuplan-{cluster} \\
      --repo {url} --revision {branch} --path {path} \\
      --dest-server https://kubernetes.default.svc --dest-namespace argocd \\
      --project default --sync-policy automated --sync-retry-limit 5 --sync-retry-refresh"""
"""The commands by which Argo CD syncs a platform, as `docs/start.md` has them."""
_SYNC = "  the program that syncs out/: `argocd` or `flux`"
_USUAL = ("research=1x8xA100-80GB:time-slicing=3", "inference=1x8xA100-80GB:mig=3g.40gb+2g.20gb:2")


def init(
    terminal: Terminal,
    folder: Path,
    cluster: str,
    pools: Sequence[str],
    nodes: Sequence[str],
    *,
    kubernetes: str,
    argocd: str,
) -> None:
    if pools and nodes:
        raise GpuplanError("`--pool` and `--nodes` both say which pools there are", "leave out one of them")
    target = terminal.root / folder
    refuse_links(terminal.root, target, "name where it leads")
    there = next(path for path in (target, *target.parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        why = "you may not write there" if there.is_dir() else "it is a file"
        raise GpuplanError(f"cannot make a folder of `{there}`: {why}", "name another: `gpuplan init my-platform`")
    for name in _OURS:
        if os.path.lexists(target / name):  # a link that leads nowhere is there, too
            hint = "change the platform that is there, or name a new folder: `gpuplan init my-platform`"
            if cluster not in (known := find_folders(target, OVERLAYS)) and known:
                hint = f"to add cluster `{cluster}`, {way_to_cluster(DiskTree(target), cluster)}; else, {hint}"
            raise GpuplanError(f"`{target / name}` exists already, so nothing was written", hint)
    kept = [path for path in (_README, GIT_ATTRIBUTES, EDITOR) if os.path.lexists(target / path)]
    drafts = [*pools_named(pools if pools or nodes else _USUAL), *pools_of_nodes(terminal, nodes, cluster)]
    git = find_repository(target)
    place = {"prefix": git.prefix if git else "", "branch": branch_of(git) if git else ""}
    written = _platform(cluster, drafts, {"kubernetes": kubernetes, "repository": argocd, **place})
    beside = {path: text for path, text in beside_policies().items() if path not in kept}
    edited = {path: text for path, text in written.items() if path not in kept}
    create_all(target, edited | beside)
    notes = {
        "policies/pools.yaml": "" if nodes else "  the names of your nodes",
        f"overlays/{cluster}/cluster.yaml": "" if argocd else _SYNC,
        "policies/tenants.yaml": "  groups and quotas of your teams",
    }
    for title, paths in (("files to edit", edited), ("files for Git and editors", beside)):
        lines = (f"  {target / path}{notes.get(path, '')}\n" for path in paths)
        terminal.say(f"created {title}:\n" + "".join(lines))
    if GIT_ATTRIBUTES in kept:
        terminal.say(f"add `out/** -text` to {target / GIT_ATTRIBUTES}, so that Git changes no line ends there\n")
    steps = [
        *([] if target.resolve() == Path.cwd() else [f"cd {quote(str(target))}"]),
        *([] if git else ["git init --initial-branch main"]),
        *("gpuplan validate", "gpuplan show", "gpuplan build"),
        'git add . && git commit -m "Describe our GPUs"',
    ]
    if argocd:
        url, branch = quote(argocd), quote(place["branch"] or "main")
        push = ["git push"] if git else [f"git remote add origin {url}", f"git push --set-upstream origin {branch}"]
        path = quote(f"{place['prefix']}out/argocd/{cluster}")
        steps += [*push, _FIRST_SYNC.format(cluster=cluster, url=url, branch=branch, path=path)]
    terminal.say("next:\n" + "".join(f"  {step}\n" for step in steps))


def _platform(cluster: str, drafts: Sequence[Draft], named: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a platform with these pools by path; raise `GpuplanError` if it would have an error.

    ``named`` are Kubernetes' version, Argo CD's repository, and its branch and the way from its top, or empty texts.

    The pools are planned without tenants first: what a tenant may use is a part of what its pool has.
    """
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - not HTML
    environment.filters.update(scalar=scalar, text_of=text_of)
    given = {
        "cluster": cluster,
        **named,
        "seen": next((draft.spec for draft in drafts if draft.kind == "Cluster"), None),
        "drafts": [draft for draft in drafts if draft.kind != "Cluster"],
    }
    templates = {
        path.relative_to(_SCAFFOLD).as_posix(): environment.from_string(path.read_text(encoding="utf-8"))
        for path in sorted(_SCAFFOLD.rglob("*"))
        if path.is_file()
    }
    pools: dict[str, Pool] = {}
    files: dict[str, str] = {}
    for _ in ("pools", "tenants"):
        files = {
            path.replace(_CLUSTER_FOLDER, f"overlays/{cluster}/"): template.render(given, pools=pools)
            for path, template in templates.items()
        }
        report = report_on(load_tree(Written(None, {path: text.encode() for path, text in files.items()}), (cluster,)))
        for item in report.diagnostics:
            if item.is_error:
                document = document_of(item.finding.at)
                where = f"{document.kind} `{document.name}`" if document else "the platform"
                hint = item.shown.help or f"`gpuplan explain {item.code}` says more"
                raise GpuplanError(f"{where} would have an error: {item.shown.message}", hint)
        pools = {pool.name: pool for pool in report.plans[0].pools}
    return files
