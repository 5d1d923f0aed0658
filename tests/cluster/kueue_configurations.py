"""What Kueue makes of its own Configuration: its controller reads that before it looks for a cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.programs import program

# `cmd/kueue/main.go` of v0.19.2: it says the first after `config.Load`, and the second after `config.Validate`.
_LOADED = "Configuration loaded"
_VALID = "Initializing"


class Verdict:
    """``loaded`` is the Configuration as Kueue has it, with what it assumes; None where it could not be read."""

    def __init__(self, said: str) -> None:
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        loaded = [yaml.safe_load(line["config"]) for line in lines if line["msg"] == _LOADED]
        self.loaded: dict[str, Any] | None = loaded[0] if loaded else None
        self.is_valid = any(line["msg"] == _VALID for line in lines)
        self.refusal = next((str(line.get("error", "")) for line in lines if line["level"] == "error"), said)

    def __str__(self) -> str:
        return "taken" if self.is_valid else "refused"


def verdict(configuration: str, folder: Path) -> Verdict:
    """There is no cluster, so that the controller ends either way."""
    path = folder / "configuration.yaml"
    path.write_text(configuration, encoding="utf-8")
    command = [str(program("kueue", "kueue")), f"--config={path}", f"--kubeconfig={folder}/none"]
    ended = subprocess.run(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=False)
    return Verdict(ended.stdout)


def lost(said: Mapping[str, Any], had: Mapping[str, Any], route: str = "") -> list[str]:
    """What is said and not so in what Kueue has."""
    found: list[str] = []
    for key, value in said.items():
        here = had.get(key)
        if isinstance(value, Mapping) and isinstance(here, Mapping):
            found += lost(value, here, f"{route}{key}.")
        elif value != here and not _is_same_time(value, here):
            found.append(f"{route}{key}: {value} is {here}")
    return found


def _is_same_time(said: object, had: object) -> bool:
    """Whether it is a duration in Go's longer form, such as `10m0s`."""
    return isinstance(said, str) and isinstance(had, str) and had in {f"{said}0s", f"{said}0m0s"}
