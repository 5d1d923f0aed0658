"""When a patch of a generated object weakens what protects it, whatever the patch was."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpuplan.compiler.base.diagnostics import Severity
from gpuplan.compiler.manifests import Identity
from gpuplan.features.components.checks.patched import protection_removed

SYNC = "argocd.argoproj.io/sync-options"
FLUX = "kustomize.toolkit.fluxcd.io/prune"
SSA = "kustomize.toolkit.fluxcd.io/ssa"


def found(before: dict[str, str], after: dict[str, str], kind: str = "ConfigMap") -> list[Any]:
    old, new = ({"metadata": {"annotations": annotations}} for annotations in (before, after))
    change = None, Identity("", kind, "", "x"), old, new, lambda *route: route
    patched: Any = SimpleNamespace(changed=lambda: [change])
    return list(protection_removed.find(patched))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({}, {SYNC: "Prune=false"}),
        ({SYNC: "Prune=confirm"}, {SYNC: "Prune=confirm"}),
        ({SYNC: "Prune=confirm"}, {SYNC: "Prune=false"}),
        ({SYNC: "Prune=true"}, {}),
        ({SYNC: "Delete=confirm"}, {SYNC: " Delete=false , Prune=confirm"}),
        ({SYNC: "ServerSideApply=true"}, {SYNC: "ServerSideApply=true,Prune=false"}),
        ({SYNC: "ServerSideApply=false"}, {}),
        ({FLUX: "disabled"}, {FLUX: "disabled"}),
        ({}, {FLUX: "disabled", SSA: "merge"}),
    ],
    ids=str,
)
def test_protection_may_stay_and_grow(before: dict[str, str], after: dict[str, str]) -> None:
    assert found(before, after) == []


@pytest.mark.parametrize(
    ("before", "after", "lost", "first"),
    [
        ({SYNC: "Prune=confirm"}, {}, "`Prune=confirm`", SYNC),
        ({SYNC: "Prune=confirm"}, {SYNC: "Prune=true"}, "`Prune=confirm`", SYNC),
        ({SYNC: "Prune=false"}, {SYNC: "Prune=confirm"}, "`Prune=false`", SYNC),
        ({SYNC: "Delete=false"}, {SYNC: "Delete=confirm"}, "`Delete=false`", SYNC),
        ({SYNC: "Delete=confirm"}, {SYNC: "Prune=confirm"}, "`Delete=confirm`", SYNC),
        ({SYNC: "Prune=false,Delete=false"}, {SYNC: ""}, "`Prune=false` and `Delete=false`", SYNC),
        ({SYNC: "ServerSideApply=true"}, {SYNC: "ServerSideApply=false"}, "`ServerSideApply=true`", SYNC),
        ({FLUX: "disabled"}, {}, f"`{FLUX}: disabled`", FLUX),
        ({FLUX: "disabled"}, {FLUX: "enabled"}, f"`{FLUX}: disabled`", FLUX),
        ({SSA: "merge"}, {FLUX: "disabled"}, f"`{SSA}: merge`", SSA),
    ],
    ids=str,
)
def test_protection_that_is_lost_is_named(before: dict[str, str], after: dict[str, str], lost: str, first: str) -> None:
    [finding] = found(before, after)
    assert finding.message.endswith(f" loses its protection {lost}")
    assert finding.at == ("metadata", "annotations", first)
    assert finding.notes == ((f"the generated options are `{before[SYNC]}`",) if SYNC in before else ())


@pytest.mark.parametrize(("kind", "severity"), [("Node", Severity.ERROR), ("Namespace", None)])
def test_a_node_must_not_be_deleted(kind: str, severity: Severity | None) -> None:
    [finding] = found({SYNC: "Prune=false"}, {}, kind)
    assert finding.severity is severity
