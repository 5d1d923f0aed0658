"""Make drafts of pools of what a dump says of their nodes, with the layouts, models and files that these name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gpuplan.adoption.clusters import node_labels
from gpuplan.adoption.clusters.reader import Reader
from gpuplan.adoption.draft import Draft, Found
from gpuplan.adoption.dump import Dump
from gpuplan.adoption.pools.boards import (
    bare_product,
    described,
    find_by_pci,
    find_by_product,
    gpu_name,
    is_of_mig_devices,
)
from gpuplan.adoption.pools.claims import Kept, Part, read_claims
from gpuplan.adoption.pools.delivering import read_disruption
from gpuplan.adoption.pools.divisions import layout_of, policy_name, profiles_of, read_entries
from gpuplan.adoption.pools.files import DEVICE_PLUGIN, MIG_MANAGER, ConfigFile, read_files
from gpuplan.adoption.pools.grouping import Group, group
from gpuplan.adoption.pools.layouts import Layouts, Use
from gpuplan.adoption.pools.machines import Machine, Taint, read_machines
from gpuplan.adoption.pools.operator import Operator, read_operator
from gpuplan.adoption.pools.plugin import Configuration, read_configuration
from gpuplan.adoption.pools.surroundings import Surroundings
from gpuplan.adoption.pools.telling import Told
from gpuplan.adoption.rules import LAYOUT_NOT_SAID, NODES_NOT_SAID, SHARING_NOT_SAID
from gpuplan.backends.gpu_operator import device_plugin
from gpuplan.catalog import Gpu, load, resource_suffix
from gpuplan.diagnostics import Origin, Severity
from gpuplan.planning.dra import DRA_PLUGIN_LABEL
from gpuplan.planning.layouts import entry_of
from gpuplan.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    GPU_RESOURCE,
    MIG_CONFIG_LABEL,
    MIG_MANAGER_LABEL,
    POOL_LABEL,
)
from gpuplan.planning.plugin_configs import pool_of
from gpuplan.planning.pools import ALL_DISABLED, ROLLOUT_SUFFIX
from gpuplan.planning.schedulers.kai import NODE_POOL_LABEL
from gpuplan.policy.models import ClusterMigStrategy, MigStrategy, NodeLabels
from gpuplan.values import NamedTuple, Value
from gpuplan.wording import count, joined

Spec = dict[str, Any]

_OWN_LABELS: Final = frozenset(
    (
        POOL_LABEL,
        DEVICE_PLUGIN_CONFIG_LABEL,
        MIG_CONFIG_LABEL,
        MIG_MANAGER_LABEL,
        DRA_PLUGIN_LABEL,
        NODE_POOL_LABEL,
    )
)


def read_pools(dump: Dump) -> Found:
    """All that a dump says of pools."""
    return _Reading(dump).found()


class _Board(NamedTuple):
    """A pool's model by its name; ``gpu`` is None where the catalog lacks it."""

    name: str
    gpu: Gpu | None


class _Shared(Value):
    """How nodes are shared, as a policy has it; ``key`` is the device plugin's file that they name.

    ``layout`` and ``strategy`` are of a pool with MIG.
    """

    spec: Spec
    key: str = ""
    strategy: str = ""


