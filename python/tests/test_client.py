"""The synchronous client, with an embedded core. The client is generated from the asynchronous one, so this tests both."""

from __future__ import annotations

import asyncio
import io
import math
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import framewire
from framewire import Client, FramewireError, InvalidRequest, aio
from tests.servers import Server, reserved_port, serve

SCRATCH = 0x02000100


def test_watches_and_events_that_were_closed_do_not_wait(emulator: Client) -> None:
    for stream in (emulator.watch("frame"), emulator.events()):
        stream.close()
        with pytest.raises(FramewireError, match=r"(was|were) closed"):
            while True:
                stream.next(10)


@pytest.mark.parametrize("is_reading", [False, True])
def test_next_that_does_not_wait_returns_what_has_arrived(server: Server, emulator: Client, is_reading: bool) -> None:
    with framewire.connect(server.url) as client, client.events() as events, client.watch("scratch[9]") as changes:
        reader = threading.Thread(target=lambda: client.wait("scratch[10] == 1"))
        if is_reading:
            # The thread `reader` reads the client's socket. It must also handle the events of both streams.
            reader.start()
            time.sleep(0.1)
        for stream in (events, changes):
            with pytest.raises(framewire.WaitTimeout):
                stream.next(timeout=0)
        with emulator.watch("scratch[9]") as seen:
            emulator.write("scratch[9]", 5)
            seen.next(5)
        emulator.reset()
        time.sleep(0.3)
        assert events.next(timeout=0).name == "reset"
        assert changes.next(timeout=0).new == 5
        if is_reading:
            emulator.write("scratch[10]", 1)
            reader.join(10)


@pytest.mark.parametrize("closes_client", [False, True])
def test_close_wakes_threads_that_wait_for_an_event(server: Server, emulator: Client, closes_client: bool) -> None:
    """One of the threads reads the socket, and the other one waits for it."""
    emulator.pause()
    client = framewire.connect(server.url)
    streams = [client.events(), client.watch("scratch[9]")]
    errors: list[FramewireError] = []

    def wait(stream: Any) -> None:
        with pytest.raises(FramewireError, match="closed") as caught:
            stream.next()
        errors.append(caught.value)

    threads = [threading.Thread(target=wait, args=(stream,), daemon=True) for stream in streams]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    closed: list[Any] = [client] if closes_client else streams
    for each in closed:
        each.close()
    for thread in threads:
        thread.join(5)
    assert len(errors) == 2
    client.close()


def test_events_that_the_server_has_ended_do_not_wait(emulator: Client) -> None:
    with emulator.events() as events:
        for watch in emulator.call("watches", changes=False)["watches"]:
            if not watch["watch"]:
                emulator.call("deleteWatch", changes=True, id=watch["id"])
        while events.next(10).name != "end":
            pass
        with pytest.raises(framewire.WatchEnded, match="the events are over: it was deleted; call events"):
            events.next(10)


def test_reads_and_writes_bytes_and_arrays(emulator: Client) -> None:
    emulator.write_bytes("scratch", b"\x01\x02\x03\x04")
    assert emulator.read_bytes("scratch", 4) == b"\x01\x02\x03\x04"
    array = emulator.read_array("scratch", "u16", 2)
    assert array.tolist() == [0x0201, 0x0403]
    array += 1  # the caller may change the array
    emulator.write_bytes("scratch", array.astype(">u2"))
    assert emulator.read_bytes("scratch", 4) == b"\x02\x02\x04\x04"
    emulator.write_bytes(0x100, np.arange(7, dtype=np.uint8), domain="wram")
    assert emulator.read_array(0x100, np.uint8, 8, domain="wram").tolist() == [0, 1, 2, 3, 4, 5, 6, 0]
    emulator.write_bytes(0x100, bytes(range(256)) * 60, domain="vram")
    assert emulator.read_bytes(0x100, 256 * 60, domain="vram") == bytes(range(256)) * 60


def test_memory_is_accessed_with_brackets(emulator: Client) -> None:
    memory = emulator.memory
    memory["scratch[3]"] = 9
    assert memory["scratch[3]"] == 9
    assert memory[SCRATCH + 3] == 9
    assert memory["lives"] == 3
    assert memory["presses"].dtype == np.dtype("<u4")
    assert memory["presses"].tolist() == [0] * 10
    memory["presses"] = list(range(10))
    assert memory["presses[9]"] == 9
    memory["presses"] = np.zeros(10, np.int64)
    assert memory[SCRATCH : SCRATCH + 4] == memory.array(SCRATCH, "u8", 4).tobytes()
    memory[SCRATCH : SCRATCH + 2] = b"ab"
    assert memory.domain("wram")[0x100] == ord("a")
    assert memory["0x02000100"] == ord("a")


