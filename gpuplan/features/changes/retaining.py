"""Find what must be retained of an earlier revision, make documents of it, and judge those beside the policies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpuplan.compiler.backends import backends, kueue
from gpuplan.compiler.backends.gpu_operator import device_plugin, mig_parted
from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, GpuplanError, Label, Origin
from gpuplan.compiler.base.plain import Body
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.manifests import Manifest, identity_of, is_object, to_yaml
from gpuplan.compiler.manifests.kinds import get_kind
from gpuplan.compiler.pipeline.loading import OVERLAYS
from gpuplan.compiler.pipeline.writing import document
from gpuplan.compiler.planning.layouts import content_hash
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    Layout,
    Mig,
    Plan,
    Pool,
    RetainedDevicePluginConfig,
    RetainedLayout,
    RetainedNodes,
    RetainedObject,
)
from gpuplan.compiler.planning.plugin_configs import configuration, key_of
from gpuplan.compiler.planning.pools import hangs_on_retained
from gpuplan.features.changes.evidence import Evidence, Listed, Named, RetainedPart, named_by, of_nodes
from gpuplan.features.changes.orders import is_needed, letting_go
from gpuplan.features.changes.rules import RETAINED_CONTRADICTED, RETAINED_FOR_NOTHING
from gpuplan.features.changes.step import Step

if TYPE_CHECKING:
    from gpuplan.compiler.pipeline import Report

HEAD: Final = "HEAD"


class Keeper(NamedTuple):
    """A document to be written: ``path`` is relative to the repository's root; ``title`` is what it retains."""

    path: str
    text: str
    title: str


class Leftover(NamedTuple):
    """A document that retains what nothing names any more, as far as policies say; ``until`` tells of the cluster.

    It is empty where the policies make the same themselves. ``is_ours`` says that the file holds what was written there
    by `retain`, and nothing else. ``needing`` is what needs it, None where nobody knows: nodes, or, where it
    ``is_object``, other objects. ``decided`` is the pool whose key
    it decides: the pool keeps that as the document goes.
    """

    path: str
    title: str
    until: str
    is_ours: bool
    needing: tuple[str, ...] | None = None
    is_object: bool = False
    decided: Pool | None = None

    @property
    def may_go(self) -> bool:
        """Whether nothing needs it for certain."""
        return not self.until or self.needing == ()


