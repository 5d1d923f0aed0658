"""Objects are checked against the schemas of the cluster's Kubernetes, with the verdicts of kubernetes-validate."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.manifests import Manifest, check_schemas
from gpuplan.compiler.manifests.builtin_schemas import builtin_schemas
from gpuplan.compiler.manifests.model import Gvk
from tests.subjects import A_CLUSTER

Body = dict[str, Any]

NAMESPACE: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research", "labels": {"a": "b"}}}
QUOTA: Body = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "gpu", "namespace": "research"},
    "spec": {"hard": {"requests.nvidia.com/gpu": "4", "requests.nvidia.com/mig-1g.10gb": "0"}},
}
ROLE_BINDING: Body = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "users", "namespace": "research"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "researchers"}],
}
CONFIG_MAP: Body = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a"},
    "data": {"config.yaml": "a: 1\n"},
}
PRIORITY: Body = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "research"},
    "value": 100,
    "preemptionPolicy": "Never",
}
POLICY: Body = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "units"},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ]
        },
        "validations": [{"expression": "true", "message": "no"}],
    },
}
NODE: Body = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "gpu-1"},
    "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
}
DAEMON_SET: Body = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "a"},
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}},
        "template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}},
    },
}
BODIES = [NAMESPACE, QUOTA, ROLE_BINDING, CONFIG_MAP, PRIORITY, POLICY, NODE, DAEMON_SET]
CLUSTER_QUEUE: Body = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "a"}}


def with_(body: Body, *route: str | int, value: object) -> Body:
    """A copy of an object with one value replaced or added."""
    changed = copy.deepcopy(body)
    here: Any = changed
    for part in route[:-1]:
        here = here[part]
    here[route[-1]] = value
    return changed


def problems(*bodies: Body, kubernetes: str = "1.32") -> list[str]:
    manifests = [Manifest("x", body, is_foreign=True, about=A_CLUSTER, trace=None) for body in bodies]
    return [found.text for found in check_schemas(manifests, kubernetes)]


@pytest.mark.parametrize("minor", ["1.30", "1.31", "1.32", "1.33", "1.37"])
def test_good_objects_have_no_problems(minor: str) -> None:
    assert problems(*BODIES, kubernetes=minor) == []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (with_(QUOTA, "spec", "hrad", value={}), "`spec`: unknown field `hrad`"),
        (with_(QUOTA, "metadata", "Labels", value={}), "`metadata`: unknown field `Labels`"),
        (with_(QUOTA, "extra", value=1), "unknown field `extra`"),
        (with_(CONFIG_MAP, "data", "a", value=1), '`data.a`: 1 is not of types "null", "string"'),
        (with_(ROLE_BINDING, "roleRef", value={"kind": "Role", "name": "a"}), "`roleRef`: missing field `apiGroup`"),
        (with_(PRIORITY, "value", value="100"), '`value`: "100" is not of types "null", "integer"'),
        (with_(ROLE_BINDING, "subjects", 0, "nmae", value="a"), "`subjects[0]`: unknown field `nmae`"),
    ],
)
def test_a_problem_names_the_field_and_what_is_wrong_with_it(body: Body, text: str) -> None:
    assert problems(body) == [text]


def test_every_bad_object_is_found_among_good_ones_of_the_same_shape() -> None:
    quotas = [with_(QUOTA, "metadata", "name", value=f"q{number}") for number in range(20)]
    quotas[7] = with_(quotas[7], "spec", "hard", "pods", value=True)
    (found,) = check_schemas([Manifest("x", body, about=A_CLUSTER, trace=None) for body in quotas], "1.32")
    assert (found.manifest.name, found.path) == ("q7", ("spec", "hard", "pods"))


IMPOSSIBLE = "no API has such a kind, or such a version: both are letters, digits and `-`"
IMPOSSIBLE_NAMES = [
    ("v1", "../v1.32.0-local/namespace"),
    ("v1", "/proc/self/cwd/evil"),
    ("v1", "."),
    ("v1", "Na mespace"),
    ("v1", "Namespace\0"),
    ("v1", "Namespace\n"),
    ("v1", "N\u00e4mespace"),
    ("v1", "N" * 64),
    ("v1", "-Namespace"),
    ("v1", "Namespace-"),
    ("../v1", "Namespace"),
    ("a/b/v1", "Namespace"),
    ("example.com/V1", "Thing"),
    ("example.com/v1/", "Thing"),
    ("example..com/v1", "Thing"),
    (".example.com/v1", "Thing"),
    ("%2e/v1", "Thing"),
    ("a" * 254 + "/v1", "Thing"),
]
"""By the rules of k8s.io/apiextensions-apiserver no CustomResourceDefinition may have these names."""


@pytest.mark.parametrize(
    ("api_version", "kind", "text"),
    [
        ("v1", "Namespase", "Kubernetes 1.32 has no Namespase in v1"),
        ("v1", "namespace", "Kubernetes 1.32 has no namespace in v1"),
        ("v2", "Namespace", "Kubernetes 1.32 has no Namespace in v2"),
        ("apps/v1", "Namespace", "Kubernetes 1.32 has no Namespace in apps/v1"),
        ("batch/v1beta1", "CronJob", "Kubernetes 1.32 has no CronJob in batch/v1beta1"),
        ("apps-v1", "DaemonSet", "Kubernetes 1.32 has no DaemonSet in apps-v1"),
        *((version, kind, IMPOSSIBLE) for version, kind in IMPOSSIBLE_NAMES),
    ],
)
def test_a_kind_that_kubernetes_does_not_have_is_a_problem(api_version: str, kind: str, text: str) -> None:
    assert problems({**NAMESPACE, "apiVersion": api_version, "kind": kind}) == [text]


def test_an_object_that_nests_deeper_than_anybody_follows_is_a_problem() -> None:
    value: object = "x"
    for _ in range(400):
        value = {"a": value}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "deep"}, "data": value}
    assert ["nests too deep" in text for text in problems(body)] == [True]


def test_kinds_come_and_go_with_versions() -> None:
    policy = {**POLICY, "apiVersion": "admissionregistration.k8s.io/v1"}
    assert problems(policy, kubernetes="1.30") == []
    assert problems(policy, kubernetes="1.29") == [
        "Kubernetes 1.29 has no ValidatingAdmissionPolicy in admissionregistration.k8s.io/v1"
    ]


@pytest.mark.parametrize("version", ["1.32.4", "v1.32", "1.32"])
def test_a_version_may_have_a_patch(version: str) -> None:
    assert problems(QUOTA, kubernetes=version) == []


@pytest.mark.parametrize("version", ["1.9", "1.24", "1.99", "2.0"])
def test_a_version_without_schemas_is_trouble_that_says_which_there_are(version: str) -> None:
    with pytest.raises(GpuplanError, match=f"no schemas for Kubernetes {version}") as caught:
        problems(QUOTA, kubernetes=version)
    assert "versions 1.25 to 1.37 can be checked" in caught.value.hint


def test_a_version_that_is_none_is_trouble() -> None:
    with pytest.raises(GpuplanError, match="`latest` is not a version of Kubernetes"):
        problems(QUOTA, kubernetes="latest")


def test_nothing_is_said_of_kinds_that_nobody_defines() -> None:
    """Also of those whose group starts like one of Kubernetes' own, for which kubernetes-validate takes them."""
    assert problems({"apiVersion": "apps.example.com/v1", "kind": "Deployment", "metadata": {"name": "a"}}) == []


