"""Held keys, watches, events and sound of an emulator in this process."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from framewire._streams import BaseStream
from framewire.errors import FramewireError, WaitTimeout, WatchEnded
from framewire.model import AudioChunk, Change, Event, Value

if TYPE_CHECKING:
    from framewire.core import Core


class Held:
    """Held keys, until `release` or the end of `with`.

    `pause` and `lockstep` return a `Held` that holds no keys, and whose `release` does nothing.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def release(self) -> None:
        """Releases the keys."""
        self._end()

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class CoreWatch(BaseStream[Change]):
    """Changes of watched expressions. `for change in watch` runs frames until the next change.

    If other methods run frames, up to 65,536 changes are kept until they are read. After that, the oldest are lost.

    Attributes:
        expressions: The watched expressions.
        values: The value of each expression after the last change that was read.
        missed: How many changes were lost.
    """

    def __init__(self, core: Core, expressions: tuple[str, ...]) -> None:
        self._core = core
        self._native = core._core
        self._id, values = self._native.watch(list(expressions))
        self.expressions = expressions
        self.values: dict[str, Value] = dict(zip(expressions, values, strict=True))
        self.missed = 0
        self._is_closed = False

    def next(self, timeout: float | None = None) -> Change:
        """The next change.

        Args:
            timeout: For how many seconds to run frames. None runs them without a limit.

        Raises:
            FramewireError: The watch was closed.
            WaitTimeout: Nothing changed in this time.
            WatchEnded: The watch has ended, for example because another game was loaded.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        frames = 0
        while True:
            # Another thread can close the watch.
            if self._is_closed:
                raise FramewireError("the watch was closed; call watch() again")
            if self._native is not self._core._core:
                raise WatchEnded("the watch is over: another game was loaded; call watch() again")
            row = self._native.change(self._id, frames)
            if row is not None:
                break
            # A deadline that is not a number has passed, too.
            if deadline is not None and not time.monotonic() < deadline:
                raise WaitTimeout(f"no change of {', '.join(self.expressions)} in {timeout} s")
            # Check the deadline after each second of game time.
            frames = 60
        self._core._report()
        number, frame, tick, old, new, missed = row
        self.missed += missed
        expression = self.expressions[number]
        self.values[expression] = new
        return Change(expression, frame, old, new, tick, bool(missed))

    def close(self) -> None:
        """Ends the watch."""
        self._is_closed = True
        if self._native is self._core._core:
            self._native.unwatch(self._id)


class CoreEvents(BaseStream[Event]):
    """Events of the emulator, such as a reset. `for event in events` runs frames until the next event.

    Up to 65,536 events are kept until they are read. After that, the oldest are lost.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._waiting: deque[Event] = deque(maxlen=65_536)

    def _push(self, event: Event) -> None:
        self._waiting.append(event)

    def next(self, timeout: float | None = None) -> Event:
        """The next event.

        Args:
            timeout: For how many seconds to run frames. None runs them without a limit.

        Raises:
            FramewireError: The events were closed.
            WaitTimeout: Nothing happened in this time.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._waiting:
            # A deadline that is not a number has passed, too.
            if deadline is not None and not time.monotonic() < deadline:
                raise WaitTimeout(f"no event in {timeout} s")
            if self not in self._core._events:
                raise FramewireError("the events were closed; call events() again")
            self._core.advance()
        return self._waiting.popleft()

    def close(self) -> None:
        """Stops receiving events."""
        if self in self._core._events:
            self._core._events.remove(self)


class CoreAudio(BaseStream[AudioChunk]):
    """Sound, one chunk per frame. `for chunk in audio` runs a frame if there is no chunk yet.

    About a minute of sound is kept until it is read. After that, the oldest chunks are lost.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._native = core._core
        self._id = self._native.listen()

    def next(self) -> AudioChunk:
        """The next chunk.

        Raises:
            FramewireError: The sound was closed, or another game was loaded.
        """
        if self._native is not self._core._core:
            raise FramewireError("the sound ended: another game was loaded; call audio() again")
        found = self._native.sound(self._id)
        self._core._report()
        if found is None:
            raise FramewireError("the sound was closed; call audio() again")
        samples, missed = found
        return AudioChunk(samples.reshape(-1, 2), self._native.sample_rate(), missed)

    def close(self) -> None:
        """Ends the sound."""
        if self._native is self._core._core:
            self._native.unlisten(self._id)
