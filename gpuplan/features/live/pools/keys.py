"""The device plugin's files by key: which keys pools keep, and what becomes of files that none reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator import device_plugin
from gpuplan.compiler.base.diagnostics import Severity
from gpuplan.compiler.base.wording import count, joined
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, mig_resource
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL
from gpuplan.compiler.planning.plugin_configs import pool_of
from gpuplan.compiler.planning.pools import ROLLOUT_SUFFIX
from gpuplan.compiler.policy.models import MigStrategy
from gpuplan.features.live.draft import Draft
from gpuplan.features.live.pools.divisions import policy_name, profiles_of
from gpuplan.features.live.pools.files import ConfigFile
from gpuplan.features.live.pools.grouping import Group
from gpuplan.features.live.pools.sharing import Shared, Sharing
from gpuplan.features.live.rules import SHARING_NOT_SAID


class Keys:
    """The keys that nodes name, of pools that are ``shared`` so."""

    def __init__(self, sharing: Sharing, shared: Mapping[str, tuple[Shared, ...]]) -> None:
        self.sharing, self.shared = sharing, shared
        self.groups, self.files, self.told = sharing.groups, sharing.files, sharing.told
        self._meanings = self._keepers()

    def _keepers(self) -> Mapping[str, object]:
        """By key that is not gpuplan's, what it stands for: what most nodes that name it do with it."""
        sizes: dict[str, Counter[object]] = {}
        for found in self.groups:
            first = self.shared[found.pool][0]
            if _is_foreign(found.pool, first.key):
                number = len(found.machines) or len(found.claim.first.names)
                sizes.setdefault(first.key, Counter())[_content(first)] += number
        return {key: found.most_common(1)[0][0] for key, found in sizes.items()}

    def kept(self, found: Group) -> dict[str, Any]:
        """The name that a pool's file keeps, where nodes know it by another one than gpuplan would give it."""
        shared = self.shared[found.pool][0]
        if not _is_foreign(found.pool, shared.key):
            return self._left_key(found.pool, shared.key)
        if self._meanings.get(shared.key) == _content(shared):
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

    def _left_key(self, pool: str, key: str) -> dict[str, Any]:
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

    def retained(self) -> Iterator[Draft]:
        """Files that gpuplan wrote and no pool has now: nodes may still name them."""
        used = {part.key for parts in self.shared.values() for part in parts}
        used -= {pool for pool, parts in self.shared.items() if _hangs_on_meaning(pool, parts)}
        for key, file in sorted(self.files.items()):
            if key in used or not file.owner.startswith(device_plugin.CONFIG_MAP):
                continue
            pool = pool_of(key)
            until = f"`kubectl get nodes -l {DEVICE_PLUGIN_CONFIG_LABEL}={key} -o name` prints nothing."
            if key == pool and pool in self.shared:
                until = (
                    f"`kubectl get nodes -l {DEVICE_PLUGIN_CONFIG_LABEL}={key} -o name` prints no node of this pool."
                )
            spec = {"devicePluginConfig": {"key": key, "config": dict(file.body)}, "until": until}
            yield Draft("Retained", f"plugin-{policy_name(key)}", spec, (file.source,))

    def tell(self) -> None:
        """What is lost of files that nodes name, and how many others there are."""
        pools: dict[str, list[str]] = {}
        for pool, parts in self.shared.items():
            for part in parts:
                pools.setdefault(self.sharing.read_by(part), []).append(f"Pool {pool}")
        unused: list[ConfigFile] = []
        for key, file in sorted(self.files.items()):
            if key in pools:
                for loss in self.sharing.configurations[key].losses:
                    self.told.say(
                        SHARING_NOT_SAID,
                        file.place(*loss.route),
                        f"`{key}`: {loss.message}",
                        label="never had an effect" if loss.is_inert else "not said in a policy",
                        help=loss.instead,
                        drafts=pools[key],
                    )
                self._tell_of_undivided(key, file, [part for parts in self.shared.values() for part in parts])
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

    def _tell_of_undivided(self, key: str, file: ConfigFile, shared: Sequence[Shared]) -> None:
        """Resources that a file divides and that none of the pools that read it is divided by."""
        method = self.sharing.configurations[key].method
        readers = [part for part in shared if (self.sharing.read_by(part)) == key]
        used = {resource for part in readers for resource in _divided(part)}
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
                drafts=[
                    f"Pool {found.pool}"
                    for found in self.groups
                    if found.claim.first.labels.get(DEVICE_PLUGIN_CONFIG_LABEL) == key
                ],
            )


def _content(shared: Shared) -> object:
    """What decides the file that gpuplan writes for a pool."""
    if shared.kind == "mig":
        sliced = shared.spec["mig"].get("timeSlicing")
        return repr((shared.strategy, sliced, sorted(profiles_of(shared.division)) if sliced else ()))
    return repr(shared.spec) if shared.kind in _DIVIDED else ""


_DIVIDED: Final = ("timeSlicing", "mps")


def _divided(shared: Shared) -> Iterator[str]:
    """The resources that a pool has divided, by the names that they have before they are renamed."""
    sliced = shared.spec["mig"].get("timeSlicing") if shared.kind == "mig" else None
    if shared.kind in _DIVIDED or (sliced and shared.strategy == MigStrategy.SINGLE):
        yield GPU_RESOURCE
    elif sliced:
        replicas = sliced["replicas"]
        profiles = profiles_of(shared.division) if isinstance(replicas, int) else list(replicas)
        yield from (mig_resource(profile) for profile in profiles)


def _is_foreign(pool: str, key: str) -> bool:
    """Whether nodes name a file otherwise than gpuplan would call it."""
    return bool(key) and pool_of(key) != pool


def _hangs_on_meaning(pool: str, parts: Sequence[Shared]) -> bool:
    """Whether the nodes that a rollout moved have a key with a hash, since it is said what the pool's own means."""
    keys = [part.key for part in parts]
    return len(keys) > 1 and keys[0] == pool and keys[1] not in (pool, f"{pool}{ROLLOUT_SUFFIX}")
