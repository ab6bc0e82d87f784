"""Texts from outside as they may be kept and shown: without the secrets of this process and lone surrogates."""

from __future__ import annotations

import json
import re
from typing import Any

REPLACED = "\ufffd"
"""In place of a lone surrogate, which is no character and cannot be written to a file."""
HIDDEN = "***"
SHORTEST = 8
"""Characters of a secret from which on it is found anywhere; a shorter one, such as EMPTY, may be an ordinary word."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_forms: dict[str, str] = {}
"""What is hidden, and what is shown in its place; the secret itself, and its form in JSON texts."""


def add_secret(secret: str) -> None:
    """Hide a secret from now on in all texts of this process; a short one only behind ``Bearer``."""
    for form in {secret, json.dumps(secret)[1:-1]}:
        _forms[f"Bearer {form}"] = f"Bearer {HIDDEN}"
        if len(secret) >= SHORTEST:
            _forms[form] = HIDDEN


def redact(text: str) -> str:
    """Return a text without the secrets of this process."""
    for form, replacement in _forms.items():
        if form in text:
            text = text.replace(form, replacement)
    return text


def clean_text(text: str) -> str:
    """Return a text without secrets, and with `REPLACED` in place of every lone surrogate."""
    text = redact(text)
    return text if text.isascii() else _SURROGATE.sub(REPLACED, text)


def clean_json(content: bytes) -> Any:
    """Return the value of a JSON text, with `clean_text` applied to every text and key in it; raises `ValueError`."""
    try:
        value = json.loads(content)
        return _clean_value(value) if _may_need_it(content) else value
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _may_need_it(content: bytes) -> bool:
    """Return whether a JSON text can hold a secret or a lone surrogate: quickly, as most hold neither."""
    escapes = (b"\\u", b"\\/", b"\xed", b"\0")  # b"\xed" begins a surrogate in UTF-8, b"\0" is in UTF-16
    return any(escape in content for escape in escapes) or any(form.encode() in content for form in _forms)


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean_value(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(name): _clean_value(item) for name, item in value.items()}
    return value
