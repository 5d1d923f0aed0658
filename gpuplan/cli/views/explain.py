"""The meaning of a word of gpuplan: a rule, a field of the policy language, a GPU model, or a scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from re import escape
from textwrap import fill
from typing import Final

from gpuplan.compiler.base.diagnostics import GpuplanError, RetiredRule, Rule
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import closest, listing, spelt_alike
from gpuplan.compiler.catalog import load
from gpuplan.compiler.catalog.schedulers import Capability, Concept, Needs, Support, concepts, release_read
from gpuplan.compiler.pipeline import rules
from gpuplan.compiler.pipeline.rules import RETIRED
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.compiler.policy.fields import FieldDoc, field_paths, find_field
from gpuplan.terminal.catalog import gpu_page
from gpuplan.terminal.fitting import Table
from gpuplan.terminal.json_findings import json_text
from gpuplan.terminal.options import OUTPUTS, SCHEMAS
from gpuplan.terminal.text import SEVERITY_STYLES, Style, Theme, marked_up, section

SCHEDULER: Final = "scheduler"
_FAMILY: Final = regex("GPU[0-9]{1,2}")
WIDEST: Final = 100
"""Prose in longer lines is hard to read."""


def explain(subject: str, theme: Theme) -> str:
    """The page of what a word means; trouble when it means nothing here."""
    known: tuple[Rule | RetiredRule, ...] = (*rules(), *RETIRED)
    for rule in known:
        if subject.lower() in (rule.code.lower(), rule.name):
            return rule_page(rule, theme) if isinstance(rule, Rule) else retired_page(rule, theme)
    family = subject.upper().rstrip("X")
    if _FAMILY.fullmatch(family) and (listed := [rule for rule in rules() if fnmatchcase(rule.code, f"{family}*")]):
        return rules_table(listed, theme)
    if gpu := load().find(subject.upper()):
        return gpu_page(gpu, theme)
    if subject.lower() in _schedulers():
        name = subject.lower().removeprefix(SCHEDULER).removeprefix("/")
        return scheduler_page(name, theme) if name else schedulers_table(theme)
    if field := find_field(subject):
        return field_page(field, theme)
    raise GpuplanError(f"nothing is called `{subject}`", _hint(subject))


def subjects() -> list[str]:
    """All that can be explained."""
    names = (name for rule in rules() for name in (rule.code, rule.name))
    lists = ("gpus", "rules", "schema", *(f"schema/{name}" for name in SCHEMAS))
    return [*names, *field_paths(), *load().ids(), *_schedulers(), *lists]


def _schedulers() -> list[str]:
    """The list of schedulers, and each of them."""
    return [SCHEDULER, *(f"{SCHEDULER}/{name}" for name in SCHEDULERS)]


def _hint(subject: str) -> str:
    known = subjects()
    if unit := _unit(subject.lower().removeprefix("nvidia.com/").removeprefix("mig-")):
        return unit
    code = subject.upper()[:3] + subject.upper()[3:].translate(_DIGITS)
    steps = subject.lower().replace("/", ".").split(".")
    told = {step.lower() for path in field_paths() for step in path.split(".")}
    spelt = [closest(step, told) or step for step in steps]
    for alike in (subject, subject.removesuffix("s"), code):
        if exact := spelt_alike(alike, known):
            return f"did you mean `{exact}`?"
    if field := _field_with(steps) or _field_with(spelt):
        return f"did you mean `{field}`?"
    near = [name for name in known if name.lower().endswith((f".{subject.lower()}", f"/{subject.lower()}"))]
    near += get_close_matches(subject, known, n=3)
    near = list(dict.fromkeys((*near, *load().suggest(subject))))
    if near:
        return f"did you mean {listing(near[:3], last='or')}?"
    return (
        "`gpuplan explain rules` and `gpuplan explain gpus` list rules and GPU models; fields start with a kind, as in"
        " `Pool.spec.sharing`"
    )


_DIGITS: Final = str.maketrans("OIL", "011")


def _field_with(steps: Sequence[str]) -> str:
    """Return the shortest field that has all steps of a path in their order, and ends with it; empty if several are."""
    way = regex(r"(.+\.)?" + r"s?(\..+)?\.".join(escape(step.removesuffix("s")) for step in steps) + "s?")
    found = [path for path in field_paths() if len(steps) > 1 and way.fullmatch(path.lower())]
    shortest = [path for path in found if path.count(".") == min(each.count(".") for each in found)]
    return shortest[0] if len(shortest) == 1 else ""


def _unit(name: str) -> str:
    """Return what to type about a unit of a GPU, as a resource of a node is called without its prefix."""
    if name in ("gpu", "gpu.shared"):
        how = "one of the shares of a GPU" if name == "gpu.shared" else "a whole GPU, or a share of one"
        return f"it is {how}: `gpuplan explain Pool.spec.sharing` lists the ways of sharing"
    if not (models := [gpu.id for gpu in load().all() if gpu.find_profile(name.replace(".me", "+me"))]):
        return ""
    return f"it is a MIG profile: `gpuplan explain {models[0]}` draws the profiles of {listing(models)}"


# --- Rules -------------------------------------------------------------------------------------------------------


def rules_table(rules: Sequence[Rule], theme: Theme) -> str:
    rows = [(rule.code, rule.severity, rule.name, rule.summary) for rule in rules]
    return Table(("CODE", "SEVERITY", "NAME", "MEANING"), rows).shown(theme)


def rules_json(rules: Sequence[Rule]) -> str:
    body = [
        {
            "code": rule.code,
            "name": rule.name,
            "severity": rule.severity.value,
            "ignorable": rule.ignorable,
            "summary": rule.summary,
            "docs": rule.docs.strip(),
        }
        for rule in rules
    ]
    return json_text({"format_version": "1.0", "rules": body})


def rule_page(rule: Rule, theme: Theme) -> str:
    """All that is known of a rule, for a terminal."""
    style = SEVERITY_STYLES[rule.severity]
    head = f"{theme.paint(f'{rule.severity}[{rule.code}]', style)} {theme.paint(rule.name, Style.STRONG)}\n\n"
    return head + marked_up(rule.docs.strip(), theme) + f"\n\n{how_to_ignore(rule)}\n"


def retired_page(rule: RetiredRule, theme: Theme) -> str:
    """Return the page of a rule that is gone, for those who meet its code in a comment or an old report."""
    head = f"{theme.paint(rule.code, Style.STRONG)} {theme.paint(rule.name, Style.STRONG)} is retired."
    gone = f"No release after {rule.after} has this rule. A comment that ignores it can go."
    return f"{head}\n\n{marked_up(rule.reason, theme)}\n\n{gone}\n"


def how_to_ignore(rule: Rule) -> str:
    if rule.ignorable:
        return f"Where it is right all the same, a comment says so: `# gpuplan: ignore[{rule.code}] the reason`."
    return "It cannot be ignored: there is nothing that gpuplan could do instead."


# --- Schemas -------------------------------------------------------------------------------------------------------


def schemas_table(theme: Theme) -> str:
    """Return a line for each JSON Schema: how to ask for it, and the documents that it describes."""
    meanings = {"policy": "any document", "overlay": "any document in an overlay, which may leave fields out"}
    meanings |= {name: f"the output of `gpuplan {verb} -o json`" for name, verb in OUTPUTS.items()}
    rows = [(f"schema/{name}", meanings.get(name, f"documents of the kind {name}")) for name in SCHEMAS]
    return Table(("SUBJECT", "SCHEMA OF"), rows).shown(theme)


# --- Fields ------------------------------------------------------------------------------------------------------


def field_page(field: FieldDoc, theme: Theme) -> str:
    """Return the page of a field: its meaning, the values that it may hold, and the fields in it."""
    parts = [f"{theme.paint(field.path, Style.STRONG)}  {holds(field)}\n", f"{_prose(meaning(field), theme)}\n"]
    if len(field.values) > 1:
        parts.append(f"One of {', '.join(field.values)}.\n")
    if field.children:
        lines = [f"{theme.paint('Fields', Style.STRONG)}\n"]
        for child in field.children:
            name = theme.paint(field_name(child), Style.NOTE)
            lines.append(f"  {name}  {holds(child)}\n{_prose(meaning(child), theme, '    ')}\n")
        parts.append("".join(lines))
    return "\n".join(parts)


def holds(field: FieldDoc) -> str:
    """The type of a field, whether it must be written, and what holds if it is not."""
    if field.required:
        return f"{field.type}, required" if "." in field.path else field.type
    return f"{field.type}, default {field.default}" if field.default else f"{field.type}, optional"


def meaning(field: FieldDoc) -> str:
    """Return the purpose of a field, and the form of its text or number."""
    return f"{field.description} {field.form}".rstrip()


def field_name(field: FieldDoc) -> str:
    return field.path.rpartition(".")[2]


def _prose(text: str, theme: Theme, indentation: str = "", less: int = 0) -> str:
    width = min(theme.width, WIDEST) - less
    wrapped = fill(text, width, initial_indent=indentation, subsequent_indent=indentation, break_on_hyphens=False)
    return marked_up(wrapped, theme)


# --- Schedulers --------------------------------------------------------------------------------------------------

HEADINGS: Final = {Support.EXACT: "Kept", Support.LOSSY: "Kept in part", Support.IMPOSSIBLE: "Not kept"}


def schedulers_table(theme: Theme) -> str:
    """One line for each scheduler: how much it keeps."""
    rows = [
        (
            f"scheduler/{name}",
            SCHEDULERS[name].title,
            release_read(name),
            *(str(sum(concept.capabilities[name].support is item for concept in concepts())) for item in Support),
        )
        for name in SCHEDULERS
    ]
    headings = ("SUBJECT", "SCHEDULER", "AS READ IN", *(heading.upper() for heading in HEADINGS.values()))
    return Table(headings, rows, right=(3, 4, 5)).shown(theme)


def scheduler_page(name: str, theme: Theme) -> str:
    """All that one scheduler keeps of what a policy can ask for, by how well."""
    head = f"{theme.paint(SCHEDULERS[name].title, Style.STRONG)}  as read in {release_read(name)}\n"
    parts = [head]
    for support in Support:
        found = [concept for concept in concepts() if concept.capabilities[name].support is support]
        text = "".join(_concept(concept, concept.capabilities[name], theme) for concept in found)
        parts.append(section(HEADINGS[support], text, theme))
    return "\n".join(filter(None, parts))


def _concept(concept: Concept, kept: Capability, theme: Theme) -> str:
    facts = "".join(f"{_prose(fact, theme, '  ', less=2)}\n" for fact in facts_of(kept))
    return f"{concept.title}  {theme.paint(concept.field, Style.NOTE)}\n{facts}"


def facts_of(kept: Capability) -> Iterator[str]:
    """Yield what a scheduler keeps something by, what it needs, what is lost, and whether that is certain."""
    if kept.how:
        yield f"by {kept.how}"
    if kept.needs is Needs.ADMISSION:
        yield "needs admission policies, which gpuplan writes"
    if kept.setting:
        yield f"needs {kept.setting}"
    if kept.loss:
        yield f"lost: {kept.loss}" if kept.how else kept.loss
    if kept.is_uncertain:
        yield "not certain"
