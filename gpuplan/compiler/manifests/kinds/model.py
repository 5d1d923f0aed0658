"""A kind of Kubernetes object, as far as anything that gpuplan writes, syncs or compares depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.values import Value

Route = tuple[str, ...]
"""The keys that lead to a field of an object."""


class Removal(StrEnum):
    """The care that it takes to remove an object."""

    FREE = ""
    """Nothing special."""
    CONFIRM = "confirm"
    """A person must agree."""
    NEVER = "false"


class Care(Value):
    """The way in which objects are applied and removed.

    ``wave`` is Argo CD's sync wave: waves are applied from the lowest on, each when the one before is healthy, and
    deleted in reverse with their Application. What leaves Git is pruned in reverse as well, but all at once where it is
    pruned last, as an Application may say of everything (`getSyncTasks` in `gitops-engine/pkg/sync/sync_context.go`
    there). ``prune`` is for an object that leaves Git, and ``delete`` for one whose Application is deleted.
    """

    wave: int = 0
    prune: Removal = Removal.FREE
    delete: Removal = Removal.FREE
    is_pruned_last: bool = False
    is_applied_by_server: bool = False
    is_left_over: bool = False
    """It may stay when it leaves Git, and nothing counts as out of sync for it."""


class Judgement(StrEnum):
    """A way in which the class of a change follows from the objects or their folder, if no single class says it.

    Whoever judges changes has a function for each.
    """

    ADMISSION_UNLESS_WATCHING = "admission-unless-watching"
    """`ADMISSION`, but `METADATA` in a stage that only watches."""
    BY_FOLDER = "by-folder"
    """The stage that applies it decides: nothing else is known of the kind."""
    CHARTS = "charts"
    """The charts that an Application installs, and their versions, decide."""
    NODE_LABELS = "node-labels"
    NODE_RULES = "node-rules"
    """The labels that a NodeFeatureRule gives, and the nodes that it chooses, decide."""
    NUMBER_OF_PODS = "number-of-pods"
    """The number of pods decides: some end if there are fewer."""
    OPERATOR_FILES = "operator-files"
    """The content of a ConfigMap decides: files of the GPU Operator, or lists that admission reads."""
    OWN_NAMESPACE = "own-namespace"
    """The owner of the Namespace decides: nothing runs in gpuplan's own."""
    SELECTED_NAMESPACES = "selected-namespaces"
    """The namespaces decide whose work a queue takes no more."""
    STOPPED_WORK = "stopped-work"
    """The way in which a queue stops decides: it may evict what it has admitted."""
    SYNCED_OBJECTS = "synced-objects"
    """The object that syncs a folder decides: it may take along what it applied."""
    TENANT_LABELS = "tenant-labels"
    """The labels of a Namespace decide that say whose it is and which pods may run there."""


Disturbance = ChangeClass | Judgement
"""The effect of a change on what runs: always the same, or as something about the object says."""


class Immutable(Value):
    """A field that the API server lets nobody change, such as ``spec.clusterQueue``, or one label.

    ``default`` is what the server makes of it where it is absent. ``where`` and ``unless`` are fields: only objects
    that have something at the one, and nothing at the other, keep this field. What ``may_go`` may be taken away or
    added all the same, and an amount that ``may_grow`` may become greater. ``by`` is what refuses it
    beside the API server, and when.
    """

    field: str
    default: object = None
    where: str = ""
    unless: str = ""
    may_go: bool = False
    may_grow: bool = False
    by: str = ""

    @property
    def route(self) -> Route:
        return route_of(self.field)


class Hold(Value):
    """A use of an object: others of a ``kind`` of the same group name it in a field, or, without one, it says so.

    Such as ``spec.flavors[*].name``. What it says itself is a number, of those that use it now.
    """

    field: str
    kind: str = ""


class Kind(Value):
    """A kind of object; the core group is empty.

    ``added``, ``changed`` and ``removed`` say what such a change disturbs, and ``fields`` what a change of some fields
    does, with all that is in them; the longest one holds. A change of labels and annotations alone disturbs nothing
    where ``fields`` does not name them. A change of an ``immutable`` field is a `RECREATE` at least, whatever the
    others say.
    """

    group: str
    kind: str
    source: str
    """Where the facts are from: files of the project that defines the kind."""
    is_namespaced: bool
    added: Disturbance
    changed: Disturbance
    removed: Disturbance
    immutable: tuple[Immutable, ...]
    outlives_policy: bool
    """Live objects may be left when the last one leaves the policy.

    Argo CD ignores live objects of a kind that their project does not allow (`IsLiveResourcePermitted`): it neither
    prunes them nor asks. A quota would go on capping, a rule go on labelling nodes, and a service go on holding GPUs,
    with nobody to notice. So the project goes on allowing such a kind. It allows it from the start, too: Applications
    read a commit by themselves, and would be refused what comes with it until the project has been synced.
    """
    why: str = ""
    """The reason why gpuplan writes such objects, as in `Manifest`. It is empty for kinds that policies ask for."""
    is_custom: bool = False
    """A CustomResourceDefinition defines it. The same sync may install that, so a dry run of the whole would fail."""
    care: Care = Care()
    fields: Mapping[str, Disturbance] = field(default_factory=dict)
    admits_by: str = ""
    """The field that says which pods are let in; empty where the kind lets in none."""
    takes_work: bool = False
    """Work is admitted through it, until its ``spec.stopPolicy`` says otherwise."""
    held_by: Hold | None = None
    """The use that keeps an object from being removed, or None."""

    @property
    def needed_until(self) -> str:
        """A command that shows the uses of object NAME in namespace SPACE. It is empty if nothing can use one."""
        if self.held_by is None:
            return ""
        field, of = self.held_by.field, self.held_by.kind.lower()
        if of:
            return f"`kubectl get {of}s -o jsonpath='{{.items[*].{field}}}'` does not print NAME"
        where = " -n SPACE" if self.is_namespaced else ""
        return f"`kubectl get {self.kind.lower()} NAME{where} -o jsonpath='{{.{field}}}'` prints 0"

    @property
    def routes(self) -> Mapping[Route, Disturbance]:
        return {route_of(field): disturbance for field, disturbance in self.fields.items()}


def route_of(field: str) -> Route:
    metadata, is_label, label = field.partition(".labels.")
    return (metadata, "labels", label) if is_label and metadata == "metadata" else tuple(field.split("."))


QUEUE_OF_PODS: Final = Immutable(
    "metadata.labels.kueue.x-k8s.io/queue-name", by="Kueue, which knows the kind, while a pod is ready"
)
"""The queue of what makes pods, once and for all: it takes none away either.

(`ValidateUpdate` in `pkg/controller/jobs/deployment/deployment_webhook.go` and in
`pkg/controller/jobs/leaderworkerset/leaderworkerset_webhook.go` of kubernetes-sigs/kueue, v0.17.0 to v0.19.2. That of
v0.17.0 has no exception for a LeaderWorkerSet without ready pods.) A dry run calls the webhook, so that Argo CD cannot
compare. Work that is queued as a whole keeps its queue, too, but has another name where its queue is another.
"""
