//! The forms in which people write codes, and the forms that libmgba accepts.

use super::CheatKind;
use crate::platform::Platform;

/// The form of a code.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// Game Boy Advance: 8 and 4 digits.
    CodeBreaker,
    /// Game Boy Advance: 8 and 8 digits.
    GbaGameShark,
    /// An address, a colon and a value.
    Raw,
    /// Game Boy: 8 digits.
    GameShark,
    /// Game Boy: 3 and 3 digits, or 3, 3 and 3.
    GameGenie,
    /// Game Boy: 6 and 2 digits.
    GbCodeBreaker,
}

impl Form {
    fn describe(&self) -> &'static str {
        match self {
            Form::CodeBreaker => "XXXXXXXX YYYY (CodeBreaker)",
            Form::GbaGameShark => "XXXXXXXX YYYYYYYY (GameShark, Action Replay)",
            Form::Raw => "ADDRESS:VALUE",
            Form::GameShark => "01VVLLHH (GameShark)",
            Form::GameGenie => "XXX-XXX or XXX-XXX-XXX (Game Genie)",
            Form::GbCodeBreaker => "BBAAAA-VV (CodeBreaker)",
        }
    }
}

/// The forms that codes of this kind can have on a console; empty if the console has no codes of this kind.
fn forms(platform: Platform, kind: CheatKind) -> &'static [Form] {
    use CheatKind::*;
    match (platform, kind) {
        (_, Raw) => &[Form::Raw],
        (Platform::Gba, Auto) => &[Form::CodeBreaker, Form::GbaGameShark, Form::Raw],
        (Platform::Gba, CodeBreaker) => &[Form::CodeBreaker],
        (Platform::Gba, GameShark | GameSharkRaw | ActionReplay | ActionReplayRaw) => &[Form::GbaGameShark],
        (Platform::Gba, GameGenie) => &[],
        (Platform::Gb, Auto) => &[Form::GameShark, Form::GameGenie, Form::GbCodeBreaker, Form::Raw],
        (Platform::Gb, GameShark) => &[Form::GameShark],
        (Platform::Gb, GameGenie) => &[Form::GameGenie],
        (Platform::Gb, CodeBreaker) => &[Form::GbCodeBreaker],
        (Platform::Gb, GameSharkRaw | ActionReplay | ActionReplayRaw) => &[],
    }
}

/// The groups of digits of a code, and the characters between them.
struct Groups<'a> {
    digits: Vec<&'a str>,
    colon: bool,
    dash: bool,
}

/// Splits a code at white space, dashes and colons.
fn groups(text: &str) -> Result<Groups<'_>, String> {
    let refused = text
        .char_indices()
        .find(|(_, c)| !c.is_ascii_hexdigit() && !c.is_ascii_whitespace() && *c != '-' && *c != ':');
    if let Some((at, character)) = refused {
        let column = text[..at].chars().count() + 1;
        return Err(format!("the character {character:?} in column {column} is not a hexadecimal digit"));
    }
    let digits = text.split(|c: char| c.is_ascii_whitespace() || c == '-' || c == ':');
    Ok(Groups {
        digits: digits.filter(|group| !group.is_empty()).collect(),
        colon: text.contains(':'),
        dash: text.contains('-'),
    })
}

/// The form of a code, from the lengths of its groups.
fn form(platform: Platform, groups: &Groups<'_>) -> Option<Form> {
    let lengths: Vec<usize> = groups.digits.iter().map(|group| group.len()).collect();
    match (platform, groups.colon, lengths.as_slice()) {
        (Platform::Gba, true, [8, 2 | 4 | 8]) | (Platform::Gb, true, [4, 2]) => Some(Form::Raw),
        (_, true, _) => None,
        (Platform::Gba, false, [8, 4] | [12]) if !groups.dash => Some(Form::CodeBreaker),
        (Platform::Gba, false, [8, 8] | [16]) if !groups.dash => Some(Form::GbaGameShark),
        (Platform::Gb, false, [8]) => Some(Form::GameShark),
        (Platform::Gb, false, [3, 3] | [3, 3, 3] | [6] | [9]) => Some(Form::GameGenie),
        (Platform::Gb, false, [6, 2]) => Some(Form::GbCodeBreaker),
        _ => None,
    }
}

