"""Health checks that Argo CD lacks, as text for whoever configures it; the checks are the files in `health/`.

A check sees the object as `obj` and has Lua's basic functions and `table`, nothing more (`util/lua/lua.go` of Argo CD).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from gpuplan.manifests import HEADER, to_yaml
from gpuplan.planning.plan import Argocd

CONFIG_MAP_FILE = "argocd-cm.yaml"
OPERATOR_FILE = "argocd-health-checks.yaml"

_CONFIG_MAP = "argocd-cm"

_ABOUT_CONFIG_MAP = """\
# Nothing applies this file. It teaches Argo CD when a ClusterPolicy and an Application are healthy, so that sync waves
# wait for them:
#   kubectl -n {namespace} patch configmap {name} --type merge --patch-file {file}
"""
_ABOUT_OPERATOR = """\
# Nothing applies this file. Where OpenShift GitOps runs Argo CD, its operator writes argocd-cm from the ArgoCD
# resource: add these to the list `spec.resourceHealthChecks` there. A merge patch would replace what the list has.
"""


@cache
def checks() -> Mapping[str, str]:
    """The Lua text of each check by ``<group>_<kind>``."""
    folder = Path(__file__).with_name("health")
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.lua"))}


def config_map_patch(argocd: Argocd) -> bytes:
    """A merge patch for Argo CD's ConfigMap: it leaves all other keys alone."""
    about = _ABOUT_CONFIG_MAP.format(namespace=argocd.namespace, name=_CONFIG_MAP, file=CONFIG_MAP_FILE)
    data = {f"resource.customizations.health.{kind}": text for kind, text in checks().items()}
    return (HEADER + about + to_yaml({"data": data})).encode()


def operator_patch() -> bytes:
    """The same for the ArgoCD resource of OpenShift GitOps."""
    entries = []
    for key, text in checks().items():
        group, _, kind = key.partition("_")
        entries.append({"group": group, "kind": kind, "check": text})
    return (HEADER + _ABOUT_OPERATOR + to_yaml({"spec": {"resourceHealthChecks": entries}})).encode()
