"""Files of the web and members of archives there, from a mirror on loopback; no real address is read."""

from __future__ import annotations

import hashlib
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from harness.data.resolve import DataRef, ResolvedData, WebFiles
from harness.errors import MissingDataError, StorageError
from harness_hub import web
from tests.harness_hub.web_stand_in import Web, serving, tarred, zipped

PLACE = "example.org/v1/data"
CONTENT = bytes(range(256)) * 40
RELEASE = {
    "release/UD_German-GSD/de_gsd-ud-test.conllu": b"gsd",
    "release/UD_German-HDT/de_hdt-ud-test.conllu": b"hdt",
    "release/UD_German-LIT/de_lit-ud-test.conllu": b"lit",
    "release/UD_Afrikaans-AfriBooms/af_afribooms-ud-test.conllu": b"af",
    "release/UD_Afrikaans-AfriBooms/af_afribooms-ud-train.conllu": b"af train",
    "de_gsd-ud-test.conllu": b"not of the release",
}
Fetch = Callable[..., ResolvedData]


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(web, "_failures", {})
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    yield from serving(monkeypatch, {PLACE: CONTENT})


@pytest.fixture
def fetch(mirror: Web, tmp_path: Path) -> Fetch:
    def get(checksum: str | None = None, cache: Path = tmp_path, **fields: object) -> ResolvedData:
        given = {"url": f"https://{PLACE}", "reader": "jsonl", "checksum": checksum, **fields}
        ref = DataRef(owner="task", language="de", split="test", web=WebFiles(**given))  # type: ignore[arg-type]
        return web.fetch_from_web(ref, cache)

    return get


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def md5(content: bytes) -> str:
    return f"md5:{hashlib.md5(content, usedforsecurity=False).hexdigest()}"


def texts(found: ResolvedData) -> list[bytes]:
    return [path.read_bytes() for path in found.paths]


def files_below(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("checksum", [None, sha256(CONTENT), md5(CONTENT)], ids=["none", "sha256", "md5"])
def test_a_file_is_fetched_once(fetch: Fetch, mirror: Web, checksum: str | None) -> None:
    first, second = fetch(checksum), fetch(checksum)
    assert texts(first) == texts(second) == [CONTENT]
    assert mirror.asked == [(PLACE, None)]
    assert (first.origin, first.revision, first.pinned) == ("web", sha256(CONTENT), checksum is not None)
    seen = hashlib.sha256(CONTENT).hexdigest()
    assert (seen in first.describe) == (checksum is None), "a first checksum must be said"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(min_value=0, max_value=4000), max_size=web.ATTEMPTS - 1))
def test_no_byte_is_sent_twice(fetch: Fetch, mirror: Web, tmp_path: Path, cuts: list[int]) -> None:
    """Whatever answers break off, the next one begins where the file ends."""
    mirror.cuts[PLACE], mirror.asked[:] = list(cuts), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(web, "_failures", {})
        cache = tmp_path / hashlib.sha256(repr(cuts).encode()).hexdigest()
        assert texts(fetch(sha256(CONTENT), cache)) == [CONTENT]
    starts = [0 if asked is None else int(asked[6:-1]) for _, asked in mirror.asked]
    assert starts == [sum(cuts[:number]) for number in range(len(cuts) + 1)]


