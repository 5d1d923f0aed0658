"""Judge what is retained beside what the policies still say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, assert_never

from gpuplan.backends import BACKENDS
from gpuplan.backends.gpu_operator import device_plugin
from gpuplan.diagnostics import Diagnostic, Finding, Label, Origin
from gpuplan.manifests import Identity, Manifest, identity_of, to_yaml
from gpuplan.pipeline.rules import RETAINED_CONTRADICTED, RETAINED_FOR_NOTHING
from gpuplan.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    Plan,
    RetainedDevicePluginConfig,
    RetainedLayout,
    RetainedObject,
)


def judge_retained(plan: Plan) -> Iterator[Diagnostic]:
    """What is retained beside another definition of the same name; for plans without errors, since it renders them."""
    has_objects = any(isinstance(item.what, RetainedObject) for item in plan.retained)
    known = {found.key: found for found in defined(plan, with_objects=has_objects)}
    for item in plan.retained:
        found = definition(item.what)
        other = known.setdefault(found.key, found)
        if other is not found:
            yield _report(plan, found, other)


class Definition(NamedTuple):
    """Something in the cluster that names it: a label's value, or an object's identity, without a label.

    ``content`` is what decides whether two are the same. The place is not known of an object that a back end makes.
    """

    label: str
    name: str | Identity
    content: object
    at: Origin | None

    @property
    def key(self) -> tuple[str, str | Identity]:
        return self.label, self.name


def _report(plan: Plan, found: Definition, other: Definition) -> Diagnostic:
    """Objects are never the same: two documents for one would be written twice."""
    is_same = bool(found.label) and found.content == other.content
    rule = RETAINED_FOR_NOTHING if is_same else RETAINED_CONTRADICTED
    how = "just so as well" if is_same else "otherwise as well" if found.label else "from the policies, too"
    finding = Finding(
        found.at or plan.cluster.at,
        f"`{found.name}` is retained, and made {how}",
        label="not needed" if is_same else "one name for two",
        related=(Label(other.at, "made here"),) if other.at else (),
        help="delete the document" if is_same else "delete the document, or give the other one another name",
    )
    return Diagnostic(rule, finding, clusters=(plan.cluster.name,))


# --- Definitions -------------------------------------------------------------------------------------------------


def defined(plan: Plan, *, with_objects: bool) -> Iterator[Definition]:
    """What the policies make themselves; all objects if asked for."""
    bare = replace(plan, retained=())
    for layout in bare.mig_layouts:
        yield Definition(MIG_CONFIG_LABEL, layout.config_name, (layout.config_name, layout.gpu.id), layout.at)
    places = {pool.labels[DEVICE_PLUGIN_CONFIG_LABEL]: pool.at for pool in bare.parts}
    for key, text in device_plugin.data(bare).items():
        yield Definition(DEVICE_PLUGIN_CONFIG_LABEL, key, text, places[key])
    if with_objects:
        for backend in BACKENDS:
            for artifact in backend.render(bare):
                if isinstance(artifact, Manifest):
                    yield Definition("", artifact.identity, artifact.body, None)


def definition(what: RetainedLayout | RetainedDevicePluginConfig | RetainedObject) -> Definition:
    match what:
        case RetainedLayout():
            content = what.layout.config_name, what.layout.gpu.id
            return Definition(MIG_CONFIG_LABEL, what.spec.config_name, content, what.at / "configName")
        case RetainedDevicePluginConfig():
            return Definition(DEVICE_PLUGIN_CONFIG_LABEL, what.spec.key, to_yaml(what.config), what.at / "key")
        case RetainedObject():
            identity = identity_of(what.spec.manifest)
            return Definition("", identity, what.spec.manifest, what.at / "manifest" / "metadata" / "name")
        case _:
            assert_never(what)
