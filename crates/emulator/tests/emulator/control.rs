//! Tests of the operations that run, pause, reset and load games in an embedded core.

use std::time::{Duration, Instant};

use framewire_emulator::embedded::Speed;
use framewire_emulator::{Embedded, Emulator, EventKind, Pending, Run, SetSpeed};
use framewire_expression::{Code, NoNames};
use framewire_protocol::run::{self, RunStep, RunSteps};
use framewire_protocol::wire::Wire;
use framewire_protocol::{Batch, KeyStep, Op, Status, Value, timeline};
use tokio::sync::broadcast::Receiver;

use crate::until_good::until_good;

use super::support::{
    DEMO, UNUSED, alone, batch, bytes, call, config, number, read32, rebuilt, refusal, rom_file, run_of,
    run_step, script, seconds, soon, start, wait_for,
};

fn frame(emulator: &impl Emulator) -> i64 {
    number(call(emulator, Op::CurrentFrame {}))
}

fn next(events: &mut Receiver<framewire_emulator::Event>) -> EventKind {
    soon(async { events.recv().await.ok() }).kind
}

#[test]
fn lockstep_does_not_end_during_a_run() {
    let emulator = start(Speed::Times(1.0), false); // here and below: `true` starts the emulator paused
    let mut events = emulator.events();
    // The run takes much longer than the time-out.
    let long = Batch::new(vec![Op::Lockstep { timeout: 20 }, run_of(3000)]);
    let outcome = emulator.submit(long, seconds(60.0)).wait().expect("an outcome");
    assert_eq!(outcome.results.len(), 2);
    let over = loop {
        let event = soon(async { events.recv().await.ok() });
        if event.kind == EventKind::LockstepOver {
            break event;
        }
    };
    assert_eq!(over.frame, outcome.frame);
}

#[test]
fn advance_runs_frames_within_a_batch() {
    let emulator = start(Speed::Times(1.0), true);
    let at = || Op::CurrentFrame {};
    let outcome = batch(
        &emulator,
        vec![at(), Op::Advance { frames: 1 }, at(), Op::Advance { frames: 59 }, at(), Op::GetKeys {}],
    );
    let values: Vec<i64> =
        outcome.results.into_iter().map(|result| number(result.expect("a value"))).collect();
    assert_eq!((values.as_slice(), outcome.frame), (&[0, 1, 1, 60, 60, 0][..], 60));
    assert_eq!(emulator.state().run, Run::Paused);
    assert_eq!(frame(&emulator), 60);
}

#[test]
fn a_batch_runs_at_most_3600_frames() {
    let emulator = start(Speed::Times(1.0), true);
    for frames in [0, 3601, u32::MAX] {
        assert_eq!(refusal(&emulator, Op::Advance { frames }).status, Status::BadArgument);
    }
    let half = || Op::Advance { frames: 1800 };
    let outcome = batch(&emulator, vec![half(), half(), Op::Advance { frames: 1 }]);
    let (index, error) = outcome.refusal().expect("a refusal");
    assert!(
        error.message.contains("1 to 3600 frames, and the operations before this one run 3600"),
        "{error}"
    );
    assert_eq!((index, outcome.frame), (2, 0), "no frame has run");
    let long = Batch::new(vec![half(), half()]);
    let outcome = emulator.submit(long, seconds(60.0)).wait().expect("an outcome");
    assert_eq!((outcome.results.len(), outcome.frame), (2, 3600));
    call(&emulator, Op::Advance { frames: 1 });
}

#[test]
fn a_run_ends_in_its_frame_even_if_another_batch_runs_more_frames() {
    // At this speed, both batches arrive before the next frame.
    let emulator = start(Speed::Times(0.05), false);
    let first = emulator.submit(Batch::new(vec![run_of(1), Op::Advance { frames: 1 }]), seconds(10.0));
    let second = emulator.submit(Batch::new(vec![run_of(1)]), seconds(10.0));
    let ends = second.wait().expect("an outcome").single().expect("a value");
    let ends = run::decode_ends(&bytes(ends)).expect("ends");
    assert_eq!((ends[0].why, ends[0].frames), (run::EndReason::Frames, 1), "{ends:?}");
    assert_eq!(first.wait().expect("an outcome").results.len(), 2);
}

