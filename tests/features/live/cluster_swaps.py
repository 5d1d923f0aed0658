"""Put the Cluster that is read of what was built in the place of the one that it was built of, and build again.

python -m tests.features.live.cluster_swaps --platforms 20 --seed 1 [--show monitoring/]
"""

from __future__ import annotations

import argparse
import difflib
import random
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from gpuplan.compiler.backends.gpu_operator import config_map_names, helm_values, settings
from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.manifests import to_yaml
from gpuplan.compiler.manifests.bodies import new_object
from gpuplan.compiler.pipeline import build
from gpuplan.compiler.pipeline.writing import document
from gpuplan.compiler.planning.charts import find_chart
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import Install, Platform
from gpuplan.features.live.clusters import read
from gpuplan.features.live.readers import Draft, read_dump
from tests.features.live.rich_clusters import random_rich_platform
from tests.features.live.round_trip import NODES, applied, is_dumped, nodes_of
from tests.laws.orders.platforms import CLUSTER


class Swap(NamedTuple):
    """What was built with one Cluster and with the other, and how that was read."""

    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    draft: Draft
    diagnostics: tuple[Diagnostic, ...]

    @property
    def differing(self) -> tuple[str, ...]:
        paths = sorted({*self.before, *self.after})
        return tuple(path for path in paths if self.before.get(path) != self.after.get(path))

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.draft.spec


def swapped(root: Path, cluster: str, *, is_live: bool = False) -> Swap:
    """Read the Cluster of what a platform below ``root`` builds, write it over the platform's own, and build again.

    ``is_live`` leaves out what no cluster has, and adds what others make there.
    """
    built = build(root, (cluster,))
    assert built.tree, [item.finding.message for item in built.report.diagnostics]
    (plan,) = built.report.plans
    files = {f"out/{path}": data for path, data in built.tree.items() if is_dumped(path)}
    if is_live:
        files = {path: data for path, data in files.items() if not is_file(path)} | {"made.yaml": made_by_others(plan)}
    dump, _ = read_dump(files | {NODES: nodes_of(plan)})
    found = read(dump, cluster)
    (draft,) = found.drafts
    text = to_yaml(document("Cluster", cluster, draft.spec))
    (root / "overlays" / cluster / "cluster.yaml").write_text(text, encoding="utf-8")
    again = build(root, (cluster,))
    assert again.tree, [item.finding.message for item in again.report.diagnostics if item.is_error]
    trees = [applied(tree) for tree in (built.tree, again.tree)]
    if is_live:
        trees = [{path: data for path, data in tree.items() if not is_file(path)} for tree in trees]
    return Swap(trees[0], trees[1], draft, found.diagnostics)


_FILES: Final = (
    "values.yaml",
    "kueue-configuration.yaml",
    "node-groups.yaml",
    "argocd-cm.yaml",
    "argocd-health-checks.yaml",
    "merge-into-cluster-policy.yaml",
    "revisions.yaml",
    "kustomization.yaml",
    ".json",
    ".md",
)


def is_file(path: str) -> bool:
    """Whether nothing applies it."""
    return path.endswith(_FILES) or "/monitoring/rules/" in path


def made_by_others(plan: Plan) -> bytes:
    """What the chart makes of its values, what an owner merges, and what OpenShift has."""
    operator = plan.cluster.gpu_operator
    bodies: list[dict[str, Any]] = []
    labels = {"helm.sh/chart": f"gpu-operator-{operator.version}"}
    if operator.spec.install is Install.HELM:
        spec = {key: value for key, value in helm_values(plan).items() if key in _BLOCKS}
        strategy = {"mig": {"strategy": spec["mig"]["strategy"]}} if spec["mig"]["strategy"] else {"mig": {}}
        bodies.append(
            new_object("nvidia.com/v1", "ClusterPolicy", "cluster-policy", labels=labels, spec=spec | strategy)
        )
    elif operator.is_merged_by_owner:
        bodies.append(settings.policy_patch(plan, config_map_names(plan)))
    if operator.spec.install is not Install.OLM:
        bodies.append(new_object("apps/v1", "Deployment", "gpu-operator", operator.namespace, labels=labels))
    if chart := find_chart(plan.cluster):
        name = {"kueue": "kueue-controller-manager", "kai-scheduler": "kai-operator"}[chart.name]
        made = {"helm.sh/chart": f"{chart.name}-{chart.version}"}
        bodies.append(new_object("apps/v1", "Deployment", name, chart.namespace, labels=made))
    if plan.cluster.spec.platform is Platform.OPENSHIFT:
        bodies.append(new_object("config.openshift.io/v1", "ClusterVersion", "version"))
    return "---\n".join(map(to_yaml, bodies)).encode()


_BLOCKS = ("mig", "driver", "toolkit", "devicePlugin", "migManager", "dcgmExporter", "daemonsets", "nodeStatusExporter")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platforms", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", default="", help="print the differences of paths that hold this")
    parser.add_argument("--policies", action="store_true", help="print what was read, beside what was there")
    parser.add_argument("--live", action="store_true", help="read what a cluster has, and no files")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    alike = total = 0
    for seed in range(options.seed, options.seed + options.platforms):
        platform = random_rich_platform(random.Random(seed))
        with TemporaryDirectory() as folder:
            platform.write(Path(folder))
            if not build(Path(folder)).tree:
                counts["(no platform)"] += 1
                continue
            total += 1
            swap = swapped(Path(folder), CLUSTER, is_live=options.live)
        alike += not swap.differing
        shown = [path for path in swap.differing if options.show and options.show in path]
        if options.policies or shown:
            print(f"--- {seed}\n{platform.cluster}\n{dict(swap.spec)}")
        for path in swap.differing:
            counts["/".join(path.split("/")[1:3])] += 1
            if path in shown:
                before, after = (tree.get(path, b"").decode().splitlines() for tree in (swap.before, swap.after))
                print(f"=== {seed}", *difflib.unified_diff(before, after, path, path, lineterm="", n=2), sep="\n")
    print(f"{alike} of {total} alike")
    for path, count in counts.most_common(60):
        print(f"{count:6} {path}")
    return 0 if alike == total else 1


if __name__ == "__main__":
    sys.exit(main())
