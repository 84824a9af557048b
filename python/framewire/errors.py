"""The exceptions of this package. All of them are subclasses of `FramewireError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class FramewireError(Exception):
    """The base class of all exceptions that this package defines."""


class ConnectionFailed(FramewireError, ConnectionError):
    """There is no server at this address, or it is not a Framewire server."""


class ConnectionLost(FramewireError, ConnectionError):
    """The connection broke, and it was not possible or not safe to send the request again."""


class WaitTimeout(FramewireError, TimeoutError):
    """The condition did not become true in the given number of frames, or no event came in the given time."""


class WatchEnded(FramewireError):
    """The watch or the events have ended, for example because another game was loaded; the message says why."""


class StatesLost(FramewireError):
    """States of a search were lost with the machines that stored them.

    A `GoExplore` search restores them: it replays the branches that lead to them.
    """


class RequestFailed(FramewireError):
    """A request failed. The message says why.

    Attributes:
        status: The HTTP status of the problem.
        detail: What is wrong, and what to do about it.
        parameter: The name of the parameter that is not valid, or None.
        accepts: The values that this parameter accepts, or None.
        op: The number of the operation in its batch, counted from 0, or None.
    """

    status = 500

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        parameter: str | None = None,
        accepts: str | None = None,
        op: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.parameter = parameter
        self.accepts = accepts
        self.op = op
        if status is not None:
            self.status = status


class InvalidRequest(RequestFailed, ValueError):
    """An argument is not valid. Nothing was done, except that earlier operations of a batch may have been performed."""

    status = 400


class NotAllowed(RequestFailed, PermissionError):
    """The server needs a token, or the token does not allow this request."""

    status = 403


class NotFound(RequestFailed, LookupError):
    """Something that the request names, such as a snapshot, does not exist or belongs to another game."""

    status = 404


class Conflict(RequestFailed):
    """The request is not possible now: for example, keys are in use, a name is taken, or a recording is being made."""

    status = 409


class ReplyLost(RequestFailed):
    """The request was performed, but its reply is no longer kept."""

    status = 410


class TooLarge(RequestFailed):
    """The request or its result is too large."""

    status = 413


class InvalidData(RequestFailed, ValueError):
    """The data is damaged or does not fit the game, such as a savestate that was cut off."""

    status = 422


class GameFileError(InvalidRequest):
    """A game file (a TOML file that describes a game) is not valid, or does not fit the game.

    The message names the file, and often the line and column.
    """


class RomError(InvalidData):
    """A file is not a ROM, or not the ROM for which the game file was written."""


class Unsupported(RequestFailed, NotImplementedError):
    """This kind of emulator cannot perform the request. The message says what to do instead."""

    status = 501


class EmulatorUnavailable(RequestFailed):
    """There is no emulator, or it failed."""

    status = 502


class Busy(RequestFailed):
    """The server is stopping, it has too many requests or too much data, or a recording or replay is in the way.

    The message says why.
    """

    status = 503


class EmulatorStalled(RequestFailed, TimeoutError):
    """The emulator does not answer, for example because it is paused."""

    status = 504


def shown(value: object, as_text: Callable[[object], str] = repr) -> str:
    """A value for the text of an error."""
    try:
        return as_text(value)
    except (RecursionError, ValueError):  # too many levels of lists, or a number with too many digits
        return f"a value of type {type(value).__name__} that is too large to be shown"


_BY_STATUS: dict[int, type[RequestFailed]] = {each.status: each for each in RequestFailed.__subclasses__()}
_BY_STATUS[401] = NotAllowed


def from_problem(problem: Mapping[str, Any]) -> RequestFailed:
    """Makes the exception for a problem document (RFC 9457)."""
    status = problem.get("status")
    if not isinstance(status, int):
        status = 500
    detail = problem.get("detail") or problem.get("title") or f"the server answered with status {status}"
    return _BY_STATUS.get(status, RequestFailed)(
        str(detail), status=status, parameter=problem.get("parameter"), accepts=problem.get("accepts"), op=problem.get("op")
    )