/// Begins two batches, whose runs end when the byte at [`UNUSED`] is 7. After its run, the first one advances 100 frames,
/// and the second one looks at the frame counter.
fn two_runs(emulator: &Embedded) -> [Pending; 2] {
    let condition = Code::parse(&format!("u8[{UNUSED:#x}] == 7"), &NoNames).expect("an expression");
    let step = RunStep { frames: 200_000, until: vec![condition.encode()], ..RunStep::default() };
    let after_run = |op| Batch::new(vec![run_step(step.clone()), op]);
    [Op::Advance { frames: 100 }, Op::CurrentFrame {}].map(|op| emulator.submit(after_run(op), seconds(20.0)))
}

#[test]
fn an_advance_after_a_run_adds_no_frames_to_other_batches() {
    let emulator = start(Speed::Times(1.0), false);
    let [advances, looks] = two_runs(&emulator);
    // Both runs end in the first frame of this batch's `advance`.
    let ends = Batch::new(vec![
        Op::CurrentFrame {},
        Op::Write8 { address: UNUSED, value: 7 },
        Op::Advance { frames: 50 },
        Op::CurrentFrame {},
    ]);
    let values = |pending: Pending| pending.wait().expect("an outcome").results;
    let ends = values(emulator.submit(ends, seconds(20.0)));
    let first = number(ends[0].clone().expect("a value"));
    assert_eq!(ends[3], Ok(Value::Int(first + 50)));
    assert_eq!(values(looks)[1], Ok(Value::Int(first + 1)));
    assert_eq!(values(advances)[1], Ok(Value::Int(first + 150)));
}

#[test]
fn an_advance_after_a_run_waits_for_the_operations_after_other_runs() {
    let emulator = start(Speed::Times(1.0), false);
    let [advances, looks] = two_runs(&emulator);
    let write = batch(&emulator, vec![Op::Write8 { address: UNUSED, value: 7 }]);
    let looks = looks.wait().expect("an outcome").results;
    assert_eq!(looks[1], Ok(Value::Int(i64::from(write.frame) + 1)));
    let advances = advances.wait().expect("an outcome").results;
    assert_eq!(advances[1], Ok(Value::Int(i64::from(write.frame) + 101)));
}

#[test]
fn pause_set_speed_and_resume_work() {
    let _alone = alone();
    let emulator = start(Speed::Times(1.0), false);
    let mut events = emulator.events();
    call(&emulator, Op::Pause {});
    let before = frame(&emulator);
    assert_eq!((emulator.state().run, next(&mut events)), (Run::Paused, EventKind::Paused));
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(frame(&emulator), before);
    call(&emulator, Op::SetSpeed { thousandths: 4000 });
    assert_eq!(emulator.state().speed, Some(SetSpeed::Times(4.0)));
    call(&emulator, Op::Resume {});
    assert_eq!((emulator.state().run, next(&mut events)), (Run::Running, EventKind::Running));
    wait_for("four times as fast", || (emulator.state().frames_per_second - 238.9).abs() < 10.0);
    call(&emulator, Op::SetSpeed { thousandths: 0 });
    assert_eq!(emulator.state().speed, Some(SetSpeed::Unlimited));
    wait_for("much faster", || emulator.state().frames_per_second > 300.0);
    let error = refusal(&emulator, Op::SetSpeed { thousandths: 9 });
    assert!(error.message.contains("10 to 1000000"), "{error}");
}

