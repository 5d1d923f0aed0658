"""Compare a cluster before its first sync with what it is after it, from the dump and `out/` alone.

Nothing of gpuplan is imported here. Whatever is less, goes elsewhere or is refused is a loss, and a report has to name
it: the subject and what changes, in one breath.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.laws.adoption.nodes import MIG, NODE_POOL, PLUGIN, PREFIX, Node, Way, nodes_before, operator_of, ways
from tests.laws.adoption.state import (
    Body,
    Key,
    State,
    inside,
    labels,
    objects_in,
    quantity,
    read,
    selects,
    spelt,
    synced,
)
from tests.laws.adoption.work import QUEUE, Template, fits, grants_of, queue_of, refusals, templates


class Kind(StrEnum):
    """What somebody loses."""

    QUOTA_LOWER = "a quota is lower"
    QUOTA_NEW = "what was not capped is capped"
    LIMIT = "what a LimitRange allows or gives changes"
    FORBIDDEN = "a namespace may no longer ask for a resource"
    PUBLISHES = "a node publishes something else"
    ORDER = "a node publishes less in some order of syncs"
    REPARTITIONED = "GPUs of a node are divided anew"
    NO_OPERATOR = "nothing reads the ClusterPolicy"
    LABEL = "a label of a node changes"
    TAINT = "a node gets a taint"
    REFUSED = "admission refuses pods"
    NO_NODE = "pods find no node"
    LOCAL_QUEUE = "a LocalQueue leads elsewhere"
    DEFAULT_QUEUE = "work without a queue is queued"
    NOMINAL = "a queue has less"
    REACH = "a queue may use less"
    LENDS = "a queue lends something else"
    NOT_COVERED = "a queue no longer counts a resource"
    FLAVOR_NODES = "a queue reaches other nodes"
    COHORT = "a queue is in another cohort"
    QUEUE_SETTING = "a queue works otherwise"
    QUEUE_SHUT = "a queue is closed to a namespace"
    POD_SECURITY = "another level of Pod Security is enforced"
    PRIORITY = "a PriorityClass changes"
    APPEARS = "objects appear"


class Loss(NamedTuple):
    """What is told where one breath has a word of each group in ``tokens``."""

    kind: Kind
    subject: str
    what: str
    before: str
    after: str
    tokens: tuple[tuple[str, ...], ...]


def losses(dump: Path, out: Path) -> list[Loss]:
    """``out`` is the folder of one cluster."""
    files = read(out)
    documents = list(chain.from_iterable(files.values()))
    table = [row for body in documents if "nodeGroups" in body for row in body["nodeGroups"]]
    return compare(list(chain.from_iterable(read(dump).values())), documents, table)


def compare(dump: Sequence[Body], written: Sequence[Body], table: Sequence[Body] = ()) -> list[Loss]:
    """``dump`` and ``written`` are documents, and ``table`` the groups of nodes that somebody else labels."""
    before = State(objects_in(dump))
    made = {key: body for key, body in objects_in(written).items() if key[0] not in _NOT_APPLIED}
    after = synced(before, made)
    walked = ways(before, after, table)
    old, new = nodes_before(before), {name: way.after for name, way in walked.items()}
    return list(
        chain(
            *(_quotas(before, after, old), _limits(before, after), _forbidden(before, after, old)),
            *(_nodes(walked), _operators(before, made), _work(before, after, old, new)),
            *(_local_queues(before, after), _cluster_queues(before, after, old, new), _kai_queues(before, after)),
            *(_namespaces(before, after), _priorities(before, after), _appearing(before, made)),
        )
    )


_NOT_APPLIED: Final = frozenset({"Kustomization", "Configuration"})


# --- Quotas and limits -------------------------------------------------------------------------------------------


def _quotas(before: State, after: State, nodes: Mapping[str, Node]) -> Iterator[Loss]:
    """A cap on what no node published takes nothing.

    A report has to give one of the numbers, too: `pods` and `quota` are in many a sentence about a namespace.
    """
    published = {key for node in nodes.values() for key in node.published}
    for namespace in before.namespaces:
        had, has = _effective(before, namespace), _effective(after, namespace)
        for scope, key in sorted(has):
            was, value = had.get((scope, key)), has[scope, key]
            owner, words = (namespace,), (key, key.removeprefix("requests."))
            what = f"{key}{f' of {scope}' if scope else ''}"
            if was is not None and value.amount < was.amount:
                numbers = (was.text, value.text)
                yield Loss(Kind.QUOTA_LOWER, f"Namespace {namespace}", what, *numbers, (owner, words, numbers))
            elif was is None and not (_is_of_gpus(key) and key.removeprefix("requests.") not in published):
                said = (value.text, "none", "nothing", "no longer", "capped")
                yield Loss(Kind.QUOTA_NEW, f"Namespace {namespace}", what, "no cap", value.text, (owner, words, said))


def _is_of_gpus(key: str) -> bool:
    return key.startswith(f"requests.{PREFIX}")


class _Cap(NamedTuple):
    amount: Fraction
    text: str
    """As the ResourceQuota has it."""


def _effective(state: State, namespace: str) -> dict[tuple[str, str], _Cap]:
    """By scopes and key the lowest number of all ResourceQuotas: each of them has to have room."""
    found: dict[tuple[str, str], _Cap] = {}
    for where, _, body in state.of("ResourceQuota"):
        if where != namespace:
            continue
        scopes = {name: body["spec"][name] for name in ("scopes", "scopeSelector") if body["spec"].get(name)}
        scope = json.dumps(scopes, sort_keys=True) if scopes else ""
        for key, value in (body["spec"].get("hard") or {}).items():
            name = {"cpu": "requests.cpu", "memory": "requests.memory"}.get(key, key)
            cap = _Cap(quantity(value), str(value))
            found[scope, name] = min(found.get((scope, name), cap), cap)
    return found


def _limits(before: State, after: State) -> Iterator[Loss]:
    for namespace in before.namespaces:
        had, has = _ranges(before, namespace), _ranges(after, namespace)
        for found in sorted({*had, *has}):
            part, kind, name = found
            was, value = had.get(found), has.get(found)
            is_given = part in ("default", "defaultRequest")
            if was == value or (is_given and was is None) or (part in ("max", "min") and value is None):
                continue
            if part == "max" and was is not None and value is not None and value > was:
                continue
            tokens = ((namespace,), (f"{part}.{name}", part, name, "LimitRange"), ("LimitRange", "limit range"))
            what = f"{part} of {name} for a {kind}"
            yield Loss(Kind.LIMIT, f"Namespace {namespace}", what, _or_none(was), _or_none(value), tokens)


def _or_none(value: Fraction | None) -> str:
    return "none" if value is None else spelt(value)


def _ranges(state: State, namespace: str) -> dict[tuple[str, str, str], Fraction]:
    """What all LimitRanges bound and give together; the strictest bound holds."""
    found: dict[tuple[str, str, str], Fraction] = {}
    for where, _, body in sorted(state.of("LimitRange"), key=lambda item: item[1]):
        for item in inside(body, "spec", "limits") or () if where == namespace else ():
            for part in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
                for name, value in (item.get(part) or {}).items():
                    key, amount = (part, item["type"], name), quantity(value)
                    choose = max if part == "min" else min
                    found[key] = choose(found.get(key, amount), amount)
    return found


def _forbidden(before: State, after: State, old: Mapping[str, Node]) -> Iterator[Loss]:
    """What a namespace may ask for at all, where admission refuses the rest."""
    published = sorted({key for node in old.values() for key in node.published})
    for namespace in before.namespaces:
        grants, had = grants_of(after, namespace), _effective(before, namespace)
        if grants is None:
            continue
        granted = {resource for _, resource, _ in grants.allowed}
        for resource in published:
            was = had.get(("", f"requests.{resource}"))
            is_banned = was is not None and was.amount == 0
            if not is_banned and resource not in granted and grants_of(before, namespace) is None:
                owner, now = (namespace, grants.data.get("tenant", namespace)), "refused"
                tokens = (owner, (resource,), (now, "refuses", "refuse", "none", "no longer", "no quota"))
                yield Loss(Kind.FORBIDDEN, f"Namespace {namespace}", resource, was.text if was else "any", now, tokens)


# --- Nodes -------------------------------------------------------------------------------------------------------


def _nodes(walked: Mapping[str, Way]) -> Iterator[Loss]:
    for name, way in walked.items():
        had = way.before.published
        yield from _published(Kind.PUBLISHES, way, had, way.states[True, True], "when all is synced")
        for state, when in _BETWEEN.items():
            if way.states[state] != way.states[True, True]:
                yield from _published(Kind.ORDER, way, had, way.states[state], when)
        if way.is_repartitioned:
            words = ("nvidia.com/mig.config", "repartition", "repartitions", "repartitioned", "partitions", "divided")
            yield Loss(Kind.REPARTITIONED, f"Node {name}", "GPUs", "", "", (way.names, words))
        for key, value in way.before.labels.items():
            if way.after.labels.get(key) != value:
                after = way.after.labels.get(key, "nothing")
                yield Loss(Kind.LABEL, f"Node {name}", key, value, after, (way.names, (key,)))
        for taint in way.after.taints:
            if taint not in way.before.taints:
                what = f"{taint['key']}:{taint['effect']}"
                yield Loss(Kind.TAINT, f"Node {name}", what, "none", spelt(taint), (way.names, (taint["key"],)))


_BETWEEN: Final = {
    (True, False): "while the operator's files are new, and the node's labels are not",
    (False, True): "while the node's labels are new, and the operator's files are not",
}


def _published(kind: Kind, way: Way, had: Mapping[str, int], has: Mapping[str, int] | str, when: str) -> Iterator[Loss]:
    subject = f"Node {way.before.name}"
    if isinstance(has, str):
        if had:
            about = (PLUGIN, "device plugin", *had)
            yield Loss(kind, subject, f"the device plugin {when}", spelt(dict(had)), has, (way.names, about, _HARM))
        return
    for key in sorted({*had, *has}):
        if kind is Kind.ORDER and has.get(key, 0) >= had.get(key, 0):
            continue
        if has.get(key, 0) != had.get(key, 0):
            what = f"{key} {when}"
            counts = (str(had.get(key, 0)), str(has.get(key, 0)))
            numbers: tuple[str, ...] = (*counts, *(f"{number}x" for number in counts), "share", "shares")
            words: tuple[str, ...] = (key,)
            if kind is Kind.ORDER:
                # The label that is wrong in an order tells as much as the resource.
                words, numbers = (key, PLUGIN, MIG), (*numbers, *_HARM)
            yield Loss(kind, subject, what, *counts, (way.names, words, numbers))


_HARM: Final = (
    "no key",
    "does not start",
    "not start",
    "starts no more",
    "stops",
    "publishes none",
    "no GPUs",
    "order",
    "before",
)


def _operators(before: State, made: Mapping[Key, Body]) -> Iterator[Loss]:
    """A ClusterPolicy without an operator is of a kind that the API server does not know."""
    is_written = any(kind == "ClusterPolicy" for kind, _, _ in made)
    has_plugin = any("k8s-device-plugin" in json.dumps(body) for _, _, body in before.of("DaemonSet"))
    if is_written and has_plugin and not operator_of(before).is_there:
        tokens = (("ClusterPolicy", "GPU Operator", "chart"), ("DaemonSet", "device plugin", "device plugin's"))
        yield Loss(Kind.NO_OPERATOR, "ClusterPolicy", "operator", "the plugin's chart", "nothing", tokens)


# --- Work --------------------------------------------------------------------------------------------------------


def _work(before: State, after: State, old: Mapping[str, Node], new: Mapping[str, Node]) -> Iterator[Loss]:
    for template in templates(before):
        if template.kind == "DaemonSet" or (template.uses_gpus and not fits(template, old, before)):
            continue
        known = {found.rule for found in refusals(template, before)}
        owner = ((template.name,), (template.namespace,))
        for found in refusals(template, after):
            if found.rule not in known:
                tokens = (*owner, found.words)
                yield Loss(Kind.REFUSED, template.title, found.rule, "runs", "refused", tokens)
        if template.uses_gpus and not fits(template, new, after):
            why, words = _why_not(template, old, new, before, after)
            yield Loss(Kind.NO_NODE, template.title, why, "runs", "has no node", (*owner, words))


def _why_not(
    template: Template, old: Mapping[str, Node], new: Mapping[str, Node], before: State, after: State
) -> tuple[str, tuple[str, ...]]:
    """The first part of the nodes that keeps the pods off, and words for it."""
    suited = {name: new[name] for name in fits(template, old, before)}
    published = {name: replace(node, published=old[name].published) for name, node in suited.items()}
    if fits(template, published, after):
        return "resources", tuple(template.asks)
    selected = {*(template.spec.get("nodeSelector") or {})} | {*_affinity_keys(template)}
    moved = {
        key for name, node in suited.items() for key in selected if node.labels.get(key) != old[name].labels.get(key)
    }
    if moved:
        return "labels", tuple(sorted(moved))
    if any(len(node.taints) > len(old[name].taints) for name, node in suited.items()):
        return "taints", ("taint", "taints", "toleration")
    if template.spec.get("schedulerName") == "kai-scheduler":
        return "node pool", (NODE_POOL,)
    return "flavors", ("ResourceFlavor", "flavor", "flavors", "no node", QUEUE, "queue")


def _affinity_keys(template: Template) -> Iterator[str]:
    required = inside(template.spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    for term in required.get("nodeSelectorTerms") or ():
        yield from (found["key"] for found in term.get("matchExpressions") or ())


# --- Queues ------------------------------------------------------------------------------------------------------


def _local_queues(before: State, after: State) -> Iterator[Loss]:
    for namespace, name, body in after.of("LocalQueue"):
        leads = body["spec"]["clusterQueue"]
        known = before.find("LocalQueue", name, namespace)
        was = inside(known, "spec").get("clusterQueue") if known else None
        subject = f"LocalQueue {namespace}/{name}"
        if known and was != leads:
            yield Loss(
                Kind.LOCAL_QUEUE, subject, "clusterQueue", str(was), leads, ((namespace,), (name,), (str(was), leads))
            )
        elif not known and name == "default":
            loose = [
                found.name
                for found in templates(before)
                if (found.namespace, found.queue) == (namespace, "") and found.uses_gpus and queue_of(found, after)
            ]
            if loose:
                tokens = ((namespace,), ("default",), ("LocalQueue", "queue", "queued", "queues"))
                yield Loss(Kind.DEFAULT_QUEUE, subject, "work without a label", "not queued", leads, tokens)
        queue = after.find("ClusterQueue", leads)
        if (
            known
            and queue
            and not _admits(queue, after, namespace)
            and _admits(before.find("ClusterQueue", str(was)), before, namespace)
        ):
            yield Loss(Kind.QUEUE_SHUT, subject, "namespaceSelector", "open", "closed", ((namespace,), (leads,)))


def _admits(queue: Body, state: State, namespace: str) -> bool:
    """A queue without a selector takes no namespace, one with an empty selector takes all."""
    selector = (queue.get("spec") or {}).get("namespaceSelector")
    return selector is not None and selects(selector, state.namespaces.get(namespace, {}))


def _cluster_queues(before: State, after: State, old: Mapping[str, Node], new: Mapping[str, Node]) -> Iterator[Loss]:
    for _, name, body in before.of("ClusterQueue"):
        was, now = body["spec"], after.find("ClusterQueue", name)["spec"]
        subject, of = f"ClusterQueue {name}", (name,)
        for (label, kind), read_part in _NUMBERS.items():
            had, has = read_part(was), read_part(now)
            for resource in sorted(set(had) & set(has)):
                is_less = has[resource] != had[resource] if kind is Kind.LENDS else has[resource] < had[resource]
                if is_less:
                    values = (_amount(had[resource]), _amount(has[resource]))
                    yield Loss(kind, subject, f"{label} of {resource}", *values, (of, (resource, label)))
        for resource in sorted(set(_nominal(was)) - set(_nominal(now))):
            yield Loss(Kind.NOT_COVERED, subject, resource, "counted", "not counted", (of, (resource,)))
        yield from _reached(name, (before, was, old), (after, now, new))
        one, other = (spec.get("cohortName") or spec.get("cohort") or "none" for spec in (was, now))
        if one != other:
            yield Loss(Kind.COHORT, subject, "cohort", one, other, (of, ("cohort", "cohortName", "spec.cohortName")))
        for setting, usual in _SETTINGS.items():
            values = tuple(_with_defaults(spec.get(setting), usual) for spec in (was, now))
            if values[0] != values[1]:
                words = (setting, f"spec.{setting}", *_SETTING_WORDS.get(setting, ()))
                yield Loss(Kind.QUEUE_SETTING, subject, setting, spelt(values[0]), spelt(values[1]), (of, words))


def _amount(value: Fraction | None) -> str:
    return "any" if value is None or value == _ANY else spelt(value)


_ANY: Final = Fraction(10**30)


def _cells(spec: Body) -> Iterator[tuple[str, Body]]:
    for group in spec.get("resourceGroups") or ():
        for flavor in group["flavors"]:
            for cell in flavor["resources"]:
                yield flavor["name"], cell


def _nominal(spec: Body) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for _, cell in _cells(spec):
        found[cell["name"]] = found.get(cell["name"], Fraction(0)) + quantity(cell["nominalQuota"])
    return found


def _reach(spec: Body) -> dict[str, Fraction]:
    """What it may use when its cohort lends; nothing is lent outside of a cohort."""
    found: dict[str, Fraction] = {}
    is_alone = not (spec.get("cohortName") or spec.get("cohort"))
    for _, cell in _cells(spec):
        borrowed = Fraction(0) if is_alone else quantity(cell["borrowingLimit"]) if "borrowingLimit" in cell else _ANY
        total = found.get(cell["name"], Fraction(0)) + quantity(cell["nominalQuota"]) + borrowed
        found[cell["name"]] = min(total, _ANY)
    return found


def _lent(spec: Body) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    if spec.get("cohortName") or spec.get("cohort"):
        for _, cell in _cells(spec):
            lent = quantity(cell["lendingLimit"]) if "lendingLimit" in cell else quantity(cell["nominalQuota"])
            found[cell["name"]] = found.get(cell["name"], Fraction(0)) + lent
    return found


_NUMBERS: Final = {
    ("nominalQuota", Kind.NOMINAL): _nominal,
    ("borrowingLimit", Kind.REACH): _reach,
    ("lendingLimit", Kind.LENDS): _lent,
}


def _reached(
    name: str, one: tuple[State, Body, Mapping[str, Node]], other: tuple[State, Body, Mapping[str, Node]]
) -> Iterator[Loss]:
    """By resource the nodes on which a queue has quota."""
    had, has = (_nodes_of(*found) for found in (one, other))
    for resource in sorted(set(had) & set(has)):
        if gone := had[resource] - has[resource]:
            flavors = tuple(flavor for flavor, cell in _cells(other[1]) if cell["name"] == resource)
            values = (f"{len(had[resource])} nodes", f"without {', '.join(sorted(gone)[:3])}")
            words = ("nodeLabels", "spec.nodeLabels", "node", "nodes", resource)
            yield Loss(Kind.FLAVOR_NODES, f"ClusterQueue {name}", resource, *values, ((name, *flavors), words))


def _nodes_of(state: State, spec: Body, nodes: Mapping[str, Node]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for flavor, cell in _cells(spec):
        wanted = inside(state.find("ResourceFlavor", flavor), "spec", "nodeLabels")
        is_alone = not (spec.get("cohortName") or spec.get("cohort"))
        if quantity(cell["nominalQuota"]) or not (is_alone or str(cell.get("borrowingLimit")) == "0"):
            has_some = {
                node.name
                for node in nodes.values()
                if all(node.labels.get(key) == value for key, value in wanted.items())
                and (not cell["name"].startswith(PREFIX) or node.published.get(cell["name"]))
            }
            found.setdefault(cell["name"], set()).update(has_some)
    return found


_SETTINGS: Final[Mapping[str, Any]] = {
    "preemption": {
        "reclaimWithinCohort": "Never",
        "withinClusterQueue": "Never",
        "borrowWithinCohort": {"policy": "Never"},
    },
    "queueingStrategy": "BestEffortFIFO",
    "stopPolicy": "None",
    "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
    "admissionChecks": [],
    "fairSharing": {},
}
"""The settings of a ClusterQueue and the defaults of Kueue's API."""
_SETTING_WORDS: Final = {"flavorFungibility": ("fungibility",), "fairSharing": ("weight", "fair sharing")}


