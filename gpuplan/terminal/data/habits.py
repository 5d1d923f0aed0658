"""The words, verbs and options of other programs, with the gpuplan commands that do the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ANY: Final = "any"
"""The case that holds for every command."""

Cases = Mapping[str, str]
"""Answers by case: an option or a name that the command has. The first case that holds is the answer."""

PREFIXES: Final = (
    "app apps application argo argocd cargo docker flux git go gpuplan helm just k kubectl kustomize make mig npm"
    " nvidia-smi oc opentofu pnpm poetry please podman run task terraform tf tofu yarn"
)
"""Programs, and groups of their verbs: the next word says what to do."""

_SHOWS: Final = "`gpuplan show` shows pools, tenants and free units; `gpuplan show -o json` is for programs."
_APPLIES: Final = (
    "gpuplan never talks to a cluster: commit the out/ that `gpuplan build` writes, and Argo CD or Flux syncs out/."
)
_GIT: Final = (
    "gpuplan does not run Git: type `git {verb}`. `gpuplan build` writes the out/ to commit with the policies."
)
_BUILDS: Final = "`gpuplan build` writes the manifests to out/."
_USE: Final = (
    "`gpuplan pack --queries` prints the command that asks Prometheus for the use of GPUs, and `gpuplan show` shows"
    " the units that the policies hand out."
)
_PRINTS: Final = "Type `gpuplan build -c NAME --stdout` to print the objects of a cluster; `gpuplan build` writes all."

VERBS: Final[Mapping[str, str]] = {
    "plan preview whatif what-if simulate dry-run dryrun impact changes terraform tofu": (
        "`gpuplan diff` shows what a change disturbs, and `gpuplan build --diff` the lines of out/ that change."
    ),
    "history log": (
        "Git keeps the history; `gpuplan diff HEAD~1..HEAD` shows what the last commit disturbs and how to undo it."
    ),
    "undo rollback revert": (
        "`gpuplan diff HEAD~1..HEAD` shows how to undo the last commit, and `gpuplan rollout POOL --back` takes the"
        " nodes of a pool back to its own sharing."
    ),
    "apply sync deploy push reconcile up install run start replace promote argocd flux kubectl oc app apps": _APPLIES,
    "commit stage merge pull clone checkout branch stash rebase reset tag switch restore fetch cherry-pick amend": (
        _GIT
    ),
    "delete destroy remove rm down uninstall prune": (
        "gpuplan never talks to a cluster: delete the document from policies/, or a cluster's folder below overlays/,"
        " then run `gpuplan diff` and `gpuplan build`. `gpuplan build --prune-clusters` deletes a cluster's files."
    ),
    "clean clear purge gc": (
        "`gpuplan build` deletes its files in out/ that no policy needs. `gpuplan build --prune-clusters` deletes the"
        " files of a deleted cluster."
    ),
    "lint test verify audit policy policies validation assert conftest kubeconform": (
        "`gpuplan validate` checks the policies."
    ),
    "ci action": "`gpuplan build --check` is for CI; `gpuplan build --check -o github` annotates a pull request.",
    "generate gen compile make manifests write synth helm all": _BUILDS,
    "package publish release releases ship dist bundle archive": (
        "`gpuplan build` writes out/, and Git delivers it: commit out/, and tag the commit."
    ),
    "repo repos repository dependency deps vendor chart charts values operator": (
        "gpuplan downloads no chart: `gpuplan explain Cluster.spec.gpuOperator` lists the release and the values of the"
        " GPU Operator, and `gpuplan build` writes them."
    ),
    "template render kustomize stdout print output outputs objects yaml": _PRINTS,
    "get list ls ps view describe inspect cat json": _SHOWS,
    "status state health doctor live compare refresh reality": (
        "gpuplan keeps no state beside Git: `gpuplan show` shows pools, tenants and free units, and"
        " `gpuplan drift FILE` lists where a cluster differs from the policies."
    ),
    "top stats usage utilization utilisation metrics monitor monitoring prometheus grafana nvidia-smi smi dcgm": (_USE),
    "logs events pods": "gpuplan never talks to a cluster: `gpuplan drift FILE` reads what `kubectl get` printed.",
    "exec attach port-forward cp proxy debug auth": (
        "gpuplan never talks to a cluster: type `kubectl {verb}`. `gpuplan show` shows what the policies plan."
    ),
    "cordon uncordon drain": (
        "gpuplan never talks to a cluster: type `kubectl {verb} NODE`. `gpuplan show --away NODE` shows the pools and"
        " guarantees without that node."
    ),
    "evict maintenance outage fail": (
        "gpuplan never talks to a cluster: `gpuplan show --away NODE` shows the pools and guarantees without a node,"
        " and `gpuplan show --preemption` shows who can evict whom."
    ),
    "taint untaint label annotate": (
        "gpuplan labels and taints no node: type `kubectl {verb}`. `gpuplan explain Pool.spec.nodes` and"
        " `gpuplan explain Cluster.spec.taintPools` describe the labels and taints that gpuplan expects."
    ),
    "wait": "Argo CD or Flux waits for its syncs, and `gpuplan rollout POOL` lists the waits between its steps.",
    "new create scaffold setup bootstrap wizard": "`gpuplan init DIR` writes a starter platform.",
    "upgrade": (
        "gpuplan never talks to a cluster: write the release as `gpuOperator.version` of a Cluster, and commit the out/"
        " that `gpuplan build` writes. `gpuplan rollout POOL --to SHARING` changes how a pool is shared, node by node."
    ),
    "add edit set patch update change rename mv scale autoscale resize drop grant assign": (
        "Edit the documents in policies/ and overlays/: `gpuplan explain Pool` lists the fields of a Pool."
        " `gpuplan rollout POOL --to SHARING` changes how a pool is shared, node by node."
    ),
    "fmt format": "gpuplan writes no policy anew: type `gpuplan validate` to check them, in whatever layout.",
    "fix repair autofix": (
        "gpuplan edits no policy by itself: each finding of `gpuplan validate` ends with the text to write."
    ),
    "doc docs man manual": "`gpuplan --help` lists the commands, and `gpuplan explain GPU203` explains a rule.",
    "cost costs price prices pricing": (
        "`gpuplan show` prints costs if the platform has a Prices document; `gpuplan explain Prices` lists its fields."
    ),
    "watch serve ui dashboard dev web browser": "`gpuplan report --serve` shows a page that follows the files.",
    "graph draw diagram html pdf plot picture": "`gpuplan report -o report.html` draws the platform as one page.",
    "config configure login logout context contexts use workspace workspaces env environment overlay overlays": (
        "gpuplan has no settings and never talks to a cluster: `gpuplan show -c NAME` selects a folder of overlays/."
    ),
    "export convert migrate adopt scan": (
        "`gpuplan import --commands` prints what to collect from a cluster, and `gpuplan import DUMP` writes policies."
    ),
    "optimize optimise size sizing recommend suggest repartition partition": (
        "`gpuplan pack` computes layouts for a demand, and `gpuplan rollout POOL --to SHARING` changes a pool."
    ),
    "gpus gpu models profiles mig profile": "`gpuplan explain gpus` lists the GPU models.",
    "api-resources api-versions kinds resources fields crds crd": (
        "`gpuplan explain schema` lists the kinds of documents, and `gpuplan explain Pool` lists the fields of one."
    ),
    "whoami proj project projects account accounts user users member members rbac": (
        "gpuplan has no accounts: `gpuplan explain Tenant` lists the fields of a team, such as `members`."
    ),
    "plugin plugins provider providers module modules extension": (
        "gpuplan has no plug-ins: `gpuplan explain Pool` lists the fields, and `gpuplan version` prints the versions."
    ),
    "rule codes errors": "`gpuplan explain rules` lists the rules.",
    "why where blame find search grep": "`gpuplan trace FILE` shows which policies a value comes from.",
}
"""Verbs that gpuplan does not have, with the commands to type; ``{verb}`` is the verb."""

MEANT: Final[Mapping[str, str]] = {
    "undo rollback revert": "rollout --back",
    "plan preview whatif what-if impact changes": "diff",
    "lint test verify audit": "validate",
    "generate gen compile make manifests write synth": "build",
    "template render stdout print output yaml": "build --stdout",
    "get list ls ps view describe inspect cat": "show",
    "why where blame": "trace",
    "optimize optimise size": "pack",
}
"""Verbs that mean one of gpuplan's with an option: it takes the arguments that were typed."""