def test_a_later_command_goes_on(fetch: Fetch, mirror: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror.cuts[PLACE] = [100] * web.ATTEMPTS
    with pytest.raises(MissingDataError, match="broke off"):
        fetch()
    monkeypatch.setattr(web, "_failures", {})
    assert texts(fetch()) == [CONTENT]
    assert mirror.asked[-1] == (PLACE, f"bytes={100 * web.ATTEMPTS}-")


@pytest.mark.parametrize("tags", [True, False])
def test_two_versions_are_never_mixed(
    fetch: Fetch, mirror: Web, monkeypatch: pytest.MonkeyPatch, tags: bool
) -> None:
    """The file changes between two attempts, and only a checksum or a tag shows it."""
    mirror.cuts[PLACE], mirror.tags = [100] * web.ATTEMPTS, tags
    with pytest.raises(MissingDataError):
        fetch()
    monkeypatch.setattr(web, "_failures", {})
    mirror.files[PLACE] = newer = b"n" * len(CONTENT)
    assert texts(fetch()) == [newer]
    assert texts(fetch(sha256(newer))) == [newer]
    mirror.files[PLACE] = newest = b"newest"
    assert texts(fetch(sha256(newest))) == [newest], "a kept file is no answer to another checksum"


@pytest.mark.parametrize("start", [0, 100, len(CONTENT), len(CONTENT) + 7])
def test_a_wrong_start_is_thrown_away(fetch: Fetch, mirror: Web, tmp_path: Path, start: int) -> None:
    """Bytes of another file are in the cache; the checksum shows it, and the download begins again."""
    mirror.cuts[PLACE] = [0] * web.ATTEMPTS
    with pytest.raises(MissingDataError):
        fetch(sha256(CONTENT))
    [folder] = (tmp_path / "web").iterdir()
    (folder / "part").write_bytes(b"x" * start)
    web._failures.clear()
    mirror.tags = False
    (folder / "tag").unlink(missing_ok=True)
    assert texts(fetch(sha256(CONTENT))) == [CONTENT]


@pytest.mark.parametrize("checksum", [sha256(b"other"), md5(b"other")])
def test_another_file_is_rejected(fetch: Fetch, mirror: Web, tmp_path: Path, checksum: str) -> None:
    with pytest.raises(MissingDataError) as caught:
        fetch(checksum)
    assert checksum in str(caught.value)
    assert checksum.partition(":")[0] in str(caught.value)
    assert not any("download" in name or "part" in name for name in files_below(tmp_path))
    asked = len(mirror.asked)
    with pytest.raises(MissingDataError):
        fetch(checksum)
    assert len(mirror.asked) == asked, "the failure of an archive must not be met once for every language"


@pytest.mark.parametrize(
    "target",
    ["https://127.0.0.1:9/data", "file:///etc/hostname", "ftp://127.0.0.1/data", "data:,x", "gopher://x/"],
)
def test_a_redirect_keeps_the_scheme(fetch: Fetch, mirror: Web, target: str) -> None:
    mirror.moved[PLACE] = target
    with pytest.raises(MissingDataError):
        fetch()
    assert [name for name, _ in mirror.asked] == [PLACE]


def test_redirects_keep_https(fetch: Fetch, mirror: Web) -> None:
    """The mirror of the tests speaks http; the rule is that of the handler for every pair of schemes."""
    mirror.moved["example.org/old"] = f"{mirror.url}/{PLACE}"
    assert texts(fetch(url="https://example.org/old")) == [CONTENT]
    request = Request("https://example.org/a")
    handler = web._SameScheme()
    with pytest.raises(HTTPError, match=r"http://example\.org/b"):
        handler.redirect_request(request, None, 302, "", {}, "http://example.org/b")  # type: ignore[arg-type]
    followed = handler.redirect_request(request, None, 302, "", {}, "https://x.org/b")  # type: ignore[arg-type]
    assert followed is not None
    assert followed.full_url == "https://x.org/b"


@pytest.mark.parametrize("name", ["nowhere", "v1/../data"])
def test_what_is_not_there_says_so(fetch: Fetch, name: str) -> None:
    with pytest.raises(MissingDataError) as caught:
        fetch(url=f"https://example.org/{name}")
    assert "404" in str(caught.value)
    assert web.MIRROR in str(caught.value.hint)


def test_without_a_connection(fetch: Fetch, mirror: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = fetch()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert texts(fetch()) == texts(kept)
    with pytest.raises(MissingDataError, match="HF_HUB_OFFLINE"):
        fetch(url="https://example.org/other")
    assert len(mirror.asked) == 1


@pytest.mark.parametrize("mirror_url", ["http://127.0.0.1:9", "file:///srv", "ftp://x", "srv"])
def test_a_mirror_that_cannot_be_read(fetch: Fetch, monkeypatch: pytest.MonkeyPatch, mirror_url: str) -> None:
    monkeypatch.setenv(web.MIRROR, mirror_url)
    with pytest.raises(MissingDataError):
        fetch()


def test_sizes_are_bounded(fetch: Fetch, mirror: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "LARGEST", len(CONTENT) - 1)
    with pytest.raises(MissingDataError, match="bytes"):
        fetch()
    monkeypatch.setattr(web, "LARGEST", 50_000)
    monkeypatch.setattr(web, "CHUNK", 20_000)
    mirror.files[PLACE] = bomb = zipped({"a": b"0" * 60_000})
    assert len(bomb) < 1000
    with pytest.raises(MissingDataError, match="50,000"):
        fetch(sha256(bomb), members=("a",))


# Archives ---------------------------------------------------------------------------------------------


PACKED: Mapping[str, Callable[[Mapping[str, bytes]], bytes]] = {
    "zip": zipped,
    "tar.gz": tarred,
    "tar.xz": lambda members: tarred(members, "w:xz"),
    "tar": lambda members: tarred(members, "w"),
}


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED.keys())
def test_members_are_those_that_the_spec_names(
    fetch: Fetch, mirror: Web, tmp_path: Path, pack: Callable[[Mapping[str, bytes]], bytes]
) -> None:
    mirror.files[PLACE] = packed = pack(RELEASE)
    german = "release/*/de_[!l]*-ud-test.conllu"
    african = "release/*/af_*-ud-test.conllu"
    found = fetch(sha256(packed), members=(german,), further=(african,))
    assert texts(found) == [b"gsd", b"hdt"]
    assert sum("conllu" in name for name in files_below(tmp_path)) == 3, "only named members are unpacked"
    [file] = (path for path in (tmp_path / "web").rglob("download"))
    file.unlink()
    file.touch()  # What one pass unpacked needs no second one.
    assert texts(fetch(sha256(packed), members=(african,))) == [b"af"]
    assert len(mirror.asked) == 1


def test_a_member_that_was_not_asked_for_before(fetch: Fetch, mirror: Web) -> None:
    mirror.files[PLACE] = tarred(RELEASE)
    fetch(members=("release/*/de_gsd-ud-test.conllu",))
    assert texts(fetch(members=("release/*/*_afribooms-ud-train.conllu",))) == [b"af train"]
    order = ("release/*/de_hdt-ud-test.conllu", "release/*/de_gsd-ud-test.conllu")
    assert texts(fetch(members=order)) == [b"hdt", b"gsd"]
    with pytest.raises(MissingDataError, match="zz_"):
        fetch(members=("release/*/zz_*",))


def link(name: str, kind: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, "/etc/hostname"
    return entry


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a/../x", "a\\..\\x", "x\ny", "a\x00b"])
@pytest.mark.parametrize("pack", [zipped, tarred], ids=["zip", "tar"])
def test_names_never_become_paths(
    fetch: Fetch,
    mirror: Web,
    tmp_path: Path,
    name: str,
    pack: Callable[[Mapping[str, bytes]], bytes],
) -> None:
    mirror.files[PLACE] = pack({name: b"evil", "a/b/good": b"good"})
    assert texts(fetch(members=("*/*/good",))) == [b"good"]
    for pattern in (name, "*", "*/*", "*/*/*", "*/*/*/*"):
        try:
            found = fetch(members=(pattern,))
        except MissingDataError:
            continue
        assert all(path.is_relative_to(tmp_path / "web") for path in found.paths)
        if ".." in name or name.startswith("/"):
            assert b"evil" not in texts(found)
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and "web" not in path.parts]
    assert outside == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_no_members(fetch: Fetch, mirror: Web, kind: bytes) -> None:
    mirror.files[PLACE] = tarred({"good": b"good"}, "w:gz", link("evil", kind))
    assert texts(fetch(members=("*",))) == [b"good"]


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED.keys())
@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_a_broken_archive_is_missing_data(
    fetch: Fetch, mirror: Web, share: float, pack: Callable[[Mapping[str, bytes]], bytes]
) -> None:
    whole = pack({"a": hashlib.shake_256(b"").digest(50_000), "b": b"b"})
    mirror.files[PLACE] = whole[: int(len(whole) * share)] or b"no archive"
    with pytest.raises(MissingDataError):
        fetch(members=("b",))


def test_a_cache_that_cannot_be_written(fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "web").write_text("a file where the folder should be")
    with pytest.raises(StorageError):
        fetch()


@given(parts=st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), min_size=1, max_size=4))
def test_a_safe_name_is_one_file_of_the_folder(parts: list[str]) -> None:
    name = "/".join(parts)
    if web._is_safe(name):
        file = web._file(Path("/cache"), name)
        assert file.parent == Path("/cache")
        assert file.name not in {"", ".", ".."}
