"""The sharing of the nodes of pools, and the file of the device plugin that each pool keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator import device_plugin
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import count, joined
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.checks.formats.faults import plugin_errors
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_STRATEGY_LABEL, is_of_mig_devices, mig_resource
from gpuplan.compiler.planning.dra import DRA_PLUGIN_LABEL
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, MIG_MANAGER_LABEL
from gpuplan.compiler.planning.plugin_configs import is_one_file, meaning_of, pool_of
from gpuplan.compiler.planning.pools import ALL_DISABLED, ROLLOUT_SUFFIX
from gpuplan.compiler.policy.models import ClusterMigStrategy, MigStrategy
from gpuplan.features.live.clusters.operators import Operator
from gpuplan.features.live.drafts import Draft, policy_name
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.pools.files import ConfigFile, Configuration, read_configuration
from gpuplan.features.live.pools.grouping import Board, Group
from gpuplan.features.live.pools.layouts import Entry, Layouts, Use, profiles_of, read_published, read_unlabelled
from gpuplan.features.live.pools.nodes import Part
from gpuplan.features.live.pools.surroundings import Surroundings

Spec = dict[str, Any]


class Shared(Value):
    """The sharing of nodes, as a policy has it; ``key`` is the device plugin's file that they read.

    ``division`` and ``strategy`` are of a pool with MIG.
    """

    spec: Spec
    key: str = ""
    strategy: str = ""
    division: Spec = {}  # noqa: RUF012 - never changed

    @property
    def kind(self) -> str:
        return next(iter(self.spec))


class Sharing:
    """Finds how pools are shared. ``files`` are the device plugin's by key, and ``configurations`` what they say."""

    def __init__(
        self,
        operator: Operator,
        files: Sequence[ConfigFile],
        entries: Mapping[str, Entry],
        groups: Sequence[Group],
        boards: Mapping[str, Board | None],
        surroundings: Surroundings,
        reports: Reports,
    ) -> None:
        self.operator, self.surroundings, self.reports = operator, surroundings, reports
        self.groups, self.boards = tuple(groups), boards
        known = {strategy.value for strategy in ClusterMigStrategy}
        self.overriding = ClusterMigStrategy(operator.strategy if operator.strategy in known else "perPool")
        self.files: dict[str, ConfigFile] = {file.key: file for file in reversed(files)}
        self.configurations = {key: read_configuration(file, self.overriding) for key, file in self.files.items()}
        self._unlabelled = {
            found.pool: read_unlabelled(found, board.gpu, entries, reports)
            for found in groups
            if (board := boards[found.pool]) and board.gpu
        }
        uses = tuple(self._uses())
        self._by_entry = {(use.pool, use.entry): use for use in uses}
        self.layouts = Layouts(entries, uses, reports)

    def leave_out(self) -> None:
        """Take groups away whose partitions nobody knows: a pool of whole GPUs would dissolve them.

        Nodes with an entry that no file has may be partitioned even if they publish nothing, as while they are changed.
        """
        self.groups = tuple(found for found in self.groups if not self._hides_partitions(found))

    def _hides_partitions(self, group: Group) -> bool:
        board, name = self.boards[group.pool], self._entry_of(group, group.claim.first)
        if group.is_claimed or board is None:
            return False
        if board.gpu is None:
            if name:
                self._tell_unknown(group, group.claim.first, board, name)
            return bool(name)
        mig, division = self._mig(group, group.claim.first)
        if mig is not None:
            strategy = self._strategy(group, self.configurations.get(self._key(group.claim.first), _NONE))
            is_whole = any(part.get("enabled") is False for part in division.get("devices", ()))
            is_unequal = strategy == MigStrategy.SINGLE and (is_whole or len(profiles_of(division)) > 1)
            if is_unequal:
                self.reports.say("unequal-under-single", group.claim.first.at, found=group)
            return is_unequal
        use = self._by_entry.get((group.pool, name))
        has_some = any(found.has_mig_devices or is_of_mig_devices(found.product) for found in group.machines)
        return has_some or (use is not None and not self.layouts.knows(use))

    def _mig(self, group: Group, part: Part) -> tuple[Spec | None, Spec]:
        """Return what a pool with MIG says of its division, None without one, and the division."""
        use = self._by_entry.get((group.pool, self._entry_of(group, part)))
        unlabelled = self._unlabelled.get(group.pool)
        mig = self.layouts.mig_of(use) if use else (unlabelled and unlabelled.spec) or None
        division = self.layouts.spec_of(mig["layout"]) if mig and "layout" in mig else mig
        return mig, division or {}

    def _key(self, part: Part) -> str:
        """Return the key of the device plugin's file that nodes read: the default one if no label names one."""
        default = self.operator.default_key
        is_there = default in self.files or not self.files
        return part.labels.get(DEVICE_PLUGIN_CONFIG_LABEL, "") or (default if is_there else "")

    def of_pool(self, group: Group) -> tuple[Shared, ...]:
        """Return the sharing of a pool's nodes, and of those that a rollout moved."""
        board = self.boards[group.pool]
        gpu = board.gpu if board else None
        return tuple(self._of_part(group, part, gpu) for part in group.claim.parts)

    def _uses(self) -> Iterator[Use]:
        for found in self.groups:
            board = self.boards[found.pool]
            if board is None or board.gpu is None:
                continue
            gpu = board.gpu
            by_suffix = {mig_resource(profile.name): profile.name for profile in gpu.profiles}
            stated = max((part.gpus_per_node for part in found.claim.parts), default=0)
            for part in found.claim.parts:
                if name := self._entry_of(found, part):
                    named = part.labels.get(MIG_CONFIG_LABEL)
                    own = (machine for machine in found.machines if machine.labels.get(MIG_CONFIG_LABEL) == named)
                    published = next((machine.published for machine in own), {})
                    yield Use(
                        pool=found.pool,
                        gpu=gpu,
                        entry=name,
                        nodes=len(part.names) or part.count or len(found.machines),
                        gpus_per_node=stated or max((machine.counted for machine in found.machines), default=0),
                        published={by_suffix[key]: n for key, n in published.items() if key in by_suffix},
                        old_names=frozenset(old for old in gpu.legacy_names if mig_resource(old) in published),
                        seen=read_published(found, gpu),
                        at=part.at / "labels" if found.is_claimed else part.at / "metadata" / "labels",
                    )

    def _entry_of(self, group: Group, part: Part) -> str:
        """Return the entry that nodes name, or that has what they publish."""
        unlabelled = self._unlabelled.get(group.pool)
        named = part.labels.get(MIG_CONFIG_LABEL, "")
        return named if named not in ("", ALL_DISABLED) else unlabelled.entry if unlabelled else ""

    def _of_part(self, group: Group, part: Part, gpu: Gpu | None) -> Shared:
        named = part.labels.get(DEVICE_PLUGIN_CONFIG_LABEL, "")
        key = self._key(part)
        config = self.configurations.get(key, _NONE)
        if named and named not in self.files and self.files:
            self.reports.say("no-such-file", part.at, f"Pool {group.pool}", found=group, key=named)
        is_on_demand = part.labels.get(MIG_MANAGER_LABEL) == "false" and part.labels.get(DRA_PLUGIN_LABEL) == "true"
        if is_on_demand and gpu and (profiles := self.surroundings.claimed_profiles(gpu)):
            return Shared({"dynamicMig": {"profiles": profiles}}, key)
        name = self._entry_of(group, part)
        if name and gpu is None and (board := self.boards[group.pool]) is not None:
            self._tell_unknown(group, part, board, name)
        mig, division = self._mig(group, part)
        if mig is not None and gpu is not None:
            strategy = self._strategy(group, config)
            sliced = config.of_mig(profiles_of(division), strategy)
            told = {} if strategy == MigStrategy.MIXED else {"strategy": strategy}
            return Shared({"mig": {**mig, **told, **sliced}}, key, strategy, division)
        if whole := config.of_gpus():
            return Shared(whole, key)
        if self.surroundings.is_fraction(group.pool):
            return Shared({"fraction": {}}, key)
        shown = group.machines[0].shared if group.machines and config is _NONE else {}
        return Shared(shown or {"exclusive": {}}, key)

    def _tell_unknown(self, group: Group, part: Part, board: Board, name: str) -> None:
        whose = f"Pool {group.pool}", f"Gpu {board.name}"
        self.reports.say("entry-on-unknown-model", part.at, *whose, called=board.name, found=group, name=name)

    def _strategy(self, group: Group, config: Configuration) -> str:
        """Return the file's, unless the cluster has one for all nodes; else GPU Feature Discovery shows it."""
        known = {strategy.value for strategy in MigStrategy}
        stated = self.operator.strategy if self.operator.strategy in known else config.strategy
        if stated in known:
            return stated
        labels = {machine.labels.get(MIG_STRATEGY_LABEL, "") for machine in group.machines}
        if labels & known:
            return min(labels & known)
        is_single = any(is_of_mig_devices(machine.product) for machine in group.machines)
        return MigStrategy.SINGLE.value if is_single else MigStrategy.MIXED.value


