"""The class of `client.memory` in the asynchronous client."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from framewire.memory import array_bytes, array_symbol, is_name, list_bytes, range_of
from framewire.model import Address, Data, NumberType, Symbol

if TYPE_CHECKING:
    from framewire.aio import AsyncClient


class AsyncMemory:
    """The memory of an emulator: like `framewire.memory.Memory`, but with `await`: `await memory["score"]`.

    An assignment to `memory[...]` cannot be asynchronous. Use `await memory.write("score", 5)`.
    """

    def __init__(self, emulator: AsyncClient, domain: str | None = None) -> None:
        self._emulator = emulator
        self._domain = domain
        self._symbols: dict[str, Symbol] | None = None

    def domain(self, name: str) -> AsyncMemory:
        """The memory domain with this name, such as `wram`. Its addresses are offsets from the start of the domain."""
        return AsyncMemory(self._emulator, name)

    def refresh(self) -> None:
        """Forgets the symbols. Call this after another program has loaded another game."""
        self._symbols = None

    @overload
    def __getitem__(self, where: slice) -> Coroutine[Any, Any, bytes]: ...
    @overload
    def __getitem__(self, where: int) -> Coroutine[Any, Any, int]: ...
    @overload
    def __getitem__(self, where: str) -> Coroutine[Any, Any, Any]: ...
    async def __getitem__(self, where: Address | slice) -> Any:
        if isinstance(where, slice):
            address, length = range_of(where)
            return await self._emulator.read_bytes(address, length, domain=self._domain)
        symbol = await self._array(where)
        if symbol is not None:
            return await self._emulator.read_array(symbol.name, symbol.type or "u8", symbol.count)
        return await self._emulator.read(where, domain=self._domain)

    async def write(self, address: Address, value: int | np.integer[Any] | list[int] | Data) -> None:
        """Writes a number or bytes. If the address is the name of an array, a list or bytes must fill the whole array.

        A number is written to the first element of an array.
        """
        if isinstance(value, (int, np.integer)):
            await self._emulator.write(address, int(value), domain=self._domain)
            return
        symbol = await self._array(address)
        if symbol is not None:
            await self._emulator.write_bytes(symbol.name, array_bytes(symbol, value))
        else:
            await self._emulator.write_bytes(address, list_bytes(value), domain=self._domain)

    async def array(self, address: Address, type: NumberType | npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """Reads consecutive numbers, like `AsyncClient.read_array`."""
        return await self._emulator.read_array(address, type, count, domain=self._domain)

    async def _array(self, where: Address) -> Symbol | None:
        """The symbol, if `where` is the name of an array; None otherwise."""
        if self._domain is not None or not is_name(where):
            return None
        if self._symbols is None or where not in self._symbols:
            self._symbols = await self._emulator.symbols()
        return array_symbol(self._symbols.get(where))
