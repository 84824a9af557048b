"""Builds each request and parses its reply, without any I/O. Both clients use this module.

A `Call` is a call of a JSON-RPC method (docs/json-rpc.md). An `Operation` can be sent alone, as a call, or in a batch.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from framewire._arguments import cheat_number, check_addresses, codes_text, dtype_of, whole
from framewire.errors import FramewireError, InvalidRequest, WaitTimeout, from_problem
from framewire.model import (
    Address,
    Cheat,
    Data,
    Found,
    History,
    HistoryLine,
    Info,
    IoRegister,
    Keys,
    NumberType,
    Presses,
    RecordingInfo,
    ReplayReport,
    Rewound,
    SnapshotInfo,
    Symbol,
    Timeline,
    Value,
    Waited,
    as_bytes,
    file_bytes,
    key_names,
    name_or_time,
    sequence_text,
)
from framewire.screen import Screen

T = TypeVar("T")

Json = Any
"""A value that `json.loads` returns."""

CleanUp = Callable[[Json], tuple[str, dict[str, Json]]]
"""Takes the result of a call. Returns the method and the parameters of another request, which gets no reply."""

MOST_FRAMES = 3600
"""The largest number of frames in one `advance`."""

UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The exceptions that functions raise if what they read does not have the expected form."""