class Effect(StrEnum):
    NO_SCHEDULE = "NoSchedule"


class Text(str):
    __slots__ = ()


def test_values_may_be_of_other_types_that_mean_the_same() -> None:
    taints = ({"key": Text("a"), "effect": Effect.NO_SCHEDULE},)
    assert problems({**NODE, "spec": MappingProxyType({"taints": taints})}) == []
    assert problems({**NODE, "spec": MappingProxyType({"taint": taints})}) == ["`spec`: unknown field `taint`"]


def accepts(body: Body, minor: str) -> bool:
    """The verdict of kubernetes-validate itself."""
    try:
        kubernetes_validate.validate(body, minor, strict=True)
    except (jsonschema.ValidationError, kubernetes_validate.SchemaNotFoundError):
        return False
    return True


def routes(value: object, route: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield route
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from routes(inner, (*route, key))


JUNK: list[object] = [True, 0, -1, 1.5, 10**20, "", "text", [], ["a"], [{}], {}, {"a": "b"}, {"name": "a"}]
junk = st.sampled_from(JUNK).map(copy.deepcopy)


@st.composite
def mutants(draw: st.DrawFn) -> Body:
    """A good object in which one or two values were replaced, removed or added."""
    body = copy.deepcopy(draw(st.sampled_from(BODIES)))
    for _ in range(draw(st.integers(1, 2))):
        *outer, last = draw(st.sampled_from([route for route in routes(body) if route]))
        here: Any = body
        for part in outer:
            here = here[part]
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                here[last] = draw(junk)
            case "remove":
                del here[last]
            case _:
                if isinstance(here, dict):
                    here[draw(st.sampled_from(["name", "spec", "status", "unknown"]))] = draw(junk)
    return body


@given(mutants().filter(lambda body: isinstance(body.get("apiVersion"), str) and isinstance(body.get("kind"), str)))
@settings(max_examples=60)
def test_verdicts_are_those_of_kubernetes_validate(body: Body) -> None:
    assert (problems(body) == []) is accepts(body, "1.32")


FIELDS = [(body, route) for body in BODIES for route in routes(body) if route and isinstance(route[-1], str)]
"""Every field of every good object, less those that say what it is."""


def without(body: Body, route: tuple[str | int, ...]) -> Body:
    changed = copy.deepcopy(body)
    here: Any = changed
    for part in route[:-1]:
        here = here[part]
    del here[route[-1]]
    return changed


def test_a_null_in_place_of_a_known_field_is_judged_as_its_absence() -> None:
    """kubernetes-validate takes some nulls and refuses others; an API server takes them all for no field."""
    fields = [(body, route) for body, route in FIELDS if route[0] not in {"apiVersion", "kind"}]
    judged = [(problems(with_(body, *route, value=None)), problems(without(body, route))) for body, route in fields]
    assert [(found[1], *pair) for found, pair in zip(fields, judged, strict=True) if pair[0] != pair[1]] == []
    assert any(absent for _, absent in judged)


def test_a_null_in_an_unknown_field_is_unknown() -> None:
    """But for maps, whose keys are anybody's."""
    places = [(body, (*route[:-1], "unknown")) for body, route in FIELDS]
    judged = [
        (problems(with_(body, *route, value=None)), problems(with_(body, *route, value="text")))
        for body, route in places
    ]
    assert [(place[1], *pair) for place, pair in zip(places, judged, strict=True) if pair[0] != pair[1]] == []
    assert any(unknown for _, unknown in judged)


@pytest.mark.parametrize("kind", ["{folder}/evil", "../../../../../../../../../../../../../../{folder}/evil"])
def test_no_name_of_an_object_leads_to_another_file(tmp_path: Path, kind: str) -> None:
    """Whoever asks, `drift` and `trace` of a dump as well."""
    name = kind.format(folder=tmp_path)
    enums = {"apiVersion": {"enum": ["v1"]}, "kind": {"enum": [name]}}
    (tmp_path / "evil-v1.json").write_text(json.dumps({"properties": enums}))

    assert builtin_schemas("1.32").find_schema(Gvk("", "v1", name)) is None
    assert builtin_schemas("1.32").find_schema(Gvk("", "v1", "Namespace")) is not None
