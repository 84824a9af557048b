//! The table of mGBA-http's routes, in the order of its documents.

use framewire_protocol::op::OPS;
use framewire_protocol::{Key, Keys, MAX_RANGE, Op};

use super::args::Args;
use super::params::{Kind, Param};
use super::reply::Reply;
use super::reply::Reply::{Bool, Buttons, Empty, Hex, Names, Number, Raw, Text};

/// A route: how a request becomes an operation, and how its result is written.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The method it answers; one that answers GET answers HEAD too.
    pub verb: Verb,
    /// Its path as mGBA-http's documents spell it; any letter case is accepted.
    pub path: &'static str,
    /// The key of the text message that mGBA-http makes of it.
    pub message: &'static str,
    /// What it does with a body.
    pub body: RequestBody,
    /// Its parameters, in the order in which `build` takes them.
    pub params: &'static [Param],
    /// The form of its reply.
    pub reply: Reply,
    /// Makes the operation. `None` if this row is wrong, which a test rules out.
    pub(crate) build: fn(&mut Args) -> Option<Op>,
    /// What it does, where that is not what the operation of the same message key does.
    doc: Option<&'static str>,
}

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// GET, and HEAD with it.
    Get,
    /// POST.
    Post,
}

/// What a route does with a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestBody {
    /// Nothing.
    Ignored,
    /// Reads it as a savestate in hex pairs.
    Savestate,
    /// Takes it as it is.
    Message,
}

impl Route {
    /// What it does.
    pub fn doc(&self) -> &'static str {
        let same_key = || OPS.iter().find(|op| op.marker == Some(self.message)).map(|op| op.doc);
        self.doc.or_else(same_key).unwrap_or_default()
    }

    const fn about(mut self, doc: &'static str) -> Route {
        self.doc = Some(doc);
        self
    }
}

type Build = fn(&mut Args) -> Option<Op>;

const fn get(
    path: &'static str,
    message: &'static str,
    params: &'static [Param],
    reply: Reply,
    build: Build,
) -> Route {
    Route { verb: Verb::Get, path, message, body: RequestBody::Ignored, params, reply, build, doc: None }
}

const fn post(
    path: &'static str,
    message: &'static str,
    params: &'static [Param],
    reply: Reply,
    build: Build,
) -> Route {
    Route { verb: Verb::Post, ..get(path, message, params, reply, build) }
}

const fn param(name: &'static str, kind: Kind, doc: &'static str) -> Param {
    Param { name, kind, default: None, doc }
}

const fn integer(name: &'static str, max: i64, doc: &'static str) -> Param {
    param(name, Kind::Integer { min: 0, max }, doc)
}

const fn flags(default: i64) -> Param {
    let doc = "Parts of the state, added up: 1 screenshot, 2 save data, 4 cheats, 8 clock, 16 metadata.";
    Param { default: Some(default), ..integer("flags", 31, doc) }
}

/// Loading takes all parts but the picture, saving all parts, unless told otherwise.
const LOAD_FLAGS: Param = flags(29);
const SAVE_FLAGS: Param = flags(31);
const SLOT: Param = param(
    "slot",
    Kind::LuaNumber { max: i32::MAX as u32 },
    "Number of the slot beside the ROM; mGBA's menu shows 1 to 9.",
);
const KEY: Param =
    integer("key", 9, "Number of the key: 0 is A, then B, Select, Start, Right, Left, Up, Down, R, 9 is L.");
const MASK_DOC: &str =
    "Mask of keys: A is 1, B 2, Select 4, Start 8, Right 16, Left 32, Up 64, Down 128, R 256, L 512.";
const KEY_BITMASK: Param = integer("keyBitmask", Keys::MASK as i64, MASK_DOC);
const KEYS: Param = integer("keys", Keys::MASK as i64, MASK_DOC);
const ADDRESS: Param =
    param("address", Kind::LuaNumber { max: u32::MAX }, "Bus address, such as 0x02000000.");
