"""Fleet-N: a made-up platform of N tenants, N/10 pools over four layouts and five priority classes."""

from __future__ import annotations

from pathlib import Path

LAYOUTS = {
    "seven-small": {"1g.10gb": 7},
    "three-medium": {"2g.20gb": 3, "1g.10gb": 1},
    "two-large": {"3g.40gb": 2},
    "one-large-two-medium": {"3g.40gb": 1, "2g.20gb": 2},
}
PROFILES = ("1g.10gb", "2g.20gb", "3g.40gb")
CLASSES = {"critical": 900, "production": 700, "training": 500, "research": 300, "batch": 100}

CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata:
  name: fleet
spec:
  kubernetes: "1.34"
  gpuOperator:
    install: helm
    version: v26.7.0
"""

CLASS = """\
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata:
  name: {name}
spec:
  value: {value}
  description: Class {name}.
"""

LAYOUT = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata:
  name: {name}
spec:
  gpu: A100-80GB
  instances: {{{instances}}}
"""

POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata:
  name: pool-{index:04}
spec:
  gpu: A100-80GB
  nodes:
    count: 8
    gpusPerNode: 8
    namePattern: gpu-{index:04}-[0-9]+
  sharing:
    mig:
      layout: {layout}
  workloadTypes: [inference]
  taints:
    - key: nvidia.com/gpu
      value: pool-{index:04}
      effect: NoSchedule
"""

TENANT = """\
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata:
  name: team-{index:05}
spec:
  namespaces: [team-{index:05}]
  priorityClasses: [{klass}, batch]
  quotas:
    - pool: pool-{pool:04}
      unit: {unit}
      guaranteed: {guaranteed}
  members: [team-{index:05}-members]
"""


def write_fleet(root: Path, tenants: int) -> None:
    """Write fleet-N as a repository: one overlay, and policies in a file for each kind."""
    pools = max(tenants // 10, 4)
    layouts = list(LAYOUTS)
    files = {
        "overlays/fleet/cluster.yaml": [CLUSTER],
        "policies/classes.yaml": [CLASS.format(name=name, value=value) for name, value in CLASSES.items()],
        "policies/layouts.yaml": [_layout(name) for name in layouts],
        "policies/pools.yaml": [POOL.format(index=i, layout=layouts[i % len(layouts)]) for i in range(pools)],
        "policies/tenants.yaml": [_tenant(index, pools) for index in range(tenants)],
    }
    for path, documents in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("---\n".join(documents))


def _layout(name: str) -> str:
    return LAYOUT.format(name=name, instances=", ".join(f"{k}: {v}" for k, v in LAYOUTS[name].items()))


def _tenant(index: int, pools: int) -> str:
    """Ten tenants share a pool of 64 GPUs; together they have a guarantee on most of each of its units."""
    pool, unit, per_gpu = _share(index, pools)
    return TENANT.format(
        index=index,
        pool=pool,
        unit=unit,
        guaranteed=per_gpu * 64 // 12,
        klass=list(CLASSES)[index % (len(CLASSES) - 1)],
    )


def _share(index: int, pools: int) -> tuple[int, str, int]:
    """A tenant's pool, its unit there, and how many of them a GPU has: the tenants of a pool take its units in turn."""
    pool = index % pools
    units = list(LAYOUTS.values())[pool % len(LAYOUTS)]
    unit = list(units)[index // pools % len(units)]
    return pool, unit, units[unit]


def peer_data(tenants: int, out: Path) -> dict[str, object]:
    """What the peer generates from: the same facts, already resolved; layouts' names are read from a finished build."""
    pools = max(tenants // 10, 4)
    layouts = list(LAYOUTS)
    entries = min((out / "fleet" / "gpu-operator").glob("configmap-gpuplan-mig-parted-*.yaml")).read_text()
    names = {layout: _entry_name(entries, layout) for layout in layouts}
    return {
        "resources": ["nvidia.com/gpu", "nvidia.com/gpu.shared", *(f"nvidia.com/mig-{unit}" for unit in PROFILES)],
        "classes": [{"name": name, "value": value} for name, value in CLASSES.items()],
        "pools": [
            {"name": f"pool-{i:04}", "layout": names[layouts[i % len(layouts)]], "pattern": f"gpu-{i:04}-[0-9]+"}
            for i in range(pools)
        ],
        "tenants": [_peer_tenant(index, pools) for index in range(tenants)],
    }


def _entry_name(text: str, layout: str) -> str:
    return next(line.strip(" :") for line in text.splitlines() if line.strip().startswith(f"{layout}-"))


def _peer_tenant(index: int, pools: int) -> dict[str, object]:
    pool, unit, per_gpu = _share(index, pools)
    return {
        "name": f"team-{index:05}",
        "group": f"team-{index:05}-members",
        "pool": f"pool-{pool:04}",
        "resource": f"nvidia.com/mig-{unit}",
        "cap": per_gpu * 64 // 12,
        "classes": [list(CLASSES)[index % (len(CLASSES) - 1)], "batch"],
    }
