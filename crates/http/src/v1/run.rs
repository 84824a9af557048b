//! Runs: requests that perform operations, run frames until a condition holds, and then perform more operations at
//! exactly that frame.

use framewire_expression::Code;
use framewire_protocol::run::{
    self, EndReason, MAX_CONDITIONS, MAX_EXPRESSIONS, MAX_RUN_FRAMES, RunStep as Step, RunSteps, StepEnd,
};
use framewire_protocol::wire::Wire;
use framewire_protocol::{Keys, Op, Value};
use serde_json::{Map, Value as Json, json};
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};

use super::batch::{Done, OpResult, Plan, perform_plan};
use super::convenience::Form;
use super::schemas::{BatchOp, string};
use super::timeline::{Input, KeySet, Press, Timeline};
use crate::reading::fields::{Context, Encoding, Object, name_problem};
use crate::reading::{self, Whole, refusal};
use crate::routing::prelude::*;
use crate::transport::streams::StreamKind;

/// The default number of frames of a step with a condition: ten seconds.
const FRAMES: u32 = 600;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(run).counted_as(StreamKind::Wait))
}

/// Operations, frames, and operations after these frames.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Run, example = json!({
    "steps": [{"sequence": "A:2 .:10"}, {"hold": ["Right"], "until": "ball_x > 100", "frames": 120}],
    "then": [{"op": "read", "address": "score"}],
    "values": {"x": "ball_x"},
}))]
pub(crate) struct RunRequest {
    /// Operations to perform before the first frame.
    #[serde(default)]
    #[schema(value_type = Vec<BatchOp>, max_items = 4096)]
    ops: Vec<Object>,
    /// The steps, which run one after the other.
    #[schema(min_items = 1, max_items = 1024)]
    steps: Vec<RunStep>,
    /// Each of these conditions ends the whole run.
    #[serde(default)]
    stop: Conditions,
    /// Operations to perform at the frame at which the run ends, before the next frame.
    #[serde(default)]
    #[schema(value_type = Vec<BatchOp>, max_items = 4096)]
    then: Vec<Object>,
    /// Named expressions. The reply has their values at the end of the run, under the same names.
    #[serde(default)]
    values: Expressions,
    /// The encoding of bytes in the operations and in the reply.
    #[serde(default)]
    encoding: Encoding,
}

/// A part of a run. It ends when a condition holds, or when its frames have passed. Then its keys are released.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunStep {
    /// Keys to hold in all of its frames.
    hold: Option<KeySet>,
    /// Presses one after the other, such as `A:2 .:10 Up+B:30`. Pauses add to its length, even at the end.
    sequence: Option<String>,
    /// Presses in any order, which may overlap.
    #[schema(max_items = 32768)]
    presses: Option<Vec<Press>>,
    /// One or several conditions. Each of them ends the step. They are evaluated before the first frame and after each
    /// frame.
    until: Option<Conditions>,
    /// The largest number of frames. Default: as many as its presses take, but at least 600 for a step with a
    /// condition. Required for a step that has neither presses nor a condition.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 216_000)]
    frames: Option<Whole<1, MAX_RUN_FRAMES>>,
    /// Whether the run continues with the next step if no condition holds within the frames. Otherwise it ends there.
    #[serde(default)]
    go_on: bool,
}

/// Conditions: one as a string, or a list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub(crate) struct Conditions(Vec<String>);

impl TryFrom<Json> for Conditions {
    type Error = String;

    fn try_from(value: Json) -> Result<Conditions, String> {
        let texts: Option<Vec<String>> = match &value {
            Json::String(text) => Some(vec![text.clone()]),
            Json::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        let texts = texts.filter(|texts| (1..=MAX_CONDITIONS).contains(&texts.len()));
        texts.map(Conditions).ok_or_else(|| {
            let accepts = format!("a condition such as \"score > 10\", or a list of 1 to {MAX_CONDITIONS}");
            refusal(&value, &accepts)
        })
    }
}

impl PartialSchema for Conditions {
    fn schema() -> RefOr<Schema> {
        let text = || string().examples(["score > 10"]);
        let list = ArrayBuilder::new().items(text()).min_items(Some(1)).max_items(Some(MAX_CONDITIONS));
        let description = "A condition over memory, or several: docs/watches.md. Addresses may be read from memory, such as \
                           u8[u32[0x03005D8C] + 4] == 3. A number counts as true if it is not 0.";
        OneOfBuilder::new().item(text()).item(list).description(Some(description)).into()
    }
}

impl ToSchema for Conditions {}

/// Named expressions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub(crate) struct Expressions(Vec<(String, String)>);

impl TryFrom<Json> for Expressions {
    type Error = String;