NOUNS: Final[Mapping[str, str]] = {
    "pools pool node nodes capacity free units": (
        "`gpuplan show` shows pools, their nodes and the free units; `gpuplan show --pool NAME` selects a pool."
    ),
    "tenants tenant teams team quota quotas namespace namespaces ns resourcequota": (
        "`gpuplan show` shows tenants with their quotas; `gpuplan show --tenant NAME` selects a tenant."
    ),
    "cluster clusters": "`gpuplan show --summary` prints a line for each cluster; `gpuplan show -c NAME` selects one.",
    "layout layouts miglayout miglayouts": (
        "`gpuplan show` shows the layouts of pools, and `gpuplan trace MigLayout/NAME` lists what depends on a layout."
    ),
    "workload workloads job jobs deployment deployments": "`gpuplan show` shows the workloads of each tenant.",
}
"""Nouns that other programs list, with the commands that show them."""

PHRASES: Final[Mapping[str, str]] = {
    "rollout status": (
        "gpuplan never talks to a cluster: `gpuplan rollout POOL --nodes FILE` lists the steps that are left in what"
        " `kubectl get nodes -o json` prints, and Argo CD or Flux shows the state of its sync."
    ),
    "rollout history": "Git keeps the history; `gpuplan rollout POOL` lists the steps that are left.",
    "rollout undo": "`gpuplan rollout POOL --back` takes the nodes of a pool back to its own sharing.",
    "rollout rollback": "`gpuplan rollout POOL --back` takes the nodes of a pool back to its own sharing.",
    "rollout abort": "`gpuplan rollout POOL --back` takes the nodes of a pool back to its own sharing.",
    "rollout restart": (
        "gpuplan never talks to a cluster: `kubectl rollout restart` restarts pods. `gpuplan rollout POOL --to SHARING`"
        " changes how a pool is shared."
    ),
    "rollout pause": "A rollout waits until the next step is written: `gpuplan rollout POOL --write` writes it.",
    "rollout resume": "`gpuplan rollout POOL --write` writes the next step.",
    "rollout start": "`gpuplan rollout POOL --to SHARING --write` writes the first step.",
    "rollout list": "`gpuplan show` shows the pools, and `gpuplan rollout POOL` the steps of one.",
    "validate all": "`gpuplan validate` checks all clusters.",
    "build all": "`gpuplan build` writes all clusters.",
    "show all": "`gpuplan show` shows all clusters.",
    "show rules": "`gpuplan explain rules` lists the rules.",
    "show gpus": "`gpuplan explain gpus` lists the GPU models.",
    "show costs": "`gpuplan show` prints costs if the platform has a Prices document.",
    "show diff": "`gpuplan diff` shows what a change disturbs.",
    "show usage": _USE,
}
"""Words behind a verb of gpuplan that other programs take there, with the commands to type."""

