"""The device plugin's files, and what each of them makes of a pool's devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog import resource_suffix
from gpuplan.compiler.checks.formats import find_problems
from gpuplan.compiler.checks.formats.faults import plugin_errors, unmatched_names
from gpuplan.compiler.planning.plan import GPU_RESOURCE
from gpuplan.compiler.policy.models import ClusterMigStrategy, MigStrategy
from gpuplan.features.live.pools.files import ConfigFile

_METHODS: Final = ("mps", "timeSlicing")
"""MPS wins where both are there (`api/config/v1` of NVIDIA/k8s-device-plugin)."""


class Loss(NamedTuple):
    """What of a file no policy says, where, and what holds instead; ``is_inert`` where it never had an effect."""

    route: Path
    message: str
    instead: str
    is_inert: bool = False


class Method(Value):
    """How a file divides devices: ``kind`` as a policy calls it, and into how many shares by resource."""

    kind: str
    renames: bool
    fails: bool
    replicas: Mapping[str, int]
    route: Path

    def fields(self) -> dict[str, Any]:
        """What a policy says beside the shares, where it is not as usual."""
        found: dict[str, Any] = {} if self.renames else {"rename": False}
        if self.kind == "timeSlicing" and not self.fails:
            found["failRequestsGreaterThanOne"] = False
        return found


class Configuration(Value):
    """A file: the strategy that it names, how it divides devices, and what of it no policy says."""

    strategy: str
    method: Method | None
    losses: tuple[Loss, ...]

    def of_mig(self, profiles: Sequence[str], strategy: str) -> dict[str, Any]:
        """The `timeSlicing` of a pool with MIG; MPS shares no MIG devices."""
        method = self.method
        if method is None or method.kind == "mps":
            return {}
        if strategy == MigStrategy.SINGLE:
            shares = method.replicas.get(GPU_RESOURCE)
            return {"timeSlicing": {"replicas": shares, **method.fields()}} if shares else {}
        names = {f"nvidia.com/mig-{resource_suffix(profile)}": profile for profile in profiles}
        by_profile = {names[name]: count for name, count in method.replicas.items() if name in names}
        if not by_profile:
            return {}
        same = set(by_profile.values())
        shares_of: object = by_profile
        if len(same) == 1 and len(by_profile) == len(names):
            [shares_of] = same
        return {"timeSlicing": {"replicas": shares_of, **method.fields()}}

    def of_gpus(self) -> dict[str, Any]:
        """The sharing of a pool of whole GPUs; nothing where they are not divided."""
        method = self.method
        shares = method.replicas.get(GPU_RESOURCE) if method else None
        return {method.kind: {"replicas": shares, **method.fields()}} if method and shares else {}


def read_configuration(file: ConfigFile, overriding: ClusterMigStrategy) -> Configuration:
    """``overriding`` is the strategy that the cluster has for all nodes, if it has one."""
    body = file.body
    method = next(filter(None, (_method(body, kind) for kind in _METHODS)), None)
    return Configuration(text(inside(body, "flags").get("migStrategy")), method, tuple(_losses(body, overriding)))


def _method(body: Mapping[str, object], kind: str) -> Method | None:
    written = inside(body, "sharing").get(kind)
    if not isinstance(written, Mapping):
        return None
    part = mapping(written)
    replicas: dict[str, int] = {}
    for resource in map(mapping, sequence(part.get("resources"))):
        name, count = text(resource.get("name")), resource.get("replicas")
        full = name if "/" in name else f"nvidia.com/{name}"  # `NewResourceName` in api/config/v1/resources.go there
        if name and type(count) is int and count > 1:
            replicas.setdefault(full, count)
    fails = part.get("failRequestsGreaterThanOne")
    return Method(
        kind=kind,
        renames=part.get("renameByDefault") is True,
        fails=fails is True if kind == "timeSlicing" else fails is not False,
        replicas=replicas,
        route=("sharing", kind),
    )


# --- What is lost ------------------------------------------------------------------------------------------------

_SAID: Final = ("version", "flags", "sharing")
_USUAL: Final[Mapping[str, object]] = {
    "failOnInitError": True,
    "nvidiaDriverRoot": "/",
    "plugin": {"passDeviceSpecs": False, "deviceListStrategy": "envvar", "deviceIDStrategy": "uuid"},
}
"""What holds without a file; a variable of its environment comes before both ("Configuring the NVIDIA device plugin
binary" in `README.md` of NVIDIA/k8s-device-plugin at cb6e45ec3577)."""


def _is_usual(value: object, usual: object) -> bool:
    if isinstance(value, Mapping) and isinstance(usual, Mapping):
        return all(key in usual and part == usual[key] for key, part in value.items())
    return usual is not None and value == usual


def _losses(body: Mapping[str, object], overriding: ClusterMigStrategy) -> Iterator[Loss]:
    """What NVIDIA's program refuses or drops is without an effect already; other flags are lost."""
    refused = (*plugin_errors(body, overriding),)
    dropped = (*find_problems("device-plugin-ignored", body), *unmatched_names(body, overriding))
    for problem in {found.route: found for found in (*dropped, *refused)}.values():
        yield Loss(problem.route, problem.message, problem.help, is_inert=True)
    for flag, value in inside(body, "flags").items():
        if flag != "migStrategy" and not _is_usual(value, _USUAL.get(flag)):
            message = f"the flag `{flag}` of the device plugin is not said in a policy"
            yield Loss(("flags", flag), message, "set it for the cluster, in `gpuOperator.values` or `gpuOperator.env`")
    if mapping(body.get("imex")):
        message = "`imex` of the device plugin is not said in a policy"
        yield Loss(("imex",), message, "IMEX channels are handed out by NVIDIA's driver for DRA")
    mps = mapping(inside(body, "sharing").get("mps"))
    if mps.get("failRequestsGreaterThanOne") is False:
        route = ("sharing", "mps", "failRequestsGreaterThanOne")
        yield Loss(route, "containers that ask for several shares of MPS will be refused", "ask for one share")