def test_info_says_whether_the_game_runs(emulator: Client) -> None:
    with emulator.pause():
        assert emulator.info().run == "paused"
    assert emulator.info().run == "running"


def test_lockstep_runs_only_requested_frames(emulator: Client) -> None:
    with emulator.lockstep():
        start = emulator.frame()
        assert emulator.advance(3) == start + 3
        assert emulator.frame() == start + 3
    emulator.wait(f"frame > {start + 10}")


def test_speed_changes(emulator: Client) -> None:
    emulator.set_speed("unlimited")
    assert emulator.info().more["speed"] == "unlimited"
    emulator.set_speed(1)


def test_screen_is_an_array_and_a_png(emulator: Client) -> None:
    with emulator.pause():
        screen = emulator.screen()
        assert screen.frame == emulator.frame()
        with emulator.batch() as batch:
            same = batch.screen()
        ahead = screen.frame + 2
        thread = threading.Timer(0.05, lambda: emulator.advance(2))
        thread.start()
        assert emulator.screen(frame=ahead).frame == ahead
        thread.join()
    assert np.asarray(screen).shape == (160, 240, 3)
    assert np.asarray(screen, dtype=np.float32).dtype == np.float32
    assert len(np.unique(screen.array.reshape(-1, 3), axis=0)) > 4
    assert np.array_equal(screen.array, same.value.array)
    with Image.open(io.BytesIO(screen._repr_png_())) as image:
        assert np.array_equal(np.asarray(image.convert("RGB")), screen.array)


def test_screen_is_saved(emulator: Client, tmp_path: Path) -> None:
    emulator.screen().save(tmp_path / "screen.png")
    with Image.open(tmp_path / "screen.png") as image:
        assert image.size == (240, 160)


def test_any_number_of_expressions_can_be_evaluated(emulator: Client) -> None:
    assert emulator.evaluate("lives * 10 + 1") == 31
    for _ in range(300):  # more than the number of watches that the server allows
        emulator.evaluate("lives")


def test_a_run_ends_when_a_condition_holds(emulator: Client) -> None:
    done = emulator.run(
        [{"sequence": "B:1"}, {"until": "frame % 7 == 0", "frames": 20}],
        values={"rest": "frame % 7"},
        then=[{"op": "current_frame"}],
    )
    assert (done["why"], done["values"]) == ("condition", {"rest": 0})
    assert done["then"] == [{"value": done["frame"]}]
    with pytest.raises(InvalidRequest, match="steps"):
        emulator.run([])


def test_freezes_values_and_follows_pointers(emulator: Client) -> None:
    emulator.write("scratch", SCRATCH + 8, "u32")
    emulator.write("u32[scratch] + 4", 77, "u16")
    assert emulator.read("u32[scratch] + 4", "u16") == 77
    emulator.freeze("lives", 3)
    assert emulator.frozen() == [{"address": "lives", "type": "u16", "value": 3}]
    emulator.write("lives", 1)
    emulator.wait("lives == 3")
    assert emulator.unfreeze("lives")
    assert not emulator.unfreeze()


def test_presses_can_be_appended(emulator: Client) -> None:
    # While the game is paused, the first timeline cannot end before the second one is appended.
    with emulator.pause():
        first = emulator.play("A:30 .:5")
        second = emulator.play("A:2", append=True)
        assert second.first == first.last + 1
        assert emulator.cancel()


def test_watch_reports_each_change(emulator: Client) -> None:
    with emulator.pause(), emulator.watch("presses[2]", "held") as changes:
        assert changes.values == {"presses[2]": 0, "held": 0}
        timeline = emulator.press("Select", frames=2)
        emulator.advance(5)
        seen = [next(changes) for _ in range(3)]
        assert {(each.expression, each.frame, each.old, each.new) for each in seen[:2]} == {
            ("presses[2]", timeline.first, 0, 1),
            ("held", timeline.first, 0, 4),
        }
        assert (seen[2].expression, seen[2].frame, seen[2].old, seen[2].new) == ("held", timeline.last + 1, 4, 0)
        assert not any(each.gap for each in seen)
        with pytest.raises(framewire.WaitTimeout, match="no change of"):
            changes.next(timeout=0.05)
    with pytest.raises(InvalidRequest, match="needs an expression"):
        emulator.watch()


