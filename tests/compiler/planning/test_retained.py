"""What is retained: a layout under the name that nodes have, settings of the device plugin, and objects in a folder."""

from __future__ import annotations

from json import dumps

import pytest

from gpuplan.compiler.planning.placement.placing import Placed
from gpuplan.compiler.planning.plan import Retained, RetainedDevicePluginConfig, RetainedLayout, RetainedObject
from tests.platforms import a_platform, document, tenant


def retained(*fields: str) -> Retained:
    [found] = a_platform(tenant("lab"), document("Retained", "old", *fields, "until: later")).retained
    return found


def a_layout(name: str) -> RetainedLayout:
    found = retained(f"migLayout: {{configName: {name}, gpu: A100-80GB, instances: {{1g.10gb: 7, 2g.20gb: 0}}}}").what
    assert isinstance(found, RetainedLayout)
    return found


@pytest.mark.parametrize(
    ("config_name", "name"), [("mixed-1a2b3c4d", "mixed"), ("one-large-1a2b3c4d", "one-large"), ("mixed", "mixed")]
)
def test_a_layout_is_called_as_before_its_hash(config_name: str, name: str) -> None:
    assert a_layout(config_name).layout.name == name


def test_a_layout_is_placed() -> None:
    [entry] = a_layout("mixed-1a2b3c4d").layout.entries
    assert isinstance(entry.placed, Placed)
    assert [instance.profile.name for instance in entry.placed.instances] == ["1g.10gb"] * 7


def test_settings_of_the_device_plugin_have_what_was_written() -> None:
    resource = {"name": "nvidia.com/gpu", "replicas": 4}
    sharing = {"timeSlicing": {"failRequestsGreaterThanOne": True, "renameByDefault": True, "resources": [resource]}}
    found = retained(f"devicePluginConfig: {{key: p, config: {{version: v1, sharing: {dumps(sharing)}}}}}").what
    assert isinstance(found, RetainedDevicePluginConfig)
    assert found.config == {"version": "v1", "sharing": sharing}


@pytest.mark.parametrize(
    ("metadata", "more", "folder"),
    [
        ("name: a, namespace: lab", "", "namespaces/lab"),
        ("name: a, namespace: other", "", "scheduling"),
        ("name: a", "", "scheduling"),
        ("name: a, namespace: lab", ", folder: gpu-operator", "gpu-operator"),
    ],
)
def test_an_object_is_in_the_folder_of_its_namespace(metadata: str, more: str, folder: str) -> None:
    manifest = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{{metadata}}}}}"
    found = retained(f"object: {{manifest: {manifest}{more}}}").what
    assert isinstance(found, RetainedObject)
    assert found.folder == folder
