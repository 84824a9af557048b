use tokio::sync::watch;

/// Says when the server stops: replies without an end of their own end then.
#[derive(Debug, Clone)]
pub(crate) struct Stopping(watch::Receiver<bool>);

impl Stopping {
    /// The signal is given when `stop` turns true.
    pub(crate) fn new(stop: watch::Receiver<bool>) -> Stopping {
        Stopping(stop)
    }

    /// Waits until the server stops.
    pub(crate) async fn wait(&self) {
        // An error means that the server is gone altogether.
        let _ = self.0.clone().wait_for(|stopping| *stopping).await;
    }
}
