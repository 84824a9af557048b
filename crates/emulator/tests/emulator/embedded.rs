//! Tests of the embedded emulator with the demo game.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use framewire_emulator::embedded::{Config, Embedded, Hardware, Mods, Options, Rom, Speed};
use framewire_emulator::{Emulator, EmulatorError, EventKind, Run};
use framewire_libmgba::Core;
use framewire_protocol::{Batch, Op, Status, Value};
use tempfile::NamedTempFile;

use crate::until_good::until_good;

use super::support::{
    DEMO, UNUSED, alone, assert_each_tap_is_a_press, assert_states_are_restored, batch, bytes, call, config,
    number, read32, refusal, rom_file, script, seconds, soon, start, submit, wait_for,
};

#[test]
fn frames_run_at_the_requested_speed() {
    let _alone = alone();
    let emulator = start(Speed::Times(1.0), false);
    wait_for("59.7 frames/s", || (emulator.state().frames_per_second - 59.7275).abs() < 0.7);
    call(&emulator, Op::SetSpeed { thousandths: 2000 });
    wait_for("twice the rate", || (emulator.state().frames_per_second - 119.455).abs() < 3.0);
    call(&emulator, Op::SetSpeed { thousandths: 0 });
    wait_for("a much higher rate", || emulator.state().frames_per_second > 300.0);
}

#[test]
fn a_paused_core_answers_but_runs_no_frames() {
    let emulator = start(Speed::Times(1.0), true);
    assert_eq!(emulator.state().run, Run::Paused);
    let before = call(&emulator, Op::CurrentFrame {});
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(call(&emulator, Op::CurrentFrame {}), before);
    call(&emulator, Op::Resume {});
    wait_for("frames", || call(&emulator, Op::CurrentFrame {}) != before);
}

#[test]
fn each_tap_is_a_separate_press() {
    assert_each_tap_is_a_press(&start(Speed::Unlimited, false));
}

#[test]
fn a_state_is_saved_and_loaded_unchanged() {
    let emulator = start(Speed::Times(1.0), false);
    assert_states_are_restored(&emulator);
    let error = refusal(&emulator, Op::LoadState { data: vec![1; 1000], flags: 29 });
    assert!(error.message.contains("not a savestate"), "{error}");
}

#[test]
fn a_batch_is_performed_in_one_frame_and_ends_with_its_first_error() {
    let emulator = start(Speed::Unlimited, false);
    let unknown = Op::DomainSize { domain: "nothing".into() };
    let outcome = batch(&emulator, vec![Op::CurrentFrame {}, Op::CurrentFrame {}, unknown, Op::Reset {}]);
    let [Ok(first), Ok(second), Err(error)] = outcome.results.as_slice() else {
        panic!("{:?}", outcome.results);
    };
    assert_eq!((first, second), (&Value::Int(outcome.frame.into()), &Value::Int(outcome.frame.into())));
    assert_eq!(error.status, Status::BadArgument);
    assert!(error.message.contains("wram"), "the error lists the domains: {error}");
}

#[test]
fn loading_a_file_that_is_not_a_rom_fails_and_the_game_continues() {
    let emulator = start(Speed::Times(1.0), false);
    let title = call(&emulator, Op::GameTitle {});
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").to_owned();
    for op in [Op::LoadRom { path: path.clone() }, Op::LoadFile { path }] {
        let error = refusal(&emulator, op);
        assert!(error.message.contains("is not a Game Boy Advance"), "{error}");
    }
    let error = refusal(&emulator, Op::LoadFile { path: "/no/such/file".into() });
    assert!(error.message.contains("/no/such/file"), "{error}");
    assert_eq!(call(&emulator, Op::GameTitle {}), title);
    let frame = call(&emulator, Op::CurrentFrame {});
    wait_for("frames", || call(&emulator, Op::CurrentFrame {}) != frame);
}

#[test]
fn an_error_contains_its_cause_only_once() {
    let emulator = start(Speed::Times(1.0), true);
    let path = "/no/such/folder/picture.png".to_owned();
    let outcome = batch(&emulator, vec![Op::ScreenshotFile { path }]);
    let Err(error) = &outcome.results[0] else { panic!("{outcome:?}") };
    assert!(error.message.contains("/no/such/folder"), "{error}");
    assert_eq!(error.message.matches("os error").count(), 1, "{error}");
}

#[test]
fn a_batch_whose_deadline_has_passed_is_not_performed() {
    let emulator = start(Speed::Times(1.0), true);
    let late = emulator.submit(Op::Write32 { address: UNUSED, value: 7 }.into(), Instant::now()).wait();
    assert!(matches!(late, Err(EmulatorError::Deadline(_))), "{late:?}");
    assert_eq!(read32(&emulator, UNUSED), 0);
}

#[test]
fn a_read_sees_every_write_that_was_submitted_before_it() {
    let emulator = start(Speed::Times(1.0), false);
    for value in 1..=20_000 {
        let write = emulator.submit(Op::Write32 { address: UNUSED, value }.into(), seconds(5.0));
        assert_eq!(read32(&emulator, UNUSED), i64::from(value));
        write.wait().expect("done");
    }
}

