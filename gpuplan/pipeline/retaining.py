"""Find what must be retained of an earlier revision, and make documents of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpuplan.backends import kueue
from gpuplan.backends.gpu_operator import device_plugin
from gpuplan.diagnostics import GpuplanError
from gpuplan.manifests import Identity, Manifest, to_yaml
from gpuplan.manifests.kinds import Kind, get_kind
from gpuplan.pipeline.loading import OVERLAYS
from gpuplan.pipeline.retained import defined, definition
from gpuplan.pipeline.revisions import is_in_git
from gpuplan.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    Layout,
    LayoutEntry,
    Mig,
    Plan,
    Retained,
)
from gpuplan.policy.models import API_VERSION
from gpuplan.values import Value

if TYPE_CHECKING:
    from gpuplan.pipeline import Report

HEAD: Final = "HEAD"


class Keeper(NamedTuple):
    """A document to be written: ``path`` is relative to the repository's root; ``title`` is what it retains."""

    path: str
    text: str
    title: str


class Leftover(NamedTuple):
    """A document that retains what nothing names any more, as far as policies say; ``until`` tells of the cluster.

    It is empty where the policies make the same themselves. ``is_ours`` says that the file holds what was written there
    by `retain`, and nothing else.
    """

    path: str
    title: str
    until: str
    is_ours: bool


class Retention(Value):
    """What the working tree lacks to be a safe step from what was, and what it retains beyond that.

    Both are empty where ``report`` has errors.
    """

    report: Report
    revision: str
    missing: tuple[Keeper, ...] = ()
    leftovers: tuple[Leftover, ...] = ()


def retain(root: Path, clusters: Sequence[str] = (), against: str = HEAD) -> Retention:
    """Compare the clusters named, or all, with a revision or a folder: what is gone by there must stay defined."""
    from gpuplan.pipeline import validate

    report = validate(root, clusters, kustomize="off")
    if not report.is_valid:
        return Retention(report, against)
    earlier = {plan.cluster.name: plan for plan in _plans(root, against, clusters)}
    missing: list[Keeper] = []
    leftovers: list[Leftover] = []
    for plan in report.plans:
        if old := earlier.get(plan.cluster.name):
            missing += keepers(old, plan)
            leftovers += _leftovers(old, plan)
    return Retention(report, against, tuple(missing), tuple(leftovers))


def keepers(old: Plan, new: Plan) -> Iterator[Keeper]:
    """A document for each thing that the earlier plan names and the later one neither defines nor retains."""
    known = {found.key for found in defined(new, with_objects=True)}
    known |= {definition(item.what).key for item in new.retained}
    taken = {item.name for item in new.retained}
    for needed in _needed(old, new):
        if (needed.label, needed.name) not in known:
            yield _keeper(new.cluster.name, needed, taken)


def _plans(root: Path, against: str, clusters: Sequence[str]) -> tuple[Plan, ...]:
    """The plans of what was built; what has errors was not, and does not say what nodes name."""
    from gpuplan.pipeline.comparing import SideKind, choose_sides, read_side

    if against == HEAD and not is_in_git(root):
        raise GpuplanError(
            f"`{root}` is in no Git repository, so nobody knows what it was before",
            "run `git init`, and commit; or name a folder with the platform as it was: `--against DIR`",
        )
    side, _ = choose_sides(root, against=against)
    if side.kind is SideKind.OUTPUT:
        raise GpuplanError(
            f"`{against}` holds what `gpuplan build` wrote, and what is retained is written as policies are",
            f"name a revision, or a folder that holds `{OVERLAYS}/`",
        )
    platform = read_side(side, clusters)
    if error := next(iter(platform.errors), None):
        place = error.finding.at.locate().file.path
        raise GpuplanError(
            f"the policies at `{side.name}` have errors; the first, in `{place}`: {error.finding.message}",
            "name the last revision that was built: `--against REV`",
        )
    return tuple(platform.plans.values())


# --- What is missing ---------------------------------------------------------------------------------------------


class _Needed(NamedTuple):
    """Something that the cluster needs: a label's value, or an object's identity, where the label is empty.

    ``spec`` is that of a document which retains it, and ``document`` that one's name where it can have it.
    """

    label: str
    name: str | Identity
    document: str
    spec: Mapping[str, Any]


def _needed(old: Plan, new: Plan) -> Iterator[_Needed]:
    """What nodes name and what Kueue holds on to. Queues of namespaces that are no tenant's any more go with those."""
    yield from _layouts(old)
    yield from _configs(old)
    namespaces = {namespace for tenant in new.tenants for namespace in tenant.spec.namespaces}
    manifests = (artifact for artifact in kueue.render(old) if isinstance(artifact, Manifest))
    for manifest in manifests:
        identity = manifest.identity
        kind = get_kind(identity.group, identity.kind)
        if kind.needed_until and identity.namespace in ("", *namespaces):
            yield _object(manifest, kind)


