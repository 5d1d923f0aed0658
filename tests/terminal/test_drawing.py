"""Pictures: to scale, readable in light and in dark, and never more than text where a name is hostile."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from gpuplan.compiler import catalog
from gpuplan.compiler.planning.placement.placing import Placed, place
from gpuplan.terminal import svg
from gpuplan.terminal.data import palette
from gpuplan.terminal.drawing import catalog_svg, layout_svg, plan_svg, pool_svg
from tests.platforms import a_platform, pool, tenant

MIXED = "mig: {instances: {3g.40gb: 1, 2g.20gb: 1}}"


def drawn(text: str) -> ET.Element:
    return ET.fromstring(text)


def boxes(root: ET.Element, looks: str) -> list[tuple[float, float]]:
    """Where boxes of a kind stand, and how wide they are."""
    found = (item for item in root.findall(".//{*}rect") if looks in item.get("class", "").split())
    return [(float(item.get("x", 0)), float(item.get("width", 0))) for item in found]


def texts(root: ET.Element) -> list[str]:
    return ["".join(item.itertext()) for item in root.findall(".//{*}text")]


def a_layout(**counts: int) -> str:
    gpu = catalog.load().get("A100-80GB")
    placed = place(gpu, counts)
    assert isinstance(placed, Placed)
    return layout_svg(gpu, placed.instances, "<b>&")


def test_instances_are_as_wide_as_their_memory_slices() -> None:
    root = drawn(a_layout(**{"3g.40gb": 1, "2g.20gb": 1}))
    assert sorted(boxes(root, "gp-box")) == [(0, 80), (0, 320), (160, 160)]  # 2, 8 and 4 slices of 40


def test_what_nothing_takes_is_hatched() -> None:
    text = a_layout(**{"3g.40gb": 1, "2g.20gb": 1})
    assert text.index("url(#gp-nothing)") < text.index('"gp-size1 ')  # below all instances
    assert "nothing takes 2 of its 8 memory slices" in text


def test_names_too_long_for_a_slice_take_lines() -> None:
    root = drawn(a_layout(**{"1g.10gb+me": 1, "1g.10gb": 6}))
    lines = [[span.text for span in item] for item in root.findall(".//{*}text") if "+me" in "".join(item.itertext())]
    assert lines == [["1g.", "10gb", "+me"]]


def test_names_are_never_markup() -> None:
    text = a_layout(**{"7g.80gb": 1})
    assert "<b>" not in text
    assert texts(drawn(text))[0] == "<b>&"


def test_says_what_it_shows() -> None:
    root = drawn(a_layout(**{"7g.80gb": 1}))
    assert root.get("role") == "img"
    assert [item.get("id") for item in root if item.tag.endswith(("title", "desc"))] == [
        root.get("aria-labelledby"),
        root.get("aria-describedby"),
    ]


def test_guarantees_are_to_scale() -> None:
    plan = a_platform(
        pool("a", "timeSlicing: {replicas: 2}", nodes="count: 5, gpusPerNode: 1"),
        tenant("one", "pool: a, unit: shared, guaranteed: 2"),
        tenant("two", "pool: a, unit: shared, guaranteed: 3, limit: 9"),
    )
    root = drawn(pool_svg(plan, plan.pools[0]))
    bars = [box for box in boxes(root, "gp-orange") + boxes(root, "gp-green") if box[1] > 14]
    assert bars == [(0, 64), (64, 96)]  # of 320 for ten
    assert {"one 2", "two 3, up to 9", "5 free"} <= set(texts(root))


def test_more_promised_than_there_is_stays_within_the_bar() -> None:
    plan = a_platform(
        pool("a", "exclusive: {}", nodes="count: 1, gpusPerNode: 2"), tenant("one", "pool: a, unit: gpu, guaranteed: 4")
    )
    root = drawn(pool_svg(plan, plan.pools[0]))
    assert (0, 320) in boxes(root, "gp-orange")
    assert "2 too few: what there is ends at the dashes" in texts(root)


def test_one_node_stands_for_many() -> None:
    plan = a_platform(pool("a", MIXED, nodes="count: 96, gpusPerNode: 8"))
    root = drawn(pool_svg(plan, plan.pools[0]))
    assert len(boxes(root, "gp-node")) == 1
    assert "\u00d7 96" in texts(root)


def test_equal_nodes_stand_in_rows_below_their_caption() -> None:
    plan = a_platform(pool("a", MIXED, nodes="count: 6, gpusPerNode: 2"))
    root = drawn(pool_svg(plan, plan.pools[0]))
    [first] = [group for group in root.findall(".//{*}g") if group.find("{*}g[@id]") is not None]
    key = first.find("{*}g[@id]").get("id")  # type: ignore[union-attr]
    copies = [item for item in root.findall(".//{*}use") if item.get("href") == f"#{key}"]

    assert first.get("transform") == "translate(0 19)"
    assert [(item.get("x"), item.get("y")) for item in copies] == [
        *(("80", "19"), ("160", "19"), ("240", "19")),
        *(("0", "46"), ("80", "46")),
    ]


def test_equal_bytes_every_time() -> None:
    plan = a_platform(pool("a", MIXED))
    assert plan_svg([plan]) == plan_svg([plan])


@pytest.mark.parametrize("gpu", catalog.load().all(), ids=lambda gpu: gpu.id)
def test_every_model_can_be_drawn(gpu: catalog.Gpu) -> None:
    root = drawn(catalog_svg(gpu))
    wide = float(root.get("width", 0))
    assert all(box[0] + box[1] <= wide for box in boxes(root, "gp-box"))


# --- Contrast ----------------------------------------------------------------------------------------------------


def luminance(rgb: tuple[float, float, float]) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-relative-luminance"""
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def rgb(color: str) -> tuple[float, float, float]:
    red, green, blue = (int(color[index : index + 2], 16) / 255 for index in (1, 3, 5))
    return red, green, blue


def contrast(one: tuple[float, float, float], two: tuple[float, float, float]) -> float:
    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def over(above: str, below: str, opacity: float) -> tuple[float, float, float]:
    red, green, blue = (
        top * opacity + ground * (1 - opacity) for top, ground in zip(rgb(above), rgb(below), strict=True)
    )
    return red, green, blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read_on_every_tint_and_pattern(scheme: int) -> None:
    ink = palette.INK[scheme]
    grounds = [palette.PAGE[scheme], *(paint[scheme] for paint in (*palette.TINTS.values(), *palette.SIZES))]
    assert min(contrast(rgb(ink), rgb(ground)) for ground in grounds) >= 4.5
    tints = [paint[scheme] for paint in palette.TINTS.values()]
    assert min(contrast(rgb(ink), over(ink, tint, svg.MARK_OPACITY)) for tint in tints) >= 4.5
    assert contrast(rgb(palette.FAINT[scheme]), rgb(palette.PAGE[scheme])) >= 4.5
    assert min(contrast(rgb(palette.LINE[scheme]), rgb(ground)) for ground in (palette.PAGE[scheme],)) >= 3