    fn try_from(value: Json) -> Result<Expressions, String> {
        let pair = |name: &str, text: &Json| Some((name.to_owned(), text.as_str()?.to_owned()));
        let all: Option<Vec<(String, String)>> = match &value {
            Json::Object(object) => object.iter().map(|(name, text)| pair(name, text)).collect(),
            Json::Array(items) => items.iter().map(|text| pair(text.as_str()?, text)).collect(),
            _ => None,
        };
        all.filter(|all| all.len() <= MAX_EXPRESSIONS).map(Expressions).ok_or_else(|| {
            let accepts = format!(
                "an object of names and expressions such as {{\"x\": \"ball_x\"}}, or a list of expressions, at most \
                 {MAX_EXPRESSIONS}"
            );
            refusal(&value, &accepts)
        })
    }
}

impl PartialSchema for Expressions {
    fn schema() -> RefOr<Schema> {
        let object = ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(string()));
        let list = ArrayBuilder::new().items(string()).max_items(Some(MAX_EXPRESSIONS));
        let description = "An object of named expressions, or a list of expressions. In a list, each expression is its own name.";
        OneOfBuilder::new().item(object).item(list).description(Some(description)).into()
    }
}

impl ToSchema for Expressions {}

/// Compiles an expression. `place` is the expression's place in the body, for problems.
fn compile(text: &str, place: &str, context: Context<'_>) -> Result<Vec<u8>> {
    let problem = |error: String| name_problem(context.symbols, Problem::at(place, &error));
    let bytes = Code::parse(text, context.symbols).map_err(|error| problem(error.to_string()))?.encode();
    // An emulator decodes the bytes, and refuses an expression that is nested too deeply. This check reports that
    // before anything is sent to the emulator.
    Code::decode(&bytes).map_err(|error| problem(error.to_string()))?;
    Ok(bytes)
}

fn compile_all(conditions: &Conditions, place: &str, context: Context<'_>) -> Result<Vec<Vec<u8>>> {
    let conditions = conditions.0.iter().enumerate();
    let place_of = |index| if conditions.len() == 1 { place.to_owned() } else { format!("{place}[{index}]") };
    conditions.clone().map(|(index, text)| compile(text, &place_of(index), context)).collect()
}

impl RunStep {
    fn read(&self, context: Context<'_>) -> Result<Step> {
        let given = self.frames.map(Whole::get);
        let until =
            self.until.as_ref().map_or(Ok(Vec::new()), |until| compile_all(until, "until", context))?;
        let usual = if until.is_empty() { None } else { Some(FRAMES) };
        let missing = || {
            let accepts = format!("a number from 1 to {MAX_RUN_FRAMES}, a condition in until, or presses");
            Problem::parameter("frames", "is missing", accepts)
        };
        let (keys, frames) = match (&self.hold, &self.sequence, &self.presses) {
            (None, None, None) => (Vec::new(), given.or(usual).ok_or_else(missing)?),
            (Some(KeySet(keys)), None, None) => {
                let frames = given.or(usual).ok_or_else(missing)?;
                if *keys == Keys::default() {
                    return Err(Problem::parameter("hold", "names no key", "one key or more"));
                }
                (run::holding(*keys, frames), frames)
            }
            (None, sequence, presses) if sequence.is_some() != presses.is_some() => {
                let (sequence, presses) = (sequence.clone(), presses.clone());
                let input = Input { sequence, presses, ..Input::default() };
                let timeline = Timeline::try_from(input)?;
                let frames = given.unwrap_or_else(|| timeline.frames().max(usual.unwrap_or_default()));
                (timeline.into_steps(), frames)
            }
            _ => {
                return Err(Problem::bad_request("at most one of hold, sequence and presses is accepted"));
            }
        };
        Ok(Step { frames, keys, until, goes_on: self.go_on })
    }
}

