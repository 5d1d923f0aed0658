"""The floor: plain Python writes ready bytes to the same files.

Run as `python -m benchmarks.floor READY OUT`, where READY is what `pack` made.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Mapping
from pathlib import Path


def pack(files: Mapping[str, bytes], ready: Path) -> None:
    """Keep the bytes of all files in one, in a form that costs next to nothing to read."""
    ready.write_bytes(marshal.dumps(dict(files)))


def write_files(out: Path, files: Mapping[str, bytes]) -> None:
    root = str(out)
    made: set[str] = set()
    for path, data in files.items():
        target = f"{root}/{path}"
        folder = target.rpartition("/")[0]
        if folder not in made:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - the floor does no more than it must
            made.add(folder)
        with open(target, "wb") as stream:  # noqa: PTH123 - nor here
            stream.write(data)


def main(ready: Path, out: Path) -> None:
    write_files(out, marshal.loads(ready.read_bytes()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
