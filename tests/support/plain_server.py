"""Any other service on 127.0.0.1: it answers what a function says."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = tuple[int, dict[str, str], str]  # status, headers, body


class PlainServer:
    """Answers GET and POST with what `answer(path)` gives, and counts `requests`."""

    def __init__(self, answer: Callable[[str], Answer]) -> None:
        self.requests: list[str] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                pass

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.do_GET()

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                owner.requests.append(self.path)
                status, headers, body = answer(self.path)
                self.send_response(status)
                for name, value in {"content-length": str(len(body.encode())), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
