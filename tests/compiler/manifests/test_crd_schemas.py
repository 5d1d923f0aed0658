"""Custom resources are checked as strictly as the API server would, by their definitions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.manifests import Manifest, check_schemas, unusable_definitions
from tests.subjects import A_CLUSTER

Schema = dict[str, Any]


def a_crd(
    spec: Schema, *, group: str = "example.com", kind: str = "Widget", version: str = "v1", **more: Any
) -> Schema:
    schema = {"type": "object", "properties": {"spec": spec}, **more}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "scope": "Cluster",
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
                {"name": "v1alpha1", "served": False, "storage": False},
            ],
        },
    }


def a_widget(spec: object, *, version: str = "v1", **more: Any) -> Manifest:
    body = {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec, **more}
    return Manifest("x", body, is_foreign=True, about=A_CLUSTER, trace=None)


def problems(folder: Path, *manifests: Manifest) -> list[str]:
    return [found.text for found in check_schemas(manifests, "1.32", folder)]


def judge(tmp_path: Path, schema: Schema, spec: object) -> list[str]:
    (tmp_path / "widgets.yaml").write_text(yaml.safe_dump(a_crd(schema)))
    return problems(tmp_path, a_widget(spec))


@pytest.mark.parametrize(
    ("schema", "good", "bad", "problem"),
    [
        pytest.param(
            {"type": "object", "properties": {"a": {"type": "string"}}},
            {"a": "x"},
            {"b": "x"},
            "`spec`: unknown field `b`",
            id="unknown fields would be dropped",
        ),
        pytest.param(
            {"type": "object"}, {}, {"b": 1}, "`spec`: unknown field `b`", id="an object without fields is empty"
        ),
        pytest.param(
            {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer", "format": "int32"}}}},
            [{"a": 1}],
            [{"c": 1}],
            "`spec[0]`: unknown field `c`",
            id="in items",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "integer"}}}},
            {"any": {"a": 1}},
            {"any": {"b": 1}},
            "`spec.any`: unknown field `b`",
            id="in the values of a map",
        ),
        pytest.param(
            {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"known": {"type": "object", "properties": {"a": {"type": "integer"}}}},
            },
            {"anything": [1], "known": {"a": 1}},
            {"known": {"b": 1}},
            "`spec.known`: unknown field `b`",
            id="preserved at one place, not below its known fields",
        ),
        pytest.param(
            {
                "x-kubernetes-int-or-string": True,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "pattern": "^[0-9]+%?$",
            },
            "10%",
            1.5,
            '`spec`: 1.5 is not of types "integer", "string"',
            id="number or text",
        ),
        pytest.param(
            {"type": "string", "nullable": True, "enum": ["a"]},
            None,
            "b",
            '`spec`: "b" is not one of null or "a"',
            id="null",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "string"}},
            ["a"],
            [None],
            '`spec[0]`: null is not of type "string"',
            id="no null in a list unless it says so",
        ),
        pytest.param(
            {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "integer", "default": 1}, "b": {}}},
            {"b": 1},
            {"a": 1},
            "`spec`: missing field `b`",
            id="required, but for what has a default",
        ),
        pytest.param(
            {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            1,
            0,
            "`spec`: 0 is less than or equal to the minimum of 0",
            id="bounds that do not belong to the range",
        ),
        pytest.param(
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "not": {"required": ["a", "b"]},
                "allOf": [{"properties": {"a": {"maxLength": 1}}}],
            },
            {"a": "1"},
            {"a": "22"},
            '`spec.a`: "22" is longer than 1 character',
            id="rules on values do not say which fields there are",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"nmae": "a"}},
            "`spec.metadata`: unknown field `nmae`",
            id="an object in an object has metadata",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            {"apiVersion": "v1", "kind": "Pod", "data": {}},
            {"apiVersion": "v1"},
            "`spec`: missing field `kind`",
            id="an object in an object says what it is",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            ["a", "b"],
            ["a", "a"],
            '`spec`: ["a","a"] has non-unique elements',
            id="sets",
        ),
    ],
)
def test_a_definition_judges(tmp_path: Path, schema: Schema, good: object, bad: object, problem: str) -> None:
    assert judge(tmp_path, schema, good) == []
    assert judge(tmp_path, schema, bad) == [problem]


def test_metadata_is_what_kubernetes_says_and_what_the_definition_adds(tmp_path: Path) -> None:
    metadata = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}
    crd = a_crd({"type": "object"})
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] = metadata
    (tmp_path / "widgets.yaml").write_text(yaml.safe_dump(crd))
    assert problems(tmp_path, a_widget({}, metadata={"name": "abc", "labels": {"a": "b"}})) == []
    assert problems(tmp_path, a_widget({}, metadata={"name": "abcd"})) == [
        '`metadata.name`: "abcd" is longer than 3 characters'
    ]
    assert problems(tmp_path, a_widget({}, metadata={"name": "a", "label": {}})) == [
        "`metadata`: unknown field `label`"
    ]


def test_a_version_that_is_not_served_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "widgets.yaml").write_text(yaml.safe_dump(a_crd({"type": "object"})))
    for version in ("v1alpha1", "v2"):
        assert problems(tmp_path, a_widget({}, version=version)) == [
            f"there is no Widget in example.com/{version}: its definition serves v1"
        ]


def test_nothing_is_said_of_kinds_without_a_definition(tmp_path: Path) -> None:
    (tmp_path / "widgets.yaml").write_text(yaml.safe_dump(a_crd({"type": "object"}, kind="Gadget")))
    assert problems(tmp_path, a_widget({"a": 1})) == []


def test_definitions_come_in_yaml_of_several_documents_and_in_json(tmp_path: Path) -> None:
    documents = [{"kind": "Namespace"}, None, a_crd({"type": "object"}, kind="Gadget"), a_crd({"type": "object"})]
    (tmp_path / "all.yml").write_text(yaml.safe_dump_all(documents))
    (tmp_path / "more.json").write_text(json.dumps(a_crd({"type": "string"}, group="example.org")))
    (tmp_path / "README.md").write_text("example.com Widget: {not: [yaml")
    body = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {}}
    other = Manifest("x", body, is_foreign=True, about=A_CLUSTER, trace=None)
    assert problems(tmp_path, a_widget({"a": 1}), other) == [
        "`spec`: unknown field `a`",
        '`spec`: {} is not of type "string"',
    ]


def test_definitions_are_read_as_kubectl_prints_them(tmp_path: Path) -> None:
    items = [a_crd({"type": "object"}, kind="Gadget"), a_crd({"type": "string"})]
    (tmp_path / "crds.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))

    assert problems(tmp_path, a_widget({})) == ['`spec`: {} is not of type "string"']


WIDGETS = "\n# CustomResourceDefinition of example.com Widget\n"


def refused(folder: Path) -> list[str]:
    """What is said of the definitions, by file; nothing is said of the objects."""
    assert problems(folder, a_widget({"a": "a"})) == []
    found = [item.finding for item in unusable_definitions(folder, folder)]
    return [f"{finding.at.locate().file.path}: {finding.message}" for finding in found]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{kind: Widget, group: example.com", "file cannot be used: it is not YAML: "),
        ("a: &a [*a", "file cannot be used: it is not YAML: "),
        ("a: !!python/object:os.system {}", "file cannot be used: it is not YAML: could not determine a constructor"),
        ("a: 2026-99-99", "file cannot be used: it is not YAML: month must be in 1..12"),
        ("- " * 300, "file cannot be used: values are nested more than 200 levels deep"),
        ("- " * 100_000, "file cannot be used: values are nested more than 200 levels deep"),
        ("[" * 100_000, "file cannot be used: values are nested more than 200 levels deep"),
        ('["]",' * 100_000, "file cannot be used: values are nested more than 200 levels deep"),
        (
            "a: &a {k: 1}\n"
            + "".join(
                f"{b}: &{b} {{<<: [{', '.join([f'*{a}'] * 10)}]}}\n"
                for a, b in zip("abcdefgh", "bcdefghi", strict=True)
            ),
            "file cannot be used: aliases stand for more than 400,000 values, and are merged",
        ),
        (
            "kind: CustomResourceDefinition\nspec: {group: example.com, names: Widget}",
            "definition cannot be used: `spec.names.kind` should be text, not nothing",
        ),
        (
            "kind: CustomResourceDefinition\n# example.com Widget",
            "definition cannot be used: `spec` should be a mapping, not nothing",
        ),
    ],
)
def test_a_file_that_cannot_be_understood_is_a_finding(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "widgets.yaml").write_text(text + WIDGETS)
    [found] = refused(tmp_path)
    assert found.startswith(f"widgets.yaml: {message}")


SCHEMA = "spec.versions[0].schema.openAPIV3Schema"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (1, f"`{SCHEMA}.properties.spec` should be a schema, not a number"),
        (None, f"`{SCHEMA}.properties.spec` should be a schema, not nothing"),
        ({"properties": []}, f"`{SCHEMA}.properties.spec.properties` should be a mapping, not an empty list"),
        ({"properties": {1: {}}}, f"`{SCHEMA}.properties.spec.properties` has a field `1` whose name is not text"),
        ({"allOf": 3}, f"`{SCHEMA}.properties.spec.allOf` should be a list of schemas, not a number"),
        ({"anyOf": []}, f"`{SCHEMA}.properties.spec.anyOf` should be a list of schemas, not an empty list"),
        ({"not": [1]}, f"`{SCHEMA}.properties.spec.not` should be a schema, not a list"),
        ({"items": [{}]}, f"`{SCHEMA}.properties.spec.items` should be a schema, not a list"),
        ({"required": [1]}, f"`{SCHEMA}.properties.spec.required` should be a list of names, not a list"),
        ({"type": ["string"]}, f"`{SCHEMA}.properties.spec.type` should be text, not a list"),
        ({"enum": "a"}, f"`{SCHEMA}.properties.spec.enum` should be a list of values, not text"),
        ({"type": "text"}, f'`{SCHEMA}.properties.spec.type` "text" is not'),
        ({"maxLength": -1}, f"`{SCHEMA}.properties.spec.maxLength` -1 is less than"),
        ({"multipleOf": 0}, f"`{SCHEMA}.properties.spec.multipleOf` 0 is less than"),
        ({"pattern": "(a+)+$["}, f"`{SCHEMA}.properties.spec.pattern` is not a regular expression that can be"),
        ({"pattern": "(?=(a+)+$)b"}, f"`{SCHEMA}.properties.spec.pattern` is not a regular expression that can be"),
        # The API server reads this one: Go takes a class in a range.
        ({"pattern": r"^[\w-.]+$"}, f"`{SCHEMA}.properties.spec.pattern` is not a regular expression that can be"),
        ({"pattern": "a{999}{999}{999}"}, f"`{SCHEMA}.properties.spec.pattern` is not a regular expression"),
        ({"enum": [{1: 2}]}, f"`{SCHEMA}` Dict key must be str"),
    ],
)
def test_a_malformed_schema_is_a_finding_that_names_the_place(tmp_path: Path, spec: Any, message: str) -> None:
    (tmp_path / "widgets.yaml").write_text(yaml.safe_dump(a_crd(spec)))
    [found] = refused(tmp_path)
    assert found.startswith(f"widgets.yaml: definition of `Widget.example.com` cannot be used: {message}")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"names": []}, "spec.names.kind"),
        ({"names": {"kind": ["Widget"]}}, "spec.names.kind"),
        ({"group": 1}, "spec.group"),
        ({"versions": {"v1": {}}}, "spec.versions"),
        ({"versions": []}, "spec.versions"),
        ({"versions": ["v1"]}, "spec.versions[0]"),
        ({"versions": [{"name": []}]}, "spec.versions[0].name"),
        ({"versions": [{"name": "v1", "schema": None}]}, "spec.versions[0].schema"),
        ({"versions": [{"name": "v1", "schema": 1}]}, "spec.versions[0].schema"),
    ],
)
def test_a_definition_without_what_it_needs_is_a_finding(tmp_path: Path, change: Any, place: str) -> None:
    crd = a_crd({"type": "object"})
    crd["spec"] |= change
    (tmp_path / "widgets.yaml").write_text(yaml.safe_dump(crd) + WIDGETS)
    [found] = refused(tmp_path)
    assert f"`{place}` should be" in found
    assert ("definition of `Widget.example.com`" in found) == ("names" not in change and "group" not in change)


def test_all_that_is_wrong_with_a_definition_is_one_finding(tmp_path: Path) -> None:
    properties = {f"f{number}": number for number in range(20)}
    (tmp_path / "widgets.yaml").write_text(yaml.safe_dump(a_crd({"properties": properties})))
    check_schemas([a_widget({})], "1.32", tmp_path)
    [found] = unusable_definitions(tmp_path, tmp_path)
    assert found.finding.notes[0].endswith(" and 15 more")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("&a {properties: {b: *a}}", "is nested more than 80 levels deep"),
        ("{" + "not: {" * 90 + "}" * 91, "is nested more than 80 levels deep"),
        (
            "{properties: {a: &a {}, "
            + ", ".join(
                f"{b}: &{b} {{properties: {{" + ", ".join(f"f{n}: *{a}" for n in range(10)) + "}}"
                for a, b in zip("abcdefgh", "bcdefghi", strict=True)
            )
            + "}}",
            "is beyond the first 400,000 parts of its schema",
        ),
        ("{enum: &a [*a]}", "has values that are too large"),
    ],
    ids=["itself", "deep", "more and more", "values in themselves"],
)
def test_a_schema_without_an_end_is_a_finding(tmp_path: Path, schema: str, words: str) -> None:
    (tmp_path / "widgets.yaml").write_text(
        "kind: CustomResourceDefinition\nspec: {group: example.com, names: {kind: Widget},"
        f" versions: [{{name: v1, schema: {{openAPIV3Schema: {schema}}}}}]}}\n"
    )
    [found] = refused(tmp_path)
    assert words in found


def test_a_pattern_takes_no_longer_than_its_text(tmp_path: Path) -> None:
    """Go's engine and this one are linear; one that tries all ways would take longer than the universe is old."""
    assert len(judge(tmp_path, {"type": "string", "pattern": "^(a|a?)+$"}, "a" * 5_000 + "!")) == 1


