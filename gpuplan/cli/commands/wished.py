"""The pools that somebody wants in a new platform: named by options, or read from nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import closest, count, listing
from gpuplan.compiler.catalog import Gpu, load, parse_profile
from gpuplan.compiler.planning.node_list import LIST_NODES
from gpuplan.compiler.planning.placement.layouts import layout_of_sizes
from gpuplan.features.live import clusters
from gpuplan.features.live.drafts import Draft
from gpuplan.features.live.dump import Dump, read_dump
from gpuplan.features.live.pools import read
from gpuplan.features.live.pools.layouts import find_stock
from gpuplan.terminal.lists import contents
from gpuplan.terminal.session import Terminal

_NUMBER: Final = "([1-9][0-9]{0,3})"
_POOL: Final = regex(rf"([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)={_NUMBER}x{_NUMBER}x([^:]+)(?::([^=]+)(?:=(.+))?)?")
_BY: Final = " *[xX*,] *"
_NEAR: Final = regex(rf"(?:([A-Za-z0-9][-_A-Za-z0-9]*)[=:])?{_NUMBER}{_BY}(?:{_NUMBER}{_BY})?([A-Za-z][^:]*(?::.+)?)")
_LAST: Final = regex(rf"([A-Za-z0-9][-_A-Za-z0-9]*)[=:]([A-Za-z][^:]*?)x{_NUMBER}(?:x{_NUMBER})?((?::.+)?)")
"""A pool whose model stands before its numbers."""
_NAME: Final = r"[0-9]g\.[0-9]+gb(?:[+-][a-z.]+)*"
_PROFILE: Final = regex(_NAME)
_LISTED: Final = regex(rf"(?:{_NUMBER}x)?({_NAME})(?:[:=x*]{_NUMBER})?")
"""Instances as people write them elsewhere: `2x3g.40gb`, or `3g.40gb=2`."""
_COUNT: Final = regex(_NUMBER)
_INSTANCE: Final = regex(rf"([^:]+)(?::{_NUMBER})?")
_BETWEEN: Final = regex(r"[,;{} ]+|\+(?=[0-9])")
_SIZE: Final = regex(rf"([0-9]+(?:gb|GB))(?::{_NUMBER})?")
_NEXT_INSTANCE: Final = regex(r"\+(?=[0-9])")
"""A `+` between instances; behind a `+` inside a profile's name is a letter."""


def pools_named(wishes: Sequence[str]) -> list[Draft]:
    """Return the pool that each value of `--pool` describes; raise one `GpuplanError` for all that are wrong."""
    drafts: list[Draft] = []
    wrong: list[GpuplanError] = []
    for wish in wishes:
        try:
            drafts.append(pool_named(wish))
        except GpuplanError as error:
            wrong.append(error)
    if len(wrong) > 1:
        hints = dict.fromkeys(error.hint for error in wrong)
        raise GpuplanError("; ".join(error.message for error in wrong), "; ".join(hints).replace("?;", "?"))
    if wrong:
        raise wrong[0]
    return drafts


def pool_named(wish: str) -> Draft:
    """Return the pool that a value of `--pool` describes."""
    found = _POOL.fullmatch(wish)
    if found is None:
        near, last = _NEAR.fullmatch(wish), _LAST.fullmatch(wish)
        name, nodes, gpus, model = near.groups() if near else ("", "", "", "")
        if last and not near:
            name, model, gpus, nodes, sharing = last.groups()
            nodes, gpus, model = nodes or gpus, nodes and gpus, model + sharing
        name = (name or model.partition("-")[0].partition(":")[0]).lower().replace("_", "-")
        hint = _meanings(name, nodes, gpus, *model.partition(":"))
        message = f"`--pool {wish}` is not NAME=NODESxGPUSxMODEL[:SHARING], with a name in lower case"
        raise GpuplanError(message, hint or "two nodes with eight GPUs each: `--pool research=2x8xA100-80GB`")
    name, nodes, gpus, model, kind, value = found.groups()
    longer = _longer(model, value or "")
    counted = {"count": int(nodes), "gpusPerNode": int(gpus), "namePattern": f"{name}-[0-9]+"}
    try:
        gpu = load().get(longer[0] if len(longer) == 1 else model)  # `L4` is `L4-24GB`, since it is the only one
        shared = _sharing(gpu, kind or "exclusive", value or "")
    except GpuplanError as error:
        typed = "=".join(filter(None, (kind, value)))
        meant = _meanings(name, nodes, gpus, model, ":" if typed else "", typed)
        hint = error.hint if f"`--pool {wish}`" in meant else meant
        raise GpuplanError(f"`--pool {wish}` is not a pool: {error.message}", hint) from None
    return Draft("Pool", name, {"gpu": gpu.id, "nodes": counted, "sharing": shared})


def _longer(model: str, sharing: str) -> list[str]:
    """Return the models whose names begin with a name, with all profiles of a sharing if there are several."""
    longer = [known for known in load().ids() if known.startswith(f"{model}-")]
    profiles = _PROFILE.findall(sharing) if len(longer) > 1 else []
    return [known for known in longer if all(map(load().get(known).find_profile, profiles))]


