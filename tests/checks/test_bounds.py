"""Where a number decides: the last that a rule takes, and the first that it does not."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from gpuplan.compiler.checks import CHECKS
from tests.plans import CLUSTER, a_plan
from tests.platforms import a_platform, document, pool, priority_class, tenant

FINDS = {one.rule.code: one for one in CHECKS}


def is_found(code: str, *documents: str, scheduler: str = "kubernetes", kubernetes: str = "1.34") -> bool:
    plan = a_platform(*documents, scheduler=scheduler, kubernetes=kubernetes)
    return any(FINDS[code].run(plan))


def a_workload(*fields: str) -> tuple[str, ...]:
    run = ("tenant: lab", "pool: p", "image: example.com/app:1.4", "inference: {replicas: 1}")
    return (
        pool("p", "timeSlicing: {replicas: 2}"),
        tenant("lab", "pool: p, guaranteed: 4"),
        document("Workload", "w", *run, *fields),
    )


def listed(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


# --- Amounts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("least", "less"),
    [
        ("1048576", "1048575"),
        ("1048.576k", "1048.575k"),
        ("1.048576M", "1.048575M"),
        ("0.001048576G", "0.001048575G"),
        (".000001048576T", ".000001048575T"),
        (".000000001048576P", ".000000001048575P"),
        (".000000000001048576E", ".000000000001048575E"),
        ("1048576000m", "1048575999m"),
        ("1048576000000u", "1048575999999u"),
        ("1048576000000000n", "1048575999999999n"),
        ("1048576e0", "1048575e0"),
        ("1.048576e6", "1.048576e5"),
        ("1048576000E-3", "1048576000E-4"),
        ("1024Ki", "1023Ki"),
        ("1Mi", "0.9Mi"),
        (".0009765625Gi", ".0009765624Gi"),
        (".00000095367431640625Ti", ".00000095367431640624Ti"),
        (".000000000931322574615478515625Pi", ".000000000931322574615478515624Pi"),
        (".00000000000090949470177292823791503906250Ei", ".0000000000009094947017Ei"),
    ],
)
def test_memory_of_less_than_a_mebibyte_is_hardly_meant(least: str, less: str) -> None:
    assert not is_found("GPU586", *a_workload(f'memory: "{least}"'))
    assert is_found("GPU586", *a_workload(f'memory: "{less}"'))


@pytest.mark.parametrize(("taken", "refused"), [("4096", "4097"), ("1m", "0"), ("4096000m", "4096001m")])
def test_cpus_are_more_than_none_and_no_more_than_a_node_has(taken: str, refused: str) -> None:
    assert not is_found("GPU586", *a_workload(f'cpu: "{taken}"'))
    assert is_found("GPU586", *a_workload(f'cpu: "{refused}"'))


def test_files_of_a_workload_fit_into_a_config_map() -> None:
    assert not is_found("GPU587", *a_workload(f"config: {{abc: {'x' * (2**20 - 3)}}}"))
    assert is_found("GPU587", *a_workload(f"config: {{abc: {'x' * (2**20 - 2)}}}"))


def test_a_file_name_has_253_characters_at_most() -> None:
    assert not is_found("GPU587", *a_workload(f"config: {{{'n' * 253}: x}}"))
    assert is_found("GPU587", *a_workload(f"config: {{{'n' * 254}: x}}"))


# --- Pools -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "taken", "refused"),
    [
        ("GPU301", pool("p", "mps: {replicas: 48}"), pool("p", "mps: {replicas: 49}")),
        ("GPU301", pool("p", "mps: {replicas: 48}", gpu="T4-16GB"), pool("p", "mps: {replicas: 49}", gpu="T4-16GB")),
        (
            "GPU301",
            pool("p", "mps: {replicas: 16}", gpu="V100-32GB"),
            pool("p", "mps: {replicas: 17}", gpu="V100-32GB"),
        ),
        ("GPU302", pool("p", "timeSlicing: {replicas: 48}"), pool("p", "timeSlicing: {replicas: 49}")),
        ("GPU160", pool("p", nodes="count: 1, gpusPerNode: 32"), pool("p", nodes="count: 1, gpusPerNode: 33")),
    ],
    ids=["MPS", "MPS on Turing", "MPS before", "time-slicing", "GPUs of a node"],
)
def test_shares_and_gpus(code: str, taken: str, refused: str) -> None:
    assert not is_found(code, taken)
    assert is_found(code, refused)


@pytest.mark.parametrize(("devices", "is_told"), [(1, False), (2, True)])
def test_a_container_uses_one_mig_device(devices: int, is_told: bool) -> None:
    asks = tenant("lab", "pool: p, guaranteed: 4", more=f"allow: {{unitsPerContainer: {devices}}}")
    assert is_found("GPU308", pool("p", "mig: {instances: {1g.10gb: 7}}"), asks) is is_told


def test_a_label_value_has_63_characters_at_most() -> None:
    assert not is_found("GPU148", pool("p", "exclusive: {}", f"nodeLabels: {{example.com/a: {'v' * 63}}}"))
    assert is_found("GPU148", pool("p", "exclusive: {}", f"nodeLabels: {{example.com/a: {'v' * 64}}}"))


@pytest.mark.parametrize(("value", "is_refused"), [(1_000_000_000, False), (1_000_000_001, True)])
def test_the_highest_priority_of_a_policy(value: int, is_refused: bool) -> None:
    assert is_found("GPU500", priority_class("a", value)) is is_refused


@pytest.mark.parametrize(("value", "is_refused"), [(-(2**31), False), (-(2**31) - 1, True)])
def test_the_lowest_priority_of_a_policy(value: int, is_refused: bool) -> None:
    assert is_found("GPU500", priority_class("a", value)) is is_refused


# --- Schedulers --------------------------------------------------------------------------------------------------


def taints(number: int) -> str:
    return pool(
        "p",
        "exclusive: {}",
        f"taints: {listed(f'{{key: example.com/t{at}, effect: NoSchedule}}' for at in range(number))}",
    )


def levels(number: int) -> str:
    return pool("p", "exclusive: {}", f"topology: {listed(f'example.com/l{at}' for at in range(number))}")


@pytest.mark.parametrize(
    ("code", "scheduler", "taken", "refused"),
    [
        ("GPU542", "kueue", taints(8), taints(9)),
        ("GPU543", "kueue", levels(16), levels(17)),
        ("GPU543", "kai", levels(16), levels(17)),
        ("GPU550", "kai", pool("p" * 49), pool("p" * 50)),
        ("GPU540", "kueue, version: v0.17.0", pool("p"), ""),
        ("GPU551", "kai, version: v0.13.0", pool("p"), ""),
    ],
)
def test_what_schedulers_take(code: str, scheduler: str, taken: str, refused: str) -> None:
    assert not is_found(code, taken, scheduler=scheduler)
    assert not refused or is_found(code, refused, scheduler=scheduler)


@pytest.mark.parametrize(
    ("code", "scheduler"),
    [("GPU540", "kueue, version: v0.14.9"), ("GPU540", "kueue, version: v0.16.9"), ("GPU551", "kai, version: v0.12.9")],
)
def test_releases_of_schedulers_that_are_too_old(code: str, scheduler: str) -> None:
    assert is_found(code, pool("p"), scheduler=scheduler)


CLAIMED = pool("p", "exclusive: {}", "allocation: dra")


@pytest.mark.parametrize(("version", "is_refused"), [("v0.18.0", False), ("v0.17.9", True)])
def test_kueue_counts_claims_since_0_18(version: str, is_refused: bool) -> None:
    assert is_found("GPU540", CLAIMED, scheduler=f"kueue, version: {version}") is is_refused


@pytest.mark.parametrize(("kubernetes", "is_refused"), [("1.34", False), ("1.33", True)])
def test_claims_came_with_kubernetes_1_34(kubernetes: str, is_refused: bool) -> None:
    assert is_found("GPU565", CLAIMED, kubernetes=kubernetes) is is_refused


# --- Delivery ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval", "found"), [("60s", []), ("1m", []), ("59s", ["warning"]), ("1s", ["warning"]), ("0s", ["error"])]
)
def test_flux_looks_once_a_minute_at_most(interval: str, found: list[str]) -> None:
    plan = a_plan(f"{CLUSTER}  flux: {{interval: {interval}}}\n---\n{pool('p')}")
    assert [str(diagnostic.severity) for diagnostic in FINDS["GPU662"].run(plan)] == found


@pytest.mark.parametrize(("length", "is_found"), [(63, False), (64, True)])
def test_a_name_of_an_application_is_the_value_of_a_label(length: int, is_found: bool) -> None:
    name = "p" * (length - len("gpu-partitions-test-"))
    plan = a_plan(f"{CLUSTER}  argocd: {{repoURL: https://example.com/gpu.git}}\n---\n{pool(name)}")
    assert any(FINDS["GPU658"].run(plan)) is is_found
