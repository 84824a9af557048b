//! The machine itself: registers of the processor, I/O registers, and the cycle counter.

mod io;

use framewire_protocol::registers::{ADVANCE, GAME_BOY};
use framewire_protocol::{Op, OpError, Value};
use serde_json::{Map, Value as Json, json};

use super::control::{AtFrame, change};
use super::convenience::{read_op, write_op};
use crate::reading::fields::Address;
use crate::routing::prelude::*;
use io::{GB, GBA, IoRegister};

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(registers))
        .routes(routes!(write_register))
        .routes(routes!(io))
        .routes(routes!(write_io))
        .routes(routes!(cycles))
}

/// The consoles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
enum Console {
    #[serde(rename = "Game Boy Advance")]
    Advance,
    #[serde(rename = "Game Boy")]
    GameBoy,
}

impl Console {
    fn io(self) -> &'static [IoRegister] {
        match self {
            Console::Advance => GBA,
            Console::GameBoy => GB,
        }
    }
}

async fn console(selected: &SelectedEmulator) -> Result<Console> {
    match selected.perform_one(Op::Platform {}).await? {
        Value::Int(0) => Ok(Console::Advance),
        _ => Ok(Console::GameBoy),
    }
}

/// Performs operations whose results are numbers. Returns the frame counter at that time, and the numbers.
async fn numbers(selected: &SelectedEmulator, ops: Vec<Op>) -> Result<(u32, Vec<i64>)> {
    let outcome = selected.perform_checked(ops).await?;
    let numbers = outcome.results.into_iter().map(|result| i64::try_from(result?));
    Ok((outcome.frame, numbers.collect::<Result<_, OpError>>()?))
}

/// The registers of the processor.
#[derive(Serialize, ToSchema)]
struct Registers {
    /// The frame counter at that time.
    frame: u32,
    /// The console whose processor it is.
    console: Console,
    /// Their values by name, unsigned.
    #[schema(value_type = std::collections::HashMap<String, u32>)]
    registers: Map<String, Json>,
}

/// Returns the registers of the processor, all from the same moment.
///
/// They are `r0` to `r15` and `cpsr` on the Game Boy Advance, and `a` to `pc` on the Game Boy.
#[utoipa::path(get, path = "/v1/registers", operation_id = "registers", tag = "machine", params(EmulatorParam),
    responses((status = 200, description = "Their values.", body = Registers)))]
async fn registers(selected: SelectedEmulator) -> Result<axum::Json<Registers>> {
    let console = console(&selected).await?;
    let names: &[&str] = match console {
        Console::Advance => &ADVANCE,
        Console::GameBoy => &GAME_BOY,
    };
    let ops = names.iter().map(|name| Op::ReadRegister { register: (*name).to_owned() }).collect();
    let (frame, values) = numbers(&selected, ops).await?;
    let register = |(name, value): (&&str, i64)| ((*name).to_owned(), json!(value as u32));
    let registers = names.iter().zip(values).map(register).collect();
    Ok(axum::Json(Registers { frame, console, registers }))
}

/// A value for a register.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RegisterValue {
    /// A number of 32 bits, signed or unsigned. A narrower register of the processor takes only the low bits. For an
    /// I/O register, only numbers from 0 to the largest that fits are accepted.
    value: i64,
}

/// Writes a register of the processor.
#[utoipa::path(put, path = "/v1/registers/{name}", operation_id = "writeRegister", tag = "machine",
    params(("name" = String, Path, description = "Its name, as GET /v1/registers lists it."), EmulatorParam),
    request_body = RegisterValue, responses((status = 200, description = "The register was written.", body = AtFrame)))]
async fn write_register(
    selected: SelectedEmulator,
    Path(register): Path<String>,
    Payload(RegisterValue { value }): Payload<RegisterValue>,
) -> Result<axum::Json<AtFrame>> {
    if !(i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value) {
        let accepts = "a number from -2147483648 to 4294967295";
        return Err(Problem::parameter("value", &format!("is {value}"), accepts));
    }
    change(&selected, Op::WriteRegister { register, value: value as i32 }).await
}

/// Writes an I/O register by its name.
#[utoipa::path(put, path = "/v1/io/{name}", operation_id = "writeIoRegister", tag = "machine",
    params(("name" = String, Path, description = "Its name, as GET /v1/io lists it."), EmulatorParam),
    request_body = RegisterValue, responses((status = 200, description = "The register was written.", body = AtFrame)))]
