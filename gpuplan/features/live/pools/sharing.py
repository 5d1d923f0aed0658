"""How the nodes of pools are shared: by the layout and by the file of the device plugin that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.discovered import MIG_STRATEGY_LABEL, is_of_mig_devices, mig_resource
from gpuplan.compiler.planning.dra import DRA_PLUGIN_LABEL
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL, MIG_MANAGER_LABEL
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.policy.models import ClusterMigStrategy, MigStrategy
from gpuplan.features.live.pools.claims import Part
from gpuplan.features.live.pools.divisions import Entry, profiles_of
from gpuplan.features.live.pools.files import ConfigFile
from gpuplan.features.live.pools.grouping import Group
from gpuplan.features.live.pools.layouts import Layouts, Use
from gpuplan.features.live.pools.machines import Machine
from gpuplan.features.live.pools.models import Board
from gpuplan.features.live.pools.operator import Operator
from gpuplan.features.live.pools.plugin import Configuration, read_configuration
from gpuplan.features.live.pools.surroundings import Surroundings
from gpuplan.features.live.pools.telling import Told
from gpuplan.features.live.pools.unlabelled import read_unlabelled
from gpuplan.features.live.rules import LAYOUT_NOT_SAID, SHARING_NOT_SAID

Spec = dict[str, Any]


class Shared(Value):
    """How nodes are shared, as a policy has it; ``key`` is the device plugin's file that their label names.

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
        told: Told,
    ) -> None:
        self.operator, self.surroundings, self.told = operator, surroundings, told
        self.groups, self.boards = groups, boards
        known = {strategy.value for strategy in ClusterMigStrategy}
        overriding = ClusterMigStrategy(operator.strategy if operator.strategy in known else "perPool")
        self.files: dict[str, ConfigFile] = {file.key: file for file in reversed(files)}
        self.configurations = {key: read_configuration(file, overriding) for key, file in self.files.items()}
        self._unlabelled = {
            found.pool: read_unlabelled(found, board.gpu, entries, told)
            for found in groups
            if (board := boards[found.pool]) and board.gpu
        }
        uses = tuple(self._uses())
        self._by_entry = {(use.pool, use.entry): use for use in uses}
        self.layouts = Layouts(entries, uses, told)

    def of_pool(self, found: Group) -> tuple[Shared, ...]:
        """How its nodes are shared; of a pool that a rollout divides, those that are left and those moved."""
        board = self.boards[found.pool]
        gpu = board.gpu if board else None
        return tuple(self._of_part(found, part, gpu) for part in found.claim.parts)

    def read_by(self, shared: Shared) -> str:
        """The key of the file that the nodes read: that of all nodes, where no label of theirs names one."""
        return shared.key or self.operator.default_key

    def _uses(self) -> Iterator[Use]:
        for found in self.groups:
            board = self.boards[found.pool]
            if board is None or board.gpu is None:
                continue
            for part in found.claim.parts:
                if name := self._entry_of(found, part):
                    named = part.labels.get(MIG_CONFIG_LABEL)
                    own = [machine for machine in found.machines if machine.labels.get(MIG_CONFIG_LABEL) == named]
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

    def _entry_of(self, found: Group, part: Part) -> str:
        """The entry that nodes name, or that has what they publish."""
        unlabelled = self._unlabelled.get(found.pool)
        return _config_name(part) or (unlabelled.entry if unlabelled else "")

    def _of_part(self, found: Group, part: Part, gpu: Gpu | None) -> Shared:
        named = part.labels.get(DEVICE_PLUGIN_CONFIG_LABEL, "")
        key = named or self.operator.default_key
        config = self.configurations.get(key, _NONE)
        if named and named not in self.files and self.files:
            self._tell_of_missing_file(found, part, named)
        is_on_demand = part.labels.get(MIG_MANAGER_LABEL) == "false" and part.labels.get(DRA_PLUGIN_LABEL) == "true"
        if is_on_demand and gpu and (profiles := self.surroundings.claimed_profiles(gpu)):
            return Shared({"dynamicMig": {"profiles": profiles}}, named)
        name = self._entry_of(found, part)
        if name and gpu is None and self.boards[found.pool] is not None:
            self._tell_of_unlisted(found, part, name)
        use = self._by_entry.get((found.pool, name))
        unlabelled = self._unlabelled.get(found.pool)
        mig = self.layouts.mig_of(use) if use else (unlabelled and unlabelled.spec) or None
        if mig is not None and gpu is not None:
            return self._mig(found, mig, config, named)
        if whole := config.of_gpus():
            return Shared(whole, named)
        if self.surroundings.is_fraction(found.pool):
            return Shared({"fraction": {}}, named)
        return Shared({"exclusive": {}}, named)

    def _mig(self, found: Group, mig: Spec, config: Configuration, key: str) -> Shared:
        strategy = self._strategy(found, config)
        division = self.layouts.spec_of(mig["layout"]) if "layout" in mig else mig
        sliced = config.of_mig(profiles_of(division), strategy)
        told = {} if strategy == MigStrategy.MIXED else {"strategy": strategy}
        return Shared({"mig": {**mig, **told, **sliced}}, key, strategy, division)

    def _strategy(self, found: Group, config: Configuration) -> str:
        """The file's, unless the cluster has one for all nodes; else GPU Feature Discovery shows it."""
        known = {strategy.value for strategy in MigStrategy}
        stated = self.operator.strategy if self.operator.strategy in known else config.strategy
        if stated in known:
            return stated
        labels = {machine.labels.get(MIG_STRATEGY_LABEL, "") for machine in found.machines}
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


_NONE: Final = Configuration("", None, ())


def _config_name(part: Part) -> str:
    name = part.labels.get(MIG_CONFIG_LABEL, "")
    return "" if name == ALL_DISABLED else name


def _counted(found: Group) -> int:
    stated = max((part.gpus_per_node for part in found.claim.parts), default=0)
    return stated or max((machine.counted for machine in found.machines), default=0)


def _instances(gpu: Gpu, machine: Machine) -> dict[str, int]:
    """The MIG devices that a node publishes, by profile."""
    by_suffix = {mig_resource(profile.name): profile.name for profile in gpu.profiles}
    return {by_suffix[name]: number for name, number in machine.published.items() if name in by_suffix}


def _old_names(gpu: Gpu, machine: Machine) -> frozenset[str]:
    """Names of another driver by which a node publishes MIG devices."""
    return frozenset(name for name in gpu.legacy_names if mig_resource(name) in machine.published)
