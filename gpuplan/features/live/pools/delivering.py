"""When a pool's nodes may be disturbed, as Argo CD or Flux was told, and the guard that Argo CD runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.base.plain import inside, mapping, sequence, text, value_at
from gpuplan.compiler.planning.plan import POOL_LABEL, Stage
from gpuplan.compiler.planning.sync_names import REVISION
from gpuplan.features.live.dump import Dump, Item

_ARGOCD: Final = "argoproj.io"
_GUARD: Final = "gpuplan-guard"
_NAME_LABEL: Final = "app.kubernetes.io/name"


def read_disruption(dump: Dump, pool: str) -> dict[str, Any]:
    """The `disruption` of a pool, so far as it is not the usual one. The path says which pool an object applies."""
    folder = f"/{Stage.PARTITIONS}/{pool}"
    found: dict[str, Any] = {}
    for item in dump.of_kind(_ARGOCD, "Application"):
        if text(value_at(item.body, ("spec", "source", "path"))).endswith(folder):
            is_ordered = REVISION in item.annotations  # a root starts its syncs
            if is_ordered or isinstance(value_at(item.body, ("spec", "syncPolicy", "automated")), Mapping):
                found["approval"] = "automatic"
            if windows := [*_windows(dump, item)]:
                found["windows"] = windows
    for item in dump.of_kind("kustomize.toolkit.fluxcd.io", "Kustomization"):
        is_open = value_at(item.body, ("spec", "suspend")) is not True
        if text(value_at(item.body, ("spec", "path"))).endswith(folder) and is_open:
            found["approval"] = "automatic"
    return found | _guard(dump, pool)


def _windows(dump: Dump, application: Item) -> Iterator[dict[str, Any]]:
    """Those that are for this Application alone; others are the project's own."""
    name = text(value_at(application.body, ("spec", "project")))
    for project in dump.of_kind(_ARGOCD, "AppProject"):
        if project.name != name:
            continue
        for window in map(mapping, sequence(inside(project.body, "spec").get("syncWindows"))):
            if window.get("applications") == [application.name] and window.get("kind") == "allow":
                zone = text(window.get("timeZone")) or "UTC"
                times = {"schedule": text(window.get("schedule")), "duration": text(window.get("duration"))}
                yield times | ({"timeZone": zone} if zone != "UTC" else {})


def _guard(dump: Dump, pool: str) -> dict[str, Any]:
    for job in dump.of_kind("batch", "Job"):
        if job.labels.get(_NAME_LABEL) != _GUARD or job.labels.get(POOL_LABEL) != pool:
            continue
        route = ("spec", "template", "spec", "containers", 0, "image")
        image, seconds = text(value_at(job.body, route)), _timeout(dump, pool)
        timeout = {"timeout": f"{seconds}s" if seconds % 60 else f"{seconds // 60}m"} if seconds else {}
        return {"guard": {"image": image, **timeout}} if image else {}
    return {}


def _timeout(dump: Dump, pool: str) -> int:
    for item in dump.of_kind("", "ConfigMap"):
        if item.labels.get(_NAME_LABEL) == _GUARD and item.labels.get(POOL_LABEL) == pool:
            try:
                settings = mapping(json.loads(text(inside(item.body, "data").get("settings.json"))))
            except (ValueError, RecursionError):
                continue
            seconds = settings.get("timeoutSeconds")
            return seconds if type(seconds) is int and seconds > 0 else 0
    return 0
