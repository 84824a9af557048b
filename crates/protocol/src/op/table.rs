//! The table itself.
//!
//! A row has: code, variant, name, effect, type of the result, and mGBA-http's message with the same arguments if there
//! is one. An argument that is a number accepts every value of its type, or only the range after `where`.

use super::kinds::{ArgInfo, Argument, Effect, OpInfo, ResultKind};
use crate::MAX_RANGE;
use crate::wire::{DecodeError, Reader, Wire};

ops! {
    /// The emulator's thread or script sends the bytes back.
    0x01 Echo "echo" Read -> Bytes {
        /// The bytes.
        data: Vec<u8>,
    }

    /// The number of the frame that was finished last, counted from the last reset.
    0x10 CurrentFrame "current_frame" Read -> Int = "core.currentFrame" {}
    /// Processor cycles in a frame.
    0x11 FrameCycles "frame_cycles" Read -> Int = "core.frameCycles" {}
    /// Processor cycles in a second.
    0x12 Frequency "frequency" Read -> Int = "core.frequency" {}
    /// The game's code from the ROM header. mGBA 0.10 puts the console before it (`AGB-BPRE`).
    0x13 GameCode "game_code" Read -> Text = "core.getGameCode" {}
    /// The game's title from the ROM header.
    0x14 GameTitle "game_title" Read -> Text = "core.getGameTitle" {}
    /// The console: 0 is the Game Boy Advance, 1 the Game Boy.
    0x15 Platform "platform" Read -> Int = "core.platform" {}
    /// The size of the ROM file in bytes.
    0x16 RomSize "rom_size" Read -> Int = "core.romSize" {}
    /// The CRC32 of the ROM.
    0x17 Checksum "checksum" Read -> Int = "core.checksum" {}

    /// The number of clock cycles of an embedded core since the last reset. `frequency` cycles are one second of the
    /// console's time. A loaded state sets the number to the one in the state.
    0x18 Cycles "cycles" Read -> Int {}

    /// Reads 8 bits from the bus.
    0x20 Read8 "read8" Read -> Int = "core.read8" {
        /// Bus address.
        address: u32,
    }
    /// Reads 16 bits from the bus: the two bytes that begin at the address, aligned or not.
    0x21 Read16 "read16" Read -> Int = "core.read16" {
        /// Bus address.
        address: u32,
    }
    /// Reads 32 bits from the bus: the four bytes that begin at the address, aligned or not.
    0x22 Read32 "read32" Read -> Int = "core.read32" {
        /// Bus address.
        address: u32,
    }
    /// Reads a range of bytes from the bus.
    0x23 ReadRange "read_range" Read -> Bytes = "core.readRange" {
        /// Bus address of the first byte.
        address: u32,
        /// Number of bytes, at most 16 MiB.
        length: u32 where 0..=MAX_RANGE as i64,
    }
    /// Writes 8 bits to the bus.
    0x24 Write8 "write8" Change -> None = "core.write8" {
        /// Bus address.
        address: u32,
        /// The value.
        value: u8,
    }
    /// Writes 16 bits to the bus: the two bytes that begin at the address, aligned or not.
    0x25 Write16 "write16" Change -> None = "core.write16" {
        /// Bus address.
        address: u32,
        /// The value.
        value: u16,
    }
    /// Writes 32 bits to the bus: the four bytes that begin at the address, aligned or not.
    0x26 Write32 "write32" Change -> None = "core.write32" {
        /// Bus address.
        address: u32,
        /// The value.
        value: u32,
    }
    /// Writes a range of bytes to the bus, one byte after the other.
    0x27 WriteRange "write_range" Change -> None {
        /// Bus address of the first byte.
        address: u32,
        /// The bytes. An attached mGBA accepts at most 256 KiB.
        data: Vec<u8>,
    }

    /// The names of the memory domains.
    0x30 Domains "domains" Read -> Names = "coreAdapter.memory" {}
    /// The bus address at which a memory domain begins.
    0x31 DomainBase "domain_base" Read -> Int = "memoryDomain.base" {
        /// Name of the memory domain, such as `wram`.
        domain: String,
    }
    /// The bus address after the end of a memory domain.
    0x32 DomainBound "domain_bound" Read -> Int = "memoryDomain.bound" {
        /// Name of the memory domain.
        domain: String,
    }
    /// The display name of a memory domain.
    0x33 DomainName "domain_name" Read -> Text = "memoryDomain.name" {
        /// Name of the memory domain.
        domain: String,
    }
    /// The size of a memory domain in bytes.
    0x34 DomainSize "domain_size" Read -> Int = "memoryDomain.size" {
        /// Name of the memory domain.
        domain: String,
    }
    /// Reads 8 bits from a memory domain.
    0x35 DomainRead8 "domain_read8" Read -> Int = "memoryDomain.read8" {
        /// Name of the memory domain.
        domain: String,
        /// Offset in the domain.
        address: u32,
    }
    /// Reads 16 bits from a memory domain.
    0x36 DomainRead16 "domain_read16" Read -> Int = "memoryDomain.read16" {
        /// Name of the memory domain.
        domain: String,
        /// Offset in the domain.
        address: u32,
    }
    /// Reads 32 bits from a memory domain.
    0x37 DomainRead32 "domain_read32" Read -> Int = "memoryDomain.read32" {
        /// Name of the memory domain.
        domain: String,
        /// Offset in the domain.
        address: u32,
    }
    /// Reads a range of bytes from a memory domain.
    0x38 DomainReadRange "domain_read_range" Read -> Bytes = "memoryDomain.readRange" {
        /// Name of the memory domain.
        domain: String,
        /// Offset of the first byte.
        address: u32,
        /// Number of bytes, at most 16 MiB.
        length: u32 where 0..=MAX_RANGE as i64,
    }
    /// Writes 8 bits to a memory domain.
    0x39 DomainWrite8 "domain_write8" Change -> None = "memoryDomain.write8" {
        /// Name of the memory domain.
        domain: String,
        /// Offset in the domain.
        address: u32,
        /// The value.
        value: u8,
    }
    /// Writes 16 bits to a memory domain.
    0x3a DomainWrite16 "domain_write16" Change -> None = "memoryDomain.write16" {
        /// Name of the memory domain.
        domain: String,
        /// Offset in the domain.
        address: u32,
        /// The value.
        value: u16,
    }
    /// Writes 32 bits to a memory domain.
    0x3b DomainWrite32 "domain_write32" Change -> None = "memoryDomain.write32" {
        /// Name of the memory domain.
        domain: String,
        /// Offset in the domain.
        address: u32,
        /// The value.
        value: u32,
    }

    /// Reads a register of the processor, as a signed number.
    0x40 ReadRegister "read_register" Read -> Int = "core.readRegister" {
        /// Name of the register, such as `r0` or `cpsr`, or on the Game Boy, `a` or `pc`.
        register: String,
    }
    /// Writes a register of the processor.
    0x41 WriteRegister "write_register" Change -> None = "core.writeRegister" {
        /// Name of the register.
        register: String,
        /// The value; a register with fewer bits takes the lowest ones.
        value: i32,
    }

    /// The keys that are held, as a mask.
    0x50 GetKeys "get_keys" Read -> Int = "core.getKeys" {}
    /// Whether a key is held: 1 or 0.
    0x51 GetKey "get_key" Read -> Int = "core.getKey" {
        /// Number of the key, 0 to 9.
        key: u8 where 0..=9,
    }
    /// Holds exactly these keys from the next frame on, and releases all others.
    0x52 SetKeys "set_keys" Change -> None = "core.setKeys" {
        /// Mask of keys.
        keys: u16 where 0..=0x3ff,
    }
    /// Holds these keys from the next frame on, in addition to those that are already held.
    0x53 AddKeys "add_keys" Change -> None = "core.addKeys" {
        /// Mask of keys.
        keys: u16 where 0..=0x3ff,
    }
    /// Releases these keys from the next frame on.
    0x54 ClearKeys "clear_keys" Change -> None = "core.clearKeys" {
        /// Mask of keys.
        keys: u16 where 0..=0x3ff,
    }
    /// Holds keys for a number of frames. If an earlier hold still has one of these keys, the new hold begins when the
    /// earlier one has ended and one more frame has passed. So the game sees two separate presses.
    0x55 HoldKeys "hold_keys" Change -> None {
        /// Mask of keys.
        keys: u16 where 0..=0x3ff,
        /// Number of frames, as mGBA-http counts them: the game sees the keys in this many frames and two more.
        frames: u32,
    }
    /// Plays a timeline: steps that say which keys are held from which frame on. A step holds its keys and releases the
    /// other keys of the timeline; keys that no step names do not change. The first frame of the timeline is the one
    /// after the batch. The result is the number of the timeline, counted from 1, for `cancel_keys`. While the timeline
    /// plays, it owns its keys: holds of these keys wait. If another operation sets, adds or clears a key, the timeline
    /// loses that key. A second timeline that uses a key of the first one is refused.
    0x56 PlayKeys "play_keys" Change -> Int {
        /// The steps, at most 65,536. Each has an offset in frames (`u32`; 0 is the next frame) and a mask of keys
        /// (`u16`), little-endian. The offsets must rise, and the last mask must be 0.
        steps: Vec<u8>,
    }
    /// Ends a timeline and releases its keys. The result says whether there was such a timeline.
    0x57 CancelKeys "cancel_keys" Change -> Bool {
        /// Number of the timeline; 0 ends all timelines and all holds, including holds that wait.
        id: u32,
    }

    /// The state of a timeline: `playing` if it plays or waits, `over`, or `cancelled` if it ended before its last
    /// step. `over` and `cancelled` are followed by the frame counter at the timeline's end. The last 16,384 timelines
    /// that ended are remembered.
    0x58 Timeline "timeline" Read -> Names {
        /// Number of the timeline.
        id: u32,
    }
    /// Plays a timeline as `play_keys` does, but after all timelines that are playing or waiting: its first frame is
    /// the one after their last frame. The result is its number, and how many frames are left before its first frame.
    /// Until then, it owns no keys. At most 1,024 timelines can wait.
    0x59 AppendKeys "append_keys" Change -> Names {
        /// The steps, as in `play_keys`.
        steps: Vec<u8>,
    }

    /// Saves the state as bytes.
    0x60 SaveState "save_state" Read -> Bytes = "core.saveStateBuffer" {
        /// mGBA's state flags: 1 screenshot, 2 save data, 4 cheats, 8 clock, 16 metadata. With a screenshot, the bytes
        /// are a PNG that contains the state.
        flags: u8 where 0..=31,
    }
    /// Loads a state from bytes.
    0x61 LoadState "load_state" Change -> Bool = "core.loadStateBuffer" {
        /// The state, with or without a picture around it.
        data: Vec<u8>,
        /// Which parts to load: the flags of `save_state`.
        flags: u8 where 0..=31,
    }
    /// Saves the state to a file on the emulator's machine.
    0x62 SaveStateFile "save_state_file" Change -> Bool = "core.saveStateFile" {
        /// The file.
        path: String,
        /// Which parts to save: the flags of `save_state`.
        flags: u8 where 0..=31,
    }
    /// Loads a state from a file on the emulator's machine.
    0x63 LoadStateFile "load_state_file" Change -> Bool = "core.loadStateFile" {
        /// The file.
        path: String,
        /// Which parts to load: the flags of `save_state`.
        flags: u8 where 0..=31,
    }
    /// Saves the state to one of the numbered slots next to the ROM.
    0x64 SaveStateSlot "save_state_slot" Change -> Bool = "core.saveStateSlot" {
        /// Number of the slot.
        slot: u32 where 0..=0x7fff_ffff,
        /// Which parts to save: the flags of `save_state`.
        flags: u8 where 0..=31,
    }
    /// Loads a state from one of the numbered slots next to the ROM.
    0x65 LoadStateSlot "load_state_slot" Change -> Bool = "core.loadStateSlot" {
        /// Number of the slot.
        slot: u32 where 0..=0x7fff_ffff,
        /// Which parts to load: the flags of `save_state`.
        flags: u8 where 0..=31,
    }

    /// Loads a ROM from a file on the emulator's machine, without a reset; an attached mGBA resets if the ROM is another
    /// game. A file that is not a ROM of this console changes nothing.
    0x70 LoadFile "load_file" Change -> Bool = "core.loadFile" {
        /// The file.
        path: String,
    }
    /// Loads a ROM from a file on the emulator's machine and resets. An attached mGBA accepts only ROMs of the same
    /// console. A file that is not accepted changes nothing. An embedded core also loads the battery save next to the
    /// ROM.
    0x71 LoadRom "load_rom" Change -> Bool = "mgba-http.extension.loadFile" {
        /// The file.
        path: String,
    }
    /// Loads battery save data from a file on the emulator's machine.
    0x72 LoadSaveFile "load_save_file" Change -> Bool = "core.loadSaveFile" {
        /// The file.
        path: String,
        /// Whether to leave the file unchanged when the game saves.
        temporary: bool,
    }
    /// Loads the battery save data from the file next to the ROM.
    0x73 AutoloadSave "autoload_save" Change -> Bool = "core.autoloadSave" {}

    /// Resets the console.
    0x80 Reset "reset" Change -> None = "coreAdapter.reset" {}
    /// Runs one instruction of the processor. If the processor of an embedded core waits for an interrupt, the
    /// operation ends at the end of the frame at the latest.
    0x81 Step "step" Change -> None = "core.step" {}
    /// Stops frames until `resume`; operations still work. An attached mGBA can be paused only in its window.
    0x82 Pause "pause" Change -> None {}
    /// Continues the game: ends a pause or lockstep. On an attached mGBA, it ends only lockstep.
    0x83 Resume "resume" Change -> None {}
    /// Changes the speed of an embedded core.
    0x84 SetSpeed "set_speed" Change -> None {
        /// The speed in thousandths of the console's own speed, 10 to 1,000,000; 0 is as fast as the processor allows.
        thousandths: u32 where 0..=1_000_000,
    }
    /// Runs frames now and returns the frame counter after them. An embedded core accepts this at any time. An attached
    /// mGBA accepts it only in lockstep, and only as the last operation of a batch.
    0x85 Advance "advance" Change -> Int {
        /// Number of frames, 1 to 3,600. All `advance` operations of a batch together can run 3,600.
        frames: u32 where 1..=3_600,
    }
    /// Begins lockstep: frames run only for `advance`, for a run and for a replay. `resume` or a time-out of 0 ends
    /// lockstep. It also ends when no client has sent a request for the length of the time-out.
    0x86 Lockstep "lockstep" Change -> None {
        /// The time-out in milliseconds, 1 to 60,000; 0 ends lockstep.
        timeout: u32 where 0..=60_000,
    }
    /// Lets frames run in steps. A step ends when a condition holds or its frames have passed. The operations after the
    /// run in the batch are performed between its last frame and the next one. The frames of a run also run in lockstep
    /// and while an embedded core is paused. The result is how each step ended, in the format of docs/protocol.md.
    0x87 Run "run" Change -> Bytes {
        /// The steps and the conditions, in the format of docs/protocol.md.
        steps: Vec<u8>,
    }

    /// Takes an emulator back to a frame of its history, exactly as the game was then, and returns the frame counter.
    /// An embedded core loads the last state before that frame and runs the frames after it again. If something other
    /// than keys changed the game in these frames, the core goes to the last frame before that change. An attached mGBA
    /// goes to that frame if the server keeps its state, or else to the last frame before it that has one. Keys that
    /// are held stay held.
    0x88 Rewind "rewind" Change -> Int {
        /// The frame counter at that frame.
        frame: u32,
        /// Number of a line of the history. A line is a sequence of frames without a gap. 0 is the current line,
        /// together with the earlier lines that it continues.
        line: u32,
    }

    /// The picture of the last frame as a PNG.
    0x90 Screenshot "screenshot" Read -> Bytes {}
    /// Writes the picture of the last frame as a PNG to a file on the emulator's machine.
    0x91 ScreenshotFile "screenshot_file" Change -> None = "core.screenshot" {
        /// The file.
        path: String,
    }

    /// Writes a line to the script console.
    0xa0 ConsoleLog "console_log" Change -> None = "console.log" {
        /// The line.
        message: String,
    }
    /// Writes a warning to the script console.
    0xa1 ConsoleWarn "console_warn" Change -> None = "console.warn" {
        /// The line.
        message: String,
    }
    /// Writes an error to the script console.
    0xa2 ConsoleError "console_error" Change -> None = "console.error" {
        /// The line.
        message: String,
    }

    /// Watches memory from this batch on. Events report the changes to the program that sent the batch. The result is
    /// the current bytes of all ranges, joined.
    0xb0 Watch "watch" Read -> Bytes {
        /// Number of the watch. An older watch with this number is replaced.
        id: u32,
        /// An event comes each time this many frames have passed, even if nothing changed; 0 for no such events.
        every: u32,
        /// 1: report the keys held in each frame; 2: report the hashes of the picture and of the work RAM in the events
        /// of `every`; 4: the console's clock advances with the frames. Only embedded cores accept 2 and 4.
        flags: u8,
        /// The ranges: each `u8 n`, n bytes of a memory domain's name (none for the bus), `u32` address, `u16` length.
        /// If both `n` and the length are 0, the item is an expression: the field for the address has its size, and its
        /// bytes follow. Its value has 9 bytes, as in `evaluate`.
        ranges: Vec<u8>,
    }
    /// Ends a watch.
    0xb1 Unwatch "unwatch" Read -> None {
        /// Number of the watch.
        id: u32,
    }
    /// Evaluates expressions over memory. The result has 9 bytes for each expression: 1 and the value as `i64`, or only
    /// zeros if the expression has no value.
    0xb2 Evaluate "evaluate" Read -> Bytes {
        /// The expressions, at most 256: each `u16 n` and n bytes, as in docs/protocol.md.
        expressions: Vec<u8>,
    }
    /// Reads bytes from the bus. The address is the value that an expression has at that moment. The result is the
    /// address (`u32`) and the bytes.
    0xb3 ReadAt "read_at" Read -> Bytes {
        /// The expression, as in docs/protocol.md.
        address: Vec<u8>,
        /// Number of bytes, at most 16 MiB.
        length: u32 where 0..=MAX_RANGE as i64,
    }
    /// Writes bytes to the bus. The address is the value that an expression has at that moment. 2 or 4 bytes are
    /// written as one number, any other number of bytes one after the other. The result is the address.
    0xb4 WriteAt "write_at" Change -> Int {
        /// The expression, as in docs/protocol.md.
        address: Vec<u8>,
        /// The bytes. An attached mGBA accepts at most 256 KiB.
        data: Vec<u8>,
    }
    /// Freezes memory: writes bytes now, and again after each frame, until `unfreeze` or until another game is loaded.
    /// The address is an expression, which is evaluated each time. In frames in which it has no value, nothing is
    /// written.
    0xb5 Freeze "freeze" Change -> None {
        /// The name of the frozen value, 1 to 1,024 bytes, for `frozen` and `unfreeze`. An earlier value with this name
        /// is replaced.
        name: String,
        /// The type of the number, or `bytes`; `frozen` returns it.
        kind: String,
        /// The expression, as in docs/protocol.md.
        address: Vec<u8>,
        /// The bytes, 1 to 64.
        data: Vec<u8>,
    }
    /// Ends a `freeze`. The result says whether there was a frozen value with this name.
    0xb6 Unfreeze "unfreeze" Change -> Bool {
        /// The name of the frozen value; `*` stands for all of them.
        name: String,
    }
    /// The frozen values. For each of them: its name, its type, and its bytes as pairs of hex digits joined by commas.
    0xb7 Frozen "frozen" Read -> Names {}

    /// The cheats of an embedded core in order. For each of them: its number, `on` or `off`, its kind, its name, and
    /// its codes with line feeds between them.
    0xc0 Cheats "cheats" Read -> Names {}
    /// Adds a cheat to an embedded core and returns its number. If it is on, its codes are applied now and after each
    /// frame. Nothing is added if a code is not valid.
    0xc1 AddCheat "add_cheat" Change -> Int {
        /// Its name for people, at most 200 bytes.
        name: String,
        /// The format of its codes: `gameshark`, `gameshark_raw`, `action_replay`, `action_replay_raw`, `codebreaker`,
        /// `game_genie` or `raw` (`ADDRESS:VALUE`); or `auto`, which detects the format of each code.
        kind: String,
        /// The codes, one on each line.
        codes: String,
        /// Whether it is on.
        enabled: bool,
    }
    /// Adds the cheats in one of mGBA's cheat files to an embedded core, and returns how many were added. Nothing is
    /// added if one of them is not valid.
    0xc2 LoadCheats "load_cheats" Change -> Int {
        /// The file.
        path: String,
    }
    /// Switches a cheat on or off.
    0xc3 EnableCheat "enable_cheat" Change -> None {
        /// Number of the cheat.
        id: u32,
        /// Whether it is on.
        enabled: bool,
    }
    /// Removes a cheat.
    0xc4 RemoveCheat "remove_cheat" Change -> None {
        /// Number of the cheat; 0 removes all of them.
        id: u32,
    }
    /// The sensors of an embedded core's cartridge. For each of them: its name and its value in thousandths.
    0xc5 Sensors "sensors" Read -> Names {}
    /// Sets a sensor of an embedded core's cartridge. The game gets the value when it next reads the sensor.
    0xc6 SetSensor "set_sensor" Change -> None {
        /// `tilt_x` (to the right), `tilt_y` (towards the player), `gyro` (turning clockwise) or `light`.
        sensor: String,
        /// Its value in thousandths, for `light` 0 or more. If the console lies still in the dark, all sensors are 0.
        thousandths: i32 where -1000..=1000,
    }
    /// The layers of an embedded core's picture and the channels of its sound. For each of them: its name, `picture` or
    /// `sound`, `on` or `off`, and its name for people.
    0xc7 Layers "layers" Read -> Names {}
    /// Switches a layer of an embedded core's picture or a channel of its sound on or off, from the next frame on.
    0xc8 SetLayer "set_layer" Change -> None {
        /// Its name, such as `bg0`, `obj` or `ch1`.
        layer: String,
        /// Whether it is on.
        enabled: bool,
    }

    /// Runs Lua code in the emulator, if its settings allow that. The result is JSON: the `values` that the code
    /// returned, the lines that it wrote as `output`, and `error` if the code ended with an error. Changes made before
    /// an error stay.
    0xd0 Script "script" Change -> Text {
        /// The code.
        code: String,
    }
}
