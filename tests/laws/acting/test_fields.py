"""Every field acts: another value, or none, changes a field of what is written, or a finding.

Here so many values of small platforms are tried by chance; `make test-trace` tries every one, of the example as well.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from gpuplan.compiler.manifests import File, Subject
from gpuplan.terminal.plan_json import plans_as_data
from tests.laws.acting.acts import FIELDS, Verdict, fields_of, judge, places, without
from tests.laws.acting.effects import effects_of, fields_of_artifact
from tests.laws.tracing.policies import Place, Policies, read_policies
from tests.laws.tracing.test_traces import EXAMPLE, IS_WHOLE, PLATFORMS as TRACED

PLATFORMS: Final = {**TRACED, **{path.stem: path for path in sorted(Path(__file__).parent.glob("platforms/*"))}}
SMALL: Final = [name for name in PLATFORMS if name != EXAMPLE]
SAMPLE: Final = 12
SEED: Final = 7

SHOWN: Final = {
    "PoolSpec.workloadTypes": "what a pool is meant for binds nobody; who names a type has a pool for it (GPU159)",
    "TenantSpec.workloadTypes": "the same, where the tenant has a pool that serves it",
    "PriorityClassSpec.preemptible": "where nothing would evict the class, whatever it says",
    "PriorityClassSpec.preempts": "where there is nothing below the class that it could evict",
    "Nodes.count": "what there is, which quotas are checked against: more of it changes nothing",
    "Nodes.gpusPerNode": "the same",
    "Reserve.cpu": "the same, less what is not for tenants",
    "Reserve.memory": "the same",
    "PoolSpec.memoryPerUnitMiB": "a wish that shares are checked against: those that offer more change nothing",
    "RetainedSpec.until": "what people type before they delete the document",
}
"""Fields with values that change nothing but what `gpuplan show` prints, with the reason."""

FACTS: Final = ("GpuSpec", "MigListing")
"""Models of what a board is, as the catalog has it of others: no wish, but what wishes are held to."""

HEADING: Final = ("apiVersion", "kind", "metadata")
"""What makes a document one of its kind."""

UNSAID: Final = {
    "ClusterSpec.bases": "the folders of a repository, in tests of `documents`; platforms here are one file"
}
"""Fields that no platform here sets."""


@pytest.mark.parametrize("platform", PLATFORMS if IS_WHOLE else SMALL)
def test_every_value_acts_or_is_shown(platform: str) -> None:
    policies = read_policies(PLATFORMS[platform])
    assert effects_of(policies).is_valid
    scalars = [*places(policies)]
    chosen = scalars if IS_WHOLE else random.Random(SEED).sample(scalars, min(SAMPLE, len(scalars)))
    idle = [verdict for verdict in judge(policies, chosen) if verdict.inert]
    assert {
        f"{found.field} at {found.place}" for found in idle if not (found.field in SHOWN or _is_fact(found))
    } == set()
    assert {f"{found.field} at {found.place}" for found in idle if not _is_shown(policies, found)} == set()


def _is_fact(verdict: Verdict) -> bool:
    return verdict.field.split(".")[0] in FACTS


def _is_shown(policies: Policies, verdict: Verdict) -> bool:
    before = _show(policies)
    return any(_show(other) != before for other in verdict.inert)


def _show(policies: Policies) -> object:
    """What `gpuplan show` prints, with the boards that it counts on."""
    plans = effects_of(policies).repository.plans
    return plans_as_data(plans), [pool.gpu for plan in plans for pool in plan.pools]


def test_few_fields_are_only_shown_and_each_of_them_exists() -> None:
    assert len(SHOWN) <= 10
    assert SHOWN.keys() | UNSAID.keys() <= set(FIELDS.values())


def test_every_field_of_the_language_is_set_on_some_platform() -> None:
    said = {field for path in PLATFORMS.values() for field in _said(path)}
    assert {field for field in FIELDS.values() if field.split(".")[1] not in HEADING} - said == UNSAID.keys()


def _said(path: Path) -> Iterator[str]:
    policies = read_policies(path)
    for scalar in places(policies):
        yield from (FIELDS[id(field)] for field in fields_of(policies, scalar.place))


# --- What counts as an effect ------------------------------------------------------------------------------------


def test_comments_and_digests_in_names_are_no_effects() -> None:
    one = _file("# says a\nname: x-1a2b3c4d\n")
    assert fields_of_artifact(one) == fields_of_artifact(_file("name: x-5e6f7a8b\n"))
    assert fields_of_artifact(one) != fields_of_artifact(_file("name: y-1a2b3c4d\n"))


def _file(text: str) -> File:
    return File("a.yaml", text.encode(), about=(Subject("Cluster", "test"),), trace=None)


POOL: Final = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: first}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, namePattern: "first-[0-9]+"}
  sharing: {exclusive: {}}
  nodeLabels: {example.com/rack: a}
  workloadTypes: [training]
"""


def test_a_value_without_effect_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "pool.yaml"
    path.write_text(POOL)
    policies = read_policies(path)
    verdicts = {verdict.field: bool(verdict.inert) for verdict in judge(policies, places(policies))}
    assert verdicts["PoolSpec.workloadTypes"]
    assert not verdicts["PoolSpec.nodeLabels"]
    assert not verdicts["PoolSpec.gpu"]


def test_a_place_that_is_gone_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "pool.yaml"
    path.write_text(POOL)
    policies = read_policies(path)
    [place] = (scalar.place for scalar in places(policies) if scalar.value == "a")
    assert without(policies, place).get(Place(place.file, place.document, place.path[:-1])) == {}
