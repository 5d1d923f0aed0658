"""Where DeviceClasses and templates of claims come from."""

from __future__ import annotations

from gpuplan.compiler.backends import dra
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.tracing.engine import Traced, trace_artifact
from tests.compiler.backends.dra.platform import H100, SMALL
from tests.platforms import a_platform, pool, tenant

POOLS = (
    pool("parts", "mig: {instances: {2g.20gb: 2}}", "allocation: dra"),
    pool("whole", "exclusive: {}", "allocation: dra", gpu="H100-80GB"),
)


def traced(plan: Plan, kind: str, name: str, namespace: str = "") -> Traced:
    wanted = Identity("resource.k8s.io", kind, namespace, name)
    (found,) = [manifest for manifest in dra.render(plan) if manifest.identity == wanted]
    return trace_artifact(plan, "test/it.yaml", found)


def places(artifact: Traced) -> set[str]:
    return {f"{link.how} {link.at.source.title} {link.at}" for link in artifact.whole} - {
        "chosen by Cluster test metadata.name"
    }


def test_a_class_is_that_of_a_model_and_a_profile() -> None:
    assert places(traced(a_platform(*POOLS), "DeviceClass", SMALL)) == {
        "chosen by Pool parts spec.allocation",
        "chosen by Pool parts spec.gpu",
        "chosen by Pool parts spec.sharing.mig.instances.2g.20gb",
    }


def test_a_selector_says_what_the_catalog_knows_of_the_model() -> None:
    artifact = traced(a_platform(*POOLS), "DeviceClass", SMALL)
    (expression,) = [leaf for leaf in artifact.leaves if leaf.path[-1] == "expression"]
    assert [f"{link.how} {link.at}" for link in expression.own] == ["fact products", "fact mig.profiles[3]"]


def test_a_template_is_there_while_its_tenant_may_use_one() -> None:
    plan = a_platform(*POOLS, tenant("lab", "pool: whole, guaranteed: 4"))
    found = places(traced(plan, "ResourceClaimTemplate", H100, "lab"))
    assert {"chosen by Tenant lab spec.quotas[0].guaranteed", "chosen by Tenant lab spec.namespaces[0]"} <= found


def test_a_template_for_two_quotas_stays_when_one_of_them_ends() -> None:
    another = pool("more", "exclusive: {}", "allocation: dra", gpu="H100-80GB")
    plan = a_platform(*POOLS, another, tenant("lab", "pool: whole, guaranteed: 4", "pool: more, guaranteed: 2"))
    assert not [at for at in places(traced(plan, "ResourceClaimTemplate", H100, "lab")) if "guaranteed" in at]
