"""What an API server returns after a sync is what was written, whatever else is there; what is changed then is told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any
from urllib.parse import urlencode

from gpuplan.compiler.manifests.provenance import How
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live.drifting import Drift, compare_with, drift
from gpuplan.features.live.dump import read_dump
from gpuplan.features.tracing.lines import spelled
from tests.cluster.api import Api, Refused
from tests.cluster.comparisons import Record
from tests.cluster.delivery import MANAGER
from tests.cluster.example import REPOSITORY, ExampleCluster
from tests.features.live.dumps import example as plan_of, listed
from tests.features.live.mutations import Mutation, mutate

MUTATIONS = 400
"""On each of the three clusters."""
EDITOR = "kubectl-edit"

Body = dict[str, Any]


def test_after_a_sync_nothing_differs(example: ExampleCluster, record: Record) -> None:
    found = drift(dump(example), REPOSITORY, example.name)

    record(f"{example.name}: differences after a sync", [], [f"{item.title} {item.path}" for item in found.drifts])
    record(f"{example.name}: kinds of which the dump shows nothing", [], [str(item) for item in found.unjudged])


def test_every_field_that_is_changed_is_told(example: ExampleCluster, record: Record) -> None:
    plan = plan_of(example.name)
    bodies = [body for folder in example.folders for body in folder.objects if not _is_hook(body)]
    live = [example.api.get(example.api.path_of(body)) for body in bodies]

    changed = list(edits(example.api, live, Random(example.name)))
    lost = [item for batch in batches(changed) for item in untold(plan, batch)]

    record(f"{example.name}: fields changed by hand", MUTATIONS, len(changed))
    record(f"{example.name}: of these not told with the line or the owner", [], lost)


def _is_hook(body: Body) -> bool:
    """What runs while something is synced is no state that lasts."""
    return "argocd.argoproj.io/hook" in body["metadata"].get("annotations", {})


def test_objects_of_others_give_no_line(example: ExampleCluster, record: Record) -> None:
    """Whatever 500 objects of others are, in the tenants' namespaces too."""
    api, others = example.api, list(strangers(example))
    paths = [api.path_of(api.create(body)) for body in others]
    try:
        found = drift(dump(example), REPOSITORY, example.name)
    finally:
        for path in paths:
            api.delete(path)

    told = [f"{item.title} {item.path}" for item in found.drifts]
    told += [item.finding.message for item in found.report.diagnostics]
    record(f"{example.name}: lines for {len(others)} objects of others", [], told)


def strangers(example: ExampleCluster) -> Iterator[Body]:
    """Objects of the kinds that gpuplan writes and of others, in all namespaces that there are."""
    spaces = [body["metadata"]["name"] for body in example.api.list("/api/v1/namespaces")]
    kueue, nfd = example.api.find_kind(_KUEUE, "ResourceFlavor"), example.api.find_kind(_NFD, "NodeFeatureRule")
    for number in range(500):
        name, space = f"theirs-{number}", spaces[number % len(spaces)]
        match number % 10:
            case 0:
                yield new("v1", "ConfigMap", name, space, data={"a": "b"})
            case 1:
                yield new("v1", "ResourceQuota", name, space, spec={"hard": {"services": "100"}})
            case 2:
                yield new("v1", "LimitRange", name, space, spec={"limits": [{"type": "Pod", "max": {"cpu": "90"}}]})
            case 3:
                yield new("v1", "Service", name, space, spec={"ports": [{"port": 80}], "clusterIP": "None"})
            case 4:
                subject = {"apiGroup": _RBAC, "kind": "User", "name": "anna"}
                role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "view"}
                yield new(f"{_RBAC}/v1", "RoleBinding", name, space, roleRef=role, subjects=[subject])
            case 5:
                yield new("scheduling.k8s.io/v1", "PriorityClass", name, value=7)
            case 6 if nfd is not None:
                rule = {"name": name, "labels": {"example.com/rack": "a"}}
                yield new(_NFD, "NodeFeatureRule", name, spec={"rules": [rule]})
            case 7 if kueue is not None:
                yield new(_KUEUE, "ResourceFlavor", name, spec={"nodeLabels": {"a": "b"}})
            case 8:
                yield new("v1", "Node", name) if number % 20 == 8 else new("v1", "ServiceAccount", name, space)
            case _:
                yield new("networking.k8s.io/v1", "NetworkPolicy", name, space, spec={"podSelector": {}})