def test_what_looks_like_a_reference_in_a_value_is_a_value(tmp_path: Path) -> None:
    assert judge(tmp_path, {"enum": [{"$ref": "#/$defs/none"}]}, {"$ref": "#/$defs/none"}) == []


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "widgets.yaml").write_text(yaml.safe_dump(a_crd({"type": "object"})))
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "endless.yaml").symlink_to("/dev/zero")
    (tmp_path / "nowhere.yaml").symlink_to("none")
    assert problems(tmp_path, a_widget({})) == []
    assert unusable_definitions(tmp_path, tmp_path) == ()


def test_a_file_that_is_too_large_is_a_finding(tmp_path: Path) -> None:
    with (tmp_path / "large.yaml").open("wb") as stream:
        stream.truncate(2**40)
    assert refused(tmp_path) == ["large.yaml: file cannot be used: it is larger than 32 MiB"]


def test_a_missing_folder_is_trouble_even_when_nothing_needs_it(tmp_path: Path) -> None:
    with pytest.raises(GpuplanError, match=r"cannot read CRDs from .*/none`: no such file or directory") as caught:
        check_schemas([], "1.32", tmp_path / "none")
    assert caught.value.hint


@pytest.mark.parametrize("text", [None, "kind: ConfigMap\n"])
def test_a_folder_that_defines_nothing_is_trouble(tmp_path: Path, text: str | None) -> None:
    """Otherwise a misspelt folder would look like a check that passed."""
    if text is not None:
        (tmp_path / "file.yaml").write_text(text)
    with pytest.raises(GpuplanError, match="there is no CustomResourceDefinition in"):
        check_schemas([], "1.32", tmp_path)


