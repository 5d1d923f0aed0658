"""The class that each edit of the example platform gets, and what it names."""

from __future__ import annotations

from functools import cache

import pytest

from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.delivery import TOOLS
from gpuplan.features.changes.model import Comparison
from tests.every import Laws
from tests.features.changes.edits import CASES, Case
from tests.features.changes.platform import State, between, between_trees, loaded, original, state

EDITS = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
laws = Laws[Case]()


def _before(case: Case) -> State:
    return state(case.before)


def _after(case: Case) -> State:
    return state(case.before, case.edit)


@cache
def _comparison(case: Case) -> Comparison:
    return between(_before(case), _after(case))


@EDITS
def test_an_edit_has_its_class_and_names_its_subject(case: Case) -> None:
    found = _comparison(case)
    classes = [change.change_class for change in found.changes if change.subject == case.subject]
    assert worst(classes) is case.change_class
    assert found.worst is (case.worst or case.change_class)


@EDITS
def test_of_each_edit_the_same_holds(case: Case) -> None:
    laws.assert_each(case)


@laws
def plans_alone_say_what_the_output_says(case: Case) -> None:
    """What no change explains is of the net below, and nothing of the table falls through."""
    assert _comparison(case).objects == ()


@laws
def nothing_is_the_class_of_what_changes_nothing_in_the_output(case: Case) -> None:
    before, after = _before(case).tree, _after(case).tree
    paths = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    differing = {part for path in paths for part in path.split("/")[:2]} & {"dev", "openshift", "prod", "staging"}
    assert {change.cluster for change in _comparison(case).changes} == differing


@laws
def a_change_names_only_folders_in_which_something_differs(case: Case) -> None:
    """But for the release of a chart, which is written where the chart is synced, or nowhere."""
    before, after = _before(case).tree, _after(case).tree
    paths = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    for change in _comparison(case).changes:
        named = [
            f"{folder}/{change.cluster}" if folder in TOOLS else f"{change.cluster}/{folder}"
            for folder in change.folders
            if change.folders != ("gpu-operator",)
        ]
        assert all(any(path.startswith(f"{folder}/") for path in paths) for folder in named)


@laws
def each_folder_in_which_something_differs_is_named(case: Case) -> None:
    """But for what gathers the folders of a stage or a cluster: nothing syncs that."""
    before, after = _before(case).tree, _after(case).tree
    paths = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    named = {
        f"{folder}/{change.cluster}/" if folder in TOOLS else f"{change.cluster}/{folder}/"
        for change in _comparison(case).changes
        for folder in change.folders
    }
    left = [path for path in sorted(paths) if not path.startswith(tuple(named))]
    assert [path for path in left if not path.endswith("kustomization.yaml")] == []


@laws
def the_way_back_is_a_change_too(case: Case) -> None:
    back = between(_after(case), _before(case))
    assert (back.worst is ChangeClass.NONE) == (_comparison(case).worst is ChangeClass.NONE)


@laws
def a_state_does_not_differ_from_itself(case: Case) -> None:
    again = loaded(case.before, case.edit)
    assert between(_after(case), again) == Comparison((), ())


@laws
def changes_are_said_by_cluster_and_worst_first(case: Case) -> None:
    found = [(change.cluster, -change.change_class.rank) for change in _comparison(case).changes]
    assert found == sorted(found)


@laws
def texts_are_phrases_in_lower_case(case: Case) -> None:
    for change in _comparison(case).changes:
        for text in (change.what, change.effect, change.undo):
            assert text
            assert not text.endswith(".")
            assert not text.endswith(" ")
            assert (
                text[0].islower() or text[0] in "`0123456789" or text.startswith(("GPUs", "Kubernetes", "Argo", "Flux"))
            )


@laws
def a_committed_output_is_compared_without_plans(case: Case) -> None:
    """From objects alone, what matters most is seen as well: nothing that differs is called nothing."""
    found = worst(item.change_class for item in between_trees(_before(case).tree, _after(case).tree))
    is_same = _before(case).tree == _after(case).tree
    assert (found is ChangeClass.NONE) == is_same


def test_the_example_platform_is_free_of_errors() -> None:
    assert state(original).errors == ()