_NFD = "nfd.k8s-sigs.io/v1alpha1"
_KUEUE = "kueue.x-k8s.io/v1beta2"
_RBAC = "rbac.authorization.k8s.io"


def new(api_version: str, kind: str, name: str, namespace: str = "", **rest: Any) -> Body:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def edits(api: Api, live: Sequence[Body], random: Random) -> Iterator[tuple[Mutation, Body]]:
    """Objects as the server would return them after somebody has changed one field, if it lets them."""
    done = 0
    while done < MUTATIONS:
        body = random.choice(live)
        mutation = mutate(body, MANAGER, random)
        if mutation is None:
            continue
        query = urlencode({"fieldManager": EDITOR, "dryRun": "All"})
        try:
            changed = api.patch(f"{api.path_of(body)}?{query}", mutation.patch, kind="json")
        except Refused:
            continue
        if _value(changed, mutation.route) == _value(body, mutation.route):
            continue  # the server wrote it back
        done += 1
        yield mutation, changed


def _value(body: Any, route: Sequence[str | int]) -> object:
    for part in route:
        try:
            body = body[part]
        except (KeyError, IndexError):
            return None
    return body


def batches(changed: Sequence[tuple[Mutation, Body]]) -> Iterator[dict[str, tuple[Mutation, Body]]]:
    """Each object once in each."""
    waiting = list(changed)
    while waiting:
        batch: dict[str, tuple[Mutation, Body]] = {}
        rest = []
        for mutation, body in waiting:
            metadata = body["metadata"]
            title = f"{body['kind']} {'/'.join(filter(None, (metadata.get('namespace'), metadata['name'])))}"
            if title in batch:
                rest.append((mutation, body))
            else:
                batch[title] = mutation, body
        yield batch
        waiting = rest


def untold(plan: Plan, batch: Mapping[str, tuple[Mutation, Body]]) -> Iterator[str]:
    """The changes that are not told at their field, with a line of the policy and who made them."""
    found, _ = read_dump(listed([body for _, body in batch.values()]))
    drifts = [item for item in compare_with(plan, found).drifts if item.has_live or item.path]
    for title, (mutation, _) in batch.items():
        told = [item for item in drifts if item.title == title]
        if not told or not all(is_told(item, mutation) for item in told):
            yield f"{title} {mutation.patch}: {[(item.path, item.live, item.owner) for item in told]}"


def is_told(found: Drift, mutation: Mutation) -> bool:
    """Of an item whose key is changed the old one is missing, and another one is there: both are in its list.

    What is removed is owned by nobody, and the API server keeps no word of who removed it.
    """
    is_key = len(mutation.route) > 2 and isinstance(mutation.route[-2], int)
    path, around = spelled(mutation.route), spelled(mutation.route[:-2])
    at_field = path.startswith(found.path) or found.path.startswith(around if is_key else path)
    has_line = any(source.how is not How.RULE for source in found.sources)
    is_by = found.owner is not None and found.owner.manager == EDITOR
    return at_field and has_line and (is_by or not found.has_live)


def dump(example: ExampleCluster) -> Mapping[str, bytes]:
    """What kubectl prints of each kind that there is, Secrets aside, with who owns which field."""
    kubectl = example.control_plane.kubectl
    names = [name for name in kubectl("api-resources", "--verbs=list", "-o", "name").split() if name not in _LEFT_OUT]
    text = kubectl("get", ",".join(names), "-A", "-o", "json", "--show-managed-fields")
    assert json.loads(text)["items"]
    return {"live.json": text.encode()}


_LEFT_OUT = ("secrets", "events", "events.events.k8s.io", "leases.coordination.k8s.io")