class Retention(Value):
    """The documents that the working tree lacks for a safe step, and those that it retains for nothing.

    Both are empty where ``report`` has other errors than `_OWN`. ``doubts`` are why a list of nodes is no proof of what
    none of them names; None without a list.
    """

    report: Report
    revision: str
    missing: tuple[Keeper, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    doubts: tuple[str, ...] | None = None

    @property
    def is_compared(self) -> bool:
        return all(item.code in _OWN for item in self.report.diagnostics if item.is_error)


_OWN: Final = ("GPU721", "GPU745")
"""Errors that end with what is written here, or deleted: what is retained is made again, or names what is gone."""


def retain(
    root: Path, clusters: Sequence[str] = (), against: str = HEAD, nodes: Listed = None, objects: Iterable[Body] = ()
) -> Retention:
    """Compare the clusters named, or all, with a revision or a folder: what is gone by there must stay defined.

    ``nodes`` are those of the one cluster, and ``objects`` any others that were listed with them.
    """
    from gpuplan.compiler.pipeline import validate
    from gpuplan.features.changes.comparing import refuse_several

    report = validate(root, clusters, kustomize="off")
    if not Retention(report, against).is_compared:
        return Retention(report, against)
    if nodes is not None:
        refuse_several(report.clusters, "nodes")
    earlier = {plan.cluster.name: plan for plan in _plans(root, against, clusters)}
    listed = {identity_of(body): body for body in objects if is_object(body)}
    doubts: tuple[str, ...] | None = None
    missing: list[Keeper] = []
    left: list[Leftover] = []
    for plan in report.plans:
        if old := earlier.get(plan.cluster.name):
            made = frozenset(made.identity for made in kueue.render(old) if isinstance(made, Manifest))
            evidence = None if nodes is None else Evidence(old, nodes, plan, listed, made)
            doubts = evidence.doubts if evidence is not None else None
            missing += keepers(old, plan, evidence)
            left += leftovers(old, plan, evidence)
    return Retention(report, against, tuple(missing), tuple(left), doubts)


def keepers(old: Plan, new: Plan, evidence: Evidence | None = None) -> Iterator[Keeper]:
    """A document for each thing that the earlier plan names and the later one neither defines so nor retains.

    What pools give is named by nodes sooner or later, whatever these name now. Of what no pool gives, evidence decides.
    """
    made = {found.named for found in _defined(new, with_objects=True)}
    retained = {named_by(item.what) for item in new.retained}
    taken = {item.name for item in new.retained}
    for needed in _needed(old, new):
        is_moved = needed.named.label == POOL_LABEL
        label, value = needed.named
        is_given = any(part.labels.get(label) == value for part in old.parts)
        # Whether a list shows that no node names what no pool gives.
        is_unnamed = label and not is_given and evidence is not None and evidence.naming(label, str(value)) == ()
        is_lost = needed.named not in made and not is_unnamed
        if is_moved or (needed.named not in retained and (needed.is_left or is_lost)):
            name = document_name(needed.document, taken)
            taken.add(name)
            text = to_yaml(document("Retained", name, needed.spec))
            path = f"{_folder(new.cluster.name)}{name}.yaml"
            yield Keeper(path, f"{_HEADER}{_digest(text)}\n{text}", str(needed.named))


def _plans(root: Path, against: str, clusters: Sequence[str]) -> tuple[Plan, ...]:
    """The plans of what was built; what has errors was not, and does not say what nodes name."""
    from gpuplan.features.changes.comparing import SideKind, choose_sides, read_side
    from gpuplan.features.changes.revisions import is_in_git

    if against == HEAD and not is_in_git(root):
        raise GpuplanError(
            f"`{root}` is in no Git repository, so nobody knows what it was before",
            "run `git init`, and commit; or name a folder with the platform as it was: `gpuplan retain --against DIR`",
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
            f"the policies at `{side.name}` have errors; the first, in `{place}`: {error.shown.message}",
            "name the last revision that was built: `gpuplan retain --against REV`",
        )
    return tuple(platform.plans.values())


# --- Definitions -------------------------------------------------------------------------------------------------


class _Definition(NamedTuple):
    """The meaning of a name. Two definitions with one ``content`` are the same.

    The place is not known of an object that a back end makes.
    """

    named: Named
    content: object
    at: Origin | None


def _defined(plan: Plan, *, with_objects: bool) -> Iterator[_Definition]:
    """Yield the definitions that the policies make themselves, with all objects if asked for."""
    bare = replace(plan, retained=())
    entries = mig_parted.configuration(bare)["mig-configs"]
    for layout in bare.mig_layouts:
        items = entries[layout.config_name]
        content = repr(items) if any("device-filter" in item for item in items) else _content(layout)
        yield _Definition(Named(MIG_CONFIG_LABEL, layout.config_name), content, layout.at)
    places = {pool.labels[DEVICE_PLUGIN_CONFIG_LABEL]: pool.at for pool in bare.parts}
    for key, text in device_plugin.data(bare).items():
        yield _Definition(Named(DEVICE_PLUGIN_CONFIG_LABEL, key), text, places[key])
    if with_objects:
        for backend in backends():
            for artifact in backend.render(bare):
                if isinstance(artifact, Manifest):
                    yield _Definition(Named("", artifact.identity), artifact.body, None)


def _definition(retained: RetainedPart) -> _Definition:
    named = named_by(retained)
    match retained:
        case RetainedLayout():
            return _Definition(named, _content(retained.layout), retained.at / "configName")
        case RetainedDevicePluginConfig():
            return _Definition(named, to_yaml(retained.config), retained.at / "key")
        case RetainedNodes():
            return _Definition(named, retained.spec, retained.at / "pool")
        case RetainedObject(spec=spec):
            return _Definition(named, spec.manifest, retained.at / "manifest" / "metadata" / "name")


def _content(layout: Layout) -> tuple[str, str]:
    """Return the content that an entry's name stands for."""
    return content_hash(layout.entries), layout.gpu.id


# --- What is missing ---------------------------------------------------------------------------------------------


class _Needed(NamedTuple):
    """Something that the cluster needs: the spec of a document that retains it, and that one's name if it can be.

    ``is_left`` says that it is retained whatever the policies still define: another meaning of the name, or what its
    last pool has left, so that whoever removes it later finds it retained.
    """

    named: Named
    document: str
    spec: Mapping[str, Any]
    is_left: bool = False


def _needed(old: Plan, new: Plan) -> Iterator[_Needed]:
    """Yield what nodes name and what Kueue holds. Queues go with a namespace that no tenant has any more."""
    sizes: dict[str, int] = {}
    layouts = {layout.config_name: layout for layout in old.mig_layouts if old.may_be_divided_by(layout)}
    for part in old.parts:
        if isinstance(part.sharing, Mig):
            layout = part.sharing.layout
            sizes[layout.config_name] = max(sizes.get(layout.config_name, 0), part.nodes.gpus_per_node)
    left = sizes.keys() - _entries_in_use(new)
    for name in sorted(layouts):
        spec = entry_spec(layouts[name], sizes.get(name, 0))
        yield _Needed(Named(MIG_CONFIG_LABEL, name), name, spec, is_left=name in left)
    yield from _configs(old, new)
    yield from _nodes(old, new)
    manifests = (artifact for artifact in kueue.render(old) if isinstance(artifact, Manifest))
    for manifest in manifests:
        identity = manifest.identity
        kind = get_kind(identity.group, identity.kind)
        if kind.needed_until and identity.namespace in ("", *new.owners):
            body = dict(manifest.body)
            if kind.takes_work:
                body["spec"] = {"stopPolicy": "Hold", **body["spec"]}
            until = kind.needed_until.replace("NAME", identity.name).replace("SPACE", identity.namespace)
            parts = (identity.kind.lower(), *filter(None, (identity.namespace, identity.name)))
            yield _Needed(Named("", identity), "-".join(parts), {"object": {"manifest": body}, "until": until})


def entry_spec(layout: Layout, gpus_per_node: int) -> dict[str, Any]:
    """Return the spec that retains a layout's entry, for nodes with so many GPUs."""
    name = layout.config_name
    division = {"configName": name, "gpu": layout.gpu.id, **_division(layout, gpus_per_node)}
    return {"migLayout": division, "until": _no_node(MIG_CONFIG_LABEL, name)}


def _entries_in_use(plan: Plan) -> set[str]:
    return {part.sharing.layout.config_name for part in plan.parts if isinstance(part.sharing, Mig)}


def _division(layout: Layout, gpus_per_node: int) -> dict[str, Any]:
    """Return a layout in the policy language, in the short form if all GPUs are divided alike."""
    first, *others = layout.entries or (None,)
    if first is not None and not others and first.gpus is None and first.mig_enabled:
        return {"instances": dict(first.instances)}
    devices = [
        {
            "gpus": "all" if entry.gpus is None else list(entry.gpus),
            **({"instances": dict(entry.instances)} if entry.instances else {}),
            **({} if entry.mig_enabled else {"enabled": False}),
        }
        for entry in layout.entries
    ]
    division: dict[str, Any] = {"devices": devices}
    named = {index for entry in layout.entries for index in entry.gpus or range(gpus_per_node)}
    return division if named.issuperset(range(gpus_per_node)) else division | {"gpusPerNode": gpus_per_node}


def _configs(old: Plan, new: Plan) -> Iterator[_Needed]:
    """All keys, as the later plan says what each means: the strategy of the whole cluster arrives with the file."""
    strategy = new.cluster.gpu_operator.spec.mig_strategy
    made = device_plugin.configurations(replace(new, retained=()))
    parts = {part.labels[DEVICE_PLUGIN_CONFIG_LABEL]: part for pool in old.pools for part in reversed(pool.parts)}
    kept = {item.spec.key: item.config for item in old.retained_plugin_configs}
    lost = {key: config for key, config in kept.items() if made.get(key, config) != config}
    configs = {key: configuration(part, strategy) for key, part in parts.items()} | lost
    # Pools have these keys once what says their own names' meaning is retained again.
    meant = [
        part._replace(keys=part.keys._replace(meaning=lost[part.keys.own]))
        for part in new.parts
        if part.keys.own in lost
    ]
    for key in sorted(configs.keys() - ({*map(key_of, meant)} - lost.keys())):
        is_left = made.get(key, configs[key]) != configs[key]
        named = Named(DEVICE_PLUGIN_CONFIG_LABEL, key)
        yield _Needed(named, key_document(key), key_spec(new, key, configs[key]), is_left)


def key_document(key: str) -> str:
    """Return the preferred name of the document that retains a key."""
    return f"device-plugin-{key}"


def key_spec(plan: Plan, key: str, config: Mapping[str, object]) -> dict[str, Any]:
    """Return the spec that retains a key, in a plan that may have the pool of that name."""
    pool = next((pool for pool in plan.pools if pool.keys.own == key), None)
    again = f"pool `{pool.name}` is removed or shares its GPUs so again, and " if pool is not None else ""
    return {
        "devicePluginConfig": {"key": key, "config": dict(config)},
        "until": (again + _no_node(DEVICE_PLUGIN_CONFIG_LABEL, key)),
    }


def _nodes(old: Plan, new: Plan) -> Iterator[_Needed]:
    """Yield the labels that nodes keep on their way to another pool, whichever of two folders is synced first."""
    for moved in letting_go(Step(old, new)):
        name, nodes = moved.was.name, moved.was.nodes
        listed = f"`kubectl get nodes -l {POOL_LABEL}={name}` lists"
        if moved.names:
            chosen: dict[str, Any] = {"names": list(moved.names)}
            until = f"{listed} none of {listing(moved.names, 8)}"
        else:
            chosen = {"namePattern": nodes.name_pattern, **({"exceptNames": list(nodes.moved)} if nodes.moved else {})}
            until = f"{listed} no node" + (f" but those of pool `{name}`" if new.find_pool(name) is not None else "")
        spec = {"pool": name, **chosen, "labels": moved.labels}
        document = f"nodes-of-{name}-{_digest(to_yaml(chosen))[:8]}"
        yield _Needed(of_nodes(name, chosen.get("namePattern"), moved.names), document, {"nodes": spec, "until": until})


def _no_node(label: str, value: str) -> str:
    return f"`kubectl get nodes -l {label}={value}` lists no node"


# --- Documents ---------------------------------------------------------------------------------------------------

_HEADER: Final = "# Written by gpuplan retain, whose --prune removes it unless it was edited: "
_LONGEST_NAME: Final = 63


def _folder(cluster: str) -> str:
    return f"{OVERLAYS}/{cluster}/retained/"


def document_name(name: str, taken: set[str]) -> str:
    """A name for the document, with a digest where it is taken or no document can have it as it is."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if plain == name and len(name) <= _LONGEST_NAME and name not in taken:
        return name
    return f"{plain[: _LONGEST_NAME - 9].rstrip('-')}-{_digest(name)[:8]}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


# --- What is left over -------------------------------------------------------------------------------------------


def leftovers(old: Plan, new: Plan, evidence: Evidence | None = None) -> Iterator[Leftover]:
    """Yield the documents for what the revision did not make or the policies make now, unless keys depend on them."""
    now = _needless(new, _defined(new, with_objects=True))
    before = {needed.named for needed in _configs(old, new)}
    before |= {found.named for found in _defined(old, with_objects=True) if not found.named.label}
    gone = {layout.config_name for layout in old.mig_layouts} - {layout.config_name for layout in new.mig_layouts}
    before |= {Named(MIG_CONFIG_LABEL, name) for name in gone | _entries_in_use(old)}
    before |= {Named(label, name) for _, kept in new.retained_nodes for label, name in kept.spec.labels.items()}
    step = Step(old, new)
    for item in new.retained:
        named = named_by(item.what)
        if isinstance(item.what, RetainedNodes) and is_needed(step, item.what):
            continue
        decided = _decided(new, item.what)
        if decided is not None:
            is_left = evidence is not None and decided.rollout is None
        else:
            is_left = named not in before or named in now
        if is_left:
            file = item.at.locate().file
            header, _, rest = file.text.replace("\r\n", "\n").partition("\n")  # Git may have changed line ends
            is_ours = file.path.startswith(_folder(new.cluster.name)) and header == _HEADER + _digest(rest)
            needing = evidence.needing(item.what, new) if evidence is not None else None
            until, is_object = "" if named in now else item.spec.until, isinstance(item.what, RetainedObject)
            yield Leftover(file.path, str(named), until, is_ours, needing, is_object, decided)


def _needless(plan: Plan, defined: Iterable[_Definition]) -> dict[Named, _Definition]:
    """Return the definitions that need no retaining. A layout that no pool uses may go, and may be retained."""
    unused = {layout.config_name for layout in plan.mig_layouts} - _entries_in_use(plan)
    found = {item.named: item for item in defined}
    return {named: item for named, item in found.items() if named.label != MIG_CONFIG_LABEL or named.name not in unused}


def _decided(plan: Plan, retained: object) -> Pool | None:
    """Return the pool whose own name a document gives a meaning, so that without it its nodes get other labels."""
    if not isinstance(retained, RetainedDevicePluginConfig):
        return None
    pools = (pool for pool in plan.pools if pool.keys.own == retained.spec.key and hangs_on_retained(pool))
    return next(pools, None)


# --- What is retained and made as well ---------------------------------------------------------------------------


def judge_retained(plan: Plan) -> Iterator[Diagnostic]:
    """Yield findings on what is retained beside a definition of the same name. The plan must be free of errors."""
    has_objects = any(isinstance(item.what, RetainedObject) for item in plan.retained)
    known = {found.named: found for found in _defined(plan, with_objects=has_objects)}
    needless, retained = _needless(plan, known.values()), dict[Named, _Definition]()
    for item in plan.retained:
        found = _definition(item.what)
        twin, made = retained.setdefault(found.named, found), known.get(found.named)
        is_needed = _decided(plan, item.what) is not None or found.named not in needless
        if twin is not found:
            yield _report(plan, found, twin)
        elif made is not None and (found.content != made.content or not is_needed):
            yield _report(plan, found, made)


def _report(plan: Plan, definition: _Definition, other: _Definition) -> Diagnostic:
    """Objects are never the same: two documents for one would be written twice."""
    is_same = bool(definition.named.label) and definition.content == other.content
    rule = RETAINED_FOR_NOTHING if is_same else RETAINED_CONTRADICTED
    how = "just so as well" if is_same else "otherwise as well" if definition.named.label else "from the policies, too"
    finding = Finding(
        definition.at or plan.cluster.at,
        f"`{definition.named.name}` is retained, and made {how}",
        label="not needed" if is_same else "one name for two",
        related=(Label(other.at, "made here"),) if other.at else (),
        help="delete the document" if is_same else "delete the document, or give the other one another name",
    )
    return Diagnostic(rule, finding, clusters=(plan.cluster.name,))
