"""A picture of the emulator's screen."""

from __future__ import annotations

import io
import os
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from framewire.errors import FramewireError


class Screen:
    """A picture. It can be used as a NumPy array and saved as a PNG file, and notebooks display it.

    `numpy.asarray(screen)` and `screen.array` return an array of height x width x 3 bytes: red, green and blue, with the
    top row first.

    Attributes:
        frame: The frame in which the picture was drawn, or None if the emulator did not report it.
    """

    def __init__(self, array: npt.NDArray[np.uint8], frame: int | None = None, *, png: bytes | None = None) -> None:
        self._array: npt.NDArray[np.uint8] | None = array
        self._png = png
        self.frame = frame

    @classmethod
    def from_rgb(cls, data: bytes, width: int, height: int, frame: int | None = None) -> Screen:
        """Makes a picture from raw pixels, three bytes each."""
        return cls(np.frombuffer(data, np.uint8).reshape(height, width, 3), frame)

    @classmethod
    def from_png(cls, data: bytes, frame: int | None = None) -> Screen:
        """Makes a picture from a PNG file. Pillow decodes it when its pixels are needed."""
        screen = cls.__new__(cls)
        screen._array, screen._png, screen.frame = None, data, frame
        return screen

    @property
    def array(self) -> npt.NDArray[np.uint8]:
        """Height x width x 3 bytes. Copy it before you change it."""
        if self._array is None:
            assert self._png is not None
            try:
                from PIL import Image
            except ImportError as error:
                raise FramewireError(
                    "decoding this PNG file needs Pillow, which is not installed: pip install 'framewire[client]'; "
                    "`.png()` works without it"
                ) from error
            with Image.open(io.BytesIO(self._png)) as image:
                self._array = np.asarray(image.convert("RGB"))
        return self._array

    @property
    def width(self) -> int:
        """The width in pixels."""
        return int(self.array.shape[1])

    @property
    def height(self) -> int:
        """The height in pixels."""
        return int(self.array.shape[0])

    def png(self) -> bytes:
        """The picture as a PNG file."""
        if self._png is None:
            rows = np.zeros((self.height, 1 + 3 * self.width), np.uint8)  # each row begins with its filter, 0
            rows[:, 1:] = self.array.reshape(self.height, 3 * self.width)
            header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
            chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b"")]
            self._png = b"\x89PNG\r\n\x1a\n" + b"".join(
                struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
                for kind, data in chunks
            )
        return self._png

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to a PNG file."""
        with open(path, "wb") as file:
            file.write(self.png())

    def _repr_png_(self) -> bytes:
        return self.png()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if dtype is not None and np.dtype(dtype) != np.uint8:
            if copy is False:
                raise ValueError(f"a picture cannot become {np.dtype(dtype)} without a copy")
            return self.array.astype(dtype)
        return self.array.copy() if copy else self.array

    def __repr__(self) -> str:
        size = "PNG" if self._array is None else f"{self.width}x{self.height}"
        return f"<Screen {size} of frame {self.frame}>"
