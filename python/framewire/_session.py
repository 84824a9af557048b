"""JSON-RPC over a WebSocket, without any I/O.

A `Session` builds messages, handles received messages, and decides what to send again after a connection has broken.
Both clients pass it the bytes that they receive, and send the bytes that it returns. The package websockets implements
the WebSocket protocol.
"""

from __future__ import annotations

import json
import re
import reprlib
import secrets
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.uri import parse_uri

from framewire._calls import UNREADABLE, Call, CleanUp
from framewire.errors import (
    ConnectionFailed,
    ConnectionLost,
    FramewireError,
    InvalidRequest,
    TooLarge,
    from_problem,
    shown,
)

Json = Any

IN_FLIGHT = 512
"""The largest number of sent requests without a reply; others wait. The server accepts 1,024 per connection."""

MOST_KEYS = 50_000
"""The most idempotency keys that a client uses in `KEY_LIFE` seconds. The server remembers 131,072 in total."""

KEY_LIFE = 600.0
"""How many seconds the server remembers an idempotency key."""

KEPT_EVENTS = 16_384
"""The largest number of events of a subscription that wait to be read. If more come, the oldest are dropped."""

MOST_BYTES = 8 << 20
"""The size of the largest message that the server accepts."""

MOST_SENDS = 30
"""A request fails if it was sent this many times, and the connection broke each time before the reply came."""

STOPPING = "the server is stopping"
"""The reason with which a stopping server ends its subscriptions. `STOPPING` in the server has the same text."""

START_IT = "start one with `framewire serve`, or check the address with `framewire doctor`"

MOST_LEVELS = 127
"""How many levels of lists and dictionaries a message to the server can have."""

_MOST_BITS = 1023
"""How many bits a whole number can have. The server reads a large one as a floating-point number, which has a limit."""

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False, allow_nan=False, ensure_ascii=False).encode

# The characters that the value of a header can have.
_HEADER = re.compile(r"[\t -~\x80-\xff]*")


def socket_url(url: str, path: str, emulator: str | None) -> str:
    """The address of a WebSocket of the server at `url`."""
    schemes = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
    wrong = InvalidRequest(
        f"the URL is {url!r}; use one such as 'http://127.0.0.1:5000', and the arguments `emulator` and `token`",
        parameter="url",
    )
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
        (parts.hostname or "").encode("idna")
        parts.path.encode()
    except (TypeError, ValueError):  # not text, a wrong port or host, or an unclosed bracket of an IPv6 address
        raise wrong from None
    if parts.scheme not in schemes or not parts.hostname or parts.query or parts.username or port == 0:
        raise wrong
    try:
        query = "" if emulator is None else f"?emulator={quote(emulator, safe='')}"
    except (TypeError, UnicodeEncodeError):
        raise InvalidRequest(f"emulator is {emulator!r}; use the name of an emulator", parameter="emulator") from None
    return f"{schemes[parts.scheme]}://{parts.netloc}{parts.path.rstrip('/')}{path}{query}"


def authorization(token: str | None) -> dict[str, str]:
    """The headers for a token."""
    if token is None:
        return {}
    value = f"Bearer {token}"
    if not _HEADER.fullmatch(value):
        raise InvalidRequest(
            "the token has characters that a header cannot have, such as a line break; use the text of the token file "
            "without the line break at its end",
            parameter="token",
        )
    return {"Authorization": value}


