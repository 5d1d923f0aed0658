"""The tool that makes tables of an operator's source: what it finds, on a few lines of Go."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"

TYPES = """package v1

type ClusterPolicySpec struct {
	// Plugin is one part
	Plugin PluginSpec `json:"devicePlugin"`
	CDI    *CDISpec   `json:"cdi,omitempty"`
}

type PluginSpec struct {
	Image string   `json:"image,omitempty"`
	Env   []EnvVar `json:"env,omitempty"`
}

type CDISpec struct {
	Enabled *bool `json:"enabled,omitempty"`
}

func (c *CDISpec) IsEnabled() bool {
	if c.Enabled == nil {
		return true
	}
	return *c.Enabled
}
"""

CONTROLS = """package controllers

const (
	CDIEnabledEnvName = "CDI_ENABLED"
)

func Transform(obj *appsv1.DaemonSet, config *gpuv1.ClusterPolicySpec, n ClusterPolicyController) error {
	// config.Plugin.Image is not read here
	image, err := gpuv1.ImagePath(&config.Plugin)
	common(obj,
		config.CDI, "http://not a comment")
	return err
}

func common(obj *appsv1.DaemonSet, cdi *gpuv1.CDISpec, url string) {
	if cdi.IsEnabled() {
		setContainerEnv(obj, CDIEnabledEnvName, "true")
	}
}
"""


@pytest.fixture(scope="module")
def tables() -> Iterator[ModuleType]:
    sys.path.insert(0, str(TOOLS))
    yield importlib.import_module("operator_tables")
    sys.path.remove(str(TOOLS))


@pytest.fixture
def code(tables: ModuleType) -> Any:
    found = {each.name: each for each in tables.functions(CONTROLS)}
    methods = {(each.receiver[1], each.name): each for each in tables.functions(TYPES)}
    return tables.Code(found, methods, tables.structs(TYPES), tables.constants(CONTROLS))


def test_a_field_is_read_where_a_function_or_one_that_it_calls_reads_it(tables: ModuleType, code: Any) -> None:
    walk = tables.Walk(code, {})
    walk.visit(code.functions["Transform"], {})
    assert walk.fields(outside_template=False) == {"cdi.enabled": 16, "devicePlugin.image": 9}


def test_a_variable_is_set_by_its_constant_at_the_line_of_the_call(tables: ModuleType, code: Any) -> None:
    walk = tables.Walk(code, {})
    walk.visit(code.functions["Transform"], {})
    assert walk.environment == {"CDI_ENABLED": 17}


def test_a_comment_is_blank_and_its_line_is_kept(tables: ModuleType) -> None:
    go_source = importlib.import_module("go_source")
    assert go_source.without_comments('a := "//" // b\n// c\nd') == 'a := "//" \n\nd'


def test_parameters_that_share_a_type_have_it_each(tables: ModuleType) -> None:
    (found,) = tables.functions("func f(a, b *T, c []string) {\n\treturn\n}\n")
    assert found.parameters == (("a", "*T"), ("b", "*T"), ("c", "[]string"))