const OFFSET: Param = param(
    "address",
    Kind::LuaNumber { max: u32::MAX },
    "Offset in the memory domain; past its end it wraps.",
);
const LENGTH: Param = param("length", Kind::LuaNumber { max: MAX_RANGE }, "Number of bytes.");
const VALUE8: Param = integer("value", u8::MAX as i64, "The value.");
const VALUE16: Param = integer("value", u16::MAX as i64, "The value.");
const VALUE32: Param = integer("value", u32::MAX as i64, "The value.");
const REGISTER: Param = param(
    "regName",
    Kind::Name,
    "Name of the register, such as r0 or cpsr; on the Game Boy such as a or pc.",
);
const REGISTER_VALUE: Param = param(
    "value",
    Kind::Integer { min: i32::MIN as i64, max: u32::MAX as i64 },
    "The value, signed or unsigned: -1 and 4294967295 are the same bits.",
);
const DOMAIN: Param = param("memoryDomain", Kind::Name, "Name of the memory domain, such as wram.");
const PATH: Param = param("path", Kind::Path, "The file; a relative path is the emulator's.");
const TEMPORARY: Param =
    param("temporary", Kind::Boolean, "Whether to leave the file as it is when the game saves.");
const MESSAGE: Param = param("message", Kind::Text, "The text.");
const BUTTON: Param = param("button", Kind::Button, "Name of the button.");
const BUTTONS: Param =
    param("buttons", Kind::Buttons, "Names of the buttons, one each time the parameter is repeated.");
const DURATION: Param = integer("duration", i32::MAX as i64, "Number of frames.");

/// For how many frames a tap holds its buttons.
const TAP_FRAMES: u32 = 15;

/// A mask with the key of this number alone.
fn mask_of(number: u8) -> Option<u16> {
    Key::from_number(number).map(|key| Keys::from(key).mask())
}

