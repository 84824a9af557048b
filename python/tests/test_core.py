"""An emulator in this process, running the demo game."""

from __future__ import annotations

import copy
import pickle
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import framewire.envs
from framewire import search
from framewire.core import Core, load
from framewire.errors import Conflict, FramewireError, InvalidData, InvalidRequest, RomError, WaitTimeout

DATA = Path(__file__).resolve().parent.parent / "framewire" / "data"


@pytest.fixture
def game() -> Iterator[Core]:
    with load(DATA / "framewire-demo.gba", symbols=DATA / "memory-map.toml") as core:
        core.advance(60)
        yield core


def test_memory_is_read_and_written_by_name_and_address(game: Core) -> None:
    game.write("score", 1234)
    assert game.read("score") == game.read(0x02000044, "u32") == game.memory["score"] == 1234
    assert game.read(0x44, "u16", domain="wram") == 1234
    assert game.memory[0x02000044:0x02000048] == (1234).to_bytes(4, "little")
    game.memory["presses"] = np.arange(10)
    assert game.memory["presses"].tolist() == list(range(10))
    assert game.read("presses[3]") == 3
    game.write_bytes(0x100, b"abc", domain="wram")
    assert game.read_bytes("scratch", 3) == b"abc"
    assert game.symbols("score")["high_score"].type == "u32"


def test_keys_are_held_in_exactly_their_frames(game: Core) -> None:
    first = game.read("frame")
    game.play("A:2 .:3 Up+B:1", wait=True)
    with game.hold("Left"):
        game.advance(2)
    game.press("Right", wait=True)
    game.advance()
    log = game.read_array("key_log", "u16", 2048)
    held = [int(log[(first + 1 + frame) % 2048]) for frame in range(10)]
    assert held == [1, 1, 0, 0, 0, 0x42, 0x20, 0x20, 0x10, 0]


def test_the_end_of_held_keys_reports_the_presses_that_it_ends(game: Core) -> None:
    with game.events() as events:
        with game.hold("B"):
            timeline = game.press("B", frames=100)
        frame = game.frame()
        event = events.next()
    assert (event.name, event.data["id"], event.data["cancelled"]) == ("input", timeline.id, True)
    assert game.frame() == frame


def test_frames_that_are_not_drawn_have_no_picture_and_the_same_state(game: Core) -> None:
    start = game.save_state()
    game.advance(30)
    state, picture = game.save_state(), game.screen().array.tobytes()
    game.load_state(start)
    assert game.advance(29, draw=False) == game.frame()
    with pytest.raises(Conflict, match=r"draw=False.*draw=True"):
        game.screen()
    game.advance()
    assert (game.save_state(), game.screen().array.tobytes()) == (state, picture)
    with game.batch() as batch:
        batch.advance(5, draw=False)
    with pytest.raises(Conflict, match="draw=False"):
        game.screen()
    game.load_state(state)
    game.screen()


def test_a_loaded_state_a_snapshot_and_a_copy_show_their_picture(game: Core) -> None:
    state, picture = game.save_state(31), game.screen().array.tobytes()
    game.snapshots.save("now")
    game.advance(100)
    assert game.screen().array.tobytes() != picture
    with copy.deepcopy(game) as copied:
        assert copied.screen().array.tobytes() == game.screen().array.tobytes()
    game.load_state(state)
    assert game.screen().array.tobytes() == picture
    game.advance(100)
    game.snapshots.load("now")
    assert game.screen().array.tobytes() == picture


def test_the_same_game_keeps_frozen_numbers_and_keys_when_it_is_loaded_again(game: Core) -> None:
    game.freeze("lives", 7)
    game.freeze(0x02000100, 5)
    game.hold("B")
    game.load(DATA / "framewire-demo.gba")
    game.advance(30)
    assert (game.read("lives"), game.read(0x02000100), game.read("held")) == (7, 5, 0b10)
    assert game.unfreeze("0x2000100")
    assert [each["address"] for each in game.frozen()] == ["lives"]


