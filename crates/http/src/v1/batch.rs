//! Batches: operations that are performed together, without frames between them. This module translates a caller's
//! operations into those of an emulator, and the results back.

use framewire_protocol::batch::check_ops;
use framewire_protocol::run::OTHER_GAME;
use framewire_protocol::{MAX_OPS, MAX_RANGE, Op, OpError, Outcome, Status, Value};
use serde_json::Value as Json;

use super::convenience::{self, Form};
use super::operations;
use super::schemas::BatchOp;
use super::timeline::unplayed;
use crate::idempotency::NothingDone;
use crate::reading::fields::{Context, Encoding, Object, shown, wrong_value};
use crate::routing::prelude::*;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    // `judged_later`: read-only callers may send batches too. Their rights are checked for each operation.
    OpenApiRouter::new().routes(routes!(batch).judged_later())
}

/// Operations to perform.
#[derive(Deserialize, ToSchema)]
#[schema(as = Batch, example = json!({"ops": [
    {"op": "read", "address": "score"},
    {"op": "read_many", "addresses": ["ball_x", "ball_y"]},
    {"op": "tap", "keys": ["A"]},
]}))]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchRequest {
    /// The operations. They are performed in order, up to the first one that fails.
    #[schema(value_type = Vec<BatchOp>, max_items = 4096)]
    pub(crate) ops: Vec<Object>,
    /// The encoding of bytes in the operations and in the reply.
    #[serde(default)]
    pub(crate) encoding: Encoding,
}

/// The outcome of a batch.
#[derive(Serialize, ToSchema)]
pub(crate) struct Done {
    /// The frame counter at the end of the batch. Unless an operation lets frames run, all operations were performed
    /// after this frame and before the next one.
    pub(crate) frame: u32,
    /// The results of the operations, in order. If an operation failed, the last entry is its error.
    pub(crate) results: Vec<OpResult>,
    /// The index of the operation that failed, counted from 0. Absent if no operation failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<usize>,
}

/// The outcome of an operation: a value or an error.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OpResult {
    /// The result of the operation; null if it has no result.
    #[schema(title = "OpValue")]
    Value(serde_json::Value),
    /// Why the operation was not performed, or failed.
    #[schema(title = "OpError")]
    Error(Problem),
}

/// Performs operations in order, up to the first one that fails. No frame runs between them, except in operations such
/// as `run`.
///
/// Each operation is an object with its arguments. `op` is its name, as GET /v1/operations lists it.
#[utoipa::path(post, path = "/v1/batch", operation_id = "batch", tag = "batch", params(EmulatorParam),
    request_body = BatchRequest, responses((status = 200, description = "The results of the operations.", body = Done)))]
async fn batch(selected: SelectedEmulator, Payload(request): Payload<BatchRequest>) -> Result<Response> {
    let symbols = selected.symbols().await;
    let context = Context { symbols: &symbols, encoding: request.encoding };
    let plan = Plan::new(request.ops, context)?;
    perform_plan(&selected, &plan, Ok).await
}

/// The operations into which a caller's operations are translated.
#[derive(Default)]
pub(crate) struct Plan {
    ops: Vec<Op>,
    /// For each of the caller's operations, how its results are written.
    forms: Vec<Form>,
    encoding: Encoding,
    /// Whether the caller sent one operation, and not a list.
    alone: bool,
    /// The index of the run of `POST /v1/run`. In the request, the operations before it are in `ops`, and those after
    /// it in `then`.
    run: Option<usize>,
    /// The index of the operation that computes the `values` of `POST /v1/run`.
    values: Option<usize>,
    /// How many bytes the results have at most.
    bytes: usize,
}

impl Plan {
    /// Reads a caller's operations.
    pub(crate) fn new(objects: Vec<Object>, context: Context<'_>) -> Result<Plan> {
        let mut plan = Plan { encoding: context.encoding, ..Plan::default() };
        plan.add_all(objects, context)?;
        plan.checked()
    }

    /// Reads a single operation.
    pub(crate) fn one(object: Object, context: Context<'_>) -> Result<Plan> {
        let mut plan = Plan { alone: true, encoding: context.encoding, ..Plan::default() };
        plan.add(object, context)?;
        plan.checked()
    }

