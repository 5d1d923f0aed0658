"""The version of gpuplan, in one place; `gpuplan.__version__` is it."""

__version__ = "0.1.0"
