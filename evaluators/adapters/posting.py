"""Send one HTTP request, once, with one deadline for all of it, and read the answer or as much as comes of it.

The standard library's timeouts are for each read: an endpoint that sends a byte a second never
meets them. Here every step gets what is left of the whole. Two things stay outside: looking up a
host's name (the system's resolver has limits of its own), and proxies, which are not used.
"""

import io
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse
from math import inf
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from evaluators.adapters.errors import (
    ConnectionFailedError,
    NotConnectedError,
    NotConnectedInTimeError,
    PrivateAddressError,
    ReplyTooLargeError,
    TimedOutError,
    UnreadableReplyError,
)

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_TUNNELLED = ipaddress.IPv6Network("2002::/16")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a request goes, in the parts of a URL; `is_public` allows no private address."""

    is_secure: bool
    host: str
    port: int
    path: str
    is_public: bool = False


def address(url: str, path: str) -> Address:
    """Take a URL apart; raises ValueError with what it must be, or must not.

    Args:
        url: of a server, http or https.
        path: what comes after it.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an http or https URL")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("must hold no user, no query and no fragment")
    whole = f"{parts.path.rstrip('/')}{path}"
    if not re.fullmatch(r"[!-~]+", whole):
        raise ValueError("must have a path of ASCII characters without spaces")
    is_secure = parts.scheme == "https"
    return Address(is_secure, parts.hostname, port or (443 if is_secure else 80), whole)


class Response(NamedTuple):
    """A whole answer."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _Deadline:
    timeout_s: float
    silence_s: float = inf
    _begin: float = field(default_factory=time.monotonic)

    def left(self) -> float:
        """Seconds that the next step may take; raises TimeoutError when there are none."""
        left = self._begin + self.timeout_s - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self.silence_s)


def post(
    address: Address, body: bytes, headers: Mapping[str, str], *, timeout_s: float, max_bytes: int
) -> Response:
    """Send a POST request once and follow nothing; return the answer, whatever its status.

    Args:
        address: where to.
        body: what to send.
        headers: its headers.
        timeout_s: seconds for all of it.
        max_bytes: the most that is read of the answer's body.

    Raises JudgeCallError.
    """
    connection = _Connection(address, _Deadline(timeout_s))
    try:
        connection.request("POST", address.path, body, dict(headers))
        return _read(connection, max_bytes)
    except TimeoutError as error:
        raise TimedOutError from error
    except OSError as error:
        raise ConnectionFailedError from error
    except HTTPException as error:
        raise UnreadableReplyError from error
    finally:
        connection.hang_up()


@contextmanager
def getting(
    address: Address, headers: Mapping[str, str], *, timeout_s: float, silence_s: float
) -> Iterator[HTTPResponse]:
    """Send a GET request once and follow nothing; give the answer, its body still to be read.

    Args:
        address: where to.
        headers: its headers.
        timeout_s: seconds for all of it, the reading included.
        silence_s: the most seconds without a byte.

    Raises NotConnectedError or TimedOutError without a connection; TimeoutError, OSError and
    HTTPException after that, here and where the body is read.
    """
    connection = _Connection(address, _Deadline(timeout_s, silence_s))
    try:
        connection.request("GET", address.path, headers=dict(headers))
        yield connection.getresponse()
    finally:
        connection.hang_up()


def _read(connection: HTTPConnection, max_bytes: int) -> Response:
    response = connection.getresponse()
    body = response.read(max_bytes + 1)
    if len(body) > max_bytes:
        raise ReplyTooLargeError
    if response.length:  # announced, and never sent
        raise ConnectionFailedError
    return Response(response.status, body)


class _Connection(HTTPConnection):
    """A connection whose every step ends with the deadline."""

    def __init__(self, address: Address, deadline: _Deadline) -> None:
        super().__init__(address.host, address.port)
        self.default_port = 443 if address.is_secure else 80  # the Host header leaves it out
        self._address = address
        self._deadline = deadline
        self._open: socket.socket | None = None

    def connect(self) -> None:
        try:
            self._open = _connected(self._address, self._deadline)
            self._open = self._secured(self._open)
        except TimeoutError as error:
            raise NotConnectedInTimeError from error
        except (OSError, UnicodeError) as error:  # a name that no resolver takes is a UnicodeError
            raise NotConnectedError from error
        self.sock = cast("socket.socket", _TimedSocket(self._open, self._deadline))

    def hang_up(self) -> None:
        self.close()
        if self._open is not None:
            self._open.close()

    def _secured(self, plain: socket.socket) -> socket.socket:
        if not self._address.is_secure:
            return plain
        plain.settimeout(self._deadline.left())
        return _trusted().wrap_socket(plain, server_hostname=self._address.host)


class _TimedSocket:
    """The part of a socket that `http.client` uses."""

    def __init__(self, plain: socket.socket, deadline: _Deadline) -> None:
        self._socket = plain
        self._deadline = deadline

    def sendall(self, data: Any) -> None:
        self._socket.settimeout(self._deadline.left())  # for all of it, says `socket.sendall`
        self._socket.sendall(data)

    def makefile(self, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._socket, self._deadline))

    def close(self) -> None:
        """Leave it open: an answer that ends with its connection is read after this."""


class _TimedReader(io.RawIOBase):
    def __init__(self, plain: socket.socket, deadline: _Deadline) -> None:
        self._socket = plain
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._socket.settimeout(self._deadline.left())
        return self._socket.recv_into(buffer)


def is_public(text: str) -> bool:
    """Tell whether an IP address is one of the public internet; others stand for none of it."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        elif address in _TRANSLATED or address in _TUNNELLED:
            return False  # leads to an IPv4 address that could be any
    return address.is_global and not address.is_multicast


def _connected(address: Address, deadline: _Deadline) -> socket.socket:
    """Try the addresses of a host one after the other.

    What is looked at is what is connected to: a name that is looked up twice can differ.
    """
    problem: OSError = OSError("the host has no address")
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    if address.is_public:
        found = [each for each in found if is_public(str(each[4][0]))]
        if not found:
            raise PrivateAddressError
    for family, kind, protocol, _, place in found:
        plain = socket.socket(family, kind, protocol)
        try:
            plain.settimeout(deadline.left())
            plain.connect(place)
        except OSError as error:
            plain.close()
            problem = error
        else:
            return plain
    raise problem


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()
