//! From the operations that a caller wrote to those that an emulator does, and back.

use framewire_protocol::{MAX_OPS, MAX_RANGE, Op, OpError, Outcome, Value};
use serde_json::Value as Json;

use super::batch::{Done, OpResult};
use super::convenience;
use super::convenience::Form;
use super::json;
use super::timeline::unplayed;
use crate::problem::Problem;
use crate::reading::fields::{Context, Encoding, Object, shown};

/// What a caller's operations become.
pub(crate) struct Plan {
    ops: Vec<Op>,
    forms: Vec<Form>,
    encoding: Encoding,
    /// It is one operation, and no list of them.
    alone: bool,
}

impl Plan {
    /// Reads a caller's operations.
    ///
    /// # Errors
    /// About the first that cannot be used, or if they are too many or ask for too much.
    pub(crate) fn new(objects: Vec<Object>, context: Context<'_>) -> Result<Plan, Problem> {
        let mut plan = Plan { ops: Vec::new(), forms: Vec::new(), encoding: context.encoding, alone: false };
        let mut bytes = 0;
        for (index, object) in objects.into_iter().enumerate() {
            let before = plan.ops.len();
            plan.add(object, context).map_err(|problem| problem.of_op(index))?;
            bytes += plan.ops[before..].iter().map(Op::largest_result).sum::<usize>();
            if plan.ops.len() > MAX_OPS {
                let text =
                    format!("ops[{index}] makes more than {MAX_OPS} operations in all; send fewer at a time");
                return Err(Problem::too_large(text));
            }
            if bytes > MAX_RANGE as usize {
                let accepts = format!("operations whose results have at most {MAX_RANGE} bytes together");
                return Err(Problem::parameter(
                    format!("ops[{index}]"),
                    "makes the reply too large",
                    accepts,
                ));
            }
        }
        Ok(plan)
    }

    /// Reads one operation, which stands alone.
    ///
    /// # Errors
    /// If it cannot be used.
    pub(crate) fn one(object: Object, context: Context<'_>) -> Result<Plan, Problem> {
        let mut plan = Plan { ops: Vec::new(), forms: Vec::new(), encoding: context.encoding, alone: true };
        plan.add(object, context)?;
        Ok(plan)
    }

    fn add(&mut self, mut object: Object, context: Context<'_>) -> Result<(), Problem> {
        const ACCEPTS: &str = "the name of an operation, as GET /v1/operations lists them";
        let name = match object.remove("op") {
            Some(Json::String(name)) => name,
            Some(other) => return Err(Problem::parameter("op", &format!("is {}", shown(&other)), ACCEPTS)),
            None => return Err(Problem::parameter("op", "is missing", ACCEPTS)),
        };
        let domain = object.get("domain").is_some_and(|domain| !domain.is_null());
        let in_domain = domain.then(|| json::in_domain(&name)).flatten();
        let form = match in_domain.or_else(|| json::row(&name)) {
            Some(row) => {
                self.ops.push(json::op(row, object, context)?);
                Form::Plain
            }
            None => match convenience::read(&name, object, context, &mut self.ops) {
                Some(form) => form?,
                None => {
                    let name = shown(&Json::String(name));
                    return Err(Problem::parameter("op", &format!("is {name}, which is unknown"), ACCEPTS));
                }
            },
        };
        self.forms.push(form);
        Ok(())
    }

    /// What the emulator is to do.
    pub(crate) fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// A problem with the operation of this number among [`Plan::ops`], as its caller counts them.
    pub(crate) fn about(&self, op: Option<usize>, problem: Problem) -> Problem {
        let Some(mut left) = op.filter(|_| !self.alone) else { return problem };
        for (index, form) in self.forms.iter().enumerate() {
            match left.checked_sub(form.count()) {
                None => return problem.of_op(index),
                Some(rest) => left = rest,
            }
        }
        problem
    }

    /// What became of it.
    pub(crate) fn done(&self, outcome: Outcome) -> Done {
        let frame = outcome.frame;
        let result = |(index, result): (usize, Result<Json, OpError>)| match result {
            Ok(value) => OpResult::Value(value),
            Err(error) => {
                let problem = match self.forms[index] {
                    Form::Played(_) => unplayed(error),
                    _ => error.into(),
                };
                OpResult::Error(problem.of_op(index))
            }
        };
        let results: Vec<OpResult> = self.results(outcome).into_iter().enumerate().map(result).collect();
        let failed = matches!(results.last(), Some(OpResult::Error(_))).then(|| results.len() - 1);
        Done { frame, results, failed }
    }

    /// What became of the only operation.
    pub(crate) fn done_alone(&self, outcome: Outcome) -> Result<Json, Problem> {
        Ok(self.results(outcome).pop().transpose()?.unwrap_or_default())
    }

    /// The results up to the first error.
    fn results(&self, outcome: Outcome) -> Vec<Result<Json, OpError>> {
        let mut results = Vec::with_capacity(self.forms.len());
        let mut left = outcome.results.into_iter();
        for form in &self.forms {
            match left.by_ref().take(form.count()).collect::<Result<Vec<Value>, OpError>>() {
                Ok(values) if values.len() < form.count() => break,
                Ok(values) => results.push(Ok(match (form, &values[..]) {
                    (Form::Plain, [value]) => json::value(value, self.encoding),
                    (form, values) => form.write(values),
                })),
                Err(error) => {
                    results.push(Err(error));
                    break;
                }
            }
        }
        results
    }
}
