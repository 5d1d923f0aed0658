"""The commands that ask the compiler, with their options and their help; the modules beside do their work."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import click

from gpuplan.compiler.base.patterns import regex
from gpuplan.terminal import options
from gpuplan.terminal.verbs import completing, format_option, late, option, verb

_NAME = regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OTHER = regex(r"[^a-z0-9]+")
_subjects = late("gpuplan.cli.views.explain:subjects")


def _check_name(_: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> str:
    first, *others = [name for each in names for name in each.split(",")]
    if others:
        way = f"`cp -r overlays/{first} overlays/{others[0]}`, and write `name: {others[0]}` there."
        raise click.BadParameter(f"init writes one cluster: type `--cluster {first}`, then {way}", param=parameter)
    if not _NAME.fullmatch(first):
        near = _OTHER.sub("-", first.lower()).strip("-")
        way = f" Type `--cluster {near}`." if _NAME.fullmatch(near) else ""
        raise click.BadParameter(f"use lower-case letters, digits and `-`.{way}", param=parameter)
    return first


@verb("starting", shows_pages=True)
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), default=Path())
@option(
    "--cluster",
    default=("dev",),
    multiple=True,  # to say what to do about two
    metavar="NAME",
    callback=_check_name,
    help="The first cluster [default: dev].",
)
@option(
    "--pool",
    "pools",
    multiple=True,
    metavar="NAME=NODESxGPUSxMODEL[:SHARING]",
    help="A pool of NODES nodes with GPUS GPUs each; may be repeated. SHARING is exclusive, time-slicing=N, mps=N or"
    " mig=LAYOUT [default: exclusive]. LAYOUT is one of NVIDIA's, such as all-1g.10gb, or instances on a GPU, such as"
    " 3g.40gb+2g.20gb:2.",
)
@option(
    "--nodes",
    multiple=True,
    metavar="FILE",
    help="Make a pool of all nodes that are alike, from `kubectl get nodes -o json` (or yaml): a file, a folder of"
    " them, or - for stdin; may be repeated.",
)
@option("--kubernetes", default="", metavar="VERSION", help="The cluster's version, such as 1.34.")
@option("--argocd", default="", metavar="URL", help="The Git repository from which Argo CD will sync out/.")
def init() -> None:
    """Write a small starter platform.

    gpuplan writes a commented platform that validates and builds as it stands: your pools, or two as an example, and a
    tenant for each. gpuplan overwrites no file, and writes nothing if the folder has policies already.

    \b
      gpuplan init platform
      gpuplan init platform --cluster prod --pool research=2x8xA100-80GB:time-slicing=3 \\
        --pool serving=2x8xH100-80GB:mig=3g.40gb+2g.20gb:2 --pool training=4x8xH200-141GB \\
        --kubernetes 1.34 --argocd https://git.example.com/platform/gpus.git
      kubectl get nodes -o json | gpuplan init platform --cluster prod --nodes -
    """


@verb("validating")
@click.argument("files", nargs=-1, metavar="[FILE...]", callback=options.refuse_clusters)
@options.cluster_option
@options.against_option(
    "Also check the change from this revision, or from the platform in this folder: it may fail half-way, even if "
    "both states are valid"
)
@options.nodes_option
@options.crds_option
@options.kustomize_option
@options.gpu_option
@options.kubernetes_option
@options.operator_option
@options.findings_option
@options.strictness_option
@option("--exit-zero", is_flag=True, section="Output", help="End with 0 whatever is found.")
def validate() -> None:
    """Check the policies against the hardware and the controllers.

    One run reports all findings. gpuplan writes nothing and asks no cluster. With FILE, gpuplan checks manifests and
    MIG files without a platform, as `gpuplan check` does.

    \b
      gpuplan validate
      gpuplan validate mig-parted.yaml          # a file, without a platform
      gpuplan validate --against origin/main    # for a branch that is to be merged
      kubectl get nodes -o json | gpuplan validate -c prod --against HEAD~1 --nodes -
      gpuplan validate --output-format sarif=gpuplan.sarif
    """


@verb("building")
@options.cluster_option
@options.stage_option
@option("--check", is_flag=True, section="Mode", help="Write nothing; end with 1 when `out/` is stale, and say where.")
@option("--diff", is_flag=True, section="Mode", help="Write nothing; print what would change, end with 1 if anything.")
@option("--stdout", is_flag=True, section="Mode", help="Write nothing; print the objects of one cluster.")
@option(
    "--retain",
    is_flag=True,
    section="Mode",
    help="First write Retained documents for the change since HEAD, as `gpuplan retain --write` does.",
)
@option("--force", is_flag=True, section="Mode", help="Overwrite files that were edited by hand, or are not gpuplan's.")
@option(
    "--prune-clusters",
    is_flag=True,
    section="Mode",
    help="Delete the files of removed clusters, or most files of a cluster; on a terminal gpuplan asks first.",
)
@options.crds_option
@options.kustomize_option
@option(
    "--out", default="out", metavar="DIR", section="Output", help="The folder to write, from the root [default: out]."
)
@options.findings_option
@options.strictness_option
def build() -> None:
    """Write the policies as kustomize folders to out/.

    gpuplan writes nothing if the policies have errors. It does not change files that it did not write, and asks before
    it deletes all files of a cluster.

    \b
      gpuplan build
      gpuplan build --retain   # and what nodes and queues still name stays defined
      gpuplan build --check    # in CI: is out/ committed with the policies?
      gpuplan build --cluster dev --stdout | kubectl diff -f -
    """


@verb("showing")
@options.cluster_option
@option(
    "--pool",
    "pools",
    metavar="NAME",
    multiple=True,
    section="Selection",
    shell_complete=completing(options.pool_names),
    help="Only pools of this name (* and ? are wildcards), with their tenants and workloads; may be repeated "
    "[default: all].",
)
@option(
    "--tenant",
    "tenants",
    metavar="NAME",
    multiple=True,
    section="Selection",
    shell_complete=completing(options.tenant_names),
    help="Only tenants of this name, and their parts, with their pools, workloads and evictions; may be repeated "
    "[default: all].",
)
@format_option(
    "table",
    "wide",
    "name",
    "markdown",
    "svg",
    "json",
    "yaml",
    help="The format: a table, names for `gpuplan trace`, tables for a merge request, a picture, or data of "
    "`gpuplan schema plan`",
)
@option("--summary", is_flag=True, section="Output", help="One line for each cluster.")
@option(
    "--scheduler",
    type=click.Choice(options.SCHEDULERS),
    section="Output",
    help="Instead of the plan, compare the cluster's scheduler with this scheduler (`gpuplan schema comparison`).",
)
@option("--preemption", is_flag=True, section="Output", help="Instead of the plan, who can evict whom.")
@option(
    "--away",
    "away",
    metavar="NODE[:GPU]",
    multiple=True,
    section="Output",
    help="Show the plan without a node, one of its GPUs, or any node of a pool, and the guarantees that then fail; "
    "may be repeated.",
)
def show() -> None:
    """Show the pools, the tenants and the free units.

    If a cluster's policies have errors, the plan shows the parts without errors. The errors go to stderr, and the exit
    code is 1.

    \b
      gpuplan show --cluster prod
      gpuplan show --pool 'a100-*' --tenant research   what is theirs of these pools
      gpuplan show --output-format json | jq '.clusters[].pools[].units'
      gpuplan show --cluster prod --scheduler kai   what another scheduler would change
      gpuplan show --cluster prod --preemption      who can evict whom
      gpuplan show --cluster prod --away gpu-3:0    what holds while that GPU is away
    """


@verb("explaining", shows_pages=True)
@click.argument("words", nargs=-1, required=True, metavar="SUBJECT", shell_complete=completing(lambda _: _subjects()))
def explain() -> None:
    """Explain a rule, a field, a GPU model or a scheduler.

    \b
      gpuplan explain GPU203              a rule, by code or name
      gpuplan explain Pool.spec.sharing   a field of the policy language
      gpuplan explain A100-80GB           a GPU model of the catalog
      gpuplan explain scheduler/kueue     the fields that a scheduler supports
      gpuplan explain schema/Pool         a JSON Schema
      gpuplan explain GPU4                all rules whose code begins with GPU4

    Lists: `gpus`, `rules`, `scheduler` and `schema`.
    """


@verb("explaining")
@click.argument("gpu", required=False, shell_complete=completing(options.gpu_models))
@format_option("table", "svg", "json", help="A table, a picture of each layout of one model, or data for programs")
def catalog() -> None:
    """List the GPU models, or the partitions of one model.

    \b
      gpuplan catalog
      gpuplan catalog A100-80GB            profiles, where each may start, layouts
      gpuplan catalog A100-80GB -o svg     the layouts as a picture
    """


@verb("explaining", shows_pages=True)
@format_option("table", "json")
def rules() -> None:
    """List the rules.

    `gpuplan explain CODE` shows the meaning of a rule, its reason, and what to write instead.
    """


_SCHEMA_HELP = """Print a JSON Schema.

\b
NAME is one of
  policy      any document of the policy language [default]
  overlay     any document in an overlay, which may leave fields out
{kinds}
              documents of that kind alone
{outputs}

\b
  gpuplan schema policy > .gpuplan/policy.schema.json
""".format(
    kinds=fill(", ".join((*options.KINDS, *options.GIVEN)).lower(), 64, initial_indent="  ", subsequent_indent="  "),
    outputs="\n".join(
        f"  {name:<11} what `{verb} --output-format json` writes" for name, verb in options.OUTPUTS.items()
    ),
)


@verb("facts", shows_pages=True, help=_SCHEMA_HELP)
@click.argument("name", metavar="[NAME]", type=click.Choice(options.SCHEMAS, case_sensitive=False), default="policy")
def schema() -> None: ...


@verb("facts")
@format_option("text", "json")
def version() -> None:
    """Print the versions of gpuplan and of the policy language."""


@verb("completing")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion() -> None:
    """Print a script that completes commands in a shell.

    \b
      gpuplan completion bash > ~/.local/share/bash-completion/completions/gpuplan
      gpuplan completion zsh > ~/.zfunc/_gpuplan
      gpuplan completion fish > ~/.config/fish/completions/gpuplan.fish
    """
