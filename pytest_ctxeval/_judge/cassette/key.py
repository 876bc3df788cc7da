"""Which recorded request a request is."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pytest_ctxeval._judge.cassette.secrets import PLACEHOLDER

# Words of a parameter's name: those that make it secret wherever they stand, and those that do at its end.
_SECRET: Final = frozenset({"password", "passwd", "passphrase", "pwd"})
_SECRET_AT_END: Final = re.compile(
    r"secret|auth|authorization|sig|signature|hmac|credentials?|appid|(api|access|secret)key|(access|auth|session|refresh)token"
)
# A key or a token of these is secret; that of a page or a city is not, and says what is asked for.
_OF_SECRETS: Final = re.compile(
    r"access|account|api|app|application|auth|bearer|client|csrf|functions|goog|id|oauth|personal|private|refresh|secret"
    r"|security|service|session|signing|subscription|user|xsrf"
)
_LONG: Final = 16  # the shortest value that a bare "key" or "token" is taken for a secret with
_FORM: Final = re.compile(r"[\w.%+*~-]+=[^&=\s{}<>\"]*(?:&[\w.%+*~-]+=[^&=\s{}<>\"]*)*", re.ASCII)
_UPLOAD: Final = re.compile(r"--([\w'()+,./:=?-]{8,70})\r?\n")
_PART: Final = re.compile(
    r"(content-disposition: form-data; name=\"([^\"]*)\"(?:\r?\n[^\r\n]+)*\r?\n\r?\n)(.*?)(?=\r?\n--)",
    re.IGNORECASE | re.DOTALL,
)
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]+")  # of accessToken, access_token, user[password]


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
        sorted(_open_query(parts.query), key=lambda parameter: parameter[0]),  # A then B is not B then A
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
        return body if len(kept) == len(_parameters(text)) else _query(kept)
    opening = _UPLOAD.match(text)
    if opening is None or not text.rstrip().endswith(f"--{opening[1]}--"):
        return body
    text = _PART.sub(lambda part: part[1] + ("" if _is_secret(part[2], part[3]) else part[3]), text)
    text = text.replace(f"--{opening[1]}", "--boundary")
    return text if isinstance(body, str) else text.encode("latin-1")


def without_secrets(uri: str) -> str:
    """Drop the user's name and password and the secret query parameters of a URI."""
    parts = urlsplit(uri)
    host = parts.netloc.rpartition("@")[2]
    kept = _open_query(parts.query)
    query = parts.query if len(kept) == len(_parameters(parts.query)) else _query(kept)
    return urlunsplit((parts.scheme, host, parts.path, query, ""))


def _open_query(query: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in _parameters(query) if not _is_secret(name, value)]


def _parameters(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True, errors="surrogateescape")  # what is no UTF-8 differs still


def _query(parameters: list[tuple[str, str]]) -> str:
    return urlencode(parameters, errors="surrogateescape")


def _is_secret(name: str, value: str) -> bool:
    """Whether a parameter opens a door, rather than to say what is asked for: `api_key` does, `page_token` does not."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return False
    if not _SECRET.isdisjoint(words) or _SECRET_AT_END.fullmatch(words[-1]):
        return True
    if words[-1] not in ("key", "keys", "token", "tokens"):
        return False
    return bool(_OF_SECRETS.fullmatch(words[-2])) if len(words) > 1 else _may_be_secret(value)


def _may_be_secret(value: str) -> bool:
    has_both = any(each.isdigit() for each in value) and any(each.isalpha() for each in value)
    return value == PLACEHOLDER or (len(value) >= _LONG and has_both and " " not in value)


def _number(text: str) -> Any:
    """Read 0.0 as 0, which another version of a client may send for the same setting."""
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