def _layouts(plan: Plan) -> Iterator[_Needed]:
    """All entries, for nodes may still name one that no pool uses any more."""
    sizes: dict[str, int] = {}
    layouts = {layout.config_name: layout for layout in plan.mig_layouts if plan.may_be_divided_by(layout)}
    for part in plan.parts:
        if isinstance(part.sharing, Mig):
            layout = part.sharing.layout
            sizes[layout.config_name] = max(sizes.get(layout.config_name, 0), part.nodes.gpus_per_node)
    for name in sorted(layouts):
        spec = {
            "migLayout": {
                "configName": name,
                "gpu": layouts[name].gpu.id,
                **_division(layouts[name], sizes.get(name, 0)),
            },
            "until": _no_node(MIG_CONFIG_LABEL, name),
        }
        yield _Needed(MIG_CONFIG_LABEL, name, name, spec)


def _division(layout: Layout, gpus_per_node: int) -> dict[str, Any]:
    """How the policy language says it: shortly, where all GPUs are divided alike."""
    first, *others = layout.entries or (None,)
    if first is not None and not others and first.gpus is None and first.mig_enabled:
        return {"instances": dict(first.instances)}
    division: dict[str, Any] = {"devices": [_devices(entry) for entry in layout.entries]}
    named = {index for entry in layout.entries for index in entry.gpus or range(gpus_per_node)}
    return division if named.issuperset(range(gpus_per_node)) else division | {"gpusPerNode": gpus_per_node}


def _devices(entry: LayoutEntry) -> dict[str, Any]:
    devices: dict[str, Any] = {"gpus": "all" if entry.gpus is None else list(entry.gpus)}
    if entry.instances:
        devices["instances"] = dict(entry.instances)
    if not entry.mig_enabled:
        devices["enabled"] = False
    return devices


def _configs(plan: Plan) -> Iterator[_Needed]:
    strategy = plan.cluster.gpu_operator.spec.mig_strategy
    parts = {part.labels[DEVICE_PLUGIN_CONFIG_LABEL]: part for pool in plan.pools for part in reversed(pool.parts)}
    for key in sorted(parts):
        spec = {
            "devicePluginConfig": {"key": key, "config": device_plugin.configuration(parts[key], strategy)},
            "until": _no_node(DEVICE_PLUGIN_CONFIG_LABEL, key),
        }
        yield _Needed(DEVICE_PLUGIN_CONFIG_LABEL, key, f"device-plugin-{key}", spec)


def _no_node(label: str, value: str) -> str:
    return f"`kubectl get nodes -l {label}={value}` lists no node"


def _object(manifest: Manifest, kind: Kind) -> _Needed:
    namespace, name = manifest.namespace, manifest.name
    body = dict(manifest.body)
    if kind.takes_work:
        body["spec"] = {"stopPolicy": "Hold", **body["spec"]}
    until = kind.needed_until.replace("NAME", name).replace("SPACE", namespace)
    parts = (manifest.kind.lower(), *filter(None, (namespace, name)))
    return _Needed("", manifest.identity, "-".join(parts), {"object": {"manifest": body}, "until": until})


# --- Documents ---------------------------------------------------------------------------------------------------

_HEADER: Final = "# Written by gpuplan retain, whose --prune removes it unless it was edited: "
_LONGEST_NAME: Final = 63


def _keeper(cluster: str, needed: _Needed, taken: set[str]) -> Keeper:
    name = _document_name(needed.document, taken)
    taken.add(name)
    document = {
        "apiVersion": API_VERSION,
        "kind": "Retained",
        "metadata": {"name": name},
        "spec": dict(needed.spec),
    }
    text = to_yaml(document)
    path = f"{_folder(cluster)}{name}.yaml"
    return Keeper(path, f"{_HEADER}{_digest(text)}\n{text}", _title(needed.label, needed.name))


def _title(label: str, name: str | Identity) -> str:
    if isinstance(name, Identity):
        return f"{name.kind} `{name.name}`" + (f" in namespace `{name.namespace}`" if name.namespace else "")
    return f"`{label}: {name}`"


def _folder(cluster: str) -> str:
    return f"{OVERLAYS}/{cluster}/retained/"


def _document_name(name: str, taken: set[str]) -> str:
    """A name for the document, with a digest where it is taken or no document can have it as it is."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if plain == name and len(name) <= _LONGEST_NAME and name not in taken:
        return name
    return f"{plain[: _LONGEST_NAME - 9].rstrip('-')}-{_digest(name)[:8]}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _is_ours(text: str) -> bool:
    """Whether a file holds what was written; line ends may have been changed by Git."""
    header, _, rest = text.replace("\r\n", "\n").partition("\n")
    return header == _HEADER + _digest(rest)


# --- What is left over -------------------------------------------------------------------------------------------


def _leftovers(old: Plan, new: Plan) -> Iterator[Leftover]:
    """What was not made by the policies of the revision, or is made by those of now."""
    before = {(needed.label, needed.name) for needed in (*_layouts(old), *_configs(old))}
    before |= {found.key for found in defined(old, with_objects=True) if not found.label}
    now = {found.key for found in defined(new, with_objects=True)}
    for item in new.retained:
        key = definition(item.what).key
        if key not in before or key in now:
            yield _leftover(new.cluster.name, item, *key, until="" if key in now else item.spec.until)


def _leftover(cluster: str, item: Retained, label: str, name: str | Identity, *, until: str) -> Leftover:
    file = item.at.locate().file
    is_ours = file.path.startswith(_folder(cluster)) and _is_ours(file.text)
    return Leftover(file.path, _title(label, name), until, is_ours)
