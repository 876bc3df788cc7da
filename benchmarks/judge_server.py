"""A judge on 127.0.0.1 for the benchmarks: speaks as OpenAI's chat API does, takes the same time for each call, counts.

An answer under test that holds `[case 17]` gets the score that `scores` has for 17, so that who asked can be checked.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

CASE = re.compile(r"\[case (\d+)\]")


class Call(NamedTuple):
    """The moments at which a request came and its answer went, and the case that it named, if it did."""

    came: float
    went: float
    case: int | None


class JudgeServer(ThreadingHTTPServer):
    """Gives each case its score, out of 10 below the path `/of-ten`, else out of 1; 0.9 where no case is named."""

    request_queue_size = 256
    daemon_threads = True

    def __init__(self, latency_s: float, scores: Sequence[float] = ()) -> None:
        self.latency_s, self.scores, self.lock = latency_s, scores, threading.Lock()
        self.calls: list[Call] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def url_of_ten(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/of-ten/v1"

    def reply(self, asked: str, path: str) -> tuple[int | None, str]:
        """Give the case that was asked about, and what is said of it."""
        found = CASE.search(asked)
        case = int(found[1]) if found else None
        score = 0.9 if case is None else self.scores[case]
        if path.startswith("/of-ten/"):
            return case, json.dumps({"reason": "as the context says", "score": round(score * 10, 6)})
        return case, json.dumps({"insight": "as the context says", "score": score})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: JudgeServer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        came = time.monotonic()
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        case, said = self.server.reply(asked, self.path)
        time.sleep(self.server.latency_s)
        with self.server.lock:
            self.server.calls.append(Call(came, time.monotonic(), case))
        body = json.dumps(completion(said)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def completion(said: str) -> dict[str, object]:
    return {
        "id": "one",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30},
    }


@contextmanager
def serving(latency_s: float, scores: Sequence[float] = ()) -> Iterator[JudgeServer]:
    """Let a judge answer while the block runs."""
    server = JudgeServer(latency_s, scores)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