def test_a_file_that_is_not_text_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "widgets.yaml").write_bytes(b"\xff")
    assert refused(tmp_path) == ["widgets.yaml: file cannot be used: it is not UTF-8"]


@pytest.fixture
def real_crds() -> Path:
    folder = os.environ.get("GPUPLAN_CRDS")
    if not folder:
        pytest.skip("GPUPLAN_CRDS does not name a folder of CRDs")
    assert Path(folder).is_dir(), f"GPUPLAN_CRDS names {folder}, which is not a folder"
    return Path(folder)


NODE_FEATURE_RULE: dict[str, Any] = {
    "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
    "kind": "NodeFeatureRule",
    "metadata": {"name": "gpuplan-pool-a"},
    "spec": {
        "rules": [
            {
                "name": "gpuplan.a",
                "labels": {"nvidia.com/mig.config": "a-1a2b3c4d"},
                "taints": [{"key": "nvidia.com/gpu", "value": "a", "effect": "NoSchedule"}],
                "matchFeatures": [
                    {"feature": "system.name", "matchExpressions": {"nodename": {"op": "In", "value": ["gpu-1"]}}}
                ],
            }
        ]
    },
}


def test_a_real_definition_accepts_a_real_object(real_crds: Path) -> None:
    assert problems(real_crds, Manifest("x", NODE_FEATURE_RULE, about=A_CLUSTER, trace=None)) == []


def test_a_real_definition_refuses_a_misspelt_field(real_crds: Path) -> None:
    rules = [{**NODE_FEATURE_RULE["spec"]["rules"][0], "label": {}}]
    assert problems(
        real_crds, Manifest("x", {**NODE_FEATURE_RULE, "spec": {"rules": rules}}, about=A_CLUSTER, trace=None)
    ) == ["`spec.rules[0]`: unknown field `label`"]


def test_every_real_definition_can_be_used(real_crds: Path) -> None:
    for file in sorted(real_crds.glob("*.yaml")):
        for crd in yaml.load_all(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if crd is None:
                continue
            for version in crd["spec"]["versions"]:
                body = {
                    "apiVersion": f"{crd['spec']['group']}/{version['name']}",
                    "kind": crd["spec"]["names"]["kind"],
                    "metadata": {"name": "a", "unknown": "field"},
                }
                found = problems(real_crds, Manifest("x", body, is_foreign=True, about=A_CLUSTER, trace=None))
                assert "`metadata`: unknown field `unknown`" in found or "there is no" in found[0], (file, found)
