"""Rules on repositories (GPU11x), clusters (GPU659, 718-719), on what is retained (GPU72x) or rendered (GPU68x-69x)."""

from __future__ import annotations

from gpuplan.diagnostics import Family, Rule, Severity

CLUSTER_DOCUMENT = Rule(
    "GPU110",
    "cluster-document",
    Severity.ERROR,
    Family.REPOSITORY,
    """An overlay does not hold exactly one `Cluster` document named as its folder.

## Why
The folder `overlays/<cluster>/` is one cluster; its `Cluster` document says which versions, platform and scheduler the
policies are compiled for. A `Cluster` document in the bases would be every cluster's.

## Instead
Keep one `Cluster` document in the overlay, with the folder's name as `metadata.name`.
""",
    ignorable=False,
)

MISSING_BASE = Rule(
    "GPU111",
    "missing-base",
    Severity.ERROR,
    Family.REPOSITORY,
    """A cluster's `bases` names a folder that does not exist in the repository.

## Why
The cluster would silently lose every policy of that folder, and with it its pools and quotas.

## Instead
Write a folder relative to the repository's root, such as `policies`. A cluster without bases says `bases: []`.
""",
    ignorable=False,
)

UNUSED_IGNORE = Rule(
    "GPU112",
    "unused-ignore",
    Severity.WARNING,
    Family.REPOSITORY,
    """A comment ignores a finding that is not there.

## Why
Left behind, it would hide the next real finding on that line. Findings without which no plan can be made cannot be
ignored at all.

## Instead
Remove the comment, or the code in it that is not needed.
""",
    ignorable=False,
)

UNKNOWN_KUBERNETES = Rule(
    "GPU113",
    "unknown-kubernetes-version",
    Severity.ERROR,
    Family.PLAN,
    """A cluster runs a version of Kubernetes of which gpuplan has no schemas.

## Why
Every object is checked against the schemas of the cluster's version, since a field that this version does not have is
dropped without a word or refuses the whole object. Nothing is built unchecked.

## Instead
Correct `kubernetes`, or upgrade the package kubernetes-validate, which brings the schemas along.
""",
    ignorable=False,
)

UNMATCHED_OVERLAY = Rule(
    "GPU114",
    "overlay-of-no-document",
    Severity.ERROR,
    Family.REPOSITORY,
    """A document of an overlay has the name of none in the bases, nearly that of one, and is no whole document itself.

## Why
A document with the kind and name of one in the bases changes it; any other is a new one and must be complete. Most
likely the name is misspelt, and the document that was meant stays as it is.

## Instead
Write the name as the bases have it.
""",
    ignorable=False,
)

SHARED_NAMES = Rule(
    "GPU659",
    "shared-sync-names",
    Severity.ERROR,
    Family.PLAN,
    """Two clusters give objects of Argo CD or of Flux one name in one namespace.

## Why
`out/argocd/` holds the objects of all clusters, for an Argo CD that syncs them all. Of two objects with one name the
second replaces the first, or kustomize refuses both: one cluster would be synced with the other's folders, or neither.
Projects are named by the policy. Applications are named after cluster and pool or namespace, joined by `-`: pool `b-c`
of cluster `a` and pool `c` of cluster `a-b` are one. So are the Kustomizations of a Flux that reaches several clusters.

## Instead
Leave `project` out, or name one for each cluster. Rename a pool or a namespace, or give one cluster's Argo CD another
`namespace`, where it has one of its own. Give each cluster that one Flux reaches a namespace for its Flux objects.
""",
)

COMPONENTS_NOT_BUILT = Rule(
    "GPU680",
    "components-not-built",
    Severity.WARNING,
    Family.OBJECTS,
    """There are hand-written Components, and nothing to build them with, or to build them safely.

## Why
What a patch makes of an object is known when kustomize has applied it. Neither `kustomize` nor `kubectl`, which has it
inside, was found on the path, so that nobody knows whether the Components build, and what came of them was not checked.
What is written to `out/` is the same with and without it.

kustomize runs where it cannot reach a network: by seccomp on Linux, by `sandbox-exec` on macOS. On systems that have
neither, a Component is not built when anything in it might be an address.

## Instead
Install kustomize or kubectl, or name the program: `--kustomize PATH`, or the environment variable `GPUPLAN_KUSTOMIZE`.
`--kustomize off` says that the check is not wanted.
""",
)

COMPONENT_DOES_NOT_BUILD = Rule(
    "GPU681",
    "component-does-not-build",
    Severity.ERROR,
    Family.OBJECTS,
    """kustomize refuses a generated folder with its hand-written Components.

## Why
The folder is built with every Component that it includes before anything of it is applied. What kustomize refuses, Argo
CD and Flux refuse as a whole: nothing in the folder is synced any more, until it is repaired. Frequent reasons are a
file that does not exist, a patch of an object that is named otherwise, and an object that is there already.

## Instead
Repair what the message names. A patch for a stage's Component must match in every folder that includes it: give it a
`target`, or put it into the Component of the one namespace or pool.
""",
)