KINDS: Final[Mapping[str, str]] = {
    "pool pools": "Pool",
    "tenant tenants team teams quota quotas namespace namespaces ns": "Tenant",
    "workload workloads job jobs": "Workload",
    "layout layouts miglayout miglayouts mig": "MigLayout",
    "priorityclass priorityclasses pc": "PriorityClass",
    "cluster clusters": "Cluster",
    "gpu gpus": "Gpu",
    "price prices": "Prices",
}
"""The kinds of documents by the nouns that people type."""

OBJECTS: Final[Mapping[str, Cases]] = {
    "create new add": {ANY: "`gpuplan explain {kind}` lists the fields of a document to write below policies/."},
    "delete remove rm edit set patch update change rename scale resize label annotate grant": {
        "Cluster": "The document is below overlays/{name}/, and `gpuplan diff -c {name}` shows what a change disturbs.",
        ANY: "`gpuplan trace {kind}/{name}` names the file of the document, and lists what depends on it.",
    },
    "get list ls view describe inspect status state cat show print why where": {
        "Pool": "Type `gpuplan show --pool {name}`.",
        "Tenant": "Type `gpuplan show --tenant {name}`.",
        "Cluster": "Type `gpuplan show -c {name}`.",
        ANY: "`gpuplan trace {kind}/{name}` names the file of the document, and lists what depends on it.",
    },
}
"""Answers to verbs with an object, such as `describe pool a100`, by the object's kind."""

