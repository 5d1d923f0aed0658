"""Settings of the GPU Operator without a platform: in ClusterPolicies and in values, with files of operands beside."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.features.files.checking import check_files

PARTS = """\
version: v1
mig-configs:
  all-disabled: [{devices: all, mig-enabled: false}]
  two-kinds: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 4, 3g.40gb: 1}}]
"""
EQUAL = PARTS.replace("1g.10gb: 4, 3g.40gb: 1", "1g.10gb: 7")
MPS = "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n"
MIXED = MPS.replace("mps", "timeSlicing") + "flags: {migStrategy: mixed}\n"
Body = dict[str, Any]


def a_policy(**spec: Any) -> Body:
    needed: Body = {
        name: {} for name in ("daemonsets", "dcgm", "dcgmExporter", "driver", "gfd", "nodeStatusExporter", "toolkit")
    }
    operands: Body = {"operator": {"defaultRuntime": "containerd"}, "devicePlugin": {}, **needed}
    metadata = {"name": "cluster-policy"}
    return {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": operands | spec}


def a_map(name: str, text: str, key: str = "config.yaml", **metadata: Any) -> Body:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {key: text}}


def a_driver(name: str = "a", **spec: Any) -> Body:
    image = {"driverType": "gpu", "repository": "nvcr.io/nvidia", "image": "driver", "version": "580.95.05"}
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "NVIDIADriver",
        "metadata": {"name": name},
        "spec": image | spec,
    }


def judged(*bodies: Body, operator: str = "", gpu: str = "") -> list[Diagnostic]:
    files = {f"{number}.json": json.dumps(body).encode() for number, body in enumerate(bodies)}
    return list(check_files(files, operator=operator, gpus=[gpu] if gpu else []).diagnostics)


def told(*bodies: Body, operator: str = "", gpu: str = "") -> list[tuple[str, str]]:
    return [(item.code, item.finding.message) for item in judged(*bodies, operator=operator, gpu=gpu)]


READS_PARTS = {"migManager": {"config": {"name": "parts", "default": "all-disabled"}}}
READS_PLUGIN = {"devicePlugin": {"config": {"name": "plugin"}}}
FREE = {"migManager": {"config": {"name": "parts"}}, "mig": {"strategy": ""}}
NFD: Body = {"node-feature-discovery": {"master": {}}}


# --- Each rule, and the nearest that is right --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "message", "wrong", "right"),
    [
        (
            "GPU600",
            "no known release of chart gpu-operator reads a value `mig.strategyy`",
            [{"mig": {"strategyy": "single"}}],
            [{"mig": {"strategy": "single"}}],
        ),
        (
            "GPU604",
            "Helm values of `node-feature-discovery` have no effect with `nfd.enabled: false`",
            [{"mig": {}, "nfd": {"enabled": False}, **NFD}],
            [{"mig": {}, "nfd": {"enabled": True}, **NFD}],
        ),
        (
            "GPU609",
            "`migManager.enabled: false` in values of the chart, which names a configuration for it",
            [{"migManager": {"enabled": False, "config": {"name": "parts"}}}],
            [{"migManager": {"enabled": False, "config": {"name": ""}}}],
        ),
        (
            "GPU478",
            "`1x` is no name of an environment variable",
            [a_policy(devicePlugin={"env": [{"name": "1x", "value": "a"}]})],
            [a_policy(devicePlugin={"env": [{"name": "x1", "value": "a"}]})],
        ),
        (
            "GPU606",
            "`any`: the cluster's MIG strategy `single` overrides `mixed` of this file",
            [a_policy(mig={"strategy": "single"}, **READS_PLUGIN), a_map("plugin", MIXED, "any")],
            [a_policy(mig={"strategy": "mixed"}, **READS_PLUGIN), a_map("plugin", MIXED, "any")],
        ),
        (
            "GPU630",
            "`any`: the device plugin refuses MPS with the MIG strategy `mixed`",
            [a_policy(mig={"strategy": "mixed"}, **READS_PLUGIN), a_map("plugin", MPS, "any")],
            [a_policy(mig={"strategy": "none"}, **READS_PLUGIN), a_map("plugin", MPS, "any")],
        ),
        (
            "GPU695",
            "`config.yaml`: entry `two-kinds` divides GPUs unequally, and the cluster's strategy is `single`",
            [a_policy(mig={"strategy": "single"}, **READS_PARTS), a_map("parts", PARTS)],
            [a_policy(mig={"strategy": "single"}, **READS_PARTS), a_map("parts", EQUAL)],
        ),
        (
            "GPU615",
            "ConfigMap `default-mig-parted-config` is reset by the operator",
            [a_map("default-mig-parted-config", PARTS)],
            [
                a_map(
                    "default-mig-parted-config",
                    PARTS,
                    ownerReferences=[{"apiVersion": "v1", "kind": "X", "name": "a", "uid": "a"}],
                )
            ],
        ),
        (
            "GPU638",
            "nobody reads ConfigMap `part`",
            [a_policy(**READS_PARTS), a_map("part", PARTS)],
            [a_policy(**READS_PARTS), a_map("parts", PARTS)],
        ),
        (
            "GPU638",
            "nobody reads ConfigMap `parts` in namespace `gpu-operator-resources`",
            [a_map("parts", PARTS, namespace="gpu-operator-resources")],
            [a_map("parts", PARTS, namespace="gpu-operator")],
        ),
        (
            "GPU628",
            "`devicePlugin.config.default: anyy` of ClusterPolicy `cluster-policy` chooses nothing",
            [a_policy(devicePlugin={"config": {"name": "plugin", "default": "anyy"}}), a_map("plugin", MPS, "any")],
            [a_policy(devicePlugin={"config": {"name": "plugin", "default": "any"}}), a_map("plugin", MPS, "any")],
        ),
        (
            "GPU628",
            "`migManager.config.default: two-kinds` of values of the chart chooses nothing",
            [{"migManager": {"config": {"default": "two-kinds"}}}],
            [{"migManager": {"config": {"default": "all-disabled"}}}],
        ),
        (
            "GPU223",
            "driver 575.57.08 does not support MIG",
            [a_policy(driver={"version": "575.57.08"}, **READS_PARTS), a_map("parts", EQUAL)],
            [a_policy(driver={"version": "575.57.08", "enabled": False}, **READS_PARTS), a_map("parts", EQUAL)],
        ),
        (
            "GPU488",
            "the operator installs no precompiled driver with `gdrcopy`",
            [a_policy(driver={"usePrecompiled": True}, gdrcopy={"enabled": True})],
            [a_policy(driver={"usePrecompiled": True}, gdrcopy={"enabled": False})],
        ),
        (
            "GPU490",
            "the operator installs no driver with `gds` and auto kernel modules",
            [a_driver(gds={"enabled": True, "version": "2.20.5"})],
            [a_driver(gds={"enabled": True, "version": "2.20.5"}, kernelModuleType="open")],
        ),
        (
            "GPU698",
            "the operator skips NVIDIADriver `a`: its ClusterPolicy installs the driver itself",
            [a_policy(), a_driver()],
            [a_policy(driver={"useNvidiaDriverCRD": True}), a_driver()],
        ),
        (
            "GPU698",
            "NVIDIADriver `b` and NVIDIADriver `a` are for the same nodes",
            [a_driver(nodeSelector={"a": "b"}), a_driver("b", nodeSelector={"a": "b", "c": "d"})],
            [a_driver(nodeSelector={"a": "b"}), a_driver("b", nodeSelector={"a": "c", "c": "d"})],
        ),
    ],
)
def test_settings_that_do_not_act_or_contradict_are_found(
    code: str, message: str, wrong: list[Body], right: list[Body]
) -> None:
    assert told(*wrong) == [(code, message)]
    assert told(*right) == []


def test_kernel_modules_are_judged_on_the_models_that_are_named() -> None:
    wanted = a_policy(driver={"kernelModuleType": "proprietary"})

    assert told(wanted, gpu="B200-180GB") == [("GPU485", "proprietary kernel modules do not drive B200-180GB")]
    assert told(wanted, gpu="A100-80GB") == told(wanted) == []
    assert told(a_policy(driver={"kernelModuleType": "open"}), gpu="V100-16GB") == [
        ("GPU485", "open kernel modules do not drive V100-16GB")
    ]


def test_a_driver_is_judged_by_what_the_models_that_are_named_need_of_it() -> None:
    """An H100 is divided from R525 on."""
    files = a_policy(driver={"version": "515.65.01"}, **READS_PARTS), a_map("parts", EQUAL)

    assert told(*files) == told(*files, gpu="A100-80GB") == []
    assert told(*files, gpu="H100-80GB") == [("GPU222", "driver 515.65.01 is too old for H100-80GB MIG")]


@pytest.mark.parametrize(
    ("operator", "gpu", "driver", "what"),
    [
        ("v24.9.2", "B200-180GB", "550.144.03", "B200-180GB"),
        ("v25.3.0", "B200-180GB", "570.124.06", "B200-180GB"),
        ("v25.3.2", "B300-269GB", "570.148.08", "B300-269GB"),
        ("v24.9.2", "RTX-PRO-6000-96GB", "550.144.03", "RTX-PRO-6000-96GB"),
    ],
)
def test_the_default_driver_of_a_release_is_judged_by_the_models_that_are_named(
    operator: str, gpu: str, driver: str, what: str
) -> None:
    values: Body = {"mig": {"strategy": "single"}}
    wrong = [("GPU222", f"driver {driver} is too old for {what}")]

    assert told(values, operator=operator, gpu=gpu) == told(a_policy(), operator=operator, gpu=gpu) == wrong
    assert told(values, operator="v26.7.0", gpu=gpu) == told(values, operator=operator, gpu="H100-80GB") == []
    for driver_of in ({"version": "595.91.07"}, {"enabled": False}, {"nvidiaDriverCRD": {"enabled": True}}):
        assert told({**values, "driver": driver_of}, operator=operator, gpu=gpu) == []


def a_pod(labels: Body, **spec: Any) -> Body:
    container = {"name": "a", "image": "example.com/a:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    pod = {"containers": [container], "nodeSelector": labels, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": pod}


@pytest.mark.parametrize("workload", ["vm-passthrough", "vm-vgpu"])
def test_nodes_that_go_to_virtual_machines_are_found_beside_work_that_asks_for_gpus(workload: str) -> None:
    sandboxes = {"enabled": True, "defaultWorkload": workload}
    for settings_, title in (({"mig": {}}, "values of the chart"), (a_policy(), "ClusterPolicy `cluster-policy`")):
        spec: Body = settings_.get("spec", settings_)
        spec["sandboxWorkloads"] = sandboxes
        message = f"`sandboxWorkloads.defaultWorkload: {workload}` in {title} takes nodes from the device plugin"

        assert told(settings_, a_pod({})) == [("GPU609", message)]
        assert told(settings_, a_pod({"nvidia.com/gpu.workload.config": "container"})) == told(settings_) == []
        spec["sandboxWorkloads"] = {**sandboxes, "enabled": False}
        assert told(settings_, a_pod({})) == []


@pytest.mark.parametrize(
    ("label", "value"), [("product", "NVIDIA-L4"), ("memory", "81920"), ("count", "8"), ("family", "hopper")]
)
def test_a_feature_discovery_that_is_off_is_found_beside_work_that_selects_by_its_labels(
    label: str, value: str
) -> None:
    off: Body = {"mig": {}, "gfd": {"enabled": False}}
    pod = a_pod({f"nvidia.com/gpu.{label}": value})

    [found] = judged(off, pod)

    assert (found.code, found.finding.label) == ("GPU609", "Pod `a` selects nodes by such labels")
    assert told(a_policy(gfd={"enabled": False}), pod)[0][0] == "GPU609"
    assert (
        told({"mig": {}, "gfd": {"enabled": True}}, pod) == told(off, a_pod({"nvidia.com/gpu.present": "true"})) == []
    )


# --- Whose settings these are ------------------------------------------------------------------------------------


def test_settings_of_two_clusters_that_disagree_override_nothing() -> None:
    """Nobody knows which of them the file is for."""
    policies = [a_policy(mig={"strategy": strategy}, **READS_PLUGIN) for strategy in ("single", "mixed")]

    assert told(*policies, a_map("plugin", MIXED, "any")) == []


def test_only_settings_that_name_a_file_override_it() -> None:
    other = a_policy(mig={"strategy": "single"}, devicePlugin={"config": {"name": "another"}})
    ours = a_policy(mig={"strategy": "mixed"}, **READS_PLUGIN)

    assert told(other, ours, a_map("plugin", MIXED, "any")) == []


def test_a_file_in_no_config_map_is_for_the_settings_beside_it() -> None:
    assert told(a_policy(mig={"strategy": "single"}), {"version": "v1", "flags": {"migStrategy": "mixed"}}) == [
        ("GPU606", "the cluster's MIG strategy `single` overrides `mixed` of this file")
    ]


def test_a_config_map_that_pods_name_is_read_by_them() -> None:
    volumes = [{"name": "a", "configMap": {"name": "part"}}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"volumes": volumes, "containers": []}}

    assert [code for code, _ in told(a_policy(**READS_PARTS), a_map("part", PARTS), pod) if code == "GPU638"] == []


def test_a_files_own_map_in_values_is_judged_by_the_values() -> None:
    values = {
        "mig": {"strategy": "single"},
        "migManager": {"config": {"create": True, "name": "p", "data": {"config.yaml": PARTS}}},
    }

    assert [code for code, _ in told(values)] == ["GPU695"]
    assert told({**values, "mig": {"strategy": "mixed"}}) == []


# --- Where values are, and for which release ---------------------------------------------------------------------

WRONG: Body = {"migManagerr": {}, "mig": {}}
TEXT = "migManagerr: {}\nmig: {}\n"


def an_application(**source: Any) -> Body:
    of = {
        "repoURL": "https://helm.ngc.nvidia.com/nvidia",
        "chart": "gpu-operator",
        "targetRevision": "v26.3.1",
        **source,
    }
    spec = {"project": "a", "destination": {"name": "a"}, "source": of}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"}, "spec": spec}


def a_release(chart: str) -> Body:
    of = {"spec": {"chart": chart, "version": "v26.3.1", "sourceRef": {"kind": "HelmRepository", "name": "a"}}}
    spec = {"interval": "1h", "chart": of, "values": WRONG}
    return {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (an_application(helm={"valuesObject": WRONG}), "spec.source.helm.valuesObject.migManagerr"),
        (an_application(helm={"values": TEXT}), "spec.source.helm.values"),
        (a_release("gpu-operator"), "spec.values.migManagerr"),
        (
            {
                "apiVersion": "helm.cattle.io/v1",
                "kind": "HelmChart",
                "metadata": {"name": "a"},
                "spec": {"chart": "nvidia/gpu-operator", "version": "v26.3.1", "valuesContent": TEXT},
            },
            "spec.valuesContent",
        ),
    ],
    ids=["valuesObject", "values", "HelmRelease", "HelmChart"],
)
def test_values_are_found_where_programs_that_install_charts_have_them(body: Body, place: str) -> None:
    [found] = [item for item in judged(body) if item.code == "GPU600"]

    assert found.finding.message == "chart gpu-operator v26.3.1 reads no value `migManagerr`"
    assert str(found.finding.at) == place


def test_values_of_another_chart_are_left_alone() -> None:
    assert told(a_release("podinfo")) == []
    assert told(an_application(chart="podinfo", helm={"valuesObject": WRONG})) == []


def test_values_may_be_those_of_a_part_of_a_chart() -> None:
    assert [message[-21:] for _, message in told({"gpu-operator": WRONG})] == ["a value `migManagerr`"]


def test_values_of_the_device_plugins_own_chart_are_no_settings_of_the_operator() -> None:
    values = {"migStrategy": "mixed", "gfd": {"enabled": True}, "mps": {"root": "/run/nvidia/mps"}}
    wrong = MPS.replace("replicas: 2", "replicas: 1")

    assert told(values) == []
    assert told({**values, "config": {"map": {"a": MPS}}}, a_policy(mig={"strategy": "mixed"}, **READS_PLUGIN)) == []
    assert [code for code, _ in told({**values, "config": {"map": {"a": wrong}}})] == ["GPU630"]


def test_values_of_whatever_has_a_block_of_that_name_are_left_alone() -> None:
    assert [code for code, _ in told({"daemonsets": {"enabled": True}, "image": {}, "replicas": 1})] == ["GPU801"]


def test_the_heading_of_helm_is_no_value() -> None:
    report = check_files({"stdin": b"USER-SUPPLIED VALUES:\nmig:\n  strategy: single\n"})

    assert report.diagnostics == ()


def test_kustomize_says_which_release_a_file_of_values_is_for() -> None:
    chart = {"name": "gpu-operator", "version": "v26.3.1", "valuesFile": "values.yaml", "valuesInline": {"migg": {}}}
    files = {"a/kustomization.yaml": {"helmCharts": [chart]}, "a/values.yaml": WRONG}
    found = check_files({name: json.dumps(body).encode() for name, body in files.items()}).diagnostics

    assert [(item.finding.at.locate().file.path, item.finding.message) for item in found] == [
        ("a/kustomization.yaml", "chart gpu-operator v26.3.1 reads no value `migg`"),
        ("a/values.yaml", "chart gpu-operator v26.3.1 reads no value `migManagerr`"),
    ]


def test_the_release_decides_which_keys_are_read() -> None:
    """`cdi.nriPluginEnabled` came with v26.3."""
    values = {"mig": {}, "cdi": {"nriPluginEnabled": True}}

    assert told(values) == told(values, operator="v26.3.0") == []
    assert told(values, operator="v25.3.0") == [
        ("GPU600", "chart gpu-operator v25.3.0 reads no value `cdi.nriPluginEnabled`")
    ]


def test_a_copy_of_the_charts_own_file_has_what_no_template_reads() -> None:
    values = {"devicePlugin": {"mps": {"root": "/run/nvidia/mps"}}, "driver": {"nvidiaDriverCRD": {"nodeSelector": {}}}}

    assert told(values) == told(values, operator="v26.7.0") == []
    assert told({"devicePlugin": {"mps": {"root": "/run/mps"}}}) == [
        ("GPU600", "no known release of chart gpu-operator reads a value `devicePlugin.mps`")
    ]


def test_mps_is_told_of_for_the_releases_whose_daemons_start_empty() -> None:
    files = {"mig": {}, **READS_PLUGIN}, a_map("plugin", MPS, "any")

    for release in ("v26.3.1", "v26.7.0"):
        assert [code for code, _ in told(*files, operator=release)] == ["GPU757"]
    assert told(*files) == told(*files, operator="v25.10.1") == []


# --- Whatever stands there ---------------------------------------------------------------------------------------

_KEYS = (
    "config",
    "name",
    "default",
    "enabled",
    "env",
    "version",
    "strategy",
    "data",
    "usePrecompiled",
    "helm",
    "values",
)
_BLOCKS = (
    "devicePlugin",
    "migManager",
    "mig",
    "driver",
    "gds",
    "gdrcopy",
    "nfd",
    "source",
    "sources",
    "chart",
    "metadata",
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.sampled_from(
        (
            {},
            {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy"},
            {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver"},
            {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"},
            {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease"},
        )
    ),
    st.recursive(
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.sampled_from(("single", "gpu-operator", TEXT, PARTS, "a"))
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from((*_KEYS, *_BLOCKS)), inner, max_size=5)
        ),
        max_leaves=20,
    ),
)
def test_nothing_that_parses_ends_in_a_traceback(head: Body, rest: object) -> None:
    body = {**head, "spec": rest} if head else rest
    check_files({"a.json": json.dumps(body).encode(), "kustomization.yaml": json.dumps({"helmCharts": rest}).encode()})
