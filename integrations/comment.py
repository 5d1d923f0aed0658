"""Post a file of Markdown to a pull or merge request, in one comment that later runs update.

It needs Python alone. The job for GitLab holds a copy, since whoever includes it gets no other file.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

PAGE = 100


class Server(NamedTuple):
    """Where the comments of a request are, how one is changed, and who asks."""

    comments: str
    change: str
    one_comment: str
    headers: Mapping[str, str]


def find_server(variables: Mapping[str, str]) -> Server:
    """GitHub, or else GitLab: https://docs.github.com/en/rest/issues/comments, https://docs.gitlab.com/api/notes/."""
    token = variables["TOKEN"]
    if "GITHUB_REPOSITORY" in variables:
        issues = f"{variables['GITHUB_API_URL']}/repos/{variables['GITHUB_REPOSITORY']}/issues"
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        return Server(f"{issues}/{variables['PULL_REQUEST']}/comments", "PATCH", f"{issues}/comments", headers)
    project = f"{variables['CI_API_V4_URL']}/projects/{variables['CI_MERGE_REQUEST_PROJECT_ID']}"
    notes = f"{project}/merge_requests/{variables['CI_MERGE_REQUEST_IID']}/notes"
    return Server(notes, "PUT", notes, {"PRIVATE-TOKEN": token})


def post(server: Server, text: str, key: str, *, is_news: bool) -> str:
    """Update the comment of this key, and say so; where there is none, write one if there is something to say."""
    marker = f"<!-- gpuplan diff {sha256(key.encode()).hexdigest()[:12]} -->"
    body = {"body": f"{marker}\n{text}"}
    for comment in read_comments(server):
        if str(comment.get("body", "")).startswith(marker):
            call(server, server.change, f"{server.one_comment}/{comment['id']}", body)
            return "the comment was updated"
    if not is_news:
        return "nothing differs, so no comment was posted"
    call(server, "POST", server.comments, body)
    return "a comment was posted"


def read_comments(server: Server) -> Iterator[Mapping[str, object]]:
    page = 1
    while found := call(server, "GET", f"{server.comments}?per_page={PAGE}&page={page}"):
        yield from found
        page += 1


def call(server: Server, method: str, url: str, body: object = None) -> list[Mapping[str, object]]:
    """Ask the server; what it lists."""
    data = None if body is None else json.dumps(body).encode()
    headers = {**server.headers, "Content-Type": "application/json", "User-Agent": "gpuplan"}
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        answer = json.load(response)
    return answer if isinstance(answer, list) else []


def main(variables: Mapping[str, str]) -> str:
    """Post, and say what was done. A comment that cannot be posted fails nothing: the job shows the same text."""
    text = Path(variables["MARKDOWN"]).read_text(encoding="utf-8")
    try:
        return post(find_server(variables), text, variables["KEY"], is_news=variables["CLASS"] != "none")
    except urllib.error.HTTPError as error:
        return f"no comment was posted: the server says {error.code} {error.reason}; the token may not write comments"
    except (OSError, ValueError) as error:
        return f"no comment was posted: {error}"


if __name__ == "__main__":
    print(main(os.environ))
