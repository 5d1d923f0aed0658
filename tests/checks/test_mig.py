"""What is said about MIG layouts: every one that cannot be placed is refused, with the reason and a way out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler import catalog
from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.checks import mig, profiles
from gpuplan.compiler.checks.registry import checks_in, run_all
from gpuplan.compiler.planning.placement.placing import fits
from tests.plans import a_plan
from tests.platforms import pool

MODELS = [gpu for gpu in catalog.load().all() if gpu.profiles]


def a_layout(gpu: str, instances: dict[str, int], name: str = "layout") -> str:
    body = ", ".join(f'"{profile}": {count}' for profile, count in instances.items())
    return f"""\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {{name: {name}}}
spec:
  gpu: {gpu}
  instances: {{{body}}}
---
"""


def a_pool(name: str, layout: str, gpu: str = "A100-80GB", gpus: int = 8) -> str:
    return f"""\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec:
  gpu: {gpu}
  nodes: {{count: 2, gpusPerNode: {gpus}, namePattern: "{name}-[0-9]+"}}
  sharing: {{mig: {{layout: {layout}}}}}
---
"""


def findings(text: str) -> list[Diagnostic]:
    plan = a_plan(text)
    found = run_all(checks_in(mig, profiles), plan)
    return sorted(found, key=lambda item: item.code)


def the_finding(text: str) -> Diagnostic:
    found = findings(text)
    assert len(found) == 1, [(item.code, item.finding.message) for item in found]
    return found[0]


# --- Completeness ------------------------------------------------------------------------------------------------

layouts = st.sampled_from(MODELS).flatmap(
    lambda gpu: st.tuples(
        st.just(gpu),
        st.dictionaries(
            st.sampled_from([profile.name for profile in gpu.profiles]), st.integers(1, 8), min_size=1, max_size=4
        ),
    )
)


@settings(max_examples=150)
@given(layouts)
def test_a_layout_is_refused_exactly_when_it_cannot_be_placed(case: tuple[catalog.Gpu, dict[str, int]]) -> None:
    gpu, instances = case
    errors = [found.code for found in findings(a_layout(gpu.id, instances)) if found.is_error]
    assert bool(errors) == (not fits(gpu, instances))


@settings(max_examples=100)
@given(st.sampled_from(MODELS), st.text("0123456789cgb.+-_me MIG/", min_size=1, max_size=14))
def test_a_name_that_is_no_profile_of_the_model_is_one_error(gpu: catalog.Gpu, name: str) -> None:
    codes = [found.code for found in findings(a_layout(gpu.id, {name: 1})) if found.is_error]
    assert len(codes) == (0 if gpu.find_profile(name) else 1)


# --- What is said ------------------------------------------------------------------------------------------------


def test_refusal_says_what_collides_and_what_fits() -> None:
    found = the_finding(a_layout("A100-80GB", {"3g.40gb": 2, "1g.10gb": 1})).finding
    assert found.message == "layout `layout` does not fit on A100-80GB"
    assert found.label == "no placement is left for `1g.10gb` beside 2x `3g.40gb`"
    assert "`3g.40gb` takes 4 memory slices and can start only at 0 or 4" in found.notes
    assert any("7 of 7 compute slices and 9 of 8 memory slices" in note for note in found.notes)
    assert "`{3g.40gb: 2}`" in found.help


def test_layout_of_two_pools_is_refused_once() -> None:
    text = a_layout("A100-80GB", {"4g.40gb": 1, "2g.20gb": 2}) + a_pool("a", "layout") + a_pool("b", "layout")
    assert the_finding(text).code == "GPU203"


@pytest.mark.parametrize(
    ("gpu", "written", "meant"),
    [
        ("A100-40GB", "3g.40gb", "on A100-40GB 3 compute slices have 20 GB: `3g.20gb`"),
        ("A100-80GB", "1g.18gb", "on A100-80GB one compute slice has 20 GB: `1g.20gb` or 10 GB: `1g.10gb`"),
        ("A100-40GB", "1g.10gb+me", "on A100-40GB one compute slice has 5 GB: `1g.5gb+me`"),
        ("A30-24GB", "2g.20gb", "on A30-24GB 2 compute slices have 12 GB: `2g.12gb`"),
        ("A100-80GB", "1g.10gb+ME", "write `1g.10gb+me`"),
        ("A100-80GB", "3g.20gb+gfx", "on A100-80GB 3 compute slices have 40 GB: `3g.40gb`"),
        ("A100-80GB", "5g.40gb", "`gpuplan catalog A100-80GB` shows the profiles"),
    ],
)
def test_profile_of_another_model_is_answered_with_what_this_one_has(gpu: str, written: str, meant: str) -> None:
    found = the_finding(a_layout(gpu, {written: 1}))
    assert (found.code, found.finding.help) == ("GPU204", meant)


@pytest.mark.parametrize(
    ("gpu", "instances", "meant"),
    [
        ("H200-141GB", {"1g.20gb": 7}, "18 GB: `1g.18gb` or 35 GB: `1g.35gb` (at most 4)"),
        ("A100-80GB", {"1g.5gb": 3, "3g.40gb": 1}, "10 GB: `1g.10gb` or 20 GB: `1g.20gb` (at most 2)"),
        ("A100-80GB", {"1g.5gb": 2, "1g.10gb": 4}, "10 GB: `1g.10gb` or 20 GB: `1g.20gb`"),
        ("A100-80GB", {"3g.20gb": 1, "7g.80gb": 1}, "40 GB: `3g.40gb` (none fits)"),
        ("A100-80GB", {"1g.5gb": 10**9}, "10 GB: `1g.10gb` (at most 7) or 20 GB: `1g.20gb` (at most 4)"),
    ],
)
def test_what_this_model_has_comes_with_the_count_that_fits(gpu: str, instances: dict[str, int], meant: str) -> None:
    [found] = [item for item in findings(a_layout(gpu, instances)) if item.code == "GPU204"]
    assert found.finding.help.endswith(f" {meant}")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("3g-40gb", "3g.40gb"),
        ("3g.40GB", "3g.40gb"),
        ("3g.40", "3g.40gb"),
        ("3g40gb", "3g.40gb"),
        ("3G.40GB", "3g.40gb"),
        ("3g.40gib", "3g.40gb"),
        ("mig-3g.40gb", "3g.40gb"),
        ("nvidia.com/mig-1g.10gb.me", "1g.10gb+me"),
        ("all-1g.10gb", "1g.10gb"),
        ("1g.10gb_me", "1g.10gb+me"),
        ("3.40gb", "3g.40gb"),
        ("10gb", "1g.10gb"),
    ],
)
def test_misspelt_profile_is_answered_with_the_right_spelling(written: str, meant: str) -> None:
    found = the_finding(a_layout("A100-80GB", {written: 1}))
    assert (found.code, found.finding.help) == ("GPU205", f"write `{meant}`")


def test_a_memory_that_several_profiles_have_is_not_taken_for_one_of_them() -> None:
    assert the_finding(a_layout("A100-80GB", {"20 GB": 1})).finding.label == "not `<slices>g.<memory>gb`"


def test_a_suggestion_that_stands_there_already_is_added_to() -> None:
    found = the_finding(a_layout("A100-80GB", {"1g.10gb": 3, "1g10gb": 4}))
    assert found.finding.help == "add the count to `1g.10gb`"


def test_finding_points_at_the_key_of_the_profile() -> None:
    location = the_finding(a_layout("A100-80GB", {"3g.40gb": 1, "1g.5gb": 4})).finding.at.locate()
    start, end = location.span.start, location.span.end
    assert location.file.lines[start.line - 1][start.column - 1 : end.column - 1] == '"1g.5gb"'


def test_fewer_of_one_profile_are_proposed_where_they_fit_beside_the_rest() -> None:
    def help_on(instances: dict[str, int]) -> str:
        return the_finding(a_layout("A100-80GB", instances)).finding.help

    assert help_on({"2g.20gb": 4, "1g.10gb": 1}) == "a GPU holds up to 3 of them: `2g.20gb: 3`"
    assert help_on({"3g.40gb": 3, "1g.10gb": 2}).startswith("nearest that fit: `{3g.40gb: 1, 2g.20gb: 1, 1g.10gb: 2}`")


def test_a_name_of_an_older_driver_is_judged_as_what_it_stands_for() -> None:
    text = a_layout("A100-80GB", {"3g.39gb": 2, "1g.10gb": 1}) + a_pool("a", "layout")
    found = findings(text)
    assert [item.code for item in found] == ["GPU203", "GPU221"]
    assert [label.text for label in found[0].finding.related] == ["2x `3g.39gb`", "1x `1g.10gb`"]
    assert [item.code for item in findings(a_layout("A100-80GB", {"3g.39gb": 3}))] == ["GPU208", "GPU221"]


def test_uncovered_gpus_come_with_the_entry_to_add() -> None:
    text = """\
    apiVersion: gpuplan.dev/v1
    kind: MigLayout
    metadata: {name: layout}
    spec:
      gpu: A100-80GB
      devices:
        - {gpus: [0, 2], instances: {7g.80gb: 1}}
    ---
    """
    found = the_finding(text.replace("\n    ", "\n").removeprefix("    ") + a_pool("a", "layout", gpus=4)).finding
    assert found.label == "nothing about GPUs 1 and 3"
    assert "`{gpus: [1, 3], enabled: false}`" in found.help


def test_unused_layout_is_judged_but_its_gpus_are_not_counted() -> None:
    assert findings(a_layout("A100-80GB", {"1g.10gb": 7})) == []


def test_layout_for_another_model_names_the_ones_for_this_model() -> None:
    text = (
        a_layout("A100-80GB", {"1g.10gb": 7})
        + a_layout("H100-80GB", {"1g.10gb": 7}, name="h100-small")
        + a_pool("a", "layout", gpu="H100-80GB")
    )
    assert the_finding(text).finding.help == "layouts for H100-80GB: `h100-small`"


# --- GPUs in words -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("1, 2, 3, 4, 5, 6, 7", "does not say what GPU 0 becomes"),
        ("2, 3, 4, 5, 6, 7", "does not say what GPUs 0 and 1 become"),
        ("3, 4, 5, 6, 7", "does not say what GPUs 0 to 2 become"),
        ("0, 2, 4, 5, 6, 7", "does not say what GPUs 1 and 3 become"),
        ("0, 3, 5, 6, 7", "does not say what GPUs 1, 2 and 4 become"),
        ("0", "does not say what GPUs 1 to 7 become"),
    ],
)
def test_gpus_that_nothing_is_said_of(named: str, message: str) -> None:
    found = the_finding(pool("p", f"mig: {{devices: [{{gpus: [{named}], instances: {{1g.10gb: 7}}}}]}}"))
    assert message in found.finding.message
