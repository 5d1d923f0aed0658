"""Pages of the documentation about refusals: of admission, of the API server, and of changes to running work."""

from __future__ import annotations

from typing import Final

from gpuplan.cli.views.reference import NOTICE
from gpuplan.compiler.admission.policies import every_rule, running_work
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.manifests.kinds import Immutable, known_kinds
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.terminal.markdown import markdown_table

# --- What admission refuses ----------------------------------------------------------------------------------------

_RULES_HEAD: Final = """\
# Admission rules

The API server refuses requests in the namespaces of tenants by ValidatingAdmissionPolicies that `gpuplan build` writes.
A refusal says what to write instead, or [a warning](explanation/quotas-and-admission.md#refuse-or-warn-first).

"""

_OPTIONAL: Final = """\
## Optional rules

These rules refuse requests that an earlier gpuplan accepted, or that some platforms need. `admission.without` of a
Cluster leaves them out by name, and `gpuplan validate` then reports what tenants may do ([GPU421](rules/GPU421.md)):

```yaml
spec:
  admission:
    without: [tolerations-within-pools]
```

| rule | without it |
|---|---|
"""


def admission_rules_document() -> str:
    """Return a table for each policy, and the optional rules with what becomes possible without them."""
    rules, tables = every_rule(), ""
    for policy in dict.fromkeys(rule.policy for rule in rules):
        tables += f"## {policy}\n\n| rule | says | with |\n|---|---|---|\n"
        for rule in (rule for rule in rules if rule.policy == policy):
            schedulers = "any scheduler" if len(rule.schedulers) == len(SCHEDULERS) else joined(rule.schedulers)
            tables += f"| `{rule.name}` | {_cell('; or: '.join(rule.messages))} | {schedulers} |\n"
        tables += "\n"
    optional = "".join(f"| `{rule.name}` | {_cell(rule.optional)} |\n" for rule in rules if rule.optional)
    return f"{_RULES_HEAD}{tables}{_OPTIONAL}{optional}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# --- Fields that cannot be changed ---------------------------------------------------------------------------------

_FIELDS_HEAD: Final = """\
# Fields that cannot be changed

The API server refuses a change of these fields. Argo CD and Flux then change nothing more in the object's folder, until
somebody deletes the object or reverts the commit. [GPU705](rules/GPU705.md) refuses such a change and says what to do
instead. For an object that gpuplan writes, `gpuplan diff` names the Application that waits.

Jobs of workloads, and ConfigMaps that pods mount, have a digest of their content in their name: a change makes another
object. For a custom kind that is not listed, gpuplan reads the fixed fields from the kind's definition, if gpuplan has
the definition. Fixed fields of other kinds of Kubernetes itself are not known here.

"""


def fixed_fields_document() -> str:
    """Return a row for each kind that has such fields, in the order of groups and kinds."""
    rows = [
        (f"{kind.kind}.{kind.group}" if kind.group else kind.kind, ", ".join(map(_field, kind.immutable)), kind.source)
        for _, kind in sorted(known_kinds().items())
        if kind.immutable
    ]
    return NOTICE + _FIELDS_HEAD + markdown_table(("Kind", "Fields", "Read in"), rows)


def _field(field: Immutable) -> str:
    """Return a field with the cases in which it cannot be changed, if it can sometimes."""
    cases = (
        "once set" if field.where == field.field else f"where `{field.where}` is set" if field.where else "",
        f"where `{field.unless}` is not" if field.unless else "",
        "to less" if field.may_grow else "",
        "to another value" if field.may_go else "",
        f"by {field.by}" if field.by else "",
    )
    when = " ".join(filter(None, cases))
    return f"`{field.field}`{f' ({when})' if when else ''}"


# --- Running work --------------------------------------------------------------------------------------------------

_WORK_HEAD: Final = """\
# What tenants may do to running work

Queues limit tenants as long as the queues count all running work. Kueue and KAI-Scheduler count by owners, labels,
annotations and finalizers, which the role `edit` may change. Admission policies such as `gpuplan-running` and
`gpuplan-grace` therefore protect these fields from everyone except controllers. A controller is a user who may change
or delete such objects in every namespace.
Controllers of Kubernetes, Kueue, KAI-Scheduler, operators of frameworks, Argo CD and administrators who drain nodes
work as before. Run:ai 3.0 schedules by KAI-Scheduler. Run:ai up to 2.26 has the scheduler that KAI-Scheduler was made
from, which is not public. gpuplan assumes that both behave alike.

A pod that is ending keeps its GPUs until it has ended, and no queue counts it. A team therefore gets its guaranteed
GPUs back when the borrower's grace period ends. `admission.gracePeriod` of the Cluster limits the grace period of pods
with GPUs, by default to 30 seconds. `allow.gracePeriod` of a Tenant sets another limit for its pods. The same limit
applies to ending pods that were replaced: use beyond a tenant's limit lasts at most that long. With Kueue, a
ResourceQuota at `limit` counts ending pods, too.

"""

_WORK_TAIL: Final = """
Each rule is in the list of [all rules](../admission-rules.md), where you can leave out optional rules. The roles `edit`
and `admin` allow no other actions on running work, such as making Workloads, PodGroups and queues, or binding and
resizing pods.
"""


def running_work_document() -> str:
    rows = ""
    for row in running_work():
        schedulers = joined([SCHEDULERS[name].title for name in row.schedulers]) if row.schedulers else "any scheduler"
        answer = f"refused: `{row.by}`" if row.by else "allowed"
        rows += "| " + row.act.replace("|", "\\|") + f" | {schedulers} | {answer} | {row.why} |\n"
    return f"{_WORK_HEAD}| a tenant may | with | answer | because |\n|---|---|---|---|\n{rows}{_WORK_TAIL}"
