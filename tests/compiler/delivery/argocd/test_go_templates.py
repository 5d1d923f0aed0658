"""What a policy says comes out of an ApplicationSet's template as it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.delivery.argocd import literal
from gpuplan.compiler.pipeline import build
from tests.compiler.delivery.argocd.platform import Platform

ACTION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def rendered(text: str) -> str:
    """As Go's template engine does for actions that are one literal text; any other would be the policy's."""
    return ACTION.sub(lambda action: {'"{{"': "{{"}[action[1]], text)


@pytest.mark.parametrize(
    "text",
    ["main", "{{ .values.x }}", "{{{", "{{{{", "a}}b{{c", "{{-", "{{/* */}}", '{{"{{"}}', "{ {", "}}", "{{`", "{"],
)
def test_a_literal_comes_out_as_it_is(text: str) -> None:
    assert rendered(literal(text)) == text
    assert literal({text: [text, 1]}) == {literal(text): [literal(text), 1]}


def actions(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {found for item in value.items() for part in item for found in actions(part)}
    if isinstance(value, list):
        return {found for part in value for found in actions(part)}
    return set(ACTION.findall(value)) if isinstance(value, str) else set()


def test_only_our_own_actions_are_in_a_template(tmp_path: Path) -> None:
    """A branch may have braces in its name, by Git's rules."""
    platform = Platform(tmp_path)
    argocd = {"repoURL": "https://git.example.com/gpu.git", "revision": "a/{{.x}}"}
    platform.change("prod", argocd=argocd)
    tree = build(tmp_path, ["prod"], kustomize="off").tree
    sets = [yaml.safe_load(data) for path, data in tree.items() if "/applicationset-" in path]
    assert sets
    for found in sets:
        template = found["spec"]["template"]
        assert actions(template) == {".path.basename", ".path.path", '"{{"'}
        assert rendered(template["spec"]["source"]["targetRevision"]) == "a/{{.x}}"
