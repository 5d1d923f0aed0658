"""Fields of documents that people wrote are changed where they stand, and no other line is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from gpuplan.compiler.documents import read_text
from gpuplan.compiler.pipeline.editing import with_fields

MIG = {"mig": {"layout": "small"}}


def edited(text: str, key: str, value: Any, document: int = 0) -> str | None:
    return with_fields(read_text("a.yaml", text)[0][document], 0, {("spec", key): value})


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        pytest.param(
            "spec:\n  gpu: A  # large\n  sharing:\n    timeSlicing:\n      replicas: 3  # each\n\n  # below\n  b: 1\n",
            MIG,
            "spec:\n  gpu: A  # large\n  sharing:\n    mig:\n      layout: small\n\n  # below\n  b: 1\n",
            id="a block stays one, and comments around it stay",
        ),
        pytest.param(
            "spec: {gpu: A, sharing: {exclusive: {}}}\n",
            MIG,
            "spec: {gpu: A, sharing: {mig: {layout: small}}}\n",
            id="a flow stays one",
        ),
        pytest.param(
            "spec:\n  sharing: {exclusive: {}}\n  b: 1\n",
            MIG,
            "spec:\n  sharing: {mig: {layout: small}}\n  b: 1\n",
            id="a flow within a block stays one",
        ),
        pytest.param(
            "spec:\n  gpu: A  # it\n# end\n",
            MIG,
            "spec:\n  gpu: A  # it\n  sharing:\n    mig:\n      layout: small\n# end\n",
            id="what is new comes last",
        ),
        pytest.param("spec: {}\n", MIG, "spec: {sharing: {mig: {layout: small}}}\n", id="an empty mapping is filled"),
        pytest.param("spec:\n  sharing:\n    exclusive: {}\n  gpu: A\n", None, "spec:\n  gpu: A\n", id="a block goes"),
        pytest.param(
            "spec: {sharing: {exclusive: {}}, gpu: A}\n", None, "spec: {gpu: A}\n", id="the first of a flow goes"
        ),
        pytest.param(
            "spec: {gpu: A, sharing: {exclusive: {}}}\n", None, "spec: {gpu: A}\n", id="the last of a flow goes"
        ),
        pytest.param(
            "spec:\r\n  gpu: A\r\n",
            MIG,
            "spec:\r\n  gpu: A\r\n  sharing:\r\n    mig:\r\n      layout: small\r\n",
            id="ends of lines stay",
        ),
        pytest.param(
            "spec:\n  gpu: A",
            MIG,
            "spec:\n  gpu: A\n  sharing:\n    mig:\n      layout: small",
            id="a file without a last newline",
        ),
    ],
)
def test_a_field_is_changed_and_the_rest_stays(before: str, value: Any, after: str) -> None:
    head = "# above\napiVersion: v1\nkind: A\nmetadata: {name: a}\n"
    other = "---\nkind: B  # other\nspec: {sharing: {}}\n"
    assert edited(head + before, "sharing", value) == head + after
    assert edited(other + "---\n" + head + before, "sharing", value, document=1) == other + "---\n" + head + after


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("spec:\n  sharing: {exclusive: {}}\n", None, id="nothing would be left"),
        pytest.param("kind: A\n", MIG, id="there is no parent"),
        pytest.param("spec: [1]\n", MIG, id="the parent is no mapping"),
        pytest.param("a: &x {b: 1}\nspec: *x\n", MIG, id="an alias stands in its place"),
    ],
)
def test_what_cannot_be_changed_is_not(text: str, value: Any) -> None:
    assert edited(text, "sharing", value) is None


plain = st.recursive(
    st.integers(0, 9) | st.sampled_from(["x", "y: z", "# no", "", "1.0", "on"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from("abcde"), plain, min_size=2, max_size=5), st.none() | plain, st.booleans())
def test_data_is_as_wanted_in_any_style_and_each_comment_elsewhere_stays(
    spec: dict[str, Any], value: Any, is_flow: bool
) -> None:
    lines = yaml.safe_dump({"spec": spec}, default_flow_style=is_flow, width=10**6, sort_keys=False).splitlines()
    text = "".join(f"{line}  # {number}\n" for number, line in enumerate(lines))
    after = edited(text, "a", value)
    assert after is not None
    wanted = {name: kept for name, kept in spec.items() if name != "a"} | ({} if value is None else {"a": value})
    assert yaml.safe_load(after) == {"spec": wanted}
    if "a" not in spec:
        assert [line for line in text.splitlines() if line not in after.splitlines()] in (
            [],
            *([line] for line in text.splitlines() if is_flow),
        )


def test_pages_of_the_example_platform_keep_what_people_wrote() -> None:
    path = Path(__file__).parents[3] / "policies/pools/shared.yaml"
    text = path.read_text(encoding="utf-8")
    pools = [index for index, found in enumerate(read_text("a.yaml", text)[0]) if found.kind == "Pool"]
    after = edited(text, "sharing", MIG, pools[0])
    assert after is not None
    kept = set(text.splitlines()) & set(after.splitlines())
    assert {line for line in text.splitlines() if line.lstrip().startswith("#")} <= kept
