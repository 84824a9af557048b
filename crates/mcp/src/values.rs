//! Expressions over memory: their names are looked up, and their places read, by the backend.

use std::collections::{BTreeSet, HashMap};

use framewire_expression::{Expression, MAX_TEXT, Names, Place, Symbol, Type};
use serde_json::{Map, Value as Json, json};

use crate::session::Session;
use crate::tools::ToolError;

/// Most expressions of one call.
const MAX: usize = 64;

/// Expressions that are read together.
pub(crate) struct Values {
    expressions: Vec<(String, Expression)>,
    places: Vec<Place>,
}

/// The numbers at the places of [`Values`] after a frame.
pub(crate) struct Numbers {
    pub(crate) frame: u32,
    numbers: Vec<i64>,
}

/// The symbols that expressions name.
struct Known(HashMap<String, Symbol>);

impl Names for Known {
    fn find(&self, name: &str) -> Result<Symbol, String> {
        self.0.get(name).copied().ok_or_else(|| {
            format!("no symbol is called `{name}`; the tool symbols lists them, and u16[0x02000000] reads an address")
        })
    }
}

impl Values {
    /// Compiles expressions. `what` names the argument in errors.
    pub(crate) async fn compile(
        session: &Session,
        what: &str,
        texts: &[String],
    ) -> Result<Values, ToolError> {
        if texts.len() > MAX {
            return Err(ToolError(format!(
                "{what} has {} expressions; at most {MAX} are accepted",
                texts.len()
            )));
        }
        if let Some(long) = texts.iter().find(|text| text.len() > MAX_TEXT) {
            let length = long.len();
            return Err(ToolError(format!(
                "an expression of {what} has {length} bytes; use at most {MAX_TEXT}"
            )));
        }
        let names = known(session, texts).await?;
        let mut values = Values { expressions: Vec::new(), places: Vec::new() };
        for text in texts {
            let expression = Expression::parse(text, &names)
                .map_err(|error| ToolError(format!("{what}: {text:?} cannot be read: {error}")))?;
            for place in expression.places() {
                if !values.places.contains(place) {
                    values.places.push(place.clone());
                }
            }
            values.expressions.push((text.clone(), expression));
        }
        Ok(values)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.expressions.is_empty()
    }

    /// The operations that read the places.
    pub(crate) fn ops(&self) -> Vec<Json> {
        self.places
            .iter()
            .map(|Place { domain, address, kind }| {
                let mut op = json!({"op": "read", "address": address, "type": kind.name()});
                if let Some(domain) = domain {
                    op["domain"] = domain.as_str().into();
                }
                op
            })
            .collect()
    }

    /// The numbers that the operations read.
    pub(crate) fn numbers(&self, frame: u32, read: &[Json]) -> Numbers {
        let numbers = read.iter().take(self.places.len()).map(|value| value.as_i64().unwrap_or_default());
        Numbers { frame, numbers: numbers.collect() }
    }

    /// The number at a place.
    fn number(&self, place: &Place, numbers: &Numbers) -> i64 {
        let index = self.places.iter().position(|known| known == place);
        index.and_then(|index| numbers.numbers.get(index)).copied().unwrap_or_default()
    }

    /// The numbers of other expressions, whose places are among these.
    pub(crate) fn part(&self, other: &Values, numbers: &Numbers) -> Numbers {
        let own = other.places.iter().map(|place| self.number(place, numbers));
        Numbers { frame: numbers.frame, numbers: own.collect() }
    }

    /// The value of each expression, in their order; `None` for a division by zero and the like.
    pub(crate) fn evaluate(&self, numbers: &Numbers) -> Vec<Option<i64>> {
        let value = |expression: &Expression| {
            let own: Vec<i64> = expression.places().iter().map(|place| self.number(place, numbers)).collect();
            expression.value(numbers.frame, &own)
        };
        self.expressions.iter().map(|(_, expression)| value(expression)).collect()
    }

    /// The first condition that holds.
    pub(crate) fn holds(&self, numbers: &Numbers) -> Option<&str> {
        let values = self.evaluate(numbers);
        let index = values.iter().position(|value| value.is_some_and(|value| value != 0))?;
        Some(&self.expressions[index].0)
    }

    /// The values by the texts of their expressions.
    pub(crate) fn to_json(&self, numbers: &Numbers) -> Json {
        let values = self.evaluate(numbers);
        let named =
            self.expressions.iter().zip(values).map(|((text, _), value)| (text.clone(), json!(value)));
        Json::Object(named.collect())
    }

    /// The values that differ, each as `[before, after]`.
    pub(crate) fn changes(&self, before: &Numbers, after: &Numbers) -> Json {
        let (old, new) = (self.evaluate(before), self.evaluate(after));
        let mut changes = Map::new();
        for (((text, _), old), new) in self.expressions.iter().zip(old).zip(new) {
            if old != new {
                changes.insert(text.clone(), json!([old, new]));
            }
        }
        Json::Object(changes)
    }
}

/// Looks up the words of expressions that may be names.
async fn known(session: &Session, texts: &[String]) -> Result<Known, ToolError> {
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | '.' | '$' | '@');
    let words = texts.iter().flat_map(|text| text.split(|character| !is_part(character)));
    let is_name = |word: &&str| {
        let begins = word.chars().next().is_some_and(|first| !first.is_ascii_digit());
        let is_own = matches!(*word, "and" | "or" | "not" | "true" | "false" | "frame" | "bytes");
        begins && !is_own && Type::named(word).is_none()
    };
    let words: BTreeSet<&str> = words.filter(is_name).collect();
    let mut known = HashMap::new();
    for word in words {
        let found = session.call("symbols", json!({"contains": word})).await?;
        let exact = found["symbols"].as_array().and_then(|all| all.iter().find(|each| each["name"] == word));
        let number = |name: &str| exact.and_then(|symbol| u32::try_from(symbol[name].as_u64()?).ok());
        if let (Some(address), Some(count)) = (number("address"), number("count")) {
            let kind = exact.and_then(|symbol| Type::named(symbol["type"].as_str()?));
            known.insert(word.to_owned(), Symbol { address, kind, count });
        }
    }
    Ok(Known(known))
}
