//! The methods of JSON-RPC.

use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use framewire_protocol::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::message::{Params, Request, RpcError};
use super::session::{RpcReply, RpcSession};
use crate::feeds::definition::Definition;
use crate::idempotency;
use crate::operations::SelectedEmulator;
use crate::operations::emulators::Served;
use crate::problem::Problem;
use crate::reading::fields::{Context, Encoding, Object, wrong_value};
use crate::reading::{self, object};
use crate::routing::extract::NoParameters;
use crate::transport::incoming::Charge;
use crate::transport::streams::StreamKind;
use crate::v1::batch::{self, Plan};
use crate::v1::operations::row;
use crate::v1::{convenience, wait};

/// The parameter for an idempotency key. Over HTTP, this key is in the header `Idempotency-Key`.
const KEY: &str = "idempotency_key";

/// A request that was begun.
pub(super) type UnderWay = Pin<Box<dyn Future<Output = Result<RpcReply, RpcError>> + Send>>;

const METHODS: &str = "an operation (GET /v1/operations lists them), the operationId (such as saveSnapshot) of a \
                       route under /v1 in GET /openapi.json that is not a stream, or subscribe, unsubscribe or \
                       emulator";

/// The prefix before the operation id of a route. It selects the route if an operation has the same name.
const ROUTE: &str = "v1.";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unsubscribe {
    subscription: u64,
}

/// Begins a request. `charge` counts the memory of its message. When this function returns, the request's operations
/// have been sent to the emulator, so operations are performed in the order of the requests. The exceptions are
/// `subscribe`, and routes that send several batches or first wait for something else, such as a file.
pub(super) async fn begin(
    session: &Arc<RpcSession>,
    request: Request,
    charge: Option<Arc<Charge>>,
) -> Result<UnderWay, RpcError> {
    let Request { method, params, .. } = request;
    let mut params = named(&method, params)?;
    let key = key(&mut params)?;
    let (name, is_route) = method.strip_prefix(ROUTE).map_or((method.as_str(), false), |id| (id, true));
    match (name, key) {
        ("batch", None) => batch(session, params).await,
        ("wait", None) => wait(session, params).await,
        ("subscribe", None) if !is_route => subscribe(session.clone(), params),
        ("unsubscribe", None) if !is_route => unsubscribe(session, params),
        ("emulator", None) if !is_route => {
            let served = selected(session, params.remove("emulator"))?;
            let NoParameters {} = object(params)?;
            Ok(Box::pin(ready(Ok(json(&served.emulator.state()).into()))))
        }
        ("subscribe" | "unsubscribe" | "emulator", Some(_)) if !is_route => {
            Err(Problem::unusable(KEY, "is given, but this method does not change the emulator").into())
        }
        (_, None) if !is_route && is_operation(name) => operation(session, name, params).await,
        (_, Some(key)) if !is_route && is_operation(name) => {
            operation_once(session, name, params, key, charge).await
        }
        (_, key) => match session.routes.find(name) {
            Some(route) => {
                load_symbols(session, &params).await;
                session.routes.begin(session, route, params, key, charge).await
            }
            None => Err(RpcError::no_method(&method, METHODS)),
        },
    }
}

/// Polls `work` once and does not wait for its end. So everything that this poll sends to the emulator arrives there
/// before the operations of later requests.
pub(super) async fn under_way(
    work: impl Future<Output = Result<RpcReply, RpcError>> + Send + 'static,
) -> UnderWay {
    let mut work: UnderWay = Box::pin(work);
    match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        Poll::Ready(done) => Box::pin(ready(done)),
        Poll::Pending => work,
    }
}

/// Waits until the names of the game's addresses have been read from their files. If the request had to read them
/// itself, later requests could overtake it.
async fn load_symbols(session: &RpcSession, params: &Object) {
    let name = params.get("emulator").and_then(Json::as_str);
    let named = name.and_then(|name| session.services.operations.emulators.get(name));
    named.unwrap_or(&session.served).symbols().await;
}

