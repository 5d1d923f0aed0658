"""The place of each change is a line that the edit touched: every field of a platform of two layers is edited."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from functools import cache
from typing import NamedTuple

import pytest

from gpuplan.features.changes.step import is_of
from tests.features.changes.platform import State, between, load

HEAD = "apiVersion: gpuplan.dev/v1\nkind: KIND\nmetadata:\n  name: NAME\nspec:\n"


def _document(kind: str, name: str, spec: str) -> str:
    return HEAD.replace("KIND", kind).replace("NAME", name) + spec


CLUSTER = """\
  kubernetes: "1.34"
  scheduler:
    kind: kueue
  gpuOperator:
    install: helm
    version: v26.7.0
    migStrategy: mixed
    driver:
      version: 580.95.05
    values:
      dcgmExporter:
        enabled: true
  argocd:
    repoURL: https://git.example.com/platform/gpu.git
    path: out
    project: gpu
    destination:
      name: dev
    labels:
      team: platform
  monitoring:
    labels:
      release: prometheus
  nodeLabels: nfd
"""
SHARED = """\
  gpu: A100-80GB
  nodes:
    count: 3
    gpusPerNode: 8
    namePattern: shared-[0-9]+
  sharing:
    timeSlicing:
      replicas: 3
      rename: true
      failRequestsGreaterThanOne: true
  nodeLabels:
    example.com/rack: r1
  workloadTypes:
    - training
  taints:
    - key: nvidia.com/gpu
      value: shared
      effect: NoSchedule
    - key: example.com/team
      effect: NoSchedule
  topology:
    - example.com/block
    - kubernetes.io/hostname
  disruption:
    approval: manual
    maxUnavailable: 1
    windows:
      - schedule: "0 2 * * 6"
        duration: 4h
        timeZone: UTC
      - schedule: "0 2 * * 0"
        duration: 4h
    guard:
      image: registry.example.com/library/python:3.13-slim
      timeout: 30m
"""
DIVIDED = """\
  gpu: A100-80GB
  nodes:
    gpusPerNode: 8
    names:
      - gpu-1
      - gpu-2
    count: 2
  sharing:
    mig:
      layout: mixed
      strategy: mixed
"""
POLICIES = {
    "policies/pools.yaml": _document("Pool", "shared", SHARED) + "---\n" + _document("Pool", "divided", DIVIDED),
    "policies/layouts.yaml": _document(
        "MigLayout", "mixed", "  gpu: A100-80GB\n  instances:\n    3g.40gb: 1\n    2g.20gb: 2\n"
    ),
    "policies/classes.yaml": _document("PriorityClass", "urgent", "  value: 1000\n  preemptible: false\n")
    + "---\n"
    + _document("PriorityClass", "usual", "  value: 100\n  preempts: false\n  description: What can wait.\n"),
    "policies/tenants.yaml": _document(
        "Tenant",
        "science",
        """\
  namespaces:
    - science
    - lab
  priorityClasses:
    - urgent
    - usual
  workloadTypes:
    - training
  quotas:
    - pool: shared
      guaranteed: 8
      limit: 16
      lendable: 4
    - pool: divided
      unit: 2g.20gb
      guaranteed: 4
  surplus:
    weight: 2
  members:
    - readers
    - group: writers
      role: edit
  allow:
    podSecurity: baseline
    unitsPerContainer: 2
""",
    ),
    "policies/workloads.yaml": _document(
        "Workload",
        "chat",
        """\
  tenant: science
  namespace: science
  inference:
    port: 8000
    autoscaling:
      minReplicas: 1
      maxReplicas: 2
      requestsPerSecond: 20
  pool: divided
  unit: 2g.20gb
  priorityClass: urgent
  image: registry.example.com/chat:2.4.1
  args:
    - --model
    - /models/chat
  env:
    LEVEL: info
  cpu: "6"
  memory: 48Gi
""",
    ),
    "overlays/dev/cluster.yaml": _document("Cluster", "dev", CLUSTER),
    "overlays/dev/changes.yaml": _document(
        "Pool",
        "shared",
        """\
  nodes:
    count: 2
  taints:
    - key: nvidia.com/gpu
      value: dev
      effect: NoSchedule
    - key: example.com/dev
      effect: NoSchedule
  disruption:
    guard: null
    windows:
      - schedule: "0 3 * * 6"
        duration: 2h
