"""The memory of an emulator in this process: reading, writing, finding and freezing."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from framewire import _native
from framewire._arguments import check_addresses, check_range, dtype_of
from framewire.errors import InvalidRequest, shown
from framewire.model import Address, Data, Found, NumberType, as_bytes

_LONGEST_TEXT = 4096
"""The largest number of bytes of a text."""
_MOST_PLACES = 10_000
"""The largest number of places that `find` returns."""
_MOST_DECIMAL = 99_999_999
"""The greatest number with eight decimal digits."""


class CoreMemory:
    """The methods of `Core` that read and write memory."""

    _core: _native.Core

    def read(self, address: Address, type: NumberType | None = None, *, domain: str | None = None) -> int:
        """Reads a number. The default type is that of the symbol, or `"u8"` if there is none."""
        return self._core.read(address if isinstance(address, str) else _hex(address), type, domain)

    def read_many(
        self, addresses: Sequence[Address], type: NumberType | None = None, *, domain: str | None = None
    ) -> list[int]:
        """Reads several numbers in the same frame."""
        check_addresses(addresses)
        return [self.read(address, type, domain=domain) for address in addresses]

    def read_bytes(self, address: Address, length: int, *, domain: str | None = None) -> bytes:
        """Reads bytes."""
        return self._core.read_bytes(self._address(address), u32(length, "length", 0), domain)

    def read_array(
        self, address: Address, type: NumberType | npt.DTypeLike, count: int, *, domain: str | None = None
    ) -> npt.NDArray[Any]:
        """Reads consecutive numbers into a new array. `type` is a name such as `"u16"`, or a NumPy type."""
        dtype = dtype_of(type)
        length = u32(count, "count", 0) * dtype.itemsize
        return np.frombuffer(bytearray(self.read_bytes(address, length, domain=domain)), dtype)

    def write(self, address: Address, value: int, type: NumberType | None = None, *, domain: str | None = None) -> None:
        """Writes a number. The default type is that of the symbol, or `"u8"` if there is none."""
        place = address if isinstance(address, str) else _hex(address)
        self._core.write(place, number32(value), type, domain)

    def write_bytes(self, address: Address, data: Data, *, domain: str | None = None) -> None:
        """Writes bytes or an array."""
        self._core.write_bytes(self._address(address), as_bytes(data), domain)

    def read_text(self, address: Address, length: int) -> str:
        """Reads a text of at most `length` bytes (up to 4,096), in the game's character encoding (see docs/api.md)."""
        check_range(length, "length", 1, _LONGEST_TEXT)
        return self._core.read_text(self._address(address), length)

    def find(
        self,
        *,
        text: str | None = None,
        bytes: Data | None = None,
        float: float | None = None,
        bcd: int | None = None,
        pointer_to: Address | None = None,
        areas: Sequence[Mapping[str, Any]] = (),
        limit: int = 100,
    ) -> list[Found]:
        """Finds a text, bytes, a number or a pointer in memory. Pass exactly one of the first five arguments.

        Args:
            text: A text, in the game's character encoding.
            bytes: The bytes to find.
            float: A 32-bit floating-point number.
            bcd: A number in binary-coded decimal.
            pointer_to: An address. Pointers to it are found.
            areas: Where to look, such as `[{"domain": "iwram"}, {"address": "scratch", "length": 256}]`; by default in
                the work RAM, and on a Game Boy also in `hram`.
            limit: The largest number of places to return, from 1 to 10,000.
        """
        given = [each is not None for each in (text, bytes, float, bcd, pointer_to)]
        if sum(given) != 1:
            raise InvalidRequest("exactly one of text, bytes, float, bcd and pointer_to is accepted")
        is_gba = self._core.game()[3] == "GBA"
        if text is not None:
            patterns = [self._core.encode_text(text)]
        elif bytes is not None:
            patterns = [as_bytes(bytes)]
        elif float is not None:
            try:
                patterns = [struct.pack("<f", float)]
            except (OverflowError, struct.error):
                raise InvalidRequest(
                    f"float is {shown(float)}; use a number that a 32-bit float can have", parameter="float"
                ) from None
        elif bcd is not None:
            patterns = _decimal(bcd)
        else:
            target, size = self._address(pointer_to or 0), 4 if is_gba else 2
            if target >> (8 * size):
                raise InvalidRequest(f"pointer_to is {target:#x}; use an address up to 0xffff", parameter="pointer_to")
            patterns = [target.to_bytes(size, "little")]
        if not patterns[0]:
            raise InvalidRequest("there are no bytes to look for; use 1 or more")
        check_range(limit, "limit", 1, _MOST_PLACES)
        usual = [{"domain": "wram"}, {"domain": "iwram" if is_gba else "hram"}]
        found = [place for area in areas or usual for place in self._places(area, patterns)][:limit]
        names = self._core.names([each.address for each in found if each.address is not None and each.bank is None])
        return [replace(each, symbol=names.get(each.address or 0) if each.bank is None else None) for each in found]

    def _places(self, area: Mapping[str, Any], patterns: Sequence[bytes]) -> Iterator[Found]:
        """Finds the patterns in an area."""
        if not isinstance(area, Mapping) or not set(area) <= {"domain", "address", "length"}:
            raise InvalidRequest(
                f"areas contains {area!r}; use dictionaries with domain, address and length, such as {{'domain': 'wram'}}",
                parameter="areas",
            )
        domain = area.get("domain")
        missing = [name for name in ("address", "length") if domain is None and name not in area]
        if missing:
            raise InvalidRequest(
                f"an area has no {missing[0]}; use an address and a length, or a domain", parameter="areas"
            )
        start = self._address(area.get("address", 0))
        if domain is not None and start >= (size := self._core.size(domain)):
            raise InvalidRequest(f"an area begins at {start}, but {domain} has only {size} bytes", parameter="areas")
        length = u32(area["length"] if "length" in area else self._core.size(domain or "") - start, "length", 1)
        memory = self._core.read_bytes(start, length, domain)
        found = {start + at: pattern for pattern in reversed(patterns) for at in _positions(memory, pattern)}
        offsets = sorted(found)
        on_bus = [(None, at) for at in offsets] if domain is None else self._core.on_bus(domain, offsets)
        for offset, place in zip(offsets, on_bus, strict=True):
            bank, address = place or (None, None)
            yield Found(address, bank, domain, offset, None, found[offset])

    def freeze(self, address: Address, value: int, type: NumberType | None = None) -> None:
        """Freezes a number in memory: writes it now, and again after each frame, until `unfreeze`."""
        name = _frozen_name(address)
        self._core.freeze(name, name, number32(value), type)

    def unfreeze(self, address: Address | None = None) -> bool:
        """Unfreezes an address, or all addresses. Returns whether any was frozen."""
        return self._core.unfreeze("*" if address is None else _frozen_name(address))

    def frozen(self) -> list[dict[str, Any]]:
        """The frozen numbers: dictionaries with `address`, `type` and `value`."""
        texts = iter(self._core.frozen())
        kept = []
        for name, kind, pairs in zip(texts, texts, texts, strict=True):
            data = bytes.fromhex(pairs.replace(",", ""))
            number = int.from_bytes(data, "little", signed=kind.startswith("i"))
            kept.append({"address": name, "type": kind, "value": number})
        return kept

    def _address(self, address: Address) -> int:
        if isinstance(address, str):
            return self._core.locate(address)
        return u32(address, "address", 0)