COMPONENT_FILE_UNUSABLE = Rule(
    "GPU648",
    "component-file-unusable",
    Severity.ERROR,
    Family.OBJECTS,
    """A hand-written Component needs something that is no file, is too large, or is named from the top of a machine.

## Why
Components are built in a copy that holds what they name, so that a build reaches nothing else. A pipe or a device has
no content to copy: whoever opens it waits, or reads without end. Files of more than 8 MiB are no configuration, and
one cluster's Components together are built from no more than 64 MiB. Absolute paths, and those with more `..` than
there are folders, mean something else on every machine.

## Instead
Put a regular file there, and write the way to it from the folder of the kustomization that names it.
""",
)

PATCHED_OBJECT_INVALID = Rule(
    "GPU683",
    "patched-object-invalid",
    Severity.ERROR,
    Family.OBJECTS,
    """An object that a hand-written Component adds or patches does not fit the schema of its kind.

## Why
The API server of the cluster's Kubernetes version would refuse it or drop the field, and Argo CD would show the
Application as failed or out of sync. Objects are judged as kustomize has built them. Custom resources are judged by the
definitions that are given with `--crds`, and are left alone without.

## Instead
Correct the field in the patch or in the object. A value under a wrong key is most often one of indentation.
""",
)

INVALID_OBJECT = Rule(
    "GPU690",
    "invalid-object",
    Severity.ERROR,
    Family.OBJECTS,
    """An object that gpuplan rendered does not fit the schema of its kind.

## Why
The API server of this Kubernetes version would refuse it or drop the field, and Argo CD would show the Application as
failed or out of sync. With `--crds`, custom resources are judged by the definitions given there.

## Instead
If the definition is of another version than the cluster's, give the right one. If it is right, this is a bug in
gpuplan: report the object and the message.
""",
    ignorable=False,
)

RETAINED_FOR_NOTHING = Rule(
    "GPU720",
    "retained-for-nothing",
    Severity.WARNING,
    Family.PLAN,
    """Something is retained that the policies still say, or that another document retains already.

## Why
What is retained is there for nodes that name it after the policies do not. While a layout or a pool makes the same
entry, the document changes nothing; it only keeps the entry from leaving one day.

## Instead
Delete the document.
""",
)

RETAINED_CONTRADICTED = Rule(
    "GPU721",
    "retained-contradicted",
    Severity.ERROR,
    Family.PLAN,
    """Something is retained under the name of something else that the policies, or another document, make.

## Why
A name stands for one thing: an entry of the MIG manager's file, a key of the device plugin's ConfigMap, a Kubernetes
object. Nodes that still name what is retained would get the other one.

## Instead
Delete the document if nothing in the cluster is as it says any more: its `until` says how to find out. Else give what
is new another name.
""",
    ignorable=False,
)

CLUSTER_REMOVED = Rule(
    "GPU718",
    "cluster-removed",
    Severity.WARNING,
    Family.STEP,
    """A cluster is removed.

## Why
What syncs the cluster's folders finds them gone. Where it was told to ask a person, it asks; all else that it wrote is
removed, or stays with nobody to see to it. Labels of nodes go, and with them the partitions of their GPUs.

## Instead
Drain the nodes first, and take what syncs the cluster away before its folder. Keep the folder for as long as anything
runs there.
""",
    ignorable=False,
)

NOT_JUDGED = Rule(
    "GPU719",
    "step-not-judged",
    Severity.WARNING,
    Family.STEP,
    """A cluster is not judged as a step, since nobody knows what changes in it.

## Why
Policies with errors are not built: where the earlier ones have some, the cluster is as an older revision says. And what
could not be read there would look as if it were new.

It is a note where the earlier side has none of the clusters. That is right for the first of them. A platform that has
moved to another folder of its repository looks the same, and nothing is found of what the move would break.

## Instead
Compare with the last revision that was built: `gpuplan validate --against REV`, `gpuplan diff --against REV`. Of a
platform that has moved, lay the earlier state out with `git worktree add`, and compare with its folder.
""",
)

RULES = (
    CLUSTER_DOCUMENT,
    MISSING_BASE,
    UNUSED_IGNORE,
    UNKNOWN_KUBERNETES,
    UNMATCHED_OVERLAY,
    SHARED_NAMES,
    COMPONENTS_NOT_BUILT,
    COMPONENT_FILE_UNUSABLE,
    COMPONENT_DOES_NOT_BUILD,
    PATCHED_OBJECT_INVALID,
    INVALID_OBJECT,
    RETAINED_FOR_NOTHING,
    RETAINED_CONTRADICTED,
    CLUSTER_REMOVED,
    NOT_JUDGED,
)
