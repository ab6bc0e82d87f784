"""A published file on the web: downloaded once into the cache, resumed, checked against its checksum, and unpacked.

Of a zip or tar archive, the members that a spec names, and no other, become files of the cache.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import lzma
import os
import re
import ssl
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from harness import MissingDataError, near_names, show_step
from harness.data import DataRef, ResolvedData, WebFiles
from harness.storage import FileLock, FileNotWrittenError, publish, write_atomically

CHUNK = 1 << 20
LISTING = "members.txt"
_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError),
    *(EOFError, RuntimeError, NotImplementedError),  # cut off; encrypted; packed in a way that is not known
)

MIRROR = "HARNESS_WEB_MIRROR"
LARGEST = 4 * 2**30
"""Bytes of a download, and of what is unpacked from it at once."""
ATTEMPTS = 4
TIMEOUT = 20.0
"""Seconds that a server may be silent."""
PATIENCE = 3600.0
"""Seconds to wait for another process that downloads the same file."""
MEMORY = 60.0
"""Seconds for which a failure is not tried again: that of an archive is met once for every language."""
_BROKEN_OFF = (URLError, http.client.HTTPException, TimeoutError, ConnectionError, ssl.SSLError)


def _unpack(web: WebFiles, archive: Path, folder: Path, largest: int) -> tuple[Path, ...]:
    """Return the files that the members of `web` are in, by pattern and then by name, unpacked if needed.

    A tar archive can only be read from its start, so one pass unpacks what the spec names for other languages too.
    A file is called after its member, percent-encoded: no name of an archive becomes a path. Links, devices, and
    names that leave the archive are never unpacked.

    Raises `MissingDataError` where there is no such member, the archive is broken, or more than `largest` bytes come
    out of it.
    """
    listing = folder / LISTING
    if not listing.is_file() or not all(_file(folder, name).is_file() for name in _named(web, listing)):
        try:
            _pass(archive, folder, (*web.members, *web.further), largest)
        except (*_BROKEN, _TooMuch) as error:
            raise MissingDataError(
                f"{web.url} cannot be unpacked: {str(error).rstrip('.') or type(error).__name__}.",
                hint="Name its unpacked files with --data DIR.",
            ) from error
        except OSError as error:
            raise FileNotWrittenError(folder, error) from error
    return tuple(_file(folder, name) for name in _named(web, listing))


class _TooMuch(Exception):
    """An archive holds more than may be unpacked."""


def _named(web: WebFiles, listing: Path) -> list[str]:
    names = listing.read_text("utf-8").splitlines()
    found: list[str] = []
    for pattern in web.members:
        own = sorted(name for name in names if _matches(name, [pattern]))
        if not own:
            near = near_names(pattern, names)
            raise MissingDataError(
                f"{web.url} has no member {pattern!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else "Use --data DIR.",
            )
        found += own
    return found


def _matches(name: str, patterns: Iterable[str]) -> bool:
    path = PurePosixPath(name)
    return any(len(path.parts) == pattern.count("/") + 1 and path.match(pattern) for pattern in patterns)


def _file(folder: Path, name: str) -> Path:
    return folder / quote(name, safe="")


def _pass(archive: Path, folder: Path, patterns: Iterable[str], largest: int) -> None:
    """Unpack all members that match, and write the names of all members when that is done."""
    folder.mkdir(exist_ok=True)
    names, left, wanted = [], largest, tuple(dict.fromkeys(patterns))
    for name, opened in _members(archive):
        names.append(name)
        if not _matches(name, wanted) or _file(folder, name).is_file():
            continue
        stream = opened()
        assert stream is not None
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            part = Path(scratch) / "part"
            with part.open("wb") as file:
                while chunk := stream.read(CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise _TooMuch(f"more than {largest:,} bytes come out of it")
                    file.write(chunk)
            publish(part, _file(folder, name))
    write_atomically(folder / LISTING, "".join(f"{name}\n" for name in names))


def _members(archive: Path) -> Iterator[tuple[str, Callable[[], IO[bytes] | None]]]:
    """Yield the name of every file in an archive, and what opens it before the next one is asked for."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as pack:
            for info in pack.infolist():
                if not info.is_dir() and _is_safe(info.filename):
                    yield str(PurePosixPath(info.filename)), partial(pack.open, info)
    else:
        with tarfile.open(archive, "r|*") as tape:
            for entry in tape:
                if entry.isreg() and _is_safe(entry.name):
                    yield str(PurePosixPath(entry.name)), partial(tape.extractfile, entry)


