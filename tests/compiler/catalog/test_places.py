"""Where facts of the catalog stand, and who says so."""

from __future__ import annotations

from pathlib import Path

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.catalog import load
from gpuplan.compiler.catalog.places import CatalogFile, gpu_fact, operator_fact, profile_fact

REPOSITORY = Path(__file__).parents[3]


def line_at(at: Origin) -> str:
    location = at.locate()
    return (REPOSITORY / location.file.path).read_text().splitlines()[location.span.start.line - 1].strip()


def citation(at: Origin) -> str:
    assert isinstance(at.source, CatalogFile)
    return at.source.citation(at.path)


def test_a_fact_of_a_model_is_a_line_of_its_file() -> None:
    assert line_at(gpu_fact(load().get("A100-80GB"), "memory_gib")) == "memory_gib: 80"


def test_a_profile_is_a_row_with_sources_of_its_own() -> None:
    at = profile_fact(load().get("A100-80GB"), "3g.40gb")

    assert line_at(at).startswith("- {name: 3g.40gb,")
    assert citation(at).startswith("public outputs of nvidia-smi mig -lgip")
    assert "NVIDIA/DCGM" not in citation(at)


def test_what_names_no_source_has_those_of_its_file() -> None:
    assert "NVIDIA/DCGM" in citation(gpu_fact(load().get("A100-80GB"), "memory_gib"))


def test_a_profile_that_there_is_not_is_where_the_others_are() -> None:
    assert line_at(profile_fact(load().get("A100-80GB"), "9g.90gb")) == "profiles:"


def test_a_fact_of_the_operator_has_the_sources_of_its_line() -> None:
    at = operator_fact("lines", 0, "cdi")

    assert line_at(at) == "cdi: {enabled: false, default: false}"
    assert citation(at).startswith(
        "the values.yaml of the release's chart, as helm-values.yaml names it; NVIDIA/gpu-oper"
    )
    assert "Container Device Interface" not in citation(at)
