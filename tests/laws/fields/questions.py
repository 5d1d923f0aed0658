"""What people ask of a field: is it traced, named in a diff, compared with a cluster, read back, shown?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from tests.laws.fields.built import Built, build_all
from tests.laws.fields.examples import Example, policies_of
from tests.laws.tracing.judging import Judgement, judge_mutation
from tests.laws.tracing.rendered import Rendered, render

QUESTIONS: Final = ("trace", "diff", "drift", "import", "show", "report")


def unanswered(example: Example) -> Iterator[str]:
    """Yield each question without an answer; a value that is not written cannot be traced, compared or read back."""
    before, after = _built(example.platform), example.after
    clusters = [name for name, files in before.out.items() if files != after.out[name]]
    if example.is_written and not _is_traced(example):
        yield "trace"
    if clusters and not _is_named(example, before):
        yield "diff"
    if clusters and not any(_is_compared(before, after, name) for name in clusters):
        yield "drift"
    if clusters and all(_imported(before, name) == _imported(after, name) for name in clusters):
        yield "import"
    for command in ("show", "report"):
        if before.printed(command) == after.printed(command):
            yield command


@cache
def _built(platform: str) -> Built:
    built = build_all(policies_of(platform))
    assert built is not None, f"{platform} is not valid"
    return built


@cache
def _rendered(platform: str) -> Rendered:
    return render(policies_of(platform))


def _is_traced(example: Example) -> bool:
    """Whether each leaf that differs has a link to the value."""
    judgement = Judgement()
    policies, rendered = policies_of(example.platform), _rendered(example.platform)
    judge_mutation(policies, rendered, example.scalar, example.mutation, judgement)
    return not judgement.untraced


def _is_named(example: Example, before: Built) -> bool:
    """Whether `diff` has a change at the field, at one that it is part of, or at a part of it."""
    diff = json.loads(example.after.printed("diff", "--against", str(before.root), "-o", "json"))
    places = [change["location"]["path"] for cluster in diff["clusters"] for change in cluster["changes"]]
    route = [str(part) for part in example.scalar.place.path]
    return any(_is_along(place.replace("[", ".").replace("]", "").split("."), route) for place in places)


def _is_along(one: Sequence[str], other: Sequence[str]) -> bool:
    shorter = min(len(one), len(other))
    return shorter > 1 and [*one[:shorter]] == [*other[:shorter]]


def _is_compared(before: Built, after: Built, cluster: str) -> bool:
    """Whether what was built before differs from the policies as they are now, other than from the earlier ones."""
    arguments = ("drift", str(before.dump(cluster)), "-c", cluster, "--kustomize", "off", "-o", "json")
    return _differences(before, arguments) != _differences(after, arguments)


def _differences(built: Built, arguments: Sequence[str]) -> object:
    return json.loads(built.printed(*arguments))["differences"]


def _imported(built: Built, cluster: str) -> str:
    """Return the policies that are made of a dump of a cluster, for a platform that has none."""
    empty = built.root / "imported"
    empty.mkdir(exist_ok=True)
    return built.printed("-C", str(empty), "import", str(built.dump(cluster)), "-c", cluster, "--dry-run")
