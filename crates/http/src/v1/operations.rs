//! The table of operations, for programs.

use axum::Json;
use framewire_protocol::op::{OPS, ResultKind};
use framewire_protocol::{Effect, OpInfo};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{convenience, json};
use crate::routing::state::AppState;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(table))
}

/// The table of operations.
#[derive(Serialize, ToSchema)]
pub(super) struct Table {
    /// Those that any emulator knows by one name.
    operations: Vec<Operation>,
    /// Those that are made of them, for batches only.
    conveniences: Vec<Convenience>,
}

/// An operation that is made of others.
#[derive(Serialize, ToSchema)]
struct Convenience {
    /// Its name.
    name: &'static str,
    /// What it takes and does.
    doc: &'static str,
}

/// What POST /v1/batch takes as an `op`.
#[derive(Serialize, ToSchema)]
#[schema(as = OperationInfo)]
struct Operation {
    /// Its name.
    name: &'static str,
    /// What it does.
    doc: &'static str,
    /// `read` if it only looks, `change` if it changes something.
    effect: &'static str,
    /// Its arguments.
    args: Vec<Argument>,
    /// What its `value` is: none, bool, int, text, bytes or names.
    result: &'static str,
}

/// An argument of an operation.
#[derive(Serialize, ToSchema)]
struct Argument {
    name: &'static str,
    /// u8, u16, u32, i32, bool, text or bytes.
    #[serde(rename = "type")]
    kind: &'static str,
    doc: &'static str,
}

/// The operations that POST /v1/batch takes.
#[utoipa::path(get, path = "/v1/operations", operation_id = "operations", tag = "batch",
    responses((status = 200, description = "The table.", body = Table)))]
pub(super) async fn table() -> Json<Table> {
    let conveniences = convenience::ALL.iter().map(|(name, doc)| Convenience { name, doc });
    Json(Table {
        operations: json::public(OPS).map(Operation::from).collect(),
        conveniences: conveniences.collect(),
    })
}

impl From<&'static OpInfo> for Operation {
    fn from(info: &'static OpInfo) -> Operation {
        let arg = |arg: &framewire_protocol::op::ArgInfo| Argument {
            name: arg.name,
            kind: arg.kind.name(),
            doc: arg.doc,
        };
        Operation {
            name: info.name,
            doc: info.doc,
            effect: match info.effect {
                Effect::Read => "read",
                Effect::Change => "change",
            },
            args: info.args.iter().map(arg).collect(),
            result: match info.result {
                ResultKind::None => "none",
                ResultKind::Bool => "bool",
                ResultKind::Int => "int",
                ResultKind::Text => "text",
                ResultKind::Bytes => "bytes",
                ResultKind::Names => "names",
            },
        }
    }
}
