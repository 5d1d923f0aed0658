"""The schemas of NVIDIA's two formats have something to say of each value that they refuse."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.checks.formats import find_problems

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
PLUGIN = st.fixed_dictionaries(
    {},
    optional={
        "version": ANYTHING,
        "imex": st.dictionaries(st.sampled_from(["channelIDs", "required"]), ANYTHING),
        "flags": st.dictionaries(st.sampled_from(["migStrategy", "mpsRoot", "plugin", "gfd"]), ANYTHING),
        "resources": st.dictionaries(st.sampled_from(["gpus", "mig"]), st.lists(ANYTHING, max_size=2) | ANYTHING),
        "sharing": st.dictionaries(
            st.sampled_from(["timeSlicing", "mps"]),
            st.dictionaries(st.sampled_from(["resources", "renameByDefault"]), st.lists(ANYTHING, max_size=2)),
        ),
    },
)
ITEM = st.dictionaries(st.sampled_from(["devices", "mig-enabled", "mig-devices", "device-filter", "x"]), ANYTHING)
MIG = st.fixed_dictionaries({"mig-configs": st.dictionaries(st.text(max_size=2), st.lists(ITEM) | ANYTHING)})


@settings(max_examples=50)
@given(PLUGIN | ANYTHING)
def test_whatever_the_device_plugin_refuses_comes_with_words(value: object) -> None:
    assert all(problem.message and problem.help for problem in find_problems("device-plugin", value))


@settings(max_examples=50)
@given(MIG | ANYTHING)
def test_whatever_the_mig_manager_refuses_comes_with_words(value: object) -> None:
    assert all(problem.message and problem.help for problem in find_problems("mig-parted", value))


def test_each_place_has_one_problem() -> None:
    resource = {"name": "", "replicas": True, "devices": ["first", "second"]}
    found = find_problems("device-plugin", {"sharing": {"mps": {"resources": [resource]}}})

    where = ("sharing", "mps", "resources", 0)
    assert sorted(problem.route for problem in found) == [(*where, part) for part in ("devices", "name", "replicas")]


@pytest.mark.parametrize(
    ("value", "message"), [({}, "`gpu` has no `replicas`"), ({"replicas": 1}, "has `replicas: 1`")]
)
def test_what_is_missing_is_told_from_what_is_wrong(value: dict[str, object], message: str) -> None:
    [problem] = find_problems("device-plugin", {"sharing": {"timeSlicing": {"resources": [{"name": "gpu", **value}]}}})

    assert message in problem.message


def test_an_entry_may_be_named_as_a_number() -> None:
    [problem] = find_problems("mig-parted", {"version": "v1", "mig-configs": {"0": []}})

    assert problem.route == ("mig-configs", "0")


def test_entries_that_are_one_number_are_told_of_together() -> None:
    [problem] = find_problems("mig-parted", {"version": "v1", "mig-configs": {"0": [], "00": []}})

    assert problem.route == ("mig-configs",)


def test_a_value_that_holds_itself_is_not_judged() -> None:
    endless: dict[str, object] = {"version": "v2"}
    endless["flags"] = endless

    assert find_problems("device-plugin", endless) == ()