/// Converts a code to the form that libmgba accepts. libmgba detects the kind of code from this form.
///
/// # Errors
/// If the code is not accepted. The message says what is wrong, and what is accepted.
pub(super) fn for_mgba(platform: Platform, kind: CheatKind, text: &str) -> Result<String, String> {
    let accepted = forms(platform, kind);
    if accepted.is_empty() {
        return Err(format!("there are no {kind} codes for the {platform}"));
    }
    let groups = groups(text)?;
    let form = form(platform, &groups);
    let Some(form) = form.filter(|form| accepted.contains(form)) else {
        let lengths: Vec<String> = groups.digits.iter().map(|group| group.len().to_string()).collect();
        let forms: Vec<_> = accepted.iter().map(Form::describe).collect();
        return Err(format!(
            "it has {} digits; {kind} codes of the {platform} have the form {}",
            if lengths.is_empty() { "no".to_owned() } else { lengths.join(" and ") },
            forms.join(", or ")
        ));
    };
    let all = groups.digits.concat();
    Ok(match form {
        Form::CodeBreaker | Form::GbaGameShark => format!("{} {}", &all[..8], &all[8..]),
        Form::Raw if platform == Platform::Gba => {
            check_aligned(&all)?;
            format!("{}:{}", &all[..8], &all[8..])
        }
        // libmgba 0.10 has a bug with raw codes for the Game Boy: it uses a part of the address as the value. So it
        // gets a GameShark code with the same effect.
        Form::Raw => gameshark(&all[..4], &all[4..]),
        // A GameShark code has no digits for the bank BB.
        Form::GbCodeBreaker => gameshark(&all[2..6], &all[6..]),
        Form::GameShark => all,
        Form::GameGenie => {
            let parts: Vec<&str> = (0..all.len()).step_by(3).map(|at| &all[at..at + 3]).collect();
            parts.join("-")
        }
    })
}

/// Refuses values whose address is not a multiple of their size, because the console would write them to another
/// address.
fn check_aligned(digits: &str) -> Result<(), String> {
    let (address, value) = digits.split_at(8);
    let (number, size) = (u32::from_str_radix(address, 16).unwrap_or_default(), value.len() as u32 / 2);
    if number.is_multiple_of(size) {
        return Ok(());
    }
    Err(format!("the address 0x{address} is not a multiple of {size}, the size of the value in bytes"))
}

/// A Game Boy GameShark code that writes this value.
fn gameshark(address: &str, value: &str) -> String {
    let (high, low) = address.split_at(2);
    format!("01{value}{low}{high}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_people_write_them() {
        for (platform, text, expected) in [
            (Platform::Gba, "82000100 0063", "82000100 0063"),
            (Platform::Gba, "820001000063", "82000100 0063"),
            (Platform::Gba, "  02000100:63", "02000100:63"),
            (Platform::Gba, "AABBCCDD 11223344", "AABBCCDD 11223344"),
            (Platform::Gb, "c0A0:05", "0105A0c0"),
            (Platform::Gb, "00C0A0-05", "0105A0C0"),
            (Platform::Gb, "0105A0C0", "0105A0C0"),
            (Platform::Gb, "00A17BC49", "00A-17B-C49"),
            (Platform::Gb, "00A-17B", "00A-17B"),
        ] {
            assert_eq!(for_mgba(platform, CheatKind::Auto, text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_code_of_another_device_is_refused_with_the_accepted_form() {
        let error = for_mgba(Platform::Gba, CheatKind::GameShark, "82000100 0063").unwrap_err();
        assert_eq!(
            error,
            "it has 8 and 4 digits; gameshark codes of the Game Boy Advance have the form XXXXXXXX YYYYYYYY \
             (GameShark, Action Replay)"
        );
        let error = for_mgba(Platform::Gba, CheatKind::GameGenie, "00A-17B").unwrap_err();
        assert_eq!(error, "there are no game_genie codes for the Game Boy Advance");
        let error = for_mgba(Platform::Gb, CheatKind::Auto, "01O5A0C0").unwrap_err();
        assert_eq!(error, "the character 'O' in column 3 is not a hexadecimal digit");
        let error = for_mgba(Platform::Gba, CheatKind::Raw, "02000101:1234").unwrap_err();
        assert_eq!(error, "the address 0x02000101 is not a multiple of 2, the size of the value in bytes");
    }
}
