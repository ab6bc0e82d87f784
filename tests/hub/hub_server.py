"""A server on loopback that speaks the Hub's API over files in memory, as far as its client asks."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping, MutableMapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "a" * 40
"""The commit of every branch; a commit that is asked for is answered as it is."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


class Hub(ThreadingHTTPServer):
    """Serves files of repositories as the Hub does."""

    daemon_threads = True

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """Serve files by repository and name: ``datasets/org/name/README.md`` or ``org/name/config.json``."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.sent: list[str] = []
        """Names of the files whose bytes were sent."""
        self.bytes_sent = 0
        self.gated: set[str] = set()
        """Datasets that need accepted conditions."""
        self.renamed: MutableMapping[str, str] = {}
        """Former name of a dataset -> name."""
        self.revisions: MutableMapping[str, str] = {}
        """Dataset -> the only revision that it has."""
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of the Hub's client."""

    server: Hub

    def log_message(self, format: str, *arguments: Any) -> None:
        """Silent."""

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0].strip("/").replace("%2F", "/")
        for former, name in self.server.renamed.items():
            target = re.sub(rf"datasets/{former}(?=[/?]|$)", f"datasets/{name}", self.path)
            if target != self.path:
                self.send(307, b"", {"Location": self.server.url + target}, body=body)
                return
        if path.startswith("api/"):
            self._answer_api(path.removeprefix("api/"), body=body)
        else:
            self._answer_file(path, body=body)

    def _answer_api(self, path: str, *, body: bool) -> None:
        kind, _, rest = path.partition("/")
        repository, verb, revision = rest, "", "main"
        for word in ("/tree/", "/revision/", "/auth-check"):
            if word in rest:
                repository, _, revision = rest.partition(word)
                verb = word
        if verb == "/auth-check":
            self._check_access(repository, body=body)
            return
        prefix = f"datasets/{repository}/" if kind == "datasets" else f"{repository}/"
        files = {
            name.removeprefix(prefix): content
            for name, content in self.server.files.items()
            if name.startswith(prefix)
        }
        if not files:
            self.send(404, b"", {"X-Error-Code": "RepoNotFound"}, body=body)
        elif revision != self.server.revisions.get(repository, revision):
            self.send(404, b"", {"X-Error-Code": "RevisionNotFound"}, body=body)
        elif verb == "/tree/":
            tree = [
                {"type": "file", "path": name, "size": len(content), "oid": COMMIT}
                for name, content in files.items()
            ]
            self.send(200, json.dumps(tree).encode(), {}, body=body)
        else:
            info = {
                "id": repository,
                "sha": revision if _COMMIT.fullmatch(revision) else COMMIT,
                "gated": "auto" if repository in self.server.gated else False,
                "siblings": [{"rfilename": name, "size": len(content)} for name, content in files.items()],
            }
            self.send(200, json.dumps(info).encode(), {}, body=body)

    def _check_access(self, repository: str, *, body: bool) -> bool:
        if repository in self.server.gated:
            self.send(403, b"", {"X-Error-Code": "GatedRepo"}, body=body)
            return False
        self.send(200, b"{}", {}, body=body)
        return True

    def _answer_file(self, path: str, *, body: bool) -> None:
        repository, _, rest = path.partition("/resolve/")
        revision = (
            "refs/convert/parquet" if rest.startswith("refs/convert/parquet/") else rest.partition("/")[0]
        )
        name = f"{repository}/{rest.removeprefix(revision + '/')}"
        commit = revision if _COMMIT.fullmatch(revision) else COMMIT
        dataset = repository.removeprefix("datasets/")
        if dataset in self.server.gated and not name.endswith("README.md"):
            self.send(403, b"", {"X-Error-Code": "GatedRepo"}, body=body)
            return
        content = self.server.files.get(name)
        if content is None:
            self.send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, body=body)
            return
        if body:
            self.server.sent.append(name)
        etag = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        headers = {"X-Repo-Commit": commit, "ETag": f'"{etag}"'}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        if wanted:
            start, end = int(wanted[1]), int(wanted[2]) + 1
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
            self.send(206, content[start:end], headers, body=body)
        else:
            self.send(200, content, headers, body=body)

    def send(self, status: int, content: bytes, headers: Mapping[str, str], *, body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.server.bytes_sent += len(content)
            self.wfile.write(content)