def u32(value: int, name: str, least: int) -> int:
    """Checks that a number is at least `least`, and fits in 32 bits without a sign."""
    return check_range(value, name, least, 0xFFFF_FFFF)


def number32(value: int) -> int:
    """Checks that a number fits in 32 bits, with or without a sign. The type may have a smaller range."""
    return check_range(value, "value", -0x8000_0000, 0xFFFF_FFFF)


def _positions(memory: bytes, pattern: bytes) -> Iterator[int]:
    """The positions of a pattern in memory."""
    at = memory.find(pattern)
    while at >= 0:
        yield at
        at = memory.find(pattern, at + 1)


def _decimal(number: int) -> list[bytes]:
    """A number in binary-coded decimal, in both byte orders: little-endian and big-endian."""
    check_range(number, "bcd", 0, _MOST_DECIMAL)
    digits = str(number)
    high_first = bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
    return [high_first[::-1], high_first]


def _frozen_name(address: Address) -> str:
    """The name of a frozen value: the text of its address or, if this is a number, the number in hex."""
    if isinstance(address, str):
        text = address.strip()
        try:
            address = int(text, 0)
        except ValueError:
            return text
    return f"{u32(address, 'address', 0):#010x}"


def _hex(address: int) -> str:
    return hex(u32(address, "address", 0))
