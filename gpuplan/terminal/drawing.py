"""Pictures of GPUs as they are shared, to scale in memory slices, as SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.checks.wording import add
from gpuplan.compiler.planning.placement.layouts import maximal_layouts
from gpuplan.compiler.planning.placement.placing import Instance, Placed, place
from gpuplan.compiler.planning.plan import Amount, Plan, Pool, Quota, Tenant, Unit
from gpuplan.terminal.catalog import spell
from gpuplan.terminal.cuts import WHOLE_TINT, Cut, Phrase, Piece, PlanPaths, Words, cut_of_instances, cuts_of, plain
from gpuplan.terminal.plan import amount
from gpuplan.terminal.svg import (
    Figure,
    filled,
    hatched,
    line,
    moved,
    rect,
    shortened,
    sized,
    sourced,
    svg_document,
    text_of,
    text_width,
    words,
)

# --- Whole documents ---------------------------------------------------------------------------------------------


def layout_svg(gpu: Gpu, instances: Iterable[Instance], name: str = "") -> str:
    """One GPU with its instances, each at its place."""
    return svg_document(layout_figure(gpu, instances, name))


def catalog_svg(gpu: Gpu) -> str:
    """A model with every layout to which nothing can be added; whole, where there is none."""
    found = (place(gpu, layout) for layout in maximal_layouts(gpu))
    figures = [layout_figure(gpu, placed.instances) for placed in found if isinstance(placed, Placed)]
    about = f"{gpu.name}: each bar is one GPU, as wide as its memory."
    if not figures:
        whole = Cut((Piece(0, 1, Words("whole GPU"), WHOLE_TINT),), 1, (), ())
        figures = [Figure("", "", WIDTH, _STRIP + 2 * _EDGE, moved(_EDGE, _EDGE, _strip(whole)))]
    return svg_document(_titled(f"Layouts of {gpu.id}", about, _in_columns(figures, 2)))


def pool_svg(plan: Plan, pool: Pool) -> str:
    """A pool: what its nodes and GPUs are divided into, and who is guaranteed how much of it."""
    return svg_document(pool_figure(PlanPaths(plan), pool))


def plan_svg(plans: Iterable[Plan]) -> str:
    """Every pool of every cluster."""
    figures = [cluster_figure(PlanPaths(plan, index)) for index, plan in enumerate(plans)]
    title = figures[0].title if len(figures) == 1 else f"{len(figures)} clusters"
    about = " ".join(figure.description for figure in figures)
    return svg_document(_below(figures, 28)._replace(title=title, description=about))


# --- Figures -----------------------------------------------------------------------------------------------------

WIDTH: Final = 340
"""The width of one drawing: a telephone shows it without scrolling, an A4 page two side by side."""
_EDGE: Final = 10
_INNER: Final = WIDTH - 2 * _EDGE
_STRIP: Final = 52


def layout_figure(gpu: Gpu, instances: Iterable[Instance], name: str = "") -> Figure:
    """One GPU with its instances."""
    placed = tuple(instances)
    cut = cut_of_instances(gpu, placed)
    heading = name or spell(Counter(item.profile.name for item in placed))
    head = words(_EDGE, 18, text_of(shortened(heading, _INNER, 11)), "gp-strong")
    body = head + moved(_EDGE, 26, _strip(cut))
    return Figure(f"{heading} on {gpu.id}", f"A GPU {cut.about}.", WIDTH, 26 + _STRIP + _EDGE, body)


def cluster_figure(paths: PlanPaths) -> Figure:
    """Every pool of a cluster."""
    pools = paths.plan.pools
    title = f"Cluster {paths.plan.cluster.name}"
    about = f"{title} has the pools {joined([pool.name for pool in pools])}." if pools else f"{title} is empty."
    return _titled(title, about, _below([pool_figure(paths, pool) for pool in pools], 14))


def pool_figure(paths: PlanPaths, pool: Pool) -> Figure:
    """Both drawings of a pool side by side, below its name."""
    at = paths.pool(pool)
    name = sourced(f"{at}/name", pool.name, shortened(pool.name, WIDTH, 13))
    gpu = sourced(f"{at}/gpu", pool.gpu.id, shortened(pool.gpu.id, WIDTH, 13))
    right_edge = 2 * WIDTH - _EDGE
    head = words(_EDGE, 20, name, "gp-strong gp-large") + words(right_edge, 20, gpu, "gp-faint gp-large", "end")
    left, right = cuts_figure(paths, pool), guarantees_figure(paths, pool)
    body = head + line(_EDGE, 29, right_edge, 29, "gp-gap") + moved(0, 28, left.body) + moved(WIDTH, 28, right.body)
    about = f"{left.description} {right.description}"
    return Figure(f"Pool {pool.name}", about, 2 * WIDTH, 28 + max(left.height, right.height), body)


def cuts_figure(paths: PlanPaths, pool: Pool) -> Figure:
    """Draw the nodes of a pool and the division of each GPU; equal GPUs and nodes are drawn once."""
    y, drawn, about = 0.0, list[str](), list[str]()
    for part in pool.parts:
        if not part.nodes.count:
            continue
        cuts = cuts_of(paths, part)
        for cut in cuts:
            drawn += [words(_EDGE, y + 20, _marked(cut.caption)), moved(_EDGE, y + 26, _strip(cut))]
            about.append(f"{plain(cut.caption).capitalize()} {cut.about}".strip() + ".")
            y += 26 + _STRIP
        nodes, height = _nodes(
            cuts, _node_count(paths, pool, part), paths.node_names(pool, part), part, _key(paths, pool, part)
        )
        drawn.append(moved(_EDGE, y + 8, nodes))
        y += 8 + height
    return Figure(f"How GPUs of {pool.name} are shared", " ".join(about), WIDTH, round(y + _EDGE), "".join(drawn))


def guarantees_figure(paths: PlanPaths, pool: Pool) -> Figure:
    """Draw how much of each unit each tenant is guaranteed, and how much nobody is."""
    y, drawn, about = 0, list[str](), list[str]()
    for unit in pool.units:
        quotas = paths.plan.tree.outermost_by_unit.get((pool.name, unit.name), ())
        held = [(tenant, quota) for tenant, quota in quotas if quota.guaranteed]
        bar, height = _guarantees(paths, pool, unit, held)
        drawn.append(moved(_EDGE, y + 4, bar))
        y += 4 + height
        names = [f"{tenant.name} {amount(quota.guaranteed)}" for tenant, quota in held]
        promised = f"guaranteed to {joined(names)}" if names else "guaranteed to nobody"
        about.append(f"{unit.capacity} {unit.name}: {promised}; free: {amount(_free(unit, held))}.")
    return Figure(f"Guarantees in {pool.name}", " ".join(about), WIDTH, y + _EDGE, "".join(drawn))


# --- One below another -------------------------------------------------------------------------------------------


def _below(figures: Sequence[Figure], gap: int) -> Figure:
    y, drawn = 0, list[str]()
    for figure in figures:
        drawn.append(moved(0, y, figure.body))
        y += figure.height + gap
    return Figure("", "", max((figure.width for figure in figures), default=WIDTH), max(y - gap, 0), "".join(drawn))


def _in_columns(figures: Sequence[Figure], columns: int) -> Figure:
    """Figures of one size, row by row."""
    width, height = figures[0].width, figures[0].height
    columns = min(columns, len(figures))
    drawn = (
        moved(index % columns * width, index // columns * height, figure.body) for index, figure in enumerate(figures)
    )
    return Figure("", "", columns * width, -(-len(figures) // columns) * height, "".join(drawn))


def _titled(title: str, about: str, below: Figure) -> Figure:
    head = words(_EDGE, 24, text_of(shortened(title, below.width, 16)), "gp-strong gp-title")
    return Figure(title, about, below.width, below.height + 36, head + moved(0, 36, below.body))


def _marked(phrase: Phrase) -> str:
    return "".join(sourced(part.path, part.text) if part.path else text_of(part.text) for part in phrase)


# --- One GPU -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _strip(cut: Cut) -> str:
    """One GPU, as wide as its memory: what nothing takes is hatched."""
    scale = _INNER / cut.slices
    drawn = [hatched(0, 0, _INNER, _STRIP)]
    for piece in cut.pieces:
        x, width = piece.start * scale, piece.size * scale
        looks = "gp-box gp-turn" if cut.is_memory_shared else "gp-box"
        drawn.append(sized(x, 0, width, _STRIP, piece.tint, looks))
        step = width / min(piece.share_count, 16)
        drawn += [
            line(x + step * turn, 0, x + step * turn, _STRIP, "gp-cut gp-turn")
            for turn in range(1, min(piece.share_count, 16))
        ]
        drawn.append(_label(piece, x, width))
    drawn.append(rect(0, 0, _INNER, _STRIP, "gp-edge"))
    return "".join(drawn)


def _label(piece: Piece, x: float, width: float) -> str:
    """On one line, or on as many as the name has parts; none where even these are too long."""
    name, middle = piece.name.text, x + width / 2
    lines = [name] if text_width(name, 11) <= width - 4 else _parts_of_name(name)
    if not name or any(text_width(part, 11) > width for part in lines):
        return ""
    shares = f"{piece.share_count} shares"
    is_shared = piece.shares is not None and len(lines) < 3
    is_worded = text_width(shares, 10) <= width - 4
    first = _STRIP / 2 + 4 - 6.5 * (len(lines) - 1 + is_shared)
    spans = "".join(
        f'<tspan x="{middle:g}" y="{first + 13 * index:g}">{text_of(part)}</tspan>' for index, part in enumerate(lines)
    )
    path = f' data-path="{text_of(piece.name.path)}"' if piece.name.path else ""
    drawn = f'<text class="gp-strong" text-anchor="middle"{path}>{spans}</text>'
    if not is_shared or piece.shares is None:
        return drawn
    number = sourced(piece.shares.path, piece.shares.text)
    below = f"{number} shares" if is_worded else f"\u00d7{number}"
    return drawn + words(middle, first + 13 * len(lines), below, "gp-small", "middle")


def _parts_of_name(name: str) -> list[str]:
    """`1g.10gb+me` as `1g.`, `10gb`, `+me`."""
    head, dot, rest = name.partition(".")
    cut = min((rest.find(sign) for sign in "+-" if sign in rest), default=len(rest))
    return [part for part in (head + dot, rest[:cut], rest[cut:]) if part]


# --- Nodes -------------------------------------------------------------------------------------------------------

_MOST_NODES: Final = 8
_NODE: Final = 72
_GAP: Final = 8
_GPU: Final = 7


def _nodes(cuts: Sequence[Cut], count: Phrase, names: Phrase, part: Pool, key: str) -> tuple[str, float]:
    """Draw the part's nodes, each with its GPUs to scale and its name; one alone stands for many.

    ``key`` is theirs in the document.
    """
    shown = part.nodes.count if part.nodes.count <= _MOST_NODES else 1
    names = names if len(names) == shown else ()
    height = 5 + part.nodes.gpus_per_node * _GPU + (12 if names else 0)
    columns = (_INNER + _GAP) // (_NODE + _GAP)
    places = [
        (column * (_NODE + _GAP), 19 + row * (height + _GAP)) for row in range(shown) for column in range(columns)
    ]
    drawn = [words(0, 12, _marked(count)), moved(*places[0], f'<g id="{key}">{_node(cuts, height)}</g>')]
    # A copy leaves the place of the first behind: it is only what is in the group of that name.
    drawn += [f'<use href="#{key}" x="{x}" y="{y}"/>' for x, y in places[1:shown]]
    for (x, y), name in zip(places, names, strict=False):
        is_long = len(name.text) > _MOST_SIGNS  # the end tells nodes apart
        end = f"\u2026{name.text[1 - _MOST_SIGNS :]}" if is_long else name.text
        drawn.append(words(x + _NODE / 2, y + height - 4, sourced(name.path, name.text, end), "gp-small", "middle"))
    if shown < part.nodes.count:
        times = (Words("\u00d7 "), *count[:1])
        drawn.append(words(_NODE + 12, 19 + height / 2 + 5, _marked(times), "gp-large gp-strong"))
    return "".join(drawn), 19 + -(-shown // columns) * (height + _GAP)


def _key(paths: PlanPaths, pool: Pool, part: Pool) -> str:
    """A name that no other part has, in a page of several documents either."""
    return f"gp{paths.pool(pool)}/{pool.parts.index(part)}".replace("/", "-").replace(":", "-")


def _node(cuts: Sequence[Cut], height: int) -> str:
    """One node: a bar for each of its GPUs, as few elements as there are tints."""
    inner = _NODE - 6
    cells: dict[int, list[str]] = {}
    for cut in cuts:
        scale = inner / cut.slices
        for gpu, piece in ((gpu, piece) for gpu in cut.gpus for piece in cut.pieces):
            wide = f"{piece.size * scale - 1:.3g}"
            cell = f"M{3 + piece.start * scale:.4g} {3 + gpu * _GPU}h{wide}v6h-{wide}z"
            cells.setdefault(piece.tint, []).append(cell)
    drawn = (f'<path class="gp-size{tint}" d="{"".join(found)}"/>' for tint, found in sorted(cells.items()))
    return rect(0, 0, _NODE, height, "gp-node", ' rx="3"') + "".join(drawn)


def _node_count(paths: PlanPaths, pool: Pool, part: Pool) -> Phrase:
    at = paths.pool(pool)
    noun = "node" if part.nodes.count == 1 else "nodes"
    gpus = "GPU" if part.nodes.gpus_per_node == 1 else "GPUs"
    path, which = f"{at}/nodes/count", ""
    if pool.rollout is not None:
        is_moved = pool.rollout.moved is part
        moved_path = f"#{at}/rollout/nodes/*"
        path = moved_path if is_moved else f"{at}/nodes/count -{moved_path}"
        which = " moved" if is_moved else " left to move"
    each = Words(str(part.nodes.gpus_per_node), f"{at}/nodes/gpus_per_node")
    found = (Words(str(part.nodes.count), path), Words(f" {noun}{which} of "), each, Words(f" {gpus}"))
    if part.nodes.names or not (pattern := pool.nodes.name_pattern):
        return found
    named = Words(shortened(pattern, _INNER - text_width(plain(found), 11), 11), f"{at}/nodes/name_pattern")
    return (*found, Words(": "), named)


_MOST_SIGNS: Final = 11


# --- Guarantees --------------------------------------------------------------------------------------------------

_BAR: Final = 24
_MOST_TENANTS: Final = 8

Held = Sequence[tuple[Tenant, Quota]]


def _guarantees(paths: PlanPaths, pool: Pool, unit: Unit, held: Held) -> tuple[str, int]:
    """A bar as wide as there are units, divided among those who have guarantees, with their names below."""
    at = paths.unit(pool, unit)
    whole = unit.capacity - min(_free(unit, held), 0)
    scale = _INNER / (float(whole) or 1)
    x, y = 0.0, 24
    in_all = words(_INNER, 16, f"{sourced(f'{at}/capacity', unit.capacity)} in all", "gp-faint", "end")
    drawn = [words(0, 16, sourced(f"{at}/name", unit.name), "gp-strong"), in_all, hatched(0, y, _INNER, _BAR)]
    for tenant, quota in held:
        width = float(quota.guaranteed) * scale
        drawn.append(filled(x, y, width, _BAR, paths.tenant_index(tenant)))
        shown = amount(quota.guaranteed)
        if text_width(shown, 11) <= width - 4:
            source = sourced(f"{paths.quota(tenant, quota)}/guaranteed", shown)
            drawn.append(words(x + width / 2, y + 16, source, "gp-strong", "middle"))
        x += width
    drawn.append(rect(0, y, _INNER, _BAR, "gp-edge"))
    y += _BAR + 4
    for tenant, quota in held[:_MOST_TENANTS]:
        drawn.append(filled(0, y + 3, 14, 12, paths.tenant_index(tenant)))
        drawn.append(words(20, y + 13, _guarantee(paths, tenant, quota)))
        y += 18
    if len(held) > _MOST_TENANTS:
        drawn.append(words(20, y + 13, "and others", "gp-faint"))
        y += 18
    free = _free(unit, held)
    if free < 0:
        end = float(unit.capacity) * scale
        drawn.append(line(end, 20, end, 28 + _BAR, "gp-edge gp-turn"))
        lack = sourced(f"-{at}/free", amount(-free))
        return "".join((*drawn, words(20, y + 13, f"{lack} too few: what there is ends at the dashes"))), y + 22
    drawn += [hatched(0, y + 3, 14, 12), words(20, y + 13, f"{sourced(f'{at}/free', amount(free))} free")]
    return "".join(drawn), y + 22


def _free(unit: Unit, held: Held) -> Amount:
    return unit.capacity - add([quota.guaranteed for _, quota in held])


def _guarantee(paths: PlanPaths, tenant: Tenant, quota: Quota) -> str:
    at = paths.quota(tenant, quota)
    name = sourced(f"{paths.tenant(tenant)}/name", tenant.name, shortened(tenant.name, _INNER - 130, 11))
    guaranteed = sourced(f"{at}/guaranteed", amount(quota.guaranteed))
    if quota.limit is None:
        return f"{name} {guaranteed}, and what is free"
    more = f", up to {sourced(f'{at}/limit', amount(quota.limit))}" if quota.may_borrow else ""
    return f"{name} {guaranteed}{more}"
