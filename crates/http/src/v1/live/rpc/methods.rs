//! What can be asked for.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use framewire_protocol::{Batch, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::error::Error;
use super::message::{Params, Request};
use super::session::{Reply, Session};
use crate::emulators::Served;
use crate::streams::Kind;
use crate::v1::Problem;
use crate::v1::fields::{Context, Encoding, Object, shown};
use crate::v1::json::row;
use crate::v1::live::definition::Definition;
use crate::v1::live::wait;
use crate::v1::plan::Plan;
use crate::v1::reading::{self, object};
use crate::v1::{batch, bounds, control, emulators, operations};

/// A request under way.
pub(super) type UnderWay = Pin<Box<dyn Future<Output = Result<Reply, Error>> + Send>>;

const METHODS: &str = "an operation, as GET /v1/operations lists them, or one of batch, wait, subscribe, unsubscribe, \
                       emulator, emulators and operations";

/// The parameters of `unsubscribe`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unsubscribe {
    subscription: u64,
}

/// No parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Begins a request. What goes to the emulator has gone there when this returns, so that operations are done in the order
/// in which they were asked for.
pub(super) async fn begin(session: &Arc<Session>, request: Request) -> Result<UnderWay, Error> {
    let Request { method, params, .. } = request;
    let mut params = named(&method, params)?;
    let served = chosen(session, &mut params)?;
    match method.as_str() {
        "batch" => {
            let batch::Request { ops, encoding } = object(params)?;
            let symbols = served.symbols().await;
            let plan = Plan::new(ops, Context { symbols: &symbols, encoding })?;
            perform(session, &served, plan, |plan, outcome| Ok(json(&plan.done(outcome)))).await
        }
        "wait" => {
            let (session, request, place) = (session.clone(), object(params)?, session.place(Kind::Wait)?);
            Ok(Box::pin(async move {
                let _place = place;
                let waited = wait::until(&session.site, &served, request).await?;
                Ok(json(&waited).into())
            }))
        }
        "subscribe" => subscribe(session.clone(), served, params),
        "unsubscribe" => {
            let Unsubscribe { subscription } = object(params)?;
            let over = session.unsubscribe(subscription).ok_or_else(|| {
                Problem::not_found(format!("this connection has no subscription {subscription}"))
            })?;
            Ok(Box::pin(async move {
                // It is closed, never told.
                let _ = over.await;
                Ok(Json::Bool(true).into())
            }))
        }
        "emulator" => {
            let Nothing {} = object(params)?;
            Ok(ready(json(&served.emulator.state())))
        }
        "emulators" => {
            let Nothing {} = object(params)?;
            let site = session.site.clone();
            Ok(Box::pin(async move { Ok(json(&emulators::all(State(site)).await.0).into()) }))
        }
        "operations" => {
            let Nothing {} = object(params)?;
            Ok(Box::pin(async { Ok(json(&operations::table().await.0).into()) }))
        }
        _ => operation(session, &served, method, params).await,
    }
}

/// The parameters by name. Those of an operation may be in the order of its arguments.
fn named(method: &str, params: Params) -> Result<Object, Problem> {
    let items = match params {
        Params::Named(named) => return Ok(named),
        Params::InOrder(items) => items,
    };
    let names: Vec<&str> =
        row(method).map(|info| info.args).unwrap_or_default().iter().map(|arg| arg.name).collect();
    if items.len() > names.len() {
        let problem = format!("is an array of {}", items.len());
        let accepts = match names.as_slice() {
            [] => "an object with the parameters by name".to_owned(),
            names => format!("an object, or an array of {}", names.join(", ")),
        };
        return Err(Problem::parameter("params", &problem, accepts));
    }
    Ok(names.into_iter().map(str::to_owned).zip(items).collect())
}

/// The emulator that is meant.
fn chosen(session: &Session, params: &mut Object) -> Result<Arc<Served>, Problem> {
    let Some(name) = params.remove("emulator") else { return Ok(session.served.clone()) };
    let emulators = &session.site.app.emulators;
    let permitted = |served: &Arc<Served>| served.for_caller(session.site.gate.permit(&session.caller));
    name.as_str().and_then(|name| emulators.get(name)).map(permitted).ok_or_else(|| {
        let names: Vec<&str> = emulators.iter().map(|served| served.name.as_str()).collect();
        Problem::parameter(
            "emulator",
            &format!("is {}", shown(&name)),
            format!("one of {}", names.join(", ")),
        )
    })
}

/// Any operation that a batch takes, alone.
async fn operation(
    session: &Session,
    served: &Served,
    method: String,
    mut params: Object,
) -> Result<UnderWay, Error> {
    let encoding = params
        .remove("encoding")
        .map_or(Ok(Encoding::default()), |encoding| reading::value("encoding", encoding))?;
    if params.contains_key("op") {
        return Err(Problem::parameter("op", "is no parameter here", "the operation's name as method").into());
    }
    params.insert("op".to_owned(), method.as_str().into());
    let symbols = served.symbols().await;
    let plan =
        Plan::one(params, Context { symbols: &symbols, encoding }).map_err(|problem| match problem
            .is_about("op")
        {
            true => Error::no_method(&method, METHODS),
            false => problem.into(),
        })?;
    perform(session, served, plan, |plan, outcome| {
        let frame = outcome.frame;
        Ok(json!({"frame": frame, "value": plan.done_alone(outcome)?}))
    })
    .await
}

/// Hands operations to the emulator.
async fn perform(
    session: &Session,
    served: &Served,
    plan: Plan,
    result: fn(Plan, Outcome) -> Result<Json, Problem>,
) -> Result<UnderWay, Error> {
    let site = &session.site;
    let share = site.replies.share_all(plan.ops()).map_err(Problem::from)?;
    let batch = Batch::new(plan.ops().to_vec());
    batch.check().map_err(Problem::from)?;
    let deadline = Instant::now() + site.app.deadline + control::time_of(plan.ops());
    let pending = served.submit(batch, deadline);
    Ok(Box::pin(async move {
        let outcome = bounds::settled(plan.ops(), pending.await.map_err(Problem::from)?);
        let outcome = outcome.map_err(|(op, problem)| plan.about(op, *problem))?;
        Ok(Reply { share: Some(share), ..result(plan, outcome)?.into() })
    }))
}

fn subscribe(session: Arc<Session>, served: Arc<Served>, mut params: Object) -> Result<UnderWay, Error> {
    let after = match params.remove("after") {
        None | Some(Json::Null) => None,
        Some(Json::String(id)) => Some(id),
        Some(other) => {
            let problem = format!("is {}", shown(&other));
            return Err(Problem::parameter("after", &problem, "the id of an event, as a text").into());
        }
    };
    let definition: Definition = object(params)?;
    let place = session.place(Kind::Subscription)?;
    Ok(Box::pin(async move {
        let site = &session.site;
        let reader = site.live.read(site, &served, definition, after.as_deref()).await?;
        let watch = reader.feed_id().to_owned();
        let (subscription, sent) = session.subscribe(reader, place);
        let result = json!({"subscription": subscription, "watch": watch});
        Ok(Reply { sent: Some(sent), ..result.into() })
    }))
}

fn ready(result: Json) -> UnderWay {
    Box::pin(std::future::ready(Ok(result.into())))
}

fn json(value: &impl Serialize) -> Json {
    // Only maps with keys that are no texts cannot be written.
    serde_json::to_value(value).unwrap_or_default()
}
