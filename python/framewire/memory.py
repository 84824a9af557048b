"""The class of `emulator.memory`, which gives access to memory with brackets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard, overload

import numpy as np
import numpy.typing as npt

from framewire._arguments import whole
from framewire.errors import InvalidRequest, shown
from framewire.model import Address, Data, NumberType, Symbol, array_of, as_bytes

if TYPE_CHECKING:
    from framewire.emulator import Emulator


def range_of(where: slice) -> tuple[int, int]:
    """Address and length of a slice such as `memory[0x02000000:0x02000100]`."""
    if where.start is None or where.stop is None or where.step is not None:
        raise InvalidRequest(
            "a slice of memory has a first address and an address after the last one, such as "
            "memory[0x02000000:0x02000100]; read_array() reads numbers in a row",
            parameter="slice",
        )
    start, stop = whole(where.start, "the first address"), whole(where.stop, "the address after the last one")
    if stop < start:
        raise InvalidRequest(f"the slice ends at {stop:#x}, before it begins at {start:#x}", parameter="slice")
    return start, stop - start


def is_name(where: Address) -> TypeGuard[str]:
    """Whether `where` can be the name of an array. Numbers, and places such as `presses[3]`, cannot."""
    return isinstance(where, str) and not where[:1].isdigit() and not any(sign in where for sign in "[+-")


def array_symbol(symbol: Symbol | None) -> Symbol | None:
    """The symbol, if it is an array; None otherwise."""
    return symbol if symbol is not None and symbol.count > 1 else None


def array_bytes(symbol: Symbol, values: Data | list[int]) -> bytes:
    """Converts values to the bytes of a whole array, and checks that they fill it."""
    if isinstance(values, (bytes, bytearray, memoryview)):
        data = bytes(values)
    else:
        array = array_of(values)
        limits = np.iinfo(symbol.dtype)
        if array.dtype.kind not in "biu" or (array.size and (array.min() < limits.min or array.max() > limits.max)):
            raise InvalidRequest(
                f"{symbol.name} is {symbol.type or 'u8'}[{symbol.count}]; use whole numbers from {limits.min} to "
                f"{limits.max}",
                parameter=symbol.name,
            )
        data = array.astype(symbol.dtype).tobytes()
    expected = symbol.count * symbol.dtype.itemsize
    if len(data) != expected:
        raise InvalidRequest(
            f"{symbol.name} has {expected} bytes ({symbol.count} numbers of {symbol.dtype.itemsize}), but the new value "
            f"has {len(data)}",
            parameter=symbol.name,
        )
    return data


def list_bytes(values: Data | list[int]) -> Data:
    """Converts a list, with a number for each byte, to bytes. Bytes and arrays stay as they are."""
    if isinstance(values, (bytes, bytearray, memoryview, np.ndarray)):
        return values
    if not isinstance(values, list):
        raise InvalidRequest(
            f"the value is {shown(values)}; use a whole number, bytes, a list of numbers from 0 to 255 or a NumPy array",
            parameter="value",
        )
    try:
        return bytes(values)
    except (TypeError, ValueError):
        wrong = next(each for each in values if not isinstance(each, (int, np.integer)) or not 0 <= each <= 255)
        raise InvalidRequest(
            f"the list contains {shown(wrong)}; use whole numbers from 0 to 255, or a NumPy array for larger numbers",
            parameter="value",
        ) from None


class Memory:
    """The memory of an emulator.

    - `memory["score"]` and `memory[0x02000044]` are numbers; `memory["presses[3]"]` is an element of an array.
    - `memory["bricks"]` is a NumPy array, because `bricks` is the name of an array.
    - `memory[0x02000000:0x02000100]` is bytes.
    - All of them can be assigned to.
    - `memory.domain("wram")[0x44]` is the number at an offset in a memory domain.

    A number is one byte, unless a symbol has another type. The emulator's methods `read(address, "u16")` and `read_array`
    read other types.
    """

    def __init__(self, emulator: Emulator, domain: str | None = None) -> None:
        self._emulator = emulator
        self._domain = domain
        self._symbols: dict[str, Symbol] | None = None

    def domain(self, name: str) -> Memory:
        """The memory domain with this name, such as `wram`. Its addresses are offsets from the start of the domain."""
        return Memory(self._emulator, name)

    def refresh(self) -> None:
        """Forgets the symbols. Call this after another program has loaded another game."""
        self._symbols = None

    @overload
    def __getitem__(self, where: slice) -> bytes: ...
    @overload
    def __getitem__(self, where: int) -> int: ...
    @overload
    def __getitem__(self, where: str) -> Any: ...
    def __getitem__(self, where: Address | slice) -> Any:
        if isinstance(where, slice):
            address, length = range_of(where)
            return self._emulator.read_bytes(address, length, domain=self._domain)
        symbol = self._array(where)
        if symbol is not None:
            return self._emulator.read_array(symbol.name, symbol.type or "u8", symbol.count)
        return self._emulator.read(where, domain=self._domain)

    def __setitem__(self, where: Address | slice, value: int | np.integer[Any] | list[int] | Data) -> None:
        if isinstance(where, slice):
            address, length = range_of(where)
            if isinstance(value, (int, np.integer, list)):
                raise InvalidRequest(f"the slice has {length} bytes; assign bytes or an array", parameter="slice")
            data = as_bytes(value)
            if len(data) != length:
                raise InvalidRequest(f"the slice has {length} bytes, but the new value has {len(data)}", parameter="slice")
            self._emulator.write_bytes(address, data, domain=self._domain)
            return
        symbol = self._array(where)
        if symbol is not None and not isinstance(value, (int, np.integer)):
            self._emulator.write_bytes(symbol.name, array_bytes(symbol, value))
        elif symbol is not None:
            raise InvalidRequest(
                f"{symbol.name} has {symbol.count} numbers; assign that many, or one to '{symbol.name}[0]'",
                parameter=symbol.name,
            )
        elif isinstance(value, (int, np.integer)):
            self._emulator.write(where, int(value), domain=self._domain)
        else:
            self._emulator.write_bytes(where, list_bytes(value), domain=self._domain)

    def array(self, address: Address, type: NumberType | npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """Reads consecutive numbers, like `Emulator.read_array`."""
        return self._emulator.read_array(address, type, count, domain=self._domain)

    def _array(self, where: Address) -> Symbol | None:
        if self._domain is not None or not is_name(where):
            return None
        if self._symbols is None or where not in self._symbols:
            self._symbols = self._emulator.symbols()
        return array_symbol(self._symbols.get(where))
