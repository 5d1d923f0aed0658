"""The reference pages of the documentation, made of what the code knows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter

import click

from gpuplan.cli.views.explain import facts_of, field_name, how_to_ignore, meaning
from gpuplan.compiler.base.diagnostics import Rule
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.catalog.frameworks import Framework, Held, frameworks
from gpuplan.compiler.catalog.schedulers import Capability, Support, concepts, release_read
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.compiler.policy.fields import FieldDoc
from gpuplan.terminal.catalog import PROFILE_HEADINGS, derived_facts, gpu_row, layout_rows, product_labels, profile_rows
from gpuplan.terminal.markdown import fenced, markdown_table

NOTICE = "<!-- Written by tools/generate.py; change what it is made of instead. -->\n\n"
_HELP_WIDTH = 80
_CODE = regex(r"\bGPU\d{3}\b")


# --- Rules -------------------------------------------------------------------------------------------------------


def rule_document(rule: Rule, refused: str = "", accepted: str = "", near: Sequence[Rule] = ()) -> str:
    """Return a rule's page: its meaning, the reason, the alternative, an example, and the rules with codes ``near``.

    The example is a policy that breaks the rule, and the nearest one that does not; either may be empty.
    """
    parts = [f"# {rule.code} {rule.name}", f"*{rule.severity.value.capitalize()}.*", rule.docs.strip()]
    shown = (("## Example\n\nReported", refused), ("Fine", refused and accepted))
    parts += [f"{title}:\n\n{fenced(text, 'yaml')}" for title, text in shown if text]
    links = "".join(f"- [{other.code} {other.name}]({other.code}.md)\n" for other in near)
    more = f"`gpuplan explain {rule.code}` prints this page.\n\n{links}- [All rules](index.md)"
    return NOTICE + "\n\n".join([*parts, "## Exceptions", how_to_ignore(rule), "## See also", more]) + "\n"


def rules_document(rules: Sequence[Rule], headings: Mapping[str, str]) -> str:
    """Return the list of all rules, below ``headings``: each by the first code of its group."""
    parts = ["# Rules", "Every finding carries its rule's code. A code is never used again for something else."]
    for start, end in pairwise((*headings, "GPUX")):
        first, behind = (bisect_left(rules, code, key=attrgetter("code")) for code in (start, end))
        rows = [
            (f"[{rule.code}]({rule.code}.md)", rule.name, rule.severity.value, rule.summary)
            for rule in rules[first:behind]
        ]
        parts.append(f"## {headings[start]}\n\n{_table(('Code', 'Name', 'Severity', 'Meaning'), rows)}".rstrip())
    return NOTICE + "\n\n".join(parts) + "\n"


# --- Command line ------------------------------------------------------------------------------------------------


def cli_document(group: click.Group) -> str:
    """Return the text of `--help`, for the command and for each verb."""
    root = click.Context(group, info_name="gpuplan", terminal_width=_HELP_WIDTH, **group.context_settings)
    parts = [f"# Command line\n\n{fenced(group.get_help(root), 'text')}"]
    for verb in group.list_commands(root):
        command = group.get_command(root, verb)
        if command is not None:
            context = click.Context(command, info_name=verb, parent=root, **command.context_settings)
            parts.append(f"## gpuplan {verb}\n\n{fenced(command.get_help(context), 'text')}")
    return NOTICE + "\n\n".join(parts) + "\n"


# --- Catalog -----------------------------------------------------------------------------------------------------


def catalog_document(gpus: Sequence[Gpu]) -> str:
    """All GPU models, and the MIG profiles and layouts of those that can be partitioned."""
    rows = [(f"[{gpu.id}](#{gpu.id.lower()})", *gpu_row(gpu)[1:]) for gpu in gpus]
    overview = _table(("GPU", "Architecture", "Memory", "MIG profiles", "Name"), rows)
    return f"{NOTICE}# GPU models\n\n{overview}\n" + "\n".join(_gpu_section(gpu) for gpu in gpus)


def _gpu_section(gpu: Gpu) -> str:
    parts = [f"## {gpu.id}\n\n{gpu.name}.\n"]
    parts.append("".join(f"- {label}\n" for label in product_labels(gpu, "`")))
    if gpu.supports_mig and not gpu.is_complete:
        parts.append(f"MIG layouts cannot be judged: {gpu.incomplete_reason}.\n")
    if gpu.profiles:
        parts.append(_table(PROFILE_HEADINGS, profile_rows(gpu)))
        layouts = "".join(f"{drawing:<{2 * gpu.memory_slices + 1}}  {layout}\n" for drawing, layout in layout_rows(gpu))
        parts.append(f"Layouts without room for another instance:\n\n{fenced(layouts, 'text')}\n")
    remarks = [*gpu.notes, *(f"Inferred, not read: {fact}" for fact in derived_facts(gpu))]
    remarks += [*(f"Not certain: {doubt}" for doubt in gpu.uncertain)]
    parts.append("".join(f"- {remark}\n" for remark in remarks))
    parts.append(f"Sources, read {gpu.read_on}:\n\n" + "".join(f"- {source.citation}\n" for source in gpu.sources))
    return "\n".join(part for part in parts if part)


# --- Schedulers --------------------------------------------------------------------------------------------------


def schedulers_document() -> str:
    """Return an overview of what each scheduler keeps of a policy, and how each keeps it."""
    rows = []
    for concept in concepts():
        kind, _, path = concept.field.partition(".")
        page = f"[`{concept.field}`](fields/{kind}.md)" if path else f"`{concept.field}`"
        rows.append((concept.title, page, *(_support(concept.capabilities[name]) for name in SCHEDULERS)))
    text = (
        "This page lists everything that a policy can ask for, and whether each scheduler supports it: **yes**, in "
        "part, or not at all. *If configured* marks features that need the scheduler's own configuration, a question "
        "mark features that are not certain.\n\n"
        "`gpuplan explain scheduler/kueue` prints one scheduler, and `gpuplan show --scheduler kai` compares a "
        "cluster's scheduler with another one for your policies. A feature that is lost is a finding, or an error with "
        "`onLoss: refuse`.\n\n"
    )
    overview = _table(("Feature", "Field", *(found.title for found in SCHEDULERS.values())), rows)
    return f"{NOTICE}# Schedulers\n\n{text}{overview}\n" + "\n".join(
        (*(_scheduler_section(name) for name in SCHEDULERS), _frameworks_section())
    )


def _support(kept: Capability) -> str:
    word = {Support.EXACT: "**yes**", Support.LOSSY: "in part", Support.IMPOSSIBLE: "no"}[kept.support]
    return f"{word}{', if configured' if kept.setting else ''}{' (?)' if kept.is_uncertain else ''}"


def _scheduler_section(name: str) -> str:
    rows = [
        (
            concept.title,
            _support(kept),
            ". ".join(fact[:1].upper() + fact[1:] for fact in facts_of(kept)),
            f"[source]({kept.source})" if kept.source else "",
        )
        for concept, kept in ((concept, concept.capabilities[name]) for concept in concepts())
    ]
    table = _table(("Feature", "Supported", "How", "Source"), rows)
    return f"## {SCHEDULERS[name].title}\n\nAs read in {release_read(name)}.\n\n{table}"


def _frameworks_section() -> str:
    """The kinds of work that Kueue knows."""
    text = (
        "Pods always go through Kueue's queues. `scheduler.kueue.frameworks` names the kinds, beside Jobs, that Kueue "
        "admits as a whole; kinds that a controller makes of another kind are included. *Suspended* objects make "
        "no pods before they are admitted; other kinds make pods that wait at a scheduling gate.\n\n"
    )
    rows = [
        (
            found.kind if found.always else f"`{found.kind}`",
            f"`{found.integration}`",
            "suspended" if found.held is Held.OWNER else "its pods wait",
            ", ".join(found.makes),
            "always" if found.always else found.since,
            f"[source]({found.source})",
        )
        for found in frameworks().values()
    ]
    return (
        f"## Kinds of work with Kueue\n\n{text}"
        + _table(("Kind", "Kueue's name", "Until it is admitted", "Comes with", "Since", "Read in"), rows)
        + "".join(_filled_section(found) for found in frameworks().values() if found.fills)
    )


def _filled_section(framework: Framework) -> str:
    """Return the releases of Kueue and of a kind's own controller that fit each other."""
    text = (
        f"When Kueue admits a {framework.kind}, it fills in a field that some releases of {framework.project} have. "
        f"If the definition does not have the field, the field is dropped, and the {framework.kind} never starts.\n\n"
    )
    rows = [(filled.since, f"`{filled.field}`", filled.releases) for filled in framework.fills]
    return f"\n### {framework.kind}s and {framework.project}\n\n{text}" + _table(
        ("Kueue from", "Fills in", framework.project), rows
    )


