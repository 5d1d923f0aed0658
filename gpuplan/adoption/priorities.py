"""Read priority classes."""

from __future__ import annotations

from typing import Any, Final

from gpuplan.adoption.draft import Draft, Found
from gpuplan.adoption.dump import Dump, Item
from gpuplan.adoption.rules import TEAM_SAID_IN_PART
from gpuplan.checks.handwritten.reading import text
from gpuplan.checks.priorities import SYSTEM_PREFIX
from gpuplan.diagnostics import Diagnostic, Finding
from gpuplan.planning.schedulers.kai import OWN_CLASSES

_GROUP: Final = "scheduling.k8s.io"
_KUEUE: Final = "kueue.x-k8s.io"


def read(dump: Dump) -> Found:
    """All but those of Kubernetes itself and of KAI-Scheduler's chart, whether anybody may use them or not.

    Kueue has classes of its own, which gpuplan writes beside each PriorityClass.
    """
    drafts: dict[str, Draft] = {}
    unsaid: list[Diagnostic] = []
    has_kueue = bool(dump.of_kind(_KUEUE, "ClusterQueue", "WorkloadPriorityClass"))
    for item in dump.of_kind(_GROUP, "PriorityClass"):
        value = item.body.get("value", 0)
        if _is_others(item) or not isinstance(value, int) or not item.name:
            continue
        remarks: tuple[str, ...] = ()
        if has_kueue and item.body.get("preemptionPolicy") != "Never":
            finding = _preempting(item)
            unsaid.append(TEAM_SAID_IN_PART.report(finding))
            remarks = (f"{finding.message}; {finding.help}",)
        drafts[item.name] = Draft(
            "PriorityClass", item.name, _spec(item, value, says_preempts=not has_kueue), (item.source,), remarks
        )
    for item in dump.of_kind(_KUEUE, "WorkloadPriorityClass"):
        value = item.body.get("value", 0)
        if not isinstance(value, int) or not item.name or item.name.startswith(SYSTEM_PREFIX):
            continue
        if item.name not in drafts:
            spec = {"value": value, **_description(item)}
            drafts[item.name] = Draft("PriorityClass", item.name, spec, (item.source,))
        elif drafts[item.name].spec["value"] != value:
            unsaid.append(TEAM_SAID_IN_PART.report(_other_value(item, drafts[item.name].spec["value"])))
    return Found(tuple(drafts[name] for name in sorted(drafts)), tuple(unsaid))


def _is_others(item: Item) -> bool:
    is_of_chart = OWN_CLASSES.get(item.name) == item.body.get("value")
    return item.name.startswith(SYSTEM_PREFIX) or is_of_chart


def _spec(item: Item, value: int, *, says_preempts: bool) -> dict[str, Any]:
    """With Kueue no class preempts by itself, whatever its policy says of its work."""
    preempts = {"preempts": False} if says_preempts and item.body.get("preemptionPolicy") == "Never" else {}
    default = {"default": True} if item.body.get("globalDefault") is True else {}
    return {"value": value, **preempts, **default, **_description(item)}


def _description(item: Item) -> dict[str, str]:
    description = text(item.body.get("description"))
    return {"description": description} if description else {}


def _preempting(item: Item) -> Finding:
    return Finding(
        item.at / ("preemptionPolicy" if "preemptionPolicy" in item.body else "value"),
        f"{item.title} has kube-scheduler evict pods, which gpuplan leaves to Kueue",
        label="`preemptionPolicy: Never` from the first sync on",
        notes=("the `preemptionPolicy` of a PriorityClass cannot be changed, and running pods keep their priority",),
        help=f"type `kubectl delete priorityclass {item.name}` right before the first sync, which makes it again",
    )


def _other_value(item: Item, value: int) -> Finding:
    return Finding(
        item.at / "value",
        f"{item.title} has another value than the PriorityClass of its name",
        label=f"the PriorityClass has {value}",
        notes=("gpuplan writes both with one value, and that of a PriorityClass cannot be changed",),
        help="rename one of them before the first sync",
    )