class _Reading:
    """What is read of a dump first, and the drafts that are made of it."""

    def __init__(self, dump: Dump) -> None:
        self.dump, self.told = dump, Told()
        self.operator: Operator = read_operator(dump)
        machines = read_machines(dump)
        self.machines = tuple(machines.live.values())
        claims, self.kept = read_claims(dump, machines)
        self.surroundings = Surroundings(dump, self.machines)
        is_external = node_labels(Reader(dump, "")) is NodeLabels.EXTERNAL
        flavors = self.surroundings.flavors_of_nodes
        self.groups = tuple(group(claims, self.machines, flavors, are_labelled_by_others=is_external))
        mig_files = read_files(dump, self.operator, MIG_MANAGER, self.told)
        self.entries, others = read_entries(mig_files)
        problems = [*others, *((entry.file, found) for entry in self.entries.values() for found in entry.problems)]
        for file, problem in problems:
            self.told.say(
                LAYOUT_NOT_SAID,
                file.place(*problem.route),
                problem.message,
                label=problem.label,
                notes=("one bad entry fails the file, and with it all nodes",),
                help=problem.help,
                severity=Severity.ERROR,
            )
        files = read_files(dump, self.operator, DEVICE_PLUGIN, self.told)
        known = {strategy.value for strategy in ClusterMigStrategy}
        overriding = ClusterMigStrategy(self.operator.strategy if self.operator.strategy in known else "perPool")
        self.files: dict[str, ConfigFile] = {file.key: file for file in reversed(files)}
        self.configurations = {key: read_configuration(file, overriding) for key, file in self.files.items()}
        self.boards = {found.pool: self._board(found) for found in self.groups}
        uses = tuple(self._uses())
        self.uses = {(use.pool, use.entry): use for use in uses}
        self.layouts = Layouts(self.entries, uses, self.told)

    def found(self) -> Found:
        self._tell_of_nodes()
        shared = {found.pool: self._shared(found) for found in self.groups}
        keepers = self._keepers(shared)
        pools = [self._pool(found, shared[found.pool], keepers) for found in self.groups]
        drafts = [
            *self._gpus(),
            *self.layouts.rest(),
            *filter(None, pools),
            *self._retained_files(shared),
            *map(_retained_nodes, self.kept),
        ]
        self._tell_of_files(shared)
        remarked = (replace(draft, remarks=(*draft.remarks, *self.told.remarks(draft.title))) for draft in drafts)
        return Found(tuple(remarked), tuple(self.told.diagnostics))

    # --- Models ---

    def _board(self, found: Group) -> _Board | None:
        """The model that the table names, or most nodes have."""
        stated = next(filter(None, (part.gpu for part in found.claim.parts)), "")
        if gpu := load().find(stated):
            return _Board(gpu.id, gpu)
        products = Counter(bare_product(machine.product) for machine in found.machines if machine.product)
        devices = frozenset(device for machine in found.machines for device in machine.devices)
        for product, _ in products.most_common(1):
            gpu = find_by_product(product) or find_by_pci(devices)
            return _Board(gpu.id, gpu) if gpu else _Board(stated or gpu_name(product), None)
        if gpu := find_by_pci(devices):
            return _Board(gpu.id, gpu)
        return _Board(stated, None) if stated else None

    def _gpus(self) -> Iterator[Draft]:
        """A document for each model that the catalog lacks."""
        unknown: dict[str, list[Machine]] = {}
        for found in self.groups:
            board = self.boards[found.pool]
            if board is not None and board.gpu is None:
                unknown.setdefault(board.name, []).extend(found.machines)
        for name, machines in sorted(unknown.items()):
            whole = [machine for machine in machines if machine.product and not is_of_mig_devices(machine.product)]
            labels = whole[0].labels if whole else {}
            products = {bare_product(machine.product) for machine in machines if machine.product}
            devices = {device for machine in machines for device in machine.devices}
            devices |= {device for part in self._parts_of(name) for device in part.devices}
            spec = dict(described(labels, products, devices))
            draft = Draft("Gpu", name, spec, tuple(dict.fromkeys(machine.source for machine in machines[:1])))
            self._tell_of_model(draft, machines)
            yield draft

    def _parts_of(self, model: str) -> Iterator[Part]:
        for found in self.groups:
            board = self.boards[found.pool]
            if board is not None and board.name == model:
                yield from found.claim.parts

    def _tell_of_model(self, draft: Draft, machines: Sequence[Machine]) -> None:
        missing = [field for field in ("memoryMiB", "computeCapability", "products", "pci") if field not in draft.spec]
        if not missing or not machines:
            return
        first = machines[0]
        help_ = "".join(
            (
                "`pci` is what `lspci -nn -d 10de:` prints there; " if "pci" in missing else "",
                f"write {', '.join(f'`{field}`' for field in missing)} into policies/gpus/{draft.name}.yaml",
            )
        )
        self.told.say(
            NODES_NOT_SAID,
            first.at / "metadata" / "labels",
            f"the labels of node `{first.name}` do not say all of its GPU model, which the catalog lacks",
            label=f"no {' and no '.join(f'`{field}`' for field in missing)}",
            notes=("NFD finds PCI ids: `kubectl get nodefeatures -A -o yaml` has them, and can be imported, too",),
            help=help_,
            drafts=(draft.title,),
        )

    # --- Sharing ---

    def _uses(self) -> Iterator[Use]:
        for found in self.groups:
            board = self.boards[found.pool]
            if board is None or board.gpu is None:
                continue
            for part in found.claim.parts:
                if name := _config_name(part):
                    own = [machine for machine in found.machines if machine.labels.get(MIG_CONFIG_LABEL) == name]
                    yield Use(
                        pool=found.pool,
                        gpu=board.gpu,
                        entry=name,
                        nodes=len(part.names) or part.count or len(found.machines),
                        gpus_per_node=_counted(found),
                        published=_instances(board.gpu, own[0]) if own else {},
                        old_names=_old_names(board.gpu, own[0]) if own else frozenset(),
                        at=part.at / "labels" if found.is_claimed else part.at / "metadata" / "labels",
                    )

    def _shared(self, found: Group) -> tuple[_Shared, ...]:
        board = self.boards[found.pool]
        gpu = board.gpu if board else None
        return tuple(self._shared_part(found, part, gpu) for part in found.claim.parts)

    def _shared_part(self, found: Group, part: Part, gpu: Gpu | None) -> _Shared:
        named = part.labels.get(DEVICE_PLUGIN_CONFIG_LABEL, "")
        key = named or self.operator.default_key
        config = self.configurations.get(key, _NONE)
        if named and named not in self.files and self.files:
            self._tell_of_missing_file(found, part, named)
        is_on_demand = part.labels.get(MIG_MANAGER_LABEL) == "false" and part.labels.get(DRA_PLUGIN_LABEL) == "true"
        if is_on_demand and gpu and (profiles := self.surroundings.claimed_profiles(gpu)):
            return _Shared({"dynamicMig": {"profiles": profiles}}, named)
        name = _config_name(part)
        if name and gpu is None and self.boards[found.pool] is not None:
            self._tell_of_unlisted(found, part, name)
        use = self.uses.get((found.pool, name))
        mig = self.layouts.mig_of(use) if use else None
        if mig is not None and gpu is not None:
            return self._mig(found, mig, config, named)
        if whole := config.of_gpus():
            return _Shared(whole, named)
        if self.surroundings.is_fraction(found.pool):
            return _Shared({"fraction": {}}, named)
        return _Shared({"exclusive": {}}, named)

    def _mig(self, found: Group, mig: Spec, config: Configuration, key: str) -> _Shared:
        strategy = self._strategy(found, config)
        division = self._division(mig)
        names = profiles_of(division)
        sliced = config.of_mig(names, strategy)
        told = {} if strategy == MigStrategy.MIXED else {"strategy": strategy}
        return _Shared({"mig": {**mig, **told, **sliced}}, key, strategy)

    def _division(self, mig: Spec) -> Spec:
        return self.layouts.spec_of(mig["layout"]) if "layout" in mig else mig

    def _strategy(self, found: Group, config: Configuration) -> str:
        """The file's, unless the cluster has one for all nodes; else GPU Feature Discovery shows it."""
        known = {strategy.value for strategy in MigStrategy}
        stated = self.operator.strategy if self.operator.strategy in known else config.strategy
        if stated in known:
            return stated
        labels = {machine.labels.get("nvidia.com/mig.strategy", "") for machine in found.machines}
        if labels & known:
            return min(labels & known)
        is_single = any(is_of_mig_devices(machine.product) for machine in found.machines)
        return MigStrategy.SINGLE.value if is_single else MigStrategy.MIXED.value

    def _tell_of_unlisted(self, found: Group, part: Part, name: str) -> None:
        board = self.boards[found.pool]
        called = board.name if board else ""
        self.told.say(
            LAYOUT_NOT_SAID,
            part.at,
            f"nobody knows which instances `{called}` may have, of which nodes of pool `{found.pool}` name `{name}`",
            label="no model of the catalog",
            notes=("no label of a node says where the instances of a board may be placed",),
            help=f"give the Gpu `{called}` its `mig`, as `nvidia-smi mig` prints it, and the pool a layout",
            drafts=(f"Pool {found.pool}", f"Gpu {called}"),
        )

    def _tell_of_missing_file(self, found: Group, part: Part, key: str) -> None:
        self.told.say(
            SHARING_NOT_SAID,
            part.at,
            f"no file of the device plugin is called `{key}`, which nodes of pool `{found.pool}` name",
            label="taken for whole GPUs",
            notes=("the device plugin of such a node does not start, and the node publishes no GPUs",),
            help=f"correct the label `{DEVICE_PLUGIN_CONFIG_LABEL}`, or import the ConfigMap that has the file",
            drafts=(f"Pool {found.pool}",),
        )

    # --- Keys of the device plugin's files ---

    def _keepers(self, shared: Mapping[str, tuple[_Shared, ...]]) -> Mapping[str, str]:
        """By key that is not gpuplan's, what it stands for: what most nodes that name it do with it."""
        sizes: dict[str, Counter[str]] = {}
        for found in self.groups:
            first = shared[found.pool][0]
            if _is_foreign(found.pool, first.key):
                number = len(found.machines) or len(found.claim.first.names)
                sizes.setdefault(first.key, Counter())[self._content(first)] += number
        return {key: found.most_common(1)[0][0] for key, found in sizes.items()}

    def _content(self, shared: _Shared) -> str:
        """What decides the file that gpuplan writes for a pool."""
        [(kind, spec)] = shared.spec.items()
        if kind != "mig":
            return repr(
                (kind if kind in ("timeSlicing", "mps") else "", spec if kind in ("timeSlicing", "mps") else {})
            )
        sliced = spec.get("timeSlicing")
        return repr((shared.strategy, sliced, sorted(profiles_of(self._division(spec))) if sliced else ()))

    def _kept_key(self, found: Group, shared: _Shared, keepers: Mapping[str, str]) -> Spec:
        if not _is_foreign(found.pool, shared.key):
            return self._left_key(found.pool, shared.key)
        if keepers.get(shared.key) == self._content(shared):
            return {"devicePluginConfig": shared.key}
        file = self.files.get(shared.key)
        self.told.say(
            SHARING_NOT_SAID,
            file.at if file else found.claim.first.at,
            f"the file `{shared.key}` of the device plugin means something else for pool `{found.pool}`",
            label="one file for several ways of sharing",
            notes=("a file of gpuplan says how one kind of pool is shared, and nothing else",),
            help="nothing: these nodes get a file of their own, and the label that names it",
            drafts=(f"Pool {found.pool}",),
        )
        return {}

    def _left_key(self, pool: str, key: str) -> Spec:
        """The name that a pool kept until it was shared otherwise: since then its key has a hash, and that is retained.

        Where the ConfigMap keeps its name, each key has one.
        """
        is_hashed = key.startswith(f"{pool}.") and not key.endswith(ROLLOUT_SUFFIX)
        if (
            not is_hashed
            or pool in self.files
            or any(file.owner == device_plugin.CONFIG_MAP for file in self.files.values())
        ):
            return {}
        pools = {found.pool for found in self.groups}
        named = {part.labels.get(DEVICE_PLUGIN_CONFIG_LABEL) for found in self.groups for part in found.claim.parts}
        left = [name for name in self.files if pool_of(name) not in pools and name not in named]
        return {"devicePluginConfig": left[0]} if left else {}

    # --- Pools ---

    def _pool(self, found: Group, shared: Sequence[_Shared], keepers: Mapping[str, str]) -> Draft | None:
        board = self.boards[found.pool]
        if board is None:
            self._tell_of_unknown(found)
            return None
        first = found.claim.first
        names = self._kept_key(found, shared[0], keepers)
        names |= self.surroundings.flavor_name(found.pool, found.machines)
        spec: Spec = {"gpu": board.name, "nodes": self._nodes(found, shared[0]), "sharing": shared[0].spec}
        given = {
            "names": names,
            "nodeLabels": _more_labels(first) if found.is_claimed else {},
            "taints": [_taint(taint) for taint in first.taints],
            "allocation": "dra" if first.labels.get(DRA_PLUGIN_LABEL) == "true" else None,
            **self.surroundings.of_pool(found.pool, found.machines),
            "disruption": read_disruption(self.dump, found.pool),
            "rollout": self._rollout(found, shared),
        }
        spec |= {field: value for field, value in given.items() if value}
        sources = [part.source for part in found.claim.parts]
        sources += [machine.source for machine in found.machines[:1] if found.is_claimed]
        keys = [part.key or self.operator.default_key for part in shared]
        sources += [self.files[key].source for key in keys if key in self.files]
        self._compare(found, board, spec)
        return Draft("Pool", found.pool, spec, tuple(dict.fromkeys(sources)))

    def _nodes(self, found: Group, shared: _Shared) -> Spec:
        parts = found.claim.parts
        pattern, selector = parts[0].pattern, dict(parts[0].selector)
        is_open = bool(pattern or selector) or (parts[0].asks_for_boards and not parts[0].names)
        names = [] if is_open else sorted({name for part in parts for name in part.names})
        number = sum(part.count for part in parts) or len(names) or len(found.machines) or 1
        nodes: Spec = {"count": number, "gpusPerNode": self._gpus_per_node(found, shared)}
        if pattern:
            nodes["namePattern"] = pattern
        elif names:
            nodes["names"] = names
        if selector:
            nodes["selector"] = selector
        if any(part.asks_for_boards for part in parts):
            nodes["matchBoards"] = True
        return nodes

    def _gpus_per_node(self, found: Group, shared: _Shared) -> int:
        """What the table says or labels count; where these count MIG devices, or nothing, what follows from those."""
        if stated := max((part.gpus_per_node for part in found.claim.parts), default=0):
            return stated
        whole = [machine.counted for machine in found.machines if not is_of_mig_devices(machine.product)]
        if counted := Counter(filter(None, whole)).most_common(1):
            return counted[0][0]
        per_gpu = 1
        match shared.spec:
            case {"timeSlicing": {"replicas": int(shares)}} | {"mps": {"replicas": int(shares)}}:
                per_gpu = shares
            case {"mig": mig}:
                per_gpu = sum(self._division(mig).get("instances", {}).values()) or 1
            case _:
                pass
        seen = max((machine.counted or sum(machine.published.values()) for machine in found.machines), default=0)
        return max(seen // per_gpu, 1)

    def _rollout(self, found: Group, shared: Sequence[_Shared]) -> Spec | None:
        if len(shared) < _WITH_ROLLOUT:
            return None
        return {"sharing": shared[1].spec, "nodes": sorted(found.claim.parts[1].names)}

    # --- What nodes have ---

    def _compare(self, found: Group, board: _Board, spec: Spec) -> None:
        """Nodes that publish something else than their label asks for, where that is known."""
        expected = self._expected(found.claim.first.at, board, spec)
        if not expected or spec.get("rollout") or spec.get("allocation"):
            return
        wrong = [machine for machine in found.machines if machine.published and machine.published != expected]
        if not wrong:
            return
        first = wrong[0]
        state = first.labels.get("nvidia.com/mig.config.state", "")
        self.told.say(
            NODES_NOT_SAID,
            first.at / "status",
            f"{count(len(wrong), 'node')} of pool `{found.pool}` {'publishes' if len(wrong) == 1 else 'publish'} "
            "something else than the pool hands out",
            label=f"`{first.name}` has {_spelt(first.published)}",
            notes=(
                f"as the nodes are labelled it is {_spelt(expected)}",
                *((f"`nvidia.com/mig.config.state` is `{state}` there",) if state else ()),
            ),
            help="find out why before the first sync; the pool says what labels and files ask for",
            drafts=(f"Pool {found.pool}",),
        )

    def _expected(self, at: Origin, board: _Board, spec: Spec) -> dict[str, int]:
        gpus, sharing = spec["nodes"]["gpusPerNode"], spec["sharing"]
        match sharing:
            case {"exclusive": _}:
                return {GPU_RESOURCE: gpus}
            case {"timeSlicing": shares} | {"mps": shares}:
                name = GPU_RESOURCE if shares.get("rename") is False else f"{GPU_RESOURCE}.shared"
                return {name: gpus * shares["replicas"]}
            case {"mig": mig} if board.gpu is not None and "timeSlicing" not in mig:
                return _expected_instances(at, board.gpu, self._division(mig), gpus, mig.get("strategy", "mixed"))
            case _:
                return {}

    def _tell_of_unknown(self, found: Group) -> None:
        first = found.claim.first
        place = found.machines[0].at / "metadata" / "labels" if found.machines else first.at
        self.told.say(
            NODES_NOT_SAID,
            place,
            f"nothing says which GPU model the nodes of pool `{found.pool}` have",
            label="no `nvidia.com/gpu.product`" if found.machines else "none of its nodes is in the dump",
            notes=("GPU Feature Discovery writes the label where the driver runs",),
            help="import what `kubectl get nodes -o yaml` prints, too",
        )

    def _tell_of_nodes(self) -> None:
        for found in self.groups:
            products = Counter(bare_product(machine.product) for machine in found.machines if machine.product)
            counts = Counter(machine.counted for machine in found.machines if machine.counted)
            for what, others in (("GPU model", products), ("number of GPUs", counts)):
                if len(others) > 1:
                    [(most, _), *rest] = others.most_common()
                    self.told.say(
                        NODES_NOT_SAID,
                        found.machines[0].at,
                        f"not all nodes of pool `{found.pool}` have the same {what}",
                        label=f"most have {most}, others {', '.join(str(value) for value, _ in rest)}",
                        notes=("a pool's nodes are alike; capacity is counted by what most of them have",),
                        help="make a pool of the others",
                        drafts=(f"Pool {found.pool}",),
                    )

    # --- Files that no pool has ---

    def _retained_files(self, shared: Mapping[str, tuple[_Shared, ...]]) -> Iterator[Draft]:
        """Files that gpuplan wrote and no pool has now: nodes may still name them."""
        used = {part.key for parts in shared.values() for part in parts}
        used -= {pool for pool, parts in shared.items() if _hangs_on_meaning(pool, parts)}
        for key, file in sorted(self.files.items()):
            if key in used or not file.owner.startswith(device_plugin.CONFIG_MAP):
                continue
            pool = pool_of(key)
            until = f"`kubectl get nodes -l {DEVICE_PLUGIN_CONFIG_LABEL}={key} -o name` prints nothing."
            if key == pool and pool in shared:
                until = (
                    f"`kubectl get nodes -l {DEVICE_PLUGIN_CONFIG_LABEL}={key} -o name` prints no node of this pool."
                )
            spec = {"devicePluginConfig": {"key": key, "config": dict(file.body)}, "until": until}
            yield Draft("Retained", f"plugin-{policy_name(key)}", spec, (file.source,))

    def _tell_of_files(self, shared: Mapping[str, tuple[_Shared, ...]]) -> None:
        """What is lost of files that nodes name, and how many others there are."""
        pools: dict[str, list[str]] = {}
        for pool, parts in shared.items():
            for part in parts:
                pools.setdefault(part.key or self.operator.default_key, []).append(f"Pool {pool}")
        unused: list[ConfigFile] = []
        for key, file in sorted(self.files.items()):
            if key in pools:
                for loss in self.configurations[key].losses:
                    self.told.say(
                        SHARING_NOT_SAID,
                        file.place(*loss.route),
                        f"`{key}`: {loss.message}",
                        label="never had an effect" if loss.is_inert else "not said in a policy",
                        help=loss.instead,
                        drafts=pools[key],
                    )
                self._tell_of_undivided(key, file, [part for parts in shared.values() for part in parts])
            elif not file.owner.startswith(device_plugin.CONFIG_MAP):
                unused.append(file)
        if unused:
            self.told.say(
                SHARING_NOT_SAID,
                unused[0].at,
                f"no node names {count(len(unused), 'file')} of the device plugin",
                label="left out",
                notes=(f"the first is `{unused[0].key}`",),
                help="a pool that wants one says the same in `sharing`",
                severity=Severity.NOTE,
            )

    def _tell_of_undivided(self, key: str, file: ConfigFile, shared: Iterable[_Shared]) -> None:
        """Resources that a file divides and that none of the pools that read it is divided by."""
        method = self.configurations[key].method
        readers = [part for part in shared if (part.key or self.operator.default_key) == key]
        used = {resource for part in readers for resource in self._divided(part)}
        left = [resource for resource in (method.replicas if method else {}) if resource not in used]
        if left and method is not None:
            self.told.say(
                SHARING_NOT_SAID,
                file.place(*method.route, "resources"),
                f"`{key}`: no pool that reads the file is divided by {joined([f'`{name}`' for name in left])}",
                label="left out",
                notes=("MIG devices are divided by their own names, and GPUs beside them stay whole in a policy",),
                help="nothing, where the nodes have no such device",
                severity=Severity.NOTE,
                drafts=[f"Pool {found.pool}" for found in self.groups if found.claim.first.labels.get(_KEY) == key],
            )

    def _divided(self, shared: _Shared) -> Iterator[str]:
        [(kind, spec)] = shared.spec.items()
        if kind in ("timeSlicing", "mps") or (kind == "mig" and shared.strategy == MigStrategy.SINGLE):
            yield GPU_RESOURCE
        elif kind == "mig" and "timeSlicing" in spec:
            replicas = spec["timeSlicing"]["replicas"]
            profiles = profiles_of(self._division(spec)) if isinstance(replicas, int) else list(replicas)
            yield from (f"nvidia.com/mig-{resource_suffix(profile)}" for profile in profiles)


_KEY: Final = DEVICE_PLUGIN_CONFIG_LABEL
_NONE: Final = Configuration("", None, ())
_WITH_ROLLOUT: Final = 2


def _config_name(part: Part) -> str:
    name = part.labels.get(MIG_CONFIG_LABEL, "")
    return "" if name == ALL_DISABLED else name


def _is_foreign(pool: str, key: str) -> bool:
    """Whether nodes name a file otherwise than gpuplan would call it."""
    return bool(key) and pool_of(key) != pool


def _hangs_on_meaning(pool: str, parts: Sequence[_Shared]) -> bool:
    """Whether the nodes that a rollout moved have a key with a hash, since it is said what the pool's own means."""
    keys = [part.key for part in parts]
    return len(keys) > 1 and keys[0] == pool and keys[1] not in (pool, f"{pool}{ROLLOUT_SUFFIX}")


def _counted(found: Group) -> int:
    stated = max((part.gpus_per_node for part in found.claim.parts), default=0)
    return stated or max((machine.counted for machine in found.machines), default=0)


def _instances(gpu: Gpu, machine: Machine) -> dict[str, int]:
    """The MIG devices that a node publishes, by profile."""
    by_suffix = {f"nvidia.com/mig-{profile.resource_suffix}": profile.name for profile in gpu.profiles}
    return {by_suffix[name]: number for name, number in machine.published.items() if name in by_suffix}


def _old_names(gpu: Gpu, machine: Machine) -> frozenset[str]:
    """Names of another driver by which a node publishes MIG devices."""
    return frozenset(
        name for name in gpu.legacy_names if f"nvidia.com/mig-{resource_suffix(name)}" in machine.published
    )


def _expected_instances(at: Origin, gpu: Gpu, division: Spec, gpus: int, strategy: str) -> dict[str, int]:
    layout = layout_of(at, "", gpu, division)
    found: Counter[str] = Counter()
    for index in range(gpus):
        entry = entry_of(layout, index)
        if entry is None or not entry.mig_enabled:
            found[GPU_RESOURCE] += 1
            continue
        for name, number in entry.instances.items():
            own = GPU_RESOURCE if strategy == MigStrategy.SINGLE else f"nvidia.com/mig-{resource_suffix(name)}"
            found[own] += number
    return dict(found)


def _more_labels(part: Part) -> dict[str, str]:
    """What a pool gives its nodes beside what gpuplan gives them."""
    return {label: value for label, value in sorted(part.labels.items()) if label not in _OWN_LABELS}


def _taint(taint: Taint) -> dict[str, str]:
    key, effect, value = taint
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def _spelt(resources: Mapping[str, int]) -> str:
    return ", ".join(f"{number}x `{name}`" for name, number in sorted(resources.items())) or "nothing"


def _retained_nodes(kept: Kept) -> Draft:
    part = kept.part
    pool = part.labels.get(POOL_LABEL, "")
    nodes: Spec = (
        {"pool": pool, "namePattern": part.pattern} if part.pattern else {"pool": pool, "names": list(part.names)}
    )
    if part.except_names:
        nodes["exceptNames"] = list(part.except_names)
    nodes["labels"] = dict(part.labels)
    until = f"`kubectl get nodes -l {POOL_LABEL}={pool} -o name` prints none of these nodes."
    return Draft("Retained", kept.name, {"nodes": nodes, "until": until}, (part.source,))
