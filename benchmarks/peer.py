"""The peer: rjsonnet generates the fleet's objects from the same data, and Python writes its texts.

Run as `python -m benchmarks.peer DATA.json OUT`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import rjsonnet

from benchmarks.floor import write_files

PROGRAM = Path(__file__).with_name("peer.jsonnet")


def main(data: Path, out: Path) -> None:
    text = rjsonnet.evaluate_file(str(PROGRAM), ext_codes={"data": data.read_text()})
    write_files(out, {path: content.encode() for path, content in json.loads(text).items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