def _with_defaults(value: Any, usual: Any) -> Any:
    if isinstance(usual, Mapping):
        found = {**usual, **(value or {})}
        return {key: "MayStopSearch" if part in ("Borrow", "Preempt") else part for key, part in found.items()}
    return usual if value is None else value


def _kai_queues(before: State, after: State) -> Iterator[Loss]:
    """A queue may become one for each node pool: those that show its name count together.

    Where it had no limit, none of them has one.
    """
    tokens: tuple[tuple[str, ...], ...]
    for _, name, body in before.of("Queue"):
        ours = [
            found
            for _, title, found in after.of("Queue")
            if title == name or (title not in _titles(before) and _shown(title, found) == name)
        ]
        for resource in ("gpu", "cpu", "memory"):
            was = inside(body, "spec", "resources", resource)
            now = [inside(found, "spec", "resources", resource) for found in ours]
            for part, kind in (("quota", Kind.NOMINAL), ("limit", Kind.REACH)):
                had, each = _bound(was.get(part, 0)), [_bound(found.get(part, 0)) for found in now]
                has = min(each) if had == _ANY else sum(each, Fraction(0))
                if has < had:
                    tokens = ((name,), (part, f"spec.resources.{resource}.{part}", f"{resource}.{part}"))
                    yield Loss(kind, f"Queue {name}", f"{part} of {resource}", _amount(had), _amount(has), tokens)
            weights = {found.get("overQuotaWeight", 0) for found in now}
            if weights != {was.get("overQuotaWeight", 0)}:
                tokens = ((name,), ("overQuotaWeight", "weight"))
                old = spelt(was.get("overQuotaWeight", 0))
                yield Loss(
                    Kind.QUEUE_SETTING, f"Queue {name}", f"weight of {resource}", old, spelt(sorted(weights)), tokens
                )
        parent = inside(body, "spec").get("parentQueue", "")
        parents = {
            _shown(above, after.find("Queue", above)) if above not in _titles(before) else above
            for above in (inside(found, "spec").get("parentQueue", "") for found in ours)
        }
        if parents != {parent}:
            tokens = ((name,), ("parentQueue", "spec.parentQueue", "parent"))
            yield Loss(Kind.QUEUE_SETTING, f"Queue {name}", "parent", parent, spelt(sorted(parents)), tokens)
        for setting, usual in (("priority", 100), ("preemptMinRuntime", ""), ("reclaimMinRuntime", "")):
            had = inside(body, "spec").get(setting, usual)
            if any(inside(found, "spec").get(setting, usual) != had for found in ours):
                tokens = ((name,), (setting, f"spec.{setting}"))
                yield Loss(Kind.QUEUE_SETTING, f"Queue {name}", setting, spelt(had), "another", tokens)


