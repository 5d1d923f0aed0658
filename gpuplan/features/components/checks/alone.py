"""Checks on files that are judged without a platform (GPU802)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.compiler.base.diagnostics import Family, Finding, Path, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.catalog import load
from gpuplan.compiler.catalog.names import resource_suffix
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.hand_files import HandFiles

_MIG_DEVICE = regex(
    r"(?:requests\.|limits\.)?nvidia\.com/mig-(?P<profile>[0-9]+g\.[0-9]+gb[-._a-zA-Z0-9]*?)(?:\.shared)?"
)


@check("GPU802", "resource-of-no-gpu", Severity.WARNING, family=Family.OBJECTS)
def resource_of_no_gpu(files: HandFiles) -> Iterator[Finding]:
    """A file names the resource of a MIG device that no GPU can have.

    ## Why
    The device plugin publishes `nvidia.com/mig-<profile>` for the profiles of the node's own boards. A pod that asks
    for another one waits for ever, and a quota or a queue on it counts nothing. With `--gpu` it is an error: these
    boards have no such profile.

    ## Instead
    Name a profile of the board: `gpuplan catalog` with a model's name lists them.

    ## Exceptions
    A board that is newer than this gpuplan may have it.
    """
    if files.plan is not None:
        return
    models = [gpu for gpu in files.gpus or load().all() if gpu.profiles]
    # The device plugin names profiles as they are called now, and as earlier drivers call them.
    known = {profile.resource_suffix for gpu in models for profile in gpu.profiles}
    known |= {resource_suffix(name) for gpu in models for name in gpu.legacy_names}
    which = joined([gpu.id for gpu in files.gpus], "or") if files.gpus else "GPU of the catalog"
    for found in files.objects:
        for route, is_key, name in _devices(found.body):
            if name not in known:
                at, slices = found.place(*route), f"{name.partition('g.')[0]}g."
                profiles = (profile for gpu in models for profile in gpu.profiles)
                near = dict.fromkeys(item.resource_suffix for item in profiles if item.name.startswith(slices))
                yield Finding(
                    at.key if is_key else at,
                    f"{found.title} names MIG devices `{name}`, which no {which} has",
                    label="no such profile",
                    notes=("a pod that asks for it waits for ever, and a quota on it counts nothing",),
                    help=f"write {listing([*near], 4, 'or')}"
                    if near
                    else "`gpuplan catalog` with a model's name lists its profiles",
                    severity=Severity.ERROR if files.gpus else None,
                )


def _devices(body: object) -> Iterator[tuple[Path, bool, str]]:
    """Where resources of MIG devices are named, whether as a key, and the profile."""
    left: list[tuple[Path, object]] = [((), body)]
    seen: set[int] = set()
    while left:
        route, part = left.pop()
        if isinstance(part, str):
            if found := _MIG_DEVICE.fullmatch(part):
                yield route, False, found["profile"]
        elif isinstance(part, Mapping | list) and id(part) not in seen:
            seen.add(id(part))
            items = [*(part.items() if isinstance(part, Mapping) else enumerate(part))]
            for key, _ in items:
                if isinstance(key, str) and (found := _MIG_DEVICE.fullmatch(key)):
                    yield (*route, key), True, found["profile"]
            left += reversed([((*route, key), value) for key, value in items if isinstance(key, str | int)])
