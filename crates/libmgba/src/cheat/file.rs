//! Reads mGBA's cheat files. A line `# Name` begins a cheat, and `!disabled` before it switches the cheat off. `!GSAv1`
//! and similar lines name the encryption of the following cheats, until `!reset`. A cheat for which no encryption is
//! named, even after `!reset`, has that of the cheat before it, as in mGBA. All other lines are codes.

use std::path::Path;

use super::{Cheat, CheatKind, Code};
use crate::error::Error;
use crate::state::file_len;

/// The largest file that is accepted, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Reads one of mGBA's cheat files.
///
/// # Errors
/// If the file cannot be read, or a line does not have the right format. The codes are checked later, when the cheats
/// are added.
pub fn read_cheats(path: &Path) -> Result<Vec<Cheat>, Error> {
    let shown = path.display().to_string();
    let refused = |problem: String| Error::Cheat { place: shown.clone(), problem };
    let length = file_len(path)?;
    if length > MAX_FILE {
        return Err(refused(format!("the file has {length} bytes; a file of cheats has at most {MAX_FILE}")));
    }
    let bytes = framewire_files::read(path, MAX_FILE).map_err(|error| Error::read(path, error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        refused(format!(
            "byte {} is not UTF-8 text; save the file as UTF-8",
            error.utf8_error().valid_up_to()
        ))
    })?;
    parse(&shown, &text)
}

fn parse(file: &str, text: &str) -> Result<Vec<Cheat>, Error> {
    let mut cheats: Vec<Cheat> = Vec::new();
    let (mut kind, mut disabled) = (CheatKind::Auto, false);
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        let refused = |problem: &str| Error::Cheat {
            place: format!("{file} line {} ({line:?})", index + 1),
            problem: problem.to_owned(),
        };
        let begin = |name: &str, disabled: bool| Cheat {
            name: name.to_owned(),
            kind,
            codes: Vec::new(),
            enabled: !disabled,
            file: Some(file.to_owned()),
        };
        if let Some(name) = line.strip_prefix('#') {
            cheats.push(begin(name.trim(), std::mem::take(&mut disabled)));
        } else if let Some(directive) = line.strip_prefix('!') {
            match directive.trim() {
                word if word.eq_ignore_ascii_case("disabled") => disabled = true,
                word if word.eq_ignore_ascii_case("reset") => kind = CheatKind::Auto,
                "GSAv1" => kind = CheatKind::GameShark,
                "GSAv1 raw" => kind = CheatKind::GameSharkRaw,
                "PARv3" => kind = CheatKind::ActionReplay,
                "PARv3 raw" => kind = CheatKind::ActionReplayRaw,
                _ => {
                    return Err(refused(
                        "after !, only these words are accepted: disabled, reset, GSAv1, GSAv1 raw, PARv3, PARv3 raw",
                    ));
                }
            }
        } else if !line.is_empty() {
            if cheats.is_empty() && (line.starts_with("cheats =") || line.starts_with('[')) {
                return Err(refused(
                    "this is a cheat file for libretro or EZ-Flash; only mGBA's cheat files are accepted, with lines such as `# Name` and \
                     `02000100 0063`",
                ));
            }
            if cheats.is_empty() {
                cheats.push(begin("", std::mem::take(&mut disabled)));
            }
            let code = Code { line: index + 1, text: line.to_owned() };
            if let Some(cheat) = cheats.last_mut() {
                cheat.codes.push(code);
            }
        }
    }
    // People write names without codes as headings.
    cheats.retain(|cheat| !cheat.codes.is_empty());
    if cheats.is_empty() {
        let problem =
            "there is no cheat in it; a cheat is a line `# Name` and a line for each of its codes".to_owned();
        return Err(Error::Cheat { place: file.to_owned(), problem });
    }
    Ok(cheats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_mgba_is_read() {
        let text = "!GSAv1 raw\n# Lives\n0200004C 00000009\n\n!disabled\n!reset\n# Score\n82000044 0063\n82000046 0000\n";
        let cheats = parse("a.cheats", text).unwrap();
        let shape: Vec<_> = cheats
            .iter()
            .map(|cheat| (cheat.name.as_str(), cheat.kind, cheat.enabled, cheat.codes.len()))
            .collect();
        assert_eq!(
            shape,
            [("Lives", CheatKind::GameSharkRaw, true, 1), ("Score", CheatKind::Auto, false, 2)]
        );
        assert_eq!(cheats[1].codes[0].line, 8);
    }

    #[test]
    fn a_file_with_names_but_without_codes_is_refused() {
        let error = parse("a.cheats", "# Lives\n\n# Score\n").unwrap_err().to_string();
        assert!(error.contains("there is no cheat in it"), "{error}");
        assert_eq!(parse("a.cheats", "# Heading\n# Lives\n02000100:63\n").unwrap().len(), 1);
    }

    #[test]
    fn an_unknown_directive_is_refused_with_its_line() {
        let error = parse("a.cheats", "# X\n!PARv9\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "a.cheats line 2 (\"!PARv9\"): after !, only these words are accepted: disabled, reset, GSAv1, GSAv1 raw, PARv3, PARv3 raw"
        );
        assert!(parse("a.cht", "cheats = 1\n").unwrap_err().to_string().contains("libretro"));
        assert!(parse("empty", "").unwrap_err().to_string().contains("no cheat"));
    }
}
