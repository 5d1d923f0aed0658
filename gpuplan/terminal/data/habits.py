"""The words, verbs and options of other programs, with the gpuplan commands that do the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

VERBS: Final[Mapping[str, str]] = {
    "plan preview whatif what-if": (
        "`gpuplan diff` shows what a change disturbs, and `gpuplan build --diff` the lines of out/ that change."
    ),
    "history undo rollback revert log": (
        "Git keeps the history; `gpuplan diff HEAD~1..HEAD` shows what the last commit disturbs and how to undo it."
    ),
    "apply sync deploy push reconcile up install run start exec": (
        "gpuplan never talks to a cluster: commit the out/ that `gpuplan build` writes, and Argo CD or Flux syncs out/."
    ),
    "delete destroy remove rm down uninstall prune": (
        "gpuplan never talks to a cluster: delete the document from policies/, then run `gpuplan diff` and"
        " `gpuplan build`. `gpuplan build --prune-clusters` deletes the files of a deleted cluster."
    ),
    "lint test verify audit policy policies validation": "`gpuplan validate` checks the policies.",
    "ci action": "`gpuplan build --check` is for CI; `gpuplan build --check -o github` annotates a pull request.",
    "generate render template compile make manifests write": "`gpuplan build` writes the manifests to out/.",
    "kustomize stdout print": "`gpuplan build -c NAME --stdout` prints the objects of a cluster.",
    "get list ls status view describe top stats inspect pools tenants nodes quota quotas capacity": (
        "`gpuplan show` shows pools, tenants and free units; `gpuplan show -o json` is for programs."
    ),
    "logs events pods": "gpuplan never talks to a cluster: `gpuplan drift FILE` reads what `kubectl get` printed.",
    "live compare doctor health": (
        "`gpuplan validate` checks the policies, and `gpuplan drift FILE` lists where a cluster differs from them."
    ),
    "new create scaffold setup bootstrap wizard": "`gpuplan init DIR` writes a starter platform.",
    "add edit set patch update upgrade change": (
        "Edit the documents in policies/ and overlays/: `gpuplan explain Pool` lists the fields of a Pool."
        " `gpuplan rollout POOL --to SHARING` changes how a pool is shared, node by node."
    ),
    "fix repair fmt format autofix": (
        "gpuplan edits no policy by itself: each finding of `gpuplan validate` ends with the text to write."
    ),
    "doc docs man manual usage": "`gpuplan --help` lists the commands, and `gpuplan explain GPU203` explains a rule.",
    "cost costs price prices pricing": (
        "`gpuplan show` prints costs if the platform has a Prices document; `gpuplan explain Prices` lists its fields."
    ),
    "watch serve ui dashboard": "`gpuplan report --serve` shows a page that follows the files.",
    "graph draw diagram html pdf": "`gpuplan report -o report.html` draws the platform as one page.",
    "config configure login context contexts cluster clusters use": (
        "gpuplan has no settings and never talks to a cluster: `gpuplan show -c NAME` selects a folder of overlays/."
    ),
    "export convert migrate adopt scan": (
        "`gpuplan import --commands` prints what to collect from a cluster, and `gpuplan import DUMP` writes policies."
    ),
    "optimize optimise size sizing recommend suggest repartition": (
        "`gpuplan pack` computes layouts for a demand, and `gpuplan rollout POOL --to SHARING` changes a pool."
    ),
    "gpus gpu models profiles mig layouts": "`gpuplan explain gpus` lists the GPU models.",
    "rule codes errors": "`gpuplan explain rules` lists the rules.",
    "why where blame": "`gpuplan trace FILE` shows which policies a value comes from.",
}
"""Verbs that gpuplan does not have, with the commands to type."""

ANY: Final = "any"
"""The case that holds for every command."""

Cases = Mapping[str, str]
"""Answers by case: an option or a name that the command has. The first case that holds is the answer."""

OPTIONS: Final[Mapping[str, Cases]] = {
    "-n --namespace --namespaces --ns --team": {
        "--tenant": "`{command} --tenant NAME` selects a tenant.",
        ANY: "`gpuplan show --tenant NAME` shows what a tenant has.",
    },
    "-f --file --files --filename --values": {
        "FILE...": "`{command} FILE` needs no option for its files.",
        "[FILE...]": "`{command} FILE` checks a file without a platform; `{command}` checks the platform.",
        "DUMP...": "`{command} FILE` needs no option for its files.",
        "[DEMAND...]": "`{command} FILE` needs no option for its files.",
        "--output": "`{command} -o FILE` names the file to write.",
        ANY: (
            "gpuplan reads overlays/ and the bases that they name: `gpuplan validate -C DIR` reads another platform,"
            " and `gpuplan validate FILE` checks a file."
        ),
    },
    "--dry-run --dryrun --what-if --noop --no-write --preview": {
        "--diff": "`{command} --diff` shows what would change, and `{command} --check` suits CI; both write nothing.",
        "--write": "`{command}` writes nothing without `--write`.",
        ANY: "This command writes nothing into the platform; `gpuplan build --diff` shows what a build would change.",
    },
    "--layout --target --sharing --mig": {
        "--to": "`{command} POOL --to SHARING` names the new layout or sharing.",
        ANY: "`gpuplan rollout POOL --to SHARING` changes the layout of a pool.",
    },
    "--fix --autofix --auto-fix --repair": {
        ANY: "gpuplan edits no policy by itself: each finding of `gpuplan validate` ends with the text to write."
    },
    "--json --yaml --format --output --output-format -o --out-format": {
        "--output": "The page is HTML: `{command} -o FILE` writes it, and `gpuplan show -o json` is for programs.",
        "--output-format": "`{command} -o json` is for programs; `{command} --help` lists all formats.",
        ANY: "`gpuplan show -o json`, `gpuplan rules -o json` and `gpuplan catalog -o json` are for programs.",
    },
    "-A --all --all-namespaces --all-clusters -a": {
        "-c": "`{command}` takes all clusters unless `-c NAME` selects some.",
        ANY: "`{command} --help` lists the options; `gpuplan show` shows all clusters and tenants.",
    },
    "--context --kubeconfig --kube-context --server --token --user": {
        "DUMP...": "gpuplan talks to no cluster: `{command} FILE` reads what `kubectl get --context NAME` printed.",
        "-c": "gpuplan never talks to a cluster: `{command} -c NAME` selects a folder of overlays/.",
        ANY: "gpuplan never talks to a cluster: `gpuplan show -c NAME` selects a folder of overlays/.",
    },
    "--schema --jsonschema": {
        ANY: "`gpuplan explain schema` lists the schemas, and `gpuplan explain schema Pool` prints one."
    },
    "-w --watch --follow --live": {ANY: "`gpuplan report --serve` shows a page that follows the files."},
    "--tolerance --growth --headroom --burst": {
        "--margin": (
            "To plan for more than today, write `growth: 30%` or `burst` in a `Demand` document, or type"
            " `{command} --basis limit`."
        ),
        ANY: "`gpuplan pack --margin 30%` plans for more than the measured use.",
    },
    "-y --yes --auto-approve --assume-yes --no-input": {
        "--force": "`{command} --prune-clusters` deletes the files of deleted clusters without a question.",
        "--write": "gpuplan asks no questions: `{command} --write` writes.",
        ANY: "gpuplan asks no questions: `gpuplan build` needs no such option.",
    },
    "--strict --werror --fail-on-warnings --warnings": {
        "--warnings-as-errors": "`{command} --warnings-as-errors` ends with 1 on warnings.",
        ANY: "`gpuplan validate --warnings-as-errors` ends with 1 on warnings.",
    },
    "--root --dir --path --chdir --cwd -d": {
        ANY: "`gpuplan -C DIR validate` names the folder that holds overlays/; every command takes `-C`."
    },
    "--env --environment --overlay -e": {
        "-c": "`{command} -c NAME` selects a folder of overlays/.",
        ANY: "`gpuplan show -c NAME` selects a folder of overlays/.",
    },
    "--debug --verbose-errors --trace --log-level": {
        ANY: "`gpuplan -vv validate` prints more; every command takes `-v`."
    },
    "--silent --no-output": {ANY: "`gpuplan -q validate` prints less; every command takes `-q`."},
    "--no-color --no-colour --colour": {
        ANY: "`gpuplan --color never validate` prints no colours; every command takes `--color`."
    },
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
