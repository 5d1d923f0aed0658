"""Choices that are only a matter of counting: one node type, and each need on one kind of part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from gpuplan.compiler.planning.placement.placing import Key, as_key
from gpuplan.features.packing.sizing.answers import Bound, NodeType, Objective, Way
from gpuplan.features.packing.sizing.choosing.asking import Ask
from gpuplan.features.packing.sizing.choosing.forms import UNCUT, GpuForm, NodeForm, filled, gpu_parts
from gpuplan.features.packing.sizing.choosing.parts import WHOLE, Part
from gpuplan.features.packing.sizing.choosing.program import Found
from gpuplan.features.packing.sizing.fewest_layouts import with_fewest_layouts
from gpuplan.features.packing.sizing.packing import pack


def count(asked: Sequence[Ask], types: Sequence[NodeType], objective: Objective) -> Found | None:
    """What `packing` says, with its proof, in whole nodes; None where there is something to choose, or too little."""
    if len(types) != 1 or objective not in (Objective.GPUS, Objective.PRICE):
        return None
    (node_type,) = types
    parts = [part for ask in asked for _, part in ask.worth]
    if node_type.pools or node_type.is_equal_within_node or len(parts) != len(asked) or not all(map(_is_simple, parts)):
        return None
    counts: Counter[str] = Counter()
    for ask, part in zip(asked, parts, strict=True):
        counts[part.name] += ceil(ask.amount / ask.worth[0, part])
    wholes = counts.pop(WHOLE, 0)
    packed = with_fewest_layouts(pack(node_type.gpu, counts)).packing
    nodes = ceil(Fraction(packed.gpus + wholes, node_type.gpus_per_node))
    if node_type.nodes is not None and nodes > node_type.nodes:
        return None
    layouts: Counter[Key] = Counter()
    for layout, times in packed.layouts:
        layouts[as_key(filled(node_type, layout, counts))] += times
    forms = [(GpuForm(0, dict(key), gpu_parts(node_type, dict(key))), times) for key, times in layouts.items()]
    forms += [(GpuForm(0, UNCUT, gpu_parts(node_type, UNCUT)), wholes)] if wholes else []
    least = ceil((packed.bound.least + wholes) / node_type.gpus_per_node) * _worth(node_type, objective)
    prices = (
        None if packed.bound.prices is None else {**packed.bound.prices, **({WHOLE: Fraction(1)} if wholes else {})}
    )
    taken = tuple({place: ceil(ask.amount / worth) for place, worth in ask.worth.items()} for ask in asked)
    plain = ((NodeForm(0, node_type.gpus_per_node, {}), nodes),) if nodes else ()
    return Found(plain, tuple(forms), taken, Bound(least, packed.bound.proof, prices))


def _is_simple(part: Part) -> bool:
    return part.way is Way.MIG or (part.way is Way.WHOLE and part.gpus == 1)


def _worth(node_type: NodeType, objective: Objective) -> Fraction:
    """Of a node, in the unit of the objective."""
    if objective is Objective.PRICE:
        return Fraction(node_type.price or 0)
    return Fraction(node_type.gpus_per_node)
