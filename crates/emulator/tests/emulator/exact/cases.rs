//! Random accesses to memory, each compared with the model.

use framewire_emulator::{Change, Emulator, MemoryRange, WatchEvent, WatchRequest};
use framewire_expression::{Expression, NoNames, Type};
use framewire_protocol::{Op, Status, Value};
use framewire_states::search::{Area, Plan, Search, Test};

use super::model::{Console, Place};
use super::{PATIENCE, Session};

pub fn read(place: &Place, width: u32) -> Op {
    let address = place.address;
    match (place.domain.map(str::to_owned), width) {
        (None, 1) => Op::Read8 { address },
        (None, 2) => Op::Read16 { address },
        (None, _) => Op::Read32 { address },
        (Some(domain), 1) => Op::DomainRead8 { domain, address },
        (Some(domain), 2) => Op::DomainRead16 { domain, address },
        (Some(domain), _) => Op::DomainRead32 { domain, address },
    }
}

pub fn read_range(place: &Place, length: u32) -> Op {
    let address = place.address;
    match place.domain.map(str::to_owned) {
        None => Op::ReadRange { address, length },
        Some(domain) => Op::DomainReadRange { domain, address, length },
    }
}

pub fn write(place: &Place, width: u32, value: u32) -> Op {
    let (address, byte, half) = (place.address, value as u8, value as u16);
    match (place.domain.map(str::to_owned), width) {
        (None, 1) => Op::Write8 { address, value: byte },
        (None, 2) => Op::Write16 { address, value: half },
        (None, _) => Op::Write32 { address, value },
        (Some(domain), 1) => Op::DomainWrite8 { domain, address, value: byte },
        (Some(domain), 2) => Op::DomainWrite16 { domain, address, value: half },
        (Some(domain), _) => Op::DomainWrite32 { domain, address, value },
    }
}

/// The little-endian number in these bytes. The tests do not use the product's own function for this.
fn number(bytes: &[u8], signed: bool) -> i64 {
    let unsigned = bytes.iter().rev().fold(0, |number, byte| number * 256 + i64::from(*byte));
    let limit = 1 << (8 * bytes.len());
    if signed && unsigned >= limit / 2 { unsigned - limit } else { unsigned }
}

fn is_signed(kind: Type) -> bool {
    matches!(kind, Type::I8 | Type::I16 | Type::I32)
}

