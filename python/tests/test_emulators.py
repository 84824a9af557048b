"""The same tests for an emulator in this process and for an emulator on a server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import framewire
from framewire import Emulator
from tests.servers import DEMO, SYMBOLS, Server, serve

SCRATCH = 0x02000100


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(tmp_path_factory.mktemp("emulators")) as served:
        yield served


@pytest.fixture(params=["load", "connect"])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Emulator]:
    """The demo game. In this process, frames run only while a method waits; on a server, they run all the time."""
    if request.param == "load":
        with framewire.load(DEMO, symbols=SYMBOLS, data=tmp_path / "data") as core:
            yield core
        return
    with framewire.connect(request.getfixturevalue("server").url) as client:
        client.cancel()
        client.release()
        client.set_speed(1)
        client.resume()
        yield client


@pytest.fixture
def paused(running: Emulator) -> Iterator[Emulator]:
    """The demo game, paused: frames run only in `advance`."""
    with running.pause():
        running.reset()
        running.advance(60)
        yield running


def test_both_kinds_are_emulators(paused: Emulator) -> None:
    assert isinstance(paused, Emulator)
    info = paused.info()
    assert (info.kind, info.connected, info.title) == ("embedded", True, "FRAMEWIRE")
    assert info.frame == paused.frame()


def test_memory_is_read_and_written_by_name_and_address(paused: Emulator) -> None:
    paused.write("scratch", 0xFFFE, "u16")
    assert (paused.read("scratch", "u16"), paused.read("scratch", "i16")) == (0xFFFE, -2)
    assert paused.read(SCRATCH + 1) == 0xFF
    assert paused.read(0x100, "u16", domain="wram") == 0xFFFE
    assert paused.read_many(["lives", SCRATCH]) == [3, 0xFE]
    paused.write(np.uint32(SCRATCH), np.int64(7), "u32")  # type: ignore[arg-type]
    assert paused.read_many(["scratch", "lives", "presses[3]"]) == [7, 3, 0]
    paused.write_bytes("scratch", np.array([1, 2], dtype=">u2"))
    assert paused.read_bytes(SCRATCH, 4) == b"\x01\x00\x02\x00"
    assert paused.read_array("scratch", "u16", 2).tolist() == [1, 2]
    paused.memory["presses"] = list(range(10))
    assert paused.memory["presses"].tolist() == list(range(10))
    assert paused.memory.domain("wram")[0x100] == 1
    assert paused.symbols("ball_d").keys() == {"ball_dx", "ball_dy"}
    symbols = paused.symbols()
    assert (symbols["score"].address, symbols["score"].type, symbols["score"].count) == (0x02000044, "u32", 1)
    assert symbols["bricks"].count == 70
    assert symbols["ball_x"].dtype == np.dtype("<i2")


def test_texts_are_read_and_watched(paused: Emulator) -> None:
    assert paused.read_text("magic", 8) == "FWDEMO01"
    paused.write_bytes("scratch", b"RED\0BLUE")
    assert paused.read_text(SCRATCH, 8) == "RED"
    assert paused.evaluate("text[scratch, 8]") == "RED"
    assert paused.evaluate('bytes[scratch, 2] == "5245"') is True
    with paused.watch("text[scratch, 8]") as changes:
        paused.write_bytes("scratch", b"B")
        paused.advance()
        change = next(changes)
    assert (change.old, change.new) == ("RED", "BED")
    for length in (0, 5000):
        with pytest.raises(framewire.InvalidRequest, match="length"):
            paused.read_text("magic", length)


def test_find_returns_the_places_of_each_kind_of_value(paused: Emulator) -> None:
    paused.write_bytes("scratch", b"\x78\x56\x34\x12WORDS" + np.array([1.625], "<f4").tobytes() + b"\x13\x57")
    paused.write("scratch[64]", SCRATCH + 4, "u32")
    area = [{"address": "scratch", "length": 256}]
    for wanted, offset, data in [
        ({"text": "WORDS"}, 4, b"WORDS"),
        ({"bytes": b"ORD"}, 5, b"ORD"),
        ({"float": 1.625}, 9, np.float32(1.625).tobytes()),
        ({"bcd": 1357}, 13, b"\x13\x57"),
        ({"bcd": 12345678}, 0, b"\x78\x56\x34\x12"),
        ({"pointer_to": "scratch[4]"}, 64, (SCRATCH + 4).to_bytes(4, "little")),
    ]:
        (place,) = paused.find(**wanted, areas=area)  # type: ignore[arg-type]
        assert (place.address, place.symbol, place.data) == (SCRATCH + offset, f"scratch[{offset}]", data), wanted
    (place,) = paused.find(text="FWDEMO01")
    assert (place.domain, place.offset, place.symbol) == ("wram", 0, "magic[0]")
    assert len(paused.find(bytes=b"\0", limit=3)) == 3
    for wrong in ({}, {"text": "A", "bcd": 1}, {"text": ""}, {"bcd": 100_000_000}, {"text": "A", "limit": 0}):
        with pytest.raises(framewire.InvalidRequest):
            paused.find(**wrong)


def test_frozen_values_are_written_again_after_each_frame(paused: Emulator) -> None:
    paused.freeze("lives", 9)
    paused.freeze(SCRATCH + 8, -5, "i16")
    assert paused.frozen() == [
        {"address": "lives", "type": "u16", "value": 9},
        {"address": "0x02000108", "type": "i16", "value": -5},
    ]
    paused.write("lives", 1)
    assert paused.read("lives") == 1
    paused.advance()
    assert (paused.read("lives"), paused.read(SCRATCH + 8, "i16")) == (9, -5)
    with pytest.raises((framewire.Conflict, framewire.Busy), match="freeze"):
        paused.record("frozen")
    assert paused.unfreeze("lives") is True
    assert paused.unfreeze("lives") is False
    assert paused.unfreeze() is True
    assert paused.frozen() == []
    with pytest.raises(framewire.InvalidRequest):
        paused.freeze("lives", 70_000)
    with pytest.raises(framewire.InvalidRequest, match="scroe"):
        paused.freeze("scroe", 1)


def test_registers_are_written_and_cycles_are_counted(paused: Emulator) -> None:
    before = paused.registers()
    assert set(before) == {*(f"r{number}" for number in range(16)), "cpsr"}
    paused.write_register("r4", -2)
    paused.write_register("r5", 4_000_000_000)
    after = paused.registers()
    assert (after["r4"], after["r5"], after["r3"]) == (0xFFFF_FFFE, 4_000_000_000, before["r3"])
    for name, value in (("r99", 1), ("r4", 1 << 32)):
        with pytest.raises(framewire.InvalidRequest):
            paused.write_register(name, value)
    cycles = paused.cycles()
    paused.advance(10)
    assert abs(paused.cycles() - cycles - 10 * 280_896) < 200


def test_cheats_are_added_switched_and_removed(paused: Emulator, tmp_path: Path) -> None:
    paused.remove_cheat()
    nine = paused.add_cheat("0200004C:0009", name="Nine lives", kind="raw")
    (cheat,) = paused.cheats()
    assert cheat == framewire.Cheat(nine, "Nine lives", "raw", ("0200004C:0009",), True)
    paused.advance()
    assert paused.read("lives") == 9
    with pytest.raises((framewire.Conflict, framewire.Busy), match="cheat"):
        paused.record("cheats")
    paused.enable_cheat(nine, False)
    paused.write("lives", 2)
    paused.advance()
    assert (paused.read("lives"), paused.cheats()[0].enabled) == (2, False)
    file = tmp_path / "demo.cheats"
    file.write_text("# Eight\n0200004C:0008\n")
    assert paused.load_cheats(str(file)) == 1
    assert [each.name for each in paused.cheats()] == ["Nine lives", "Eight"]
    paused.remove_cheat(nine)
    assert [each.name for each in paused.cheats()] == ["Eight"]
    with pytest.raises(framewire.NotFound, match="no cheat 999"):
        paused.enable_cheat(999)
    with pytest.raises(framewire.InvalidRequest, match="column 8"):
        paused.add_cheat(["82000100 0063", "8200010G 0063"])
    with pytest.raises(framewire.InvalidRequest, match="from 1"):
        paused.remove_cheat(0)
    paused.remove_cheat()
    assert paused.cheats() == []


def test_wrong_arguments_for_memory_are_refused(paused: Emulator) -> None:
    for act in (
        lambda: paused.read("scroe"),
        lambda: paused.write("lives", 70_000),
        lambda: paused.read("score", "u64"),  # type: ignore[arg-type]
        lambda: paused.read(0, domain="nowhere"),
        lambda: paused.read_bytes(-1, 2),
        lambda: paused.read_many("score"),
        lambda: paused.write("lives", "3"),  # type: ignore[arg-type]
    ):
        with pytest.raises(framewire.InvalidRequest):
            act()


def test_a_list_of_numbers_that_are_not_bytes_is_refused(paused: Emulator) -> None:
    paused.memory[SCRATCH] = [1, 255]
    refused: list[tuple[list[Any], str]] = [
        ([1, 300], "300"),
        ([-1], "-1"),
        ([2.0], "2.0"),
        (["2"], "'2'"),
        ([np.uint8(2), 2**70], str(2**70)),
    ]
    for values, wrong in refused:
        with pytest.raises(framewire.InvalidRequest, match=f"the list contains {wrong}; use whole numbers from 0 to 255"):
            paused.memory[SCRATCH] = values
    assert paused.read_bytes(SCRATCH, 2) == b"\x01\xff"


def test_keys_are_pressed_in_exactly_their_frames(paused: Emulator) -> None:
    start = paused.frame()
    timeline = paused.play([("Select", 2), ("", 3), (["Up", "B"], 1)])
    assert (timeline.first, timeline.last, timeline.cancelled) == (start + 1, start + 6, None)
    assert paused.cancelled(timeline) is None
    held = []
    for _ in range(7):
        paused.advance()
        held.append(paused.read("held"))
    assert held == [4, 4, 0, 0, 0, 2 | 64, 0]
    assert paused.memory["presses"].tolist() == [0, 1, 1, 0, 0, 0, 1, 0, 0, 0]
    assert paused.cancelled(timeline) is False


def test_timelines_own_their_keys(paused: Emulator) -> None:
    timeline = paused.press("Select", frames=100)
    with pytest.raises(framewire.Conflict, match=r"timeline .* plays Select"):
        paused.press("Select")
    assert paused.press("B").id != timeline.id
    assert paused.cancelled(timeline) is None
    assert paused.cancel(timeline)
    assert paused.cancelled(timeline)
    with pytest.raises(framewire.NotFound, match="is running"):
        paused.cancel(timeline)
    paused.advance(2)
    assert not paused.cancel()
    with pytest.raises((framewire.NotFound, framewire.InvalidRequest), match="not known"):
        paused.cancelled(framewire.Timeline(999_999, 0, 0))


def test_keys_are_held_until_they_are_released(paused: Emulator) -> None:
    with paused.hold("Left+R"):
        paused.advance()
        assert paused.read("held") == 32 | 256
    paused.advance()
    assert paused.read("held") == 0
    paused.hold("B")
    paused.hold(["Up"])
    paused.release("B")
    paused.advance()
    assert paused.read("held") == 64
    paused.release()
    paused.advance()
    assert paused.read("held") == 0


def test_held_keys_can_come_from_a_generator(paused: Emulator) -> None:
    with paused.hold(key for key in ("Left", "R")):
        paused.advance()
        assert paused.read("held") == 32 | 256
    paused.advance()
    assert paused.read("held") == 0


def test_wrong_keys_are_refused(paused: Emulator) -> None:
    for act in (
        lambda: paused.press("X"),
        lambda: paused.press(""),
        lambda: paused.press("A", frames=0),
        lambda: paused.play("A:0"),
        lambda: paused.play(".:5"),
        lambda: paused.hold("up"),
    ):
        with pytest.raises(framewire.InvalidRequest):
            act()
    assert paused.cancel() is False


def test_a_press_waits_for_its_end(running: Emulator) -> None:
    done = running.press("Up+B", frames=3, wait=True)
    assert done.cancelled is False
    assert done.last == done.first + 2
    assert running.frame() >= done.last
    assert running.play(".:2 Select:2 .:3", wait=True).cancelled is False


def test_advance_runs_exactly_these_frames(paused: Emulator) -> None:
    start = paused.frame()
    assert paused.advance() == start + 1
    assert paused.advance(4000) == start + 4001
    with paused.lockstep():
        assert paused.advance(2) == start + 4003
    with pytest.raises(framewire.InvalidRequest):
        paused.advance(0)
    paused.set_speed("unlimited")


def test_a_picture_is_that_of_the_present_frame(paused: Emulator) -> None:
    screen = paused.screen()
    assert screen.frame == paused.frame()
    assert np.asarray(screen).shape == (160, 240, 3)
    assert screen.png().startswith(b"\x89PNG")
    paused.advance(200)
    assert not np.array_equal(paused.screen().array, screen.array)


def test_sound_comes_in_one_chunk_per_frame(running: Emulator) -> None:
    with running.audio() as audio:
        chunks = [next(audio) for _ in range(5)]
    assert all(chunk.samples.shape[1] == 2 and chunk.samples.dtype == np.int16 for chunk in chunks)
    assert 8_000 <= chunks[0].rate <= 192_000
    assert sum(len(chunk.samples) for chunk in chunks) > 4 * chunks[0].rate / 60


def test_a_loaded_state_restores_memory_and_frame(paused: Emulator) -> None:
    frame = paused.frame()
    paused.write("scratch", 1)
    state = paused.save_state()
    # By default, only the states of a server include the picture.
    assert state.startswith(b"\x89PNG") == isinstance(paused, framewire.Client)
    whole = paused.save_state(31)
    assert whole.startswith(b"\x89PNG")
    paused.write("scratch", 2)
    paused.advance(10)
    assert paused.load_state(state) == frame
    assert paused.read("scratch") == 1
    assert paused.load_state(whole) == frame
    for damaged in (b"nothing", whole[: len(whole) // 2]):
        with pytest.raises(framewire.InvalidData):
            paused.load_state(damaged)
    with pytest.raises(framewire.InvalidRequest, match="use the bytes of the file"):
        paused.load_state("a.ss1")  # type: ignore[arg-type]
    assert paused.load_state(bytearray(state)) == frame  # type: ignore[arg-type]
    with pytest.raises(framewire.InvalidRequest):
        paused.save_state(32)
    assert paused.read("scratch") == 1


def test_snapshots_are_saved_loaded_changed_and_deleted(paused: Emulator) -> None:
    saved = paused.snapshots.save("before", note="three balls", replace=True)
    assert (saved.name, saved.note, saved.title, saved.frame) == ("before", "three balls", "FRAMEWIRE", paused.frame())
    with pytest.raises(framewire.Conflict, match="before"):
        paused.snapshots.save("before")
    paused.advance(5)
    assert paused.snapshots.load("before") == saved.frame
    assert paused.snapshots.change("before", new_name="after").name == "after"
    assert paused.snapshots.change("after", note="two").note == "two"
    assert [each.name for each in paused.snapshots.list()] == ["after"]
    assert paused.snapshots.screen("after").array.shape == (160, 240, 3)
    assert paused.load_state(paused.snapshots.file("after")) == saved.frame
    paused.snapshots.delete("after")
    with pytest.raises(framewire.NotFound, match="after"):
        paused.snapshots.load("after")
    with pytest.raises(framewire.InvalidRequest, match="cannot be a name"):
        paused.snapshots.save("../escape")


def test_expressions_have_values_of_each_type(paused: Emulator) -> None:
    assert paused.evaluate("lives + 1") == 4
    assert paused.evaluate("lives == 3") is True
    assert paused.evaluate("1 / (lives - 3)") is None
    paused.write_bytes("scratch", b"ab")
    assert paused.evaluate("bytes[scratch, 2]") == b"ab"
    assert paused.evaluate("bytes[0x02000000, 8]") == b"FWDEMO01"
    with pytest.raises(framewire.InvalidRequest, match="column 1"):
        paused.evaluate("scroe > 1")


def test_a_wait_ends_with_its_condition(running: Emulator) -> None:
    here = running.frame()
    waited = running.wait(f"frame >= {here + 20}")
    assert waited.frame >= here + 20
    assert running.wait("frame >= 0").frames == 0
    with pytest.raises(framewire.WaitTimeout, match="`lives == 99` did not become true in 3 frames"):
        running.wait("lives == 99", timeout_frames=3)


def test_a_watch_reports_every_change(paused: Emulator) -> None:
    with paused.watch("u32[frame]", "held") as watch:
        start = paused.frame()
        paused.press("Select")
        paused.advance(3)
        changes = [next(watch) for _ in range(5)]
    assert sorted((each.frame - start, each.expression) for each in changes) == [
        (1, "held"),
        (1, "u32[frame]"),
        (2, "held"),
        (2, "u32[frame]"),
        (3, "u32[frame]"),
    ]
    assert [(each.old, each.new) for each in changes if each.expression == "held"] == [(0, 4), (4, 0)]
    assert not any(each.gap for each in changes)
    with pytest.raises(framewire.InvalidRequest):
        paused.watch()
    with pytest.raises(framewire.InvalidRequest):
        paused.watch("scroe")


def test_a_watch_waits_for_a_change(running: Emulator) -> None:
    with running.watch("u32[frame]") as watch:
        first = next(watch)
        second = next(watch)
    assert second.frame == first.frame + 1
    assert second.old == first.new


def test_events_report_keys_states_and_resets(paused: Emulator) -> None:
    with paused.events() as events:
        timeline = paused.press("Select")
        paused.advance(2)
        state = paused.save_state()
        paused.load_state(state)
        paused.reset()
        seen = [next(events) for _ in range(3)]
    assert [each.name for each in seen] == ["input", "state", "reset"]
    assert seen[0].data["id"] == timeline.id
    assert seen[0].data["cancelled"] is False


def test_a_batch_performs_its_operations_in_order(paused: Emulator) -> None:
    start = paused.frame()
    with paused.batch() as batch:
        batch.press("Select", frames=2)
        batch.advance(2)
        held = batch.read("held")
        many = batch.read_many(["lives", "level"])
        batch.write("scratch", 9)
        scratch = batch.read_bytes("scratch", 1)
        screen = batch.screen()
        state = batch.save_state()
        with pytest.raises(framewire.FramewireError, match="has not run"):
            _ = held.value
    assert (held.value, many.value, scratch.value, batch.frame) == (4, [3, 1], b"\x09", start + 2)
    assert screen.value.array.shape == (160, 240, 3)
    assert state.value.startswith(b"\x89PNG")


def test_a_batch_ends_at_its_first_failure(paused: Emulator) -> None:
    with pytest.raises(framewire.RequestFailed, match="state") as raised, paused.batch() as batch:
        lives = batch.read("lives")
        batch.load_state(b"nothing")
        after = batch.read("level")
    assert raised.value.op == 1
    assert lives.value == 3
    with pytest.raises(framewire.FramewireError, match="not performed"):
        _ = after.value


def test_a_replay_equals_its_recording(paused: Emulator) -> None:
    with paused.record("run", every=10, note="a test", replace=True) as recording:
        paused.press("A", frames=2)
        paused.advance(50)
        paused.play("Left:20 .:5 Right:30")
        paused.advance(73)
        assert recording.info().frames <= 123
        with pytest.raises(framewire.Conflict):
            paused.record("other", replace=True)
    picture = paused.screen().array
    score = paused.read("score")
    before = paused.frame()
    paused.advance(30)
    report = paused.replay("run")
    assert report.equal, report
    assert (report.frames, report.played, report.more["pictures"]) == (123, 123, 12)
    assert paused.frame() == before
    assert paused.read("score") == score
    assert np.array_equal(paused.screen().array, picture)
    now = paused.advance(3)
    assert paused.replay("run", restore=True).equal
    assert paused.frame() == now
    with pytest.raises(framewire.Conflict):
        paused.record("run")
    with pytest.raises(framewire.NotFound):
        paused.replay("nothing")


def test_a_recording_without_a_name_is_named_by_its_time(paused: Emulator) -> None:
    with paused.record() as recording:
        paused.advance(2)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-\d{6}", recording.name)
    assert recording.stop().frames == 2


def test_a_reset_ends_a_recording(paused: Emulator) -> None:
    recording = paused.record("cut", replace=True)
    paused.advance(5)
    paused.reset()
    paused.advance(5)
    ended = recording.stop()
    assert ended.frames == 5
    assert ended.ended is not None
    assert "reset" in ended.ended


def test_a_core_and_a_server_accept_the_same_files(server: Server, tmp_path: Path) -> None:
    with framewire.connect(server.url) as client, framewire.load(DEMO, symbols=SYMBOLS) as core, client.pause():
        core.advance(80)
        with core.record("shared", start="power-on", every=20):
            core.play("A:2 .:50 Left:60 .:30", wait=True)
            core.advance(10)
        client.recordings.add("shared", core.recordings.file("shared"), replace=True)
        assert client.replay("shared").equal
        assert client.frame() == core.frame()
        assert client.read_bytes(0x02000000, 0x1000) == core.read_bytes(0x02000000, 0x1000)

        client.advance(30)
        client.snapshots.save("shared", replace=True)
        assert core.load_state(client.snapshots.file("shared")) == client.frame()
        with client.record("back", replace=True):
            client.press("Right", frames=20)
            client.advance(60)
        core.recordings.add("back", client.recordings.file("back"))
        report = core.replay("back")
        assert (report.equal, report.played) == (True, 60)


def test_a_core_can_be_copied_and_deletes_temporary_files(tmp_path: Path) -> None:
    import copy
    import pickle

    with framewire.load(DEMO, symbols=SYMBOLS) as core:
        core.advance(100)
        core.hold("Left")
        copies = [copy.deepcopy(core), pickle.loads(pickle.dumps(core))]
        core.advance(50)
        for each in copies:
            each.advance(50)
            assert each.read_bytes(0x02000000, 0x1000) == core.read_bytes(0x02000000, 0x1000)
            assert np.array_equal(each.screen().array, core.screen().array)
            each.close()
        core.snapshots.save("gone")
        folder = Path(core._folder.name)  # type: ignore[union-attr]
        assert (folder / "snapshots" / "gone.png").exists()
    assert not folder.exists()
    kept = tmp_path / "kept"
    with framewire.load(DEMO, data=kept) as core:
        core.snapshots.save("here")
    assert (kept / "snapshots" / "here.png").exists()
