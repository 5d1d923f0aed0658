"""What must hold for every row of every model in the catalog."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from math import ceil
from pathlib import Path

import pytest
import yaml

from gpuplan.compiler.catalog import Gpu, Profile, load, parse_profile
from gpuplan.compiler.catalog.invariants import contradictions
from tests.every import every, every_row

GPUS = load().all()
MIG_GPUS = tuple(gpu for gpu in GPUS if gpu.profiles)
ROWS = tuple((gpu, profile) for gpu in MIG_GPUS for profile in gpu.profiles)

every_gpu = every(GPUS, lambda gpu: gpu.id)
every_mig_gpu = every(MIG_GPUS, lambda gpu: gpu.id)
every_profile = every_row(ROWS, lambda gpu, profile: f"{gpu.id} {profile.name}")

KNOWN = yaml.safe_load((Path(__file__).parent / "known_good_layouts.yaml").read_text())
KNOWN_PROFILES = {
    *((id_, name) for row in KNOWN["published"] for id_ in row.get("gpus", ()) for name in row["instances"]),
    *((row["gpu"], name) for row in KNOWN["observed"] for name in row["instances"]),
}
PROFILE_FIELDS = set(Profile._fields) | {"starts"}
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def test_boards_of_one_axis_are_divided_alike() -> None:
    shapes = {
        (gpu.compute_slices, gpu.memory_slices, *sorted(_shape(profile) for profile in gpu.profiles))
        for gpu in MIG_GPUS
    }

    assert len(shapes) == len({(gpu.compute_slices, gpu.memory_slices) for gpu in MIG_GPUS})


def _shape(profile: Profile) -> tuple[int, int, tuple[int, ...], tuple[str, ...]]:
    return profile.compute_slices, profile.memory_slices, profile.starts, profile.attributes


# --- Every model -------------------------------------------------------------------------------------------------


@every(load().ids())
def test_a_file_is_named_for_the_id_in_it(id_: str) -> None:
    assert load().get(id_).id == id_


@every_gpu
def test_a_model_names_its_sources(gpu: Gpu) -> None:
    assert gpu.sources
    assert all(source.citation for source in gpu.sources)
    assert re.fullmatch(r"20\d\d-\d\d", gpu.read_on)


@every_gpu
def test_a_model_has_no_slices_or_profiles_unless_its_mig_is_known(gpu: Gpu) -> None:
    knows_mig = gpu.supports_mig and gpu.is_complete
    assert knows_mig == bool(gpu.profiles) == bool(gpu.compute_slices) == bool(gpu.memory_slices)


@every_gpu
def test_reported_memory_is_near_the_size_in_the_name(gpu: Gpu) -> None:
    if gpu.memory_mib is not None:
        assert 0.93 <= gpu.memory_mib / (gpu.memory_gib * 1024) <= 1.001


@every_gpu
def test_a_device_filter_is_a_device_id_followed_by_the_vendor_id(gpu: Gpu) -> None:
    for device in gpu.pci:
        assert re.fullmatch(r"0x[0-9A-F]{4}10DE", device.filter)


@every_gpu
def test_product_labels_are_label_values(gpu: Gpu) -> None:
    for product in gpu.products:
        assert LABEL_VALUE.fullmatch(product.label)


def test_no_device_id_is_in_two_models() -> None:
    devices = Counter(device.device for gpu in GPUS for device in gpu.pci)
    assert devices.most_common(1)[0][1] == 1


def test_no_product_label_is_in_two_models() -> None:
    labels = Counter(product.label for gpu in GPUS for product in gpu.products)
    assert labels.most_common(1)[0][1] == 1


@every_gpu
def test_no_model_contradicts_itself(gpu: Gpu) -> None:
    assert [*contradictions(gpu)] == []


# --- Every model with MIG ----------------------------------------------------------------------------------------


@every_mig_gpu
def test_the_models_name_is_the_reported_memory_rounded_up(gpu: Gpu) -> None:
    if gpu.memory_mib is not None:
        assert ceil(gpu.memory_mib / 1024) == gpu.memory_gib


@every_mig_gpu
def test_profiles_are_in_the_order_of_their_size(gpu: Gpu) -> None:
    for one, next_ in pairwise(gpu.plain_profiles):
        assert (one.compute_slices, one.memory_slices) < (next_.compute_slices, next_.memory_slices)


@every_mig_gpu
def test_board_totals_of_engines_are_those_of_the_whole_board_profile(gpu: Gpu) -> None:
    if gpu.engines.ofa is not None:
        assert gpu.engines == gpu.base_profiles[-1].engines


@every_mig_gpu
def test_a_legacy_name_stands_for_a_profile_and_is_none(gpu: Gpu) -> None:
    for name, legacy in gpu.legacy_names.items():
        assert gpu.find_profile(name) is None
        profile = gpu.find_profile(legacy.profile)
        assert profile is not None
        assert gpu.similar_profiles(name) == (profile,)
        parsed = parse_profile(name)
        assert parsed is not None
        assert parsed.compute_slices == profile.compute_slices
        assert legacy.note


# --- Every row ---------------------------------------------------------------------------------------------------


@every_profile
def test_placements_are_distinct_and_in_order(gpu: Gpu, profile: Profile) -> None:
    assert list(profile.placements) == sorted(set(profile.placements))


@every_profile
def test_the_name_says_the_compute_slices(gpu: Gpu, profile: Profile) -> None:
    assert profile.parsed.compute_slices == profile.compute_slices <= gpu.compute_slices
    assert profile.parsed.compute_instance_slices is None


@every_profile
def test_memory_in_mib_and_gib_agree(gpu: Gpu, profile: Profile) -> None:
    if profile.memory_gib is not None and profile.memory_mib is not None:
        assert profile.memory_mib == pytest.approx(profile.memory_gib * 1024, rel=0.02)
        assert profile.memory_mib <= (profile.memory_gib + 0.01) * 1024, "more than a listing says is no room for a pod"


@every_profile
def test_engines_of_a_part_are_within_the_board(gpu: Gpu, profile: Profile) -> None:
    for engine, total in gpu.engines.items():
        if total is not None:
            assert 0 <= getattr(profile, engine) <= total


@every_profile
def test_only_media_profiles_and_the_whole_board_have_optical_flow(gpu: Gpu, profile: Profile) -> None:
    is_whole = profile.compute_slices == gpu.compute_slices
    if profile.ofa is not None:
        assert profile.ofa == int(profile.is_media or is_whole)


@every_profile
def test_a_row_names_sources_of_its_model(gpu: Gpu, profile: Profile) -> None:
    assert profile.sources
    assert set(profile.sources) <= {source.key for source in gpu.sources}


@every_profile
def test_placements_that_were_not_inferred_have_a_source_that_lists_them(gpu: Gpu, profile: Profile) -> None:
    """`nvidia-smi mig -lgipp` and `-lgi` print placements, and the mock of NVML answers with them."""
    read = [source.citation for source in gpu.sources if source.key in profile.sources]
    is_listed = any(re.search(r"placements|-lgi(pp)?\b|nvml/mock/gpus", citation) for citation in read)
    assert is_listed or {"placements", "starts"} & set(profile.derived)


@every_profile
def test_a_profile_is_in_a_layout_that_is_known_to_work(gpu: Gpu, profile: Profile) -> None:
    if "name" not in profile.derived:
        assert (gpu.id, profile.name) in KNOWN_PROFILES, "add a layout to known_good_layouts.yaml"


@every_profile
def test_what_is_derived_is_a_field(gpu: Gpu, profile: Profile) -> None:
    assert set(profile.derived) <= PROFILE_FIELDS


@every_profile
def test_resource_suffixes_are_label_values(gpu: Gpu, profile: Profile) -> None:
    assert LABEL_VALUE.fullmatch(f"all-{profile.resource_suffix}")
