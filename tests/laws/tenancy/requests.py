"""Requests of tenants and of what works for them, as data: each with what must come of it on each platform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from tests.laws.tenancy.boundaries import ALL_PLATFORMS, PLATFORMS

Object = dict[str, Any]

FOLDER: Final = Path(__file__).with_name("requests")
HOME: Final = "mallory"
"""The namespace that all of them are about."""
ADMITTED: Final = "admitted"
LATER: Final = "later"
"""What refuses an escape that nothing refuses yet."""
OTHERS: Final = ("RBAC", "API", "PodSecurity", "quota")
"""Who refuses beside admission rules."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request. It makes an object, changes, deletes or evicts the one that was made last, or is sent as it is."""

    verb: str
    who: str
    what: Mapping[str, Any]
    """What is made, the patch, the options of a deletion, or method, path and body of any other request."""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """Steps of one tenant on one platform. All but the last are let through; ``outcome`` is what comes of that one.

    It is `admitted`, the name of an admission rule, or one of `OTHERS`. ``ends`` is what then becomes of it in the
    cluster, where that is to be seen; an escape that is let in is ``harmless`` by what an attack of that name in
    `tests/cluster/attacks.py` shows. What ``comes_later`` is not so yet.
    """

    name: str
    platform: str
    steps: tuple[Step, ...]
    outcome: str
    ends: str
    harmless: str
    comes_later: bool

    @property
    def label(self) -> str:
        return f"{self.platform}: {self.name}"


@cache
def escapes() -> tuple[Case, ...]:
    """What a tenant may try, and what refuses it or makes it harmless."""
    return tuple(_cases("escapes"))


@cache
def legitimate() -> tuple[Case, ...]:
    """What a tenant, the platform, and controllers must be able to do."""
    return tuple(_cases("legitimate"))


def _cases(kind: str) -> Iterator[Case]:
    for path in sorted(FOLDER.glob(f"{kind}-*.yaml")):
        for row in _load(path):
            for platform in _platforms(row):
                yield _case(row, platform)


def _platforms(row: Mapping[str, Any]) -> Sequence[str]:
    by_platform = next((row[key] for key in ("refused", "ends") if isinstance(row.get(key), dict)), None)
    found: Sequence[str] = row.get("platforms") or list(by_platform or PLATFORMS)
    assert set(found) <= set(ALL_PLATFORMS), f"{row['name']}: {found}"
    return found


def _case(row: Mapping[str, Any], platform: str) -> Case:
    unknown = row.keys() - {
        "name",
        "platforms",
        "as",
        "steps",
        "refused",
        "ends",
        "harmless",
        "later",
        *_VERBS,
        *_OF_A_STEP,
    }
    assert not unknown, f"{row['name']}: {unknown}"
    steps = row.get("steps", [row])
    made = tuple(_step(step, platform, row.get("as", "edit")) for step in steps)
    outcome, ends = (_on(row.get(key, usual), platform, usual) for key, usual in (("refused", ADMITTED), ("ends", "")))
    return Case(
        row["name"],
        platform,
        made,
        outcome,
        ends,
        row.get("harmless", ""),
        outcome == LATER or platform in row.get("later", ()),
    )


_VERBS: Final = ("make", "change", "delete", "evict", "send")
_OF_A_STEP: Final = ("with", "also", "subresource")


def _step(row: Mapping[str, Any], platform: str, who: str) -> Step:
    [verb] = (verb for verb in _VERBS if verb in row)
    what = base(row["make"], platform) if verb == "make" else row[verb]
    patch = row.get("with", {})
    for changes in (patch, row.get("also", {}).get(platform, {})):
        what = merged(what, changes)
    return Step(verb, row.get("as", who), what, row.get("subresource", ""))


def _on(value: Any, platform: str, usual: str) -> str:
    return str(value.get(platform, usual) if isinstance(value, dict) else value)


def base(name: str, platform: str) -> Object:
    """An object that is right as it is on a platform."""
    row = _bases()[name]
    body: Object = base(row["of"], platform) if "of" in row else {}
    body = merged(body, row.get("body", {}))
    body = merged(body, row.get("also", {}).get(platform, {}))
    if "template" in row:
        pod = merged(base("pod", platform), row["template"].get("also", {}).get(platform, {}))
        pod = merged(pod, row["template"].get("with", {}))
        route, template = body, {"metadata": {**pod["metadata"]}, "spec": pod["spec"]}
        for key in ("name", "namespace"):
            template["metadata"].pop(key, None)
        for key in row["template"].get("at", ["spec", "template"])[:-1]:
            route = route.setdefault(key, {})
        last = row["template"].get("at", ["spec", "template"])[-1]
        route[last] = merged(template, route.get(last, {}))
    return body


def merged(body: Any, patch: Any) -> Any:
    """A merge patch (RFC 7386); one for a list whose items have names is a mapping by these names."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    if isinstance(body, list):
        items = {item["name"]: item for item in body}
        for name, change in patch.items():
            items[name] = merged(items.get(name, {"name": name}), change)
        return [item for item in items.values() if item is not None]
    found = deepcopy(body) if isinstance(body, dict) else {}
    for key, change in patch.items():
        if change is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), change)
    return found


@cache
def _bases() -> Mapping[str, Any]:
    found: Mapping[str, Any] = _load(FOLDER / "bases.yaml")
    return found


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
