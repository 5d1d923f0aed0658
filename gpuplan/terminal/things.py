"""The kinds of what a word names: documents of the platform, and what gpuplan knows by itself."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from gpuplan.compiler import catalog
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.pipeline import rules
from gpuplan.terminal.completions import plans
from gpuplan.terminal.options import KINDS, SCHEDULERS, cluster_names, root_of

_REVISION = regex(r"HEAD([~^@].*)?|(origin|upstream)/.+|main|master")


def find_kinds(word: str, context: click.Context) -> list[str]:
    """Return the kinds of what a word names; those of gpuplan itself are in lower case."""
    return list(_kinds(word, context)) if word else []


def model_with(profile: str) -> str:
    """Return the first GPU model that has a MIG profile; empty if there is none."""
    models = (gpu.id for gpu in catalog.load().all() if any(each.name == profile.lower() for each in gpu.profiles))
    return next(models, "")


def _kinds(word: str, context: click.Context) -> Iterator[str]:
    if word in cluster_names(context):
        yield "Cluster"
    named = [
        (kind, {each.name for each in found})
        for plan in plans(context)
        for kind, found in (
            ("Pool", plan.pools),
            ("Tenant", plan.tenants),
            ("MigLayout", plan.layouts),
            ("Workload", plan.workloads),
            ("PriorityClass", plan.priority_classes),
        )
    ]
    yield from dict.fromkeys(kind for kind, names in named if word in names)
    if catalog.load().find(word.upper()):
        yield "model"
    if model_with(word):
        yield "profile"
    if any(word.lower() in (rule.code.lower(), rule.name) for rule in rules()):
        yield "rule"
    if word.lower() in {kind.lower() for kind in KINDS} and word[:1].isupper():
        yield "kind"
    if word in SCHEDULERS:
        yield "scheduler"
    if _REVISION.fullmatch(word):
        yield "revision"
    if os.path.isfile(word) or (root_of(context) / word).is_file():  # noqa: PTH113 - as typed
        yield "file"