#[test]
fn lockstep_waits_for_each_advance() {
    let emulator = start(Speed::Unlimited, false);
    wait_for("frames", || frame(&emulator) > 10);
    call(&emulator, Op::Lockstep { timeout: 10_000 });
    assert!(emulator.state().lockstep && emulator.state().run == Run::Paused);
    let first = frame(&emulator);
    for count in 1..=50 {
        assert_eq!(call(&emulator, Op::Advance { frames: 1 }), Value::Int(first + count));
    }
    call(&emulator, Op::Resume {});
    assert!(!emulator.state().lockstep);
    wait_for("frames", || frame(&emulator) > first + 60);
    assert_eq!(refusal(&emulator, Op::Lockstep { timeout: 60_001 }).status, Status::BadArgument);
}

#[test]
fn lockstep_ends_without_requests() {
    let emulator = start(Speed::Times(1.0), false);
    let mut events = emulator.events();
    let measure = || {
        let begun = Instant::now();
        call(&emulator, Op::Lockstep { timeout: 1000 });
        assert_eq!(next(&mut events), EventKind::Paused);
        // In total, this takes longer than the time-out, but the times between two requests are shorter.
        let (mut asked, mut kept) = (begun, true);
        while kept && begun.elapsed() < Duration::from_millis(1500) {
            let before = asked;
            asked = Instant::now();
            call(&emulator, Op::GetKeys {});
            kept = emulator.state().lockstep;
            let between = before.elapsed();
            assert!(kept || between > Duration::from_millis(900), "{between:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(next(&mut events), EventKind::LockstepOver);
        let waited = asked.elapsed();
        assert!(!kept || waited > Duration::from_millis(900), "{waited:?}");
        assert_eq!(next(&mut events), EventKind::Running);
        assert!(!emulator.state().lockstep && emulator.state().run == Run::Running);
        kept
    };
    // On a busy machine, the time between two requests can be longer than the time-out.
    until_good(measure, |kept| *kept);
}

#[test]
fn resets_and_other_games_are_reported() {
    let emulator = start(Speed::Times(1.0), true);
    let mut events = emulator.events();
    call(&emulator, Op::Reset {});
    assert_eq!(next(&mut events), EventKind::Reset);
    let mut rom = DEMO.to_vec();
    rom[0xA0..0xAC].copy_from_slice(b"ANOTHER\0\0\0\0\0");
    let (_file, path) = rom_file(&rom);
    assert_eq!(call(&emulator, Op::LoadRom { path }), Value::Bool(true));
    assert_eq!(next(&mut events), EventKind::Reset);
    let EventKind::Game { title, .. } = next(&mut events) else { panic!("another game") };
    assert_eq!(title.as_deref(), Some("ANOTHER"));
}

/// A developer builds a game again and loads it. Its title and code are the same.
#[test]
fn a_rebuilt_rom_and_a_loaded_state_are_reported() {
    let emulator = start(Speed::Times(1.0), true);
    let mut events = emulator.events();
    let before = emulator.state().checksum;
    let rom = rebuilt();
    let (_file, path) = rom_file(&rom);
    assert_eq!(call(&emulator, Op::LoadRom { path }), Value::Bool(true));
    assert_eq!(next(&mut events), EventKind::Reset);
    let EventKind::Game { title, checksum, .. } = next(&mut events) else { panic!("another game") };
    assert_eq!((title.as_deref(), checksum), (Some("FRAMEWIRE"), Some(crc32fast::hash(&rom))));
    assert_eq!(emulator.state().checksum, checksum);
    assert_ne!(checksum, before);
    let Value::Bytes(data) = call(&emulator, Op::SaveState { flags: 0 }) else { panic!("a state") };
    assert_eq!(call(&emulator, Op::LoadState { data, flags: 0 }), Value::Bool(true));
    assert_eq!(next(&mut events), EventKind::State);
    let error = refusal(&emulator, Op::LoadState { data: vec![1], flags: 0 });
    assert!(error.message.contains("not a savestate"), "{error}");
    call(&emulator, Op::Reset {});
    assert_eq!(next(&mut events), EventKind::Reset, "there is no event for the refused state");
}

#[test]
fn resets_and_loaded_states_of_a_script_are_reported() {
    let code = "callbacks:add('frame', function()
        local frame = emu:currentFrame()
        if frame == 5 then state = emu:saveStateBuffer(0) end
        if frame == 8 then emu:loadStateBuffer(state, 0) end
        if frame == 7 and state then
            times = (times or 0) + 1
            if times == 2 then emu:reset() end
        end
    end)";
    let script = script(code);
    let config = config(Speed::Times(1.0), true, vec![script.path().to_owned()]);
    let emulator = Embedded::start(config).expect("a core");
    let mut events = emulator.events();
    call(&emulator, Op::Advance { frames: 12 });
    assert_eq!((next(&mut events), next(&mut events)), (EventKind::State, EventKind::Reset));
}

#[test]
fn a_run_that_no_client_waits_for_ends_even_while_the_game_is_paused() {
    let emulator = start(Speed::Times(1.0), false);
    let right = |frames| vec![KeyStep { offset: 0, keys: 0x10 }, KeyStep { offset: frames, keys: 0 }];
    let step = RunStep { frames: 600, keys: right(600), ..RunStep::default() };
    let run = emulator.submit(run_step(step).into(), seconds(5.0));
    let keys = || number(call(&emulator, Op::GetKeys {}));
    wait_for("the key to be down", || keys() == 0x10);
    call(&emulator, Op::Pause {});
    drop(run);
    wait_for("the key to be up", || keys() == 0);
    call(&emulator, Op::PlayKeys { steps: timeline::encode(&right(2)) });
}

#[test]
fn a_run_that_fails_after_frames_is_not_performed_again_with_the_same_key() {
    let emulator = start(Speed::Times(1.0), true);
    let press = |keys, frames| vec![KeyStep { offset: 0, keys }, KeyStep { offset: frames, keys: 0 }];
    let later = timeline::encode(&[KeyStep { offset: 40, keys: 2 }, KeyStep { offset: 50, keys: 0 }]);
    call(&emulator, Op::PlayKeys { steps: later });
    let step = |keys| RunStep { frames: 5, keys: press(keys, 5), ..RunStep::default() };
    let steps = RunSteps { stop: vec![], steps: vec![step(1), step(2)] }.to_bytes();
    let run = || Batch { key: Some("k".to_owned()), ..Op::Run { steps: steps.clone() }.into() };
    let first = emulator.submit(run(), seconds(5.0)).wait().expect("an outcome");
    let error = first.clone().single().expect_err("the timeline has the key of the second step");
    assert!(error.message.starts_with("timeline "), "{error}");
    let end = frame(&emulator);
    assert_eq!(emulator.submit(run(), seconds(5.0)).wait().expect("an outcome"), first);
    assert_eq!(frame(&emulator), end);
}

#[test]
fn a_run_ends_if_another_game_is_loaded() {
    let emulator = start(Speed::Times(1.0), false);
    let steps = vec![KeyStep { offset: 0, keys: 1 }, KeyStep { offset: 600, keys: 0 }];
    let step = RunStep { frames: 600, keys: steps, ..RunStep::default() };
    let write = Op::Write32 { address: UNUSED, value: 7 };
    let run = emulator.submit(Batch::new(vec![run_step(step), write]), seconds(15.0));
    let keys = || number(call(&emulator, Op::GetKeys {}));
    wait_for("the key to be down", || keys() == 1);
    let (_file, path) = rom_file(&rebuilt());
    call(&emulator, Op::LoadRom { path });
    let error = run.wait().expect("an outcome").single().expect_err("another game");
    assert_eq!(error.message, run::OTHER_GAME);
    assert_eq!((keys(), read32(&emulator, UNUSED)), (0, 0));
}
