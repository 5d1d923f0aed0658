"""MIG profiles as `nvidia-smi` lists them, and what contradicts itself in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuplan.compiler.catalog import Gpu, Placement, load
from gpuplan.compiler.catalog.architectures import architecture_of
from gpuplan.compiler.catalog.invariants import contradictions
from gpuplan.compiler.catalog.listings import Listing, read_listing
from tests.every import every

LGIP = """\
+-----------------------------------------------------------------------------+
| GPU instance profiles:                                                      |
| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                              Free/Total   GiB              CE    JPEG  OFA  |
|=============================================================================|
|   0  MIG 1g.6gb        14     0/4        5.81       No     14     1     0   |
|                                                             1     0     0   |
+-----------------------------------------------------------------------------+
|   0  MIG 1g.6gb+me     21     1/1        5.81       No     14     1     0   |
|                                                             1     1     1   |
+-----------------------------------------------------------------------------+
|   0  MIG 2g.12gb        5     2/2        11.69      No     28     2     0   |
|                                                             2     0     0   |
+-----------------------------------------------------------------------------+
|   0  MIG 4g.24gb        0     1/1        23.44      No     56     4     0   |
|                                                             4     1     1   |
+-----------------------------------------------------------------------------+
"""
LGIPP = """\
GPU  0 Profile ID 14 Placements: {0,1,2,3}:1
GPU  0 Profile ID 21 Placements: {0,1,2,3}:1
GPU  0 Profile ID  5 Placements: {0,2}:2
GPU  0 Profile ID  0 Placement : {0}:4
"""


def printed(gpu: Gpu, device: int = 0) -> tuple[str, str]:
    """What `nvidia-smi mig -lgip` and `-lgipp` print of a model, in the form of the driver's tables."""
    lgip, lgipp = [], []
    for number, item in enumerate(gpu.profiles):
        memory, counts = item.memory_gib or 0.9 * item.parsed.gigabytes, (item.sm or 0, item.dec or 0, item.enc or 0)
        lgip.append(
            f"|   {device}  MIG {item.name:<14} {number:>2}     {item.max_instances}/{item.max_instances}   "
            f"     {memory:<8} No   {counts[0]:>4}  {counts[1]:>4}  {counts[2]:>4}   |"
        )
        lgip.append(f"|{item.ce or 0:>62} {item.jpeg or 0:>5} {item.ofa or 0:>5}   |")
        starts = ",".join(map(str, item.starts))
        lgipp.append(f"GPU  {device} Profile ID {number:>2} Placements: {{{starts}}}:{item.memory_slices}")
    return "\n".join(lgip), "\n".join(lgipp)


def test_the_tables_of_an_a30_are_its_profiles() -> None:
    known = load().get("A30-24GB")
    found = {profile.name: profile for profile in read_listing(LGIP, LGIPP).profiles}

    assert {name: (item.starts, item.memory_slices, item.max_instances, item.sm) for name, item in found.items()} == {
        name: (item.starts, item.memory_slices, item.max_instances, item.sm)
        for name in found
        if (item := known.find_profile(name))
    }
    assert found["1g.6gb+me"].engines == (1, 0, 1, 1)
    assert found["2g.12gb"].memory_gib == 11.69


@pytest.mark.parametrize("gpu", [gpu for gpu in load().all() if gpu.profiles], ids=lambda gpu: gpu.id)
def test_every_model_of_the_catalog_is_read_back_from_its_tables(gpu: Gpu) -> None:
    found = read_listing(*printed(gpu))

    assert found.faults == ()
    assert {item.name: (item.placements, item.max_instances) for item in found.profiles} == {
        item.name: (item.placements, item.max_instances) for item in gpu.profiles
    }


def test_tables_of_several_boards_are_one() -> None:
    one, other = printed(load().get("A30-24GB")), printed(load().get("A30-24GB"), device=1)

    assert read_listing(one[0] + "\n" + other[0], one[1] + "\n" + other[1]) == read_listing(*one)