_NONE: Final = Configuration("", None, ())


class Keys:
    """The keys that nodes read, of pools that are ``shared`` so.

    A key keeps the meanings that one file has together, those of most nodes first.
    """

    def __init__(self, sharing: Sharing, shared: Mapping[str, tuple[Shared, ...]]) -> None:
        self.sharing, self.shared = sharing, shared
        self.groups, self.files, self.reports = sharing.groups, sharing.files, sharing.reports
        sizes: Counter[str] = Counter()
        for found in self.groups:
            sizes[found.pool] += len(found.machines) or len(found.claim.first.names)
        self._meanings: dict[str, dict[str, object]] = {}
        self._kept: dict[str, str] = {}
        ranked = sorted(sizes.most_common(), key=lambda pair: not shared[pair[0]][0].key)
        for pool, _ in ranked:
            first = shared[pool][0]
            meaning = self._meaning(first)
            is_foreign = self._is_foreign(pool, first.key)
            for key in (first.key,) if first.key else self._files_that_say(meaning):
                if (is_foreign or not first.key) and is_one_file(self._meanings.get(key, {}), meaning):
                    self._meanings.setdefault(key, {}).update(meaning)
                    self._kept[pool] = key
                    break

    def _files_that_say(self, meaning: Mapping[str, object]) -> Iterator[str]:
        """Yield the keys of files that share nodes as they are shared without a label.

        So there is no moment at which the label of a node names a file that its ConfigMap lacks.
        """
        for key, file in sorted(self.files.items()):
            said = meaning_of(self.sharing.configurations[key].body, ())
            if self._has_labels_in_use and file.owner and is_one_file(said, meaning):
                yield key

    @property
    def _has_labels_in_use(self) -> bool:
        """Whether config-manager runs on nodes: it does where the operator is told of a ConfigMap of somebody else."""
        named = self.sharing.operator.text("devicePlugin", "config", "name")
        return bool(named) and not named.startswith(device_plugin.CONFIG_MAP)

    def kept(self, group: Group) -> dict[str, Any]:
        """Return the name that a pool's file keeps, where nodes know it by another one than gpuplan would give it."""
        shared = self.shared[group.pool][0]
        if group.pool in self._kept:
            return {"devicePluginConfig": self._kept[group.pool]}
        if self._is_foreign(group.pool, shared.key):
            file = self.files.get(shared.key)
            at = file.at if file else group.claim.first.at
            self.reports.say("one-file-for-several-ways", at, f"Pool {group.pool}", found=group, shared=shared)
        return {}

    def _meaning(self, shared: Shared) -> dict[str, object]:
        """Return the meaning of the file that gpuplan writes for a pool."""
        is_mig = shared.kind == "mig"
        is_mixed = is_mig and shared.strategy == MigStrategy.MIXED
        resources = [mig_resource(name) for name in profiles_of(shared.division)] if is_mixed else [GPU_RESOURCE]
        if any(part.get("enabled") is False for part in shared.division.get("devices", ())):
            resources.append(GPU_RESOURCE)
        config: dict[str, Any] = {}
        if is_mig and self.sharing.overriding is ClusterMigStrategy.PER_POOL:
            config["flags"] = {"migStrategy": shared.strategy}
        method = shared.spec["mig"].get("timeSlicing") if is_mig else shared.spec[shared.kind]
        if divided := [*_divided(shared)]:
            shares = method["replicas"]
            each = {mig_resource(name): number for name, number in shares.items()} if isinstance(shares, dict) else {}
            parts = [{"name": name, "replicas": each.get(name, shares)} for name in divided]
            way = {key: value for key, value in method.items() if key != "replicas"}
            config["sharing"] = {"timeSlicing" if is_mig else shared.kind: {**way, "resources": parts}}
        return meaning_of(config, resources)

    def _is_foreign(self, pool: str, key: str) -> bool:
        """Whether nodes name a file otherwise than gpuplan calls it.

        gpuplan adds a hash if the ConfigMap keeps its name, or if the pool's own name stands for something else.
        """
        is_hashed = pool in self.files or any(file.owner == device_plugin.CONFIG_MAP for file in self.files.values())
        return bool(key) and (pool_of(key) if is_hashed else key) != pool

    def retained(self) -> Iterator[Draft]:
        """Yield the default file if no pool keeps it, and files that gpuplan wrote and no pool has now.

        Nodes without a label read the first, and nodes may still name the others.
        """
        default = self.sharing.operator.default_key
        body = self.sharing.configurations[default].body if default in self.files else {}
        is_read = bool(body) and not any(plugin_errors(body, self.sharing.overriding))
        if is_read and default not in (*self._kept.values(), *self.shared):
            until = "All nodes with GPUs are in pools, and the Cluster has no `defaultDevicePluginConfig`."
            spec = {"key": default, "config": body}
            source = self.files[default].source
            yield Draft(
                "Retained", f"plugin-{policy_name(default)}", {"devicePluginConfig": spec, "until": until}, (source,)
            )
        used = {part.key for parts in self.shared.values() for part in parts}
        moved = {pool: parts[1].key for pool, parts in self.shared.items() if len(parts) > 1}
        used -= {pool for pool, key in moved.items() if key not in (pool, f"{pool}{ROLLOUT_SUFFIX}")}  # told by a hash
        for key, file in sorted(self.files.items()):
            if key in used or key == default or not file.owner.startswith(device_plugin.CONFIG_MAP):
                continue
            until = f"`kubectl get nodes -l {DEVICE_PLUGIN_CONFIG_LABEL}={key} -o name` prints nothing."
            spec = {"devicePluginConfig": {"key": key, "config": dict(file.body)}, "until": until}
            yield Draft("Retained", f"plugin-{policy_name(key)}", spec, (file.source,))

    def tell(self) -> None:
        """Report what is lost of files that nodes name, and how many files no node names."""
        parts = ((pool, part) for pool, shared in self.shared.items() for part in shared)
        readers = grouped((part.key, (f"Pool {pool}", part)) for pool, part in parts)
        unused: list[ConfigFile] = []
        for key, file in sorted(self.files.items()):
            if key in readers:
                pools = [pool for pool, _ in readers[key]]
                for loss in self.sharing.configurations[key].losses:
                    label = "never had an effect" if loss.is_inert else "not said in a policy"
                    at = file.place(*loss.route)
                    self.reports.say("plugin-setting-not-said", at, *pools, key=key, loss=loss, label=label)
                method = self.sharing.configurations[key].method
                used = {resource for _, part in readers[key] for resource in _divided(part)}
                left = [resource for resource in (method.replicas if method else {}) if resource not in used]
                if left and method is not None:
                    named = [
                        f"Pool {found.pool}"
                        for found in self.groups
                        if found.claim.first.labels.get(DEVICE_PLUGIN_CONFIG_LABEL) == key
                    ]
                    at, resources = file.place(*method.route, "resources"), joined([f"`{name}`" for name in left])
                    self.reports.say("undivided-resources", at, *named, key=key, resources=resources)
            elif not file.owner.startswith(device_plugin.CONFIG_MAP):
                unused.append(file)
        stays = {*self._kept, *(pool for pool, shared in self.shared.items() if shared[0].key == pool)}
        new = [found.pool for found in self.groups if not found.is_claimed and found.pool not in stays]
        if new and self._has_labels_in_use:
            at, listed = self.sharing.operator.settings[0].at, joined([f"`{pool}`" for pool in new])
            self.reports.say("file-after-label", at, *(f"Pool {pool}" for pool in new), pools=listed, first=new[0])
        if unused:
            files = count(len(unused), "file")
            self.reports.say("unused-plugin-files", unused[0].at, files=files, first=unused[0])


_DIVIDED: Final = ("timeSlicing", "mps")


def _divided(shared: Shared) -> Iterator[str]:
    """Yield the resources that a pool has divided, by the names that they have before they are renamed."""
    sliced = shared.spec["mig"].get("timeSlicing") if shared.kind == "mig" else None
    if shared.kind in _DIVIDED or (sliced and shared.strategy == MigStrategy.SINGLE):
        yield GPU_RESOURCE
    elif sliced:
        replicas = sliced["replicas"]
        profiles = profiles_of(shared.division) if isinstance(replicas, int) else list(replicas)
        yield from (mig_resource(profile) for profile in profiles)
