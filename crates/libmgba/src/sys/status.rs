use std::ffi::c_int;

/// `enum fw_status`, without its `FW_OK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    NoMemory,
    NotARom,
    Truncated,
    OtherPlatform,
    LoadFailed,
    StateSaveFailed,
    StateFormat,
    StateOtherPlatform,
    StateOtherGame,
    NoFile,
    SaveRefused,
    ScreenshotFailed,
    NoScripting,
    ScriptFailed,
    CheatLine,
    CheatIncomplete,
    CheatAddress,
    CheatOutside,
    CheatOtherGame,
    NotABios,
}

/// All statuses, in the order of the C enum, from 1 on.
const ALL: [Status; 20] = [
    Status::NoMemory,
    Status::NotARom,
    Status::Truncated,
    Status::OtherPlatform,
    Status::LoadFailed,
    Status::StateSaveFailed,
    Status::StateFormat,
    Status::StateOtherPlatform,
    Status::StateOtherGame,
    Status::NoFile,
    Status::SaveRefused,
    Status::ScreenshotFailed,
    Status::NoScripting,
    Status::ScriptFailed,
    Status::CheatLine,
    Status::CheatIncomplete,
    Status::CheatAddress,
    Status::CheatOutside,
    Status::CheatOtherGame,
    Status::NotABios,
];

/// Converts a return value of the shim to a result.
pub fn check(code: c_int) -> Result<(), Status> {
    match usize::try_from(code) {
        Ok(0) => Ok(()),
        Ok(n) => Err(ALL.get(n - 1).copied().unwrap_or(Status::LoadFailed)),
        Err(_) => Err(Status::LoadFailed),
    }
}