/// Whether a method of this name performs an operation of POST /v1/batch. The method `run` does not: it calls the
/// route, which also accepts operations before and after the run.
fn is_operation(name: &str) -> bool {
    name != "run" && (row(name).is_some() || convenience::ALL.iter().any(|(known, _)| *known == name))
}

/// Removes the key from the parameters and returns it, if there is one.
fn key(params: &mut Object) -> Result<Option<String>, Problem> {
    match params.remove(KEY) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(key)) if idempotency::is_key(&key) => Ok(Some(key)),
        Some(other) => Err(wrong_value(KEY, &other, idempotency::ACCEPTED)),
    }
}

async fn batch(session: &RpcSession, mut params: Object) -> Result<UnderWay, RpcError> {
    let served = selected(session, params.remove("emulator"))?;
    let batch::BatchRequest { ops, encoding } = object(params)?;
    let symbols = served.symbols().await;
    let plan = Plan::new(ops, Context { symbols: &symbols, encoding })?;
    perform(session, served, plan, |plan, outcome| Ok(json(&plan.done(outcome))))
}

async fn wait(session: &Arc<RpcSession>, mut params: Object) -> Result<UnderWay, RpcError> {
    let served = selected(session, params.remove("emulator"))?;
    let symbols = served.symbols().await;
    let (session, request, place) = (session.clone(), object(params)?, session.place(StreamKind::Wait)?);
    let selected = SelectedEmulator { served, operations: session.services.operations.clone(), key: None };
    // The wait begins at once, because a later request may make the condition true for a single frame.
    let waiting = under_way(async move {
        let _place = place;
        Ok(json(&wait::until(&selected, &session.services.feeds, symbols, request).await?).into())
    });
    Ok(waiting.await)
}

fn unsubscribe(session: &RpcSession, params: Object) -> Result<UnderWay, RpcError> {
    let Unsubscribe { subscription } = object(params)?;
    let over = session
        .unsubscribe(subscription)
        .ok_or_else(|| Problem::not_found(format!("this connection has no subscription {subscription}")))?;
    Ok(Box::pin(async move {
        // This always ends with an error, because the subscription drops its sender without sending anything.
        let _ = over.await;
        Ok(Json::Bool(true).into())
    }))
}

/// The parameters by name. If the method is an operation in the table of operations, the parameters may also be an
/// array, in the order of the operation's arguments.
fn named(method: &str, params: Params) -> Result<Object, Problem> {
    let items = match params {
        Params::Named(named) => return Ok(named),
        Params::InOrder(items) => items,
    };
    let names: Vec<&str> =
        row(method).map(|info| info.args).unwrap_or_default().iter().map(|arg| arg.name).collect();
    if items.len() > names.len() {
        let problem = format!("is an array of length {}", items.len());
        let accepts = match names.as_slice() {
            [] => "an object with the parameters by name".to_owned(),
            names => format!("an object, or an array with the values of {}", names.join(", ")),
        };
        return Err(Problem::parameter("params", &problem, accepts));
    }
    let mut named = Object::new();
    named.extend(names.into_iter().map(str::to_owned).zip(items));
    Ok(named)
}

/// The emulator of this name, which comes from the parameters. Without a name, the emulator of the connection.
fn selected(session: &RpcSession, name: Option<Json>) -> Result<Arc<Served>, Problem> {
    let Some(name) = name.filter(|name| !name.is_null()) else { return Ok(session.served.clone()) };
    let operations = &session.services.operations;
    let served = name.as_str().and_then(|name| operations.emulators.get(name)).ok_or_else(|| {
        let accepts = format!("one of {}", operations.emulators.names());
        wrong_value("emulator", &name, accepts)
    })?;
    Ok(operations.for_caller(served, &session.caller))
}

/// Performs one operation, which is not in a batch.
async fn operation(session: &RpcSession, name: &str, mut params: Object) -> Result<UnderWay, RpcError> {
    let served = selected(session, params.remove("emulator"))?;
    let plan = alone(name, params, &served).await?;
    perform(session, served, plan, |plan, outcome| {
        Ok(json!({"frame": outcome.frame, "value": plan.done_alone(outcome)?}))
    })
}