/// The texts of the conditions of a run, which its result shows.
pub(crate) struct RunTexts {
    stop: Vec<String>,
    until: Vec<Vec<String>>,
}

/// Reads the operation `run` of a batch.
pub(crate) fn read_run(object: Object, context: Context<'_>, ops: &mut Vec<Op>) -> Result<Form> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct RunArguments {
        steps: Vec<RunStep>,
        #[serde(default)]
        stop: Conditions,
    }
    let RunArguments { steps, stop } = reading::object(object)?;
    let (op, texts) = run_op(&steps, &stop, context)?;
    ops.push(op);
    Ok(Form::Ran(texts))
}

fn run_op(steps: &[RunStep], stop: &Conditions, context: Context<'_>) -> Result<(Op, RunTexts)> {
    let read = |(index, step): (usize, &RunStep)| {
        step.read(context).map_err(|problem| problem.within(&format!("steps[{index}]")))
    };
    let run = RunSteps {
        stop: compile_all(stop, "stop", context)?,
        steps: steps.iter().enumerate().map(read).collect::<Result<_, _>>()?,
    };
    run.check().map_err(Problem::bad_request)?;
    let texts = |until: &Option<Conditions>| until.as_ref().map_or(Vec::new(), |until| until.0.clone());
    let until = steps.iter().map(|step| texts(&step.until)).collect();
    Ok((Op::Run { steps: run.to_bytes() }, RunTexts { stop: stop.0.clone(), until }))
}

/// Reads the operation `evaluate` of a batch.
pub(crate) fn read_evaluate(object: Object, context: Context<'_>, ops: &mut Vec<Op>) -> Result<Form> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct EvaluateArguments {
        values: Expressions,
    }
    let EvaluateArguments { values } = reading::object(object)?;
    let (op, form) = evaluate_op(values, context)?;
    ops.push(op);
    Ok(form)
}

fn evaluate_op(Expressions(values): Expressions, context: Context<'_>) -> Result<(Op, Form)> {
    let compiled = values.iter().map(|(name, text)| compile(text, &format!("values.{name}"), context));
    let expressions = run::encode_expressions(&compiled.collect::<Result<Vec<_>, _>>()?);
    let names = values.into_iter().map(|(name, _)| name).collect();
    Ok((Op::Evaluate { expressions }, Form::Evaluated(names)))
}

/// Why a step, or the run, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Why {
    /// A condition of the step holds.
    Condition,
    /// The frames of a step without conditions have passed.
    Frames,
    /// The frames of a step with conditions have passed, and none of them held.
    Timeout,
    /// A condition of `stop` holds.
    Stop,
}

/// A condition that held.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct HeldCondition {
    /// Its index among the conditions of its step or of `stop`, counted from 0.
    index: usize,
    /// The condition as it was given.
    text: String,
}

/// How a step ended.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct StepDone {
    /// Why it ended.
    why: Why,
    /// The condition that held, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<HeldCondition>,
    /// How many frames it took.
    frames: u32,
    /// The frame counter at its end.
    frame: u32,
}

/// How a run ended.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct Ran {
    /// Why it ended: the reason of its last step.
    why: Why,
    /// The condition that held at its end, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<HeldCondition>,
    /// How many frames it took.
    frames: u64,
    /// The steps that were run, in order.
    steps: Vec<StepDone>,
}

impl RunTexts {
    /// The number of steps.
    pub(crate) fn steps(&self) -> usize {
        self.until.len()
    }

    pub(crate) fn write(&self, value: &Value) -> Json {
        let Value::Bytes(bytes) = value else { return Json::Null };
        let ends = run::decode_ends(bytes).unwrap_or_default();
        let steps: Vec<StepDone> =
            ends.iter().enumerate().map(|(index, end)| self.step(index, end)).collect();
        let Some(last) = steps.last() else { return Json::Null };
        let (why, condition) = (last.why, last.condition.clone());
        json!(Ran { why, condition, frames: ends.iter().map(|end| u64::from(end.frames)).sum(), steps })
    }

