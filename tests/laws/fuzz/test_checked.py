"""Whatever `gpuplan check` is given, it answers by findings or trouble, and nothing of a Secret is in them."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.features.files.checking import check_files
from gpuplan.terminal.full import full
from gpuplan.terminal.text import Theme
from tests.laws.fuzz.test_lists import NODES, PODS, TEXTS, WHOLE, texts

PLUGIN = (
    "version: v1\nflags: {migStrategy: mixed}\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}\n"
)
PARTS = "version: v1\nmig-configs:\n  a: [{devices: [4], mig-enabled: true, mig-devices: {1g.10gb: 9}}]\n"
VALUES = {
    "mig": {"strategy": "single"},
    "devicePlugin": {"enabled": False, "config": {"name": "plugin", "default": "a"}, "env": [{"name": "1"}]},
    "migManager": {"config": {"name": "parts", "data": {"config.yaml": PARTS}}},
    "driver": {"version": "575.57.08", "usePrecompiled": True, "kernelModuleType": "open"},
    "gds": {"enabled": True},
}
DUMP = {
    "kind": "List",
    "apiVersion": "v1",
    "items": [
        {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "a"}, "spec": VALUES},
        {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": {"name": "a"}, "spec": VALUES},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plugin"}, "data": {"a": PLUGIN}},
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "a"},
            "spec": {"hard": {"nvidia.com/gpu": 4}},
        },
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "a"},
            "spec": {
                "source": {"chart": "gpu-operator", "targetRevision": "v26.3.1", "helm": {"valuesObject": VALUES}}
            },
        },
    ],
}


def answered(name: str, raw: bytes) -> None:
    try:
        report = check_files({name: raw, "beside.yaml": b"mig: {strategy: mixed}\n"})
    except GpuplanError:
        return
    full(report, Theme()).encode(errors="backslashreplace")


@pytest.mark.parametrize("body", [DUMP, VALUES, PODS, NODES], ids=["dump", "values", "pods", "nodes"])
@pytest.mark.parametrize("seed", range(3))
def test_any_file_is_answered(body: Any, seed: int) -> None:
    generated = texts(body, random.Random(seed))
    for _ in range(TEXTS):
        answered("a.json", next(generated))


@pytest.mark.parametrize("raw", WHOLE, ids=lambda raw: repr(raw[:20]))
def test_whatever_is_no_file_is_answered(raw: bytes) -> None:
    answered("a.yaml", raw)


def test_no_value_of_a_secret_is_told() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"token": "hunter2"}}
    body = {"kind": "List", "apiVersion": "v1", "items": [secret, *DUMP["items"]]}
    chance = random.Random(1)
    for _ in range(TEXTS):
        broken = {**secret, chance.choice(("type", "immutable", "data", "stringData")): ["hunter2", {"a": "hunter2"}]}
        report = check_files({"a.json": json.dumps({**body, "items": [broken, secret]}).encode()})
        assert "hunter2" not in full(report, Theme())


def test_a_file_with_a_secret_that_cannot_be_read_shows_no_value_of_it() -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  a: 'hunter2\n  b: [\n"
    shown = full(check_files({"secret.yaml": text.encode()}), Theme())

    assert "5 |   a: '*******\n" in shown
    assert "hunter2" not in shown
