"""What changes of hand-written Components and of retained definitions do."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests import Subject
from gpuplan.features.changes.model import Change, Comparison
from tests.features.changes.platform import Edit, Platform, between, original, state

FOLDER = "overlays/prod/kustomize"


def component(stage: str, **files: str) -> Edit:
    """A Component of a stage on prod, with files by name."""

    def edit(platform: Platform) -> None:
        resources = "".join(f"- {name}.yaml\n" for name in files)
        head = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources:\n"
        platform.text[f"{FOLDER}/{stage}/kustomization.yaml"] = head + resources
        for name, text in files.items():
            platform.text[f"{FOLDER}/{stage}/{name}.yaml"] = dedent(text)

    return edit


def found(before: Edit, after: Edit) -> list[Change]:
    return [change for change in between(state(before), state(after)).changes if change.subject.kind == "Component"]


LIMITS = """\
    apiVersion: v1
    kind: LimitRange
    metadata: {name: defaults, namespace: research}
    spec: {limits: [{type: Container, default: {cpu: "%s"}}]}
    """


def test_an_object_that_changes_has_the_class_of_its_stage() -> None:
    (change,) = found(component("namespaces", limits=LIMITS % 1), component("namespaces", limits=LIMITS % 2))
    assert change.change_class is ChangeClass.ADMISSION
    assert change.subject == Subject("Component", "namespaces")
    assert change.what == "hand-written LimitRange research/defaults changes"
    assert change.folders == ("namespaces",)
    assert change.at.locate().file.path == f"{FOLDER}/namespaces/limits.yaml"


def test_an_object_that_goes_is_destructive() -> None:
    changes = found(component("namespaces", limits=LIMITS % 1, more=LIMITS % 1), component("namespaces"))
    assert max(change.change_class.rank for change in changes) == ChangeClass.DESTRUCTIVE.rank


@pytest.mark.parametrize("text", ["# a comment\n" + dedent(LIMITS % 1), dedent(LIMITS % 1).replace('"1"', "'1'")])
def test_comments_and_style_are_nothing(text: str) -> None:
    assert found(component("namespaces", limits=LIMITS % 1), component("namespaces", limits=text)) == []


def test_a_renamed_file_is_nothing() -> None:
    assert found(component("namespaces", limits=LIMITS % 1), component("namespaces", other=LIMITS % 1)) == []


def test_a_component_that_comes_is_a_change() -> None:
    (change,) = found(original, component("monitoring"))
    assert (change.change_class, change.what) == (ChangeClass.METADATA, "hand-written Component is added")


def test_a_component_that_goes_is_a_change() -> None:
    (change,) = found(component("monitoring"), original)
    assert (change.change_class, change.what) == (ChangeClass.METADATA, "hand-written Component is removed")


def _retain(until: str, **flags: str) -> Edit:
    def edit(platform: Platform) -> None:
        config = {"key": "old", "config": {"version": "v1", **({"flags": flags} if flags else {})}}
        platform.add("Retained", "old", {"devicePluginConfig": config, "until": until}, "overlays/prod")

    return edit


def test_a_definition_that_is_retained_restarts_the_device_plugin() -> None:
    changes = between(state(), state(_retain("no node names it"))).changes
    assert {change.change_class for change in changes} == {ChangeClass.PLUGIN_RESTART}
    assert Subject("Retained", "old") in {change.subject for change in changes}


def test_until_when_it_is_retained_is_no_change() -> None:
    assert between(state(_retain("monday")), state(_retain("tuesday"))) == Comparison((), ())


def test_only_a_definition_that_goes_is_said_to_be_missed() -> None:
    one, other = _retain("no node names it"), _retain("no node names it", migStrategy="mixed")
    (changed,) = (change for change in between(state(one), state(other)).changes if change.subject.kind == "Retained")
    (gone,) = (change for change in between(state(one), state()).changes if change.subject.kind == "Retained")
    assert (changed.what, gone.what) == ("definition is retained otherwise", "definition is no longer retained")
    assert changed.effect == "nothing that runs is disturbed"
    assert gone.effect == "objects that still need the definition do not find it: delete it once no node names it"


def _retain_entry(profile: str, count: int) -> Edit:
    def edit(platform: Platform) -> None:
        entry = {"configName": "all-slices", "gpu": "A100-80GB", "instances": {profile: count}}
        platform.add("Retained", "old", {"migLayout": entry, "until": "no node names it"}, "overlays/prod")

    return edit


def test_another_division_under_a_name_that_nodes_have_divides_them_again() -> None:
    """Such a name is no hash: it says nothing of what it stands for."""
    changes = between(state(_retain_entry("1g.10gb", 7)), state(_retain_entry("2g.20gb", 3))).changes
    (retained,) = (change for change in changes if change.subject.kind == "Retained")
    assert retained.change_class is ChangeClass.REPARTITION
    assert retained.needs_drain
