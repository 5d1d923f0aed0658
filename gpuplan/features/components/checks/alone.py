"""Checks on files that are judged without a platform (GPU802, GPU896, GPU897)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.base.diagnostics import Family, Finding, Path, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, parts, text
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.catalog import load
from gpuplan.compiler.catalog.names import resource_suffix
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.discovered import PRODUCT_LABEL, bare_product
from gpuplan.compiler.planning.hand_files import DEVICE_PLUGIN, HandFiles
from gpuplan.features.components.checks.asking import HAMI, PLACEHOLDER, asks, quota_specs
from gpuplan.features.components.checks.selectors import may_be_called, selectors_of

_MIG_DEVICE = regex(
    r"(?:requests\.|limits\.)?nvidia\.com/mig-(?P<profile>[0-9]+g\.[0-9]+gb[-._a-zA-Z0-9]*?)(?:\.shared)?"
)


@check("GPU802", "resource-of-no-gpu", Severity.WARNING, family=Family.OBJECTS)
def resource_of_no_gpu(files: HandFiles) -> Iterator[Finding]:
    """A file names the resource of a MIG device that no GPU can have, or one that no plugin publishes.

    ## Why
    The device plugin publishes `nvidia.com/mig-<profile>` for the profiles of the node's own boards. A pod that asks
    for another one waits for ever, and a quota or a queue on it counts nothing. With `--gpu` it is an error: these
    boards have no such profile. Names are spelt as the plugin spells them: `nvidia.com/gpus` is another resource.

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
    named = [(ask.of, ask.at, ask.resource) for ask in asks(files)]
    for spec in quota_specs(files):
        keys = mapping(spec.body.get("hard"))
        named += [(spec.of, spec.of.place(*spec.route, "hard", key).key, key) for key in keys]
    for holder, at, key in named:
        if meant := _meant(key.removeprefix("requests.")):
            yield Finding(
                at,
                f"{holder.title} names `{key}`, which no device plugin publishes",
                label="no such resource",
                notes=("a pod that asks for it waits for ever, and a quota on it counts nothing",),
                help=f"write `{meant}`",
            )


_MISSPELT = regex(
    r"(?i)nvidia\.com/(?:(?P<gpu>gpus?)(?P<shared>[-_.]?shared)?|mig[-_.]?(?P<mig>[0-9]+g)[-_.]?(?P<gb>[0-9]+gb))"
)


def _meant(resource: str) -> str:
    """Return the resource that a misspelt name stands for; empty where it is spelt as it should be, or is another."""
    found = _MISSPELT.fullmatch(resource)
    if found is None:
        return ""
    gpu = "gpu.shared" if found["shared"] else "gpu"
    name = gpu if found["gpu"] else f"mig-{found['mig']}.{found['gb']}".lower()
    return "" if resource == f"nvidia.com/{name}" else f"nvidia.com/{name}"


_OF_LABELS: Final = frozenset(
    ("annotations", "labels", "matchExpressions", "matchLabels", "nodeLabels", "nodeSelector")
)
"""Where keys are labels: GFD's begin as resources do, such as `nvidia.com/mig-1g.10gb.count`."""


def _devices(body: object) -> Iterator[tuple[Path, bool, str]]:
    """Where resources of MIG devices are named, whether as a key, and the profile."""
    for route, part in parts(body):
        if _OF_LABELS.isdisjoint(route):
            if found := _MIG_DEVICE.fullmatch(text(part)):
                yield route, False, found["profile"]
            for key in mapping(part):
                if found := _MIG_DEVICE.fullmatch(key):
                    yield (*route, key), True, found["profile"]


# --- Nodes -------------------------------------------------------------------------------------------------------


@check("GPU896", "product-of-no-board", Severity.WARNING, family=Family.OBJECTS)
def product_of_no_board(files: HandFiles) -> Iterator[Finding]:
    """A workload or a flavor selects nodes by a product that no board is called.

    ## Why
    GPU feature discovery writes the driver's name of the board, with `-` for blanks, into `nvidia.com/gpu.product`
    (`getProductName` in `internal/lm/resource.go` of NVIDIA/k8s-device-plugin v0.19.3): an A100 is
    `NVIDIA-A100-SXM4-80GB`, and never `A100`. With another value pods wait for ever, and a ResourceFlavor has no nodes.
    Endings for shares (`-SHARED`) and for MIG devices of one profile (`-MIG-1g.10gb`) are left alone.

    ## Instead
    Write the label as nodes have it: `gpuplan catalog` with a model's name shows it.

    ## Exceptions
    Nodes that you label yourself may have any value.
    """
    if files.plan is not None:
        return
    boards = [gpu for gpu in load().all() if gpu.products]
    known = {product.label for gpu in boards for product in gpu.products}
    own = {text(mapping(found.metadata.get("labels")).get(PRODUCT_LABEL)) for found in files.of_kind("Node")}
    for found in files.objects:
        terms = [term for several in selectors_of(found) for term in several]
        for asked in (asked for term in terms for asked in term if asked.key == PRODUCT_LABEL):
            bare = [bare_product(value) for value in asked.values]
            likely = [gpu for value in bare for gpu in boards if may_be_called(value, gpu)]
            meant = [item.label for gpu in likely for item in gpu.products]
            is_open = any(PLACEHOLDER.search(value) or value in known | own for value in (*bare, *asked.values))
            if meant and not is_open:
                yield Finding(
                    found.place(*asked.route),
                    f"{found.title} selects the product {joined([f'`{value}`' for value in asked.values], 'or')}",
                    label="no board is called so",
                    help=f"write {listing([f'`{label}`' for label in dict.fromkeys(meant)], 4, 'or')}",
                )


@check("GPU897", "hami-beside-operator", Severity.NOTE, family=Family.OBJECTS)
def hami_beside_operator(files: HandFiles) -> Iterator[Finding]:
    """Work asks for resources of HAMi, and the GPU Operator is told to run its own device plugin.

    ## Why
    HAMi's device plugin publishes `nvidia.com/gpu` as well, and its scheduler counts `nvidia.com/gpumem` and
    `nvidia.com/gpucores` (`docs/config.md` of Project-HAMi/HAMi v2.7.0). NVIDIA's plugin knows neither. On one node the
    two plugins hand out the same GPUs.

    ## Instead
    Write `devicePlugin: {enabled: false}` in the operator's values, or label HAMi's nodes
    `nvidia.com/gpu.deploy.device-plugin: "false"`.
    """
    operators = [setting for setting in files.settings if setting.value(DEVICE_PLUGIN, "enabled") is not False]
    for ask in asks(files) if operators else ():
        if HAMI.fullmatch(ask.resource):
            yield Finding(
                ask.at,
                f"{ask.of.title} asks for `{ask.resource}`, which HAMi counts and the GPU Operator does not",
                label="of HAMi",
                notes=(f"{operators[0].title} leaves the operator's device plugin on",),
                help="write `devicePlugin: {enabled: false}` for the operator, if HAMi is on all nodes",
            )