def _meanings(name: str, nodes: str, gpus: str, model: str, colon: str, sharing: str) -> str:
    """Return all that a pool may mean whose only number counts nodes or GPUs, and whose model may be several."""
    known = load()
    models = (model,) if known.find(model) else tuple(_longer(model, sharing)) or known.suggest(model) or (model,)
    pairs = ((nodes, gpus),) if gpus else ((nodes, "8"), *((("1", nodes),) if nodes and int(nodes) <= _MOST else ()))
    shared, said = {one: _mended(one, sharing) for one in models}, []
    for number, each in pairs:
        mended = [f"{name}={number}x{each}x{one}{colon}{meant}" for one, (meant, _) in shared.items()]
        if not all(map(_POOL.fullmatch, mended)):
            return ""
        lines = listing([f"--pool {line}" for line in mended], None, last="or")
        said.append(f"{count(int(number), 'node')} with {count(int(each), 'GPU')}{' each' * (number != '1')}: {lines}")
    return "; ".join(filter(None, [*said, shared[models[0]][1]]))


def _mended(model: str, sharing: str) -> tuple[str, str]:
    """Return a sharing, or the first that is named instead of it, and what is wrong with it."""
    try:
        _sharing(load().get(model), *(sharing or "exclusive").partition("=")[::2])
    except GpuplanError as error:
        return next(iter(_NAMED.findall(error.hint)), sharing), f"{error.message}: {error.hint}"
    return sharing, ""


_NAMED: Final = regex("`([a-z]+[-a-z]*(?:=[^` ]+)?)`")
_MOST: Final = 16
"""The GPUs of the largest nodes: AWS' p2.16xlarge and NVIDIA's DGX-2."""
_SHARES: Final = {"time-slicing": "timeSlicing", "mps": "mps"}


def _sharing(gpu: Gpu, kind: str, value: str) -> dict[str, Any]:
    if kind == "exclusive" and not value:
        return {"exclusive": {}}
    if kind in _SHARES and _COUNT.fullmatch(value):
        return {_SHARES[kind]: {"replicas": int(value)}}
    if kind == "mig":
        return {"mig": {"instances": dict(instances_of(gpu, value))}}
    typed = f"{kind}={value}" if value else kind
    if kind in _SHARES:
        raise GpuplanError(f"`{typed}` does not say how many share a GPU", f"for four: `{kind}=4`")
    near = closest(kind, ("exclusive", "mig", *_SHARES))
    hint = f"did you mean `{near}{'=' * bool(value)}{value}`?" if near else ""
    all_ = "write exclusive, time-slicing=N, mps=N or mig=LAYOUT"
    raise GpuplanError(f"`{typed}` is not a way to share GPUs", hint or all_)


def instances_of(gpu: Gpu, layout: str) -> Counter[str]:
    """Return the instances of a layout by its name in NVIDIA's file, or by its instances."""
    if (stock := find_stock(layout, gpu)) and "instances" in stock.spec:
        return Counter(stock.spec["instances"])
    counts: Counter[str] = Counter()
    parts = _NEXT_INSTANCE.split(layout)
    for part in map(_INSTANCE.fullmatch, parts):
        if part is None or parse_profile(part[1]) is None:
            names = [profile.name for profile in gpu.base_profiles]
            hint = "write exclusive, time-slicing=N or mps=N"
            sizes = [(size[1], int(size[2] or 1)) for size in map(_SIZE.fullmatch, parts) if size]
            if len(sizes) == len(parts) and (meant := layout_of_sizes(gpu, sizes)):
                profiles = (f"{name}:{number}" if number > 1 else name for name, number in meant.items())
                hint = f"name the profiles of these sizes: `mig={'+'.join(profiles)}`"
            elif names:
                known = listing([f"mig=all-{name}" for name in names], None)
                both = f"mig={names[0]}:2+{names[min(1, len(names) - 1)]}"
                hint = f"there are {known}, and instances on a GPU joined by `+`, such as `{both}`"
                listed = [_LISTED.fullmatch(each) for each in _BETWEEN.split(layout)]
                if all(each and gpu.find_profile(each[2]) for each in listed):
                    named = ((each[2], each[1] or each[3] or "1") for each in listed if each)
                    mended = "+".join(name if number == "1" else f"{name}:{number}" for name, number in named)
                    hint = f"instances are joined by `+`: `mig={mended}`"
            raise GpuplanError(f"`mig={layout}` is no layout of {gpu.id}", hint)
        counts[part[1]] += int(part[2] or 1)
    return counts


def pools_of_nodes(terminal: Terminal, files: Sequence[str], cluster: str) -> Iterator[Draft]:
    """Yield the cluster and the pools that lists of nodes show, with their layouts; none without a file."""
    if not files:
        return
    dump, _ = read_dump(dict(contents(files, LIST_NODES)))
    nodes = Dump(dump.of_kind("", "Node"))
    if not nodes.objects:
        raise GpuplanError(f"{listing(files)} lists no node", f"write the nodes with `{LIST_NODES}`")
    found = read(nodes)
    for item in found.diagnostics:
        terminal.say(f"note: {item.shown.message}\n")
    if not any(draft.kind == "Pool" for draft in found.drafts):
        raise GpuplanError(
            "no node shows its GPU model: GPU Feature Discovery writes it into the label `nvidia.com/gpu.product`",
            "name the pools: `--pool research=2x8xA100-80GB`",
        )
    yield from (*clusters.read(nodes, cluster).drafts, *found.drafts)
