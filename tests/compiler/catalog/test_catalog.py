"""Finding models by name, reading no file sooner than needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.catalog import Catalog, Placement, load
from gpuplan.compiler.catalog.loading import read_gpu
from gpuplan.compiler.catalog.models import LegacyName

A_CARD = """\
id: CARD-8GB
name: A card
architecture: Imaginary
compute_capability: "12.3"
memory_gib: 8
products:
  - {label: A-Card}
  - {label: A-Card-OEM, derived: its PCI name}
pci:
  - {device: "0x0001", name: A Card}
sources: {label: a node}
read_on: 2026-08
"""


class CountedFile:
    """Stands in for a data file and counts how often it is read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.reads = 0

    def read_text(self, encoding: str) -> str:
        self.reads += 1
        return self.text


# --- Loading -----------------------------------------------------------------------------------------------------


def test_the_catalog_is_loaded_once() -> None:
    assert load() is load()


def test_ids_are_sorted() -> None:
    ids = load().ids()
    assert list(ids) == sorted(ids)


def test_asking_for_ids_reads_no_file() -> None:
    file: Any = CountedFile(A_CARD)
    assert Catalog({"CARD-8GB": file}).ids() == ("CARD-8GB",)
    assert file.reads == 0


def test_a_model_is_read_once_and_its_neighbours_never() -> None:
    wanted: Any = CountedFile(A_CARD)
    neighbour: Any = CountedFile(A_CARD)
    catalog = Catalog({"CARD-8GB": wanted, "OTHER-8GB": neighbour})
    assert catalog.find("CARD-8GB") is catalog.find("CARD-8GB")
    assert (wanted.reads, neighbour.reads) == (1, 0)


@pytest.mark.parametrize("text", ["memory_gb: 80\n", "compute_capability: '8.0'\nproducts: [{lable: x}]\n"])
def test_a_file_that_lacks_a_key_or_misspells_one_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "a100-80gb.yaml").write_text(text)

    with pytest.raises((KeyError, TypeError)) as caught:
        Catalog({"A100-80GB": tmp_path / "a100-80gb.yaml"}).find("A100-80GB")

    assert caught.value.__notes__ == ["a key is missing, misspelt or of another type in a100-80gb.yaml"]


def test_importing_the_catalog_imports_neither_pydantic_nor_difflib() -> None:
    code = "import sys, gpuplan.compiler.catalog; print({'pydantic', 'difflib', 'jinja2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# --- Models ------------------------------------------------------------------------------------------------------


def test_a_model_without_mig() -> None:
    gpu = read_gpu(A_CARD)
    assert (gpu.id, gpu.compute_capability, gpu.memory_gib, gpu.memory_mib) == ("CARD-8GB", (12, 3), 8, None)
    assert not gpu.supports_mig
    assert gpu.is_complete
    assert gpu.profiles == ()
    assert [product.derived for product in gpu.products] == ["", "its PCI name"]
    assert gpu.pci[0].filter == "0x000110DE"


def test_a_model_whose_mig_is_not_known_well_enough() -> None:
    gpu = read_gpu(A_CARD + "mig: {incomplete: nobody has looked}\n")
    assert gpu.supports_mig
    assert not gpu.is_complete
    assert gpu.incomplete_reason == "nobody has looked"


def test_a_profile() -> None:
    profile = load().get("A100-80GB").find_profile("3g.40gb")
    assert profile is not None
    assert profile.placements == (Placement(0, 4), Placement(4, 4))
    assert (profile.compute_slices, profile.memory_slices, profile.max_instances) == (3, 4, 2)
    assert (profile.memory_gib, profile.memory_mib) == (39.25, 40192)
    assert (profile.sm, profile.ce, profile.dec, profile.enc, profile.jpeg, profile.ofa) == (42, 3, 2, 0, 0, 0)


def test_the_same_name_is_another_share_elsewhere() -> None:
    on_80, on_40 = (load().get(id_).find_profile("1g.10gb") for id_ in ("A100-80GB", "A100-40GB"))
    assert on_80 is not None
    assert on_40 is not None
    assert (on_80.max_instances, on_40.max_instances) == (7, 4)


def test_what_nobody_has_read_is_none_and_not_zero() -> None:
    profile = load().get("B300-269GB").find_profile("1g.34gb")
    assert profile is not None
    assert (profile.memory_gib, profile.memory_mib, profile.sm, profile.dec) == (None, None, None, None)


def test_plain_profiles_have_no_attributes() -> None:
    gpu = load().get("RTX-PRO-6000-96GB")
    assert [profile.name for profile in gpu.plain_profiles] == ["1g.24gb", "2g.48gb", "4g.96gb"]


def test_base_profiles_leave_out_double_memory() -> None:
    gpu = load().get("A100-80GB")
    assert [profile.name for profile in gpu.base_profiles] == ["1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"]


