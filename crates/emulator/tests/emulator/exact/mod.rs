//! Reads, writes, batches, watches, expressions and searches at random places, compared with a simple model of the
//! console's memory. The end-to-end tests use this module too, with a stock mGBA.

mod cases;
mod model;

use std::time::{Duration, Instant};

use fastrand::Rng;
use framewire_emulator::{Emulator, Kind, Watch};
use framewire_protocol::{Batch, Op, OpError, Outcome, Value};

pub use model::Console;
use model::{Banks, Cell, Model, Place};

/// A time limit that no operation reaches.
const PATIENCE: Duration = Duration::from_secs(60);

/// The banks that are selected at the start.
pub const FIRST: Banks = Banks { rom: 1, vram: 0, sram: 0, wram: 1, unlocked: true };

/// A Game Boy Color ROM with four banks, and four banks of cartridge RAM. Its program is an endless loop.
pub fn color_rom() -> Vec<u8> {
    let mut rom: Vec<u8> = (0..0x1_0000u32).map(|at| (at * 7 + at / 0x4000) as u8).collect();
    rom[0x100..0x150].fill(0);
    rom[0x100..0x104].copy_from_slice(&[0x00, 0xC3, 0x50, 0x01]); // nop; jp 0x150
    rom[0x104..0x108].copy_from_slice(&[0xCE, 0xED, 0x66, 0x66]); // the beginning of the logo
    rom[0x134..0x138].copy_from_slice(b"COLO");
    rom[0x143] = 0xC0; // Game Boy Color only
    rom[0x147] = 0x1B; // MBC5, RAM, battery
    rom[0x148] = 1; // 64 KiB
    rom[0x149] = 3; // 32 KiB
    rom[0x14D] = rom[0x134..0x14D].iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte).wrapping_sub(1));
    rom[0x150..0x153].copy_from_slice(&[0xF3, 0x18, 0xFE]); // di; an endless loop (jr to itself)
    rom
}

/// A number from an environment variable.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A comparison of an emulator with the model. Frames of the emulator run only on request: the core is paused, or in
/// lockstep.
pub struct Session<'a, E: Emulator> {
    emulator: &'a E,
    model: Model,
    random: Rng,
    /// The memory domains that this emulator has.
    domains: Vec<&'static str>,
    /// A state from before the first case. The test changes the game's memory, so this state is loaded before frames
    /// run.
    clean: Vec<u8>,
    /// The last accesses, for error messages.
    log: Vec<String>,
}

/// Compares `count` random cases. The environment variable `FRAMEWIRE_EXACT_CASES` replaces this number. The seed is
/// fixed, so that a failure can be repeated; `FRAMEWIRE_EXACT_SEED` sets another one.
pub fn compare(emulator: &impl Emulator, console: Console, count: u64) {
    let seed = setting("FRAMEWIRE_EXACT_SEED", 1);
    let count = setting("FRAMEWIRE_EXACT_CASES", count);
    let begun = Instant::now();
    let mut session = Session {
        emulator,
        model: Model::new(console),
        random: Rng::with_seed(seed),
        domains: Vec::new(),
        clean: Vec::new(),
        log: Vec::new(),
    };
    session.begin();
    for number in 1..=count {
        session.log.push(format!("seed {seed}, case {number}"));
        session.case();
        let spare = session.log.len().saturating_sub(12);
        session.log.drain(..spare);
    }
    session.assert_all_memory();
    eprintln!("{count} cases from seed {seed} in {:?}: no differences", begun.elapsed());
}

