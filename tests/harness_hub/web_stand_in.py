"""A mirror of the web on loopback, as ``HARNESS_WEB_MIRROR`` names one, with the faults that a network has."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Web(ThreadingHTTPServer):
    """Serves ``https://HOST/PATH`` as ``/HOST/PATH``, whole or from where a range begins."""

    daemon_threads = True

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """Serve files by their address without ``https://``."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = dict(files)
        self.cuts: dict[str, list[int]] = {}
        """Address -> after how many bytes the next answers break off."""
        self.moved: dict[str, str] = {}
        """Address -> where it redirects to."""
        self.asked: list[tuple[str, str | None]] = []
        """Address and range of every request."""
        self.tags = True
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """What ``HARNESS_WEB_MIRROR`` names."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Web

    def log_message(self, format: str, *arguments: Any) -> None:
        """Silent."""

    def do_GET(self) -> None:
        name, asked = self.path.lstrip("/"), self.headers.get("Range")
        self.server.asked.append((name, asked))
        if name in self.server.moved:
            self.send_response(302)
            self.send_header("Location", self.server.moved[name])
            self.end_headers()
            return
        content = self.server.files.get(name)
        if content is None:
            self.send_error(404)
            return
        tag = f'"{hashlib.sha1(content, usedforsecurity=False).hexdigest()}"'
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if self.headers.get("If-Range", tag) != tag:
            start = 0
        if start >= len(content) > 0 and start:
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if self.server.tags:
            self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        cuts = self.server.cuts.get(name)
        self.wfile.write(content[start : start + cuts.pop(0)] if cuts else content[start:])


def serving(monkeypatch: Any, files: Mapping[str, bytes]) -> Iterator[Web]:
    """Yield a mirror that the harness of this process uses."""
    server = Web(files)
    monkeypatch.setenv("HARNESS_WEB_MIRROR", server.url)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield server
    server.shutdown()
    server.server_close()


def zipped(members: Mapping[str, bytes]) -> bytes:
    """Return a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(members: Mapping[str, bytes], mode: str = "w:gz", *special: tarfile.TarInfo) -> bytes:
    """Return a tar archive, by default a compressed one; `special` are links and the like."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for entry in special:
            archive.addfile(entry)
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
