"""The pages that rules and defaults name are there."""

from __future__ import annotations

import re
from pathlib import Path

from gpuplan.compiler.delivery import TOOLS
from gpuplan.compiler.planning.plan import Stage
from gpuplan.features.tracing.forward import RULES, SECTIONS, rule_source

REPOSITORY = Path(__file__).parents[3]


def test_the_page_on_rules_has_a_part_for_each_folder() -> None:
    headings = re.findall(r"(?m)^## (.*)$", (REPOSITORY / RULES).read_text())
    anchors = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}

    assert set(SECTIONS.values()) == anchors
    assert {*Stage, *TOOLS} <= SECTIONS.keys()


def test_a_list_of_files_has_a_part_of_its_own_in_any_folder() -> None:
    assert rule_source("dev/namespaces/research/kustomization.yaml").path == "kustomizationyaml"
    assert rule_source("argocd/dev/application-x.yaml").path == "argo-cd"
    assert rule_source("dev/namespaces/research/namespace-research.yaml").path == "namespaces"
