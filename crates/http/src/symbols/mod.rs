//! Names for addresses, so that `score` works where an address does.

use std::collections::BTreeMap;

use crate::compat::lua_integer;

/// Names and the bus addresses that they stand for.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    by_name: BTreeMap<String, Symbol>,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Bus address.
    pub address: u32,
}

impl Symbols {
    /// The address that a text names: a number in decimal or hex behind `0x`, or a name with or without `+OFFSET` or
    /// `-OFFSET` behind it.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what is accepted.
    pub fn address(&self, text: &str) -> Result<u32, String> {
        let text = text.trim();
        if let Some(number) = lua_integer(text) {
            return u32::try_from(number)
                .map_err(|_| format!("{text} is no address: 0 to 0xFFFFFFFF are accepted"));
        }
        if let Some(symbol) = self.by_name.get(text) {
            return Ok(symbol.address);
        }
        let split = text.rfind(['+', '-']).map(|at| text.split_at(at));
        let known = split.and_then(|(name, offset)| Some((self.by_name.get(name.trim_end())?, offset)));
        let Some((symbol, offset)) = known else {
            let there = match self.by_name.is_empty() {
                true => "no symbols are loaded (--symbols FILE loads some)",
                false => "GET /v1/symbols lists the symbols that are loaded",
            };
            return Err(format!(
                "{text:?} is neither a number, such as 0x02000000, nor a known symbol; {there}"
            ));
        };
        let offset = lua_integer(&offset[1..])
            .filter(|offset| *offset >= 0)
            .map(|number| if offset.starts_with('-') { -number } else { number });
        offset
            .and_then(|offset| u32::try_from(i64::from(symbol.address).checked_add(offset)?).ok())
            .ok_or_else(|| {
                format!("{text:?} is no address: NAME+NUMBER and NAME-NUMBER are accepted, up to 0xFFFFFFFF")
            })
    }
}
