"""Admission: what the API server refuses of tenants' work, each rule said once and read by all that need it."""

from __future__ import annotations

from gpuplan.compiler.admission.policies import (
    CLAIMS_POLICY,
    DEVICES_POLICY,
    FRAMEWORKS_POLICY,
    GRACE_POLICY,
    JOBS_POLICY,
    POD_SECURITY_POLICY,
    PROJECTS_POLICY,
    RUNNING_POLICY,
    KnownRule,
    every_rule,
    holds_for,
    known_rules,
    left_out,
    level_of,
    policies,
    policy,
    rules_of,
    rules_of_queues,
    trace_policy,
)
from gpuplan.compiler.admission.running import RunningWork, running_work

__all__ = [
    "CLAIMS_POLICY",
    "DEVICES_POLICY",
    "FRAMEWORKS_POLICY",
    "GRACE_POLICY",
    "JOBS_POLICY",
    "POD_SECURITY_POLICY",
    "PROJECTS_POLICY",
    "RUNNING_POLICY",
    "KnownRule",
    "RunningWork",
    "every_rule",
    "holds_for",
    "known_rules",
    "left_out",
    "level_of",
    "policies",
    "policy",
    "rules_of",
    "rules_of_queues",
    "running_work",
    "trace_policy",
]
