//! The table of mGBA-http's routes, in the order of its documentation.

use framewire_protocol::op::{OpInfo, OpKind};
use framewire_protocol::{Effect, Key, Keys, MAX_RANGE, Op};

use super::params::{
    Param, RawQuery, Typed, boolean, button, buttons, exact, integer, lua_number, name, path, text,
};
use super::reply::Reply;
use crate::failure::Failure;

/// A route: how a request becomes an operation, and how its result is written.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The method of the route. A route for GET also answers HEAD.
    pub verb: Verb,
    /// Its path as mGBA-http's documentation spells it; any letter case is accepted.
    pub path: &'static str,
    /// The key of the text message that mGBA-http sends to its script for this route; empty for the echo route.
    pub message: &'static str,
    /// Its parameters, in the order in which they are checked.
    pub params: &'static [Param],
    /// The operation that it performs.
    pub op: &'static OpInfo,
    /// How the result is written.
    pub reply: Reply,
    /// What it does.
    pub doc: &'static str,
    body: RequestBody,
    /// Makes the operation.
    pub(super) build: Build,
}

/// An HTTP method.
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
    /// Uses it unchanged.
    Message,
}

/// Makes an operation from a request's query and body. The body is empty if the route ignores it.
type Build = fn(RawQuery<'_>, Vec<u8>) -> Result<Op, Failure>;

impl Route {
    /// What it does with a request's body.
    pub fn body(&self) -> RequestBody {
        self.body
    }

    /// A route that has the description and the kind of reply of its operation.
    const fn new(
        (verb, path, message): (Verb, &'static str, &'static str),
        params: &'static [Param],
        op: OpKind,
        body: RequestBody,
        build: Build,
    ) -> Route {
        let op = op.info();
        // Any web page can make a browser send a GET, so a GET must not change anything.
        assert!(matches!((verb, op.effect), (Verb::Post, _) | (_, Effect::Read)));
        Route { verb, path, message, params, op, reply: Reply::Plain(op.result), doc: op.doc, body, build }
    }

    const fn about(mut self, doc: &'static str) -> Route {
        self.doc = doc;
        self
    }

    const fn reply(mut self, reply: Reply) -> Route {
        self.reply = reply;
        self
    }
}

/// A row of the table: the method, the path and the message key; the parameters, each with a name for its value; and
/// the operation, which uses these names. If the route uses the body, the row also says how, and has a name for the
/// data in the body.
macro_rules! route {
    ($verb:ident $path:literal $message:literal ($($arg:ident: $param:expr),*) $(body $body:ident($data:ident))?
        => $op:ident $fields:tt) => {
        Route::new(
            (Verb::$verb, $path, $message),
            &[$($param.param),*],
            OpKind::$op,
            route!(@body $($body)?),
            |_query, _data| {
                $(let $arg = _query.get(&$param)?;)*
                $(let $data = _data;)?
                Ok(Op::$op $fields)
            },
        )
    };
    (@body) => { RequestBody::Ignored };
    (@body $body:ident) => { RequestBody::$body };
}

const fn flags(default: i64) -> Typed<u8> {
    let doc = "Parts of the state, added up: 1 screenshot, 2 save data, 4 cheats, 8 clock, 16 metadata.";
    integer("flags", (0, 31), exact, Some(default), doc)
}

/// The value to write to memory, from 0 to `max`.
const fn value<T: TryFrom<i64>>(max: u32) -> Typed<T> {
    integer("value", (0, max as i64), exact, None, "The value.")
}

const fn key_mask(name: &'static str) -> Typed<u16> {
    let doc =
        "Mask of keys: A is 1, B 2, Select 4, Start 8, Right 16, Left 32, Up 64, Down 128, R 256, L 512.";
    integer(name, (0, Keys::MASK as i64), exact, None, doc)
}

/// By default, loading uses all parts except the save data (2), and saving uses all parts.
const LOAD_FLAGS: Typed<u8> = flags(29);
const SAVE_FLAGS: Typed<u8> = flags(31);
const SLOT: Typed<u32> =
    lua_number("slot", i32::MAX as u32, "Number of the save slot; mGBA's menu shows 1 to 9.");
const KEY: Typed<Key> = integer(
    "key",
    (0, 9),
    |number| Key::from_number(exact(number)?),
    None,
    "Number of the key: 0 is A, then B, Select, Start, Right, Left, Up, Down, R, 9 is L.",
);
const KEY_BITMASK: Typed<u16> = key_mask("keyBitmask");
const KEYS: Typed<u16> = key_mask("keys");
const ADDRESS: Typed<u32> = lua_number("address", u32::MAX, "Bus address, such as 0x02000000.");
const OFFSET: Typed<u32> =
    lua_number("address", u32::MAX, "Offset in the memory domain. An offset past its end wraps around.");
const LENGTH: Typed<u32> = lua_number("length", MAX_RANGE, "Number of bytes.");
const VALUE8: Typed<u8> = value(u8::MAX as u32);
const VALUE16: Typed<u16> = value(u16::MAX as u32);
const VALUE32: Typed<u32> = value(u32::MAX);
const REGISTER: Typed<String> =
    name("regName", "Name of the register, such as r0 or cpsr; on the Game Boy such as a or pc.");
const REGISTER_VALUE: Typed<i32> = integer(
    "value",
    (i32::MIN as i64, u32::MAX as i64),
    // A value above the range of an `i32` keeps its bits.
    |number| Some(number as i32),
    None,
    "The value, signed or unsigned: -1 and 4294967295 are the same bits.",
);
const DOMAIN: Typed<String> = name("memoryDomain", "Name of the memory domain, such as wram.");
const PATH: Typed<String> =
    path("path", "The file. A relative path starts at the emulator's working directory.");
const TEMPORARY: Typed<bool> =
    boolean("temporary", "Whether to leave the file as it is when the game saves.");
const MESSAGE: Typed<String> = text("message", "The text.");
const BUTTON: Typed<Key> = button("button", "Name of the button.");
const BUTTONS: Typed<Keys> =
    buttons("buttons", "Names of the buttons. Repeat the parameter for each of them.");
const DURATION: Typed<u32> = integer(
    "duration",
    (0, i32::MAX as i64),
    exact,
    None,
    "The number of frames, as mGBA-http counts them: the game sees the buttons for two frames more.",
);

/// The number of frames for which a tap holds its buttons, as mGBA-http counts them: the game sees two more.
const TAP_FRAMES: u32 = 15;

/// The mask of this key alone.
fn mask(key: Key) -> u16 {
    Keys::from(key).mask()
}

/// mGBA-http's 62 routes.
#[rustfmt::skip] // one row for each route
pub static ROUTES: [Route; 62] = [
    route!(Post "/core/addkey" "core.addKey" (key: KEY) => AddKeys { keys: mask(key) })
        .about("Holds this key too, from the next frame on."),
    route!(Post "/core/addkeys" "core.addKeys" (keys: KEY_BITMASK) => AddKeys { keys }),
    route!(Post "/core/autoloadsave" "core.autoloadSave" () => AutoloadSave {}),
    route!(Get "/core/checksum" "core.checksum" () => Checksum {}),
    route!(Post "/core/clearkey" "core.clearKey" (key: KEY) => ClearKeys { keys: mask(key) })
        .about("Lets go of this key from the next frame on."),
    route!(Post "/core/clearkeys" "core.clearKeys" (keys: KEY_BITMASK) => ClearKeys { keys }),
    route!(Get "/core/currentFrame" "core.currentFrame" () => CurrentFrame {}),
    route!(Get "/core/framecycles" "core.frameCycles" () => FrameCycles {}),
    route!(Get "/core/frequency" "core.frequency" () => Frequency {}),
    route!(Get "/core/getgamecode" "core.getGameCode" () => GameCode {}),
    route!(Get "/core/getgametitle" "core.getGameTitle" () => GameTitle {}),
    route!(Get "/core/getkey" "core.getKey" (key: KEY) => GetKey { key: key as u8 }),
    route!(Get "/core/getkeys" "core.getKeys" () => GetKeys {}),
    route!(Post "/core/loadfile" "core.loadFile" (path: PATH) => LoadFile { path }),
    route!(Post "/core/loadsavefile" "core.loadSaveFile" (path: PATH, temporary: TEMPORARY) => LoadSaveFile { path, temporary }),
    route!(Post "/core/loadstatebuffer" "core.loadStateBuffer" (flags: LOAD_FLAGS) body Savestate(data) => LoadState { data, flags }),
    route!(Post "/core/loadstatefile" "core.loadStateFile" (path: PATH, flags: LOAD_FLAGS) => LoadStateFile { path, flags }),
    route!(Post "/core/loadstateslot" "core.loadStateSlot" (slot: SLOT, flags: LOAD_FLAGS) => LoadStateSlot { slot, flags }),
    route!(Get "/core/platform" "core.platform" () => Platform {}),
    route!(Get "/core/read16" "core.read16" (address: ADDRESS) => Read16 { address }),
    route!(Get "/core/read32" "core.read32" (address: ADDRESS) => Read32 { address }),
    route!(Get "/core/read8" "core.read8" (address: ADDRESS) => Read8 { address }),
    route!(Get "/core/readrange" "core.readRange" (address: ADDRESS, length: LENGTH) => ReadRange { address, length }),
    route!(Get "/core/readregister" "core.readRegister" (register: REGISTER) => ReadRegister { register }),
    route!(Get "/core/romsize" "core.romSize" () => RomSize {}),
    route!(Post "/core/savestatebuffer" "core.saveStateBuffer" (flags: SAVE_FLAGS) => SaveState { flags }),
    route!(Post "/core/savestatefile" "core.saveStateFile" (path: PATH, flags: SAVE_FLAGS) => SaveStateFile { path, flags }),
    route!(Post "/core/savestateslot" "core.saveStateSlot" (slot: SLOT, flags: SAVE_FLAGS) => SaveStateSlot { slot, flags }),
    route!(Post "/core/screenshot" "core.screenshot" (path: PATH) => ScreenshotFile { path }),
    route!(Post "/core/setkeys" "core.setKeys" (keys: KEYS) => SetKeys { keys }),
    route!(Post "/core/step" "core.step" () => Step {}),
    route!(Post "/core/write16" "core.write16" (address: ADDRESS, value: VALUE16) => Write16 { address, value }),
    route!(Post "/core/write32" "core.write32" (address: ADDRESS, value: VALUE32) => Write32 { address, value }),
    route!(Post "/core/write8" "core.write8" (address: ADDRESS, value: VALUE8) => Write8 { address, value }),
    route!(Post "/core/writeregister" "core.writeRegister" (register: REGISTER, value: REGISTER_VALUE) => WriteRegister { register, value }),
    route!(Post "/console/error" "console.error" (message: MESSAGE) => ConsoleError { message }),
    route!(Post "/console/log" "console.log" (message: MESSAGE) => ConsoleLog { message }),
    route!(Post "/console/warn" "console.warn" (message: MESSAGE) => ConsoleWarn { message }),
    route!(Post "/coreadapter/reset" "coreAdapter.reset" () => Reset {}),
    route!(Get "/coreadapter/memory" "coreAdapter.memory" () => Domains {}),
    route!(Get "/memorydomain/base" "memoryDomain.base" (domain: DOMAIN) => DomainBase { domain }),
    route!(Get "/memorydomain/bound" "memoryDomain.bound" (domain: DOMAIN) => DomainBound { domain }),
    route!(Get "/memorydomain/name" "memoryDomain.name" (domain: DOMAIN) => DomainName { domain }),
    route!(Get "/memorydomain/read16" "memoryDomain.read16" (domain: DOMAIN, address: OFFSET) => DomainRead16 { domain, address }),
    route!(Get "/memorydomain/read32" "memoryDomain.read32" (domain: DOMAIN, address: OFFSET) => DomainRead32 { domain, address }),
    route!(Get "/memorydomain/read8" "memoryDomain.read8" (domain: DOMAIN, address: OFFSET) => DomainRead8 { domain, address }),
    route!(Get "/memorydomain/readrange" "memoryDomain.readRange" (domain: DOMAIN, address: OFFSET, length: LENGTH) => DomainReadRange { domain, address, length }),
    route!(Get "/memorydomain/size" "memoryDomain.size" (domain: DOMAIN) => DomainSize { domain }),
    route!(Post "/memorydomain/write16" "memoryDomain.write16" (domain: DOMAIN, address: OFFSET, value: VALUE16) => DomainWrite16 { domain, address, value }),
    route!(Post "/memorydomain/write32" "memoryDomain.write32" (domain: DOMAIN, address: OFFSET, value: VALUE32) => DomainWrite32 { domain, address, value }),
    route!(Post "/memorydomain/write8" "memoryDomain.write8" (domain: DOMAIN, address: OFFSET, value: VALUE8) => DomainWrite8 { domain, address, value }),
    route!(Post "/mgba-http/button/add" "mgba-http.button.add" (button: BUTTON) => AddKeys { keys: mask(button) })
        .about("Holds this button too, from the next frame on."),
    route!(Post "/mgba-http/button/addmany" "mgba-http.button.addMany" (buttons: BUTTONS) => AddKeys { keys: buttons.mask() })
        .about("Holds these buttons too, from the next frame on."),
    route!(Post "/mgba-http/button/clear" "mgba-http.button.clear" (button: BUTTON) => ClearKeys { keys: mask(button) })
        .about("Lets go of this button from the next frame on."),
    route!(Post "/mgba-http/button/clearmany" "mgba-http.button.clearMany" (buttons: BUTTONS) => ClearKeys { keys: buttons.mask() })
        .about("Lets go of these buttons from the next frame on."),
    route!(Get "/mgba-http/button/get" "mgba-http.button.get" (button: BUTTON) => GetKey { key: button as u8 })
        .about("Whether a button is held: 1 or 0."),
    route!(Get "/mgba-http/button/getall" "mgba-http.button.getAll" () => GetKeys {}).reply(Reply::Buttons)
        .about("The names of the buttons that are held."),
    route!(Post "/mgba-http/button/tap" "mgba-http.button.tap" (button: BUTTON) => HoldKeys { keys: mask(button), frames: TAP_FRAMES })
        .about("Presses a button for 15 frames, as mGBA-http counts them: the game sees it in 17 frames."),
    route!(Post "/mgba-http/button/tapmany" "mgba-http.button.tapMany" (buttons: BUTTONS) => HoldKeys { keys: buttons.mask(), frames: TAP_FRAMES })
        .about("Presses buttons together for 15 frames, as mGBA-http counts them: the game sees them in 17 frames."),
    route!(Post "/mgba-http/button/hold" "mgba-http.button.hold" (button: BUTTON, frames: DURATION) => HoldKeys { keys: mask(button), frames })
        .about("Presses a button and lets go of it after a number of frames."),
    route!(Post "/mgba-http/button/holdmany" "mgba-http.button.holdMany" (buttons: BUTTONS, frames: DURATION) => HoldKeys { keys: buttons.mask(), frames })
        .about("Presses buttons together and lets go of them after a number of frames."),
    route!(Post "/mgba-http/extension/loadfile" "mgba-http.extension.loadFile" (path: PATH) => LoadRom { path }),
];

const ECHO_DOC: &str = "Sends a message through the emulator and back.";

/// The echo route of the load-test study: with the message in the URL, as in the study, and with the message in the
/// body, for messages that are too long for a URL.
#[rustfmt::skip]
pub static ECHO: [Route; 2] = [
    route!(Get "/mgbaendpoint" "" (message: MESSAGE) => Echo { data: message.into_bytes() })
        .about(ECHO_DOC).reply(Reply::Raw),
    route!(Post "/mgbaendpoint" "" () body Message(data) => Echo { data }).about(ECHO_DOC).reply(Reply::Raw),
];
