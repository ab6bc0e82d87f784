"""Translators of paid services, against local servers that speak their protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness import UsageError, open_session
from harness.data import TranslatorInfo
from harness.data.translation.services import open_engine
from harness_translation.variants.service import ServiceTranslator, chunks, read_options

Server = tuple[str, list[dict[str, Any]]]


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return what DeepL and Google answer to a request: capital letters."""
    if "contents" in request:
        return {"translations": [{"translatedText": text.upper()} for text in request["contents"]]}
    found = [
        {"text": text.upper(), "detected_source_language": "DE", "billed_characters": 1}
        for text in request["text"]
    ]
    return {"translations": found}


@pytest.fixture
def server() -> Iterator[Server]:
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append({**request, "path": self.path.partition("?")[0]})
            body = json.dumps(_answer(request)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    service = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{service.server_port}", asked
    service.shutdown()
    service.server_close()


def test_deepl(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("deepl")
    url, asked = server
    engine = open_engine(f"deepl:?url={url}", open_session().registry)
    assert engine.supports("de", "en") and not engine.supports("sw", "en")
    monkeypatch.delenv("DEEPL_AUTH_KEY", raising=False)
    with pytest.raises(UsageError, match="key") as error:
        engine.translate(["Haus"], "de", "en")
    assert "DEEPL_AUTH_KEY" in str(error.value.hint)
    monkeypatch.setenv("DEEPL_AUTH_KEY", "k:fx")
    answers = engine.translate([f"Haus {number}" for number in range(120)], "de", "en")
    assert [answer.text for answer in answers] == [f"HAUS {number}" for number in range(120)]
    assert [len(request["text"]) for request in asked] == [50, 50, 20]
    assert {(request["path"], request["source_lang"], request["target_lang"]) for request in asked} == {
        ("/v2/translate", "DE", "EN-US")
    }
    assert not engine.info().deterministic


def test_google_cloud(server: Server) -> None:
    pytest.importorskip("google.cloud.translate_v3")
    url, asked = server
    registry = open_session().registry
    engine = open_engine(f"google-cloud:project?url={url}", registry)
    assert engine.supports("sw", "zh")
    answers = engine.translate(["nyumba & <b>", "paka"], "sw", "zh")
    assert [answer.text for answer in answers] == ["NYUMBA & <B>", "PAKA"]
    [request] = asked
    assert request["path"] == "/v3/projects/project/locations/global:translateText"
    assert (request["sourceLanguageCode"], request["targetLanguageCode"]) == ("sw", "zh-CN")
    assert request["mimeType"] == "text/plain"
    assert request["model"] == "projects/project/locations/global/models/general/nmt"
    other = open_engine("google-cloud:project?model=general/translation-llm", registry)
    assert other.info().fingerprint != engine.info().fingerprint
    with pytest.raises(UsageError, match="project"):
        open_engine("google-cloud", registry)


@given(st.lists(st.text("ab", min_size=1, max_size=12)), st.integers(1, 5), st.integers(1, 20))
def test_requests_are_within_the_limits(segments: list[str], texts: int, characters: int) -> None:
    parts = list(chunks(segments, texts, characters))
    assert [segment for part in parts for segment in part] == segments
    for part in parts:
        assert 0 < len(part) <= texts
        assert len(part) == 1 or sum(map(len, part)) <= characters


def test_a_service_is_connected_at_the_first_segment() -> None:
    connected: list[str] = []

    def connect() -> Callable[..., list[str]]:
        connected.append("once")
        return lambda texts, source, target: [f"{source}>{target} {text}" for text in texts]

    info = TranslatorInfo(id="s", engine="s", engine_version="1", deterministic=False)
    engine = ServiceTranslator(
        info, connect, sources={"en": "EN"}, targets={"zh": "ZH-1"}, texts=2, characters=9
    )
    assert engine.supports("en", "zh") and not engine.supports("zh", "en")
    assert not connected
    answers = engine.translate(["a", "b", "c"], "en", "zh")
    assert [answer.text for answer in answers] == ["EN>ZH-1 a", "EN>ZH-1 b", "EN>ZH-1 c"]
    assert connected == ["once"]
    engine.close()
    engine.close()


def test_options_follow_the_reference() -> None:
    options = {"url": "http://h:1/x", "model": "a/b"}
    assert read_options("s", "p?url=http://h:1/x&model=a/b", ("url", "model")) == ("p", options)
    with pytest.raises(UsageError, match="'modle'"):
        read_options("s", "p?modle=a", ("url", "model"))
