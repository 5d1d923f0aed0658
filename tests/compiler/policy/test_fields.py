"""Field documentation comes from the models."""

from __future__ import annotations

import pytest

from gpuplan.compiler.policy.fields import field_paths, find_field, nested_model
from gpuplan.compiler.policy.models import Pool, Quota, SecretKey, ValueFrom, Workload
from tests.every import every


def test_field_is_found_by_its_path() -> None:
    field = find_field("Pool.spec.sharing.timeSlicing.replicas")
    assert field is not None
    assert (field.type, field.required) == ("whole number", True)
    assert field.description.startswith("Into how many shares")


def test_kind_may_be_written_in_any_case() -> None:
    assert find_field("pool.spec.gpu") == find_field("Pool.spec.gpu")


def test_closed_set_of_values_is_listed() -> None:
    field = find_field("Cluster.spec.nodeLabels")
    assert field is not None
    assert (field.values, field.default) == (("nfd", "node", "external"), "nfd")


def test_mapping_lists_its_children() -> None:
    field = find_field("Pool.spec.sharing")
    assert field is not None
    names = [child.path for child in field.children]
    assert names == [
        f"Pool.spec.sharing.{kind}" for kind in ("exclusive", "timeSlicing", "mps", "mig", "dynamicMig", "fraction")
    ]


@pytest.mark.parametrize("path", ["Poool", "Pool.spec.gpuu", "Pool.spec.gpu.more", ""])
def test_unknown_path_is_not_found(path: str) -> None:
    assert find_field(path) is None


@every(field_paths())
def test_every_field_says_what_it_is_for(path: str) -> None:
    field = find_field(path)
    assert field is not None
    assert field.description.endswith("."), path


def test_model_below_a_list_is_found() -> None:
    from gpuplan.compiler.policy.models import Tenant

    assert nested_model(Tenant, ("spec", "quotas", 0)) is Quota


def test_what_a_mapping_holds_has_the_model_and_the_mapping_has_none() -> None:
    assert nested_model(Workload, ("spec", "env", "TOKEN")) is ValueFrom
    assert nested_model(Workload, ("spec", "env", "TOKEN", "secretKeyRef")) is SecretKey
    assert nested_model(Workload, ("spec", "env")) is None


def test_plain_mapping_has_no_model() -> None:
    assert nested_model(Pool, ("spec", "nodeLabels")) is None


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("Cluster.spec.flux.interval", "A duration, such as 30s, 10m or 4h."),
        ("Cluster.spec.argocd.revision", "A branch or tag as Git names them, such as `main` or `v1.2.3`."),
        ("Tenant.spec.namespaces", "Each a DNS label of at most 63 characters: the Namespace is called so."),
        ("Workload.spec.priorityClass", "A DNS subdomain of at most 253 characters: the PriorityClass is called so."),
        ("Tenant.metadata", "The name is a DNS label of at most 63 characters: namespaces carry it as the label "),
        ("Pool.spec.nodes.names", "Each checked by GPU147."),
        ("Pool.spec.nodes.count", "At least 1 and at most 1000000."),
        ("Workload.spec.fraction.max", "Above 0 and at most 1."),
    ],
)
def test_the_form_is_that_which_findings_ask_for(path: str, form: str) -> None:
    field = find_field(path)

    assert field is not None
    assert field.form.startswith(form)


@pytest.mark.parametrize("path", ["Workload.spec.cpu", "Pool.spec.sharing.mig.strategy", "Cluster.spec.gpuOperator"])
def test_no_form_is_told_of_what_the_type_says_or_nearly_all_texts_match(path: str) -> None:
    field = find_field(path)

    assert field is not None
    assert field.form == ""
