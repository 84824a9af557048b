//! Resources: the picture, symbols, snapshots and recordings, for clients that attach them to a conversation.

use serde_json::{Value as Json, json};

use crate::play;
use crate::session::Session;
use crate::tools::ToolError;

/// The URI of the picture of the last frame.
const SCREEN: &str = "framewire://screen";
/// The URI of the list of symbols: at most the first 10,000, in the order of their names.
const SYMBOLS: &str = "framewire://symbols";
/// The URI of a snapshot's picture, without the snapshot's name at its end.
const SNAPSHOT: &str = "framewire://snapshots/";
/// The URI of the properties of a recording, without the recording's name at its end.
const RECORDING: &str = "framewire://recordings/";
/// The largest number of snapshots in the list, and the largest number of recordings.
const MAX_LISTED: u32 = 100;

/// A resource in the list.
pub(crate) struct Entry {
    pub(crate) uri: String,
    pub(crate) name: String,
    pub(crate) media_type: &'static str,
}

pub(crate) enum Content {
    /// JSON.
    Text(String),
    /// A PNG in base64.
    Picture(String),
}

const PNG: &str = "image/png";
const JSON: &str = "application/json";

/// All resources, but only the first [`MAX_LISTED`] snapshots and recordings.
pub(crate) async fn list(session: &Session) -> Vec<Entry> {
    let entry =
        |uri: &str, name: &str, media_type| Entry { uri: uri.to_owned(), name: name.to_owned(), media_type };
    let mut all = vec![entry(SCREEN, "picture", PNG), entry(SYMBOLS, "symbols", JSON)];
    for (method, prefix, media_type) in [("snapshots", SNAPSHOT, PNG), ("recordings", RECORDING, JSON)] {
        // A server without a folder for data has neither snapshots nor recordings.
        let Ok(reply) = session.call(method, json!({"limit": MAX_LISTED})).await else { continue };
        let names = reply[method].as_array().map(Vec::as_slice).unwrap_or_default();
        for name in names.iter().filter_map(|each| each["name"].as_str()) {
            all.push(entry(
                &format!("{prefix}{name}"),
                &format!("{} {name}", method.trim_end_matches('s')),
                media_type,
            ));
        }
    }
    all
}

/// Reads a resource.
///
/// # Errors
/// If there is no such resource, or it cannot be read.
pub(crate) async fn read(session: &Session, uri: &str) -> Result<Content, ToolError> {
    if uri == SCREEN {
        let (_, _, picture) = play::look(session, &[], true).await?;
        return Ok(Content::Picture(picture.as_str().unwrap_or_default().to_owned()));
    }
    let (method, params) = if uri == SYMBOLS {
        ("symbols", json!({}))
    } else if let Some(name) = uri.strip_prefix(SNAPSHOT) {
        ("snapshotPicture", json!({"name": name}))
    } else if let Some(name) = uri.strip_prefix(RECORDING) {
        ("recording", json!({"name": name}))
    } else {
        return Err(ToolError(format!("there is no resource {uri}; see resources/list")));
    };
    session.call(method, params).await.map(content)
}

/// The reply of a method, as text or as a picture.
fn content(reply: Json) -> Content {
    match (reply["type"].as_str(), reply["data"].as_str()) {
        (Some(PNG), Some(data)) => Content::Picture(data.to_owned()),
        _ => Content::Text(reply.to_string()),
    }
}
