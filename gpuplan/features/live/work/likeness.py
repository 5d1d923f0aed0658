"""Whether an object of a cluster is what was written for it: the API server and controllers add to what they are given.

Whatever nobody has written counts as well, other than for drift: what the policies do not say would be lost in Git. The
defaults that no schema says are those of `pkg/apis/{core,apps,batch}/v1/defaults.go` of kubernetes/kubernetes v1.34.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.manifests.merging.shape import Shape
from gpuplan.compiler.planning.kueue import ANY_TOPOLOGY, PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY, TOGETHER
from gpuplan.compiler.planning.schedulers import kueue

_ANY: Final = object()
"""Whatever it is, somebody else has written it."""


def difference(written: object, live: object, shape: Shape, route: Path = ()) -> Path | None:
    """Where an object first differs from what would be written; None where it is the same."""
    if written == live:
        return None
    match written, live:
        case Mapping(), Mapping():
            return _between_mappings(written, live, shape, route)
        case list(), list() if len(written) == len(live):
            pairs = enumerate(zip(written, live, strict=True))
            found = (difference(one, other, shape.items, (*route, index)) for index, (one, other) in pairs)
            return next((item for item in found if item is not None), None)
        case _:
            return None if _is_same_amount(written, live, shape) else route


def _between_mappings(
    written: Mapping[str, object], live: Mapping[str, object], shape: Shape, route: Path
) -> Path | None:
    for key, value in written.items():
        if key not in live:
            if value not in _EMPTY:
                return (*route, key)
        elif (found := difference(value, live[key], shape.field(key), (*route, key))) is not None:
            return found
    for name, value in live.items():
        key = str(name)
        if name not in written and not is_added(value, shape.field(key), (*route, key)):
            return (*route, key)
    return None


_EMPTY: Final[tuple[object, ...]] = ("", [], {}, None)
"""What the API server leaves out."""


def _is_same_amount(written: object, live: object, shape: Shape) -> bool:
    """Whether the API server has written the one for the other: `1.5` is `1500m`."""
    if not shape.is_amount or isinstance(written, Mapping | list) or isinstance(live, Mapping | list):
        return False
    amount = parse_quantity(str(written))
    return amount is not None and amount == parse_quantity(str(live))


def is_added(value: object, shape: Shape, route: Path) -> bool:
    """Whether what nobody has asked for at this place is a default, or a note of whoever applies or runs the object."""
    names = [part for part in route if isinstance(part, str)]
    parent, field = names[-2] if len(names) > 1 else "", names[-1]
    if parent in ("labels", "annotations") and field.startswith(_NOTES):
        return field not in _SAID_TO_KUEUE
    known = _ADDED.get((parent, field))
    if value in _EMPTY or known is _ANY or (isinstance(known, tuple) and value in known):
        return True
    if shape.default is not ABSENT and difference(shape.default, value, shape, route) is None:
        return True
    return isinstance(value, Mapping) and difference({}, value, shape, route) is None


_KUEUE: Final = "kueue.x-k8s.io/"
_SAID_TO_KUEUE: Final = (
    *(kueue.QUEUE_LABEL, kueue.PRIORITY_LABEL),
    *(ANY_TOPOLOGY, PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY, TOGETHER),
)
"""What work says to Kueue; all else that begins so is what Kueue notes on work."""

_NOTES: Final = (
    "kubectl.kubernetes.io/",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "app.kubernetes.io/instance",
    "deployment.kubernetes.io/",
    "batch.kubernetes.io/",
    "controller-uid",
    "job-name",
    "pv.kubernetes.io/",
    "volume.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "scaledobject.keda.sh/name",
    _KUEUE,
)
"""Beginnings of labels and annotations by which those that apply or run an object know it again."""

_OF_SERVER: Final = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields", "finalizers"),
)
_PROBES: Final = ("readinessProbe", "livenessProbe", "startupProbe")
_CONTAINERS: Final = ("containers", "initContainers")

_ADDED: Final[Mapping[tuple[str, str], object]] = {
    ("", "status"): _ANY,
    **dict.fromkeys((("metadata", field) for field in _OF_SERVER), _ANY),
    # Pods.
    ("spec", "dnsPolicy"): ("ClusterFirst",),
    ("spec", "restartPolicy"): ("Always",),
    ("spec", "schedulerName"): ("default-scheduler",),
    ("spec", "terminationGracePeriodSeconds"): (30,),
    ("spec", "enableServiceLinks"): (True,),
    ("spec", "serviceAccount"): _ANY,  # the old name of `serviceAccountName`
    **dict.fromkeys(((item, "imagePullPolicy") for item in _CONTAINERS), ("IfNotPresent", "Always")),
    **dict.fromkeys(((item, "terminationMessagePath") for item in _CONTAINERS), ("/dev/termination-log",)),
    **dict.fromkeys(((item, "terminationMessagePolicy") for item in _CONTAINERS), ("File",)),
    ("ports", "protocol"): ("TCP",),
    ("httpGet", "scheme"): ("HTTP",),
    **dict.fromkeys(((probe, "timeoutSeconds") for probe in _PROBES), (1,)),
    **dict.fromkeys(((probe, "periodSeconds") for probe in _PROBES), (10,)),
    **dict.fromkeys(((probe, "successThreshold") for probe in _PROBES), (1,)),
    **dict.fromkeys(((probe, "failureThreshold") for probe in _PROBES), (3,)),
    **dict.fromkeys(((volume, "defaultMode") for volume in ("configMap", "secret", "projected")), (420,)),
    ("fieldRef", "apiVersion"): ("v1",),
    # Deployments; the number that they leave to an autoscaler is its own.
    ("spec", "replicas"): _ANY,
    ("spec", "revisionHistoryLimit"): (10,),
    ("spec", "progressDeadlineSeconds"): (600,),
    # Jobs; Kueue suspends and resumes them.
    ("spec", "suspend"): _ANY,
    ("spec", "selector"): _ANY,
    ("spec", "manualSelector"): (False,),
    ("spec", "completionMode"): ("NonIndexed",),
    ("spec", "completions"): (1,),
    ("spec", "parallelism"): (1,),
    ("spec", "backoffLimit"): (6, 2**31 - 1),
    ("spec", "podReplacementPolicy"): ("TerminatingOrFailed", "Failed"),
    # JobSets (`Default` in `pkg/webhooks/jobset_webhook.go`); Kueue tells a TrainJob of a flavor in a patch of its own.
    ("network", "publishNotReadyAddresses"): (True,),
    ("successPolicy", "operator"): ("All",),
    ("startupPolicy", "startupPolicyOrder"): ("AnyOrder",),
    ("failurePolicy", "restartStrategy"): ("Recreate",),
    ("spec", "runtimePatches"): _ANY,
    ("spec", "podTemplateOverrides"): _ANY,
    # Services.
    **dict.fromkeys((("spec", field) for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")), _ANY),
    ("spec", "type"): ("ClusterIP",),
    ("spec", "sessionAffinity"): ("None",),
    ("spec", "internalTrafficPolicy"): ("Cluster",),
    ("spec", "externalTrafficPolicy"): ("Cluster",),
    ("spec", "allocateLoadBalancerNodePorts"): (True,),
    ("spec", "healthCheckNodePort"): _ANY,
    ("ports", "nodePort"): _ANY,
    ("ports", "targetPort"): _ANY,  # where none is written, that of the Service
    # Claims.
    ("spec", "volumeName"): _ANY,
    ("spec", "volumeMode"): ("Filesystem",),
    ("spec", "storageClassName"): _ANY,  # the cluster's own default
}
"""By the field around it and its name: the values that it has where nobody says one."""
