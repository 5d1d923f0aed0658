"""gpuplan: GPU sharing for Kubernetes, described in Git, proven, and compiled into kustomize overlays."""

__version__ = "0.1.0"