def test_a_gap_without_a_change_is_reported_by_the_next_change(emulator: Client) -> None:
    with emulator.pause(), emulator.watch("lives") as changes:
        # The server sends an event like the first one after its connection to mGBA was broken.
        changes._take("change", {"frame": 5, "tick": 1, "changes": {}, "gap": True})
        for frame, old in ((6, 3), (7, 2)):
            change = {"lives": {"old": old, "new": old - 1}}
            changes._take("change", {"frame": frame, "tick": frame, "changes": change})
        assert [changes.next(5).gap for _ in range(2)] == [True, False]


def test_a_watch_reports_bytes(emulator: Client) -> None:
    with emulator.pause(), emulator.watch("bytes[held, 2]") as changes:
        emulator.press("B")
        emulator.advance()
        change = changes.next(5)
        assert (change.old, change.new) == (b"\0\0", b"\2\0")


def test_a_slow_reader_of_a_watch_learns_about_lost_events(emulator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framewire._session.KEPT_EVENTS", 5)
    with emulator.pause(), emulator.watch("frame") as changes:
        first = changes.values["frame"]
        for _ in range(20):
            emulator.advance()
        # The client reads events while it waits for replies. It keeps the last five.
        end = time.monotonic() + 30
        while changes._subscription.dropped < 15 and time.monotonic() < end:
            emulator.evaluate("frame")
        seen = []
        with pytest.raises(framewire.WaitTimeout):
            while True:
                seen.append(changes.next(timeout=0.2))
    assert isinstance(first, int)
    assert seen[-1].new == first + 20
    assert seen[0].gap
    assert not any(each.gap for each in seen[1:])
    assert changes.missed + len(seen) == 20


def test_a_watch_ends_when_another_game_is_loaded(folder: Path) -> None:
    with serve(folder) as server, framewire.connect(server.url) as client:
        other = folder / "other.gba"
        rom = bytearray((folder / "demo.gba").read_bytes())
        rom[0xA0:0xA4] = b"OTHR"
        other.write_bytes(rom)
        client.wait("u32[frame] > 1")
        lives = client.memory["lives"]
        with client.watch("u32[score]") as changes:
            client.load(str(other))
            # On a slow machine, the ball may already have broken bricks, so changes of the score may come before the end.
            with pytest.raises(framewire.WatchEnded, match=r"the watch is over: .*; call watch"):
                for _ in range(100):
                    changes.next(5)
        assert lives == 3
        assert client.info().title == "OTHREWIRE"
        with pytest.raises(framewire.NotFound, match="another game"):
            _ = client.memory["lives"]


def test_a_batch_is_performed_between_two_frames(emulator: Client) -> None:
    with emulator.batch() as batch:
        before = batch.read("lives")
        batch.write("scratch", 5)
        after = batch.read_many(["scratch", "lives"])
        bricks = batch.read_array("bricks", "u8", 70)
        press = batch.press("Select")
        state = batch.save_state()
        with pytest.raises(framewire.FramewireError, match="has not run"):
            _ = before.value
    assert (before.value, after.value, bricks.value.shape) == (3, [5, 3], (70,))
    assert press.value.first == (batch.frame or 0) + 1
    assert state.value.startswith(b"\x89PNG")
    with pytest.raises(framewire.FramewireError, match="has run"):
        batch.read("lives")


def test_a_batch_stops_at_its_first_failure(emulator: Client) -> None:
    with emulator.pause():
        with pytest.raises(framewire.Conflict) as caught, emulator.batch() as batch:
            good = batch.read("lives")
            batch.press("A", frames=5)
            bad = batch.press("A")
            rest = batch.read("lives")
        assert caught.value.op == 2
        assert good.value == 3
        with pytest.raises(framewire.Conflict):
            _ = bad.value
        with pytest.raises(framewire.FramewireError, match="not performed"):
            _ = rest.value


def test_rewind_goes_back_to_a_frame_and_to_later_frames(emulator: Client) -> None:
    with emulator.pause():
        emulator.reset()
        emulator.advance(60)
        with emulator.hold("Right"):
            emulator.advance(60)
        emulator.advance(30)
        end = emulator.frame()
        past, picture = emulator.memory["paddle_x"], emulator.screen()
        kept = emulator.history(first=end - 150)
        line = kept.lines[-1]
        assert (kept.frame, kept.line, line.began) == (end, line.line, "reset")
        assert kept.used > 0
        assert (60, ("Right",)) in line.keys
        assert emulator.history_screen(line.pictures[0], line.line).array.shape == (53, 80, 3)

        assert emulator.rewind(60) == framewire.Rewound(60, True)
        assert emulator.memory["paddle_x"] != past
        emulator.advance()
        assert emulator.history().lines[-1].follows == (line.line, 60)
        # The later frames are still kept, on their old line.
        assert emulator.rewind(end, line.line) == framewire.Rewound(end, True)
        assert (emulator.memory["paddle_x"], emulator.screen().array.tobytes()) == (past, picture.array.tobytes())
        with pytest.raises(framewire.FramewireError, match="999999"):
            emulator.rewind(999_999)
        with pytest.raises(InvalidRequest, match="frame is 'end'"):
            emulator.rewind("end")  # type: ignore[arg-type]


def test_io_registers_have_names_and_fields(emulator: Client) -> None:
    with emulator.pause():
        (display,) = emulator.io_registers("DISPCNT")
        assert (display.address, display.size, display.doc) == (0x04000000, 2, "Display control")
        assert display.value == emulator.read(0x04000000, "u16")
        assert display.fields["mode"] == display.value & 7
        assert len(emulator.io_registers()) > 50
        emulator.write_io_register("WIN0H", 0x1234)
        emulator.write_io_register("BLDALPHA", 0x0410)
        assert emulator.read("0x04000052", "u16") == 0x0410
        with pytest.raises(framewire.NotFound, match="NOTHING"):
            emulator.write_io_register("NOTHING", 1)


def test_recordings_replay_equal(emulator: Client) -> None:
    with emulator.pause():
        with emulator.record("run", replace=True, every=10) as recording:
            emulator.press("A", frames=2)
            emulator.advance(60)
            assert recording.info().frames == 60
        assert recording.stop().frames == 60
        report = emulator.replay("run", restore=True)
        assert report.equal
        assert report.played == 60
        assert report.diverged is None
        data = emulator.recordings.file("run")
        emulator.recordings.add("copy", data)
        assert set(emulator.recordings.list()) >= {"run", "copy"}
        assert emulator.recordings.info("copy").frames == 60
        emulator.recordings.delete("copy")
        with pytest.raises(framewire.InvalidData, match="frame"):
            emulator.recordings.add("bad", data[:-5] + b"!!!!!")


def test_other_methods_can_be_called(emulator: Client) -> None:
    assert emulator.call("read8", changes=False, address="lives")["value"] == 3
    assert emulator.call("write8", changes=True, address="scratch", value=4)["value"] is None


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda e: e.read("livse"), InvalidRequest, 'no symbol is called "livse"; did you mean "lives"'),
        (lambda e: e.read(3.5), InvalidRequest, "address is 3.5; use a whole number, or text"),
        (lambda e: e.read(0x01000000), InvalidRequest, "0x0?1000000"),
        (lambda e: e.read("lives", "u64"), InvalidRequest, "u8, u16, u32, i8, i16 or i32"),
        (lambda e: e.read_many("lives"), InvalidRequest, r"use a list, such as \['score', 'lives'\]"),
        (lambda e: e.read_array("lives", "object", 1), InvalidRequest, "a NumPy type"),
        (lambda e: e.read_array("lives", "nonsense", 1), InvalidRequest, "a NumPy type"),
        (lambda e: e.read_bytes("lives", -1), InvalidRequest, "length is -1"),
        (lambda e: e.read(5, domain="wrma"), framewire.RequestFailed, "wrma"),
        (lambda e: e.write("scratch", 256), InvalidRequest, "0 to 255"),
        (lambda e: e.write("scratch", "five"), InvalidRequest, "value is 'five'; use a whole number"),
        (lambda e: e.write_bytes("scratch", "text"), InvalidRequest, "use bytes or a NumPy array"),
        (lambda e: e.write_bytes("scratch", np.zeros(2)), InvalidRequest, "float64; use whole numbers"),
        (lambda e: e.write_bytes(0x08000000, b"a"), InvalidRequest, "cart0"),
        (lambda e: e.memory["scratch":], InvalidRequest, "a slice of memory has a first address"),
        (lambda e: e.memory[8:4], InvalidRequest, "before it begins"),
        (lambda e: e.memory.__setitem__("presses", [1]), InvalidRequest, "40 bytes"),
        (lambda e: e.memory.__setitem__("presses", 1), InvalidRequest, r"one to 'presses\[0\]'"),
        (lambda e: e.memory.__setitem__("bricks", [300] * 70), InvalidRequest, "from 0 to 255"),
        (lambda e: e.memory.__setitem__("bricks", [[1], 2]), InvalidRequest, "from 0 to 255"),
        (lambda e: e.memory.__setitem__(slice(SCRATCH, SCRATCH + 2), b"abc"), InvalidRequest, "has 2 bytes"),
        (lambda e: e.memory.__setitem__(slice(SCRATCH, SCRATCH + 2), np.uint8(5)), InvalidRequest, "assign bytes"),
        (lambda e: e.press("C"), InvalidRequest, "A, B, Select, Start"),
        (lambda e: e.press([1]), InvalidRequest, "use names of keys"),
        (lambda e: e.press(1), InvalidRequest, "use names of keys"),
        (lambda e: e.read_many(5), InvalidRequest, "addresses is 5; use a list"),
        (lambda e: e.memory.__setitem__("score", 1.5), InvalidRequest, "the value is 1.5; use a whole number"),
        (lambda e: e.load_state("a.ss1"), InvalidRequest, "state is 'a.ss1'; use the bytes of the file"),
        (lambda e: e.add_cheat(5), InvalidRequest, "codes is 5; use a text"),
        (lambda e: e.press("A", frames=0), InvalidRequest, "frames is 0"),
        (lambda e: e.play("A:x"), InvalidRequest, "presses such as"),
        (lambda e: e.play(7), InvalidRequest, "use text such as"),
        (lambda e: e.advance(0), InvalidRequest, "frames is 0"),
        (lambda e: e.lockstep(99_999), InvalidRequest, "60000"),
        (lambda e: e.set_speed(0), InvalidRequest, "speed"),
        (lambda e: e.evaluate("score ="), InvalidRequest, "column 7"),
        (lambda e: e.wait("score > 0", timeout_frames=-1), InvalidRequest, "frames is -1"),
        (lambda e: e.watch("nonsense"), InvalidRequest, "nonsense"),
        (lambda e: e.load_state(b"nonsense"), framewire.InvalidData, "savestate"),
        (lambda e: e.load("/no/such/game.gba"), framewire.InvalidData, "/no/such/game.gba"),
        (lambda e: e.replay("no-such-recording"), framewire.NotFound, "no-such-recording"),
        (lambda e: e.screen(frame=0, timeout=10), framewire.Conflict, "frame"),
        (lambda e: e.call("nonsense", changes=False), InvalidRequest, "nonsense"),
        (lambda e: e.set_speed(float("nan")), InvalidRequest, "not valid JSON"),
        (lambda e: e.write_bytes("scratch", bytes(7_000_000)), framewire.TooLarge, "8 MiB"),
        (lambda e: e.call("read", changes=False, address=object()), InvalidRequest, "not valid JSON"),
    ],
)
def test_bad_input_is_explained(
    emulator: Client, use: Callable[[Client], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        use(emulator)
    assert emulator.read("lives") == 3


def error_of(client: Client, use: Callable[[Client], object]) -> BaseException:
    """The exception of a call. If the call waits for a reply that does not come, the test fails after ten seconds."""
    errors: list[BaseException] = []

    def call() -> None:
        try:
            use(client)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(10)
    assert errors, "the call raises no exception in ten seconds"
    return errors[0]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda e: e.read("lives\ud800"), r"address is 'lives\\ud800', which has the lone surrogate '\\ud800'; use text"),
        (lambda e: e.evaluate("\udfff"), r"watch is \['\\udfff'\], which has"),
        (lambda e: e.watch("\ud800\ud800"), r"watch is \['\\ud800\\ud800'\], which has"),
        (lambda e: e.load("/games/\udcff.gba"), r"path is '/games/\\udcff.gba', which has"),
        (
            lambda e: e.run([{"sequence": "A:1"}], values={"\ud800": "lives"}),
            r"values is \{'\\ud800': 'lives'\}, which has",
        ),
        (lambda e: e.call("re\ud800", changes=False), r"method is 're\\ud800', which has"),
        (lambda e: e.call("read", changes=False, **{"a\ud800": 1}), r"a\\ud800 is 1, which has"),
    ],
)
def test_text_with_a_lone_surrogate_is_refused_and_changes_nothing(
    server: Server, emulator: Client, use: Callable[[Client], object], message: str
) -> None:
    with framewire.connect(server.url, timeout=2, retry=0) as client:
        frame = client.frame()
        with pytest.raises(InvalidRequest, match=message) as caught:
            raise error_of(client, use)
        str(caught.value).encode()  # the message itself can be printed
        assert client.frame() >= frame
    assert emulator.read("lives") == 3


