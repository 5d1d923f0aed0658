"""Rules on the files of the output (GPU90x)."""

from __future__ import annotations

from typing import Final

from gpuplan.diagnostics import Family, Rule, Severity

EDITED: Final = Rule(
    "GPU901",
    "hand-edited-file",
    Severity.ERROR,
    Family.OUTPUT,
    """A file in the output was changed by hand since gpuplan wrote it.

## Why
The output is compiled from `policies/` and `overlays/`: the next build would undo the edit without a word, and until
then the cluster runs something that no policy says.

## Instead
Say it in the policy, or in a kustomize Component under `overlays/<cluster>/kustomize/`. Then `gpuplan build --force`
writes the file anew; `gpuplan build --diff` shows what that undoes.
""",
    ignorable=False,
)

FOREIGN: Final = Rule(
    "GPU902",
    "foreign-file",
    Severity.ERROR,
    Family.OUTPUT,
    """A file that gpuplan did not write is where it would write one.

## Why
gpuplan overwrites and deletes only what its inventory lists, so that other files may live beside its own. Either this
is such a file under a name that gpuplan needs now, or the inventory, `out/.gpuplan/inventory`, was lost.

## Instead
Move the file away. If the inventory was lost, bring it back from Git, or let `gpuplan build --force` overwrite what is
there.
""",
    ignorable=False,
)

STALE: Final = Rule(
    "GPU903",
    "stale-output",
    Severity.ERROR,
    Family.OUTPUT,
    """The output is not what the policies compile to.

## Why
Argo CD applies what is committed under `out/`. A policy whose output was not committed with it changes nothing in the
cluster, until somebody builds for another reason and commits both.

## Instead
Run `gpuplan build` and commit `out/` with the policy.
""",
    ignorable=False,
)

LINE_ENDS: Final = Rule(
    "GPU904",
    "changed-line-ends",
    Severity.ERROR,
    Family.OUTPUT,
    """Files in the output have CRLF line ends, where gpuplan wrote LF.

## Why
Git does this to files that it checks out, where `core.autocrlf` is on or an attribute says so; Git for Windows turns it
on. Nobody has edited the files, but they are not the bytes that gpuplan compiles, and no run that compares them can
tell what else differs.

## Instead
Write `out/** -text` into `.gitattributes`, as `gpuplan init` does, so that Git leaves these files as they are. Then
`gpuplan build` writes them with LF; commit both. `git add --renormalize` before that build would commit the CRLF.

## Exceptions
`gpuplan build` puts the files right by itself, and then this is a warning: without the attribute the next checkout
changes them again.
""",
    ignorable=False,
)

PRUNED: Final = Rule(
    "GPU905",
    "pruned-cluster",
    Severity.ERROR,
    Family.OUTPUT,
    """A build would delete all, or most, of what it wrote for a cluster.

## Why
`out/` is brought to what the policies say, and what they no longer say is deleted. After a folder of `overlays/` got
lost in a merge, was renamed, or lies on another branch, that is the whole cluster: Argo CD or Flux would then delete
what runs there.

Told are folders `out/<cluster>/`, `out/argocd/<cluster>/` and `out/flux/<cluster>/` that would lose all of their files;
and those that would be left with less than half of what they hold, where these lose twenty files or more together.
Nothing is written until somebody says that it is meant.

## Instead
Bring back what is missing. If it is meant, answer `y` on a terminal, or run `gpuplan build --prune-clusters`, and
commit what that deletes. `gpuplan build --cluster <name>` deletes nothing of other clusters.

## Exceptions
None. `--force` is about files that were edited, and says nothing about this.
""",
    ignorable=False,
)

UNBUILT: Final = Rule(
    "GPU906",
    "unbuilt-policies",
    Severity.NOTE,
    Family.OUTPUT,
    """Policies have changed since `out/` was built of them.

## Why
Argo CD and Flux apply what is committed below `out/`, not the policies. The inventory, `out/.gpuplan/inventory`, holds
a digest of every document that the output was made of. Comments and layout do not count, hand-written Components do not
either: kustomize reads those where they are.

## Instead
Run `gpuplan build` and commit `out/` with the policies. While you edit, this is as it should be.

## Exceptions
Nothing is said where there is no `out/`, or where an earlier release of gpuplan built it and recorded no digests.
`gpuplan build --check` compares all files, and fails where this is a note.
""",
    ignorable=False,
)

INCOMPLETE: Final = Rule(
    "GPU907",
    "incomplete-output",
    Severity.WARNING,
    Family.OUTPUT,
    """Files that a build wrote are missing in `out/`, or nobody can tell which ones it wrote.

## Why
Files that are new have to be added to a commit: `git commit -a` leaves them out. Those who check such a commit out have
an inventory that lists files which are not there, and kustomize refuses folders that lack one of theirs. A build that
was killed leaves the same, until the next one ends.

## Instead
Where the files were built, run `git add out` and commit again; `gpuplan build` writes them once more.
""",
    ignorable=False,
)

RULES: Final = (EDITED, FOREIGN, STALE, LINE_ENDS, PRUNED, UNBUILT, INCOMPLETE)
