"""What people ask of a field: is it traced, named in a diff, compared with a cluster, read back, shown?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from gpuplan.compiler.base.diagnostics import field_path
from tests.laws.fields.built import Built, build_all
from tests.laws.fields.examples import Example, policies_of
from tests.laws.tracing.judging import Judgement, judge_mutation
from tests.laws.tracing.rendered import Rendered, render

QUESTIONS: Final = ("trace", "diff", "drift", "import", "show", "report")


def unanswered(example: Example | None) -> Iterator[str]:
    """Yield each question without an answer, or `value` where nothing can be asked.

    A value that is not written cannot be traced, compared or read back.
    """
    if example is None:
        yield "value"
        return
    before, after = _built(example.platform), example.after
    clusters = [name for name, files in before.out.items() if files != after.out.get(name)]
    if example.is_written and not _is_traced(example):
        yield "trace"
    if clusters and not _is_named(example, before):
        yield "diff"
    if clusters and not any(_is_compared(before, after, name) for name in clusters):
        yield "drift"
    if clusters and all(before.imported(name) == after.imported(name) for name in clusters):
        yield "import"
    if before.shown == after.shown:
        yield "show"
    if before.page == after.page:
        yield "report"


@cache
def _built(platform: str) -> Built:
    built = build_all(policies_of(platform))
    assert built is not None, f"{platform} is not valid"
    return built


@cache
def _rendered(platform: str) -> Rendered:
    return render(policies_of(platform))


def _is_traced(example: Example) -> bool:
    """Whether each leaf that differs has a link to the value; of one that is left out, whether any leaf has."""
    judgement = Judgement()
    policies, rendered = policies_of(example.platform), _rendered(example.platform)
    if example.mutation is None:
        place = example.scalar.place
        objects = rendered.objects.values()
        return any(
            place == source.place for one in objects for leaf in one.leaves.values() for source in one.sources(leaf)
        )
    judge_mutation(policies, rendered, example.scalar, example.mutation, judgement)
    return not judgement.untraced


def _is_named(example: Example, before: Built) -> bool:
    """Whether `diff` has a change at the field, at one that it is part of, or at a part of it."""
    field = field_path(example.scalar.place.path)
    places = example.after.places_changed_from(before)
    return any(_is_part(place, field) or _is_part(field, place) for place in places)


def _is_part(place: str, whole: str) -> bool:
    return place == whole or place.startswith((f"{whole}.", f"{whole}["))


def _is_compared(before: Built, after: Built, cluster: str) -> bool:
    """Whether what was built before differs from the policies as they are now, other than from the earlier ones."""
    dump = before.dump(cluster)
    return before.differences(dump, cluster) != after.differences(dump, cluster)