def _titles(state: State) -> set[str]:
    return {name for _, name, _ in state.of("Queue")}


def _shown(title: str, body: Body) -> str:
    pool = labels(body).get(NODE_POOL, "")
    return title.removesuffix(f"-{pool}") if pool else title


def _bound(value: object) -> Fraction:
    return _ANY if str(value) == "-1" else quantity(value)


# --- The rest ----------------------------------------------------------------------------------------------------

_ENFORCE: Final = "pod-security.kubernetes.io/enforce"


def _namespaces(before: State, after: State) -> Iterator[Loss]:
    for name, marks in before.namespaces.items():
        was, now = marks.get(_ENFORCE, "none"), after.namespaces[name].get(_ENFORCE, "none")
        if was != now:
            tokens = ((name,), (_ENFORCE, "Pod Security", "pod-security"))
            yield Loss(Kind.POD_SECURITY, f"Namespace {name}", _ENFORCE, was, now, tokens)


def _priorities(before: State, after: State) -> Iterator[Loss]:
    for _, name, body in before.of("PriorityClass"):
        other = after.find("PriorityClass", name)
        for part in ("value", "preemptionPolicy", "globalDefault"):
            if body.get(part) != other.get(part):
                tokens = ((name,), (part, "PriorityClass"))
                yield Loss(
                    Kind.PRIORITY, f"PriorityClass {name}", part, spelt(body.get(part)), spelt(other.get(part)), tokens
                )


