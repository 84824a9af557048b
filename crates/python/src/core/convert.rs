//! Converts the arguments of calls, such as names and expressions, and the results of calls.

use framewire_expression::{Format, Place, Type};
use framewire_libmgba::flags;
use framewire_protocol::Value;
use framewire_vecenv::find_domain;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString};

use super::access::Inner;
use super::{Core, MAX_KEPT};
use crate::errors::argument;
use crate::machine::{self, Observed};

impl Core {
    pub(super) fn domain(&self, py: Python<'_>, name: &str) -> PyResult<usize> {
        self.call(py, |machine| find_domain(&machine.core, name))?.map_err(argument)
    }

    pub(super) fn place(&self, text: &str, kind: Option<&str>, domain: Option<&str>) -> PyResult<Place> {
        let location = self.symbols.locate(text).map_err(argument)?;
        let kind = match kind {
            None => location.kind.unwrap_or(Type::U8),
            Some(name) => type_named(name)?,
        };
        Ok(Place { domain: domain.map(str::to_owned), address: location.address, kind })
    }

    /// Compiles an expression, or returns the one that was compiled from the same text before.
    pub(super) fn compiled(&self, inner: &mut Inner, text: &str) -> PyResult<Observed> {
        if let Some(known) = inner.expressions.get(text) {
            return Ok(known.clone());
        }
        let observed = self.compile(&inner.machine()?.core, text)?;
        if inner.expressions.len() < MAX_KEPT {
            inner.expressions.insert(text.to_owned(), observed.clone());
        }
        Ok(observed)
    }

    pub(super) fn compile(&self, core: &framewire_libmgba::Core, text: &str) -> PyResult<Observed> {
        Observed::compile(text, core, &self.symbols).map_err(argument)
    }
}

fn type_named(name: &str) -> PyResult<Type> {
    let problem = || argument(format!("type is {name:?}; use u8, u16, u32, i8, i16 or i32"));
    Type::named(name).ok_or_else(problem)
}

/// The type of a number to write: the one with the name `kind`, or else the one that its symbol has, or else `u8`.
pub(super) fn written_type(kind: Option<&str>, own: Option<(Type, Format)>) -> PyResult<Type> {
    match (kind, own) {
        (Some(name), _) => type_named(name),
        (None, Some((kind, Format::Plain))) => Ok(kind),
        (None, Some((kind, _))) => {
            let problem = "values cannot be converted to this name's format (bits, BCD, fraction)";
            Err(argument(format!("{problem}; pass type={:?} to write an unconverted number", kind.name())))
        }
        (None, None) => Ok(Type::U8),
    }
}

/// The bytes of a number of this type.
pub(super) fn encoded(value: i64, kind: Type) -> PyResult<Vec<u8>> {
    let (least, greatest) = kind.range();
    if (least..=greatest).contains(&value) {
        return Ok(value.to_le_bytes()[..usize::from(kind.size())].to_vec());
    }
    let name = kind.name();
    Err(argument(format!("{value} does not fit {name}; use a number from {least} to {greatest}")))
}

/// The texts in a list of values.
pub(super) fn texts(list: Value) -> Vec<String> {
    let Value::List(items) = list else { return Vec::new() };
    let text = |item| if let Value::Text(text) = item { Some(text) } else { None };
    items.into_iter().filter_map(text).collect()
}

/// A value as a Python object.
pub(super) fn value(py: Python<'_>, value: machine::Value) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        machine::Value::None => py.None().into_bound(py),
        machine::Value::Number(number) => number.into_pyobject(py)?.into_any(),
        machine::Value::Condition(is_true) => PyBool::new(py, is_true).to_owned().into_any(),
        machine::Value::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
        machine::Value::Text(text) => PyString::new(py, &text).into_any(),
    })
}

/// Returns an error if `parts` has a flag that does not exist.
pub(super) fn check_parts(parts: u32) -> PyResult<()> {
    if parts <= flags::ALL {
        return Ok(());
    }
    Err(argument(format!(
        "flags is {parts}; use the sum of any of 1 (picture), 2 (battery save), 4 (cheats), 8 (clock), 16 (metadata)"
    )))
}
