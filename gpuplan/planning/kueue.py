"""How workloads tell Kueue what they want."""

from __future__ import annotations

from typing import Final

# https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/constants/constants.go
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"

DEFAULT_QUEUE: Final = "default"
"""The LocalQueue of each namespace; one of that name takes workloads that name none (`DefaultLocalQueueName` there)."""

PREFERRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-preferred-topology"
"""An annotation of pods: the level of a Topology within which they should all be, if it can be had."""
