"""Rules on the files of the output (GPU90x)."""

from __future__ import annotations

from typing import Final

from gpuplan.diagnostics import Rule, Severity

EDITED: Final = Rule(
    "GPU901",
    "hand-edited-file",
    Severity.ERROR,
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
    """The output is not what the policies compile to.

## Why
Argo CD applies what is committed under `out/`. A policy whose output was not committed with it changes nothing in the
cluster, until somebody builds for another reason and commits both.

## Instead
Run `gpuplan build` and commit `out/` with the policy.
""",
    ignorable=False,
)

RULES: Final = (EDITED, FOREIGN, STALE)
