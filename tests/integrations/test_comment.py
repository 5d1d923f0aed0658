"""The comment on a pull or merge request: one for each platform, kept up to date. The server is made for the test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from integrations.comment import main

GITHUB = {"GITHUB_REPOSITORY": "platform/gpu", "PULL_REQUEST": "7"}
GITLAB = {"CI_MERGE_REQUEST_PROJECT_ID": "42", "CI_MERGE_REQUEST_IID": "7"}
COMMENTS = {"github": "/repos/platform/gpu/issues/7/comments", "gitlab": "/projects/42/merge_requests/7/notes"}


@dataclass
class Fake:
    """A server with comments, which says what it was asked; ``refuses`` is the status of its answers to writing."""

    url: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refuses: int = 0

    def answer(self, method: str, url: str, body: Any) -> tuple[int, Any]:
        path, query = urlsplit(url).path, parse_qs(urlsplit(url).query)
        self.asked.append((method, path))
        if method == "GET":
            start = 100 * (int(query["page"][0]) - 1)
            return 200, self.comments[start : start + int(query["per_page"][0])]
        if self.refuses:
            return self.refuses, {"message": "Resource not accessible by integration"}
        if method == "POST":
            self.comments.append({"id": len(self.comments) + 1, **body})
        else:
            self.comments[int(path.rpartition("/")[2]) - 1].update(body)
        return 200, {}


@pytest.fixture
def fake() -> Iterator[Fake]:
    found = Fake()

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            found.headers.append(dict(self.headers))
            status, answer = found.answer(self.command, self.path, body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_GET = do_POST = do_PUT = do_PATCH = _handle  # noqa: N815 - as http.server calls them

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["github", "gitlab"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def post(fake: Fake, kind: str, folder: Path, text: str = "## gpuplan: quota\n", **variables: str) -> str:
    file = folder / "gpuplan-diff.md"
    file.write_text(text, encoding="utf-8")
    place = {**GITHUB, "GITHUB_API_URL": fake.url} if kind == "github" else {**GITLAB, "CI_API_V4_URL": fake.url}
    return main({"MARKDOWN": str(file), "KEY": ". ", "CLASS": "quota", "TOKEN": "secret", **place, **variables})


def test_the_first_time_a_comment_is_written(fake: Fake, kind: str, tmp_path: Path) -> None:
    assert post(fake, kind, tmp_path) == "a comment was posted"

    [comment] = fake.comments
    marker, text = comment["body"].split("\n", 1)
    assert marker.startswith("<!-- gpuplan diff ")
    assert text == "## gpuplan: quota\n"
    assert fake.asked == [("GET", COMMENTS[kind]), ("POST", COMMENTS[kind])]


def test_then_it_is_updated(fake: Fake, kind: str, tmp_path: Path) -> None:
    fake.comments = [{"id": 1, "body": "please have a look at <!-- gpuplan diff -->"}]
    post(fake, kind, tmp_path)

    assert post(fake, kind, tmp_path, "## gpuplan: repartition, é\n") == "the comment was updated"

    assert [comment["body"].partition("\n")[2] for comment in fake.comments] == ["", "## gpuplan: repartition, é\n"]
    assert fake.asked[-1][0] == {"github": "PATCH", "gitlab": "PUT"}[kind]


def test_it_is_found_on_a_later_page(fake: Fake, kind: str, tmp_path: Path) -> None:
    post(fake, kind, tmp_path)
    ours = fake.comments.pop()
    fake.comments = [{"id": number + 1, "body": "hm"} for number in range(250)]
    fake.comments.append({**ours, "id": 251})

    assert post(fake, kind, tmp_path) == "the comment was updated"
    assert len(fake.comments) == 251


def test_nothing_is_no_news_but_takes_back_what_was_said(fake: Fake, kind: str, tmp_path: Path) -> None:
    assert post(fake, kind, tmp_path, CLASS="none") == "nothing differs, so no comment was posted"
    post(fake, kind, tmp_path)

    assert post(fake, kind, tmp_path, "## gpuplan: none\n", CLASS="none") == "the comment was updated"

    assert [comment["body"].partition("\n")[2] for comment in fake.comments] == ["## gpuplan: none\n"]


def test_two_platforms_of_a_repository_have_a_comment_each(fake: Fake, kind: str, tmp_path: Path) -> None:
    post(fake, kind, tmp_path, KEY="platform ")
    post(fake, kind, tmp_path, KEY="platform --> dev")

    assert len(fake.comments) == 2
    assert all(comment["body"].partition("\n")[0].count("-->") == 1 for comment in fake.comments)


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_token_that_may_not_write_fails_nothing(fake: Fake, kind: str, tmp_path: Path, status: int) -> None:
    fake.refuses = status

    assert post(fake, kind, tmp_path).startswith(f"no comment was posted: the server says {status} ")


def test_a_server_that_is_not_there_fails_nothing(fake: Fake, kind: str, tmp_path: Path) -> None:
    fake.url = "http://127.0.0.1:1"

    assert post(fake, kind, tmp_path).startswith("no comment was posted: ")


def test_each_server_gets_the_token_as_it_wants_it(fake: Fake, kind: str, tmp_path: Path) -> None:
    post(fake, kind, tmp_path)

    name, value = {"github": ("Authorization", "Bearer secret"), "gitlab": ("Private-Token", "secret")}[kind]
    assert all(headers[name] == value for headers in fake.headers)