    /// Creates an empty plan for `POST /v1/run`. After that, `before` operations must be added, then the run, then any
    /// further operations, and then the plan must be [`checked`](Plan::checked).
    pub(crate) fn of_run(before: usize, context: Context<'_>) -> Plan {
        Plan { run: Some(before), encoding: context.encoding, ..Plan::default() }
    }

    /// Checks the arguments of all operations, alone and together.
    pub(crate) fn checked(self) -> Result<Plan> {
        match check_ops(&self.ops) {
            Ok(()) => Ok(self),
            Err((op, error)) => Err(self.about(op, error.into())),
        }
    }

    /// Reads a caller's operations, and adds them after the existing ones. Fails if an operation is not valid, there are
    /// too many, or the reply would be too large.
    pub(crate) fn add_all(&mut self, objects: Vec<Object>, context: Context<'_>) -> Result<()> {
        for object in objects {
            let index = self.forms.len();
            self.add(object, context).map_err(|problem| self.of_op(index, problem))?;
            if self.ops.len() > MAX_OPS {
                let place = self.place(index);
                let text =
                    format!("with {place}, there are more than {MAX_OPS} operations; send fewer at a time");
                return Err(Problem::too_large(text));
            }
            if self.bytes > MAX_RANGE as usize {
                let accepts = format!("operations whose results together have at most {MAX_RANGE} bytes");
                return Err(Problem::parameter(self.place(index), "makes the reply too large", accepts));
            }
        }
        Ok(())
    }

    /// Adds an operation that has been read already.
    pub(crate) fn add_made(&mut self, form: Form, op: Op) {
        self.ops.push(op);
        self.add_form(form, self.ops.len() - 1);
    }

    /// Adds the form of the operations from index `first` on.
    fn add_form(&mut self, form: Form, first: usize) {
        let results: usize = self.ops[first..].iter().map(Op::largest_result).sum();
        self.bytes += results + form.further_bytes();
        self.forms.push(form);
    }

    /// Adds the operation that computes the `values` of `POST /v1/run`.
    pub(crate) fn add_values(&mut self, form: Form, op: Op) {
        self.values = Some(self.forms.len());
        self.add_made(form, op);
    }

    /// The place of the operation with this index in the request.
    pub(super) fn place(&self, index: usize) -> String {
        match self.run.and_then(|run| index.checked_sub(run + 1)) {
            Some(_) if self.values == Some(index) => "values".to_owned(),
            Some(index) => format!("then[{index}]"),
            None => format!("ops[{index}]"),
        }
    }

    /// Adds the place of the operation with this index to the problem. A problem with the run itself stays as it is.
    fn of_op(&self, index: usize, problem: Problem) -> Problem {
        match self.run {
            Some(run) if index == run => problem,
            Some(run) if index > run => problem.within(&self.place(index)),
            _ => problem.of_op(index),
        }
    }

    fn add(&mut self, mut object: Object, context: Context<'_>) -> Result<()> {
        const ACCEPTS: &str = "the name of an operation, as GET /v1/operations lists them";
        let name = match object.remove("op") {
            Some(Json::String(name)) => name,
            Some(other) => return Err(wrong_value("op", &other, ACCEPTS)),
            None => return Err(Problem::parameter("op", "is missing", ACCEPTS)),
        };
        if object.get("domain").is_some_and(Json::is_null) {
            object.remove("domain");
        }
        let first = self.ops.len();
        let in_domain = if object.contains_key("domain") { operations::in_domain(&name) } else { None };
        let form = match in_domain.or_else(|| operations::row(&name)) {
            // An operation of the table. Its address may be an expression that the emulator computes.
            Some(row) => match convenience::read_computed(row.name, &object, context, &mut self.ops) {
                Some(form) => form?,
                None => {
                    self.ops.push(operations::op(row, object, context)?);
                    Form::Plain
                }
            },
            None => match convenience::read(&name, object, context, &mut self.ops) {
                Some(form) => form?,
                None => {
                    let name = shown(&Json::String(name));
                    return Err(Problem::parameter("op", &format!("is {name}, which is unknown"), ACCEPTS));
                }
            },
        };
        self.add_form(form, first);
        Ok(())
    }

