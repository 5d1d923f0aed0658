"""A page on this machine alone that follows the files that it is made of."""

from __future__ import annotations

import gc
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from threading import Lock
from typing import Final

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.terminal.session import Terminal

HOST: Final = "127.0.0.1"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_FOREIGN: Final = ("out", "node_modules")
"""Folders that hold none of the policies; neither do those whose name begins with a dot."""

Page = Callable[[str, str], str]
"""Makes the page; it is given a nonce, and the state that it is made of."""


def serve(terminal: Terminal, port: int, page: Page) -> None:
    """Answer on a port of this machine, or on any free one for 0, until Ctrl+C."""
    gc.enable()  # other commands end before there is any
    try:
        made = server(terminal.root, port, page)
    except OSError as error:
        free = "`--serve` without a number takes one that is free"
        raise GpuplanError(f"port {port}: {(error.strerror or str(error)).lower()}", free) from error
    with made as serving:
        terminal.insist(f"http://{HOST}:{serving.server_port}/ until Ctrl+C\n")
        with suppress(KeyboardInterrupt):
            serving.serve_forever()


def server(root: Path, port: int, page: Page) -> ThreadingHTTPServer:
    """Return a server that answers on a port of this machine; 0 is any that is free."""
    lock = Lock()

    class Handler(BaseHTTPRequestHandler):
        server_version = "gpuplan"
        sys_version = ""
        timeout = 10

        def do_GET(self) -> None:
            self._answer(is_whole=True)

        def do_HEAD(self) -> None:
            self._answer(is_whole=False)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is inherited
            """Nobody asked for a log."""

        def _answer(self, *, is_whole: bool) -> None:
            nonce = secrets.token_urlsafe(16)
            status, kind, text = self._answered(nonce)
            body = text.encode("utf-8", "replace")
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            own = f"'nonce-{nonce}'"
            self.send_header(
                "Content-Security-Policy",
                f"default-src 'none'; style-src {own}; script-src {own}; connect-src 'self'; base-uri 'none'; "
                "form-action 'none'; frame-ancestors 'none'",
            )
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if is_whole:
                self.wfile.write(body)

        def _answered(self, nonce: str) -> tuple[HTTPStatus, str, str]:
            here = made.server_port
            # A name of somebody else's that leads here (DNS rebinding) would let their pages read this one.
            if self.headers.get("Host") not in (f"{HOST}:{here}", f"localhost:{here}"):
                return HTTPStatus.FORBIDDEN, "text/plain", "this is for localhost alone\n"
            match self.path:
                case "/":
                    with lock:
                        return HTTPStatus.OK, "text/html", page(nonce, state(root))
                case "/state":
                    return HTTPStatus.OK, "text/plain", state(root)
                case _:
                    return HTTPStatus.NOT_FOUND, "text/plain", "there is one page, /\n"

    made = _Server((HOST, port), Handler)
    return made


class _Server(ThreadingHTTPServer):
    def server_bind(self) -> None:
        """Bind as `HTTPServer` does, but ask no name server what this machine is called."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])


def state(root: Path) -> str:
    """Return a text that changes when a file does that policies may be in."""
    found = hashlib.sha256()
    for path in sorted(_files(root)):
        try:
            stat = path.stat()
        except OSError:  # it has just gone, or leads nowhere
            continue
        found.update(f"{path}\0{stat.st_mtime_ns}\0{stat.st_size}\n".encode(errors="surrogateescape"))
    return found.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if not name.startswith(".") and name not in _FOREIGN]
        yield from (Path(folder) / name for name in names if name.endswith(_SUFFIXES))