THINGS: Final[Mapping[str, Cases]] = {
    "Cluster": {
        "init": "`{command} DIR --cluster {name}` names the folder and the first cluster.",
        "POOL": "`{name}` is a cluster: type `{command} POOL -c {name} --to SHARING`.",
        "DUMP...": "`{name}` is a cluster: type `{command} FILE -c {name}`.",
        "-c": "`{name}` is a cluster: type `{command} -c {name}`.",
        ANY: "`{name}` is a cluster: type `gpuplan show -c {name}`.",
    },
    "Pool": {
        "POOL": "`{name}` is a pool: type `{command} {name} --to SHARING`.",
        "TARGET": "`{name}` is a pool: type `{command} Pool/{name}`.",
        "--pool": "`{name}` is a pool: type `{command} --pool {name}`.",
        "retain": "`{command}` takes no pool: `{command} -c CLUSTER` writes what the cluster keeps.",
        ANY: (
            "`{name}` is a pool: `gpuplan show --pool {name}` shows it, and `gpuplan trace Pool/{name}` names its file."
        ),
    },
    "Tenant": {
        "TARGET": "`{name}` is a tenant: type `{command} Tenant/{name}`.",
        "--tenant": "`{name}` is a tenant: type `{command} --tenant {name}`.",
        ANY: (
            "`{name}` is a tenant: `gpuplan show --tenant {name}` shows it, and `gpuplan trace Tenant/{name}` names its"
            " file."
        ),
    },
    "MigLayout": {
        "POOL": "`{name}` is a MIG layout: type `{command} POOL --to {name}`.",
        ANY: "`{name}` is a MIG layout: `gpuplan trace MigLayout/{name}` names its file, and lists what depends on it.",
    },
    "Workload": {
        ANY: "`{name}` is a workload: `gpuplan trace Workload/{name}` names its file, and lists what depends on it."
    },
    "PriorityClass": {
        ANY: (
            "`{name}` is a priority class: `gpuplan trace PriorityClass/{name}` names its file, and"
            " `gpuplan show --preemption` shows who can evict whom."
        )
    },
    "model": {ANY: "`{name}` is a GPU model: `gpuplan catalog {name}` lists its partitions."},
    "profile": {ANY: "`{name}` is a MIG profile: `gpuplan catalog {model}` lists the partitions of `{model}`."},
    "rule": {ANY: "`{name}` is a rule: `gpuplan explain {name}` explains it."},
    "kind": {
        "TARGET": "`{name}` is a kind of documents: type `{command} {name}/NAME`.",
        ANY: "`{name}` is a kind of documents: `gpuplan explain {name}` lists its fields.",
    },
    "scheduler": {
        "--scheduler": "`{name}` is a scheduler: `{command} --scheduler {name}` compares it with the present one.",
        ANY: "`{name}` is a scheduler: `gpuplan explain scheduler/{name}` lists what it keeps.",
    },
    "revision": {
        "--against": "`{name}` is a revision: type `{command} --against {name}`.",
        ANY: "`{name}` is a revision: `gpuplan diff {name}..HEAD` shows what changed since then.",
    },
    "file": {
        "--fail-on": (
            "`{name}` is a file: `gpuplan diff` compares all policies with the last commit, and `git diff {name}` shows"
            " the lines of the file"
        ),
        "--output": "Type `{command} -o {name}` to write the page to a file.",
        ANY: (
            "`{name}` is a file: `gpuplan validate` checks all policies, and `gpuplan trace {name}:1` shows what"
            " depends on a line."
        ),
    },
}
"""Answers to the name of something known that stands in the wrong place, by its kind and what the command has."""

SAME: Final[Mapping[str, str]] = {
    "--apply --save": "--write",
    "--out --output --output-dir --out-dir --outdir --output-folder --output-path --destination": "--out --output",
    "--name --cluster-name --clusters --env --environment --overlay -e --context --kube-context --workspace --stack": (
        "--cluster"
    ),
    "-n --namespace --namespaces --ns --team --teams --tenants -t --tenant": "--tenant",
    "-p --pools --target --layout --sharing --mig --new-layout": "--to --pool",
    "--since --from --base --before --ref --rev --revision --branch --compare --baseline": "--against",
    "--undo --rollback --revert --reverse": "--back",
    "--strict --werror --fail-on-warnings --warnings": "--warnings-as-errors",
    "--dry-run --dryrun --what-if --noop --no-write --preview": "--diff",
    "-w --watch --follow --live --open --browser": "--serve",
    "--silent --no-output": "--quiet",
    "--debug --verbose-errors --log-level": "--verbose",
    "--kube-version --k8s-version --kubernetes-version": "--kubernetes",
    "--drain --without --exclude-node": "--away",
}
"""Options of other programs, with those of gpuplan that mean the same: the first one that the command has."""

OPTIONS: Final[Mapping[str, Cases]] = {
    "-n --namespace --namespaces --ns --team --teams --tenants -t": {
        "POOL": "A rollout is of a whole pool: type `{bare}`. `gpuplan show --tenant {tenant}` shows a tenant.",
        "--tenant": "`{command} --tenant NAME` selects a tenant.",
        "TARGET": "An object is `KIND/NAMESPACE/NAME`: type `{command} ResourceQuota/{value}/gpuplan`, for instance.",
        "--stage": "The policies say namespaces: `gpuplan explain Tenant.spec.namespaces` describes the field.",
        ANY: "`gpuplan show --tenant {tenant}` shows what a tenant has.",
    },
    "-f --file --files --filename": {
        "FILE...": "Type `{placed}`.",
        "[FILE...]": "Type `{placed}`, which checks a file without a platform.",
        "DUMP...": "Type `{placed}`.",
        "[DEMAND...]": "Type `{placed}`.",
        "--output": "`{command} -o FILE` names the file to write.",
        ANY: (
            "gpuplan reads overlays/ and the bases that they name, and takes chart values from `gpuOperator.values` of"
            " a Cluster. `gpuplan -C DIR validate` reads another platform, and `gpuplan validate FILE` checks a file."
        ),
    },
    "--tenant": {
        "[DEMAND...]": "A Demand says what a team needs: type `{command} FILE`; `{command} --pool NAME` selects pools.",
        ANY: "`gpuplan show --tenant {tenant}` selects a tenant.",
    },
    "--out --output-dir --out-dir --outdir --output-folder --output-path --destination": {
        "init": "`{command} DIR` names the folder to write.",
        "--out": "`{command} --out DIR` names the folder to write.",
        "--output": "`{command} -o FILE` writes the page to a file.",
        "FORMAT[=FILE]": "`{command} -o json=FILE` writes to a file.",
        "--output-format": "`{command} -o json` prints this format; redirect it to a file.",
        ANY: "`gpuplan build --out DIR` names the folder to write, and `gpuplan report -o FILE` the page.",
    },
    "--html --pdf --page": {
        "--output": "`{command} -o report.html` writes the page to a file.",
        ANY: "`gpuplan report -o report.html` draws the platform as one page.",
    },
    "--client --short": {ANY: "There is no server: `gpuplan version` prints the versions."},
    "--dry-run --dryrun --what-if --noop --no-write --preview": {
        "init": "`{command}` overwrites no file: type `{command} DIR` with a new folder, and look at what it wrote.",
        "--diff": "`{command} --diff` shows what would change, and `{command} --check` suits CI; both write nothing.",
        "--write": "`{rest}` writes nothing without `--write`.",
        ANY: "`{rest}` writes nothing into the platform; `gpuplan build --diff` shows what a build would change.",
    },
    "--write --save --in-place": {
        "build": "`{rest}` writes without an option.",
        "init": "`{rest}` writes without an option.",
        "--output": "`{command} -o FILE` writes the page to a file.",
        ANY: "`{rest}` writes nothing. `gpuplan build` writes out/, and `gpuplan rollout POOL --write` the next step.",
    },
    "--diff": {
        "diff": "`{rest}` shows the differences without an option.",
        ANY: "`gpuplan diff` shows what a change disturbs, and `gpuplan build --diff` the lines of out/ that change.",
    },
    "--layout --sharing --mig --new-layout": {
        "--to": "`{command} POOL --to SHARING` names the new layout or sharing.",
        ANY: "`gpuplan rollout POOL --to SHARING` changes the layout of a pool.",
    },
    "--fix --autofix --auto-fix --repair": {
        ANY: "gpuplan edits no policy by itself: each finding of `gpuplan validate` ends with the text to write."
    },
    "--json --yaml --format --output --output-format -o --out-format --output-file --wide --jsonpath --jq --template": {
        "init": "`{command} DIR` writes files in YAML; `gpuplan show -o json` is for programs.",
        "explain": "`gpuplan schema pool` prints the JSON Schema of a kind, and `gpuplan rules -o json` all rules.",
        "--output": "The page is HTML: `{command} -o FILE` writes it, and `gpuplan show -o json` is for programs.",
        "--output-format": "`{rest} -o json` is for programs; `{command} --help` lists all formats.",
        ANY: "`gpuplan show -o json`, `gpuplan rules -o json` and `gpuplan catalog -o json` are for programs.",
    },
    "-A --all --all-namespaces --all-clusters -a": {
        "POOL": "A rollout is of one pool in one cluster: type `{rest}`, with `-c NAME` if several clusters have it.",
        "init": "`{rest}` writes one cluster; copy its folder below overlays/ for another.",
        "DUMP...": "`gpuplan import --commands` prints the commands that collect all that `{command} FILE` reads.",
        "-c": "`{rest}` takes all clusters unless `-c NAME` selects some.",
        ANY: "`{command} --help` lists the options; `gpuplan show` shows all clusters and tenants.",
    },
    "--context --kubeconfig --kube-context --server --token --user": {
        "DUMP...": (
            "gpuplan talks to no cluster: `gpuplan import --commands` prints what to type for kubectl, and"
            " `{command} FILE -c CLUSTER` reads what it printed."
        ),
        "POOL": "gpuplan never talks to a cluster: `{bare} -c NAME` selects a folder of overlays/.",
        "init": (
            "gpuplan never talks to a cluster: type `kubectl get nodes -o json > nodes.json`, then"
            " `gpuplan init DIR --nodes nodes.json`."
        ),
        "-c": "gpuplan never talks to a cluster: `{command} -c NAME` selects a folder of overlays/.",
        ANY: "gpuplan never talks to a cluster: `gpuplan show -c NAME` selects a folder of overlays/.",
    },
    "--schema --jsonschema": {
        ANY: "`gpuplan explain schema` lists the schemas, and `gpuplan explain schema Pool` prints one."
    },
    "-w --watch --follow --live --port --host --open --browser": {
        ANY: "`gpuplan report --serve` shows a page that follows the files."
    },
    "--tolerance --growth --headroom --burst": {
        "--margin": (
            "To plan for more than today, write `growth: {share}` or `burst` in a `Demand` document, or type"
            " `{command} --basis limit`."
        ),
        ANY: "`gpuplan pack --margin {share}` plans for more than the measured use.",
    },
    "-y --yes --auto-approve --assume-yes --no-input --non-interactive -i --interactive --confirm": {
        "--force": (
            "gpuplan asks only before it deletes the files of a removed cluster: type `{rest}`, or"
            " `{rest} --prune-clusters` to delete them."
        ),
        "--write": "gpuplan asks no questions: `{rest} --write` writes.",
        ANY: "gpuplan asks no questions: type `{rest}`.",
    },
    "--strict --werror --fail-on-warnings --warnings": {
        "--warnings-as-errors": "`{command} --warnings-as-errors` ends with 1 on warnings.",
        ANY: "`gpuplan validate --warnings-as-errors` ends with 1 on warnings.",
    },
    "--root --dir --path --chdir --cwd -d": {
        "init": "`{command} DIR` names the folder to write.",
        ANY: "`{bare} -C DIR` names the folder that holds overlays/.",
    },
    "--env --environment --overlay -e --workspace --stack --cluster-name --clusters": {
        "init": "`{command} DIR --cluster prod` names the first cluster.",
        "POOL": "`{bare} -c NAME` selects a folder of overlays/.",
        "-c": "`{command} -c NAME` selects a folder of overlays/.",
        ANY: "`gpuplan show -c NAME` selects a folder of overlays/.",
    },
    "--debug --verbose-errors --trace --log-level": {ANY: "`{rest} -vv` prints more."},
    "--silent --no-output": {ANY: "`{rest} -q` prints less."},
    "--no-color --no-colour --colour": {ANY: "`{rest} --color never` prints no colours."},
    "--set --set-string --set-file --var --vars --param --parameter -p --replicas --count --size --guaranteed": {
        ANY: (
            "gpuplan takes no values on the command line: write the value below policies/, or each cluster's own below"
            " overlays/. `gpuplan explain Pool` lists the fields of a Pool."
        )
    },
    "--values --value --values-file --var-file --chart --version-constraint": {
        ANY: (
            "Chart values stand in `gpuOperator.values` of a Cluster: `gpuplan explain Cluster.spec.gpuOperator` lists"
            " the fields."
        )
    },
    "--stat --numstat --shortstat --name-only --name-status --summary-only --cached --staged --patch -u": {
        "--fail-on": (
            "`{command} -o name` prints a name for each change, and `gpuplan build --diff` prints the lines of out/."
            " `git diff --stat out/` counts the lines."
        ),
        ANY: "`gpuplan diff -o name` prints a name for each change, and `gpuplan build --diff` the lines of out/.",
    },
    "--recursive -R -r --all-fields": {
        "explain": "`gpuplan explain Pool` lists the fields, and `gpuplan schema pool` prints all levels.",
        ANY: "All folders below policies/ and overlays/ are read without an option: type `{rest}`.",
    },
    "--server-side --field-manager --wait --timeout --atomic --cascade --grace-period --apply --sync": {
        "--write": "gpuplan never talks to a cluster: `{rest} --write` writes files, and Argo CD or Flux syncs out/.",
        ANY: (
            "gpuplan never talks to a cluster: Argo CD or Flux syncs the out/ that `gpuplan build` writes."
            " `gpuplan explain Cluster.spec.argocd` lists the fields of a sync."
        ),
    },
    "--commit --push --message -m --amend": {
        ANY: "gpuplan does not run Git: type `git commit`. `gpuplan build` writes the out/ to commit with the policies."
    },
    "--force": {
        "init": "`{command}` overwrites nothing: `gpuplan init DIR` with a new folder writes a starter.",
        "--exit-zero": "`{rest} --exit-zero` ends with 0 whatever is found; `gpuplan build --force` overwrites out/.",
        ANY: "`{rest}` needs no such option; `gpuplan build --force` overwrites files that were edited by hand.",
    },
    "--refresh --refresh-only --live-state --state": {
        ANY: "gpuplan keeps no state beside Git: `gpuplan drift FILE` lists where a cluster differs from the policies."
    },
    "--prune": {
        "--prune-clusters": (
            "`{rest}` deletes its own files that no policy needs; `{rest} --prune-clusters` also those of removed"
            " clusters."
        ),
        ANY: (
            "`gpuplan build` deletes its own files that no policy needs, and `gpuplan retain --prune` lists the"
            " Retained documents that may go."
        ),
    },
    "--destroy --delete --purge --clean": {
        "--prune-clusters": "`{command} --prune-clusters` deletes the files of deleted clusters.",
        ANY: "`gpuplan build --prune-clusters` deletes the files of deleted clusters.",
    },
    "--kube-version --k8s-version --kubernetes-version --api-versions": {
        "--kubernetes": "`{command} FILE --kubernetes 1.34` checks a file; `gpuplan explain Cluster.spec.kubernetes` is"
        " the version of a cluster.",
        ANY: "A Cluster has the version: `gpuplan explain Cluster.spec.kubernetes` describes the field.",
    },
    "--show-only --only --select --component -s": {
        "--stage": "`{command} -c NAME --stdout --stage partitions` prints one folder of out/<cluster>/.",
        ANY: "`gpuplan build -c NAME --stdout --stage partitions` prints one folder of out/<cluster>/.",
    },
    "--target --targets --resource -l --selector --label --labels --field-selector --filter --name": {
        "--to": "`{command} POOL` selects a pool, and `{command} POOL --to SHARING` names its new sharing.",
        "init": "`{command} DIR --cluster prod` names the first cluster, and `gpuplan init --help` describes `--pool`.",
        "--tenant": "`{command} --pool NAME` selects a pool, and `{command} --tenant NAME` a tenant.",
        "--pool": "`{command} --pool NAME` selects a pool.",
        "--stage": "`{command} -c NAME` selects a cluster; `{command} -c NAME --stdout --stage partitions` a folder.",
        "-c": "`{command} -c NAME` selects a cluster; `gpuplan show --pool NAME` selects a pool.",
        ANY: "`gpuplan show --pool NAME` selects a pool, and `gpuplan show --tenant NAME` a tenant.",
    },
    "--check --exit-code --detailed-exitcode --ci --fail": {
        "--fail-on": "`{command}` ends with 1 if something differs; `{command} --fail-on repartition` is less strict.",
        "--exit-zero": "`{command}` ends with 1 on errors; `gpuplan build --check` compares out/ with the policies.",
        ANY: "`gpuplan build --check` ends with 1 if out/ is stale, and `gpuplan validate` on errors in the policies.",
    },
    "--since --from --base --before --ref --rev --revision --branch --compare --baseline": {
        "--against": "`{command} --against REV` compares with a revision.",
        ANY: "`gpuplan diff {rev}..HEAD` compares two revisions.",
    },
    "--undo --rollback --revert --reverse": {
        "--back": "`{command} POOL --back` takes the nodes of a pool back to its own sharing.",
        ANY: "`gpuplan diff HEAD~1..HEAD` shows what the last commit disturbs and how to undo it.",
    },
    "--sort --sort-by --columns --no-headers --custom-columns --show-labels --query": {
        "--output-format": "`{command} -o json` is for programs that sort and select, such as `jq`.",
        ANY: "`gpuplan show -o json` is for programs that sort and select, such as `jq`.",
    },
    "--config --config-file --settings --profile": {
        ANY: "gpuplan has no settings file: `gpuplan -C DIR validate` names the folder that holds overlays/."
    },
    "--ignore --skip --exclude --disable --except --rule --rules --enable --severity": {
        ANY: (
            "A comment ignores a rule, such as `# gpuplan: ignore[GPU435] reason`. `gpuplan explain rules` lists the"
            " rules, and `gpuplan validate --warnings-as-errors` ends with 1 on warnings."
        )
    },
    "--pool": {"POOL": "Type `{placed}`.", ANY: "`gpuplan show --pool {pool}` selects a pool."},
    "--node --away": {
        "--away": "`{command} --away NODE` shows the plan without a node.",
        ANY: "`gpuplan show --away NODE` shows the pools and guarantees without a node.",
    },
    "--gpu --gpus --model": {
        "catalog": "Type `gpuplan catalog {value}`.",
        "init": "Type `{command} DIR --pool NAME=2x8x{value}`: two nodes with eight GPUs each.",
        "[DEMAND...]": "`{command} --pool NAME` selects pools; a Demand says `models: [{value}]`.",
        ANY: "`gpuplan explain gpus` lists the GPU models, and `gpuplan show` the pools with their models.",
    },
    "--pager --no-pager --less": {
        ANY: "gpuplan starts no pager: `gpuplan show --summary` prints a line for each cluster."
    },
    "--version -V": {ANY: "`gpuplan version` prints the versions."},
    "-k --kustomization": {ANY: _PRINTS},
}
"""Options that a command does not have, with what to type."""

