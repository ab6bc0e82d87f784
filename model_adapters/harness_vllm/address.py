"""The address of an OpenAI-compatible server, and its key."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from harness import UsageError
from harness.storage.clean_text import add_secret

__all__ = ["Address", "is_url", "read_key"]

LOOPBACK = ("127.", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """``http://host:port/v1``, in parts."""

    secure: bool
    host: str
    port: int
    base: str
    """Path in front of ``/completions``, without a slash at its end: ``/v1``."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """Return the parts of a URL; raises `UsageError` for one that no server can have, or that holds a key."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise UsageError(f"The address {_without_user(url)!r} is no URL: {error}.") from error
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise UsageError(
                f"The address {_without_user(url.split('?', maxsplit=1)[0])!r} holds more than host, port and path.",
                hint="Put a key into an environment variable and name it with -o key_env=NAME.",
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"The address {url!r} is not of the form http://HOST:PORT/v1.")
        secure = parts.scheme == "https"
        default = 443 if secure else 80
        return cls(secure=secure, host=parts.hostname, port=port or default, base=parts.path.rstrip("/"))

    @property
    def root(self) -> str:
        """Path of the routes next to ``/v1``: ``/tokenize``, ``/version``."""
        return self.base.removesuffix("/v1")

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this machine."""
        return self.host.startswith(LOOPBACK)

    def url(self, path: str) -> str:
        """Return the whole URL of a path on the server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{path}"


def is_url(ref: str) -> bool:
    """Return whether a model is named by the address of its server."""
    return ref.startswith(("http://", "https://"))


def read_key(name: str) -> str | None:
    """Return the key that an environment variable holds, None where it is unset or empty; it is never shown."""
    key = os.environ.get(name, "").strip()
    if any(not 32 < ord(character) < 127 for character in key):
        raise UsageError(f"The environment variable {name!r} holds characters that keys cannot have.")
    if key:
        add_secret(key)
    return key or None


def _without_user(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"
