//! From the operations that a caller wrote to those that an emulator does, and back.

use framewire_protocol::{Op, Outcome};
use serde_json::Value as Json;

use super::Problem;
use super::batch::{Done, OpResult};
use super::fields::{Context, Encoding, Object};
use super::json;

/// What a caller's operations become.
pub(crate) struct Plan {
    ops: Vec<Op>,
    encoding: Encoding,
}

impl Plan {
    /// Reads a caller's operations.
    ///
    /// # Errors
    /// About the first that cannot be used.
    pub(crate) fn new(objects: Vec<Object>, context: Context<'_>) -> Result<Plan, Problem> {
        let mut plan = Plan { ops: Vec::with_capacity(objects.len()), encoding: context.encoding };
        for (index, object) in objects.into_iter().enumerate() {
            plan.add(object, context).map_err(|problem| problem.of_op(index))?;
        }
        Ok(plan)
    }

    fn add(&mut self, mut object: Object, context: Context<'_>) -> Result<(), Problem> {
        const ACCEPTS: &str = "the name of an operation, as GET /v1/operations lists them";
        let name = match object.remove("op") {
            Some(Json::String(name)) => name,
            Some(other) => return Err(Problem::parameter("op", &format!("is {other}"), ACCEPTS)),
            None => return Err(Problem::parameter("op", "is missing", ACCEPTS)),
        };
        let info = json::row(&name)
            .ok_or_else(|| Problem::parameter("op", &format!("is {name:?}, which is unknown"), ACCEPTS))?;
        self.ops.push(json::op(info, object, context)?);
        Ok(())
    }

    /// What the emulator is to do.
    pub(crate) fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// What became of it.
    pub(crate) fn done(&self, outcome: Outcome) -> Done {
        let failed = outcome.results.iter().position(Result::is_err);
        let result = |(index, result)| match result {
            Ok(value) => OpResult::Value(json::value(&value, self.encoding)),
            Err(error) => OpResult::Error(Problem::from(error).of_op(index)),
        };
        Done {
            frame: outcome.frame,
            results: outcome.results.into_iter().enumerate().map(result).collect(),
            failed,
        }
    }
}
