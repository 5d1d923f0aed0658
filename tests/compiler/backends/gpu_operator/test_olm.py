from __future__ import annotations

from tests.compiler.backends.gpu_operator.rendered import a_cluster, objects

PLAN = a_cluster(install="olm", platform="openshift", version="v25.10.1", more="nfd: false")


def test_the_subscription_follows_the_line_and_starts_at_the_release() -> None:
    (subscription,) = objects(PLAN, "Subscription")
    assert subscription["spec"] == {
        "channel": "v25.10",
        "installPlanApproval": "Automatic",
        "name": "gpu-operator-certified",
        "source": "certified-operators",
        "sourceNamespace": "openshift-marketplace",
        "startingCSV": "gpu-operator-certified.v25.10.1",
    }


def test_the_operator_watches_its_own_namespace() -> None:
    (group,) = objects(PLAN, "OperatorGroup")
    assert group["metadata"]["namespace"] == "nvidia-gpu-operator"
    assert group["spec"] == {"targetNamespaces": ["nvidia-gpu-operator"]}


def test_the_clusters_prometheus_scrapes_the_namespace() -> None:
    (namespace,) = objects(PLAN, "Namespace")
    assert namespace["metadata"]["labels"] == {
        "openshift.io/cluster-monitoring": "true",
        "pod-security.kubernetes.io/enforce": "privileged",
    }
