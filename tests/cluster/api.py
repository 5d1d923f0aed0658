"""A small client of the Kubernetes API: JSON over HTTP, one request at a time."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlencode

Object: TypeAlias = Mapping[str, Any]
Patch: TypeAlias = Literal["merge", "strategic", "json", "apply"]

_CONTENT_TYPES: Mapping[Patch, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Refused(Exception):  # noqa: N818 - as the API server says: an answer, not a failure
    """What the API server answers when it does not do what it is asked."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class Resource:
    """How the API server serves a kind."""

    plural: str
    is_namespaced: bool


@dataclass(frozen=True, slots=True)
class Api:
    """An API server, as one user sees it."""

    port: int
    token: str
    tls: ssl.SSLContext
    user: str | None = None
    groups: tuple[str, ...] = ()
    _kinds: dict[tuple[str, str], Resource] = field(default_factory=dict)

    def as_user(self, name: str, groups: Sequence[str] = ()) -> Api:
        """The same server as someone else sees it, who is in `system:authenticated` too."""
        return replace(self, user=name, groups=tuple(groups))

    def get(self, path: str) -> dict[str, Any]:
        return self.request("GET", path)

    def find(self, path: str) -> dict[str, Any] | None:
        try:
            return self.get(path)
        except Refused as refused:
            if refused.code == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def list(self, path: str) -> tuple[dict[str, Any], ...]:
        return tuple(self.get(path)["items"])

    def create(self, body: Object, *, dry_run: bool = False) -> dict[str, Any]:
        """Create the object, refused where it has a field that its kind does not have."""
        query = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        return self.request("POST", f"{self.collection_of(body)}?{urlencode(query)}", body)

    def apply(self, body: Object, *, manager: str, force: bool = False, dry_run: bool = False) -> dict[str, Any]:
        """Apply the object on the server's side, refused where it has a field that its kind does not have."""
        query = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        query |= {"dryRun": "All"} if dry_run else {}
        return self.patch(f"{self.path_of(body)}?{urlencode(query)}", body, kind="apply")

    def patch(self, path: str, body: Object | Sequence[Object], *, kind: Patch = "merge") -> dict[str, Any]:
        return self.request("PATCH", path, body, content_type=_CONTENT_TYPES[kind])

    def replace(self, path: str, body: Object) -> dict[str, Any]:
        return self.request("PUT", path, body)

    def delete(self, path: str, *, grace_seconds: int | None = None) -> None:
        """Delete the object, or all of a collection, together with what they own."""
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        self.request("DELETE", path, options)

    def watch(self, path: str, resource_version: str, *, seconds: int) -> Iterator[dict[str, Any]]:
        """The events of a collection from a version on, until the server ends the watch."""
        query = urlencode({"watch": 1, "resourceVersion": resource_version, "timeoutSeconds": seconds})
        with closing(self._connect(seconds + 10)) as connection:
            response = self._send(connection, "GET", f"{path}?{query}")
            if response.status >= http.HTTPStatus.BAD_REQUEST:
                raise _refusal(response.status, response.read())
            for line in response:
                yield json.loads(line)

    def path_of(self, body: Object) -> str:
        """Where the object is or would be."""
        return f"{self.collection_of(body)}/{quote(body['metadata']['name'])}"

    def collection_of(self, body: Object) -> str:
        """The path of all objects of this kind, in the same namespace where the kind has namespaces."""
        version, kind = body["apiVersion"], body["kind"]
        resource = self.find_kind(version, kind)
        if resource is None:
            raise LookupError(f"the API server has no kind {kind} in {version}")
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if not resource.is_namespaced:
            return f"{root}/{resource.plural}"
        return f"{root}/namespaces/{body['metadata'].get('namespace', 'default')}/{resource.plural}"

    def find_kind(self, version: str, kind: str) -> Resource | None:
        """How a kind is served; what is not served yet is asked for anew each time."""
        if (version, kind) not in self._kinds:
            found = self.find(f"/apis/{version}" if "/" in version else f"/api/{version}")
            for resource in found["resources"] if found else ():
                if "/" not in resource["name"]:
                    self._kinds[version, resource["kind"]] = Resource(resource["name"], resource["namespaced"])
        return self._kinds.get((version, kind))

    def request(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json"
    ) -> dict[str, Any]:
        """One request; whatever the server does not do is raised as Refused."""
        with closing(self._connect(30)) as connection:
            response = self._send(connection, method, path, body, content_type)
            text = response.read()
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise _refusal(response.status, text)
        answer: dict[str, Any] = json.loads(text)
        return answer

    def _connect(self, timeout: int) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.tls)

    def _send(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
    ) -> http.client.HTTPResponse:
        data = b"" if body is None else json.dumps(body).encode()
        connection.putrequest(method, path)
        connection.putheader("Authorization", f"Bearer {self.token}")
        connection.putheader("Accept", "application/json")
        connection.putheader("Content-Type", content_type)
        connection.putheader("Content-Length", str(len(data)))
        if self.user is not None:
            connection.putheader("Impersonate-User", self.user)
        for group in self.groups:
            connection.putheader("Impersonate-Group", group)
        connection.endheaders(data)
        return connection.getresponse()


def _refusal(code: int, text: bytes) -> Refused:
    try:
        status = json.loads(text)
    except ValueError:
        return Refused(code, "", text.decode(errors="replace").strip())
    return Refused(code, status.get("reason", ""), status.get("message", ""))
