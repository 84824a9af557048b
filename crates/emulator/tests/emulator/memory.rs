//! Tests that accesses to memory read and change exactly the right bytes. Most of the accesses are random.

use framewire_emulator::embedded::{Config, Embedded, Rom, Speed};
use framewire_emulator::{Attached, Emulator};
use framewire_expression::{Code, NoNames};
use framewire_protocol::run::{self, RunStep, RunSteps};
use framewire_protocol::wire::Wire;
use framewire_protocol::{Op, Status, Value};
use tokio::runtime::Runtime;

use super::attached::{attached, attached_to, scripts};
use super::exact::{Console, FIRST, color_rom, compare};
use super::support::{GAME_FRAME, UNUSED, batch, call, config, read32, refusal, run_step, start, wait_for};

/// Starts a Game Boy Color game.
fn color(paused: bool, scripts: Vec<std::path::PathBuf>) -> Embedded {
    let config = Config { rom: Rom::Bytes(color_rom().leak()), ..config(Speed::Times(1.0), paused, scripts) };
    Embedded::start(config).expect("the ROM starts")
}

/// A core with a Game Boy Color game that runs the script, and an emulator that is attached to it.
fn scripted_color() -> (Runtime, Embedded, Attached) {
    attached_to(|port| {
        let (scripts, _settings) = scripts(port);
        color(false, scripts)
    })
}

#[test]
fn every_access_to_a_game_boy_advance_is_exact() {
    let emulator = start(Speed::Times(1.0), true);
    call(&emulator, Op::Advance { frames: 60 });
    compare(&emulator, Console::Gba, 2000);
}

#[test]
fn every_access_to_a_game_boy_color_is_exact() {
    let emulator = color(true, vec![]);
    call(&emulator, Op::Advance { frames: 10 });
    compare(&emulator, Console::Gbc(FIRST), 2000);
}

#[test]
fn every_access_to_a_game_boy_advance_is_exact_in_the_script() {
    let (_runtime, _host, emulator) = attached();
    wait_for("the game", || read32(&emulator, GAME_FRAME) > 10);
    call(&emulator, Op::Lockstep { timeout: 60_000 });
    compare(&emulator, Console::Gba, 1000);
}

#[test]
fn every_access_to_a_game_boy_color_is_exact_in_the_script() {
    let (_runtime, _host, emulator) = scripted_color();
    call(&emulator, Op::Lockstep { timeout: 60_000 });
    compare(&emulator, Console::Gbc(FIRST), 1000);
}

/// Checks that a batch is refused as a whole if an expression of a later operation needs memory that does not exist, or
/// if a later operation freezes a value without a name.
fn assert_missing_memory_is_refused_first(emulator: &impl Emulator) {
    let address = Code::constant(0x1000_0000).encode();
    let read = Code::parse("u8[0x10000000]", &NoNames).expect("an expression").encode();
    let step = RunStep { frames: 1, until: vec![read.clone()], ..RunStep::default() };
    let freeze = |name: &str, address: &[u8]| Op::Freeze {
        name: name.to_owned(),
        kind: "u8".to_owned(),
        address: address.to_vec(),
        data: vec![1],
    };
    for wrong in [
        Op::ReadAt { address: address.clone(), length: 1 },
        Op::WriteAt { address: address.clone(), data: vec![1] },
        freeze("far", &address),
        freeze("negative", &Code::constant(-1).encode()),
        freeze("", &Code::constant(UNUSED.into()).encode()),
        Op::Evaluate { expressions: run::encode_expressions(std::slice::from_ref(&read)) },
        run_step(step.clone()),
        Op::Run { steps: RunSteps { stop: vec![read.clone()], steps: vec![step] }.to_bytes() },
    ] {
        let outcome = batch(emulator, vec![Op::Write32 { address: UNUSED, value: 7 }, wrong.clone()]);
        let (index, error) = outcome.refusal().expect("a refusal");
        assert_eq!((index, error.status), (1, Status::BadArgument), "{wrong:?}: {error}");
        assert_eq!(read32(emulator, UNUSED), 0, "{wrong:?}");
    }
}