def unreadable(what: str, error: Exception) -> FramewireError:
    """The exception for something that the server sent in an unexpected form. `error` is one of `UNREADABLE`."""
    return FramewireError(
        f"the server's {what} does not have the expected form ({type(error).__name__}: {error}); use the same version of "
        "Framewire in the server and in this program"
    )


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A JSON-RPC method, its parameters, and the function that parses its result."""

    method: str
    params: dict[str, Json]
    parse: Callable[[Json], T]
    changes: bool
    """Whether the call changes something. Such a call needs an idempotency key, so that it can be sent again."""
    clean_up: CleanUp | None = None
    """Makes the request that deletes what the call created. It is sent as soon as the result comes."""

    def parsed(self, result: Json) -> T:
        """Parses the result.

        Raises:
            FramewireError: The result means that the call failed, or it does not have the expected form.
        """
        try:
            return self.parse(result)
        except FramewireError:
            raise
        except UNREADABLE as error:
            raise unreadable(f"result of {self.method}", error) from error


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """An operation, its arguments, and the function that parses its value."""

    name: str
    arguments: dict[str, Json]
    parse: Callable[[Json], T]
    changes: bool

    def call(self) -> Call[T]:
        """The operation as a call of its own."""
        parse = self.parse
        return Call(self.name, self.arguments, lambda result: parse(result["value"]), self.changes)

    def json(self) -> dict[str, Json]:
        """The operation as part of a batch."""
        return {"op": self.name, **self.arguments}


def same(result: Json) -> Any:
    """Returns the result unchanged."""
    return result


def nothing(_: Json) -> None:
    """Ignores the result."""


def frame_of(result: Json) -> int:
    """The frame counter of a reply."""
    return int(result["frame"])


def given(**params: Json) -> dict[str, Json]:
    """The parameters that are not None."""
    return {name: value for name, value in params.items() if value is not None}


def place(address: Address, domain: str | None = None) -> dict[str, Json]:
    """The parameters of an address."""
    if not isinstance(address, str):
        address = whole(address, "address", "a whole number, or text such as 'score' or '0x02000044'")
    return {"address": address} if domain is None else {"address": address, "domain": domain}


# Memory.


def read(address: Address, type: NumberType | None, domain: str | None) -> Operation[int]:
    """Reads a number."""
    return Operation("read", given(**place(address, domain), type=type), same, changes=False)


def read_many(addresses: Sequence[Address], type: NumberType | None, domain: str | None) -> Operation[list[int]]:
    """Reads several numbers."""
    check_addresses(addresses)
    places = [place(each)["address"] for each in addresses]
    return Operation("read_many", given(addresses=places, type=type, domain=domain), same, changes=False)


def read_bytes(address: Address, length: int, domain: str | None) -> Operation[bytes]:
    """Reads bytes."""
    name = "read_range" if domain is None else "domain_read_range"
    return Operation(name, {**place(address, domain), "length": whole(length, "length")}, b64decode, changes=False)


def read_array(
    address: Address, type: NumberType | npt.DTypeLike, count: int, domain: str | None
) -> Operation[npt.NDArray[Any]]:
    """Reads consecutive numbers."""
    dtype = dtype_of(type)
    read = read_bytes(address, whole(count, "count") * dtype.itemsize, domain)
    return Operation(
        read.name, read.arguments, lambda value: np.frombuffer(bytearray(b64decode(value)), dtype), changes=False
    )


def write(address: Address, value: int, type: NumberType | None, domain: str | None) -> Operation[None]:
    """Writes a number."""
    arguments = given(**place(address, domain), type=type, value=whole(value, "value"))
    return Operation("write", arguments, nothing, changes=True)


def freeze(address: Address, value: int, type: NumberType | None) -> Operation[None]:
    """Freezes a number in memory: writes it now, and again after each frame."""
    return Operation("freeze", write(address, value, type, None).arguments, nothing, changes=True)


def unfreeze(address: Address | None) -> Operation[bool]:
    """Unfreezes an address, or all addresses."""
    return Operation("unfreeze", {} if address is None else place(address), bool, changes=True)


def frozen() -> Operation[list[dict[str, Any]]]:
    """The frozen values."""
    return Operation("frozen", {}, same, changes=False)


def read_text(address: Address, length: int) -> Operation[str]:
    """Reads a text."""
    return Operation("read_text", {**place(address), "length": whole(length, "length")}, same, changes=False)


def find(params: Mapping[str, Any], areas: Sequence[Mapping[str, Any]], limit: int) -> Call[list[Found]]:
    """Finds the text, bytes, number or pointer in `params`."""
    wanted = given(**params)
    if (data := wanted.get("bytes")) is not None:
        wanted["bytes"] = b64encode(as_bytes(data)).decode()

    def offset(place: Json) -> Any:
        return place["address"] if place["offset"] is None else place["offset"]

    def parse(result: Json) -> list[Found]:
        return [
            Found(each["address"], each["bank"], each["domain"], offset(each), each["symbol"], b64decode(each["data"]))
            for each in result["places"]
        ]

    return Call("find", {**wanted, "areas": list(areas), "limit": whole(limit, "limit")}, parse, changes=False)


def cheats() -> Call[list[Cheat]]:
    """The cheats."""

    def parse(result: Json) -> list[Cheat]:
        return [
            Cheat(each["id"], each["name"], each["kind"], tuple(each["codes"]), each["enabled"])
            for each in result["cheats"]
        ]

    return Call("v1.cheats", {}, parse, changes=False)


def add_cheat(codes: str | Sequence[str], name: str, kind: str, enabled: bool) -> Operation[int]:
    """Adds a cheat."""
    arguments = {"name": name, "kind": kind, "codes": codes_text(codes), "enabled": enabled}
    return Operation("add_cheat", arguments, same, changes=True)


def load_cheats(path: str) -> Operation[int]:
    """Adds the cheats of a file."""
    return Operation("load_cheats", {"path": path}, same, changes=True)


def enable_cheat(id: int, enabled: bool) -> Operation[None]:
    """Switches a cheat on or off."""
    return Operation("enable_cheat", {"id": whole(id, "id"), "enabled": enabled}, nothing, changes=True)


def remove_cheat(id: int | None) -> Operation[None]:
    """Removes one cheat, or all."""
    return Operation("remove_cheat", {"id": 0 if id is None else cheat_number(id)}, nothing, changes=True)


def registers() -> Call[dict[str, int]]:
    """The registers of the processor."""
    return Call("registers", {}, lambda result: dict(result["registers"]), changes=False)


def write_register(name: str, value: int) -> Call[None]:
    """Writes a register of the processor."""
    return Call("writeRegister", {"name": name, "value": whole(value, "value")}, nothing, changes=True)


def io_registers(contains: str | None) -> Call[list[IoRegister]]:
    """The I/O registers whose names contain a text, or all."""

    def parse(result: Json) -> list[IoRegister]:
        return [
            IoRegister(each["name"], each["address"], each["size"], each["value"], each["doc"], each.get("fields", {}))
            for each in result["registers"]
        ]

    return Call("ioRegisters", given(contains=contains), parse, changes=False)


def write_io_register(name: str, value: int) -> Call[None]:
    """Writes an I/O register."""
    return Call("writeIoRegister", {"name": name, "value": whole(value, "value")}, nothing, changes=True)


def history(first: int) -> Call[History]:
    """The history: what the emulator keeps of the past."""

    def line(each: Json) -> HistoryLine:
        follows = each["follows"] and (each["follows"]["line"], each["follows"]["frame"])
        keys = [(held["frame"], tuple(held["keys"])) for held in each["keys"]]
        marks = [{mark["name"]: mark["frame"] for mark in each[kind]} for kind in ("snapshots", "recordings")]
        return HistoryLine(each["line"], each["began"], follows, each["states"], each["pictures"], keys, *marks)

    def parse(result: Json) -> History:
        return History(result["frame"], result["line"], result["used"], [line(each) for each in result["lines"]])

    return Call("history", {"first": whole(first, "first")}, parse, changes=False)


def history_screen(frame: int, line: int) -> Call[Screen]:
    """The small picture of a past frame."""
    wanted = {"frame": whole(frame, "frame"), "line": whole(line, "line")}
    return Call("historyPicture", wanted, lambda result: Screen.from_png(b64decode(result["data"])), changes=False)


def rewind(frame: int, line: int | None) -> Call[Rewound]:
    """Goes back to a past frame."""
    wanted = {"frame": whole(frame, "frame")} | ({} if line is None else {"line": whole(line, "line")})
    return Call("v1.rewind", wanted, lambda result: Rewound(result["frame"], result["exact"]), changes=True)


def cycles() -> Operation[int]:
    """The cycle counter."""
    return Operation("cycles", {}, same, changes=False)


def write_bytes(address: Address, data: Data, domain: str | None) -> Operation[None]:
    """Writes bytes. With a domain, writes them as numbers, because no operation writes bytes to a domain."""
    content = as_bytes(data)
    if domain is None:
        return Operation("write_range", {**place(address), "data": b64encode(content).decode()}, nothing, changes=True)
    first = place(address)["address"]
    if isinstance(first, str):
        raise InvalidRequest(
            f"address is {address!r}; with a domain, use the offset in it as a whole number", parameter="address"
        )
    whole_words = len(content) // 4 * 4
    writes = [
        {"address": first + at, "value": int.from_bytes(content[at : at + 4], "little"), "type": "u32"}
        for at in range(0, whole_words, 4)
    ]
    writes += [{"address": first + at, "value": content[at]} for at in range(whole_words, len(content))]
    return Operation("write_many", {"writes": writes, "domain": domain}, nothing, changes=True)


def symbols(contains: str | None, after: str | None) -> Call[tuple[list[Symbol], bool]]:
    """A page of the symbols, and whether there are more."""

    def parse(result: Json) -> tuple[list[Symbol], bool]:
        found = [
            Symbol(each["name"], each["address"], each.get("type"), each["count"], each.get("doc"))
            for each in result["symbols"]
        ]
        return found, bool(result["more"])

    return Call("symbols", given(contains=contains, after=after), parse, changes=False)


# Keys.


def timeline(result: Json) -> Timeline:
    """A timeline."""
    over = result.get("over")
    return Timeline(result["id"], result["first"], result["last"], over and bool(over["cancelled"]))


def press(keys: Keys, frames: int) -> Operation[Timeline]:
    """Presses keys together."""
    arguments = {"keys": key_names(keys), "frames": whole(frames, "frames")}
    return Operation("tap", arguments, timeline, changes=True)


def play(presses: Presses, append: bool) -> Operation[Timeline]:
    """Presses keys one after another."""
    arguments = given(sequence=sequence_text(presses), append=append or None)
    return Operation("input", arguments, timeline, changes=True)


def run(
    steps: Sequence[Mapping[str, Any]],
    stop: str | Sequence[str] | None,
    values: Mapping[str, str] | Sequence[str] | None,
    operations: Sequence[Mapping[str, Any]],
    then: Sequence[Mapping[str, Any]],
) -> Call[dict[str, Any]]:
    """Plays steps until a condition of `stop` holds or the last step ends.

    Performs `operations` before the first frame, and `then` after the last.
    """
    params = given(steps=list(steps), stop=stop, values=values, ops=list(operations), then=list(then))
    return Call("run", params, same, changes=True)


def until_over(operation: Operation[Timeline]) -> Call[Timeline]:
    """Presses keys and waits until they are released."""
    return Call(f"v1.{operation.name}", {**operation.arguments, "wait": True}, timeline, changes=True)


def cancel(timeline: int | None) -> Call[bool]:
    """Ends one timeline, or all."""
    if timeline is None:
        return Call("cancelAllInput", {}, lambda result: bool(result["cancelled"]), changes=True)
    return Call("cancelInput", {"id": timeline}, lambda result: bool(result["cancelled"]), changes=True)


def progress(timeline: int) -> Call[bool | None]:
    """Whether a timeline was cancelled; None while it plays."""

    def parse(result: Json) -> bool | None:
        return None if result["over"] is None else bool(result["over"]["cancelled"])

    return Call("inputProgress", {"id": timeline}, parse, changes=False)


def hold(keys: Keys) -> Operation[None]:
    """Holds keys."""
    return Operation("add_keys", {"keys": key_names(keys)}, nothing, changes=True)


def release(keys: Keys | None) -> Operation[None]:
    """Releases these keys, or all held keys."""
    if keys is None:
        return Operation("set_keys", {"keys": []}, nothing, changes=True)
    return Operation("clear_keys", {"keys": key_names(keys)}, nothing, changes=True)


# Frames.


def advance(frames: int) -> Operation[int]:
    """Runs frames, up to `MOST_FRAMES`."""
    return Operation("advance", {"frames": frames}, same, changes=True)


def plain(name: str) -> Operation[None]:
    """An operation without arguments that changes something."""
    return Operation(name, {}, nothing, changes=True)


def frame() -> Operation[int]:
    """The frame counter."""
    return Operation("current_frame", {}, same, changes=False)


def lockstep(timeout: int) -> Operation[None]:
    """Begins lockstep; 0 ends it."""
    timeout = whole(timeout, "timeout", "milliseconds")
    # Lockstep ends with its connection. If the reply is lost, lockstep must begin again on the next connection. So this
    # request gets no idempotency key: with one, the server would only repeat its reply.
    return Operation("lockstep", {"timeout": timeout}, nothing, changes=timeout == 0)


def set_speed(speed: float | str) -> Call[None]:
    """Changes the speed."""
    return Call("speed", {"speed": speed}, nothing, changes=True)


def load(path: str) -> Call[None]:
    """Loads another game."""
    return Call("load", {"path": path}, nothing, changes=True)


def info() -> Call[Info]:
    """The state of the emulator."""

    def parse(result: Json) -> Info:
        return Info(
            result["kind"],
            bool(result["connected"]),
            result["run"],
            result.get("frame"),
            result.get("title"),
            result.get("code"),
            result,
        )

    return Call("emulatorState", {}, parse, changes=False)


# Pictures and states.


def screen(frame: int | None, timeout: int | None) -> Call[Screen]:
    """The picture."""

    def parse(result: Json) -> Screen:
        return Screen.from_rgb(b64decode(result["data"]), result["width"], result["height"], result["frame"])

    return Call("v1.screenshot", given(format="rgb", frame=frame, timeout=timeout), parse, changes=False)


def batch_screen() -> Operation[Screen]:
    """The picture in a batch, as a PNG file."""
    return Operation("screenshot", {}, lambda value: Screen.from_png(b64decode(value)), changes=False)


def save_state(flags: int | None) -> Call[bytes]:
    """The state."""
    return Call("saveState", given(flags=flags), lambda result: b64decode(result["data"]), changes=False)


def batch_save_state(flags: int) -> Operation[bytes]:
    """The state in a batch."""
    return Operation("save_state", {"flags": flags}, b64decode, changes=False)


def load_state(data: bytes, flags: int | None, force: bool) -> Call[int]:
    """Loads a state."""
    params = given(body=b64encode(file_bytes(data, "state")).decode(), flags=flags, force=force or None)
    return Call("loadState", params, frame_of, changes=True)


def batch_load_state(data: bytes, flags: int) -> Operation[bool]:
    """Loads a state in a batch."""
    arguments = {"data": b64encode(file_bytes(data, "state")).decode(), "flags": flags}
    return Operation("load_state", arguments, bool, changes=True)


def snapshot_info(result: Json) -> SnapshotInfo:
    """A snapshot."""
    return SnapshotInfo(result["name"], result["title"], result["frame"], result["time"], result["note"], result["size"])


def snapshots(offset: int) -> Call[tuple[list[SnapshotInfo], int | None]]:
    """A page of the snapshots, and where the next one begins."""

    def parse(result: Json) -> tuple[list[SnapshotInfo], int | None]:
        return [snapshot_info(each) for each in result["snapshots"]], result["next"]

    return Call("snapshots", {"offset": offset, "limit": 1000}, parse, changes=False)


def save_snapshot(name: str | None, note: str, replace: bool) -> Call[SnapshotInfo]:
    """Saves a snapshot."""
    return Call("saveSnapshot", given(name=name, note=note, replace=replace), snapshot_info, changes=True)


def load_snapshot(name: str, flags: int | None, force: bool) -> Call[int]:
    """Loads a snapshot."""
    return Call("loadSnapshot", given(name=name, flags=flags, force=force or None), frame_of, changes=True)


def change_snapshot(name: str, new_name: str | None, note: str | None) -> Call[SnapshotInfo]:
    """Changes the name or the note of a snapshot."""
    params = {"name": name, "body": given(name=new_name, note=note)}
    return Call("changeSnapshot", params, snapshot_info, changes=True)


def delete_snapshot(name: str) -> Call[None]:
    """Deletes a snapshot."""
    return Call("deleteSnapshot", {"name": name}, nothing, changes=True)


def file(method: str, name: str) -> Call[bytes]:
    """A file of the server. The method is `snapshotFile`, `snapshotPicture` or `downloadRecording`."""
    return Call(method, {"name": name}, lambda result: b64decode(result["data"]), changes=False)


# Recordings.


def recording_info(result: Json) -> RecordingInfo:
    """A recording, being made or complete."""
    return RecordingInfo(result["name"], result.get("frames", 0), result.get("ended"), result["size"])


def start_recording(name: str | None, start: str, every: int | None, note: str, replace: bool) -> Call[RecordingInfo]:
    """Begins a recording. Without a name, the present time becomes the name, as in `Core.record`."""
    params = given(name=name_or_time(name), start=start, every=every, note=note, replace=replace)
    return Call("startRecording", params, recording_info, changes=True)


def recording_under_way() -> Call[RecordingInfo]:
    """The progress of the recording that is being made."""
    return Call("recordingUnderWay", {}, recording_info, changes=False)


def stop_recording() -> Call[RecordingInfo]:
    """Ends the recording."""
    return Call("stopRecording", {}, recording_info, changes=True)


def recordings(offset: int) -> Call[tuple[list[str], int | None]]:
    """A page of the names of recordings, and where the next one begins."""

    def parse(result: Json) -> tuple[list[str], int | None]:
        return [each["name"] for each in result["recordings"]], result["next"]

    return Call("recordings", {"offset": offset, "limit": 1000}, parse, changes=False)


def recording(name: str) -> Call[RecordingInfo]:
    """A recording."""
    return Call("recording", {"name": name}, recording_info, changes=False)


def delete_recording(name: str) -> Call[None]:
    """Deletes a recording."""
    return Call("deleteRecording", {"name": name}, nothing, changes=True)


def upload_recording(name: str, data: bytes, replace: bool) -> Call[None]:
    """Adds a recording."""
    params = given(name=name, body=b64encode(file_bytes(data, "data")).decode(), replace=replace or None)
    return Call("uploadRecording", params, nothing, changes=True)


def replay(name: str, speed: float | None, restore: bool, through: bool) -> Call[ReplayReport]:
    """Replays a recording to its end."""

    def parse(result: Json) -> ReplayReport:
        return ReplayReport(bool(result["equal"]), result["frames"], result["played"], result.get("diverged"), result)

    params = given(name=name, speed=speed, restore=restore, through=through)
    return Call("replayRecording", params, parse, changes=True)


# Expressions.


def value(expression: str, json: Json) -> Value:
    """Converts the value of an expression. The value of a `bytes[...]` expression is base64 text."""
    return b64decode(json) if isinstance(json, str) and expression.lstrip().startswith("bytes") else json


def wait(until: str, frames: int) -> Call[Waited]:
    """Waits until an expression is true."""

    def parse(result: Json) -> Waited:
        if not result["held"]:
            raise WaitTimeout(
                f"`{until}` did not become true in {result['frames']} frames, up to frame {result['frame']}; "
                "wait longer with timeout_frames=, or check the condition with evaluate()"
            )
        return Waited(result["frame"], result["frames"])

    return Call("wait", {"until": until, "frames": whole(frames, "timeout_frames")}, parse, changes=False)


def evaluate(expression: str) -> Call[Value]:
    """Creates a watch to get the value of an expression, and then deletes the watch."""

    def parse(result: Json) -> Value:
        return value(expression, next(iter(result["values"].values())))

    def clean_up(result: Json) -> tuple[str, dict[str, Json]]:
        return "deleteWatch", {"id": result["id"]}

    # Each call creates its own watch, so the value is the present one. A buffer of 1 keeps the watch small.
    return Call("createWatch", {"watch": [expression], "buffer": 1}, parse, changes=False, clean_up=clean_up)


def batch(operations: Sequence[Operation[Any]]) -> Call[tuple[int, list[Any]]]:
    """Several operations in one request. The result has the frame counter, and the value or the error of each operation."""

    def parse(result: Json) -> tuple[int, list[Any]]:
        done = zip(operations, result["results"], strict=False)
        values = [from_problem(each["error"]) if "error" in each else of.parse(each["value"]) for of, each in done]
        return result["frame"], values

    changes = any(each.changes for each in operations)
    return Call("batch", {"ops": [each.json() for each in operations]}, parse, changes)
