"""One answer to "what is this?": a rule, a field of the policy language, a GPU model, or a scheduler."""

from __future__ import annotations

from difflib import get_close_matches

from gpuplan.catalog import load
from gpuplan.diagnostics import GpuplanError, RetiredRule, Rule
from gpuplan.pipeline import rules
from gpuplan.pipeline.retired import RETIRED
from gpuplan.views.theme import Theme
from gpuplan.wording import listing

SCHEDULER = "scheduler"


def explain(subject: str, theme: Theme) -> str:
    """The page of what a word means; trouble when it means nothing here."""
    if rule := _find_rule(subject):
        from gpuplan.views.rules import rule_page

        return rule_page(rule, theme)
    if retired := _find_retired(subject):
        from gpuplan.views.rules import retired_page

        return retired_page(retired, theme)
    if gpu := load().find(subject.upper()):
        from gpuplan.views.catalog import gpu_page

        return gpu_page(gpu, theme)
    if subject.lower() in _schedulers():
        from gpuplan.views.schedulers import scheduler_page, schedulers_table

        name = subject.lower().removeprefix(SCHEDULER).removeprefix("/")
        return scheduler_page(name, theme) if name else schedulers_table()
    from gpuplan.policy.fields import find_field

    if field := find_field(subject):
        from gpuplan.views.fields import field_page

        return field_page(field, theme)
    raise GpuplanError(f"nothing is called `{subject}`", _hint(subject))


def _find_rule(subject: str) -> Rule | None:
    return next((rule for rule in rules() if subject.lower() in (rule.code.lower(), rule.name)), None)


def _find_retired(subject: str) -> RetiredRule | None:
    return next((rule for rule in RETIRED if subject.lower() in (rule.code.lower(), rule.name)), None)


def subjects() -> list[str]:
    """All that can be explained."""
    from gpuplan.policy.fields import field_paths

    names = (name for rule in rules() for name in (rule.code, rule.name))
    return [*names, *field_paths(), *load().ids(), *_schedulers()]


def _schedulers() -> list[str]:
    """The list of schedulers, and each of them."""
    from gpuplan.planning.schedulers import SCHEDULERS

    return [SCHEDULER, *(f"{SCHEDULER}/{name}" for name in SCHEDULERS)]


def _hint(subject: str) -> str:
    known = subjects()
    near = [name for name in known if name.lower().endswith((f".{subject.lower()}", f"/{subject.lower()}"))]
    near += get_close_matches(subject, known, n=3)
    near = list(dict.fromkeys((*near, *load().suggest(subject))))
    if near:
        return f"did you mean {listing(near[:3], last='or')}?"
    return (
        "`gpuplan rules` and `gpuplan catalog` list what there is; fields start with a kind, as in `Pool.spec.sharing`"
    )
