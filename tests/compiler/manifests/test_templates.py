"""Texts that back ends keep as data: which rows belong to a plan, and what stands in their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.admission.policies import known_rules
from gpuplan.compiler.catalog.exporters import ExporterTrait
from gpuplan.compiler.manifests.templates import filled, filled_body, rows_for
from gpuplan.compiler.policy.models import SchedulerKind

ROWS: list[dict[str, Any]] = [
    {"name": "always"},
    {"name": "with claims", "if": "claims"},
    {"name": "with either", "if": ["kai", "kueue"]},
    {"name": "without claims", "unless": "claims"},
    {"name": "with kai, without claims", "if": "kai", "unless": "claims"},
]


@pytest.mark.parametrize(
    ("facts", "names"),
    [
        ((), ["always", "without claims"]),
        (("claims",), ["always", "with claims"]),
        (("kueue",), ["always", "with either", "without claims"]),
        (("kai",), ["always", "with either", "without claims", "with kai, without claims"]),
        (("kai", "claims"), ["always", "with claims", "with either"]),
    ],
)
def test_a_row_is_there_where_its_facts_are(facts: tuple[str, ...], names: list[str]) -> None:
    assert [row["name"] for row in rows_for(facts, ROWS)] == names


def test_a_place_is_filled_and_a_comparison_is_none() -> None:
    assert filled("a <= <most> && b < c", {"most": "3"}) == "a <= 3 && b < c"


def test_a_place_without_a_value_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="most"):
        filled("a <= <most>", {})


# --- Objects -----------------------------------------------------------------------------------------------------


def test_a_text_that_is_a_place_alone_becomes_the_value_whatever_it_is() -> None:
    part = {"seconds": "<limit>", "command": ["run", "<folder>/<name>", "<names>"], "is_read": True}
    values = {"limit": 60, "folder": "/a", "name": "b", "names": ["c", "d"]}
    assert filled_body(part, values) == {"seconds": 60, "command": ["run", "/a/b", ["c", "d"]], "is_read": True}


def test_a_field_without_a_value_is_left_out_and_one_that_is_empty_is_not() -> None:
    assert filled_body({"user": "<user>", "group": "<group>"}, {"user": None, "group": 0}) == {"group": 0}


def test_a_place_of_an_object_without_a_value_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="limit"):
        filled_body({"seconds": "<limit>"}, {})


# --- The files ---------------------------------------------------------------------------------------------------

ADMISSION = Path(__file__).parents[3] / "gpuplan" / "compiler" / "admission"
BACKENDS = Path(__file__).parents[3] / "gpuplan" / "compiler" / "backends"
FACTS = {
    ADMISSION / "scheduling.yaml": {
        *(*SchedulerKind, *(f"counted-by-{kind}" for kind in SchedulerKind)),
        *("claims", "crosses-pools", "finds-pools", "fractions", "frameworks", "grace"),
    },
    ADMISSION / "pod-security.yaml": {"probe-hosts", "user-namespaces"},
    ADMISSION / "running.yaml": {*SchedulerKind, "elastic", "fractions", "frameworks", "grace"},
    ADMISSION / "kueue.yaml": {"elastic"},
    ADMISSION / "kai.yaml": set(),
    BACKENDS / "monitoring/rules.yaml": {
        *("argocd", "claims", "exported-labels", "honored-labels", "namespaces", "partitioned", "pools", "sizes"),
        *("asking-pods", "fractions-of-kai", "kueue", "pods-that-wait", "queue-metrics", "units"),
        *("claims-of-kueue", "units-beside-kueue", "units-of-kueue", "units-of-pods"),
        *("health", *ExporterTrait),
    },
}
OBJECTS = BACKENDS / "guard/objects.yaml"
"""Whole objects, without facts; `tests/compiler/backends/guard` fills all of its places."""
FORMS = BACKENDS / "monitoring/dashboards/forms.yaml"
"""Dashboards and their panels; `tests/compiler/backends/monitoring` fills all of its places."""
TEXTS = BACKENDS / "texts.yaml"
KEYS = (
    {"name", "is"},
    {"name", "must", "message", "details", "optional"},
    {"record", "expr"},
    {"records", "expr"},
    {"name", "expr", "for", "severity", "summary", "meaning", "action"},
)


def rows(value: object) -> Iterator[dict[str, Any]]:
    """Whatever a file lists, at any depth."""
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(value, list) and isinstance(item, dict):
            yield item
        yield from rows(item)


@pytest.mark.parametrize(("file", "facts"), FACTS.items(), ids=lambda value: getattr(value, "parent", value))
def test_a_row_has_the_keys_of_its_kind_and_asks_for_known_facts(file: Path, facts: set[str]) -> None:
    found = list(rows(yaml.safe_load(file.read_text(encoding="utf-8"))))

    assert found
    for row in found:
        assert any(row.keys() - {"if", "unless"} <= keys for keys in KEYS), row
        asked = [row.get(key, ()) for key in ("if", "unless")]
        assert {fact for item in asked for fact in ([item] if isinstance(item, str) else item)} <= facts, row


def test_each_rule_of_admission_has_a_name_of_its_own() -> None:
    policies = [
        policy for path in FACTS if path.parent == ADMISSION for policy in yaml.safe_load(path.read_text()).values()
    ]
    names = [rule["name"] for policy in policies for rule in policy["rules"]]

    assert names
    assert len({*names}) == len(names)
    assert [name for name in names if not re.fullmatch("[a-z]+(-[a-z]+)*", name)] == []


def test_what_is_possible_without_an_optional_rule_fits_into_a_sentence() -> None:
    rules = {name: sentence for name, sentence in known_rules().items() if sentence}

    assert rules
    assert [name for name, sentence in rules.items() if sentence[0].isupper() or sentence.endswith(".")] == []


def test_every_file_with_places_is_looked_at() -> None:
    found = {
        path
        for path in (*ADMISSION.rglob("*.yaml"), *BACKENDS.rglob("*.yaml"))
        if re.search("<[a-z_]+>", path.read_text())
    }
    assert found == {*FACTS, OBJECTS, FORMS, TEXTS}


def test_every_text_is_written_somewhere_with_all_of_its_places() -> None:
    texts = yaml.safe_load(TEXTS.read_text(encoding="utf-8"))
    sources = [path.read_text(encoding="utf-8") for path in BACKENDS.rglob("*.py")]
    calls = re.findall(r"text_of\(\s*\"([a-z-]+)\"((?:,\s+\w+=[^,()]+(?:\([^()]*\))?)*)", "\n".join(sources))
    filled_in = {name: set(re.findall(r"(\w+)=", values)) for name, values in calls}

    assert filled_in == {name: set(re.findall("<([a-z_]+)>", text)) for name, text in texts.items()}