async fn write_io(
    selected: SelectedEmulator,
    Path(name): Path<String>,
    Payload(RegisterValue { value }): Payload<RegisterValue>,
) -> Result<axum::Json<AtFrame>> {
    let wanted = name.to_uppercase();
    let register = console(&selected).await?.io().iter().find(|register| register.name == wanted);
    let register = register.ok_or_else(|| {
        Problem::not_found(format!("no register is called {name:?} on this console; GET /v1/io lists them"))
    })?;
    let IoRegister { address, kind, .. } = *register;
    let (least, most) = kind.range();
    if !(least..=most).contains(&value) {
        let accepts = format!("a number from {least} to {most}");
        return Err(Problem::parameter("value", &format!("is {value}"), accepts));
    }
    change(&selected, write_op(kind, Address::Known(address), None, value as u32)).await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct IoQuery {
    /// Returns only registers whose name contains this text, in any letter case.
    #[serde(default)]
    contains: String,
}

/// I/O registers.
#[derive(Serialize, ToSchema)]
struct IoRegisters {
    /// The frame counter at that time.
    frame: u32,
    /// The console whose registers they are.
    console: Console,
    /// The registers in the order of their addresses.
    registers: Vec<IoValue>,
}

/// An I/O register.
#[derive(Serialize, ToSchema)]
struct IoValue {
    /// Its usual name.
    name: &'static str,
    /// Bus address.
    address: u32,
    /// Its size in bytes.
    size: u32,
    /// The value that is read. For a write-only register, it is not the value that was last written.
    value: u32,
    /// Its parts by name. Absent if it has none.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = std::collections::HashMap<String, u32>)]
    fields: Map<String, Json>,
    /// Its purpose.
    doc: &'static str,
}

impl IoValue {
    fn new(register: &IoRegister, value: u32) -> IoValue {
        let IoRegister { name, address, kind, doc, fields } = *register;
        let field = |(name, low, count): &(&str, u32, u32)| {
            ((*name).to_owned(), json!(value >> low & (u32::MAX >> (32 - count))))
        };
        let fields = fields.iter().map(field).collect();
        IoValue { name, address, size: kind.size().into(), value, fields, doc }
    }
}

/// Returns the I/O registers, decoded, all from the same moment.
///
/// PUT /v1/io/{name} writes a register.
#[utoipa::path(get, path = "/v1/io", operation_id = "ioRegisters", tag = "machine", params(EmulatorParam, IoQuery),
    responses((status = 200, description = "The registers.", body = IoRegisters)))]
async fn io(
    selected: SelectedEmulator,
    Query(IoQuery { contains }): Query<IoQuery>,
) -> Result<axum::Json<IoRegisters>> {
    let console = console(&selected).await?;
    let all = console.io();
    let part = contains.to_uppercase();
    let wanted: Vec<&IoRegister> = all.iter().filter(|register| register.name.contains(&part)).collect();
    if wanted.is_empty() {
        let accepts = "a part of the name of a register, such as DISP or TM0; without it, all are returned";
        let problem = format!("is {contains:?}, and no register's name contains it");
        return Err(Problem::parameter("contains", &problem, accepts));
    }
    let read = |register: &&IoRegister| read_op(register.kind, Address::Known(register.address), None);
    let (frame, values) = numbers(&selected, wanted.iter().map(read).collect()).await?;
    let registers = wanted.iter().zip(values);
    let registers = registers.map(|(register, value)| IoValue::new(register, value as u32)).collect();
    Ok(axum::Json(IoRegisters { frame, console, registers }))
}

/// The clock of the console.
#[derive(Serialize, ToSchema)]
struct CycleCounter {
    /// The frame counter at that time.
    frame: u32,
    /// Clock cycles since the last reset.
    cycles: i64,
    /// Clock cycles in a second of the console's time.
    frequency: i64,
}

/// The clock cycles since the last reset.
///
/// A loaded state sets the count to the one in the state. A stock mGBA answers 501, because its scripts cannot read the
/// counter.
#[utoipa::path(get, path = "/v1/cycles", operation_id = "cycleCounter", tag = "machine", params(EmulatorParam),
    responses((status = 200, description = "The cycles.", body = CycleCounter)))]
async fn cycles(selected: SelectedEmulator) -> Result<axum::Json<CycleCounter>> {
    let (frame, numbers) = numbers(&selected, vec![Op::Cycles {}, Op::Frequency {}]).await?;
    let [cycles, frequency] = numbers[..] else {
        return Err(OpError::failed("the emulator did not return two numbers").into());
    };
    Ok(axum::Json(CycleCounter { frame, cycles, frequency }))
}