#[test]
fn continuous_reads_do_not_delay_frames() {
    let _alone = alone();
    let emulator = start(Speed::Times(1.0), false);
    let (over, end) = (AtomicBool::new(false), seconds(30.0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Relaxed) && Instant::now() < end {
                    call(&emulator, Op::CurrentFrame {});
                }
            });
        }
        // Measure the rate only while the reads run.
        std::thread::sleep(Duration::from_secs(1));
        wait_for("59.7 frames/s", || (emulator.state().frames_per_second - 59.7275).abs() < 1.0);
        over.store(true, Relaxed);
    });
}

#[test]
fn the_error_for_a_missing_rom_contains_its_path() {
    let rom = Rom::File("no-such-game.gba".into());
    let error =
        Embedded::start(Config { rom, ..config(Speed::Times(1.0), false, vec![]) }).err().expect("an error");
    assert!(error.to_string().contains("no-such-game.gba"), "{error}");
}

#[test]
fn an_invalid_speed_is_refused() {
    for times in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300] {
        let error = Embedded::start(config(Speed::Times(times), true, vec![])).err().expect("an error");
        assert!(error.to_string().contains("0.01 to 1000"), "{error}");
    }
    let emulator = start(Speed::Times(1.0), false);
    for thousandths in [10, 1_000_000] {
        call(&emulator, Op::SetSpeed { thousandths });
        call(&emulator, Op::CurrentFrame {});
    }
}

#[test]
fn holding_no_key_is_refused() {
    let outcome = batch(&start(Speed::Times(1.0), true), vec![Op::HoldKeys { keys: 0, frames: 1 }]);
    let Err(error) = &outcome.results[0] else { panic!("{outcome:?}") };
    assert_eq!((error.status, error.message.as_str()), (Status::BadArgument, "`keys` names no key"));
}

#[test]
fn a_repeated_batch_with_an_idempotency_key_gets_the_same_outcome_and_is_not_performed_again() {
    let emulator = start(Speed::Times(1.0), true);
    let keyed = |value, key: &str| Batch {
        key: Some(key.to_owned()),
        ..Batch::new(vec![Op::Read32 { address: UNUSED }, Op::Write32 { address: UNUSED, value }])
    };
    let done = |batch| submit(&emulator, batch).expect("an outcome");
    let first = done(keyed(1, "a"));
    call(&emulator, Op::Write32 { address: UNUSED, value: 7 });
    assert_eq!(done(keyed(1, "a")), first);
    assert_eq!(read32(&emulator, UNUSED), 7);
    assert_ne!(done(keyed(1, "b")), first);
}

#[test]
fn a_paused_core_does_not_count_as_stuck() {
    let emulator = start(Speed::Times(1.0), true);
    let later = || {
        std::thread::sleep(Duration::from_secs(3));
        emulator.state().run
    };
    // If the machine delays the core's thread for that long, the core does count as stuck.
    until_good(later, |run| *run == Run::Paused);
}

#[test]
fn the_state_is_up_to_date_after_each_batch() {
    let emulator = start(Speed::Times(1.0), true);
    let frame = || emulator.state().frame;
    assert_eq!(frame(), 0);
    call(&emulator, Op::Resume {});
    wait_for("frames", || frame() > 5);
    call(&emulator, Op::Pause {});
    wait_for("the pause", || emulator.state().run == Run::Paused);
    let paused = frame();
    let state = bytes(call(&emulator, Op::SaveState { flags: 0 }));
    batch(&emulator, vec![Op::Reset {}]);
    assert_eq!(frame(), 0);
    call(&emulator, Op::LoadState { data: state, flags: 29 });
    assert_eq!(frame(), paused);
    batch(&emulator, vec![Op::Step {}; 300_000]);
    assert!(frame() > paused, "300,000 instructions are more than a frame");
}

#[test]
fn a_game_that_a_script_loads_is_reported() {
    let mut rom = DEMO.to_vec();
    rom[0xA0..0xAC].copy_from_slice(b"ANOTHER\0\0\0\0\0");
    let (_file, path) = rom_file(&rom);
    let source = format!(
        "local done = false
         callbacks:add('frame', function()
           if not done then done = true; assert(emu:loadFile({path:?})) end
         end)"
    );
    let script = script(&source);
    let emulator = Embedded::start(config(Speed::Times(1.0), true, vec![script.path().to_owned()]))
        .expect("the script loads");
    assert_eq!(emulator.state().title.as_deref(), Some("FRAMEWIRE"));
    call(&emulator, Op::Resume {});
    wait_for("the other game", || emulator.state().title.as_deref() == Some("ANOTHER"));
}

/// A script that is stuck from its tenth frame until the file `held` is gone, but for at most 30 seconds.
fn stuck(held: &NamedTempFile) -> NamedTempFile {
    script(&format!(
        "local frames = 0
         callbacks:add('frame', function()
           frames = frames + 1
           local start = os.time()
           while frames == 10 and os.time() - start < 30 do
             local file = io.open({:?})
             if not file then return end
             file:close()
           end
         end)",
        held.path()
    ))
}

