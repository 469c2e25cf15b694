"""One HTTP exchange over a connection of its own, within a time for the whole of it."""

from __future__ import annotations

import http.client
import io
import re
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any, TypeAlias, Union, cast
from urllib.parse import urlsplit

from .wire import Reply, Request

Token: TypeAlias = Union[str, Callable[[], str], None]

_ANSWER_BYTES_MAX = 64 * 1024 * 1024
_AGENT = "sagad-client-python"


class _Timed(io.RawIOBase):
    """Reads from a socket until an instant: a server that drips its answer does not hold us up."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self._sock = sock
        self._end = end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(max(self._end - time.monotonic(), 0.001))
        return self._sock.recv_into(buffer)


class _Source:
    """What http.client reads an answer from."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self._file = io.BufferedReader(_Timed(sock, end))

    def makefile(self, _: str) -> io.BufferedReader:
        return self._file


class Exchange:
    """One exchange, which another thread may cut."""

    def __init__(self) -> None:
        self._sock: socket.socket | None = None
        self._is_cut = False

    def begin(self, sock: socket.socket) -> None:
        self._sock = sock
        if self._is_cut:
            raise ConnectionAbortedError("nobody waits for the answer any more")

    def cut(self) -> None:
        self._is_cut = True
        if self._sock is not None:
            try:
                self._sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended


class Transport:
    """Where the server is, and how it knows us."""

    def __init__(self, url: str, token: Token, tls: ssl.SSLContext | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"url: {url!r} is not like https://sagad.example:8077")
        if parts.username is not None:
            raise ValueError("url: it has a user; give `token`")
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._base = parts.path.rstrip("/")
        self._token = token
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        self.server = f"{parts.scheme}://{self._host}:{self._port}{self._base}"

    def send(self, request: Request[Any], limit_s: float, exchange: Exchange | None = None) -> Reply:
        """Raises whatever keeps the answer away. A redirection is an answer as any: the token is for this server."""
        end = time.monotonic() + limit_s
        headers = {"user-agent": _AGENT.encode(), "accept": b"application/json"}
        headers.update({name: value.encode() for name, value in request.headers.items() if value is not None})
        token = self._token() if callable(self._token) else self._token
        if token is not None:
            headers["authorization"] = f"Bearer {token.strip()}".encode()
        if request.body is not None:
            headers["content-type"] = b"application/json"
        connection: http.client.HTTPConnection
        if self._tls:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=limit_s, context=self._tls)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=limit_s)
        try:
            connection.connect()
            sock: socket.socket = connection.sock
            if exchange:
                exchange.begin(sock)
            sock.settimeout(max(end - time.monotonic(), 0.001))
            target = self._base + request.target
            connection.request(request.method, target, body=request.body, headers=cast(Any, headers))
            answer = http.client.HTTPResponse(cast(Any, _Source(sock, end)), method=request.method)
            answer.begin()
            body = answer.read(_ANSWER_BYTES_MAX + 1)
            if len(body) > _ANSWER_BYTES_MAX:
                raise ValueError(f"the answer has more than {_ANSWER_BYTES_MAX} bytes")
            # Read to its end: one that is cut off says so only then.
            if answer.length:
                raise http.client.IncompleteRead(body, answer.length)
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)
        finally:
            connection.close()


_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACESTATE = re.compile(r"[\x20-\x7e]{1,512}")


def trace_headers(traceparent: str, tracestate: str | None) -> dict[str, str]:
    """Returns the headers of a trace that deserves the name."""
    if not _TRACEPARENT.fullmatch(traceparent):
        return {}
    if tracestate is None or not _TRACESTATE.fullmatch(tracestate):
        return {"traceparent": traceparent}
    return {"traceparent": traceparent, "tracestate": tracestate}
