"""The form of commands that need a cluster: programs, subcommands and flags that exist, and paths that are there."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

KNOWN: dict[str, tuple[str, ...]] = {
    # https://argo-cd.readthedocs.io/en/stable/user-guide/commands/argocd/
    "argocd app create": (
        "--dest-namespace", "--dest-server", "--path", "--project", "--repo", "--revision", "--sync-policy",
        "--sync-retry-limit", "--sync-retry-refresh",
    ),
    "argocd app delete": ("--cascade",),
    "argocd app diff": ("--local", "--local-repo-root", "--revision", "--server-side-generate"),
    "argocd app get": ("--refresh",),
    "argocd app list": ("--project", "-l"),
    "argocd app set": ("--sync-policy",),
    "argocd app sync": ("--dry-run", "--prune", "--resource"),
    "argocd app terminate-op": (),
    "argocd app wait": ("--health", "--sync", "--timeout"),
    "argocd repo add": ("--ssh-private-key-path", "--username"),
    "argocd app confirm-deletion": (),
    # https://git-scm.com/docs
    "git push": ("--set-upstream",),
    "git remote add": (),
    # https://fluxcd.io/flux/cmd/
    "flux diff kustomization": ("--path",),
    "flux get kustomizations": ("-A", "--watch"),
    "flux reconcile kustomization": ("--with-source",),
    "flux resume helmrelease": (),
    "flux resume kustomization": (),
    "flux suspend kustomization": (),
    # https://helm.sh/docs/helm/
    "helm get values": ("-a", "-n", "-o"),
    "helm list": ("-n",),
    # https://kubernetes.io/docs/reference/kubectl/generated/
    "kubectl annotate": ("--overwrite", "-n"),
    "kubectl apply": ("--dry-run", "--field-manager", "--force-conflicts", "--server-side", "-f", "-k", "-n"),
    "kubectl cordon": (),
    "kubectl create secret generic": ("--from-literal", "-n"),
    "kubectl debug": ("--", "--image", "-T", "-i"),
    "kubectl delete applicationset": ("--cascade", "-n"),
    "kubectl delete deployment.apps": ("-n",),
    "kubectl delete job": ("-l", "-n"),
    "kubectl delete namespace": (),
    "kubectl delete nodefeaturerule": (),
    "kubectl delete pod": ("--field-selector", "-l", "-n"),
    "kubectl delete priorityclass.scheduling.k8s.io": (),
    "kubectl describe": ("-n",),
    "kubectl diff": ("--server-side", "--force-conflicts", "-f", "-k"),
    "kubectl drain": ("--delete-emptydir-data", "--ignore-daemonsets", "--pod-selector"),
    "kubectl get": (
        *("--field-selector", "--show-labels", "--show-managed-fields", "--watch"),
        *("-A", "-L", "-l", "-n", "-o", "-w"),
    ),
    "kubectl label": ("--overwrite", "-n"),
    "kubectl logs": ("-l", "-n"),
    "kubectl port-forward": ("-n",),
    "kubectl patch": ("--patch-file", "--type", "-n", "-p"),
    "kubectl rollout status": ("-n", "--timeout"),
    "kubectl scale": ("--replicas", "-n"),
    "kubectl uncordon": (),
    "kubectl wait": ("--for", "--timeout", "-l", "-n"),
    # https://pipx.pypa.io/stable/docs/
    "pipx install": (),
}  # fmt: skip
"""Subcommands that pages may use, and the flags that they may give."""

ROOTS = ("out/", "overlays/", "policies/")


_ABOUT_APPLICATIONS = (
    "argocd app diff",
    "argocd app get",
    "argocd app sync",
    "argocd app terminate-op",
    "argocd app wait",
)
_APPLICATION = re.compile(r"gpu-[a-z0-9-]+")


def problems(command: str, folder: Path) -> list[str]:
    """What is wrong with a command: a subcommand or a flag that nobody knows, a path that is not there."""
    words = shlex.split(command, comments=True)
    name = next((" ".join(words[:count]) for count in (4, 3, 2) if " ".join(words[:count]) in KNOWN), None)
    if name is None:
        return [f"`{command}` is no known command"]
    flags = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
    unknown = [f"`{name}` has no flag `{flag}`" for flag in sorted(flags) if flag not in KNOWN[name]]
    paths = [value for word in words if (value := word.rpartition("=")[2]).startswith(ROOTS)]
    missing = [f"`{command}` names `{path}`, which does not exist" for path in paths if not (folder / path).exists()]
    unknown += [
        f"`{command}` names the Application `{word}`, which is not in out/argocd"
        for word in words[3:]
        if name in _ABOUT_APPLICATIONS and _APPLICATION.fullmatch(word) and not _is_written(word, folder)
    ]
    unbuilt = [
        f"`{path}` has no kustomization.yaml"
        for flag, path in pairwise(words)
        if flag == "-k" and not (folder / path / "kustomization.yaml").exists()
    ]
    return unknown + missing + unbuilt


def _is_written(application: str, folder: Path) -> bool:
    """Whether gpuplan has written the Application, or the ApplicationSet that makes it."""
    applications = (folder / "out/argocd").glob(f"*/**/application-{application}.yaml")
    return any(applications) or application.startswith(("gpu-namespace-", "gpu-workloads-"))