""",
    )
    + "---\n"
    + _document("Pool", "divided", "  nodes:\n    count: 2\n  nodeLabels:\n    example.com/rack: r2\n")
    + "---\n"
    + _document("Tenant", "science", "  members:\n    - developers\n  allow:\n    unitsPerContainer: 1\n")
    + "---\n"
    + _document(
        "Workload",
        "chat",
        "  inference:\n    autoscaling:\n      maxReplicas: 3\n  env:\n    LEVEL: debug\n    MORE: x\n",
    ),
}

OTHERS: Mapping[str, tuple[str, ...]] = {
    "gpu": ("H100-80GB",),
    "kubernetes": ('"1.33"',),
    "kind": ("kubernetes", "kai"),
    "install": ("olm", "external"),
    "version": ("v26.3.0", "570.172.08"),
    "migStrategy": ("single",),
    "approval": ("automatic",),
    "effect": ("NoExecute",),
    "layout": ("halves",),
    "podSecurity": ("restricted",),
    "role": ("admin", "view"),
    "schedule": ('"0 4 * * 6"',),
    "duration": ("6h",),
    "timeout": ("40m",),
    "timeZone": ("Europe/Berlin",),
    "unit": ("3g.40gb",),
    "priorityClass": ("usual",),
    "cpu": ('"7"',),
    "memory": ("49Gi",),
    "image": ("registry.example.com/other:1.0.0",),
    "namePattern": ("shared-1[0-9]+",),
    "nodeLabels": ("external",),
    "repoURL": ("https://git.example.com/platform/other.git",),
}
"""What stands for a field instead; numbers are one more or less, words another word, unless the field is here."""


class Case(NamedTuple):
    path: str
    line: int
    text: str
    after: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.text.strip()} -> {' '.join(self.after).strip() or 'gone'}"


def _cases() -> Iterator[Case]:
    """Each line that says a value, with another one and without it; a block goes as a whole, and with all in it."""
    for path, text in POLICIES.items():
        lines = text.splitlines()
        for number, line in enumerate(lines, start=1):
            if line == "---" or re.match(r"apiVersion|kind|metadata|spec|  name:", line):
                continue
            if not _is_alone(lines, number - 1):
                yield Case(path, number, line, ())
            if found := re.fullmatch(r"(\s*(?:- )?(?:([\w./-]+): )?)(\S.*[^:]|\S)", line):
                yield from (
                    Case(path, number, line, (f"{found[1]}{value}",)) for value in _values(found[2] or "", found[3])
                )


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_alone(lines: list[str], index: int) -> bool:
    """Whether the line above opens a block, of which nothing is left without this one."""
    depth = _depth(lines[index])
    after = next((line for line in lines[index + 1 :] if _depth(line) <= depth), "")
    return _depth(lines[index - 1]) < depth > _depth(after)


def _values(key: str, value: str) -> Iterator[str]:
    if key in OTHERS:
        yield from OTHERS[key]
    elif value.isdigit():
        yield from (str(int(value) + 1), str(int(value) - 1))
    elif value in ("true", "false"):
        yield "false" if value == "true" else "true"
    else:
        yield f"{value}-more" if value != "null" else "{}"


def _edited(case: Case) -> dict[str, str]:
    """The files after an edit; what is indented below a line goes with it."""
    lines = POLICIES[case.path].splitlines()
    start, end = case.line - 1, case.line
    if not case.after:
        while end < len(lines) and _depth(lines[end]) > _depth(lines[start]):
            end += 1
    lines[start:end] = case.after
    return {**POLICIES, case.path: "\n".join(lines) + "\n"}


def _touched(before: str, after: str) -> tuple[set[int], set[int]]:
    """The lines of either text that the other one has not."""
    old, new = before.splitlines(), after.splitlines()
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    parts = [code for code in codes if code[0] != "equal"]
    return (
        {line + 1 for _, start, end, _, _ in parts for line in range(start, end)},
        {line + 1 for _, _, _, start, end in parts for line in range(start, end)},
    )


@cache
def _original() -> State:
    return load(POLICIES)


class Place(NamedTuple):
    """Where a change is said to come from; ``is_later`` where the file is meant as it is after the edit."""

    subject: str
    path: str
    line: int
    is_later: bool


def _places(texts: Mapping[str, str], before: Mapping[str, str] | None = None) -> list[Place]:
    """The places of all changes; none where what is edited is wrong then."""
    state = load(texts)
    if state.errors:
        return []
    (plan,) = state.plans
    found = []
    compared = between(load(before) if before else _original(), state)
    for change in compared.changes:
        file, span, _ = change.at.locate()
        found.append(Place(change.subject.name, file.path, span.start.line, is_of(plan, change.at)))
    for item in compared.objects:
        assert item.at is not None, item
        file, span, _ = item.at.locate()
        found.append(Place(item.identity.name, file.path, span.start.line, not item.is_earlier))
    return found


def _edit(path: str, old: str, new: str) -> dict[str, str]:
    assert POLICIES[path].count(old) == 1
    return {**POLICIES, path: POLICIES[path].replace(old, new)}


def _line(path: str, text: str) -> int:
    return POLICIES[path][: POLICIES[path].index(text)].count("\n") + 1


POOLS, OVERLAY = "policies/pools.yaml", "overlays/dev/changes.yaml"


def test_the_platform_has_no_errors() -> None:
    assert load(POLICIES).errors == ()


def test_an_edit_below_an_overlay_that_sets_something_else_is_said_where_it_was_made() -> None:
    found = _places(_edit(POOLS, "replicas: 3", "replicas: 4"))

    line = _line(POOLS, "replicas: 3")
    assert found == [Place("dev", POOLS, line, True), Place("shared", POOLS, line, True)]


def test_an_edit_of_an_overlay_is_said_there() -> None:
    found = _places(_edit(OVERLAY, "    count: 2\n  taints", "    count: 3\n  taints"))

    assert {place[1:] for place in found} == {(OVERLAY, _line(OVERLAY, "count: 2\n  taints"), True)}


def test_an_edit_of_another_base_is_said_there() -> None:
    other = "more/pools.yaml"
    files = {(other if path == POOLS else path): text for path, text in POLICIES.items()}
    cluster = "overlays/dev/cluster.yaml"
    files[cluster] = files[cluster].replace("spec:\n", "spec:\n  bases: [policies, more]\n")
    edited = {**files, other: files[other].replace("replicas: 3", "replicas: 4")}

    assert {place[1:] for place in _places(edited, files)} == {(other, _line(POOLS, "replicas: 3"), True)}


def test_what_an_overlay_no_longer_sets_is_said_where_it_did() -> None:
    found = _places(_edit(OVERLAY, "      maxReplicas: 3\n", "      minReplicas: 1\n"))

    assert found == [Place("chat", OVERLAY, _line(OVERLAY, "maxReplicas"), False)]


def test_what_an_overlay_no_longer_takes_out_is_said_where_it_did() -> None:
    found = _places(_edit(OVERLAY, "    guard: null\n", ""))

    assert {place[1:] for place in found} == {(OVERLAY, _line(OVERLAY, "guard"), False)}


def test_what_a_null_takes_out_is_said_at_the_null() -> None:
    found = _places(_edit(OVERLAY, "        duration: 2h\n", "        duration: 2h\n  topology: null\n"))

    line = _line(OVERLAY, "duration: 2h") + 1
    assert {place[1:] for place in found} == {(OVERLAY, line, True)}


def test_a_document_that_an_overlay_takes_away_is_said_there() -> None:
    removal = "\n---\napiVersion: gpuplan.dev/v1\nkind: Workload\nmetadata:\n  name: chat\n  $patch: delete\n"
    files = {**POLICIES, OVERLAY: POLICIES[OVERLAY][: POLICIES[OVERLAY].rindex("\n---")] + removal}

    line = files[OVERLAY].count("\n")
    assert _places(files) == [Place("chat", OVERLAY, line, True)]
    assert _places(POLICIES, files) == [Place("chat", OVERLAY, line, False)]


def test_an_item_that_goes_is_said_where_it_was() -> None:
    found = _places(_edit(OVERLAY, "    - key: nvidia.com/gpu\n      value: dev\n      effect: NoSchedule\n", ""))

    assert {place[1:] for place in found} == {(OVERLAY, _line(OVERLAY, "- key: nvidia.com/gpu"), False)}


def test_what_follows_from_another_document_is_said_there() -> None:
    path = "policies/layouts.yaml"
    found = _places(_edit(path, "    2g.20gb: 2\n", "    2g.20gb: 1\n    1g.10gb: 1\n"))

    assert {place.subject for place in found} == {"dev", "divided"}
    assert {place[1:] for place in found} == {(path, _line(path, "2g.20gb"), True)}


def test_each_of_several_edits_is_said_of_what_comes_of_it() -> None:
    text = POLICIES[POOLS].replace("replicas: 3", "replicas: 4").replace("example.com/rack: r1", "example.com/rack: r9")
    found = _places({**POLICIES, POOLS: text})

    lines = [place.line for place in found if place.subject == "shared"]
    assert sorted(lines) == [_line(POOLS, "replicas: 3"), _line(POOLS, "example.com/rack")]


def test_what_restarts_the_operator_is_said_where_its_files_change() -> None:
    pools = POLICIES[POOLS].replace("replicas: 3", "replicas: 4").replace("gpu-1", "gpu-3")
    classes = POLICIES["policies/classes.yaml"].replace("value: 1000", "value: 1001")
    cluster = POLICIES["overlays/dev/cluster.yaml"].replace("team: platform", "team: gpu")
    overlay = POLICIES[OVERLAY].replace("duration: 2h", "duration: 3h")
    edits = {"policies/classes.yaml": classes, "overlays/dev/cluster.yaml": cluster, OVERLAY: overlay, POOLS: pools}

    assert Place("dev", POOLS, _line(POOLS, "replicas: 3"), True) in _places({**POLICIES, **edits})


@pytest.mark.parametrize("case", list(_cases()), ids=str)
def test_a_change_is_said_at_a_line_that_was_edited(case: Case) -> None:
    texts = _edited(case)
    old, new = _touched(POLICIES[case.path], texts[case.path])

    for place in _places(texts):
        assert place.path == case.path
        assert place.line in (new if place.is_later else old)
