"""Serves Git repositories and charts over HTTP on loopback, and commits to the former."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

_GIT: Final = "/git/"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a server: repositories below `git/` by Git's smart protocol, all else of a folder as it is."""

    class Handler(_Handler):
        root = folder

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, directory=str(folder), **kwargs)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, name="served", daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


class _Handler(SimpleHTTPRequestHandler):
    root: Path

    def do_GET(self) -> None:
        if self.path.startswith(_GIT):
            self._answer_git(b"")
        else:
            super().do_GET()

    def do_POST(self) -> None:
        self._answer_git(self._body())

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        return found

    def _answer_git(self, body: bytes) -> None:
        """What `git http-backend` answers, which is asked as a web server would: by CGI (RFC 3875)."""
        url = urlsplit(self.path)
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self.root / "git"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": url.path.removeprefix(_GIT.rstrip("/")),
            "QUERY_STRING": url.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=True)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the standard library gives
        """Say nothing."""


def publish_chart(folder: Path, chart: Path, release: str) -> None:
    """Put a chart at a release into a folder of charts, with an index that Helm reads."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / f"{chart.name}-{release}.tgz", "w:gz") as archive:
        for path in sorted(chart.rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                if path == chart / "Chart.yaml":
                    data = _with_release(data.decode(), release).encode()
                entry = tarfile.TarInfo(f"{chart.name}/{path.relative_to(chart).as_posix()}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    (folder / "index.yaml").write_text(
        f"apiVersion: v1\nentries:\n  {chart.name}:\n"
        f"  - {{apiVersion: v2, name: {chart.name}, version: {release}, urls: [{chart.name}-{release}.tgz]}}\n",
        encoding="utf-8",
    )


def _with_release(text: str, release: str) -> str:
    """A `Chart.yaml` of a release: in Git it has the version of no release."""
    fields = {"version": release, "appVersion": release}
    lines = [line for line in text.splitlines() if line.partition(":")[0] not in fields]
    return "\n".join([*lines, *(f'{key}: "{value}"' for key, value in fields.items()), ""])


@dataclass(frozen=True, slots=True)
class Repository:
    """A platform in a work tree, and the bare repository that is served."""

    tree: Path
    url: str

    @classmethod
    def make(cls, tree: Path, served: Path, url: str) -> Repository:
        bare = served / "git" / "platform.git"
        _git(served, "init", "-q", "--bare", "-b", "main", str(bare))
        _git(tree, "init", "-q", "-b", "main")
        _git(tree, "remote", "add", "origin", str(bare))
        return cls(tree, f"{url}/git/platform.git")

    def commit(self, subject: str) -> str:
        """Commit all that is there, push it, and return the commit."""
        _git(self.tree, "add", "-A")
        _git(self.tree, "commit", "-q", "--allow-empty", "-m", subject)
        _git(self.tree, "push", "-q", "origin", "main")
        return _git(self.tree, "rev-parse", "HEAD").strip()

    def bring_back(self, *paths: str) -> None:
        """Have these folders in the work tree as they were before the last commit."""
        _git(self.tree, "checkout", "-q", "--no-overlay", "HEAD~1", "--", *paths)


def _git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=Tests", "-c", "user.email=tests@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout
