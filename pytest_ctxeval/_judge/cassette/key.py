"""Which recorded request a request is."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

_SECRET_PARAMETER: Final = re.compile(
    r"(^|[-_.])(key|apikey|token|secret|password|passwd|auth|authorization|sig|signature|credential)s?$",
    re.IGNORECASE,
)
_FORM: Final = re.compile(r"[\w.%+*~-]+=[^&=\s{}<>\"]*(?:&[\w.%+*~-]+=[^&=\s{}<>\"]*)*", re.ASCII)
_UPLOAD: Final = re.compile(r"--([\w'()+,./:=?-]{8,70})\r?\n")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # of accessToken


def request_key(method: str, uri: str, body: str | bytes | None, sample: int) -> str:
    """Give the identity of a request: sha256 of what decides its answer, as hex.

    That is the method, the host, the path, the query without secrets, the body (as canonical JSON where it is JSON)
    and the number of the sample. Headers never count: they hold keys and versions of the client.
    """
    parts = urlsplit(uri)
    identity = (
        method.upper(),
        parts.hostname or "",
        parts.path or "/",
        sorted(_open_query(parts.query)),
        canonical(body),
        sample,
    )
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def origin_of(uri: str) -> str:
    """Give the scheme, host and port of a URI, as "https://api.example.com:443"."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.hostname or ''}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def canonical(body: str | bytes | None) -> str:
    """Give JSON with sorted keys and no spaces, and anything else as it is, but for what `steady` takes out."""
    if not body:
        return ""
    try:
        return json.dumps(json.loads(body, parse_float=_number), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        body = steady(body)
        return body if isinstance(body, str) else body.decode("utf-8", "backslashreplace")


def steady(body: str | bytes) -> str | bytes:
    """Take the secrets out of a form, and give the parts of an upload a boundary that is the same each time."""
    text = body if isinstance(body, str) else body.decode("latin-1")
    if _FORM.fullmatch(text):
        kept = _open_query(text)
        return body if len(kept) == len(parse_qsl(text, keep_blank_values=True)) else urlencode(kept)
    opening = _UPLOAD.match(text)
    if opening is None or not text.rstrip().endswith(f"--{opening[1]}--"):
        return body
    text = text.replace(f"--{opening[1]}", "--boundary")
    return text if isinstance(body, str) else text.encode("latin-1")


def without_secrets(uri: str) -> str:
    """Drop the user's name and password and the secret query parameters of a URI."""
    parts = urlsplit(uri)
    host = parts.netloc.rpartition("@")[2]
    kept = _open_query(parts.query)
    query = parts.query if len(kept) == len(parse_qsl(parts.query, keep_blank_values=True)) else urlencode(kept)
    return urlunsplit((parts.scheme, host, parts.path, query, ""))


def _open_query(query: str) -> list[tuple[str, str]]:
    given = parse_qsl(query, keep_blank_values=True)
    return [(name, value) for name, value in given if not _SECRET_PARAMETER.search(_HUMP.sub("_", name))]


def _number(text: str) -> Any:
    """Read 0.0 as 0, which another version of a client may send for the same setting."""
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