def _appearing(before: State, made: Mapping[Key, Body]) -> Iterator[Loss]:
    """What is created is told by its kind, for people want to know what else is in their cluster."""
    for kind, count in sorted(Counter(key[0] for key in made if key not in before.objects).items()):
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}es" if kind.endswith("ss") else f"{kind}s"
        tokens = ((kind, plural), ("creates", "create", "created", "adds", "new"))
        yield Loss(Kind.APPEARS, kind, "objects", "0", str(count), tokens)


# --- What a report tells -----------------------------------------------------------------------------------------


def breaths(findings: Sequence[Body], printed: str) -> list[str]:
    """The parts of a report that are read together: a finding, a line, or an indented line with what is below it."""
    found = [
        "\n".join(
            chain(
                filter(None, (finding.get(part) for part in ("message", "label", "help"))),
                finding.get("notes") or (),
                (item["text"] for item in finding.get("related") or ()),
            )
        )
        for finding in findings
    ]
    lines = printed.splitlines()
    for index, line in enumerate(lines):
        depth = _depth(line)
        below: list[str] = []
        for other in lines[index + 1 :] if depth else ():
            if not other.strip() or _depth(other) <= depth:
                break
            below.append(other)
        found.append("\n".join((line, *below)))
    return found


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def untold(found: Iterable[Loss], report: Sequence[str]) -> list[Loss]:
    """The losses that no breath of a report names."""
    return [loss for loss in found if not any(_tells(breath, loss) for breath in report)]


def _tells(breath: str, loss: Loss) -> bool:
    return all(any(names(breath, token) for token in group) for group in loss.tokens)


def names(text: str, token: str) -> bool:
    """Whether a text has a name or a word: `vision` is not in `vision-dev`, nor `nvidia.com/gpu` in its `.product`."""
    end = r"(?![\w-]|\.\w)" if "/" in token else r"(?![\w-])"
    return re.search(rf"(?<![\w-]){re.escape(token)}{end}", text) is not None
