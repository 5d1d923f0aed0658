from __future__ import annotations

import pytest

from gpuplan.compiler.catalog import operators
from gpuplan.compiler.catalog.operators import DriverEffect, Keys, chart_keys, find_line, lines_that_know, nearest_line


@pytest.mark.parametrize(
    ("text", "version"),
    [("v26.7.0", (26, 7, 0)), ("570.148.08", (570, 148, 8)), ("v26.7.0-rc.1", (26, 7, 0)), ("1.34", (1, 34))],
)
def test_versions_are_compared_as_numbers(text: str, version: operators.Version) -> None:
    assert operators.parse_version(text) == version


@pytest.mark.parametrize("text", ["", "latest", "v26", "26.7.x", "1..2", "v"])
def test_what_is_not_a_version(text: str) -> None:
    assert operators.parse_version(text) is None


# --- Releases ----------------------------------------------------------------------------------------------------


def test_lines_are_in_order_and_complete() -> None:
    versions = [line.version for line in operators.lines()]
    assert versions == sorted(set(versions))
    assert all(len(line.version) == 2 and line.device_plugin for line in operators.lines())


def test_each_default_driver_is_of_a_release_of_its_line() -> None:
    for line in operators.lines():
        assert all((operators.parse_version(release) or ())[:2] == line.version for release in line.drivers)
        assert all(operators.parse_version(driver) for driver in line.drivers.values())


def test_plugins_do_not_get_older() -> None:
    plugins = [line.device_plugin for line in operators.lines()]
    assert plugins == sorted(plugins)


@pytest.mark.parametrize(
    ("release", "line"),
    [("v26.7.0", "v26.7"), ("v26.5.0", "v26.3"), ("v99.1.0", "v26.7"), ("v1.0.0", "v24.6"), ("latest", "v26.7")],
)
def test_the_nearest_line_is_the_newest_that_is_not_newer(release: str, line: str) -> None:
    assert nearest_line(release).name == line


def test_a_line_that_is_not_known_is_not_found() -> None:
    assert find_line("v26.5.0") is None
    assert find_line("latest") is None


def test_a_default_driver_is_of_one_release() -> None:
    assert operators.default_driver("v26.7.0") == "595.91.07"
    assert operators.default_driver("v26.7.9") == ""
    assert operators.default_driver("v1.0.0") == ""


# --- Drivers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "driver", "has_it"),
    [
        (DriverEffect.NO_MIG, "575.57.08", True),
        (DriverEffect.NO_MIG, "575.57.09", False),
        (DriverEffect.NO_MIG_BESIDE_WHOLE_GPUS, "570.133.20", True),
        (DriverEffect.NO_MIG_BESIDE_WHOLE_GPUS, "570.172.08", False),
        (DriverEffect.CDMM, "580.65.06", True),
        (DriverEffect.CDMM, "595.91.07", True),
        (DriverEffect.CDMM, "580.9.1", False),
        (DriverEffect.CDMM, "", False),
    ],
)
def test_which_drivers_have_a_defect(effect: DriverEffect, driver: str, has_it: bool) -> None:
    (defect,) = [found for found in operators.driver_defects() if found.effect is effect]
    assert defect.has(driver) is has_it


def test_cdmm_is_of_grace_alone() -> None:
    (cdmm,) = [found for found in operators.driver_defects() if found.effect is DriverEffect.CDMM]
    assert cdmm.hits("NVIDIA-GB200")
    assert not cdmm.hits("NVIDIA-B200")


# --- Helm values -------------------------------------------------------------------------------------------------


def knows(keys: Keys, route: str) -> bool:
    below: Keys | None = keys
    for key in route.split("."):
        if below is None:
            return True
        if key not in below:
            return False
        below = below[key]
    return True


@pytest.mark.parametrize(
    ("release", "route", "is_known"),
    [
        ("v26.7.0", "migManager.config.name", True),
        ("v26.7.0", "migManager.config.names", False),
        ("v26.7.0", "clusterPolicy.deployCR", True),
        ("v26.3.1", "clusterPolicy.deployCR", False),
        ("v25.3.1", "cdi.default", True),
        ("v26.7.0", "cdi.default", False),
        ("v25.10.1", "cdi.nriPluginEnabled", False),
        ("v24.9.2", "driver.kernelModuleType", False),
        ("v26.7.0", "driver.resources.limits.memory", True),
        ("v26.7.0", "node-feature-discovery.any.thing", False),
        ("v26.7.0", "node-feature-discovery.worker.config.sources", True),
        ("v25.3.4", "node-feature-discovery.postDeleteCleanup", False),
        ("v25.10.0", "node-feature-discovery.postDeleteCleanup", True),
        ("v24.9.2", "node-feature-discovery.master.port", True),
        ("v25.3.4", "node-feature-discovery.master.port", False),
        ("v25.10.1", "node-feature-discovery.master.port", True),
        ("v24.6.2", "node-feature-discovery.worker.healthPort", False),
        ("v25.3.4", "node-feature-discovery.worker.healthPort", True),
        ("v26.3.3", "node-feature-discovery.worker.healthPort", False),
    ],
)
def test_which_keys_a_chart_reads(release: str, route: str, is_known: bool) -> None:
    chart = chart_keys(release)
    assert chart.is_read
    assert knows(chart.keys, route) is is_known


def test_a_chart_between_two_that_were_read_may_have_the_keys_of_both() -> None:
    chart = chart_keys("v26.5.0")
    assert not chart.is_read
    assert knows(chart.keys, "cdi.default")
    assert knows(chart.keys, "clusterPolicy.deployCR")
    assert not knows(chart.keys, "driver.useOpenKernelModules")


def test_a_newer_chart_has_the_keys_of_the_newest_that_was_read() -> None:
    assert chart_keys("v30.1.0").keys == chart_keys("v26.7.0").keys


def test_which_lines_know_a_key() -> None:
    assert lines_that_know(("gpuCluster", "deployCR")) == ("v26.7",)
    assert lines_that_know(("driver", "kernelModuleType")) == ("v25.3", "v25.10", "v26.3", "v26.7")
    assert lines_that_know(("driver", "resources", "limits")) == ("v24.6", "v24.9", "v25.3", "v25.10", "v26.3", "v26.7")
    assert lines_that_know(("dirver",)) == ()


# --- Tolerations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toleration", "is_enough"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "a", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "a", "operator": "Exists", "effect": ""}, True),
        ({"key": "a", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "b", "operator": "Exists"}, False),
        ({"key": "a", "value": "x"}, True),
        ({"key": "a", "operator": "Equal", "value": "y"}, False),
        ({"key": "a"}, False),
        ({}, False),
    ],
)
def test_whether_a_toleration_covers_a_taint(toleration: operators.Toleration, is_enough: bool) -> None:
    assert operators.tolerates(toleration, "a", "x", "NoSchedule") is is_enough


def test_a_preference_keeps_no_daemon_set_away() -> None:
    assert operators.is_tolerated([], "a", "x", "PreferNoSchedule")
    assert not operators.is_tolerated([], "a", "x", "NoSchedule")


def test_tolerations_of_any_shape_are_survived() -> None:
    assert not operators.is_tolerated(["a", None, 5], "a", "x", "NoSchedule")
