"""What syncs a folder is called as the folder, and shortened where a label has no room."""

from __future__ import annotations

import pytest

from gpuplan.compiler.planning.sync_names import folder_name, namespace_name, sync_name


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("gpu-operator", "gpu-operator-prod"),
        ("partitions", "gpu-partitions-prod"),
        ("partitions/a100", "gpu-partitions-prod-a100"),
        ("scheduling", "gpu-tenancy-prod"),
        ("queues/a100", "gpu-queues-prod-a100"),
        ("namespaces", "gpu-namespaces-prod"),
        ("namespaces/lab", "gpu-namespace-prod-lab"),
        ("monitoring", "gpu-monitoring-prod"),
        ("workloads/lab", "gpu-workloads-prod-lab"),
        ("workloads/lab/chat", "gpu-workloads-prod-lab-chat"),
    ],
)
def test_the_name_of_what_syncs_a_folder(folder: str, name: str) -> None:
    assert sync_name("prod", folder) == name
    assert folder_name("prod", folder) == name


def test_a_namespace_is_synced_under_the_name_of_its_folder() -> None:
    assert namespace_name("prod", "lab") == sync_name("prod", "namespaces/lab")


def pool_of(length: int) -> str:
    """A folder whose Kustomization has a name of so many characters."""
    return f"partitions/{'p' * (length - len('gpu-partitions-prod-'))}"


def test_a_name_of_63_characters_is_as_it_is() -> None:
    assert folder_name("prod", pool_of(63)) == f"gpu-partitions-prod-{'p' * 43}"


def test_a_longer_name_ends_in_a_digest_of_the_whole() -> None:
    assert folder_name("prod", pool_of(64)) == f"gpu-partitions-prod-{'p' * 34}-cf5c8671"
    assert folder_name("prod", pool_of(64)) != folder_name("prod", pool_of(65))


def test_no_two_dashes_stand_before_the_digest() -> None:
    name = folder_name("prod", f"partitions/{'p' * 33}-{'q' * 20}")
    assert (name[:-8], name[-8:].isalnum()) == (f"gpu-partitions-prod-{'p' * 33}-", True)
