"""Judge what is retained beside what the policies still say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, assert_never

from gpuplan.backends import BACKENDS
from gpuplan.backends.gpu_operator import device_plugin
from gpuplan.diagnostics import Diagnostic, Finding, Label, Origin
from gpuplan.manifests import Identity, Manifest, to_yaml
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
    known = {_name(found): found for found in _defined(plan)}
    for item in plan.retained:
        found = _retained(item.what)
        other = known.setdefault(_name(found), found)
        if other is not found:
            yield _report(plan, found, other)


class _Definition(NamedTuple):
    """Something in the cluster that goes by a name: a label's value, or an object's identity.

    ``content`` is what decides whether two are the same. The place is not known of an object that a back end makes.
    """

    label: str
    name: str | Identity
    content: object
    at: Origin | None


def _name(definition: _Definition) -> tuple[str, str | Identity]:
    return definition.label, definition.name


def _report(plan: Plan, found: _Definition, other: _Definition) -> Diagnostic:
    """Objects are never the same: two documents for one would be written twice."""
    is_same = bool(found.label) and found.content == other.content
    rule = RETAINED_FOR_NOTHING if is_same else RETAINED_CONTRADICTED
    finding = Finding(
        found.at or plan.cluster.at,
        f"`{found.name}` is retained, and made {'just so' if is_same else 'otherwise'} as well",
        label="not needed" if is_same else "one name for two",
        related=(Label(other.at, "made here"),) if other.at else (),
        notes=() if other.at else ("the policies make this object",),
        help="delete the document" if is_same else "delete the document, or give the other one another name",
    )
    return Diagnostic(rule, finding, clusters=(plan.cluster.name,))


# --- Definitions -------------------------------------------------------------------------------------------------


def _defined(plan: Plan) -> Iterator[_Definition]:
    """What the policies make themselves, of objects only where some are retained."""
    bare = replace(plan, retained=())
    for layout in bare.mig_layouts:
        yield _Definition(MIG_CONFIG_LABEL, layout.config_name, (layout.config_name, layout.gpu.id), layout.at)
    places = {pool.labels[DEVICE_PLUGIN_CONFIG_LABEL]: pool.at for pool in bare.parts}
    for key, text in device_plugin.data(bare).items():
        yield _Definition(DEVICE_PLUGIN_CONFIG_LABEL, key, text, places[key])
    if any(isinstance(item.what, RetainedObject) for item in plan.retained):
        for backend in BACKENDS:
            for artifact in backend.render(bare):
                if isinstance(artifact, Manifest):
                    yield _Definition("", artifact.identity, artifact.body, None)


def _retained(what: RetainedLayout | RetainedDevicePluginConfig | RetainedObject) -> _Definition:
    match what:
        case RetainedLayout():
            content = what.layout.config_name, what.layout.gpu.id
            return _Definition(MIG_CONFIG_LABEL, what.config_name, content, what.at / "configName")
        case RetainedDevicePluginConfig():
            return _Definition(DEVICE_PLUGIN_CONFIG_LABEL, what.key, to_yaml(what.config), what.at / "key")
        case RetainedObject():
            identity = Manifest(what.folder, what.manifest).identity
            return _Definition("", identity, what.manifest, what.at / "manifest" / "metadata" / "name")
        case _:
            assert_never(what)
