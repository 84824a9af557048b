//! The tool `resume`, which returns a summary to an agent that continues a game that was played earlier.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::control::latest_snapshots;
use super::{Reply, ToolError, set};
use crate::backend::Object;
use crate::notes;
use crate::picture::PictureOptions;
use crate::play;
use crate::session::{Session, arguments};

/// The number of snapshots in a summary.
const SNAPSHOTS: usize = 5;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

pub(super) async fn resume(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let NoArguments {} = arguments(given)?;
    let state = session.call("emulatorState", json!({})).await?;
    let mut json = json!({"title": state["title"], "run": state["run"]});
    let notes = notes::last(&session, notes::LATEST).await?;
    let note = |note: notes::Note| match note.recording {
        Some(recording) => format!("frame {} (recording {recording}): {}", note.frame, note.note),
        None => format!("frame {}: {}", note.frame, note.note),
    };
    json["notes"] = notes.into_iter().map(note).collect();
    // A server without a folder for data has neither snapshots nor recordings.
    if let Ok(snapshots) = latest_snapshots(&session, SNAPSHOTS).await {
        json["snapshots"] = snapshots.into();
    }
    set(&mut json, "recording", session.recording().await);
    let (frame, _, shot) = play::look(&session, &[], true).await?;
    json["frame"] = frame.into();
    let picture = PictureOptions::default().picture(&shot)?;
    json["picture"] = Json::from(picture.mark.as_str());
    // `None`: the call that sends this picture has no idempotency key.
    session.memory.lock().picture = Some((picture.mark.clone(), None));
    Ok(Reply { json, picture: Some(picture) })
}