def _is_safe(name: str) -> bool:
    path = PurePosixPath(name)
    inside = bool(path.parts) and not path.is_absolute() and ".." not in path.parts
    return inside and name.isprintable() and "\\" not in name


_failures: dict[tuple[str, str | None], tuple[float, MissingDataError]] = {}


class _SameScheme(HTTPRedirectHandler):
    """Follows redirects, but never from https to http or to anything else."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        """Return the request for the new address; raises `HTTPError` where it has another scheme."""
        if urlsplit(newurl).scheme != urlsplit(req.full_url).scheme:
            raise HTTPError(
                newurl, 400, f"does not follow a redirect to another scheme, {newurl}", headers, fp
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch_from_web(ref: DataRef, cache: Path) -> ResolvedData:
    """Return the published files that `ref` names, downloading and unpacking them if needed.

    Raises `MissingDataError`, with the next step, where the address cannot be read, or the file is not the one that
    the checksum is of; `StorageError` where the cache cannot be written.
    """
    web = ref.web
    assert web is not None
    name = PurePosixPath(urlsplit(web.url).path).name
    folder = (
        cache / "web" / f"{hashlib.sha256(web.url.encode()).hexdigest()[:16]}-{quote(name, safe='')[:80]}"
    )
    with _alone(folder):
        file, digests = _downloaded(web, folder)
        unpacked = folder / digests["sha256"][:16]
        paths = _unpack(web, file, unpacked, LARGEST) if web.members else (file,)
    seen = "" if web.checksum else f" (checksum first seen here: sha256 {digests['sha256']})"
    members = f"{', '.join(web.members)} in " if web.members else ""
    return ResolvedData(
        reader=web.reader,
        columns=web.columns,
        language_columns=web.language_columns,
        options=web.options,
        label_map=web.label_map,
        paths=paths,
        origin="web",
        split_used=ref.split,
        revision=f"sha256:{digests['sha256']}",
        pinned=web.checksum is not None,
        describe=f"{members}{web.url}{seen}",
    )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder of a download; raises `StorageError` where it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileNotWrittenError(folder, error) from error
    lock = FileLock(folder / ".lock")
    if not lock.acquire(patience=PATIENCE):
        raise MissingDataError(
            f"{folder} is held by {lock.holder()}, which downloads the same file.", hint="Run it again later."
        )
    try:
        yield
    finally:
        lock.release()


def _downloaded(web: WebFiles, folder: Path) -> tuple[Path, dict[str, str]]:
    """Return the file in the cache, fetched where it is not there as the checksum wants it, and its digests."""
    file, record = folder / "download", folder / "digests"
    if file.is_file() and record.is_file():
        digests = dict(line.split(":") for line in record.read_text("utf-8").split())
        if _fits(web, digests):
            return file, digests
    since, failure = _failures.get((web.url, web.checksum), (-MEMORY, None))
    if failure is not None and time.monotonic() - since < MEMORY:
        raise failure
    try:
        digests = _fetch(web, folder / "part")
    except MissingDataError as error:
        _failures[web.url, web.checksum] = (time.monotonic(), error)
        raise
    record.unlink(missing_ok=True)
    (folder / "part").replace(file)
    write_atomically(record, "".join(f"{name}:{digest}\n" for name, digest in digests.items()))
    return file, digests


def _fits(web: WebFiles, digests: dict[str, str]) -> bool:
    name, _, digest = (web.checksum or "").partition(":")
    return not digest or digests[name] == digest


def _fetch(web: WebFiles, part: Path) -> dict[str, str]:
    """Download to `part`, going on where an earlier attempt broke off, and return the digests."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        raise _unreadable(web, "it is not on this machine, and HF_HUB_OFFLINE forbids to connect")
    reason = ""
    for attempt in range(ATTEMPTS):
        time.sleep(0.2 * attempt)
        try:
            if not _receive(web, part):
                reason = "the connection broke off"
                continue
        except HTTPError as error:
            reason = f"{error.code} {error.reason}"
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                part.unlink(missing_ok=True)
            elif error.code < http.HTTPStatus.INTERNAL_SERVER_ERROR:
                break
            continue
        except _BROKEN_OFF as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
            continue
        except OSError as error:
            raise FileNotWrittenError(part, error) from error
        digests = _digests(part)
        if _fits(web, digests):
            return digests
        part.unlink()
        name = str(web.checksum).partition(":")[0]
        reason = f"its {name} is {digests[name]}, and {web.checksum} was expected"
    raise _unreadable(web, reason)


