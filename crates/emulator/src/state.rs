use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Where an emulator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Kind {
    /// In Framewire's own process.
    Embedded,
    /// In a stock mGBA in another process, with a script loaded.
    Attached,
}

/// Whether frames run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Run {
    /// Frames run.
    Running,
    /// Frames were stopped by request. The emulator answers.
    Paused,
    /// The emulator does not answer: it is paused in its own window, has no ROM, or hangs.
    Stalled,
    /// There is no connection.
    Unknown,
}

/// The speed setting. In JSON, it is a number or the text `unlimited`. In an argument, an `x` can follow the number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SetSpeed {
    /// A multiple of the console's own rate of 59.7275 frames per second, from 0.01 to 1000.
    Times(f64),
    /// As fast as the processor allows.
    Unlimited,
}

impl FromStr for SetSpeed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("unlimited") {
            return Ok(SetSpeed::Unlimited);
        }
        match text.trim_end_matches(['x', 'X']).parse() {
            Ok(times) if (0.01..=1000.0).contains(&times) => Ok(SetSpeed::Times(times)),
            _ => Err("a speed is a number from 0.01 to 1000, or unlimited".to_owned()),
        }
    }
}

impl Serialize for SetSpeed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            // 1 is written as `1`, not as `1.0`.
            SetSpeed::Times(times) if times.fract() == 0.0 => serializer.serialize_u64(*times as u64),
            SetSpeed::Times(times) => serializer.serialize_f64(*times),
            SetSpeed::Unlimited => serializer.serialize_str("unlimited"),
        }
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for SetSpeed {}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for SetSpeed {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
        let times = ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0.01)).maximum(Some(1000));
        let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["unlimited"]));
        Schema::from(OneOfBuilder::new().item(times).item(name)).into()
    }
}

/// The state of an emulator.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct State {
    /// Where the emulator runs.
    pub kind: Kind,
    /// Whether Framewire is connected to the emulator. For an embedded core, this is always true.
    pub connected: bool,
    /// Whether frames run.
    pub run: Run,
    /// The speed setting, as for POST /v1/speed: a multiple of the console's rate, or `unlimited`. Embedded cores only.
    pub speed: Option<SetSpeed>,
    /// Whether the emulator is in lockstep: each frame waits for a request.
    pub lockstep: bool,
    /// The number of frames per second, over about the last second.
    pub frames_per_second: f64,
    /// The frame counter, which starts again with a reset.
    pub frame: u32,
    /// The game's title, if it is known.
    pub title: Option<String>,
    /// The game's code, if it is known.
    pub code: Option<String>,
    /// The CRC-32 of the game's ROM as eight hex digits, if it is known.
    #[serde(serialize_with = "hex")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub checksum: Option<u32>,
    /// The version of the script in an attached emulator; `mGBA-http` for that project's script.
    pub script_version: Option<String>,
    /// The version of libmgba in an embedded emulator.
    pub library_version: Option<String>,
    /// How the libmgba of an embedded emulator was built: from source or installed, and how it was optimised.
    pub library_build: Option<String>,
    /// The address of an attached emulator, as `HOST:PORT`.
    pub address: Option<String>,
    /// If there is no connection, the reason.
    pub problem: Option<String>,
    /// If the game's save cannot be written to its file, the reason. Embedded cores only.
    pub save_problem: Option<String>,
    /// The path of the patch, if a patch was applied to the ROM. Embedded cores only.
    pub patch: Option<String>,
    /// Problems that the ROM's header shows: the ROM is cut short or damaged. Embedded cores only.
    pub rom_problems: Vec<String>,
}

fn hex<S: Serializer>(checksum: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
    checksum.map(|checksum| format!("{checksum:08x}")).serialize(serializer)
}
