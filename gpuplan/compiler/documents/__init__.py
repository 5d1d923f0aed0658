"""Policy files as plain data in which every value knows the line that it came from."""

from __future__ import annotations

from gpuplan.compiler.documents.differences import Difference, differences
from gpuplan.compiler.documents.document import Document, Layer, Reading, Spot, file_of
from gpuplan.compiler.documents.embedded import find_embedded
from gpuplan.compiler.documents.files import (
    find_folders,
    has_folder,
    read_bytes,
    read_folder,
    read_manifests,
    read_text,
)
from gpuplan.compiler.documents.filetree import DiskTree, Entry, FileTree, Kind, Target, is_passed_over, is_policy_file
from gpuplan.compiler.documents.ignores import Ignore, find_ignores
from gpuplan.compiler.documents.overlay import merge, removals
from gpuplan.compiler.documents.parse import read_data
from gpuplan.compiler.documents.rules import DUPLICATE_KEY, NOTHING_TO_DELETE, RULES, TOO_LARGE, UNREAD
from gpuplan.compiler.documents.text import MAX_BYTES

__all__ = [
    "DUPLICATE_KEY",
    "MAX_BYTES",
    "NOTHING_TO_DELETE",
    "RULES",
    "TOO_LARGE",
    "UNREAD",
    "Difference",
    "DiskTree",
    "Document",
    "Entry",
    "FileTree",
    "Ignore",
    "Kind",
    "Layer",
    "Reading",
    "Spot",
    "Target",
    "differences",
    "file_of",
    "find_embedded",
    "find_folders",
    "find_ignores",
    "has_folder",
    "is_passed_over",
    "is_policy_file",
    "merge",
    "read_bytes",
    "read_data",
    "read_folder",
    "read_manifests",
    "read_text",
    "removals",
]
