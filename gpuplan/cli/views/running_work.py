"""The page on what tenants may do to work that is queued or runs."""

from __future__ import annotations

from gpuplan.compiler.admission.policies import RunningWork, running_work
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.planning.schedulers import SCHEDULERS

_HEAD = """\
# What tenants may do to running work

Queues hold tenants to what they may use as long as they count what runs. Kueue and KAI-Scheduler find that by owners,
labels, annotations and finalizers, and the role `edit` may write those. So admission policies hold them for everybody
who is no controller: who may not change, or delete, such objects in every namespace. Controllers of Kubernetes, Kueue,
KAI-Scheduler, operators of frameworks, Argo CD and whoever drains nodes go on as ever. Run:ai 3.0 schedules by
KAI-Scheduler, and Run:ai up to 2.26 by what that came from, which is not public: what is known of the one is held for
the other.

A pod that is told to end keeps its GPUs until it has ended. No queue counts it meanwhile. So a guarantee that is asked
for is had once the borrower's grace period is over: `admission.gracePeriod` of the Cluster bounds it for pods with
GPUs, 30 seconds unless the policy says otherwise, and `allow.gracePeriod` of a Tenant for its own. The same bound holds
for terminating pods that were replaced: what is used beyond a limit is used for at most that long. Beside Kueue, a
ResourceQuota at `limit` counts them, too.

"""

_TAIL = """
Each rule is among [all rules](../admission-rules.md), where optional ones can be left out. What is not in the table,
such as making Workloads, PodGroups and queues, or binding and resizing pods, is no right of `edit` or `admin`.
"""


def running_work_document() -> str:
    rows = "".join(f"| {_sentence(row.act)} | {_with(row)} | {_answer(row)} | {row.why} |\n" for row in running_work())
    return f"{_HEAD}| a tenant may | with | answer | because |\n|---|---|---|---|\n{rows}{_TAIL}"


def _sentence(act: str) -> str:
    return act.replace("|", "\\|")


def _with(row: RunningWork) -> str:
    return joined([SCHEDULERS[name].title for name in row.schedulers]) if row.schedulers else "any scheduler"


def _answer(row: RunningWork) -> str:
    return f"refused: `{row.by}`" if row.by else "allowed"
