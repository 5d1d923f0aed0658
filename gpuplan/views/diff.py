"""What the step from one platform to another disturbs, for people or for programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from gpuplan.changes.model import ObjectChange
from gpuplan.disturbance import ChangeClass
from gpuplan.manifests import Subject
from gpuplan.pipeline.comparing import Diff, Impact
from gpuplan.views.diff_words import MOST_LINES, Fact, facts, notes, place, seen_from, verdict
from gpuplan.views.full import frame
from gpuplan.views.rules import marked_up
from gpuplan.views.text import indent, printable
from gpuplan.views.theme import Style, Theme
from gpuplan.wording import count


def shown_diff(diff: Diff, format_: str, theme: Theme) -> str:
    """The difference as ``table``, ``markdown`` or ``json``."""
    match format_:
        case "json":
            from gpuplan.views.diff_json import diff_json

            return diff_json(diff, theme)
        case "markdown":
            from gpuplan.views.diff_markdown import diff_markdown

            return diff_markdown(diff, theme)
        case _:
            return diff_page(diff, theme)


def diff_page(diff: Diff, theme: Theme) -> str:
    """The verdict, each cluster's changes, worst first, and what is found about the step itself."""
    change_class, _, rest = verdict(diff).partition(":")
    head = f"{theme.paint(change_class, class_style(diff.worst))}:{rest}\n"
    head += "".join(f"{marked_up(printable(note), theme)}\n" for note in notes(diff))
    later = seen_from(diff.later.side, theme)
    findings = (frame(found, later, diff.clusters) for found in diff.findings)
    return "\n".join((head, *(_cluster(diff, name, theme) for name in diff.clusters), *findings))


def class_style(change_class: ChangeClass) -> Style:
    """Red from where pods must end, yellow where what runs goes on and something else does not."""
    if change_class.rank >= ChangeClass.REPARTITION.rank:
        return Style.ERROR
    if change_class.rank >= ChangeClass.PLUGIN_RESTART.rank:
        return Style.WARNING
    return Style.NOTE if change_class is not ChangeClass.NONE else Style.HELP


def _cluster(diff: Diff, name: str, theme: Theme) -> str:
    parts = list(_impacts(diff.of(name), diff, theme))
    parts += _objects([item for item in diff.objects if item.cluster == name], theme)
    return f"{theme.paint(printable(f'Cluster {name}'), Style.STRONG)}\n{indent(''.join(parts))}"


def _impacts(impacts: Iterable[Impact], diff: Diff, theme: Theme) -> Iterator[str]:
    """Each change; what was said of the same thing already is left out."""
    told: defaultdict[Subject, set[Fact]] = defaultdict(set)
    for impact in impacts:
        known = told[impact.change.subject]
        found = [fact for fact in facts(impact) if fact not in known]
        known.update(found)
        yield _heading(impact, diff, theme) + indent("".join(_fact(fact, theme) for fact in found), "    ")


def _heading(impact: Impact, diff: Diff, theme: Theme) -> str:
    change = impact.change
    kind = theme.paint(change.change_class, class_style(change.change_class))
    what = _text(f"{change.subject.kind} `{change.subject.name}`: {change.what}", theme)
    return f"{kind}  {what}  {theme.paint(printable(place(impact, diff, theme)), Style.FAINT)}\n"


def _fact(fact: Fact, theme: Theme) -> str:
    """The label stands before the first line only."""
    labels = (fact.about, *("" for _ in fact.lines[1:]))
    lines = zip(labels, fact.lines, strict=True)
    return "".join(f"{theme.paint(f'{label:<8}', Style.FAINT)}{_text(line, theme)}\n" for label, line in lines)


def _objects(objects: Sequence[ObjectChange], theme: Theme) -> Iterator[str]:
    for item in objects[:MOST_LINES]:
        kind = theme.paint(item.change_class, class_style(item.change_class))
        yield f"{kind}  {printable(f'{item.identity} is {item.verb} in {item.folder}/')}\n"
    if len(objects) > MOST_LINES:
        yield f"{count(len(objects) - MOST_LINES, 'more object')}\n"


def _text(text: str, theme: Theme) -> str:
    return marked_up(printable(text), theme)