impl<E: Emulator> Session<'_, E> {
    fn begin(&mut self) {
        if let Console::Gbc(banks) = self.model.console {
            let bank = |address, value: u32| Op::Write8 { address, value: value as u8 };
            self.do_all(vec![
                bank(0, if banks.unlocked { 0x0A } else { 0 }),
                bank(0x2000, banks.rom),
                bank(0x4000, banks.sram),
                bank(0xFF4F, banks.vram),
                bank(0xFF70, banks.wram),
            ]);
        } else {
            // With the first access, mGBA detects which type of save memory the cartridge has.
            self.do_one(Op::Read8 { address: 0x0E00_0000 });
        }
        let Value::List(names) = self.do_one(Op::Domains {}) else { panic!("no names") };
        let has = |name: &&str| names.contains(&Value::Text((*name).to_owned()));
        self.domains = self.model.names().iter().copied().filter(has).collect();
        if matches!(self.model.console, Console::Gba) {
            // Their bytes are those of `cart0`, so the model does not store them.
            self.domains.extend(["cart1", "cart2"]);
        }
        let Value::Bytes(clean) = self.do_one(Op::SaveState { flags: 0 }) else { panic!("no state") };
        self.clean = clean;
        self.learn();
    }

    /// Reads all memory into the model.
    fn learn(&mut self) {
        for name in self.model.names() {
            let bytes = self.whole(name);
            self.model.put(name, bytes);
        }
    }

    /// All bytes of a domain.
    fn whole(&self, name: &'static str) -> Vec<u8> {
        let op = match (name, self.model.console) {
            // If the script was loaded before the game used its save memory, it does not list this domain. So read the
            // bus.
            ("sram", Console::Gba) => Op::ReadRange { address: 0x0E00_0000, length: 0x8000 },
            _ => {
                let size =
                    if name == "cart0" { Op::RomSize {} } else { Op::DomainSize { domain: name.to_owned() } };
                let Value::Int(size) = self.do_one(size) else { panic!("no size") };
                Op::DomainReadRange { domain: name.to_owned(), address: 0, length: size as u32 }
            }
        };
        let Value::Bytes(bytes) = self.do_one(op) else { panic!("no bytes") };
        bytes
    }

    fn assert_all_memory(&self) {
        for name in self.model.names() {
            let found = self.whole(name);
            let model = self.model.domain(name).expect("a domain");
            let first = found.iter().zip(model).position(|(one, other)| one != other);
            self.assert(first.is_none() && found.len() == model.len(), || {
                format!("{name} differs first at {first:x?}")
            });
        }
    }

    fn assert(&self, holds: bool, what: impl FnOnce() -> String) {
        assert!(holds, "{}\n{}", what(), self.log.join("\n"));
    }

    fn submit(&self, ops: Vec<Op>) -> Outcome {
        self.emulator.submit(Batch::new(ops), Instant::now() + PATIENCE).wait().expect("an outcome")
    }

    fn do_all(&self, ops: Vec<Op>) -> Vec<Value> {
        let text = format!("{ops:?}");
        let results: Result<Vec<Value>, OpError> = self.submit(ops).results.into_iter().collect();
        results.unwrap_or_else(|error| panic!("{text}: {error}\n{}", self.log.join("\n")))
    }

    fn do_one(&self, op: Op) -> Value {
        self.do_all(vec![op]).remove(0)
    }

    /// Begins a watch. Returns it with the bytes of its ranges.
    fn watch(&self, request: framewire_emulator::WatchRequest) -> (Watch, Value) {
        let watch = self.emulator.watch(request);
        let base = self.do_one(watch.op());
        (watch, base)
    }

    /// Whether writing these bytes would change cartridge RAM that an attached emulator cannot write: mGBA's Lua can
    /// write only the mapped bank, and only while it is unlocked.
    fn is_out_of_reach(&self, place: &Place, bytes: &[u8]) -> bool {
        let Console::Gbc(banks) = self.model.console else { return false };
        let attached = self.emulator.state().kind == Kind::Attached;
        attached
            && place.domain == Some("sram")
            && bytes.iter().enumerate().any(|(index, byte)| {
                let place = place.plus(index as u32);
                let mapped = banks.unlocked && place.address / 0x2000 == banks.sram;
                !mapped && self.model.byte(&place) != Some(*byte)
            })
    }

    /// A random place where the model has `length` bytes, which can be written if `write` is true.
    fn place(&mut self, length: u32, write: bool) -> Place {
        loop {
            let place = self.any_place(length);
            // An emulator refuses a place after the end of memory even if the length is 0.
            if self.model.read(&place, length.max(1)).is_some()
                && (!write || self.model.is_writable(&place, length))
            {
                return place;
            }
        }
    }

    fn any_place(&mut self, length: u32) -> Place {
        let random = &mut self.random;
        if random.bool() {
            let (first, past) = *random.choice(self.model.bus()).expect("parts");
            let address = near(random, first, past, length);
            return Place { domain: None, address };
        }
        let name = *random.choice(&self.domains).expect("domains");
        // The domain of a GBA cartridge has the largest possible size. Choose from its beginning more often.
        let size = self.model.size(name);
        let size = if random.bool() { size } else { size.min(0x1_0000) };
        Place { domain: Some(name), address: near(random, 0, size, length) }
    }

    /// The place of the same byte in its memory domain, if this emulator has the domain.
    fn in_domain(&self, place: &Place) -> Option<Place> {
        let Some(Cell::At(name, offset)) = self.model.cell(place) else { return None };
        let place = Place { domain: Some(name), address: offset as u32 };
        if self.domains.contains(&name) { Some(place) } else { None }
    }
}

/// A random address from `first` up to `past` (exclusive), often close to the end of a bank, a mirror or a part of
/// memory.
fn near(random: &mut Rng, first: u32, past: u32, length: u32) -> u32 {
    let at = random.u32(first..past);
    match random.u8(0..8) {
        0 => first + random.u32(0..8).min(past - first - 1),
        1 => past.saturating_sub(length.max(1) + random.u32(0..4)).max(first),
        // Close to a multiple of 4 KiB.
        2 | 3 => (at & !0xFFF).saturating_sub(random.u32(0..6)).clamp(first, past - 1),
        4 => at & !3,
        5 => at | 1,
        _ => at,
    }
}
