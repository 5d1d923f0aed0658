"""Applies what platforms are built into to an API server, strictly and dry, each object as its Application would."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import yaml

from gpuplan.compiler.delivery.charts import charts
from gpuplan.compiler.pipeline import build
from gpuplan.compiler.planning.plan import Stage
from tests.cluster.api import Object, Refused
from tests.cluster.charts import HELM_CONTROLLER, MIRRORS, OPERATOR, of_a_mirror, rendered, the
from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.delivery import MANAGER, identity
from tests.cluster.example import REPOSITORY
from tests.cluster.framework_controllers import FRAMEWORKS, define_framework
from tests.cluster.gpu_operator import CHART, OPERATOR as MODULE, RELEASE
from tests.cluster.programs import source
from tests.cluster.released import FLUX, OLM, WRITTEN, serve_released
from tests.features.live.platforms import CLUSTER, platforms

_ON_SERVER: Final = "ServerSideApply=true"
_OPTIONS: Final = "argocd.argoproj.io/sync-options"
_HELM_CONTROLLER: Final = "v1.6.3"
"""The release of Flux's helm-controller whose definition is read from a mirror: no proxy serves it."""


class Item(NamedTuple):
    """An object of a platform, and whether the server applies it or the client."""

    platform: str
    body: Object
    on_server: bool


class Release(NamedTuple):
    """A chart's release as an Application has it: equal ones are rendered once."""

    name: str
    namespace: str
    values: str
    on_server: bool


class Written(NamedTuple):
    """The objects of a platform's folders, and the GPU Operator's release where Helm installs it."""

    items: tuple[Item, ...]
    operator: Release | None


# --- Platforms ---------------------------------------------------------------------------------------------------


