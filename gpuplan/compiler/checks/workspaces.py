"""Checks on work in which people sit (GPU437-439), and on who evicts it (GPU509)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.planning.fallbacks import landings
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.preemption import Party, evictions
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.workspaces import FILES, SEARCH_PATH, SETTINGS, WITHOUT_SETTINGS, overruling
from gpuplan.compiler.policy.models import Workspace

# --- Time ----------------------------------------------------------------------------------------------------------


@check("GPU437", "workspace-contradicts-itself")
def workspace_contradicts_itself(plan: Plan) -> Iterator[Finding]:
    """A limit that ends a workspace is removed, or comes later than another limit that ends it.

    ## Why
    `idle` is a file for Jupyter Server (JupyterLab 3, Notebook 7 or newer), `jupyter_server_config.json` in
    `/etc/workload`, and the variable `JUPYTER_CONFIG_PATH` that leads there. A file of `config` with that name, another
    value of the variable, or `JUPYTER_NO_CONFIG` leaves the server without it. With `--config` it reads the file that
    is named there in place of all others of that name (`load_config_file` in `jupyter_core/application.py`), and a
    setting of the command line, such as `--MappingKernelManager.cull_idle_timeout=0`, wins over every file. A time that
    is longer than `runTime` is never reached. And a tenant that says in `timeLimits` how long its workspaces may take
    means those that are Workloads, too: Run:ai ends its own by it, and nobody ends these.

    ## Instead
    Leave one of the two out. Other settings of Jupyter go into `jupyter_config.json` of `config`, which it reads as
    well, with `--config`, too. Times that contradict each other are a warning, and so is what stands in a command line.
    """
    for workload, work in plan.work_of(Workspace):
        if work.idle:
            yield from _unread(workload)
        for field, index, setting in overruling(workload) if work.idle and _is_jupyter(workload) else ():
            fact = f"sets `{setting}`, which overrides" if setting else "makes Jupyter read another file than"
            yield Finding(
                workload.at / field / index,
                f"the command line of `{workload.name}` {fact} gpuplan's file that ends idle workspaces",
                label="wins over the file" if setting else "read in its place",
                related=(Label(workload.work_at / "idle", "is said in that file"),),
                help="leave one of the two out"
                if setting
                else "leave it out, and put its settings into `jupyter_config.json` of `config`",
                severity=Severity.WARNING,
            )
        if work.idle and work.run_time and seconds(work.idle) >= seconds(work.run_time):
            yield Finding(
                workload.work_at / "idle",
                f"`{workload.name}` is ended after {work.run_time}, before it can be idle for {work.idle}",
                label="never reached",
                related=(Label(workload.work_at / "runTime", "ended by then"),),
                help="write a shorter time, or leave it out",
                severity=Severity.WARNING,
            )
        yield from _beyond_tenant(workload, work)


def _unread(workload: Workload) -> Iterator[Finding]:
    name, spec, idle = workload.name, workload.spec, Label(workload.work_at / "idle", "is said in this file")
    if SETTINGS in spec.config:
        yield Finding(
            (workload.at / "config" / SETTINGS).key,
            f"`{SETTINGS}` of `{name}` is the file that ends it when it is idle",
            label="replaced by that",
            related=(idle,),
            help="call it `jupyter_config.json`, which Jupyter reads as well",
        )
    path = spec.env.get(SEARCH_PATH)
    if path is not None and not (isinstance(path, str) and FILES in path.split(":")):
        yield Finding(
            workload.at / "env" / SEARCH_PATH,
            f"`{SEARCH_PATH}` of `{name}` leads past the file that ends it when it is idle",
            label=f"without `{FILES}`",
            related=(idle,),
            help=f"write `{SEARCH_PATH}: {FILES}:{path}`" if isinstance(path, str) and path else "leave it out",
        )
    if spec.env.get(WITHOUT_SETTINGS):
        yield Finding(
            workload.at / "env" / WITHOUT_SETTINGS,
            f"with `{WITHOUT_SETTINGS}` of `{name}` Jupyter reads no file, and does not end when it is idle",
            label="no settings at all",
            related=(idle,),
            help="leave it out",
        )


def _beyond_tenant(workload: Workload, work: Workspace) -> Iterator[Finding]:
    tenant, allowed = workload.tenant, workload.tenant.spec.time_limits.workspaces
    may_be_evicted = workload.priority_class is not None and workload.priority_class.spec.preemptible
    idle = ("preemptibleIdle", allowed.preemptible_idle) if may_be_evicted else ("idle", allowed.idle)
    for field, asked, (limit, most) in (("runTime", work.run_time, ("run", allowed.run)), ("idle", work.idle, idle)):
        if asked and most and seconds(asked) > seconds(most):
            yield Finding(
                workload.work_at / field,
                f"`{workload.name}` says {asked}, and workspaces of tenant `{tenant.name}` may take {most}",
                label=f"longer than {most}",
                related=(Label(tenant.at / "timeLimits" / "workspaces" / limit, "what its tenant allows"),),
                help=f"write `{field}: {most}`, or raise it there",
                severity=Severity.WARNING,
            )


def _is_jupyter(workload: Workload) -> bool:
    return any(map(_JUPYTER.fullmatch, (workload.spec.image, *workload.spec.command, *workload.spec.args)))


_JUPYTER = regex(r"(?is).*(jupyter|notebook).*")


@check("GPU438", "idle-time-that-nobody-keeps", Severity.NOTE)
def idle_time_that_nobody_keeps(plan: Plan) -> Iterator[Finding]:
    """A workspace has an idle time, and nothing in it is called Jupyter.

    ## Why
    Nothing in a cluster ends a program that holds a GPU and does not use it, but for Run:ai, and that by its own
    workspaces. Jupyter Server (JupyterLab 3, Notebook 7 or newer) can end itself, and `idle` tells it to. code-server,
    an SSH server, a Notebook before 7 and others know nothing of that file and go on. Neither the image's name nor the
    command of this workspace says that it is Jupyter.

    ## Instead
    Write `runTime`, which ends any program, and look at the alert `GpuAllocatedIdle`. Where the image does start a
    Jupyter server, say so by its command: `command: [jupyter, lab]`.
    """
    for workload, work in plan.work_of(Workspace):
        if work.idle and not _is_jupyter(workload):
            yield Finding(
                workload.work_at / "idle",
                f"`{workload.name}` is not seen to be a Jupyter server, and no other program reads its idle time",
                label="kept by Jupyter alone",
                help="write `runTime: 12h`, or `command: [jupyter, lab]` if it is one",
            )


@check("GPU439", "workspace-without-end", Severity.NOTE)
def workspace_without_end(plan: Plan) -> Iterator[Finding]:
    """Nothing ends a workspace but the person who works in it.

    ## Why
    A notebook that was forgotten keeps its units for weeks. With a class that may not be evicted nobody else ever gets
    them; with another one they are still counted as its tenant's.

    ## Instead
    Write `runTime`, or `idle` for a Jupyter server. The volume of `storage` stays, and whoever needs more time starts
    it again.
    """
    for workload, work in plan.work_of(Workspace):
        if work.idle is None and work.run_time is None:
            yield Finding(
                workload.work_at.key,
                f"nothing ends `{workload.name}` but its own program",
                label="keeps its units until then",
                help="add `runTime: 12h`, or `idle: 2h` for a Jupyter server",
            )


# --- Eviction ------------------------------------------------------------------------------------------------------


@check("GPU509", "workspace-may-be-evicted", Severity.NOTE)
def workspace_may_be_evicted(plan: Plan) -> Iterator[Finding]:
    """The class of a workspace lets others evict it.

    ## Why
    A training that makes way goes on from its checkpoint. What a person has in the memory of a notebook is gone: the
    pod comes again when there is room, with the files of its volume and without its kernels.

    ## Instead
    Give workspaces a class with `preemptible: false`, and the tenant a guarantee that holds them. Where they run on
    what nobody else uses, that is how it is meant: ignore the note.
    """
    found = [(workload, named) for workload, _ in plan.work_of(Workspace) if (named := workload.priority_class)]
    ways = evictions(plan) if found else ()
    for workload, named in found:
        party, places = Party(workload.tenant.name, named.name), {(p.name, u.name) for p, u in landings(plan, workload)}
        held = [way for way in ways if (way.pool, way.unit) in places and party in way.victims]
        by = {evictor.tenant for way in held for evictor in way.evictors if way.holds(evictor, party)}
        if by and named.spec.preemptible:
            safe = [item.name for item in workload.tenant.priority_classes if not item.spec.preemptible]
            yield Finding(
                workload.at / "priorityClass" if workload.spec.priority_class else workload.work_at.key,
                f"others may evict workspace `{workload.name}`, and what is in its memory is lost",
                label=f"class `{named.name}` is preemptible",
                related=(Label(name_of(named.at), "the class of its pods"),),
                notes=(f"pods of {listing(sorted(by))} may, as `gpuplan show --preemption` says",),
                help=f"write `priorityClass: {safe[0]}`"
                if safe
                else f"give `{workload.tenant.name}` a class with `preemptible: false`, and name it here",
            )