/// mGBA-http's 62 routes.
#[rustfmt::skip] // one row a route
pub static ROUTES: [Route; 62] = [
    post("/core/addkey", "core.addKey", &[KEY], Empty, |a| Some(Op::AddKeys { keys: mask_of(a.number()?)? }))
        .about("Holds this key too, from the next frame on."),
    post("/core/addkeys", "core.addKeys", &[KEY_BITMASK], Empty, |a| Some(Op::AddKeys { keys: a.number()? })),
    post("/core/autoloadsave", "core.autoloadSave", &[], Bool, |_| Some(Op::AutoloadSave {})),
    get("/core/checksum", "core.checksum", &[], Number, |_| Some(Op::Checksum {})),
    post("/core/clearkey", "core.clearKey", &[KEY], Empty, |a| Some(Op::ClearKeys { keys: mask_of(a.number()?)? }))
        .about("Lets go of this key from the next frame on."),
    post("/core/clearkeys", "core.clearKeys", &[KEY_BITMASK], Empty, |a| Some(Op::ClearKeys { keys: a.number()? })),
    get("/core/currentFrame", "core.currentFrame", &[], Number, |_| Some(Op::CurrentFrame {})),
    get("/core/framecycles", "core.frameCycles", &[], Number, |_| Some(Op::FrameCycles {})),
    get("/core/frequency", "core.frequency", &[], Number, |_| Some(Op::Frequency {})),
    get("/core/getgamecode", "core.getGameCode", &[], Text, |_| Some(Op::GameCode {})),
    get("/core/getgametitle", "core.getGameTitle", &[], Text, |_| Some(Op::GameTitle {})),
    get("/core/getkey", "core.getKey", &[KEY], Number, |a| Some(Op::GetKey { key: a.number()? })),
    get("/core/getkeys", "core.getKeys", &[], Number, |_| Some(Op::GetKeys {})),
    post("/core/loadfile", "core.loadFile", &[PATH], Bool, |a| Some(Op::LoadFile { path: a.text()? })),
    post("/core/loadsavefile", "core.loadSaveFile", &[PATH, TEMPORARY], Bool,
        |a| Some(Op::LoadSaveFile { path: a.text()?, temporary: a.boolean()? })),
    Route { body: RequestBody::Savestate, ..post("/core/loadstatebuffer", "core.loadStateBuffer", &[LOAD_FLAGS], Bool,
        |a| Some(Op::LoadState { data: a.bytes()?, flags: a.number()? })) },
    post("/core/loadstatefile", "core.loadStateFile", &[PATH, LOAD_FLAGS], Bool,
        |a| Some(Op::LoadStateFile { path: a.text()?, flags: a.number()? })),
    post("/core/loadstateslot", "core.loadStateSlot", &[SLOT, LOAD_FLAGS], Bool,
        |a| Some(Op::LoadStateSlot { slot: a.number()?, flags: a.number()? })),
    get("/core/platform", "core.platform", &[], Number, |_| Some(Op::Platform {})),
    get("/core/read16", "core.read16", &[ADDRESS], Number, |a| Some(Op::Read16 { address: a.number()? })),
    get("/core/read32", "core.read32", &[ADDRESS], Number, |a| Some(Op::Read32 { address: a.number()? })),
    get("/core/read8", "core.read8", &[ADDRESS], Number, |a| Some(Op::Read8 { address: a.number()? })),
    get("/core/readrange", "core.readRange", &[ADDRESS, LENGTH], Hex,
        |a| Some(Op::ReadRange { address: a.number()?, length: a.number()? })),
    get("/core/readregister", "core.readRegister", &[REGISTER], Number,
        |a| Some(Op::ReadRegister { register: a.text()? })),
    get("/core/romsize", "core.romSize", &[], Number, |_| Some(Op::RomSize {})),
    post("/core/savestatebuffer", "core.saveStateBuffer", &[SAVE_FLAGS], Hex,
        |a| Some(Op::SaveState { flags: a.number()? })),
    post("/core/savestatefile", "core.saveStateFile", &[PATH, SAVE_FLAGS], Bool,
        |a| Some(Op::SaveStateFile { path: a.text()?, flags: a.number()? })),
    post("/core/savestateslot", "core.saveStateSlot", &[SLOT, SAVE_FLAGS], Bool,
        |a| Some(Op::SaveStateSlot { slot: a.number()?, flags: a.number()? })),
    post("/core/screenshot", "core.screenshot", &[PATH], Empty, |a| Some(Op::ScreenshotFile { path: a.text()? })),
    post("/core/setkeys", "core.setKeys", &[KEYS], Empty, |a| Some(Op::SetKeys { keys: a.number()? })),
    post("/core/step", "core.step", &[], Empty, |_| Some(Op::Step {})),
    post("/core/write16", "core.write16", &[ADDRESS, VALUE16], Empty,
        |a| Some(Op::Write16 { address: a.number()?, value: a.number()? })),
    post("/core/write32", "core.write32", &[ADDRESS, VALUE32], Empty,
        |a| Some(Op::Write32 { address: a.number()?, value: a.number()? })),
    post("/core/write8", "core.write8", &[ADDRESS, VALUE8], Empty,
        |a| Some(Op::Write8 { address: a.number()?, value: a.number()? })),
    post("/core/writeregister", "core.writeRegister", &[REGISTER, REGISTER_VALUE], Empty,
        // A value above the signed range keeps its bits.
        |a| Some(Op::WriteRegister { register: a.text()?, value: a.number::<i64>()? as i32 })),
    post("/console/error", "console.error", &[MESSAGE], Empty, |a| Some(Op::ConsoleError { message: a.text()? })),
    post("/console/log", "console.log", &[MESSAGE], Empty, |a| Some(Op::ConsoleLog { message: a.text()? })),
    post("/console/warn", "console.warn", &[MESSAGE], Empty, |a| Some(Op::ConsoleWarn { message: a.text()? })),
    post("/coreadapter/reset", "coreAdapter.reset", &[], Empty, |_| Some(Op::Reset {})),
    get("/coreadapter/memory", "coreAdapter.memory", &[], Names, |_| Some(Op::Domains {})),
    get("/memorydomain/base", "memoryDomain.base", &[DOMAIN], Number, |a| Some(Op::DomainBase { domain: a.text()? })),
    get("/memorydomain/bound", "memoryDomain.bound", &[DOMAIN], Number,
        |a| Some(Op::DomainBound { domain: a.text()? })),
    get("/memorydomain/name", "memoryDomain.name", &[DOMAIN], Text, |a| Some(Op::DomainName { domain: a.text()? })),
    get("/memorydomain/read16", "memoryDomain.read16", &[DOMAIN, OFFSET], Number,
        |a| Some(Op::DomainRead16 { domain: a.text()?, address: a.number()? })),
    get("/memorydomain/read32", "memoryDomain.read32", &[DOMAIN, OFFSET], Number,
        |a| Some(Op::DomainRead32 { domain: a.text()?, address: a.number()? })),
    get("/memorydomain/read8", "memoryDomain.read8", &[DOMAIN, OFFSET], Number,
        |a| Some(Op::DomainRead8 { domain: a.text()?, address: a.number()? })),
    get("/memorydomain/readrange", "memoryDomain.readRange", &[DOMAIN, OFFSET, LENGTH], Hex,
        |a| Some(Op::DomainReadRange { domain: a.text()?, address: a.number()?, length: a.number()? })),
    get("/memorydomain/size", "memoryDomain.size", &[DOMAIN], Number, |a| Some(Op::DomainSize { domain: a.text()? })),
    post("/memorydomain/write16", "memoryDomain.write16", &[DOMAIN, OFFSET, VALUE16], Empty,
        |a| Some(Op::DomainWrite16 { domain: a.text()?, address: a.number()?, value: a.number()? })),
    post("/memorydomain/write32", "memoryDomain.write32", &[DOMAIN, OFFSET, VALUE32], Empty,
        |a| Some(Op::DomainWrite32 { domain: a.text()?, address: a.number()?, value: a.number()? })),
    post("/memorydomain/write8", "memoryDomain.write8", &[DOMAIN, OFFSET, VALUE8], Empty,
        |a| Some(Op::DomainWrite8 { domain: a.text()?, address: a.number()?, value: a.number()? })),
    post("/mgba-http/button/add", "mgba-http.button.add", &[BUTTON], Empty, |a| Some(Op::AddKeys { keys: a.keys()? }))
        .about("Holds this button too, from the next frame on."),
    post("/mgba-http/button/addmany", "mgba-http.button.addMany", &[BUTTONS], Empty,
        |a| Some(Op::AddKeys { keys: a.keys()? }))
        .about("Holds these buttons too, from the next frame on."),
    post("/mgba-http/button/clear", "mgba-http.button.clear", &[BUTTON], Empty,
        |a| Some(Op::ClearKeys { keys: a.keys()? }))
        .about("Lets go of this button from the next frame on."),
    post("/mgba-http/button/clearmany", "mgba-http.button.clearMany", &[BUTTONS], Empty,
        |a| Some(Op::ClearKeys { keys: a.keys()? }))
        .about("Lets go of these buttons from the next frame on."),
    get("/mgba-http/button/get", "mgba-http.button.get", &[BUTTON], Number, |a| Some(Op::GetKey { key: a.key()? }))
        .about("Whether a button is held: 1 or 0."),
    get("/mgba-http/button/getall", "mgba-http.button.getAll", &[], Buttons, |_| Some(Op::GetKeys {}))
        .about("The names of the buttons that are held."),
    post("/mgba-http/button/tap", "mgba-http.button.tap", &[BUTTON], Empty,
        |a| Some(Op::HoldKeys { keys: a.keys()?, frames: TAP_FRAMES }))
        .about("Presses a button and lets go of it after 15 frames."),
    post("/mgba-http/button/tapmany", "mgba-http.button.tapMany", &[BUTTONS], Empty,
        |a| Some(Op::HoldKeys { keys: a.keys()?, frames: TAP_FRAMES }))
        .about("Presses buttons together and lets go of them after 15 frames."),
    post("/mgba-http/button/hold", "mgba-http.button.hold", &[BUTTON, DURATION], Empty,
        |a| Some(Op::HoldKeys { keys: a.keys()?, frames: a.number()? }))
        .about("Presses a button and lets go of it after a number of frames."),
    post("/mgba-http/button/holdmany", "mgba-http.button.holdMany", &[BUTTONS, DURATION], Empty,
        |a| Some(Op::HoldKeys { keys: a.keys()?, frames: a.number()? }))
        .about("Presses buttons together and lets go of them after a number of frames."),
    post("/mgba-http/extension/loadfile", "mgba-http.extension.loadFile", &[PATH], Bool,
        |a| Some(Op::LoadRom { path: a.text()? })),
];

const ECHO_DOC: &str = "Sends a message through the emulator and back.";

/// The load-test study's echo: in the URL as the study had it, and as a body for what is too long for one.
pub static ECHO: [Route; 2] = [
    get("/mgbaendpoint", "", &[MESSAGE], Raw, |a| Some(Op::Echo { data: a.bytes()? })).about(ECHO_DOC),
    Route {
        body: RequestBody::Message,
        ..post("/mgbaendpoint", "", &[], Raw, |a| Some(Op::Echo { data: a.bytes()? })).about(ECHO_DOC)
    },
];