def example(cluster: str) -> dict[str, str]:
    """The files of an example cluster."""
    paths = [*(REPOSITORY / "policies").rglob("*.yaml"), *(REPOSITORY / "overlays" / cluster).rglob("*.yaml")]
    return {path.relative_to(REPOSITORY).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def drawn(number: int, release: str) -> dict[str, Written]:
    """As many drawn platforms by name, but for those that ask for what the release of the GPU Operator lacks."""
    found: dict[str, Written] = {}
    for platform in platforms(number + number // 5):
        if len(found) < number and (written := write(platform.name, CLUSTER, platform.files, release)):
            found[platform.name] = written
    return found


def write(name: str, cluster: str, files: Mapping[str, str], release: str) -> Written | None:
    """Build a platform with this release of the GPU Operator; None if the release does not have what it asks for."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(_of_release(text, release), encoding="utf-8")
        built = build(root, (cluster,))
    if not built.tree:
        return None
    (plan,) = built.report.plans
    items, operator = read(name, cluster, built.tree), None
    for chart in charts(plan):
        if chart.stage is Stage.GPU_OPERATOR:
            values = _load(built.tree[f"{cluster}/{chart.stage}/values.yaml"])
            operator = release_of(items, chart.name, chart.namespace, values)
    return Written(items, operator)


def release_of(items: Iterable[Item], chart: str, namespace: str, values: Mapping[str, Any]) -> Release:
    """A chart's release as its Application has it; without one, Helm or Flux applies it by the client."""
    return Release(chart, namespace, json.dumps(values), any(map(_is_on_server, _applications(items, chart))))


def _of_release(text: str, release: str) -> str:
    if "kind: Cluster" not in text:
        return text
    bodies = list(yaml.safe_load_all(text))
    for body in bodies:
        if body and body["kind"] == "Cluster":
            body["spec"]["gpuOperator"]["version"] = release
    return yaml.safe_dump_all(bodies, sort_keys=False)


def read(name: str, cluster: str, tree: Mapping[str, bytes]) -> tuple[Item, ...]:
    """All objects that kustomizations of a cluster name, of a tree of `out/`.

    An Application says how its folder is applied, and the object may say otherwise. Flux applies on the server, and so
    does `kubectl apply --server-side -k`.
    """
    found = [(path, body) for path, body in _named(tree) if cluster in path.split("/")]
    by_client = [path for _, body in found for path in _paths(body) if not _is_on_server(body)]
    return tuple(
        Item(name, body, _ON_SERVER in _own_options(body) or not any(path.endswith(folder) for path in by_client))
        for folder, body in found
    )


def _named(tree: Mapping[str, bytes]) -> Iterator[tuple[str, Any]]:
    for path, data in tree.items():
        folder, _, file = path.rpartition("/")
        if file == "kustomization.yaml":
            for resource in _load(data).get("resources", ()):
                if f"{folder}/{resource}" in tree:
                    yield folder, _load(tree[f"{folder}/{resource}"])


def _load(data: bytes) -> Any:
    return yaml.load(data, Loader=yaml.CSafeLoader)


def _paths(body: Object) -> Iterator[str]:
    """The folders that an Application syncs."""
    if body["kind"] == "Application":
        spec = body["spec"]
        yield from (source["path"] for source in spec.get("sources", [spec.get("source")]) if "path" in source)


def _is_on_server(application: Object) -> bool:
    return _ON_SERVER in application["spec"]["syncPolicy"].get("syncOptions", ())


def _applications(items: Iterable[Item], chart: str) -> Iterator[Object]:
    """Those that install a chart."""
    for body in (item.body for item in items if item.body["kind"] == "Application"):
        if any(found.get("chart") == chart for found in body["spec"].get("sources", ())):
            yield body


def _own_options(body: Object) -> Sequence[str]:
    text: str = body["metadata"].get("annotations", {}).get(_OPTIONS, "")
    return text.split(",")


# --- What is null ------------------------------------------------------------------------------------------------


def nulls(items: Iterable[Item]) -> list[str]:
    """The places of all that is null in objects."""
    return [f"{item.platform}: {identity(item.body)}: {route}" for item in items for route in _nulls(item.body, "")]


def _nulls(value: object, route: str) -> Iterator[str]:
    match value:
        case None:
            yield route
        case Mapping():
            for key, part in value.items():
                yield from _nulls(part, f"{route}.{key}" if route else str(key))
        case list():
            for index, part in enumerate(value):
                yield from _nulls(part, f"{route}[{index}]")
        case _:
            pass


# --- What is refused ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Server:
    """A control plane with the definitions of a release of the GPU Operator, and its chart.

    ``undefined`` are kinds that are served without a schema, since there is no definition of them.
    """

    plane: ControlPlane
    release: str
    chart: Path
    undefined: set[str] = field(default_factory=set)

    @classmethod
    def prepare(cls, plane: ControlPlane, release: str, scratch: Path) -> Server:
        """Serve all kinds; the chart's definitions are applied by the client, as its Application does.

        v25.3.4 comes with its module, other releases are read from a mirror.
        """
        chart = (
            source("gpu-operator", MODULE) / CHART if release == RELEASE else of_a_mirror(OPERATOR, release, scratch)
        )
        for folder in (chart / "crds", *chart.glob("charts/*/crds")):
            plane.kubectl("apply", "-f", folder)
        if MIRRORS:
            plane.kubectl("apply", "--server-side", "-f", of_a_mirror(HELM_CONTROLLER, _HELM_CONTROLLER, scratch))
        serve_released(plane.api, (*WRITTEN, *FLUX, OLM))
        for framework in FRAMEWORKS:
            define_framework(plane, framework)
        return cls(plane, release, chart)

    def render(self, releases: Iterable[tuple[str, Release]]) -> tuple[Item, ...]:
        """All that the chart makes, but for its definitions; each release stands for the platform that it came from."""
        names = {release: name for name, release in releases}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = pool.map(self._rendered, names)
        return tuple(
            Item(name, body, release.on_server)
            for (release, name), objects in zip(names.items(), made, strict=True)
            for body in objects
            if body["kind"] != "CustomResourceDefinition"
        )

    def _rendered(self, release: Release) -> tuple[Object, ...]:
        return rendered(self.chart, release.name, release.namespace, json.loads(release.values))

    def apply(self, item: Item) -> None:
        """Apply an object, and not dry."""
        if item.on_server:
            self.plane.api.apply(item.body, manager=MANAGER, force=True)
        else:
            self.plane.kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(item.body))

    def refusals(self, items: Iterable[Item]) -> list[str]:
        """What the server does not take, and why; equal objects are applied once."""
        different = {(json.dumps(item.body, sort_keys=True), item.on_server): item for item in items}.values()
        self._make_namespaces(different)
        self._make_owned(different)
        self.undefined.update(define(self.plane.api, [item.body for item in different]))
        of_server = [item for item in different if item.on_server]
        of_client = [item for item in different if not item.on_server]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = [text for text in pool.map(self._refused_of_server, of_server) if text]
        return [*found, *(self._refused_of_client(of_client) if of_client else ())]

    def _make_namespaces(self, items: Iterable[Item]) -> None:
        """A dry run makes no Namespace for the objects in it."""
        for name in sorted({item.body["metadata"].get("namespace", "default") for item in items}):
            self.plane.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, manager="tests")

    def _make_owned(self, items: Iterable[Item]) -> None:
        """Apply what the owner of a ClusterPolicy has of which gpuplan writes a part: what the chart has by default."""
        policies = [item.body for item in items if item.body["kind"] == "ClusterPolicy"]
        names = {body["metadata"]["name"] for body in policies if "daemonsets" not in body["spec"]}
        if names:
            whole = the("ClusterPolicy", "cluster-policy", rendered(self.chart, "gpu-operator", "gpu-operator", {}))
            for name in sorted(names):
                self.plane.kubectl("apply", "-f", "-", stdin=json.dumps({**whole, "metadata": {"name": name}}))

    def _refused_of_server(self, item: Item) -> str:
        try:
            self.plane.api.apply(item.body, manager=MANAGER, force=True, dry_run=True)
        except Refused as refused:
            return f"{item.platform}: {identity(item.body)}: {refused.message}"
        return ""

    def _refused_of_client(self, items: Sequence[Item]) -> Iterator[str]:
        """kubectl takes many objects at once; which of them is refused is asked of each.

        They are no List, of which kubectl judges the items itself, and not the server.
        """
        stream = "\n".join(json.dumps(item.body) for item in items)
        try:
            self.plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=stream)
        except AssertionError as error:
            if len(items) > 1:
                for item in items:
                    yield from self._refused_of_client([item])
            else:
                yield f"{items[0].platform}: {identity(items[0].body)}: {error}"
