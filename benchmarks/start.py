"""The least that a program of gpuplan's kind takes to start: what it imports, and one model of its own."""

import click  # noqa: F401 - what it takes to import it
import yaml  # noqa: F401 - and it
from pydantic import BaseModel


class Document(BaseModel):
    """One is enough for pydantic to load what declares models."""

    kind: str