#[test]
fn a_stuck_script_delays_neither_the_deadlines_of_requests_nor_the_shutdown() {
    let measure = || {
        let held = NamedTempFile::new().expect("a file");
        let script = stuck(&held);
        let config = config(Speed::Times(1.0), false, vec![script.path().to_owned()]);
        let emulator = Embedded::start(config).expect("the script loads");
        let mut events = emulator.events();
        let mut slowest = Duration::ZERO;
        wait_for("a request without an answer", || {
            let asked = Instant::now();
            let answer = emulator.submit(Op::CurrentFrame {}.into(), seconds(0.2)).wait();
            slowest = slowest.max(asked.elapsed());
            matches!(answer, Err(EmulatorError::Deadline(text)) if text.contains("script"))
        });
        wait_for("stalled", || emulator.state().run == Run::Stalled);
        assert_eq!(emulator.state().frames_per_second, 0.0);
        assert_eq!(soon(async { events.recv().await.ok() }).kind, EventKind::Stalled);

        // Deadlines are also kept if the queue is full.
        let pending: Vec<_> =
            std::iter::repeat_with(|| emulator.submit(Op::CurrentFrame {}.into(), seconds(0.3)))
                .take(10_000)
                .collect();
        for pending in pending {
            assert!(matches!(pending.wait(), Err(EmulatorError::Deadline(_) | EmulatorError::Busy(_))));
        }
        let dropped = Instant::now();
        drop(emulator);
        (slowest, dropped.elapsed())
    };
    until_good(measure, |(request, shutdown)| {
        *request < Duration::from_secs(1) && *shutdown < Duration::from_secs(3)
    });
}

#[test]
fn an_awaited_request_ends_at_its_deadline() {
    let held = NamedTempFile::new().expect("a file");
    let script = stuck(&held);
    let config = config(Speed::Unlimited, false, vec![script.path().to_owned()]);
    let emulator = Embedded::start(config).expect("the script loads");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    wait_for("a request without an answer", || {
        let answer = runtime.block_on(emulator.submit(Op::CurrentFrame {}.into(), seconds(0.2)));
        matches!(answer, Err(EmulatorError::Deadline(_)))
    });
}

#[test]
fn the_bios_is_used_again_after_a_game_of_the_other_console() {
    // Each vector is a branch. The branch of a reset leads to this code: mov r0, #0x02000000; mov r1, #0x63;
    // strb r1, [r0, #0x100]; mov pc, #0x08000000.
    let mut bios = vec![0; 0x4000];
    for vector in bios[..0x1C].as_chunks_mut::<4>().0 {
        *vector = 0xEA00_0006u32.to_le_bytes();
    }
    for (index, word) in [0xE3A0_0402u32, 0xE3A0_1063, 0xE5C0_1100, 0xE3A0_F302].into_iter().enumerate() {
        bios[0x20 + 4 * index..][..4].copy_from_slice(&word.to_le_bytes());
    }
    let (bios, _) = rom_file(&bios);
    let mut rom = DEMO.to_vec();
    // mGBA runs a BIOS only if the game's logo has the checksum of the real one. With these bytes, the empty logo has
    // this checksum.
    rom[0x9C..0xA0].copy_from_slice(&0x7858_84D1u32.to_le_bytes());
    let (file, game) = rom_file(&rom);
    let mut other = vec![0; 0x8000];
    other[0x104..0x108].copy_from_slice(&[0xCE, 0xED, 0x66, 0x66]);
    let (_other, other) = rom_file(&other);

    let hardware = Hardware { bios: Some(bios.path().to_owned()), ..Hardware::default() };
    let mods = Mods { options: Options { hardware, ..Options::default() }, ..Mods::default() };
    let rom = Rom::File(file.path().to_owned());
    let emulator = Embedded::start(Config { rom, mods, ..config(Speed::Times(1.0), true, vec![]) })
        .expect("the game starts");
    let mark = || {
        call(&emulator, Op::Advance { frames: 3 });
        number(call(&emulator, Op::Read8 { address: 0x0200_0100 }))
    };
    assert_eq!(mark(), 0x63);
    for path in [other, game] {
        call(&emulator, Op::LoadRom { path });
    }
    assert_eq!(mark(), 0x63, "after a game for the Game Boy");
}

/// The picture and the state after 1,000 frames with pseudorandom keys from `seed`.
fn play(seed: u32) -> (Vec<u8>, Vec<u8>) {
    let mut core = Core::from_bytes(DEMO).expect("the demo game");
    core.reset();
    let mut state = seed;
    for frame in 0..1000 {
        if frame % 5 == 0 {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            // All keys except Start, which begins a new game after the last ball.
            core.set_keys((state >> 16) as u16 & 0x3F7);
        }
        core.run_frame();
    }
    let picture = core.screenshot_png().expect("a picture");
    (picture, core.save_state(0).expect("a state"))
}

#[test]
fn the_same_keys_give_the_same_frames() {
    let first = play(1);
    let again = play(1);
    assert!(first.0 == again.0, "the picture differs with the same keys");
    assert!(first.1 == again.1, "the state differs with the same keys");
    assert!(first.1 != play(2).1, "the keys have no effect");
}