def test_symbols_of_another_game_are_refused(game: Core, tmp_path: Path) -> None:
    (tmp_path / "game.gb").write_bytes(game_boy())
    game.load(tmp_path / "game.gb")
    with pytest.raises(InvalidRequest, match="the symbols are for another game: FRAMEWIRE"):
        game.read("score")
    game.load(DATA / "framewire-demo.gba")
    game.advance(60)
    assert game.read("lives") == 3


def test_memory_that_a_game_boy_does_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "game.gb").write_bytes(game_boy())
    with load(tmp_path / "game.gb") as core:
        for refused in (
            lambda: core.read(0xFFFF, "u16"),
            lambda: core.evaluate("u16[0xFFFF]"),
            lambda: core.evaluate("bytes[0xFFF0, 32]"),
            lambda: core.watch("text[wram:32760, 20]"),
            lambda: core.read_bytes(32760, 20, domain="wram"),
            lambda: core.read_bytes(0xFFF0, 0x20),
            lambda: core.find(bytes=b"\0", areas=[{"address": 0xFFF0, "length": 0x40}]),
            lambda: core.find(pointer_to=0x1C000),
        ):
            with pytest.raises(InvalidRequest):
                refused()
        assert len(core.read_bytes(0xFFF0, 0x10)) == 16


def test_sound_that_was_closed_runs_no_frame(game: Core) -> None:
    audio = game.audio()
    audio.next()
    audio.close()
    frame = game.frame()
    with pytest.raises(FramewireError, match="was closed"):
        audio.next()
    assert game.frame() == frame


def test_the_error_of_a_sound_says_that_another_game_was_loaded(game: Core) -> None:
    audio = game.audio()
    audio.next()
    game.load(DATA / "framewire-demo.gba")
    with pytest.raises(FramewireError, match="another game was loaded; call audio"):
        audio.next()
    audio.close()
    with game.audio() as again:
        assert len(again.next().samples) > 0


def test_a_core_that_loaded_a_state_without_its_save_frees_its_memory(game: Core) -> None:
    state = game.save_state()

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    def use() -> None:
        with load(DATA / "framewire-demo.gba") as core:
            core.load_state(state, 29)

    for _ in range(20):
        use()
    before = resident()
    for _ in range(200):
        use()
    assert resident() - before < 3_000_000  # 200 leaked saves of 32 KiB would take 6.5 MB


def test_a_watch_that_was_closed_runs_no_frame(game: Core) -> None:
    watch = game.watch("u32[frame]")
    watch.next()
    watch.close()
    frame = game.frame()
    with pytest.raises(FramewireError, match="was closed"):
        watch.next()
    assert game.frame() == frame


def test_watches_events_and_sound_can_be_closed_after_their_core(game: Core) -> None:
    with game, game.watch("lives"), game.events(), game.audio():
        game.close()