class Refused(Exception):
    """The server answered the handshake with an error. `final` means that another attempt cannot succeed."""

    def __init__(self, error: FramewireError, final: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.final = final


def refusal(error: Exception, url: str) -> Refused:
    """Converts the error of a failed handshake."""
    if not isinstance(error, InvalidStatus):
        return Refused(ConnectionFailed(f"{url} is not a Framewire server ({error}); {START_IT}"), final=True)
    status = error.response.status_code
    try:
        problem = json.loads(bytes(error.response.body or b""))
        # Raises an exception if this is not a problem document with a text.
        problem["detail"] += ""
    except (ValueError, TypeError, KeyError, RecursionError):
        message = f"{url} answered with status {status}, so it is not a Framewire server; {START_IT}"
        return Refused(ConnectionFailed(message), final=status not in (502, 503, 504))
    return Refused(from_problem(problem), final=status not in (502, 503, 504))


class Pending(ABC):
    """A request that has no reply yet.

    Attributes:
        id: The number of the request.
        key: The idempotency key, or None.
        message: The encoded request.
        repeatable: Whether the request can be sent again: it changes nothing, or it has a key.
        sends: How many times the request was sent.
        sent: When it was sent for the first time.
        lost: For a request with a key: the earliest time at which its reply can have been lost. None if no connection
            broke after the request was sent.
        clean_up: Takes the result, and returns the request that deletes what this request created; or None. That
            request is sent as soon as the result comes, whether or not this request was abandoned.
    """

    __slots__ = ("clean_up", "id", "key", "lost", "message", "method", "params", "repeatable", "sends", "sent")

    def __init__(self, method: str, params: dict[str, Json], changes: bool, clean_up: CleanUp | None = None) -> None:
        self.id = 0
        self.method = method
        self.params = params
        self.repeatable = not changes
        self.key: str | None = None
        self.message = b""
        self.sends = 0
        self.sent = 0.0
        self.lost: float | None = None
        self.clean_up = clean_up

    @abstractmethod
    def settle(self, result: Json, error: FramewireError | None) -> None:
        """Passes the reply to the caller that waits for it."""


class Subscription(ABC):
    """A subscription to events of the server. It continues on new connections until it ends.

    Attributes:
        number: The number that the server gave the subscription on this connection; None until then.
        last: The id of the last event; None before the first. A new connection continues after this event.
        events: Events that wait to be read: their names and data.
        dropped: How many events were dropped because they were not read in time.
        error: Why the subscription has ended, or None.
    """

    def __init__(self, params: dict[str, Json]) -> None:
        self.params = params
        self.number: int | None = None
        self.last: str | None = None
        self.events: deque[tuple[str, Mapping[str, Json]]] = deque()
        self.dropped = 0
        self.error: FramewireError | None = None

    @abstractmethod
    def wake(self) -> None:
        """Wakes the reader, after an event, a subscription number or an error has come."""

    def push(self, id: str, name: str, data: Mapping[str, Json]) -> None:
        """Adds an event."""
        self.last = id
        if len(self.events) == KEPT_EVENTS:
            self.events.popleft()
            self.dropped += 1
        self.events.append((name, data))
        self.wake()

    def fail(self, error: FramewireError) -> None:
        """Ends the subscription."""
        self.error = error
        self.wake()


class _Subscribing(Pending):
    """The request that begins a subscription, or continues it on a new connection."""

    __slots__ = ("session", "subscription")

    def __init__(self, session: Session, subscription: Subscription) -> None:
        after = {} if subscription.last is None else {"after": subscription.last}
        super().__init__("subscribe", {**subscription.params, **after}, changes=False)
        self.session = session
        self.subscription = subscription

    def settle(self, result: Json, error: FramewireError | None) -> None:
        if error is not None:
            self.session.forget(self.subscription)
            self.subscription.fail(error)
        elif self.subscription in self.session.subscriptions:
            self.subscription.number = result["subscription"]
            self.session.numbers[result["subscription"]] = self.subscription
            self.subscription.wake()
        else:
            self.session.notify("unsubscribe", {"subscription": result["subscription"]})


class Session:
    """The requests and subscriptions of one client.

    Attributes:
        subscriptions: The subscriptions that have not ended.
        numbers: The subscriptions that the server has begun on this connection, by their numbers.
        open: Whether the handshake is done.
        lockstep: Whether this connection holds the emulator in lockstep. Lockstep ends when the connection ends.
        heard: The time at which the last data came, or at which the handshake began.
        pinged: When a ping was sent after that, or None.
    """

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url
        self._headers = authorization(token)
        self._uri = parse_uri(url)
        self._protocol: ClientProtocol | None = None
        self._fragments: list[bytes] = []
        self._in_flight: dict[int, Pending] = {}
        self._unsent: deque[Pending] = deque()
        self._last_id = 0
        self._key_prefix = secrets.token_hex(8)
        self._keys_until = 0.0
        self._keys_left = 0
        self.subscriptions: list[Subscription] = []
        self.numbers: dict[int, Subscription] = {}
        self.open = False
        self.lockstep = False
        # Set if lockstep ends with its connection while no request is open. The next request fails with this error.
        self._lockstep_error: FramewireError | None = None
        self.heard = 0.0
        self.pinged: float | None = None

    @property
    def address(self) -> tuple[str, int, bool]:
        """Host, port and whether to use TLS."""
        return self._uri.host, self._uri.port, self._uri.secure

    @property
    def busy(self) -> bool:
        """Whether a request or a subscription needs a connection."""
        return bool(self._in_flight or self._unsent or self.subscriptions)

    @property
    def is_cleaning_up(self) -> bool:
        """Whether an abandoned request has created something that is deleted when the reply comes."""
        return any(isinstance(each, _Abandoned) and each.clean_up is not None for each in self._in_flight.values())

    # Requests.

    def submit(self, pending: Pending) -> None:
        """Sends a request, or keeps it until it can be sent."""
        if (error := self._lockstep_error) is not None and not isinstance(pending, _Undo):
            self._lockstep_error = None
            raise error
        self._last_id += 1
        pending.id = self._last_id
        params = pending.params
        if not pending.repeatable and self._take_key():
            pending.key = f"{self._key_prefix}-{pending.id}"
            pending.repeatable = True
            params = {**params, "idempotency_key": pending.key}
        try:
            pending.message = _request(pending, params)
        except (TypeError, ValueError, RecursionError) as error:
            items = [*params.items(), ("method", pending.method)]
            name, value = next((item for item in items if not _is_json(item)), items[-1])
            if isinstance(error, UnicodeEncodeError):
                why = f"which has the lone surrogate {error.object[error.start]!r}; use text that UTF-8 can encode"
            else:
                why = f"which is not valid JSON for the server ({error}); use numbers, text, lists and dictionaries"
            # The error must not have the surrogate itself, because then it could not be printed.
            name = ascii(name).strip("'")
            raise InvalidRequest(f"{name} is {shown(value, reprlib.repr)}, {why}", parameter=name) from None
        if len(pending.message) > MOST_BYTES:
            raise TooLarge(
                f"the request {pending.method} has {len(pending.message)} bytes; the server accepts {MOST_BYTES} (8 MiB). "
                "Bytes are sent as base64, which is a third longer; send them in parts",
            )
        self._unsent.append(pending)
        self._send_unsent()

    def abandon(self, pending: Pending) -> None:
        """Stops waiting for a request. Its reply will be dropped."""
        if self._in_flight.get(pending.id) is pending:
            # It counts as in flight until its reply comes, but it is not sent again.
            self._in_flight[pending.id] = _Abandoned(pending)
        elif pending in self._unsent:
            self._unsent.remove(pending)

    def undo(self, pending: Pending, call: Call[Any]) -> None:
        """Sends a call that undoes a request, if the server may have performed the request.

        If `pending` begins a recording and its reply has not come, waits for the reply: if the server refused the request,
        the call would end the recording of another client.
        """
        waiting = self._in_flight.get(pending.id)
        if waiting is not None and pending.method == "startRecording":
            waiting.clean_up = lambda _: (call.method, call.params)
        elif pending.sends > 0:
            self.submit(_Undo(call.method, call.params, call.changes))

    def notify(self, method: str, params: dict[str, Json]) -> None:
        """Sends a request without a reply, if there is a connection."""
        if (protocol := self._writable()) is not None:
            protocol.send_text(_encode({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def subscribe(self, subscription: Subscription) -> None:
        """Begins a subscription."""
        # This comes first: if `submit` refuses the request as invalid, no new connection begins the subscription again.
        self.submit(_Subscribing(self, subscription))
        self.subscriptions.append(subscription)

    def unsubscribe(self, subscription: Subscription, reason: str) -> None:
        """Ends a subscription. `reason` is the error of later reads, after the events that have already come."""
        subscription.fail(FramewireError(reason))
        if subscription in self.subscriptions:
            self.forget(subscription)
            if subscription.number is not None:
                self.notify("unsubscribe", {"subscription": subscription.number})

    def forget(self, subscription: Subscription) -> None:
        """Removes a subscription."""
        if subscription in self.subscriptions:
            self.subscriptions.remove(subscription)
        if subscription.number is not None:
            self.numbers.pop(subscription.number, None)

    def _take_key(self) -> bool:
        now = time.monotonic()
        if now >= self._keys_until:
            self._keys_until, self._keys_left = now + KEY_LIFE, MOST_KEYS
        self._keys_left -= 1
        return self._keys_left >= 0

    def _writable(self) -> ClientProtocol | None:
        """The connection, if it accepts messages. Data with the last replies can also contain the end of the connection."""
        return self._protocol if self.open and self._protocol and self._protocol.state is State.OPEN else None

    def _send(self, pending: Pending, protocol: ClientProtocol) -> None:
        self._in_flight[pending.id] = pending
        if pending.sends == 0:
            pending.sent = time.monotonic()
        pending.sends += 1
        protocol.send_text(pending.message)

    def _send_unsent(self) -> None:
        protocol = self._writable()
        while protocol is not None and self._unsent and len(self._in_flight) < IN_FLIGHT:
            self._send(self._unsent.popleft(), protocol)

    # The connection.

    def connect(self) -> None:
        """Begins a handshake on a new connection."""
        self._protocol = ClientProtocol(self._uri, max_size=None)
        request = self._protocol.connect()
        request.headers.update(self._headers)
        self._protocol.send_request(request)
        self._fragments = []
        self.heard = time.monotonic()
        self.pinged = None

    def data_to_send(self) -> list[bytes]:
        """The bytes to write to the connection."""
        return self._protocol.data_to_send() if self._protocol is not None else []

    def received(self, data: bytes) -> None:
        """Handles bytes from the connection. If there are no bytes, the connection has ended.

        Raises:
            Refused: The server did not accept the handshake.
            EOFError: The connection has ended.
        """
        protocol = self._protocol
        assert protocol is not None
        self.heard = time.monotonic()
        self.pinged = None
        if data:
            protocol.receive_data(data)
        else:
            protocol.receive_eof()
        for event in protocol.events_received():
            if isinstance(event, Frame):
                self._frame(event)
            elif isinstance(event, Response) and protocol.handshake_exc is None:
                self._opened()
        error = protocol.handshake_exc
        if not self.open and error is not None and data:
            raise refusal(error, self.url) if isinstance(error, InvalidHandshake) else EOFError(str(error))
        if not data or protocol.state in (State.CLOSING, State.CLOSED):
            raise EOFError(self._why_closed(protocol))

    def _why_closed(self, protocol: ClientProtocol) -> str:
        received = protocol.close_rcvd
        if received is None:
            return str(protocol.parser_exc or "the connection ended without a reason")
        return f"the server closed it: {received.reason or 'no reason'} ({received.code})"

    def _opened(self) -> None:
        self.open = True
        # All subscriptions are begun again below, on this connection.
        self._unsent = deque(each for each in self._unsent if not isinstance(each, _Subscribing))
        if (protocol := self._writable()) is not None:
            for subscription in self.subscriptions:
                self._last_id += 1
                again = _Subscribing(self, subscription)
                again.id = self._last_id
                again.message = _request(again, again.params)
                self._send(again, protocol)
        # Do not repeat requests whose keys the server may have forgotten: it would perform them again.
        since = time.monotonic() - KEY_LIFE
        forgotten = [each for each in self._unsent if each.lost is not None and each.lost <= since]
        for each in forgotten:
            self._unsent.remove(each)
        self._fail(
            forgotten,
            ConnectionLost(
                f"the connection to {self.url} broke before the reply, and there was no new one for {KEY_LIFE / 60:g} "
                "minutes, which is how long the server remembers an idempotency key; the request may have been performed"
            ),
        )
        self._send_unsent()

    def _frame(self, frame: Frame) -> None:
        if frame.opcode not in (Opcode.TEXT, Opcode.CONT):
            return
        self._fragments.append(bytes(frame.data))
        if not frame.fin:
            return
        text = self._fragments[0] if len(self._fragments) == 1 else b"".join(self._fragments)
        self._fragments = []
        try:
            self._message(json.loads(text))
        except UNREADABLE as error:
            why = f"the server sent a message that this client cannot read ({type(error).__name__}: {error})"
            self.give_up(
                ConnectionLost(
                    f"the connection to {self.url} was ended, because {why}; requests without a reply may have been "
                    "performed; use the same version of Framewire in the server and in this program"
                )
            )
            raise EOFError(why) from None

    def _message(self, message: Json) -> None:
        if "id" in message:
            self._reply(message)
        elif message.get("method") == "event":
            event = message["params"]
            subscription = self.numbers.get(event["subscription"])
            ended = event["event"] == "end"
            # A server that stops also closes the connection. The subscription then continues on the next server, so the
            # client ignores this end.
            if subscription is not None and not (ended and event["data"].get("detail") == STOPPING):
                subscription.push(event["id"], event["event"], event["data"])
                if ended:
                    self.forget(subscription)

    def _reply(self, message: Json) -> None:
        error = message.get("error")
        failure = None if error is None else from_problem(error.get("data") or {"detail": error.get("message")})
        if message["id"] is None:
            raise ValueError(f"it is about a request that the server could not read: {failure}")
        result = message["result"] if error is None else None
        pending = self._in_flight.pop(message["id"], None)
        if pending is None:
            return
        if self._unsent:
            self._send_unsent()
        if failure is None:
            if pending.method in ("lockstep", "resume"):
                # This is set before the caller gets the reply. The connection can break directly after the reply.
                self.lockstep = bool(pending.params.get("timeout"))
            pending.settle(result, None)
            if pending.clean_up is not None:
                self.notify(*pending.clean_up(result))
        elif pending.key is not None and _keys_are_full(error):
            # The request was refused, so it was not performed. Send it once more, without a key.
            self._keys_left = 0
            pending.key, pending.repeatable = None, False
            pending.message = _request(pending, pending.params)
            self._unsent.appendleft(pending)
            self._send_unsent()
        else:
            pending.settle(None, failure)

    def lost(self, why: str) -> None:
        """Handles the end of the connection: keeps requests that can be sent again, and fails the others."""
        was_open, self.open, self._protocol = self.open, False, None
        self.numbers.clear()
        for subscription in self.subscriptions:
            subscription.number = None
        sent = [each for each in self._in_flight.values() if not isinstance(each, (_Subscribing, _Abandoned))]
        self._in_flight.clear()
        if self.lockstep and was_open:
            self.lockstep = False
            error = ConnectionLost(
                f"the connection to {self.url} broke ({why}), and lockstep ended with it: the game may have run on; begin "
                "lockstep again, and load a state if your program needs one"
            )
            waiting = [*sent, *self._unsent]
            if all(isinstance(each, _Undo) for each in waiting):
                self._lockstep_error = error
            self._fail(waiting, error)
            self._unsent.clear()
            return
        for each in sent:
            if each.key is not None and each.lost is None:
                each.lost = max(self.heard, each.sent)
        again = [each for each in sent if each.repeatable and each.sends < MOST_SENDS]
        self._unsent.extendleft(reversed(again))
        self._fail(
            [each for each in sent if not each.repeatable],
            ConnectionLost(
                f"the connection to {self.url} broke ({why}) before the reply; the request may have been performed. It had "
                f"no idempotency key, because this client made more than {MOST_KEYS} changes in ten minutes, or because "
                "the server had no room for more keys"
            ),
        )
        self._fail(
            [each for each in sent if each.repeatable and each.sends >= MOST_SENDS],
            ConnectionLost(
                f"the connection to {self.url} broke {MOST_SENDS} times before the reply, most recently because: {why}; "
                "the request may have been performed"
            ),
        )

    def give_up(self, error: FramewireError) -> None:
        """Fails all requests and subscriptions."""
        self._fail([*self._in_flight.values(), *self._unsent], error)
        self._in_flight.clear()
        self._unsent.clear()
        for subscription in self.subscriptions:
            subscription.fail(error)
        self.subscriptions.clear()
        self.numbers.clear()

    def forked(self) -> None:
        """Begins again without a connection, in a process that was forked. Requests and subscriptions fail."""
        self.lockstep = False
        self._lockstep_error = None
        self.give_up(
            ConnectionLost("this process was forked, and the replies and events go to its parent; call the method again")
        )
        self.lost("forked")
        # The server performs requests with the same key only once, so this process must not use the keys of its parent.
        self._key_prefix = secrets.token_hex(8)

    def _fail(self, requests: list[Pending], error: FramewireError) -> None:
        for pending in requests:
            pending.settle(None, error)

    def until_check(self, timeout: float) -> float:
        """The seconds until `check` has something to do; 0 or less if `check` is due now."""
        if self.pinged is not None:
            return self.pinged + timeout / 2 - time.monotonic()
        return self.heard + (timeout / 2 if self.open else timeout) - time.monotonic()

    def check(self, timeout: float) -> float:
        """Sends a ping if nothing came for half of `timeout` seconds; returns the seconds until the next check.

        If the program has not read for a long time, the silence does not mean that the connection is broken. So after
        the handshake, this method always sends a ping first, and then waits for the reply.

        Raises:
            EOFError: Nothing came for half of `timeout` seconds after the ping, or for `timeout` seconds during the
                handshake.
        """
        if self.until_check(timeout) <= 0:
            now = time.monotonic()
            if self.pinged is not None or not self.open:
                raise EOFError(f"the server was silent for {now - self.heard:.1f} s")
            self.pinged = now
            self.ping()
        return self.until_check(timeout)

    def ping(self) -> None:
        """Sends a ping, if there is a connection. The server answers it at once."""
        if (protocol := self._writable()) is not None:
            protocol.send_ping(b"framewire")

    def close(self) -> None:
        """Begins to close the connection."""
        if (protocol := self._writable()) is not None:
            protocol.send_close(1000)


class _Abandoned(Pending):
    """A request that was abandoned. Its reply is dropped."""

    __slots__ = ()

    def __init__(self, of: Pending) -> None:
        # The session looks at the parameters of `lockstep` when the reply comes.
        super().__init__(of.method, of.params if of.method == "lockstep" else {}, changes=False, clean_up=of.clean_up)
        self.id = of.id

    def settle(self, result: Json, error: FramewireError | None) -> None:
        pass


class _Undo(Pending):
    """A request that undoes an abandoned one. Nobody waits for its reply."""

    __slots__ = ()

    def settle(self, result: Json, error: FramewireError | None) -> None:
        pass


def _request(pending: Pending, params: dict[str, Json]) -> bytes:
    """The message of a request.

    Raises:
        ValueError: If the server could not read the message. Its answer would not have the id of the request.
    """
    message = _encode({"jsonrpc": "2.0", "id": pending.id, "method": pending.method, "params": params}).encode()
    # A shorter message cannot have too many levels or too large numbers.
    if len(message) > MOST_LEVELS:
        _check_limits(params, MOST_LEVELS - 1)
    return message


def _check_limits(value: Json, levels: int) -> None:
    """Checks that a value has at most this many levels, and no whole number that the server cannot read."""
    if isinstance(value, (dict, list, tuple)):
        if levels == 0:
            raise ValueError(f"it has more than {MOST_LEVELS} levels of lists and dictionaries")
        for each in value.values() if isinstance(value, dict) else value:
            _check_limits(each, levels - 1)
    elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError(f"it has a whole number of {value.bit_length()} bits")


def _is_json(value: Json) -> bool:
    """Whether a value can be written as JSON."""
    try:
        _encode(value).encode()
        _check_limits(value, MOST_LEVELS - 2)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _keys_are_full(error: Mapping[str, Json]) -> bool:
    """Whether the server refused a request because it has no room for another idempotency key."""
    return error.get("code") == -32012 and "Idempotency-Key" in str((error.get("data") or {}).get("detail"))
