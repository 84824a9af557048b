use serde::{Serialize, Serializer};

/// How an emulator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Kind {
    /// In this process.
    Embedded,
    /// In a stock mGBA elsewhere, with a script loaded.
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
    /// The emulator does not answer: paused in its own window, without a ROM, or hung.
    Stalled,
    /// There is no connection.
    Unknown,
}

/// The speed setting: in JSON a number, or `unlimited`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SetSpeed {
    /// A multiple of the console's rate.
    Times(f64),
    /// As fast as the processor allows.
    Unlimited,
}

impl Serialize for SetSpeed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            // Written as 1, and not as 1.0.
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
    /// Where it runs.
    pub kind: Kind,
    /// Whether it can be reached. An embedded core always can.
    pub connected: bool,
    /// Whether frames run.
    pub run: Run,
    /// The speed setting, as for POST /v1/speed: a multiple of the console's rate, or `unlimited`. Embedded cores only.
    pub speed: Option<SetSpeed>,
    /// Whether each frame waits for a request.
    pub lockstep: bool,
    /// Finished frames per second, over about the last second.
    pub frames_per_second: f64,
    /// The frame counter, which starts again with a reset.
    pub frame: u32,
    /// The game's title, once known.
    pub title: Option<String>,
    /// The game's code, once known.
    pub code: Option<String>,
    /// The CRC-32 of the game's ROM, eight hex digits, once known.
    #[serde(serialize_with = "hex")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub checksum: Option<u32>,
    /// Version of the script in an attached emulator; `mGBA-http` for that project's script.
    pub script_version: Option<String>,
    /// Version of libmgba in an embedded emulator.
    pub library_version: Option<String>,
    /// How that libmgba was built: from source or installed, and how it was optimised.
    pub library_build: Option<String>,
    /// The address of an attached emulator, as `HOST:PORT`.
    pub address: Option<String>,
    /// Why there is no connection, if there is none.
    pub problem: Option<String>,
    /// Why the game's save is not written to its file, if it is not. Embedded cores only.
    pub save_problem: Option<String>,
    /// The path of the patch that was applied to the ROM, if one was. Embedded cores only.
    pub patch: Option<String>,
    /// The problems that the ROM's own header shows: it is cut short or damaged. Embedded cores only.
    pub rom_problems: Vec<String>,
}

fn hex<S: Serializer>(checksum: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
    checksum.map(|checksum| format!("{checksum:08x}")).serialize(serializer)
}
