"""A TCP listener on loopback that counts who connects."""

from __future__ import annotations

import socket
import threading
from typing import Self


class Listener:
    """Counts connections, and answers none."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._socket.settimeout(0.05)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.connections = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._socket.close()

    def _accept(self) -> None:
        """Until the end, and then until nobody waits any more."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                if self._is_over.is_set():
                    return
                continue
            self.connections += 1
            connection.close()
