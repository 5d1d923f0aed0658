"""The page that says what to send to Run:ai, where and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpuplan.backends.runai.requests import Request
from gpuplan.planning.plan import Plan
from gpuplan.wording import markdown_code

_HEADER = "<!-- Written by gpuplan; edit policies/ and overlays/, then run gpuplan build. -->\n"

_UNCERTAIN = """\
## What is not certain

- `limit: null` is meant as no bound and `limit: 0` as nothing, as in the queues of KAI-Scheduler.
- The names of `rank` that were read are `MediumLow` (the default), `Medium` and `High`; the others follow them.
  Releases before `rank` call it `priority`.
- A MIG device is counted by its compute slices, as KAI-Scheduler does it: a GPU divided into seven is 7.
- `minGuaranteedRuntime` holds against every eviction, in units of days, hours and minutes.
"""


def guide(plan: Plan, requests: Sequence[Request]) -> str:
    parts = (
        _HEADER,
        f"# Run:ai of cluster {plan.cluster.name}\n",
        "Nothing applies these files: each is the body of a request to Run:ai's API, to be sent from top to bottom.\n",
        _table(requests),
        *_notes(plan, requests),
        _UNCERTAIN,
    )
    return "\n".join(parts)


def _table(requests: Iterable[Request]) -> str:
    rows = (
        f"| {markdown_code(request.file)} | {markdown_code(f'{request.method} {request.path}')} "
        f"| {', '.join(_missing(request)) or '-'} |\n"
        for request in requests
    )
    return "".join(("| body | request | to be added |\n|---|---|---|\n", *rows))


def _missing(request: Request) -> Iterator[str]:
    if request.kind != "policies" and "clusterId" not in request.body:
        yield "clusterId"
    yield from request.missing


def _notes(plan: Plan, requests: Sequence[Request]) -> Iterator[str]:
    if any(request.missing for request in requests):
        yield "Run:ai gives the ids when it makes what they belong to: look them up by name.\n"
    namespaces = [namespace for tenant in plan.tenants for namespace in tenant.spec.namespaces]
    if namespaces:
        yield (
            "The namespaces are gpuplan's and carry `runai/queue`, by which Run:ai finds them: its cluster must not "
            "make them itself (`createNamespaces: false`).\n"
        )
    for pool in plan.pools:
        if pool.spec.topology:
            labels = ", ".join(map(markdown_code, pool.spec.topology))
            name = markdown_code(pool.name)
            yield f"Node pool {name} needs a network topology of {labels}, and its id as `networkTopologyId`.\n"