WORDS: Final[Cases] = {
    "--to": "`{command} POOL --to SHARING` names the new layout or sharing.",
    "--output": "`{command} -o FILE` writes the page to a file.",
    "init": "`gpuplan init DIR --cluster prod` names the folder and the first cluster.",
    "-c": "`{command}` reads overlays/ and the bases that they name; `{command} -c NAME` selects a cluster.",
    ANY: "`{command} --help` lists what the command takes.",
}
"""Answers to a word that a command does not take."""

FORMATS: Final[Mapping[str, Cases]] = {
    "manifests": {
        "--out": "`{command} --out {value}` names the folder to write.",
        "--output-format": "`gpuplan build -c NAME --stdout` prints the objects in YAML.",
    },
    "yaml yml manifest kubernetes": {
        "--stdout": "`{command} -c NAME --stdout` prints the objects in YAML.",
        "--output-format": "`{command} -o json` is for programs; `gpuplan build -c NAME --stdout` prints YAML.",
    },
    "csv tsv excel xlsx": {"--output-format": "Type `{command} -o json`: `jq -r '... | @csv'` makes CSV of its lists."},
    "jsonpath go-template custom-columns jq template ndjson": {
        "--output-format": "`{command} -o json` is for programs that select values, such as `jq`."
    },
    "html pdf page": {"--output-format": "`gpuplan report -o report.html` draws the platform as one page."},
    "text plain human pretty default long tree": {"--output-format": "`{command}` without `-o` is for people."},
}
"""Formats that a command does not have, with what to type."""

CHOICES: Final[Mapping[str, str]] = {
    "cost costs money cheap cheapest spend": "price",
    "gpu count nodes fewest": "gpus",
    "moves disruption disturbance stability": "changes",
    "guarantee guarantees min minimum request requests": "guaranteed",
    "limits max maximum quota quotas": "limit",
    "jobs pods usage": "workloads",
    "yes true on force": "always",
    "no false off none": "never",
}
"""Values of options by the words that people type for them."""

ENDINGS: Final = {
    ".json": "json",
    ".md": "markdown",
    ".sarif": "sarif",
    ".xml": "junit",
    ".yaml": "yaml",
    ".svg": "svg",
}
"""The formats of files."""

MISSING: Final[Cases] = {
    "DUMP...": "`gpuplan import --commands` prints the commands of kubectl that collect a dump.",
    "[DEMAND...]": "`{command}` without a file plans for the quotas; `gpuplan explain Demand` lists the fields.",
    "[FILE...]": "`{command}` checks the platform in overlays/ and the bases that they name.",
    ANY: "`{command} --help` describes the files.",
}
"""Answers to a file that does not exist."""
