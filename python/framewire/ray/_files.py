"""The files of a scenario, as one object that Ray copies to each node."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from framewire import _native
from framewire.errors import InvalidRequest, RomError

_GAME = "game.toml"

# The largest game file, as in crates/game, and the largest symbol file, as in crates/symbols, in bytes. The second limit
# also holds for start states.
_MAX_GAME = 16 << 20
_MAX_REFERENCE = 64 << 20


@dataclass(frozen=True)
class GameFiles:
    """A game file and the files that it names.

    Attributes:
        files: The contents of these files, by the names under which `unpacked` writes them to one folder.
        rom: The path of the ROM in the folder of `unpacked`, or its path on every node if it is not sent.
        is_sent: Whether the ROM is in `files`.
    """

    files: dict[str, bytes]
    rom: str
    is_sent: bool

    @classmethod
    def collect(
        cls, game: str | os.PathLike[str], scenario: str | None, rom: str | os.PathLike[str] | None, node_rom: str | None
    ) -> GameFiles:
        """Reads the files of a scenario. With `node_rom`, the ROM is not read: each node has it at this path."""
        path = Path(game)
        text = _read(path, _MAX_GAME).decode("utf-8-sig")
        named, others = _native.named_files(str(path), text, scenario)
        names: dict[Path, str] = {}
        sent = text.encode()
        # Replace the last path first, so that the offsets of the others do not change. Lines do not move, so errors name
        # the right line.
        for begin, end, reference in sorted(others, reverse=True):
            name = names.setdefault(reference, f"{len(names)}-{reference.name}")
            sent = sent[:begin] + json.dumps(name, ensure_ascii=False).encode() + sent[end:]
        files = {name: _read(path.parent / reference, _MAX_REFERENCE) for reference, name in names.items()}
        files[_GAME] = sent
        if node_rom is not None:
            return cls(files, node_rom, is_sent=False)
        if rom is None:
            if named in (None, Path()):
                raise InvalidRequest(f"{path} names no ROM; give the path of one, or add `rom` to [game]")
            source = path.parent / named
        else:
            source = Path(rom)
        # If the ROM is in an archive, `source` is the path of the archive and then the path in it.
        file = _file_of(source)
        if file.exists() and not file.is_file():
            raise RomError(f"{file} is not a file; give the path of a ROM, or of a ROM in an archive")
        name = f"rom-{file.name}"
        files[name] = file.read_bytes()
        return cls(files, (name / source.relative_to(file)).as_posix(), is_sent=True)

    @contextmanager
    def unpacked(self) -> Iterator[tuple[str, str]]:
        """Writes the files to a folder that exists until `with` ends. Yields the paths of the game file and the ROM."""
        if not self.is_sent and not _file_of(Path(self.rom)).is_file():
            raise RomError(
                f"there is no ROM at {self.rom}; copy it to this path on every node, or leave out node_rom, so that the "
                "fleet sends the ROM"
            )
        with TemporaryDirectory(prefix="framewire-") as folder:
            for name, data in self.files.items():
                Path(folder, name).write_bytes(data)
            yield os.path.join(folder, _GAME), os.path.join(folder, self.rom) if self.is_sent else self.rom


def _read(path: Path, limit: int) -> bytes:
    """Reads a file of at most `limit` bytes. A device can have more bytes than the length that the system reports."""
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise InvalidRequest(f"{path} is too large; use a file of at most {limit} bytes")
    return data


def _file_of(rom: Path) -> Path:
    """The file with this ROM: the archive if the path names a game in one, as in `pack.zip/red.gba`."""
    return next((each for each in (rom, *rom.parents) if each.is_file()), rom)