# --- Fields ------------------------------------------------------------------------------------------------------


def fields_document(kind: FieldDoc, example: str) -> str:
    """Return all fields of a kind: an example, and a section for each field that has fields of its own."""
    parts = [f"# {kind.path}", kind.description, fenced(example, "yaml"), *_field_sections(kind)]
    return NOTICE + "\n\n".join(parts) + "\n"


def _field_sections(field: FieldDoc) -> Iterable[str]:
    items = "\n".join(map(_field_item, field.children))
    yield f"## {field.path}\n\n{items}" if "." in field.path else items
    for child in field.children:
        if child.children:
            yield from _field_sections(child)


def _field_item(field: FieldDoc) -> str:
    name = f"`{field_name(field)}`"
    shown = f"[{name}](#{field.path.lower().replace('.', '')})" if field.children else name
    absent = "required" if field.required else f"default `{field.default}`" if field.default else "optional"
    values = f" One of {listing(field.values, None, 'or')}." if len(field.values) > 1 else ""
    text = _CODE.sub(r"[\g<0>](../rules/\g<0>.md)", meaning(field))
    return f"- **{shown}**: {field.type}, {absent}. {text}{values}"


# --- Markdown ----------------------------------------------------------------------------------------------------


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = ((cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in rows)
    return markdown_table(headings, cells)
