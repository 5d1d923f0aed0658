"""Of every word in the tables: a field or a value by another program's word is answered with gpuplan's, and with all
that was written.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from gpuplan.compiler.documents import read_text
from gpuplan.compiler.policy import parse
from gpuplan.compiler.policy.data.elsewhere import CALLED
from gpuplan.compiler.policy.data.values import KINDS_OF_POLICIES, WORDS
from gpuplan.compiler.policy.fields import document_models, nested_model
from gpuplan.compiler.policy.homes import named, remedy_for, shown
from gpuplan.compiler.policy.marks import models_in, types_in
from gpuplan.compiler.policy.models import KINDS
from gpuplan.compiler.policy.shapes import as_line, as_meant
from gpuplan.compiler.policy.turns import turn
from tests.compiler.policy.test_slips import a_value, answers, fields
from tests.every import every


def models() -> dict[str, type[BaseModel]]:
    """The models of all mappings of the language, by their names."""
    found: dict[str, type[BaseModel]] = {}
    pending: list[type[BaseModel]] = [*document_models().values()]
    while pending:
        model = pending.pop()
        if model.__name__ not in found:
            found[model.__name__] = model
            pending += [inner for field in model.model_fields.values() for inner in models_in(field.annotation)]
    return found


@every(sorted(CALLED))
def test_words_stand_for_fields_that_exist_and_for_one_each(model: str) -> None:
    known = named(models()[model])
    words = [word for names in CALLED[model].values() for word in names.split()]

    assert {*CALLED[model]} <= {*known}
    assert len(words) == len({*words})
    assert not {*words} & {*known}


@every(KINDS)
def test_a_field_by_another_word_is_told_its_name(kind: str) -> None:
    missed = []
    for path, field in fields(kind):
        parent = nested_model(KINDS[kind], path[:-1])
        for word in CALLED.get(parent.__name__, {}).get(str(path[-1]), "").split() if parent else ():
            value = a_value(field.annotation)
            place = (*path[:-1], word)
            if remedy_for(place) or (parent and turn(parent, word, {word: value})):
                continue
            answer = answers(kind, place, value)
            if f"`{path[-1]}" not in answer or "leave" in answer:
                missed.append(f"{shown(place)}: {answer}")
    assert missed == []


@every(KINDS)
def test_no_everyday_word_is_sent_to_a_far_mapping_that_nobody_wrote(kind: str) -> None:
    words = {str(path[-1]): a_value(field.annotation) for path, field in fields(kind) if str(path[-1]).islower()}
    sent = []
    for path, _ in fields(kind):
        inner = nested_model(KINDS[kind], path)
        for word in words if inner else ():
            if inner and word in named(inner):
                continue
            into = re.search(r"into `([^`]+)`", answers(kind, (*path, word), words[word]))
            home = re.sub(r"\[[0-9]+\]", "", into[1]) if into else "spec"
            around = re.sub(r"\[[0-9]+\]", "", shown(path))
            if not (around.startswith(home) or home.rpartition(".")[0] == around):
                sent.append(f"{around}.{word} is sent into {home}")
    assert sent == []


@every(sorted(WORDS), name=str)
def test_a_word_of_another_program_is_told_ours(told: tuple[str, str]) -> None:
    field, word = told
    found = [
        (kind, path)
        for kind in KINDS
        for path, info in fields(kind)
        if path[-1] == field and word in [str(item) for item in values_of(info.annotation)]
    ]
    for kind, path in found:
        for theirs in WORDS[told].split():
            if theirs not in values_of(dict(fields(kind))[path].annotation):
                assert as_meant(KINDS[kind], path, theirs) == word


def values_of(annotation: object) -> list[str]:
    enums = [part for part in types_in(annotation) if isinstance(part, type) and issubclass(part, Enum)]
    return [str(item.value) for part in enums for item in part] + [
        str(item) for part in types_in(annotation) for item in get_args(part) if isinstance(item, str)
    ]


@pytest.mark.parametrize(
    ("kind", "place", "value", "meant"),
    [
        ("Tenant", "spec.namespaces", [{"name": "a"}, {"name": "b"}], ["a", "b"]),
        ("Tenant", "spec.members", {"groups": ["a"], "users": ["b"]}, [{"group": "a"}, {"user": "b"}]),
        ("Tenant", "spec.quotas", "a=36,b=2", [{"pool": "a", "guaranteed": 36}, {"pool": "b", "guaranteed": 2}]),
        ("Workload", "spec.image", {"repository": "a/b", "tag": "1.0"}, "a/b:1.0"),
        ("Workload", "spec.image", {"registry": "r.example.com", "repository": "a/b"}, "r.example.com/a/b"),
        ("Workload", "spec.args", {"model": "/a", "v": None}, ["--model", "/a", "-v"]),
        ("Workload", "spec.inference.canary.weight", "10%", 10),
        ("Workload", "spec.training.checkpoint", "500Gi", {"size": "500Gi"}),
        ("Cluster", "spec.gpuOperator.version", "26.7", "v26.7.0"),
        ("Cluster", "spec.gpuOperator.values", "a:\n  b: 1\n", {"a": {"b": 1}}),
        ("Cluster", "spec.gpuOperator.nfd", {"enabled": False}, False),
        ("Cluster", "spec.gateway", "infra/public", {"name": "public", "namespace": "infra"}),
        ("Cluster", "spec.argocd.destination", "https://10.0.0.1:6443", {"server": "https://10.0.0.1:6443"}),
        ("Cluster", "spec.admission.gracePeriod", 60, "60s"),
        ("Cluster", "spec.nodeLabels", "node-feature-discovery", "nfd"),
        ("Workload", "spec.workspace.idle", 120, "120m"),
        ("Workload", "spec.inference.startup", 900, "900s"),
        ("Pool", "spec.sharing.mig.instances", "7x1g.10gb", {"1g.10gb": 7}),
        ("Pool", "spec.sharing.mig.instances", ["3g.40gb", "3g.40gb"], {"3g.40gb": 2}),
        ("MigLayout", "spec.devices.0.gpus", "0-3", [0, 1, 2, 3]),
        ("PriorityClass", "spec.preemptible", "Never", False),
        ("Gpu", "spec.pci", "0x223010DE", ["10de:2230"]),
        ("Gpu", "spec.products", "NVIDIA-RTX-A6000", ["NVIDIA-RTX-A6000"]),
    ],
)
def test_a_value_of_another_shape_is_turned_with_all_that_it_says(
    kind: str, place: str, value: object, meant: Any
) -> None:
    path = tuple(int(part) if part.isdigit() else part for part in place.split("."))

    assert as_line(as_meant(KINDS[kind], path, value)) == as_line(meant)


def test_kinds_of_the_field_are_told_what_says_them() -> None:
    known = {*KINDS, "PriorityClass"}
    for kind, made_of in KINDS_OF_POLICIES.items():
        assert kind not in known
        assert any(ours in made_of for ours in known)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("rollout: {type: RollingUpdate, maxSurge: 1}", "`disruption.maxUnavailable`"),
        ("nodes: {replicas: 2, gpusPerNode: 8}", "write `count:`"),
        ("nodes: {minNodes: 2, maxNodes: 4, gpusPerNode: 8}", "write `count: 4` in place of `minNodes` and `maxNodes`"),
    ],
)
def test_a_field_that_is_missing_since_it_is_miswritten_is_one_mistake(fields: str, expected: str) -> None:
    text = f"apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {{name: a}}\nspec:\n  {fields}\n"
    (document,), _ = read_text("policies/a.yaml", text)
    found = [item.finding for item in parse(document).diagnostics]
    own = [item for item in found if item.at.path[:2] != ("spec",) and len(item.at.path) > 1]

    assert own
    assert all(expected in item.help for item in own)
