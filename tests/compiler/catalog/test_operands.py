"""Which DaemonSets of the GPU Operator restart for which setting, by line of releases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from gpuplan.compiler.catalog.operands import (
    Operand,
    Restart,
    Roll,
    Setup,
    Where,
    is_left_alone,
    operands,
    restart_source,
    rolls,
    running,
)
from gpuplan.compiler.catalog.operators import lines
from tests.every import every_row

NAMES = {
    "D": "nvidia-driver-daemonset",
    "T": "nvidia-container-toolkit-daemonset",
    "P": "nvidia-device-plugin-daemonset",
    "M": "nvidia-device-plugin-mps-control-daemon",
    "G": "nvidia-mig-manager",
    "F": "gpu-feature-discovery",
    "C": "nvidia-dcgm",
    "E": "nvidia-dcgm-exporter",
    "S": "nvidia-node-status-exporter",
    "V": "nvidia-operator-validator",
    "W": "gpu-operator-node-feature-discovery-worker",
    "N": "nfd-worker",
}
"""The DaemonSets, by a letter each."""

# Settings, and the DaemonSets whose pod templates hold them: in all lines, or from each line on.
EXPECTED = (
    ("daemonsets.tolerations|priorityClassName|labels|annotations", "DTPMGFCESV"),
    ("driver.manager.repository|image|version|imagePullPolicy|env|imagePullSecrets", "D"),
    ("driver.rdma.enabled|useHostMofed", "D"),
    ("driver.repository|image|version|imagePullPolicy|imagePullSecrets|resources|args|env|startupProbe", "D"),
    ("driver.livenessProbe|readinessProbe|licensingConfig|usePrecompiled|enabled", "D"),
    ("driver.useOpenKernelModules", "v24.6:D v25.3:-"),
    ("driver.virtualTopology.config", "D"),
    ("driver.kernelModuleConfig.name", "D"),
    ("driver.repoConfig.configMapName", "D"),
    ("driver.certConfig.name", "D"),
    ("validator.imagePullSecrets", "v24.6:DTPMGFCESV v26.3:TPMGFCEV"),
    ("gds.enabled", "v24.6:DPV v26.3:DP"),
    ("gds.repository|image|version|imagePullPolicy|imagePullSecrets|env", "D"),
    ("gdrcopy.enabled", "v24.6:D v25.10:DPV v26.3:DP"),
    ("gdrcopy.repository|image|version|imagePullPolicy|imagePullSecrets|env", "D"),
    ("hostPaths.rootFS", "v24.6:DTPGSV v24.9:DTPGFSV v25.3:DTPGSV"),
    ("validator.repository|image|version|imagePullPolicy", "TPMGFCEV"),
    ("toolkit.repository|image|version|imagePullPolicy|imagePullSecrets|resources|env", "T"),
    ("toolkit.installDir|enabled", "TPG"),
    ("operator.runtimeClass", "TPMGFCEV"),
    ("validator.driver.env", "TV"),
    ("cdi.enabled", "v24.6:TPG v25.10:TPMGFCEV"),
    ("cdi.default", "v24.6:T v25.10:-"),
    ("hostPaths.driverInstallDir", "v24.6:TPGV v24.9:TPGFV v25.3:TPGV"),
    ("devicePlugin.config.name|default", "PMF"),
    ("devicePlugin.repository|image|version|imagePullPolicy", "PMF"),
    ("devicePlugin.imagePullSecrets|resources", "PM"),
    ("devicePlugin.args|env", "P"),
    ("devicePlugin.mps.root", "PM"),
    ("validator.toolkit.env", "PMGFCEV"),
    ("mig.strategy", "PMFV"),
    ("devicePlugin.enabled", "PMV"),
    ("migManager.repository|image|version|imagePullPolicy|imagePullSecrets|resources|args|env|enabled", "G"),
    ("migManager.config.name", "G"),
    ("migManager.gpuClientsConfig.name", "G"),
    ("gfd.repository|image|version|imagePullPolicy|imagePullSecrets|resources|args|env|enabled", "F"),
    ("dcgm.repository|image|version|imagePullPolicy|imagePullSecrets|resources|args|env", "C"),
    ("dcgm.enabled", "CE"),
    ("dcgmExporter.repository|image|version|imagePullPolicy|imagePullSecrets|resources|args|env|enabled", "E"),
    ("dcgmExporter.config.name", "E"),
    ("operator.initContainer.repository|image|version|imagePullPolicy", "v24.6:E v26.3:-"),
    ("nodeStatusExporter.repository|image|version|imagePullPolicy|imagePullSecrets|resources|args|env|enabled", "S"),
    ("validator.resources", "v24.6:V v26.7:TPMGFCEV"),
    ("validator.args|env", "V"),
    ("validator.cuda.env", "V"),
    ("validator.plugin.env", "V"),
    ("node-feature-discovery.image.repository|tag|pullPolicy", "W"),
    ("node-feature-discovery.enableNodeFeatureApi", "v24.6:W v25.3:-"),
    ("node-feature-discovery.featureGates|imagePullSecrets|priorityClassName", "W"),
    ("node-feature-discovery.master.service.port", "v24.6:W v25.3:-"),
    ("node-feature-discovery.tls.enable", "v24.6:W v25.3:-"),
    ("node-feature-discovery.worker.affinity|annotations|mountUsrSrc|nodeSelector|podSecurityContext", "W"),
    ("node-feature-discovery.worker.priorityClassName|resources|securityContext|tolerations", "W"),
    ("node-feature-discovery.worker.metricsPort", "v24.6:W v25.10:-"),
    ("nfd.enabled", "W"),
    ("node-feature-discovery.worker.extraEnvs|hostNetwork|livenessProbe|readinessProbe", "v24.6:- v24.9:W"),
    ("node-feature-discovery.worker.healthPort", "v24.6:- v24.9:W v25.10:-"),
    ("driver.kernelModuleType", "v24.6:- v25.3:D"),
    ("node-feature-discovery.worker.config|extraArgs", "v24.6:- v25.3:W"),
    ("driver.secretEnv", "v24.6:- v25.10:D"),
    ("dcgmExporter.hostPID|hpcJobMapping", "v24.6:- v25.10:E"),
    ("node-feature-discovery.worker.dnsPolicy|port", "v24.6:- v25.10:W"),
    ("daemonsets.podSecurityContext", "v24.6:- v26.3:DTPMGFCESV"),
    ("driver.hostNetwork", "v24.6:- v26.3:D"),
    ("toolkit.hostNetwork", "v24.6:- v26.3:T"),
    ("cdi.nriPluginEnabled", "v24.6:- v26.3:TPMGFCEV"),
    ("devicePlugin.hostNetwork", "v24.6:- v26.3:PM"),
    ("migManager.hostNetwork", "v24.6:- v26.3:G"),
    ("gfd.hostNetwork", "v24.6:- v26.3:F"),
    ("dcgm.hostNetwork", "v24.6:- v26.3:C"),
    ("dcgmExporter.annotations|hostNetwork|enablePodLabels|enablePodUID|podLabelAllowlistRegex", "v24.6:- v26.3:E"),
    ("nodeStatusExporter.hostNetwork", "v24.6:- v26.3:S"),
    ("validator.hostNetwork", "v24.6:- v26.3:V"),
    ("hostPaths.kubeletRootDir", "v24.6:- v26.7:E"),
    ("node-feature-discovery.checksumValuesOnly", "v24.6:- v26.7:W"),
    ("node-feature-discovery.worker.hostUsers|initContainers|labels|ownerRefs", "v24.6:- v26.7:W"),
    ("NodeFeatureDiscovery nfd-instance.operand.image|imagePullPolicy|workerTolerations|workerEnvs", "N"),
    ("NodeFeatureDiscovery nfd-instance.operand.workerNodeSelector", "N"),
    ("NodeFeatureDiscovery nfd-instance", "N"),
)


def _keys(pattern: str) -> Iterator[str]:
    route, dot, last = pattern.rpartition(".")
    return (f"{route}{dot}{name}" for name in last.split("|"))


def _letters(expected: str, line: str) -> str:
    """What is expected of a line."""
    if ":" not in expected:
        return expected
    found = ""
    for part in expected.split():
        since, _, letters = part.partition(":")
        names = [item.name for item in lines()]
        found = letters.strip("-") if names.index(since) <= names.index(line) else found
    return found


CASES = [(key, expected) for pattern, expected in EXPECTED for key in _keys(pattern)]
EVERYTHING = {"devicePlugin": {"enabled": True}, "cdi": {"enabled": True}, "dcgm": {"enabled": True}}
SWITCHES = ("gds", "gdrcopy", "nodeStatusExporter")


def settings_with(key: str, value: object) -> dict[str, Any]:
    """Settings in which all operands are there and all switches on, and this key has this value."""
    found: dict[str, Any] = {name: {"enabled": True} for name in (*SWITCHES, "gfd", "migManager")}
    found |= {name: dict(part) for name, part in EVERYTHING.items()}
    found["driver"] = {"rdma": {"enabled": True}}
    found["NodeFeatureDiscovery nfd-instance"] = {"operand": {}}
    *route, last = key.split(".")
    inside = found
    for part in route:
        inside = inside.setdefault(part, {})
    inside[last] = value
    return found


def setups(key: str, line: str, one: object, other: object) -> tuple[Setup, Setup]:
    installed_by = "helm" if key.startswith(("nfd.", "node-feature-discovery.")) else "olm"
    traits = frozenset(("cri-o", "openshift"))
    old, new = (Setup(settings_with(key, value), installed_by, traits) for value in (one, other))
    return old, new


def rolled(key: str, line: str, one: object = "a", other: object = "b") -> set[str]:
    """The DaemonSets that roll where this key, and nothing else, differs."""
    found = rolls(line, *setups(key, line, one, other))
    assert set(found) <= {key}
    return {roll.operand.daemon_set for roll in found.get(key, ())}


@every_row(CASES, lambda key, _: key)
def test_a_setting_restarts_whose_pod_template_holds_it(key: str, expected: str) -> None:
    is_switch = key.endswith(("nabled", ".default")) and key != "devicePlugin.config.default"
    is_object = " " in key and "." not in key
    values = (True, False) if is_switch else ({"a": "b"}, None) if is_object else ("a", "b")
    found = {line.name: rolled(key, line.name, *values) for line in lines()}
    assert found == {line.name: {NAMES[letter] for letter in _letters(expected, line.name)} for line in lines()}


def test_each_row_of_the_table_is_among_these_cases() -> None:
    known = {
        key
        for line in lines()
        for installed_by in ("helm", "olm")
        for operand in operands(line.name, installed_by)
        for key in (operand.enabled, *(read.key for read in operand.reads))
        if key
    }
    assert known == {key for key, _ in CASES}


# --- On which nodes, and what becomes of pods --------------------------------------------------------------------

FATES = {
    "D": (Restart.EVICTS, Where.ALL),
    "T": (Restart.PAUSES, Where.ALL),
    "P": (Restart.PAUSES, Where.ALL),
    "M": (Restart.ENDS, Where.MPS),
    "G": (Restart.WATCHES, Where.MIG),
    "F": (Restart.WATCHES, Where.ALL),
    "C": (Restart.WATCHES, Where.ALL),
    "E": (Restart.WATCHES, Where.ALL),
    "S": (Restart.WATCHES, Where.ALL),
    "V": (Restart.WATCHES, Where.ALL),
    "W": (Restart.WATCHES, Where.ALL),
}


@pytest.mark.parametrize("line", [line.name for line in lines()])
def test_each_operand_has_its_nodes_and_its_fate(line: str) -> None:
    found = {operand.daemon_set: (operand.restart, operand.where) for operand in operands(line)}
    assert found == {NAMES[letter]: fate for letter, fate in FATES.items()}


@pytest.mark.parametrize("line", [line.name for line in lines()])
def test_each_row_names_tag_file_and_line(line: str) -> None:
    sources = [source for operand in operands(line) for source in (*operand.sources, *_sources(operand))]
    sources += [restart_source(restart, line) for restart in Restart]
    assert [source for source in sources if not re.fullmatch(r"NVIDIA/\S+ v[0-9.]+ \S+:[1-9][0-9]*", source)] == []
    assert all(f" {line}." in source for operand in operands(line) for source in operand.sources)


def _sources(operand: Operand) -> Iterator[str]:
    return (read.source for read in operand.reads)


def _fate(line: str, key: str) -> Restart:
    (roll,) = (roll for roll in rolls(line, *setups(key, line, "a", "b"))[key] if roll.operand.is_replaced_by_hand)
    return roll.restart


@pytest.mark.parametrize(
    "key",
    [
        "daemonsets.tolerations",
        "daemonsets.labels",
        "driver.resources",
        "driver.startupProbe",
        "driver.manager.imagePullPolicy",
        "gds.imagePullSecrets",
        "gdrcopy.imagePullPolicy",
    ],
)
def test_before_v26_7_whatever_changes_of_the_drivers_pods_evicts(key: str) -> None:
    assert _fate("v26.3.3", key) is Restart.EVICTS
    assert _fate("v26.7.0", key) is Restart.PAUSES


@pytest.mark.parametrize("key", ["driver.version", "driver.env", "driver.manager.image", "hostPaths.rootFS"])
def test_what_is_installed_evicts_in_every_line(key: str) -> None:
    assert {_fate(line.name, key) for line in lines()} == {Restart.EVICTS}


# --- What is there, and what else must hold ----------------------------------------------------------------------


def between(old: Mapping[str, Any], new: Mapping[str, Any], line: str = "v26.7.0", *traits: str) -> set[str]:
    sides = (Setup(dict(side), "helm", frozenset(traits)) for side in (old, new))
    return {roll.operand.daemon_set for found in rolls(line, *sides).values() for roll in found}


def test_an_operand_that_is_off_does_not_roll() -> None:
    off = {"devicePlugin": {"enabled": False}}
    assert between({**off, "mig": {"strategy": "single"}}, {**off, "mig": {"strategy": "mixed"}}) == {NAMES["F"]}


def test_a_switch_that_is_written_as_its_default_is_no_change() -> None:
    assert between({}, {"toolkit": {"enabled": True}, "dcgm": {"enabled": False}, "cdi": {"enabled": True}}) == set()
    assert between({}, {"cdi": {"enabled": True}}, "v25.3.4") == {NAMES[letter] for letter in "TPG"}


def test_a_setting_of_what_is_off_restarts_nothing() -> None:
    assert between({}, {"gds": {"version": "2.20"}}) == set()
    assert between({"gds": {"enabled": True}}, {"gds": {"enabled": True, "version": "2.20"}}) == {NAMES["D"]}


def test_on_containerd_cdi_restarts_those_that_hand_out_devices() -> None:
    off = {"cdi": {"enabled": False}}
    assert between(off, {}) == {NAMES[letter] for letter in "TPG"}
    assert between(off, {}, "v26.7.0", "cri-o") == {NAMES[letter] for letter in "TPMGFEV"}


def test_what_a_chart_does_not_read_restarts_nothing() -> None:
    assert between({}, {"dcgmExporter": {"hostPID": True}}, "v25.3.4") == set()
    assert between({}, {"driver": {"unheardOf": "a"}}) == set()


@pytest.mark.parametrize(
    ("release", "trait", "expected"),
    [
        ("v25.3.2", "", "E"),
        ("v25.3.3", "", ""),
        ("v25.3.4", "", ""),
        ("v25.3.4", "openshift", "E"),
        ("v25.10.0", "", "E"),
    ],
)
def test_two_releases_hand_the_exporter_its_environment_on_openshift_alone(
    release: str, trait: str, expected: str
) -> None:
    told = {"dcgmExporter": {"env": [{"name": "A", "value": "b"}]}}
    assert between({}, told, release, trait) == {NAMES[letter] for letter in expected}


def _roll(letter: str, setup: Setup) -> Roll:
    return next(roll for roll in running("v26.7.0", setup) if roll.operand.daemon_set == NAMES[letter])


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ({}, ""),
        ({"driver": {"upgradePolicy": {"autoUpgrade": False}}}, "D"),
        ({"sandboxWorkloads": {"enabled": True}}, "D"),
        ({"daemonsets": {"updateStrategy": "OnDelete"}}, "TPMGFEV"),
    ],
)
def test_pods_that_nobody_replaces_are_left_alone(told: dict[str, Any], left: str) -> None:
    setup = Setup(told, "helm")
    found = {roll.operand.daemon_set for roll in running("v26.7.0", setup) if is_left_alone(roll, setup)}
    assert found == {NAMES[letter] for letter in left}


def test_a_daemon_set_that_goes_is_never_left_alone() -> None:
    setup = Setup({"daemonsets": {"updateStrategy": "OnDelete"}}, "helm")
    assert not is_left_alone(_roll("P", setup)._replace(goes=True), setup)