def test_a_closed_core_makes_no_new_folder(game: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    game.snapshots.save("one")
    assert list(tmp_path.iterdir())
    game.close()
    for use in (game.snapshots.list, game.recordings.list, game.record):
        with pytest.raises(InvalidRequest, match="the emulator is closed"):
            use()
    assert not list(tmp_path.iterdir())


def test_close_wakes_a_thread_that_waits_for_a_change(game: Core) -> None:
    changes = game.watch("scratch[9]")
    errors: list[FramewireError] = []

    def wait() -> None:
        with pytest.raises(FramewireError, match="the watch was closed") as caught:
            changes.next(timeout=20)
        errors.append(caught.value)

    thread = Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    changes.close()
    thread.join(5)
    assert len(errors) == 1


def test_the_clock_follows_this_machine_again_after_a_recording_and_a_replay(tmp_path: Path) -> None:
    rom = Path(__file__).resolve().parents[2] / "rom"
    subprocess.run(["make", "--silent", "-C", rom, "clocks", f"BUILD={tmp_path}"], check=True)

    def ahead(core: Core) -> float:
        """How many seconds the time that the game reads from its clock is ahead of this machine's."""
        core.advance(3)
        # Each byte is a number of two decimal digits in BCD.
        year, month, day, _, hour, minute, second = (int(f"{byte:x}") for byte in core.read_bytes(0x02000000, 7))
        shown = datetime(2000 + year, month, day, hour & 0x3F, minute, second)
        return (shown - datetime.now()).total_seconds()

    with load(tmp_path / "clock.gba", data=tmp_path / "data") as core:
        assert abs(ahead(core)) < 30
        with core.record("run"):
            core.advance(7200)
            assert ahead(core) > 60
        assert abs(ahead(core)) < 30
        assert core.replay("run").equal
        assert abs(ahead(core)) < 30


def test_a_recording_that_cannot_be_stored_is_not_lost(tmp_path: Path) -> None:
    with load(DATA / "framewire-demo.gba", data=tmp_path) as core:
        with core.record("first"):
            core.advance(3)
        recording = core.record("second")
        core.advance(5)
        core.recordings.add("second", core.recordings.file("first"))
        with pytest.raises(Conflict):
            recording.stop()
        recording.name = "third"
        assert recording.stop().frames == 5
        assert core.recordings.info("third").frames == 5


def test_closing_the_core_keeps_the_recording(tmp_path: Path) -> None:
    with load(DATA / "framewire-demo.gba", data=tmp_path) as core:
        recording = core.record("unstopped")
        core.advance(100)
    assert (recording.info().frames, recording.info().ended) == (100, "stopped")
    with load(DATA / "framewire-demo.gba", data=tmp_path) as core:
        assert core.recordings.info("unstopped").frames == 100
        assert core.replay("unstopped").equal


def test_a_recording_that_closing_the_core_cannot_store_is_not_lost(tmp_path: Path) -> None:
    core = load(DATA / "framewire-demo.gba", data=tmp_path)
    with core.record("first"):
        core.advance(3)
    recording = core.record("second")
    core.advance(5)
    core.recordings.add("second", core.recordings.file("first"))
    with pytest.raises(Conflict):
        core.close()
    with pytest.raises(InvalidRequest, match="closed"):
        core.frame()
    core.close()
    recording.name = "third"
    assert recording.stop().frames == 5


def test_a_recording_has_the_pictures_of_frames_that_the_program_does_not_draw(game: Core) -> None:
    with game.record("undrawn", every=10):
        game.advance(60, draw=False)
    report = game.replay("undrawn")
    assert (report.equal, report.frames) == (True, 60)


def test_a_wait_ends_in_the_first_frame_in_which_its_condition_is_true(game: Core) -> None:
    until = game.read("frame") + 7
    assert game.wait(f"frame >= {game.frame() + 5}").frames == 5
    # In expressions, `frame` is the emulator's frame counter, not the symbol `frame`.
    waited = game.wait(f"u32[0x02000008] == {until}")
    assert (waited.frames, game.read("frame")) == (2, until)
    with pytest.raises(WaitTimeout, match="in 3 frames"):
        game.wait("lives == 99", timeout_frames=3)


def test_next_does_not_run_forever_if_its_timeout_is_not_a_number(game: Core) -> None:
    with game.events() as events, game.watch("lives == 99") as changes:
        for stream in (events, changes):
            with pytest.raises(WaitTimeout):
                stream.next(timeout=float("nan"))


def test_states_are_equal_after_the_same_inputs(game: Core) -> None:
    state = game.save_state()
    pictures = []
    for _ in range(2):
        game.load_state(state)
        game.play("Left:20 A:2 .:30 B:1", wait=True)
        pictures.append((game.screen().array.tobytes(), game.save_state()))
    assert pictures[0] == pictures[1]
    assert game.screen().array.shape == (160, 240, 3)
    with pytest.raises(InvalidData):
        game.load_state(state[:1000])
    assert game.save_state() == pictures[1][1], "a refused state must change nothing"


def test_cores_run_at_the_same_time_on_threads() -> None:
    def run(results: list[bytes]) -> None:
        with load(DATA / "framewire-demo.gba", clock=datetime(2026, 1, 1, tzinfo=timezone.utc)) as core:
            core.advance(300)
            results.append(core.save_state())

    results: list[bytes] = []
    threads = [Thread(target=run, args=(results,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert len(set(results)) == 1


def test_sound_comes_with_frames(game: Core) -> None:
    with game.audio() as audio:
        game.advance(2)
        frame = game.frame()
        chunks = [audio.next(), audio.next()]
        assert game.frame() == frame
        chunks.append(next(audio))
        assert game.frame() == frame + 1
    samples = sum(len(chunk.samples) for chunk in chunks)
    assert abs(samples - 3 * game.sample_rate / 59.7275) < 10
    assert chunks[0].missed == 0


def test_bad_input_says_what_is_accepted(game: Core, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match='did you mean "score"'):
        game.read("scroe")
    with pytest.raises(InvalidRequest, match="70000 does not fit u16; use a number from 0 to 65535"):
        game.write("lives", 70000)
    with pytest.raises(InvalidRequest, match="value is 18446744073709551616; use a number from"):
        game.write("lives", 2**64)
    with pytest.raises(InvalidRequest, match=r"frame is 1000.*; use a number from 0 to 4294967295"):
        game.screen(frame=10**30)
    with pytest.raises(InvalidRequest, match="areas contains 'wram'; use dictionaries"):
        game.find(text="A", areas=["wram"])  # type: ignore[list-item]
    for number in (10**39, "1"):
        with pytest.raises(InvalidRequest, match=f"float is {number!r}; use a number that a 32-bit float can have"):
            game.find(float=number)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="'X' is not a key"):
        game.press("X")
    with pytest.raises(InvalidRequest, match="is not a press"):
        game.play("A:0")
    with pytest.raises(InvalidRequest, match="no memory domain"):
        game.read_bytes(0, 1, domain="nowhere")
    with pytest.raises(InvalidRequest, match="column 1"):
        game.evaluate("scroe > 1")
    game.close()
    with pytest.raises(InvalidRequest, match="closed"):
        game.advance()
    text = tmp_path / "text.gba"
    text.write_text("not a ROM")
    with pytest.raises(RomError):
        load(text)
    with pytest.raises(OSError, match=r"missing\.gba"):
        load(tmp_path / "missing.gba")


def game_boy() -> bytes:
    """A Game Boy ROM that does nothing."""
    rom = bytearray(0x8000)
    rom[0x100:0x104] = bytes.fromhex("00c35001")
    rom[0x104:0x108] = bytes.fromhex("ceed6666")
    rom[0x150:0x152] = bytes.fromhex("18fe")
    return bytes(rom)


def test_a_game_is_patched_and_has_cheats(tmp_path: Path) -> None:
    patch, cheats = tmp_path / "game.ips", tmp_path / "game.cheats"
    patch.write_bytes(b"PATCH" + bytes.fromhex("0000a00004") + b"MINE" + b"EOF")
    cheats.write_text("# Mark\n02030000:63\n")
    with load(DATA / "framewire-demo.gba", patch=patch, cheats=cheats, save_type="flash1m") as core:
        core.advance(2)
        assert core.info().title == "MINEEWIRE"
        assert core.read(0x02030000) == 0x63
        assert len(core.read_bytes(0x1FFF0, 16, domain="sram")) == 16
        with pytest.raises(Conflict, match="recordings do not hold cheats"):
            core.record("run")
        copied = pickle.loads(pickle.dumps(core))
        assert copied.info().title == "MINEEWIRE"
        copied.close()
        # Another game gets neither the patch nor the cheats.
        other = tmp_path / "other.gba"
        other.write_bytes((DATA / "framewire-demo.gba").read_bytes())
        core.load(other)
        core.advance(2)
        assert (core.info().title, core.read(0x02030000)) == ("FRAMEWIRE", 0)


def test_relative_paths_keep_their_meaning_when_the_program_changes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rom, symbols = "framewire-demo.gba", "memory-map.toml"
    for name in ("demo.toml", rom, symbols):
        shutil.copy(DATA / name, tmp_path)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    env = framewire.envs.make("demo.toml", "memory", rom=rom)
    env.reset(seed=1)
    runner = search.Explorer("demo.toml", "memory", rom=rom, cell="lives")
    with load(rom, symbols=symbols, data="data") as core:
        monkeypatch.chdir(tmp_path / "other")
        copy.deepcopy(env).close()
        copy.deepcopy(runner)
        copy.deepcopy(core).close()
        core.snapshots.save("now")
    env.close()
    assert not list((tmp_path / "other").iterdir())
    assert list((tmp_path / "data").iterdir())


def test_a_copy_keeps_frozen_numbers(game: Core) -> None:
    game.freeze("lives", 7)
    game.freeze(0x02000100, 0x1234, "u16")
    for copied in (copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
        assert copied.frozen() == game.frozen()
        copied.advance(30)
        assert (copied.read("lives"), copied.read(0x02000100, "u16")) == (7, 0x1234)
        copied.close()
    # A value that the program writes over a frozen one stays until the next frame, in a copy as well.
    game.write("lives", 1)
    with copy.deepcopy(game) as copied:
        assert (copied.read("lives"), copied.save_state()) == (1, game.save_state())
    # A core can be copied even if the pointer of a frozen number leads nowhere.
    game.write(0x02000110, 0x02000120, "u32")
    game.freeze("u32[0x02000110] + 0", 7, "u8")
    game.write(0x02000110, 0, "u32")
    copy.deepcopy(game).close()


def test_a_batch_that_broke_off_is_not_performed_again(game: Core) -> None:
    frame = game.frame()
    with game.batch() as batch:
        batch.advance()
        batch.read("lives", domain=5)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            batch.run()
    assert game.frame() == frame + 1


def test_a_copy_does_not_hold_the_keys_of_a_press_forever() -> None:
    with load(DATA / "framewire-demo.gba", symbols=DATA / "memory-map.toml") as core:
        core.advance(30)
        core.hold("B")
        core.press("A", frames=5)
        core.advance(2)
        assert core.read("held") == 0b11
        copied = pickle.loads(pickle.dumps(core))
        copied.advance(2)
        assert copied.read("held") == 0b10
        copied.close()


def test_a_game_boy_has_a_model_and_colours(tmp_path: Path) -> None:
    rom = tmp_path / "game.gb"
    rom.write_bytes(game_boy())

    def shape(**options: Any) -> tuple[int, ...]:
        with load(rom, **options) as core:
            core.advance(3)
            return core.screen().array.shape

    assert shape() == (144, 160, 3)
    assert shape(gb_model="sgb") == (224, 256, 3)
    assert shape(gb_model="sgb", sgb_borders=False) == (144, 160, 3)
    with load(rom, gb_model="dmg", gb_palette="f80000,00f800,0000f8,081820") as core:
        core.advance(3)
        assert core.screen().array[0, 0].tolist()[1:] == [0, 0]
    for options, message in (
        ({"gb_model": "vcs"}, 'gb_model is "vcs": a model of the Game Boy is one of dmg'),
        ({"gb_palette": "red"}, 'gb_palette is "red": a palette is four colours'),
        ({"save_type": "disk"}, 'save_type is "disk": the type of a save is one of auto'),
        ({"gb_palette": ["f80000"]}, "gb_palette is .*; use a text or None"),
        ({"clock": "2026-01-31T12:00:00"}, "clock is '2026-01-31T12:00:00'; use a datetime"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            load(rom, **options)
    with pytest.raises(RomError, match="is not a BIOS"):
        load(DATA / "framewire-demo.gba", bios=rom)
    with pytest.raises(OSError, match="cannot read"):
        load(rom, cheats=[tmp_path / "none.cheats"])