def test_media_profiles() -> None:
    gpu = load().get("RTX-PRO-6000-96GB")
    media = [profile.name for profile in gpu.profiles if profile.is_media]
    assert media == ["1g.24gb+me", "1g.24gb+me.all", "2g.48gb+me.all"]


def test_early_names_of_gb200() -> None:
    legacy = load().get("GB200-186GB").legacy_names
    assert {name: old.profile for name, old in legacy.items()} == {
        "1g.24gb": "1g.23gb",
        "1g.24gb+me": "1g.23gb+me",
        "3g.95gb": "3g.93gb",
        "4g.95gb": "4g.93gb",
        "7g.189gb": "7g.186gb",
    }
    assert isinstance(legacy["7g.189gb"], LegacyName)


@pytest.mark.parametrize(
    ("id_", "name", "similar"),
    [
        ("A100-80GB", "1g.5gb", ["1g.10gb", "1g.20gb"]),
        ("A100-80GB", "1g.18gb", ["1g.20gb", "1g.10gb"]),
        ("A100-80GB", "1g.5gb+me", ["1g.10gb+me"]),
        ("A100-40GB", "3g.40gb", ["3g.20gb"]),
        ("A30-24GB", "7g.40gb", []),
        ("H100-80GB", "7g.79gb", ["7g.80gb"]),
        ("A100-80GB", "nonsense", []),
    ],
)
def test_profiles_like_another_models(id_: str, name: str, similar: list[str]) -> None:
    assert [profile.name for profile in load().get(id_).similar_profiles(name)] == similar


@pytest.mark.parametrize(("placement", "text"), [(Placement(4, 4), "4-7"), (Placement(6, 1), "6")])
def test_a_placement_is_spelt_by_its_slices(placement: Placement, text: str) -> None:
    assert str(placement) == text


# --- Suggestions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("A100", ("A100-40GB", "A100-80GB")),
        ("a100-80gb", ("A100-80GB",)),
        ("A100-80", ("A100-80GB",)),
        ("A100 80GB", ("A100-80GB",)),
        ("NVIDIA-A100-SXM4-80GB", ("A100-80GB",)),
        ("NVIDIA-A100-SXM4-80GB-SHARED", ("A100-80GB",)),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", ("A100-80GB",)),
        ("H100-SXM5-80GB", ("H100-80GB",)),
        ("H100", ("H100-80GB", "H100-94GB", "H100-96GB")),
        ("GH200", ("GH200-144GB", "H100-96GB")),
        ("T4", ("T4-16GB",)),
        ("Tesla-T4", ("T4-16GB",)),
        ("V100", ("V100-16GB", "V100-32GB")),
        ("L40", ("L40-48GB",)),
        ("A10", ("A10-24GB",)),
        ("RTX 6000 Ada", ("RTX-6000-ADA-48GB",)),
        ("H100-80G", ("H100-80GB",)),
        ("A800-80GB", ("A100-80GB",)),
        ("A100-SXM-80GB", ("A100-80GB",)),
    ],
)
def test_what_a_name_may_stand_for(name: str, ids: tuple[str, ...]) -> None:
    assert load().suggest(name) == ids


def test_swapped_letters_still_lead_to_the_model_first() -> None:
    assert load().suggest("A100-80BG")[0] == "A100-80GB"


@pytest.mark.parametrize(
    "name",
    [
        "A6000",
        "RTX-A6000",
        "A100X",
        "A30X",
        "AX800",
        "A16",
        "L20",
        "P40",
        "P100",
        "V100-64GB",
        "T4G",
        "A100-96GB",
        "A100-64GB",
        "RTX-6000",
        "Quadro-RTX-6000",
        "Quadro-RTX-8000",
        "RTX-5000-ADA",
        "RTX-PRO-5000-72GB",
        "RTX-3090",
        "RTX-5090",
        "B100",
        "Jetson-Orin",
    ],
)
def test_no_other_board_is_meant_by_the_name_of_one(name: str) -> None:
    assert load().suggest(name) == ()


@pytest.mark.parametrize("name", ["", "-", "quantum", "RTX-4090"])
def test_what_stands_for_nothing(name: str) -> None:
    assert load().suggest(name) == ()


@pytest.mark.parametrize("name", ["A100", "a100-80gb", "NVIDIA-A100-SXM4-80GB", ""])
def test_only_an_id_finds_a_model(name: str) -> None:
    assert load().find(name) is None


def test_asking_for_an_unknown_model_is_trouble_that_helps() -> None:
    with pytest.raises(GpuplanError, match="no GPU model `A100` in the catalog") as trouble:
        load().get("A100")
    assert trouble.value.hint == "did you mean `A100-40GB` or `A100-80GB`?"


def test_asking_for_a_model_like_no_other_points_to_the_list() -> None:
    with pytest.raises(GpuplanError) as trouble:
        load().get("quantum")
    assert trouble.value.hint == "`gpuplan catalog` lists the models"
