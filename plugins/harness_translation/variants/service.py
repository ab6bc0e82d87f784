"""Shared code of translation services: requests within limits, and an identity without their model's version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl

from harness import UsageError
from harness.data import Translation, TranslatorInfo

Send = Callable[[Sequence[str], str, str], Sequence[str]]
"""Translates the texts of one request between two of the service's own codes."""


class ServiceTranslator:
    """Sends segments to a service in requests of at most so many texts and characters.

    The service is connected at the first segment, so that a dry run needs no key. Its models change without notice:
    `deterministic` is False, and the store keeps the first answer.

    Args:
        info: What identifies it.
        connect: Returns what sends a request; raises `UsageError` without a key.
        sources: Language -> the service's code of a source; languages without one are not supported.
        targets: The same of targets.
        texts: Texts per request.
        characters: Characters per request; one longer text is a request of its own.
    """

    def __init__(
        self,
        info: TranslatorInfo,
        connect: Callable[[], Send],
        *,
        sources: Mapping[str, str],
        targets: Mapping[str, str],
        texts: int,
        characters: int,
    ) -> None:
        self._info = info
        self._connect = connect
        self._sources, self._targets = sources, targets
        self._texts, self._characters = texts, characters
        self._send: Send | None = None

    def info(self) -> TranslatorInfo:
        """Return the service and its settings."""
        return self._info

    def supports(self, source: str, target: str) -> bool:
        """Return whether the service has both languages."""
        return source in self._sources and target in self._targets

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return one translation per segment; errors of the service's package pass through."""
        if self._send is None:
            self._send = self._connect()
        codes = self._sources[source], self._targets[target]
        return [
            Translation(text=text)
            for chunk in chunks(segments, self._texts, self._characters)
            for text in self._send(chunk, *codes)
        ]

    def close(self) -> None:
        """Forget the connection."""
        self._send = None


def chunks(segments: Sequence[str], texts: int, characters: int) -> Iterator[list[str]]:
    """Yield the segments in order, in lists within both limits; a longer segment is alone."""
    chunk: list[str] = []
    size = 0
    for segment in segments:
        if chunk and (len(chunk) == texts or size + len(segment) > characters):
            yield chunk
            chunk, size = [], 0
        chunk.append(segment)
        size += len(segment)
    if chunk:
        yield chunk


def read_options(translator: str, ref: str, known: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the reference before ``?``, and the options after it; raises `UsageError` for unknown ones."""
    name, _, query = ref.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    for option in options.keys() - set(known):
        raise UsageError(
            f"The translator {translator!r} has no option {option!r}; it has: {', '.join(known)}."
        )
    return name, options
