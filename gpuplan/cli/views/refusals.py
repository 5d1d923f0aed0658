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

What the API server refuses in the namespaces of tenants, by ValidatingAdmissionPolicies that `gpuplan build` writes.
Each rule has a name. A refusal says what to write instead; here stands its short form.

"""

_OPTIONAL: Final = """\
## Optional rules

These refuse what an earlier gpuplan let in, or what some platforms want. `admission.without` of a cluster leaves them
out by name, and `gpuplan validate` then says what tenants may do ([GPU421](rules/GPU421.md)):

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

The API server refuses an object in which one of these fields differs from what is in the cluster. Then Argo CD and Flux
change nothing more in its folder, until somebody deletes the object or reverts the commit. [GPU705](rules/GPU705.md)
refuses such a change and says what to do instead, and `gpuplan diff` names the Application that waits for
an object that gpuplan writes.

Jobs of workloads, and ConfigMaps that pods mount, have a digest of what they hold in their name: a change makes another
object. Of a custom kind that is not listed, its definition says what cannot be changed, if gpuplan comes with the
definition; of other kinds of Kubernetes itself nothing is known here.

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
    )
    when = " ".join(filter(None, cases))
    return f"`{field.field}`{f' ({when})' if when else ''}"


# --- Running work --------------------------------------------------------------------------------------------------

_WORK_HEAD: Final = """\
# What tenants may do to running work

Queues hold tenants to what they may use as long as they count what runs. Kueue and KAI-Scheduler find that by owners,
labels, annotations and finalizers, and the role `edit` may write those. So the policies `gpuplan-running` and
`gpuplan-grace` hold them for everybody who is no controller: who may not change, or delete, such objects in every
namespace. Controllers of Kubernetes, Kueue, KAI-Scheduler, operators of frameworks, Argo CD and whoever drains nodes
go on as ever. Run:ai 3.0 schedules by KAI-Scheduler, and Run:ai up to 2.26 by what that came from, which is not
public: what is known of the one is held for the other.

A pod that is told to end keeps its GPUs until it has ended. No queue counts it meanwhile. So a guarantee that is asked
for is had once the borrower's grace period is over: `admission.gracePeriod` of the Cluster bounds it for pods with
GPUs, 30 seconds unless the policy says otherwise, and `allow.gracePeriod` of a Tenant for its own. The same bound holds
for terminating pods that were replaced: what is used beyond a limit is used for at most that long. Beside Kueue, a
ResourceQuota at `limit` counts them, too.

"""

_WORK_TAIL: Final = """
Each rule is among [all rules](../admission-rules.md), where optional ones can be left out. What is not in the table,
such as making Workloads, PodGroups and queues, or binding and resizing pods, is no right of `edit` or `admin`.
"""


def running_work_document() -> str:
    rows = ""
    for row in running_work():
        schedulers = joined([SCHEDULERS[name].title for name in row.schedulers]) if row.schedulers else "any scheduler"
        answer = f"refused: `{row.by}`" if row.by else "allowed"
        rows += "| " + row.act.replace("|", "\\|") + f" | {schedulers} | {answer} | {row.why} |\n"
    return f"{_WORK_HEAD}| a tenant may | with | answer | because |\n|---|---|---|---|\n{rows}{_WORK_TAIL}"
