"""The protocol of back ends, and what several of them write: a back end turns one cluster's plan into objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path as Folder
from shlex import quote
from typing import Any, Final, Protocol

from gpuplan.compiler.base.diagnostics import Origin, Path
from gpuplan.compiler.manifests import HEADER, File, Manifest, to_yaml
from gpuplan.compiler.manifests.bodies import new_object
from gpuplan.compiler.manifests.provenance import Routes, as_written, chosen
from gpuplan.compiler.manifests.templates import filled, read_rows
from gpuplan.compiler.planning.apis import find_chart, install_of
from gpuplan.compiler.planning.plan import Plan, Pool, Stage, Tenant, Workload
from gpuplan.compiler.planning.subjects import about, every

Artifact = Manifest | File


class Backend(Protocol):
    """A function that reads the plan alone, knows no other back end, and does nothing but answer objects and files.

    The order of the answers does not matter; two back ends that answer the same object are a bug.
    """

    def render(self, plan: Plan) -> Iterable[Artifact]: ...


def text_of(name: str, **values: str) -> str:
    """Return what a generated file says to its readers."""
    return filled(read_rows(Folder(__file__).with_name("texts.yaml"))[name], values)


# --- A scheduler's chart -----------------------------------------------------------------------------------------

SCHEDULER_VALUES: Final = "values.yaml"
"""The file that the chart's values are in, in the folder of the stage."""

Values = dict[str, Any]


def chart_artifacts(
    plan: Plan, values: Callable[[Plan], Values], decided: Callable[[Plan], Routes]
) -> Iterator[Manifest | File]:
    """Yield the chart's namespace, and its values for whoever runs Helm; nothing if somebody else installs it.

    ``decided`` yields the routes of those values that the policy does not state itself.
    """
    chart, folder = find_chart(plan.cluster), Stage.SCHEDULER.value
    if chart is None:
        return
    body = new_object("v1", "Namespace", chart.namespace)
    trace, why = partial(_trace_namespace, plan), text_of("why-scheduler-namespace")
    yield Manifest(folder, body, about=about(plan.cluster), trace=trace, why=why)
    # Helm has a registry before the chart's name, and a repository after it. People copy the command into a shell.
    is_registry = "://" not in chart.repository or chart.repository.startswith("oci://")
    where = quote(f"oci://{chart.repository.removeprefix('oci://')}") + "/" if is_registry else ""
    heading = text_of(
        "scheduler-values",
        chart=chart.name,
        version=chart.version,
        namespace=chart.namespace,
        where=where,
        option="" if is_registry else f" --repo {quote(chart.repository)}",
    )
    data = (HEADER + heading + to_yaml(values(plan))).encode()
    subjects = (*about(plan.cluster), *every(Pool, Tenant, Workload))
    yield File(f"{folder}/{SCHEDULER_VALUES}", data, about=subjects, trace=partial(trace_values, plan, decided))


def _trace_namespace(plan: Plan) -> Routes:
    yield (), install_of(plan)


def trace_values(plan: Plan, decided: Callable[[Plan], Routes]) -> Routes:
    """Yield where the values of the scheduler's chart come from."""
    scheduler = plan.cluster.scheduler
    yield (), install_of(plan)
    yield from _keys(scheduler.at / "values", scheduler.spec.values)
    yield from as_written(scheduler.at / "values", scheduler.spec.values)
    yield from decided(plan)


def _keys(at: Origin, values: Mapping[str, Any], route: Path = ()) -> Routes:
    """Yield the keys of mappings: what is below a key is there because of the key."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield (*route, key), chosen(at / key)
            yield from _keys(at / key, value, (*route, key))