def _receive(web: WebFiles, part: Path) -> bool:
    """Add to `part` what the server sends; return whether that is all.

    The bytes in it are kept only where the server says that it still has the same file, or a checksum decides.
    """
    tag = part.with_name("tag")
    headers = {"User-Agent": "multilingual-harness", "Accept-Encoding": "identity"}
    request = Request(_address(web), headers=headers)  # noqa: S310  a spec's address is https, a mirror's checked
    start = part.stat().st_size if part.is_file() and (web.checksum or tag.is_file()) else 0
    if start:
        request.add_header("Range", f"bytes={start}-")
        if tag.is_file():
            request.add_header("If-Range", tag.read_text("utf-8"))
    with build_opener(_SameScheme).open(request, timeout=TIMEOUT) as answer:
        going_on = re.match(rf"bytes {start}-\d+/(\d+)$", answer.headers.get("Content-Range", ""))
        if answer.status == http.HTTPStatus.PARTIAL_CONTENT and not going_on:
            part.unlink(missing_ok=True)
            return False
        length = going_on[1] if going_on else answer.headers.get("Content-Length")
        if length is not None and int(length) > LARGEST:
            raise _unreadable(web, f"it has {int(length):,} bytes, more than {LARGEST:,}")
        version = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        tag.unlink(missing_ok=True)
        if version and not version.startswith("W/"):
            tag.write_text(version, "utf-8")
        with part.open("ab" if going_on else "wb") as file:
            while chunk := answer.read(CHUNK):
                if file.tell() + len(chunk) > LARGEST:
                    raise _unreadable(web, f"it has more than {LARGEST:,} bytes")
                file.write(chunk)
                show_step(f"Downloading {web.url}: {file.tell() >> 20:,} MiB")
            return length is None or file.tell() == int(length)


def _address(web: WebFiles) -> str:
    mirror = os.environ.get(MIRROR)
    if not mirror:
        return web.url
    if not mirror.startswith(("http://", "https://")):
        raise _unreadable(web, f"{MIRROR} is {mirror!r}, which is no http or https address")
    return f"{mirror.rstrip('/')}/{web.url.removeprefix('https://')}"


def _digests(path: Path) -> dict[str, str]:
    digests = {"sha256": hashlib.sha256(), "md5": hashlib.md5(usedforsecurity=False)}
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            for digest in digests.values():
                digest.update(chunk)
    return {name: digest.hexdigest() for name, digest in digests.items()}


def _unreadable(web: WebFiles, reason: str) -> MissingDataError:
    return MissingDataError(
        f"{web.url} could not be downloaded: {reason.rstrip('.')}.",
        hint=f"Run it again with a connection, name a mirror with {MIRROR}=URL, or use --data DIR.",
    )