def fault(lgip: str = LGIP, lgipp: str = LGIPP) -> str:
    found = read_listing(lgip, lgipp)
    assert found == Listing((), found.faults)
    return found.faults[0]


def test_what_is_no_table_is_a_fault() -> None:
    assert fault(lgip="No MIG-enabled devices found.") == "nothing in it is as `nvidia-smi mig -lgip` prints it"
    assert fault(lgipp="") == "nothing in it is as `nvidia-smi mig -lgipp` prints it"


def test_profiles_of_one_table_alone_are_a_fault() -> None:
    assert fault(lgipp=LGIPP.replace("GPU  0 Profile ID  5 Placements: {0,2}:2\n", "")) == (
        "`-lgipp` says nothing of 2g.12gb (5)"
    )
    assert fault(lgipp=LGIPP + "GPU  0 Profile ID  9 Placement : {0}:2\n") == "`-lgip` has no profile with the id 9"


def test_boards_that_differ_are_a_fault() -> None:
    assert fault(lgipp=LGIPP + "GPU  1 Profile ID 14 Placements: {0,1}:1\n") == (
        "GPU 1 is listed otherwise than GPU 0: `nvidia-smi mig -lgipp -i 0` prints one"
    )


def test_a_name_that_is_no_profiles_is_a_fault() -> None:
    assert fault(lgip=LGIP.replace("2g.12gb ", "2g-12gb ")) == "`2g-12gb` is no MIG profile's name"


# --- Contradictions ----------------------------------------------------------------------------------------------

A30 = load().get("A30-24GB")


def changed(profile: str, **fields: Any) -> Gpu:
    """An A30 of which one profile is another one."""
    return replace(
        A30, profiles=tuple(item._replace(**fields) if item.name == profile else item for item in A30.profiles)
    )


@pytest.mark.parametrize(
    ("gpu", "fault"),
    [
        (changed("1g.6gb", placements=()), "`1g.6gb` may start nowhere"),
        (changed("2g.12gb", placements=(Placement(0, 2), Placement(3, 2))), "`2g.12gb` cannot start at 3"),
        (changed("2g.12gb", max_instances=3), "`2g.12gb` fits 2 times by its placements, not 3 times"),
        (changed("1g.6gb+me", max_instances=4), "`1g.6gb+me` fits 1 times by its placements, not 4 times"),
        (changed("4g.24gb", placements=(Placement(1, 4),)), "no profile is the whole board"),
        (changed("1g.6gb", name="1g.8gb"), "`1g.8gb` has 1 of 4 memory slices of 24 GiB, which is 6gb"),
        (changed("1g.6gb", memory_gib=12), "`1g.6gb` cannot have 12 GiB"),
        (changed("2g.12gb", name="1c.2g.12gb"), "`1c.2g.12gb` is a compute instance's name"),
        (changed("2g.12gb", name="1g.6gb"), "`1g.6gb` is there twice"),
        (replace(A30, memory_gib=40), "`4g.24gb` is the whole board, which has 40 GiB"),
    ],
    ids=lambda value: value.replace("`", "") if isinstance(value, str) else "",
)
def test_what_cannot_be_is_said(gpu: Gpu, fault: str) -> None:
    assert any(found.startswith(fault) for found in contradictions(gpu))


def test_a_model_without_mig_cannot_contradict_itself() -> None:
    assert [*contradictions(load().get("T4-16GB"))] == []


# --- Architectures -----------------------------------------------------------------------------------------------


@every(load().all(), lambda gpu: gpu.id)
def test_the_architecture_follows_from_the_compute_capability(gpu: Gpu) -> None:
    assert architecture_of(gpu.compute_capability) == gpu.architecture


def test_a_capability_before_all_that_is_known_has_no_architecture() -> None:
    assert architecture_of((2, 0)) == "unknown"