#[test]
fn missing_memory_in_expressions_is_refused_before_any_operation_is_performed() {
    assert_missing_memory_is_refused_first(&start(Speed::Times(1.0), true));
}

#[test]
fn the_script_refuses_missing_memory_in_expressions_before_any_operation_is_performed() {
    let (_runtime, _host, emulator) = attached();
    wait_for("the game", || read32(&emulator, GAME_FRAME) > 10);
    assert_missing_memory_is_refused_first(&emulator);
}

#[test]
fn the_script_reads_a_16_bit_number_beyond_the_end_of_a_rom_correctly() {
    let (_runtime, _host, emulator) = attached();
    // Past the end of a ROM, a 16-bit number is the low half of its address divided by 2. mGBA returns more bits.
    let address = 0x099B_BFFC;
    assert_eq!(call(&emulator, Op::Read16 { address }), Value::Int(0xDFFE));
    let domain = "cart0".to_owned();
    assert_eq!(call(&emulator, Op::DomainRead16 { domain, address: 0x019B_BFFC }), Value::Int(0xDFFE));
}

#[test]
fn the_script_reads_locked_cartridge_ram_without_unlocking_it() {
    let (_runtime, _host, emulator) = scripted_color();
    let write = |address, value| Op::Write8 { address, value };
    batch(&emulator, vec![write(0, 0x0A), write(0xA001, 0x42), write(0, 0)]);
    let read = || Op::DomainRead16 { domain: "sram".to_owned(), address: 1 };
    assert_eq!(call(&emulator, read()), Value::Int(0xFF42));
    call(&emulator, write(0xA001, 0x43));
    assert_eq!(call(&emulator, read()), Value::Int(0xFF42));
}

#[test]
fn the_script_refuses_a_write_to_an_unmapped_bank_of_cartridge_ram() {
    let (_runtime, _host, emulator) = scripted_color();
    call(&emulator, Op::Write8 { address: 0, value: 0x0A });
    let sram = || "sram".to_owned();
    let refused =
        refusal(&emulator, Op::DomainWrite32 { domain: sram(), address: 0x1FFE, value: 0x0102_0304 });
    assert_eq!(refused.status, Status::Unsupported);
    let read = Op::DomainRead32 { domain: sram(), address: 0x1FFE };
    assert_eq!(call(&emulator, read), Value::Int(0xFFFF_FFFF));
}

/// A regression test: when the script undid a refused write, it changed the mapped bank.
#[test]
fn a_refused_write_does_not_change_another_bank_of_cartridge_ram() {
    let (_runtime, _host, emulator) = scripted_color();
    let write = |address, value| Op::Write8 { address, value };
    batch(&emulator, vec![write(0, 0x0A), write(0xAFFC, 0x42)]);
    // Bank 2 contains 0xFF at this address, so the write would change only the second byte.
    let other_bank = Op::DomainWrite16 { domain: "sram".to_owned(), address: 0x4FFC, value: 0x00FF };
    assert_eq!(refusal(&emulator, other_bank).status, Status::Unsupported);
    assert_eq!(
        call(&emulator, Op::DomainRead8 { domain: "sram".to_owned(), address: 0xFFC }),
        Value::Int(0x42)
    );
}

#[test]
fn the_script_refuses_to_write_255_to_locked_cartridge_ram() {
    let (_runtime, _host, emulator) = scripted_color();
    let write = |address, value| Op::Write8 { address, value };
    batch(&emulator, vec![write(0, 0x0A), write(0xA001, 0x42), write(0, 0)]);
    let refused = refusal(&emulator, Op::DomainWrite8 { domain: "sram".to_owned(), address: 1, value: 0xFF });
    assert_eq!(refused.status, Status::Unsupported);
    assert_eq!(call(&emulator, Op::DomainRead8 { domain: "sram".to_owned(), address: 1 }), Value::Int(0x42));
}
