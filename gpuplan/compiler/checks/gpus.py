"""Checks on the platform's own GPU models (GPU106-108, GPU224): what they contradict, and where they cannot run."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.catalog.architectures import JETSON
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.discovered import PRODUCT_ENDING
from gpuplan.compiler.planning.plan import OwnGpu, Plan, with_places


@check("GPU106", "gpu-described-twice")
def gpu_described_twice(plan: Plan) -> Iterator[Finding]:
    """A `Gpu` document describes a board that the catalog or another document has.

    ## Why
    A node has one board, and its product label or its PCI id says which. Where two models have the same one, what is
    known of the board depends on which of them a pool happens to name: its memory, its MIG profiles, its limits. The
    catalog's facts have sources and are tested against each other; a second description of the same board goes stale.

    ## Instead
    Remove the document and name the model that the catalog has. Where boards share a PCI id, as A2 and A16 do, say the
    subsystem behind it, as `lspci -nnv` prints it: `10de:25b6/10de:14a9`.
    """
    if not plan.gpus:
        return
    known = load().all()
    for number, model in enumerate(plan.gpus):
        others = [*known, *(other.gpu for other in plan.gpus[:number])]
        if same := next((gpu for gpu in known if gpu.id.lower() == model.name.lower()), None):
            yield Finding(
                model.at / "products",
                f"GPU model `{model.name}` is `{same.id}` in the catalog",
                label="described here once more",
                help=f"remove the document, and write `gpu: {same.id}`",
            )
            continue
        instead = "remove it" if len(model.spec.products) > 1 else "write the label that nodes with this board have"
        for at, label in with_places(model.at / "products", model.spec.products):
            labelled = (gpu for gpu in others if any(label == product.label for product in gpu.products))
            if same := next(labelled, None):
                help_ = f"{instead}, or remove the document and write `gpu: {same.id}` in pools"
                yield _described(model, at, f"product label `{label}`", same, help_)
        # An id with a subsystem is that of one board of several, and differs from the id alone.
        for (at, written), device in zip(with_places(model.at / "pci", model.spec.pci), model.gpu.pci, strict=True):
            if same := next((gpu for gpu in others if any(device.is_same(other) for other in gpu.pci)), None):
                help_ = (
                    f"remove the document and write `gpu: {same.id}` in pools, or add the subsystem that "
                    "`lspci -nnv` prints, where another board has this id too"
                )
                yield _described(model, at, f"PCI id `{written}`", same, help_)


def _described(model: OwnGpu, at: Origin, claim: str, same: Gpu, instead: str) -> Finding:
    related = () if same.written_at is None else (Label(same.written_at.key, f"`{same.id}` is described here"),)
    where = "the catalog has it as" if same.written_at is None else "it is that of"
    return Finding(
        at,
        f"{claim} of GPU model `{model.name}` is taken: {where} `{same.id}`",
        label=f"a board of `{same.id}`",
        related=related,
        help=instead,
    )


@check("GPU107", "gpu-on-the-chip")
def gpu_on_the_chip(plan: Plan) -> Iterator[Finding]:
    """A pool or a `Gpu` document is of a Jetson module, on which the GPU Operator does not run.

    ## Why
    Jetson modules have the GPU on the chip, and no board. NVIDIA's page of supported platforms says that the GPU
    Operator only supports discrete GPUs, and not Jetson. Whatever is written for such a pool would be applied and never
    come true.

    ## Instead
    Leave these nodes out of the policy; NVIDIA's device plugin alone, from its own chart, runs on them.
    """
    for model in plan.gpus:
        if model.gpu.compute_capability in JETSON:
            yield _on_the_chip(model.at / "computeCapability", f"GPU model `{model.name}`")
    for pool in plan.pools:
        if pool.gpu.compute_capability in JETSON and pool.gpu.written_at is None:
            yield _on_the_chip(pool.at / "gpu", f"{pool.gpu.id} of pool `{pool.name}`")


def _on_the_chip(at: Origin, title: str) -> Finding:
    return Finding(
        at,
        f"{title} is a Jetson module, on which the GPU Operator does not run",
        label="a GPU on the chip",
        notes=("the GPU Operator supports discrete GPUs only",),
        help="leave these nodes out; the chart of NVIDIA's device plugin alone runs on them",
    )


@check("GPU108", "product-label-of-shared-gpu")
def product_label_of_shared_gpu(plan: Plan) -> Iterator[Finding]:
    """A `Gpu` document has the product label of a node whose GPUs are shared or divided.

    ## Why
    GPU Feature Discovery ends the label in `-SHARED` where GPUs are time-sliced or under MPS and their resource keeps
    its name (`getProductName` in `internal/lm/resource.go` of NVIDIA/k8s-device-plugin), and in `-MIG-` and a profile
    under the strategy `single`. As soon as a pool is shared otherwise, no node has that label any more: what asks for
    the model by it, such as an alert on foreign boards, would take every node of the pool for another one.

    ## Instead
    Write the label as a node with whole GPUs has it, without the ending.
    """
    for model in plan.gpus:
        for at, label in with_places(model.at / "products", model.spec.products):
            if found := PRODUCT_ENDING.search(label):
                yield Finding(
                    at,
                    f"product label `{label}` is that of a shared or divided GPU",
                    label=f"without `{found[0]}` where GPUs are whole",
                    help=f"write `{label[: found.start()]}`",
                )


_MOST_NOTES = 3


@check("GPU224", "mig-listing-cannot-be")
def mig_listing_cannot_be(plan: Plan) -> Iterator[Finding]:
    """The MIG part of a `Gpu` document differs from a driver's output, or contradicts itself.

    ## Why
    Layouts are judged by the profiles and their placements, exactly. The two outputs of `nvidia-smi` say the same of
    every board: each profile fits as often as its placements allow, its name is its share of the memory, and one
    profile is the whole board. Where that is not so, something was typed or left out, and a layout that is judged by it
    would fail on the node, after the old partitions are gone.

    ## Instead
    Paste both outputs whole, from one board with MIG on: `nvidia-smi mig -i 0 -lgip` and `nvidia-smi mig -i 0 -lgipp`.
    """
    for model in plan.gpus:
        if model.faults:
            first, *others = model.faults
            yield Finding(
                (model.at / "mig").key,
                f"MIG of GPU model `{model.name}` cannot be: {first}",
                label="not as a driver prints it",
                notes=tuple(others[:_MOST_NOTES]),
                help="paste both outputs whole: `nvidia-smi mig -i 0 -lgip` and `nvidia-smi mig -i 0 -lgipp`",
            )
