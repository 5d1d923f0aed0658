"""Policy files as plain data in which every value knows the line that it came from."""

from __future__ import annotations

from gpuplan.compiler.documents.document import (
    Difference as Difference,
    Document as Document,
    Layer as Layer,
    Reading as Reading,
    Spot as Spot,
    differences as differences,
    file_of as file_of,
)
from gpuplan.compiler.documents.files import (
    find_embedded as find_embedded,
    find_folders as find_folders,
    has_folder as has_folder,
    read_bytes as read_bytes,
    read_folder as read_folder,
    read_manifests as read_manifests,
    read_text as read_text,
)
from gpuplan.compiler.documents.filetree import (
    DiskTree as DiskTree,
    Entry as Entry,
    FileTree as FileTree,
    Kind as Kind,
    Target as Target,
    is_passed_over as is_passed_over,
    is_policy_file as is_policy_file,
)
from gpuplan.compiler.documents.ignores import Ignore as Ignore, find_ignores as find_ignores
from gpuplan.compiler.documents.overlay import merge as merge, removals as removals
from gpuplan.compiler.documents.parse import read_data as read_data
from gpuplan.compiler.documents.rules import (
    DUPLICATE_KEY as DUPLICATE_KEY,
    NOTHING_TO_DELETE as NOTHING_TO_DELETE,
    NOTHING_TO_UNSET as NOTHING_TO_UNSET,
    RULES as RULES,
    TOO_LARGE as TOO_LARGE,
    UNREAD as UNREAD,
)
from gpuplan.compiler.documents.text import MAX_BYTES as MAX_BYTES
