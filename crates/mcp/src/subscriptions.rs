//! Subscriptions to resources: each resource is read at intervals, and the client gets a notification when it has
//! changed.

use std::sync::Arc;
use std::time::Duration;

use crate::resources::{self, Content};
use crate::session::Session;
use crate::tools::ToolError;

/// The largest number of resources that a session or a stream of `subscriptions/listen` follows.
pub(crate) const MAX: usize = 64;
/// The largest number of listeners at the same time: streams of `subscriptions/listen`, and sessions over HTTP that
/// have subscriptions.
pub(crate) const MAX_LISTENERS: usize = 16;
/// The time between two reads of a resource.
const PERIOD: Duration = Duration::from_millis(500);

/// A resource that a client follows.
pub(crate) struct Followed {
    session: Arc<Session>,
    uri: String,
    /// The checksum of its last content. `None` if the last attempt to read it failed.
    checksum: Option<u32>,
}

impl Followed {
    /// Begins to follow a resource, from its current content.
    ///
    /// # Errors
    /// If there is no such resource, or it cannot be read.
    pub(crate) async fn begin(session: Arc<Session>, uri: String) -> Result<Followed, ToolError> {
        let content = resources::read(&session, &uri).await?;
        Ok(Followed { session, uri, checksum: Some(checksum(&content)) })
    }

    /// Waits until the content of the resource changes, or until the resource can no longer be read, or can be read
    /// again. Returns the resource's URI.
    pub(crate) async fn changed(&mut self) -> &str {
        loop {
            tokio::time::sleep(PERIOD).await;
            let content = resources::read(&self.session, &self.uri).await;
            let now = content.ok().map(|content| checksum(&content));
            if now != self.checksum {
                self.checksum = now;
                return &self.uri;
            }
        }
    }
}

fn checksum(content: &Content) -> u32 {
    match content {
        Content::Text(text) | Content::Picture(text) => crc32fast::hash(text.as_bytes()),
    }
}