def nested(levels: int) -> list[Any]:
    """A list with this many levels."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda e: e.call("read", changes=False, address=nested(126)), r"address is \[\[.*more than 127 levels of lists"),
        (lambda e: e.run([{"sequence": nested(126)}]), r"steps is \[.*more than 127 levels of lists"),
        (lambda e: e.call("read", changes=False, address=nested(100_000)), "address is .*, which is not valid JSON"),
        (lambda e: e.read("lives", nested(100_000)), "type is .*, which is not valid JSON"),
        (
            lambda e: e.read(nested(100_000)),
            "address is a value of type list that is too large to be shown; use a whole number",
        ),
        (
            lambda e: e.play([("A", nested(100_000))]),
            "presses is a value of type list that is too large to be shown; use text",
        ),
        (
            lambda e: e.press(nested(100_000)),
            "keys is a value of type list that is too large to be shown; use names of keys",
        ),
        (
            lambda e: e.read(10**400),
            "address is 1000.*, which is not valid JSON for the server .*of 1329 bits",
        ),
        (
            lambda e: e.write("scratch", -(10**5000)),
            "value is a value of type int that is too large to be shown, which is not valid",
        ),
        (lambda e: e.advance(10**30), "frames is 1000.*; use a number from 1 to 4294967295"),
        (lambda e: e.advance(10**5000), "frames is a value of type int that is too large to be shown; use a number from 1"),
    ],
)
def test_values_that_the_server_cannot_read_are_refused_at_once(
    server: Server, emulator: Client, use: Callable[[Client], object], message: str
) -> None:
    with framewire.connect(server.url, timeout=2, retry=0) as client:
        with pytest.raises(InvalidRequest, match=message):
            raise error_of(client, use)
        # The server itself refuses values that are a little smaller.
        with pytest.raises(InvalidRequest, match="accepted is a number from 0"):
            client.call("read", changes=False, address=nested(125))
        with pytest.raises(InvalidRequest, match="accepted is a number from 0"):
            client.call("read", changes=False, address=2**1023 - 1)
        assert client.read("lives") == 3


def test_text_beyond_ascii_reaches_the_server(emulator: Client) -> None:
    with pytest.raises(InvalidRequest, match="kein Gerät 🎮"):
        emulator.read("kein Gerät 🎮")


@pytest.mark.parametrize("value", [-1, -math.inf, math.nan, "1", None])
@pytest.mark.parametrize(("name", "least"), [("timeout", r"0\.001"), ("retry", "0")])
async def test_times_that_are_not_seconds_are_refused(server: Server, name: str, least: str, value: Any) -> None:
    message = f"{name} is {value!r}; use a number of seconds of at least {least}$"
    with pytest.raises(InvalidRequest, match=message):
        framewire.connect(server.url, **{name: value})
    with pytest.raises(InvalidRequest, match=message):
        await aio.connect(server.url, **{name: value})


@pytest.mark.parametrize("seconds", [math.inf, 1e30, 10**400, np.float32(5)])
async def test_any_large_number_of_seconds_is_accepted(server: Server, seconds: float) -> None:
    with framewire.connect(server.url, timeout=seconds, retry=seconds) as client:
        assert client.info().connected
    async with await aio.connect(server.url, timeout=seconds, retry=seconds) as asynchronous:
        assert (await asynchronous.info()).connected


def test_several_threads_can_wait_for_an_infinite_time(emulator: Client) -> None:
    with emulator.pause(), emulator.watch("scratch[9]") as watch, ThreadPoolExecutor() as threads:
        waiting = [threads.submit(watch.next, math.inf) for _ in range(2)]
        time.sleep(0.2)  # one thread reads now, and the other waits for it
        for value in (201, 202):
            emulator.write("scratch[9]", value)
            emulator.advance()
        assert {each.result(10).new for each in waiting} == {201, 202}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"emulator": "\ud800"}, r"emulator is '\\ud800'; use the name of an emulator"),
        ({"emulator": 5}, r"emulator is 5; use the name of an emulator"),
        ({"token": "\ud800"}, r"the token has characters that a header cannot have"),
        ({"token": "a\r\nb: c"}, r"the token has characters that a header cannot have"),
    ],
)
async def test_names_and_tokens_that_cannot_be_sent_are_refused(
    server: Server, arguments: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        framewire.connect(server.url, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match=message):
        await aio.connect(server.url, timeout=2, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("http://127.0.0.1:{port}", framewire.ConnectionFailed, "start one with `framewire serve`"),
        ("ftp://127.0.0.1", InvalidRequest, "use one such as 'http://127.0.0.1:5000'"),
        ("http://127.0.0.1:abc", InvalidRequest, "use one such as"),
        ("http://127.0.0.1:99999", InvalidRequest, "use one such as"),
        ("http://[::1", InvalidRequest, "use one such as"),
        ("http://a..b", InvalidRequest, "use one such as"),
        ("http://127.0.0.1:5000/\ud800", InvalidRequest, "use one such as"),
        ("http://127.0.0.1:5000/?emulator=a", InvalidRequest, "arguments `emulator` and `token`"),
    ],
)
def test_a_wrong_address_is_explained(url: str, error: type[Exception], message: str) -> None:
    with reserved_port() as port, pytest.raises(error, match=message):
        framewire.connect(url.format(port=port))


def test_emulators_have_names_and_servers_have_tokens(folder: Path) -> None:
    folder.mkdir()
    token = folder / "token"
    token.write_text("0123456789abcdef0123456789abcdef0123456789abcdef\n")
    token.chmod(0o600)
    with serve(folder, "--rom", f"other={folder / 'demo.gba'}", "--token-file", str(token)) as server:
        with pytest.raises(framewire.NotAllowed, match="token"):
            framewire.connect(server.url)
        secret = token.read_text().strip()
        with pytest.raises(framewire.NotFound, match="nobody"):
            framewire.connect(server.url, token=secret, emulator="nobody")
        with (
            framewire.connect(server.url, token=secret) as one,
            framewire.connect(server.url, token=secret, emulator="other") as two,
        ):
            one.write("scratch", 1)
            two.write("scratch", 2)
            assert (one.read("scratch"), two.read("scratch")) == (1, 2)
            with one.audio() as audio:
                assert len(next(audio).samples)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*command, *names, "-keyout", key, "-out", cert, "-days", "2"], check=True, capture_output=True)
    key.chmod(0o600)
    return cert, key


async def test_servers_have_tls(folder: Path, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = certificate
    with serve(folder, "--tls-cert", str(cert), "--tls-key", str(key)) as server:
        with pytest.raises(framewire.ConnectionFailed, match="certificate"):
            framewire.connect(server.url)
        with pytest.raises(framewire.ConnectionFailed, match="certificate"):
            await aio.connect(server.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        async with await aio.connect(server.url) as client_of_trusted, client_of_trusted.audio() as sound:
            assert (await sound.next()).rate
        monkeypatch.delenv("SSL_CERT_FILE")
        trusted = ssl.create_default_context(cafile=cert)
        with framewire.connect(server.url, ssl=trusted) as client:
            client.wait("u32[frame] > 1")
            with client.audio() as audio:
                assert next(audio).rate
            # The game loses a life a few seconds after it begins. So the test pauses it and resets it.
            with client.pause():
                client.reset()
                client.advance(60)
                assert client.read("lives") == 3
                assert client.screen().array.shape == (160, 240, 3)
                client.write_bytes("scratch", bytes(200_000))
                async with await aio.connect(server.url, ssl=trusted) as other:
                    assert await asyncio.gather(*(other.read("lives") for _ in range(200))) == [3] * 200
                    stream = other._transport._stream
                    assert stream is not None
                    assert stream.transport is not None
                    connection = stream.transport.get_extra_info("socket")
                # The socket is closed when `close` returns, so that the event loop can end.
                assert connection.fileno() == -1


def test_one_client_serves_many_threads(server: Server, emulator: Client) -> None:
    """A thread that waits for a long time does not delay the others."""
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            for turn in range(40):
                emulator.write(SCRATCH + number, turn)
                assert emulator.read(SCRATCH + number) == turn
        except BaseException as error:
            failures.append(error)

    changes = emulator.watch("scratch[200]")
    waiting = threading.Thread(target=lambda: next(changes))
    waiting.start()
    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert waiting.is_alive()
    emulator.write("scratch[200]", 1)
    waiting.join(10)
    assert not waiting.is_alive()
    assert not failures


def test_structures_of_big_endian_numbers_keep_their_byte_order(emulator: Client) -> None:
    emulator.write_bytes("scratch", bytes([1, 2, 3, 4]))
    assert emulator.memory.array("scratch", [("a", ">u2"), ("b", ">u2")], 1)["a"][0] == 0x0102
    assert emulator.memory.array("scratch", (">u2", (2,)), 1).tolist() == [[0x0102, 0x0304]]


@pytest.mark.parametrize("type", ["u1,(", {"names": ["a"]}, ("u1", -1), None])
def test_wrong_types_of_arrays_are_refused(emulator: Client, type: Any) -> None:
    with pytest.raises(framewire.InvalidRequest, match="or a NumPy type"):
        emulator.memory.array("scratch", type, 1)


FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")
import framewire
client = framewire.connect(sys.argv[1])
watch = client.watch("scratch[0]")
sound = client.audio()
with client.pause():
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.read(reader, 1)  # the parent has written its number
            client.write("scratch[1]", 6)
            assert client.read_bytes("scratch", 2) == bytes([5, 6])
            try:
                watch.next(5)
                os._exit(3)
            except framewire.ConnectionLost as error:
                assert "forked" in str(error), error
            client.close()
            os._exit(0)
        finally:
            os._exit(2)
    client.write("scratch[0]", 5)
    os.write(writer, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    # The parent still has its own connection.
    client.advance()
    assert watch.next(5).new == 5
    client.write("scratch[1]", 7)
    assert client.read_bytes("scratch", 2) == bytes([5, 7])
    client.advance(60)
    for _ in range(50):
        next(sound)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_its_own_connection(server: Server, emulator: Client) -> None:
    emulator.write_bytes("scratch", bytes(2))
    subprocess.run([sys.executable, "-c", FORKED, server.url], check=True, timeout=60)


def test_calls_of_a_closed_client_fail(server: Server) -> None:
    client = framewire.connect(server.url)
    client.close()
    client.close()
    for call in (lambda: client.read("lives"), client.audio):
        with pytest.raises(framewire.ConnectionLost, match="the client is closed"):
            call()


def test_an_interrupted_call_of_a_client_that_is_then_closed_leaves_nothing(
    server: Server, emulator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watches() -> set[str]:
        return {watch["id"] for watch in emulator.call("watches", changes=False)["watches"]}

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = watches()
    for call in ("evaluate", "record"):
        client = framewire.connect(server.url)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(type(client._transport), "_read", interrupt)
            getattr(client, call)("lives")
        client.close()
    deadline = time.monotonic() + 10
    while True:
        try:
            emulator.record("again", replace=True).stop()
            break
        except framewire.Conflict:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    # Watches of earlier tests can end meanwhile.
    while watches() - before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_sound_of_a_client_ends_when_the_client_is_closed(server: Server, emulator: Client) -> None:
    emulator.pause()
    client = framewire.connect(server.url)
    sound = client.audio()
    errors: list[str] = []

    def read() -> None:
        with pytest.raises(framewire.ConnectionLost) as caught:
            for _ in sound:
                pass
        errors.append(str(caught.value))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    client.close()
    reader.join(15)
    assert len(errors) == 1
    assert "the sound ended" in errors[0]


def test_a_client_whose_sound_was_not_read_is_closed_at_once(server: Server, emulator: Client) -> None:
    client = framewire.connect(server.url)
    sound = client.audio()
    with emulator.pause():
        emulator.advance(60)
    time.sleep(0.3)
    begun = time.monotonic()
    client.close()
    assert time.monotonic() - begun < 5
    with pytest.raises(framewire.ConnectionLost, match="the sound ended"):
        for _ in sound:
            pass