/// Reads one operation with its parameters.
async fn alone(name: &str, mut params: Object, served: &Served) -> Result<Plan, Problem> {
    let encoding = params
        .remove("encoding")
        .map_or(Ok(Encoding::default()), |encoding| reading::value("encoding", encoding))?;
    if params.contains_key("op") {
        return Err(Problem::parameter(
            "op",
            "is not a parameter here",
            "the operation's name as the method",
        ));
    }
    params.insert("op".to_owned(), name.into());
    let symbols = served.symbols().await;
    Plan::one(params, Context { symbols: &symbols, encoding })
}

/// Like [`operation`], with a key. Sends a batch with one operation to the route `batch`, because a key is for a whole
/// batch.
async fn operation_once(
    session: &RpcSession,
    name: &str,
    mut params: Object,
    key: String,
    charge: Option<Arc<Charge>>,
) -> Result<UnderWay, RpcError> {
    let emulator = params.remove("emulator");
    let served = selected(session, emulator.clone())?;
    // An operation that is not valid is refused here, because the error of the batch would name the place `ops[0]`.
    alone(name, params.clone(), &served).await?;
    let encoding = params.remove("encoding");
    params.insert("op".to_owned(), name.into());
    let mut batch = Object::new();
    batch.insert("ops".to_owned(), json!([params]));
    batch.extend(encoding.map(|encoding| ("encoding".to_owned(), encoding)));
    batch.extend(emulator.map(|name| ("emulator".to_owned(), name)));
    let route = session.routes.find("batch").ok_or_else(|| RpcError::no_method(name, METHODS))?;
    let done = session.routes.begin(session, route, batch, Some(key), charge).await?;
    Ok(Box::pin(async move {
        let mut reply = done.await?;
        let frame = reply.result["frame"].take();
        let mut result = reply.result["results"][0].take();
        match result.get_mut("error") {
            Some(problem) => Err(RpcError::of_first_op(problem.take())),
            None => {
                Ok(RpcReply { result: json!({"frame": frame, "value": result["value"].take()}), ..reply })
            }
        }
    }))
}

/// Sends operations to the emulator. `result` makes the result of the request from their outcome.
fn perform(
    session: &RpcSession,
    served: Arc<Served>,
    plan: Plan,
    result: fn(Plan, Outcome) -> Result<Json, Problem>,
) -> Result<UnderWay, RpcError> {
    let operations = session.services.operations.clone();
    let share = operations.replies.share_of_many(plan.bytes()).map_err(Problem::from)?;
    let sent = operations.send(&served, plan.ops().to_vec().into()).map_err(Problem::from)?;
    Ok(Box::pin(async move {
        let outcome = operations.outcome(&served, sent).await.map_err(Problem::from)?;
        let outcome = plan.settled(outcome)?;
        Ok(RpcReply { held: Some(Box::new(share)), ..result(plan, outcome)?.into() })
    }))
}

fn subscribe(session: Arc<RpcSession>, mut params: Object) -> Result<UnderWay, RpcError> {
    let served = selected(&session, params.remove("emulator"))?;
    let after = match params.remove("after") {
        None | Some(Json::Null) => None,
        Some(Json::String(id)) => Some(id),
        Some(other) => return Err(wrong_value("after", &other, "the id of an event, as a string").into()),
    };
    let definition: Definition = object(params)?;
    let place = session.place(StreamKind::Subscription)?;
    Ok(Box::pin(async move {
        let reader = session.services.feeds.read(&served, definition, after.as_deref()).await?;
        let watch = reader.feed_id().to_owned();
        let (subscription, sent) = session.subscribe(reader, place);
        let result = json!({"subscription": subscription, "watch": watch});
        Ok(RpcReply { sent: Some(sent), ..result.into() })
    }))
}

fn json(value: &impl Serialize) -> Json {
    // This fails only for maps with keys that are not strings.
    serde_json::to_value(value).unwrap_or_default()
}