    pub(crate) fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// How many bytes the results have at most.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The outcome of the emulator's operations. If one of them was refused before any was performed, for example
    /// because it uses memory that does not exist or cannot be written, returns the problem.
    pub(crate) fn settled(&self, outcome: Outcome) -> Result<Outcome> {
        match outcome.refused_whole(&self.ops) {
            Some((op, error)) => Err(self.about(op, Problem::refused_access("address", error))),
            None => Ok(outcome),
        }
    }

    /// Adds a place to a problem with operation `op` of [`Plan::ops`]: the place of the caller's operation from which
    /// `op` was made. If the caller sent one operation and not a list, the problem stays as it is.
    fn about(&self, mut op: usize, problem: Problem) -> Problem {
        if self.alone {
            return problem;
        }
        for (index, form) in self.forms.iter().enumerate() {
            match op.checked_sub(form.count()) {
                None => return self.of_op(index, problem),
                Some(rest) => op = rest,
            }
        }
        problem
    }

    /// The outcome for the caller.
    pub(crate) fn done(&self, outcome: Outcome) -> Done {
        let frame = outcome.frame;
        let result = |(index, result): (usize, Result<Json, OpError>)| match result {
            Ok(value) => OpResult::Value(value),
            Err(error) => OpResult::Error(self.of_op(index, self.refused(index, error))),
        };
        let results: Vec<OpResult> = self.results(outcome).into_iter().enumerate().map(result).collect();
        let failed = results.iter().position(|result| matches!(result, OpResult::Error(_)));
        Done { frame, results, failed }
    }

    pub(crate) fn done_alone(&self, outcome: Outcome) -> Result<Json> {
        let result = self.results(outcome).pop().transpose();
        Ok(result.map_err(|error| self.refused(0, error))?.unwrap_or_default())
    }

    /// The problem with the caller's operation of this index, without its place.
    fn refused(&self, index: usize, error: OpError) -> Problem {
        let first = self.forms[..index].iter().map(Form::count).sum::<usize>();
        match self.forms[index] {
            Form::Played(_) => unplayed(error),
            // Another timeline already plays some of the run's keys, or another game was loaded.
            Form::Ran(_) if error.message.starts_with("timeline ") || error.message == OTHER_GAME => {
                Problem::conflict(error.message)
            }
            // The emulator works, but it does not accept the file or the state.
            _ if error.status == Status::Failed && self.ops.get(first).is_some_and(is_load) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.message)
            }
            _ => error.into(),
        }
    }

    /// The results up to the first error.
    fn results(&self, outcome: Outcome) -> Vec<Result<Json, OpError>> {
        let mut results = Vec::with_capacity(self.forms.len());
        let mut left = outcome.results.into_iter();
        for form in &self.forms {
            match left.by_ref().take(form.count()).collect::<Result<Vec<Value>, OpError>>() {
                Ok(values) if values.len() < form.count() => break,
                Ok(values) => results.push(Ok(match (form, &values[..]) {
                    (Form::Plain, [value]) => operations::value(value, self.encoding),
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

/// Whether an operation loads a file or a state that the caller names or sends.
fn is_load(op: &Op) -> bool {
    matches!(
        op,
        Op::LoadState { .. }
            | Op::LoadStateFile { .. }
            | Op::LoadStateSlot { .. }
            | Op::LoadFile { .. }
            | Op::LoadRom { .. }
            | Op::LoadSaveFile { .. }
            | Op::LoadCheats { .. }
    )
}

/// Performs a caller's operations. `reply` makes the reply from their outcome.
pub(super) async fn perform_plan<R: Serialize>(
    selected: &SelectedEmulator,
    plan: &Plan,
    reply: impl FnOnce(Done) -> Result<R>,
) -> Result<Response> {
    let share = selected.operations.replies.share_bytes(plan.bytes)?;
    let outcome = selected.perform(selected.keyed(plan.ops().to_vec())).await?;
    let outcome = plan.settled(outcome)?;
    let nothing_done = !outcome.has_changed(plan.ops());
    let mut response = share.json(&reply(plan.done(outcome))?);
    if nothing_done {
        response.extensions_mut().insert(NothingDone);
    }
    Ok(response)
}
