"""Every object that no policy asks for says why it is written: in a comment, with a page that knows the object.

No policy asks for an object that comes of its Cluster alone, as `gpuplan trace` has it, or of a kind without documents.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import pytest

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.plan import Stage
from gpuplan.compiler.policy.parse import document_of
from tests.laws.acting.test_fields import PLATFORMS
from tests.laws.tracing.policies import read_policies
from tests.laws.tracing.rendered import Object, render

ROOT: Final = Path(__file__).parents[3]
WHY: Final = regex(r"# Why: [^\n.;]+; see (docs/[a-z/-]+\.md) of gpuplan\n")

ASKED_FOR: Final = frozenset(("Namespace", "RoleBinding", "PriorityClass"))
"""Kinds beside those of workloads that a document stands for: a tenant's namespaces and members, a class."""


def _page(manifest: Manifest) -> str | None:
    """The page of the comment in the second line of an object's file."""
    found = WHY.match(manifest.text, manifest.text.index("\n") + 1)
    return found[1] if found else None


def _is_asked_for(item: Object, manifest: Manifest) -> bool:
    documents = {found.kind for link in item.traced.whole if (found := document_of(link.at))}
    is_known = manifest.folder.startswith(Stage.WORKLOADS) or manifest.kind in ASKED_FOR or manifest.is_foreign
    return is_known and documents > {"Cluster"}


def _name(manifest: Manifest) -> str:
    return f"{manifest.folder}: {manifest.kind} {manifest.name}"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_object_that_no_policy_asks_for_says_why_it_is_written(platform: str) -> None:
    rendered = [(item, item.artifact) for item in render(read_policies(PLATFORMS[platform])).objects.values()]
    objects = [(item, manifest) for item, manifest in rendered if isinstance(manifest, Manifest)]

    assert objects
    assert [_name(one) for item, one in objects if not _page(one) and not _is_asked_for(item, one)] == []
    assert [_name(one) for item, one in objects if _page(one) and _is_asked_for(item, one)] == []


def test_the_page_of_a_reason_names_the_object_or_its_kind() -> None:
    rendered = [item.artifact for path in PLATFORMS.values() for item in render(read_policies(path)).objects.values()]
    pages = {(page, *_names(one)) for one in rendered if isinstance(one, Manifest) if (page := _page(one))}

    assert pages
    assert {(page, *names) for page, *names in pages if not any(name in _text(page) for name in names)} == set()


def _names(manifest: Manifest) -> tuple[str, str]:
    """By what a page knows the object: its kind, and its name or that of the policy which it binds."""
    return manifest.kind, manifest.body.get("spec", {}).get("policyName", manifest.name)


@cache
def _text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")