    fn step(&self, step: usize, end: &StepEnd) -> StepDone {
        let held = |texts: Option<&Vec<String>>, index: u8| {
            let index = usize::from(index);
            let text = texts.and_then(|texts| texts.get(index)).cloned().unwrap_or_default();
            Some(HeldCondition { index, text })
        };
        let (why, condition) = match end.why {
            EndReason::Frames => (Why::Frames, None),
            EndReason::TimedOut => (Why::Timeout, None),
            EndReason::Condition(index) => (Why::Condition, held(self.until.get(step), index)),
            EndReason::Stop(index) => (Why::Stop, held(Some(&self.stop), index)),
        };
        StepDone { why, condition, frames: end.frames, frame: end.frame }
    }
}

/// The values of named expressions; null for an expression without a value.
pub(crate) fn write_values(names: &[String], value: &Value) -> Json {
    let Value::Bytes(bytes) = value else { return Json::Null };
    let values = run::decode_values(bytes).unwrap_or_default();
    names.iter().cloned().zip(values.into_iter().map(|value| json!(value))).collect::<Map<_, _>>().into()
}

/// The results of a run.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunDone {
    /// The frame counter after the operations of `then`. Unless one of them lets frames run, this is also the frame at
    /// which the run ended.
    frame: u32,
    /// How it ended. These fields are absent if an operation of `ops` failed, because then the run did not begin.
    #[serde(flatten)]
    ran: Option<Ran>,
    /// The results of `ops`. If an operation failed, the last entry is its error.
    ops: Vec<OpResult>,
    /// The results of `then`. If an operation failed, the last entry is its error.
    then: Vec<OpResult>,
    /// The requested values, by name; null for an expression without a value.
    #[schema(value_type = std::collections::HashMap<String, Option<i64>>)]
    values: Map<String, Json>,
    /// The operation that failed, such as `then[1]`. Absent if no operation failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// Performs operations, runs until a condition holds or frames have passed, and performs operations at exactly that
/// frame.
///
/// The emulator itself plays the keys and evaluates the conditions after each frame, so it notices a condition that
/// holds for only one frame, at any speed. If the game is paused or in lockstep, the frames of the run still run, and
/// the game stops again at its end. If the caller disconnects, the run ends, unless the request has an
/// `Idempotency-Key`.
#[utoipa::path(post, path = "/v1/run", operation_id = "run", tag = "input", params(EmulatorParam),
    request_body = RunRequest, responses((status = 200, description = "The results of the run.", body = RunDone)))]
async fn run(
    selected: SelectedEmulator,
    stream: OpensStream,
    Payload(request): Payload<RunRequest>,
) -> Result<Response> {
    let _open = stream.open()?;
    let symbols = selected.symbols().await;
    let context = Context { symbols: &symbols, encoding: request.encoding };
    let RunRequest { ops, steps, stop, then, values, .. } = request;
    let (before, after) = (ops.len(), then.len());
    let mut plan = Plan::of_run(before, context);
    plan.add_all(ops, context)?;
    let (op, texts) = run_op(&steps, &stop, context)?;
    plan.add_made(Form::Ran(texts), op);
    plan.add_all(then, context)?;
    if !values.0.is_empty() {
        let (op, form) = evaluate_op(values, context)?;
        plan.add_values(form, op);
    }
    drop(symbols);
    let plan = plan.checked()?;
    perform_plan(&selected, &plan, |results| done(&plan, results, before, after)).await
}

/// Makes the reply of `plan` from the results in `done`: those of `before` operations, of the run, of `after`
/// operations, and of the expressions in `values`.
fn done(plan: &Plan, done: Done, before: usize, after: usize) -> Result<RunDone> {
    let mut results = done.results.into_iter();
    let ops: Vec<OpResult> = results.by_ref().take(before).collect();
    let ran = match results.next() {
        Some(OpResult::Value(value)) => serde_json::from_value(value).ok(),
        Some(OpResult::Error(problem)) => return Err(problem),
        None => None,
    };
    let then: Vec<OpResult> = results.by_ref().take(after).collect();
    let values = match results.next() {
        Some(OpResult::Value(Json::Object(values))) => values,
        Some(OpResult::Error(problem)) => return Err(problem),
        _ => Map::new(),
    };
    let failed = done.failed.map(|index| plan.place(index));
    Ok(RunDone { frame: done.frame, ran, ops, then, values, failed })
}