impl<E: Emulator> Session<'_, E> {
    /// Makes one random access, and compares it with the model.
    pub fn case(&mut self) {
        match self.random.u16(0..1000) {
            0..300 => self.read_something(1),
            300..400 => self.read_something(9),
            400..750 => self.write_something(1),
            750..850 => self.write_something(9),
            850..900 => self.access_missing_memory(),
            900..930 => self.switch_banks(),
            930..980 => self.evaluate(),
            980..994 => self.search(),
            _ => self.watch_a_write(),
        }
    }

    fn width(&mut self) -> u32 {
        [1, 2, 4][self.random.usize(0..3)]
    }

    fn length(&mut self) -> u32 {
        if self.random.u8(0..10) == 0 { self.random.u32(0..3000) } else { self.random.u32(0..40) }
    }

    /// A random read, and the value that the model expects.
    fn any_read(&mut self) -> (Op, Value) {
        if self.random.u8(0..3) == 0 {
            let length = self.length();
            let place = self.place(length, false);
            let bytes = self.model.read(&place, length).expect("bytes");
            return (read_range(&place, length), Value::Bytes(bytes));
        }
        let width = self.width();
        let place = self.place(width, false);
        let bytes = self.model.read(&place, width).expect("bytes");
        (read(&place, width), Value::Int(number(&bytes, false)))
    }

    /// Performs up to `most` random reads in one batch.
    fn read_something(&mut self, most: usize) {
        let count = self.random.usize(1..=most);
        let (ops, expected): (Vec<_>, Vec<_>) = (0..count).map(|_| self.any_read()).unzip();
        self.log.push(format!("{ops:?}"));
        self.compare(ops, &expected);
    }

    fn compare(&self, ops: Vec<Op>, expected: &[Value]) {
        let found = self.do_all(ops);
        self.assert(found == expected, || format!("{found:x?}, but the model has {expected:x?}"));
    }

    /// A random write: its operation, its place and its bytes.
    fn any_write(&mut self) -> (Op, Place, Vec<u8>) {
        if self.random.u8(0..3) == 0 {
            let length = self.length().max(1);
            let mut place = self.place(length, true);
            while place.domain.is_some() {
                place = self.place(length, true);
            }
            let data: Vec<u8> = (0..length).map(|_| self.random.u8(..)).collect();
            return (Op::WriteRange { address: place.address, data: data.clone() }, place, data);
        }
        let width = self.width();
        let place = self.place(width, true);
        let value = match self.random.u8(0..4) {
            0 => *self.random.choice(&[0, 1, 0x7F, 0x80, 0xFF, 0x8000, 0xFFFF, u32::MAX]).expect("values"),
            _ => self.random.u32(..),
        };
        (write(&place, width, value), place, value.to_le_bytes()[..width as usize].to_vec())
    }

    /// Performs up to `most` random reads and writes in one batch. The first operation is a write.
    fn write_something(&mut self, most: usize) {
        let (mut ops, mut expected) = (Vec::new(), Vec::new());
        let mut written = Vec::new();
        for index in 0..self.random.usize(1..=most) {
            if index > 0 && self.random.bool() {
                let (op, value) = self.any_read();
                ops.push(op);
                expected.push(value);
                continue;
            }
            let (op, place, bytes) = self.any_write();
            // An attached emulator cannot write to all of the cartridge RAM.
            if self.is_out_of_reach(&place, &bytes) {
                if index == 0 {
                    self.assert_refused(vec![op], Status::Unsupported);
                    return self.assert_around(&place, bytes.len() as u32);
                }
                continue;
            }
            let before = self.model.read(&place, bytes.len() as u32).expect("bytes");
            self.model.write(&place, &bytes);
            ops.push(op);
            expected.push(Value::None);
            written.push((place, before));
        }
        self.log.push(format!("{ops:x?}"));
        self.compare(ops, &expected);
        for (place, before) in &written {
            self.assert_around(place, before.len() as u32);
        }
        for (place, before) in written.iter().rev() {
            // Undo changes to the ROM, because the game must not run with them.
            if place.domain.is_some_and(|name| name.starts_with("cart")) {
                self.put_back(place, before);
            }
        }
    }

    fn put_back(&mut self, place: &Place, bytes: &[u8]) {
        let ops =
            (0..).zip(bytes).map(|(index, byte)| write(&place.plus(index), 1, (*byte).into())).collect();
        self.do_all(ops);
        self.model.write(place, bytes);
        self.assert_around(place, bytes.len() as u32);
    }

    /// Compares the bytes around a write with the model: at the place of the write, and in the domain that contains it.
    fn assert_around(&self, place: &Place, length: u32) {
        for place in [Some(place.clone()), self.in_domain(place)].into_iter().flatten() {
            let start = Place { address: place.address.saturating_sub(9), ..place };
            let wanted = |length: &u32| self.model.read(&start, *length).is_some();
            let Some(length) = [length + 18, length + 9, length].into_iter().find(wanted) else { continue };
            let expected = self.model.read(&start, length).expect("bytes");
            let found = self.do_one(read_range(&start, length));
            self.assert(found == Value::Bytes(expected.clone()), || {
                format!("around {place:x?}: {found:x?}, but the model has {expected:x?}")
            });
        }
    }

    /// Checks that the last of these operations is refused with this status, and that none is performed.
    fn assert_refused(&mut self, ops: Vec<Op>, status: Status) {
        self.log.push(format!("refused: {ops:x?}"));
        let wrong = ops.len() - 1;
        let text = format!("{:x?}", ops[wrong]);
        let outcome = self.submit(ops);
        let found: Vec<_> =
            outcome.results.iter().map(|each| each.as_ref().map_err(|error| error.status)).collect();
        let mut expected = vec![Err(Status::NotDone); wrong];
        expected.push(Err(status));
        self.assert(found == expected, || format!("{text} gives {:x?}", outcome.results));
    }

    /// Accesses memory that does not exist, or writes to memory that can only be read. Checks that the whole batch is
    /// refused and nothing is written.
    fn access_missing_memory(&mut self) {
        let width = self.width();
        let (place, is_readable) = self.missing_place(width);
        let length = width + self.random.u32(0..100);
        let value = self.random.u32(..);
        let op = match (is_readable, self.random.u8(0..3)) {
            (true, _) | (false, 0) => write(&place, width, value),
            (false, 1) => read(&place, width),
            _ => read_range(&place, length),
        };
        if self.random.bool() {
            return self.assert_refused(vec![op], Status::BadArgument);
        }
        let (first, at, bytes) = self.any_write();
        if self.is_out_of_reach(&at, &bytes) {
            return;
        }
        self.assert_refused(vec![first, op], Status::BadArgument);
        self.assert_around(&at, bytes.len() as u32);
    }

    /// A random place where no number of this width can be written, and whether a number can be read there.
    fn missing_place(&mut self, width: u32) -> (Place, bool) {
        let random = &mut self.random;
        let is_gba = matches!(self.model.console, Console::Gba);
        let bus = |address| Place { domain: None, address };
        match random.u8(0..6) {
            0 if is_gba => (bus(random.u32(0x4000..0x0200_0000)), false),
            0 => (bus(random.u32(0x1_0000..)), false),
            1 if is_gba => (bus(random.u32(0x1000_0000..=u32::MAX)), false),
            // The number would extend beyond the end of the bus.
            1 | 2 => (bus(if is_gba { 0x1000_0000 } else { 0x1_0000 } - random.u32(0..width)), false),
            3 if is_gba => (bus(random.u32(0x0800_00D0..0x0E00_0000)), true),
            4 if is_gba => (Place { domain: Some("bios"), address: random.u32(0..0x3FFC) }, true),
            4 => (Place { domain: Some("io"), address: random.u32(0..0x7C) }, true),
            _ => {
                let name = *random.choice(&self.domains).expect("domains");
                let size = self.model.size(name);
                let across = size - random.u32(0..width);
                (
                    Place {
                        domain: Some(name),
                        address: if random.bool() { across } else { random.u32(size..) },
                    },
                    false,
                )
            }
        }
    }

    /// Selects another bank of one type of memory, or locks or unlocks the cartridge RAM, in the emulator and in the
    /// model. A GBA has no banks, so for a GBA this reads something instead.
    fn switch_banks(&mut self) {
        let Console::Gbc(banks) = &mut self.model.console else { return self.read_something(1) };
        let random = &mut self.random;
        let (address, value) = match random.u8(0..5) {
            0 => {
                banks.unlocked = random.bool();
                (0, if banks.unlocked { 0x0A } else { 0 })
            }
            1 => {
                banks.rom = random.u32(0..4);
                (0x2000, banks.rom)
            }
            2 => {
                banks.sram = random.u32(0..4);
                (0x4000, banks.sram)
            }
            3 => {
                banks.vram = random.u32(0..2);
                (0xFF4F, banks.vram)
            }
            _ => {
                let chosen = random.u32(0..8);
                banks.wram = chosen.max(1);
                (0xFF70, chosen)
            }
        };
        let op = Op::Write8 { address, value: value as u8 };
        self.log.push(format!("{op:x?}"));
        self.do_one(op);
    }

    /// Evaluates a random expression with the memory that a watch reports, and compares its value with the model.
    fn evaluate(&mut self) {
        let kind = *self.random.choice(&Type::ALL).expect("types");
        let width = u32::from(kind.size());
        let place = self.place(width, false);
        let text = match place.domain {
            None => format!("{}[{:#x}]", kind.name(), place.address),
            Some(name) => format!("{}[{name}:{:#x}]", kind.name(), place.address),
        };
        self.log.push(text.clone());
        let expression = Expression::parse(&format!("{text} * 3 - 1"), &NoNames).expect("an expression");
        let range = expression.places()[0].range();
        let range = MemoryRange::new(range.domain, range.address, range.length);
        let (_watch, base) = self.watch(WatchRequest { ranges: vec![range], ..WatchRequest::default() });
        let Value::Bytes(bytes) = base else { panic!("{base:?}") };
        let found = expression.value(0, &[kind.read(&bytes)]);
        let expected = number(&self.model.read(&place, width).expect("bytes"), is_signed(kind)) * 3 - 1;
        self.assert(found == Some(expected), || format!("{found:?}, but the model has {expected}"));
    }

    /// Checks that a search for a value finds exactly the places that have this value in the model.
    fn search(&mut self) {
        let kind = *self.random.choice(&Type::ALL).expect("types");
        let width = u32::from(kind.size());
        let alignment = *self.random.choice(&[None, Some(1), Some(2), Some(4)]).expect("alignments");
        let step = alignment.unwrap_or(width);
        let mut areas = Vec::new();
        for _ in 0..self.random.u32(1..4) {
            let length = self.random.u32(4..600);
            areas.push((self.place(length, false), length));
        }
        self.log.push(format!("search {kind:?} every {step} in {areas:x?}"));
        let mut all = Vec::new();
        for (place, length) in &areas {
            for offset in (0..=length - width).step_by(step as usize) {
                let place = place.plus(offset);
                let bytes = self.model.read(&place, width).expect("bytes");
                all.push((place, number(&bytes, is_signed(kind))));
            }
        }
        let (_, wanted) = self.random.choice(&all).expect("places").clone();
        all.retain(|(_, value)| *value == wanted);
        let area = |(place, length): &(Place, u32)| Area {
            domain: place.domain.map(str::to_owned),
            address: place.address,
            length: *length,
        };
        let plan = Plan::new(areas.iter().map(area).collect(), kind, alignment).expect("a plan");
        let ops: Vec<_> = areas.iter().map(|(place, length)| read_range(place, *length)).collect();
        let memory = || {
            let pieces = self.do_all(ops.clone()).into_iter();
            pieces
                .flat_map(|value| if let Value::Bytes(bytes) = value { bytes } else { panic!("{value:?}") })
                .collect()
        };
        let mut search = Search::begin(plan, memory(), 0).expect("a search");
        search.narrow(Test::Equal(wanted), memory(), 0).expect("memory");
        let found: Vec<_> =
            search.candidates(0).map(|each| (each.domain.map(str::to_owned), each.address)).collect();
        let all: Vec<_> =
            all.into_iter().map(|(place, _)| (place.domain.map(str::to_owned), place.address)).collect();
        self.assert(found == all, || format!("{wanted} is at {found:x?}, but in the model at {all:x?}"));
    }

    /// A random place in memory that the game does not change.
    fn quiet(&mut self, length: u32) -> Place {
        if let Console::Gbc(_) = self.model.console {
            // The Game Boy Color game changes no memory, so any place outside of the ROM is suitable.
            loop {
                let place = self.place(length, true);
                if place.domain.is_none_or(|name| name != "cart0") {
                    return place;
                }
            }
        }
        let offset = 0x100 + self.random.u32(0..0x100 - length);
        match self.random.u8(0..3) {
            0 => Place { domain: Some("wram"), address: offset },
            1 => Place { domain: None, address: 0x0200_0000 + offset },
            _ => Place { domain: None, address: 0x02FC_0000 + offset },
        }
    }

    /// Writes to watched memory, and checks that the watch reports the change after the next frame.
    fn watch_a_write(&mut self) {
        if matches!(self.model.console, Console::Gba) {
            // Restore the game's own memory, which earlier cases have changed, so that the game can run.
            self.do_one(Op::LoadState { data: self.clean.clone(), flags: 0 });
            self.learn();
        }
        let width = self.width();
        let place = self.quiet(width);
        let before = self.model.read(&place, width).expect("bytes");
        let after: Vec<u8> = before.iter().map(|byte| byte ^ self.random.u8(1..)).collect();
        if self.is_out_of_reach(&place, &after) {
            return;
        }
        self.log.push(format!("watch {place:x?} change from {before:x?} to {after:x?}"));
        let range = MemoryRange::new(place.domain.map(str::to_owned), place.address, width as u16);
        let (mut watch, base) = self.watch(WatchRequest { ranges: vec![range], ..WatchRequest::default() });
        self.assert(base == Value::Bytes(before.clone()), || format!("it begins with {base:x?}"));
        self.do_one(write(&place, width, number(&after, false) as u32));
        self.do_one(Op::Advance { frames: 1 });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let event = runtime.block_on(async { tokio::time::timeout(PATIENCE, watch.next()).await });
        let changes = event.ok().flatten().map(|WatchEvent { changes, .. }| changes);
        let expected = [Change { range: 0, old: before, new: after.clone() }];
        self.assert(changes.as_deref() == Some(&expected), || format!("{changes:x?}"));
        self.model.write(&place, &after);
        self.learn_after_a_frame();
    }

    /// Called after a frame, in which the GBA game may have changed its own memory.
    fn learn_after_a_frame(&mut self) {
        if matches!(self.model.console, Console::Gba) {
            self.learn();
        } else {
            self.assert_all_memory();
        }
    }
}
