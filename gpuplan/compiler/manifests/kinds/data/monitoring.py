"""Kinds of the Prometheus Operator."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.manifests.kinds.model import Care, Judgement, Kind

KINDS: Final = (
    Kind(
        group="monitoring.coreos.com",
        kind="PrometheusRule",
        why="Prometheus records and alerts by it; see docs/how-to/monitor-pools.md",
        source="prometheus-operator/prometheus-operator: pkg/apis/monitoring/v1/prometheusrule_types.go",
        is_namespaced=True,
        is_custom=True,
        care=Care(wave=30),
        added=Judgement.BY_FOLDER,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        immutable=(),
        outlives_policy=False,
    ),
    Kind(
        group="monitoring.coreos.com",
        kind="ServiceMonitor",
        why="Prometheus finds what it reads by it; see docs/how-to/monitor-pools.md",
        source="prometheus-operator/prometheus-operator: pkg/apis/monitoring/v1/servicemonitor_types.go",
        is_namespaced=True,
        is_custom=True,
        care=Care(wave=30),
        added=Judgement.BY_FOLDER,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        immutable=(),
        outlives_policy=False,
    ),
)
