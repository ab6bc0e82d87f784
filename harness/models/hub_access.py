"""Whether the Hugging Face Hub can be reached, found out before its client tries for half a minute."""

from __future__ import annotations

TIMEOUT = 3.0
_reached: set[str] = set()
"""Endpoints that answered in this process: later failures are left to the retries of the Hub's client."""


def hub_is_unreachable() -> bool:
    """Return whether no connection to the Hub can be opened; downloads then use only what is on this machine.

    The client repeats a failed connection five times, with 23 s of waiting (``http_backoff`` of huggingface_hub).
    An answer of any status, and a slow one, counts as reachable.
    """
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return True
    if constants.ENDPOINT in _reached:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=TIMEOUT)
    except Exception as error:
        # Of httpx, or of requests below version 1 of the client.
        return any(
            cls.__name__ in {"ConnectError", "ConnectionError"} for cls in type(error).__mro__
        ) and not any("Timeout" in cls.__name__ for cls in type(error).__mro__)
    _reached.add(constants.ENDPOINT)
    return False
