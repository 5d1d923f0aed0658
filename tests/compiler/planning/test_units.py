"""What a pool hands out: names, resources, counts and weights follow from its sharing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from gpuplan.compiler.planning.placement.placing import Placed
from gpuplan.compiler.planning.plan import Isolation, Mig, Pool, Unit
from gpuplan.compiler.planning.pools import divisible_mib
from tests.plans import a_plan


def a_pool(sharing: str, gpu: str = "A100-80GB", nodes: str = "{count: 2, gpusPerNode: 8, names: [a, b]}") -> Pool:
    (pool,) = a_plan(
        f"""\
        apiVersion: gpuplan.dev/v1
        kind: Pool
        metadata: {{name: p}}
        spec: {{gpu: {gpu}, nodes: {nodes}, sharing: {sharing}}}
        """
    ).pools
    return pool


def counts(unit: Unit) -> tuple[str, str | None, int, int, int]:
    return unit.name, unit.resource, unit.per_gpu[0], unit.per_node, unit.capacity


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        ("{exclusive: {}}", ("gpu", "nvidia.com/gpu", 1, 8, 16)),
        ("{timeSlicing: {replicas: 3}}", ("shared", "nvidia.com/gpu.shared", 3, 24, 48)),
        ("{timeSlicing: {replicas: 3, rename: false}}", ("shared", "nvidia.com/gpu", 3, 24, 48)),
        ("{mps: {replicas: 4}}", ("shared", "nvidia.com/gpu.shared", 4, 32, 64)),
        ("{mps: {replicas: 4, rename: false}}", ("shared", "nvidia.com/gpu", 4, 32, 64)),
        ("{fraction: {}}", ("fraction", None, 1, 8, 16)),
        ("{mig: {instances: {3g.40gb: 2}}}", ("3g.40gb", "nvidia.com/mig-3g.40gb", 2, 16, 32)),
        ("{mig: {instances: {3g.40gb: 2}, strategy: single}}", ("3g.40gb", "nvidia.com/gpu", 2, 16, 32)),
        ("{mig: {instances: {1g.10gb+me: 1}}}", ("1g.10gb+me", "nvidia.com/mig-1g.10gb.me", 1, 8, 16)),
        (
            "{mig: {instances: {1g.10gb: 7}, timeSlicing: {replicas: 2}}}",
            ("1g.10gb", "nvidia.com/mig-1g.10gb.shared", 14, 112, 224),
        ),
        (
            "{mig: {instances: {1g.10gb: 7}, strategy: single, timeSlicing: {replicas: 2}}}",
            ("1g.10gb", "nvidia.com/gpu.shared", 14, 112, 224),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unit(sharing: str, expected: tuple[str, str | None, int, int, int]) -> None:
    (unit,) = a_pool(sharing).units
    assert counts(unit) == expected


def test_units_of_a_mixed_layout_come_in_catalog_order() -> None:
    pool = a_pool("{mig: {instances: {3g.40gb: 1, 1g.10gb: 2, 2g.20gb: 1}}}")
    assert [(unit.name, unit.capacity) for unit in pool.units] == [("1g.10gb", 32), ("2g.20gb", 16), ("3g.40gb", 16)]


def test_profiles_that_are_not_named_stay_undivided() -> None:
    pool = a_pool("{mig: {instances: {3g.40gb: 1, 1g.10gb: 2, 2g.20gb: 1}, timeSlicing: {replicas: {1g.10gb: 4}}}}")
    assert [(*counts(unit), unit.memory_mib, unit.isolation, unit.gpu_weight) for unit in pool.units] == [
        ("1g.10gb", "nvidia.com/mig-1g.10gb.shared", 8, 64, 128, 2432, Isolation.NONE, Fraction(1, 4)),
        ("2g.20gb", "nvidia.com/mig-2g.20gb", 1, 8, 16, 19968, Isolation.HARDWARE, 2),
        ("3g.40gb", "nvidia.com/mig-3g.40gb", 1, 8, 16, 40192, Isolation.HARDWARE, 3),
    ]


def test_counts_by_gpu_index_follow_the_devices() -> None:
    pool = a_pool(
        "{mig: {devices: [{gpus: [0, 1], instances: {1g.10gb: 7}}, {gpus: [2, 3], enabled: false}]}}",
        nodes="{count: 3, gpusPerNode: 4, names: [a, b, c]}",
    )
    assert [(unit.name, unit.resource, unit.per_gpu, unit.capacity) for unit in pool.units] == [
        ("1g.10gb", "nvidia.com/mig-1g.10gb", (7, 7, 0, 0), 42),
        ("gpu", "nvidia.com/gpu", (0, 0, 1, 1), 6),
    ]


@pytest.mark.parametrize(
    ("sharing", "weight", "isolation"),
    [
        ("{exclusive: {}}", Fraction(1), Isolation.WHOLE_GPU),
        ("{timeSlicing: {replicas: 3}}", Fraction(1, 3), Isolation.NONE),
        ("{mps: {replicas: 4}}", Fraction(1, 4), Isolation.MPS),
        ("{mig: {instances: {2g.20gb: 3}}}", Fraction(2), Isolation.HARDWARE),
        ("{mig: {instances: {2g.20gb: 3}, timeSlicing: {replicas: 4}}}", Fraction(1, 2), Isolation.NONE),
        ("{mig: {instances: {2g.20gb: 3}, strategy: single}}", Fraction(1), Isolation.HARDWARE),
    ],
)
def test_weight_and_isolation(sharing: str, weight: Fraction, isolation: Isolation) -> None:
    (unit,) = a_pool(sharing).units
    assert (unit.gpu_weight, unit.isolation) == (weight, isolation)


def test_memory_of_a_mig_unit_is_what_is_usable_not_what_its_name_says() -> None:
    (unit,) = a_pool("{mig: {instances: {1g.10gb: 7}}}", gpu="H100-80GB").units
    assert unit.memory_mib == 9984


def test_memory_of_a_share_is_an_even_part() -> None:
    (unit,) = a_pool("{timeSlicing: {replicas: 4}}").units
    (whole,) = a_pool("{exclusive: {}}").units
    assert whole.memory_mib is not None
    assert unit.memory_mib == whole.memory_mib // 4


@pytest.mark.parametrize(
    ("sharing", "memory_mib"),
    [
        ("{exclusive: {}}", 81920),
        ("{timeSlicing: {replicas: 0}}", 81920),
        ("{timeSlicing: {replicas: 1}}", 81920),
        ("{timeSlicing: {replicas: 2}}", 40960),
        ("{mps: {replicas: 3}}", 27306),
    ],
)
def test_memory_of_a_unit_is_in_mebibytes(sharing: str, memory_mib: int) -> None:
    assert [unit.memory_mib for unit in a_pool(sharing).units] == [memory_mib]


def config_name(pool: Pool) -> str:
    assert isinstance(pool.sharing, Mig)
    return pool.sharing.layout.config_name


def test_mig_pool_is_labelled_with_its_layout() -> None:
    pool = a_pool("{mig: {instances: {1g.10gb: 7}}}")
    assert pool.labels == {
        "gpuplan.dev/pool": "p",
        "nvidia.com/device-plugin.config": "p",
        "nvidia.com/mig.config": config_name(pool),
    }


def test_whole_gpus_that_could_be_partitioned_are_labelled_all_disabled() -> None:
    assert a_pool("{exclusive: {}}").labels["nvidia.com/mig.config"] == "all-disabled"


def test_gpus_without_mig_get_no_mig_label() -> None:
    assert "nvidia.com/mig.config" not in a_pool("{exclusive: {}}", gpu="T4-16GB").labels


def layout_name(instances: str) -> str:
    return config_name(a_pool(f"{{mig: {{instances: {instances}}}}}"))


def test_config_name_changes_with_the_content_only() -> None:
    assert layout_name("{1g.10gb: 7}") == layout_name("{1g.10gb: 7}")
    assert layout_name("{3g.40gb: 1, 2g.20gb: 2}") == layout_name("{2g.20gb: 2, 3g.40gb: 1}")
    assert layout_name("{1g.10gb: 7}") != layout_name("{1g.10gb: 6}")


def test_config_name_does_not_change_with_the_order_of_devices() -> None:
    def name(devices: str) -> str:
        return config_name(a_pool(f"{{mig: {{devices: {devices}}}}}"))

    one, other = "{gpus: [0, 1], instances: {1g.10gb: 7}}", "{gpus: [2, 3, 4, 5, 6, 7], enabled: false}"
    assert name(f"[{one}, {other}]") == name(f"[{other}, {one}]")
    assert name(f"[{one}, {other}]") == name(f"[{one.replace('0, 1', '1, 0')}, {other}]")
    assert name(f"[{one}, {other}]") != name(f"[{one.replace('0, 1', '0, 2')}, {other.replace('2, 3', '1, 3')}]")


def test_a_profile_that_is_named_with_zero_is_none() -> None:
    pool = a_pool("{mig: {instances: {1g.10gb: 2, 3g.40gb: 0}}}")
    assert [(unit.name, unit.per_node) for unit in pool.units] == [("1g.10gb", 16)]


def test_two_names_of_one_profile_are_added_up() -> None:
    pool = a_pool("{mig: {instances: {3g.39gb: 1, 3g.40gb: 1}}}")
    assert isinstance(pool.sharing, Mig)
    [entry] = pool.sharing.layout.entries
    assert isinstance(entry.placed, Placed)
    assert [instance.profile.name for instance in entry.placed.instances] == ["3g.40gb", "3g.40gb"]


def test_a_gpu_becomes_what_the_last_entry_that_names_it_says() -> None:
    pool = a_pool(
        "{mig: {devices: [{gpus: all, instances: {1g.10gb: 7}}, {gpus: [1], instances: {3g.40gb: 2}}]}}",
        nodes="{count: 1, gpusPerNode: 2, names: [a]}",
    )
    assert [(unit.name, unit.per_gpu) for unit in pool.units] == [("1g.10gb", (7, 0)), ("3g.40gb", (0, 2))]


def test_config_name_ends_in_eight_digits_of_the_content() -> None:
    assert layout_name("{1g.10gb: 7}") == "p-2d7d978e"


@pytest.mark.parametrize(("memory_mib", "divisible"), [(81920, 81900), (15360, 15300), (80, 100)])
def test_memory_is_divided_in_whole_hundreds(memory_mib: int, divisible: int) -> None:
    """A board of 80 MiB is one whose GiB somebody took for MiB."""
    assert divisible_mib(replace(a_pool("{fraction: {}}").gpu, memory_mib=memory_mib)) == divisible
