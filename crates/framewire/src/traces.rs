//! Traces for an OpenTelemetry collector: `--otlp URL`, in builds with the feature `otlp`.

use tracing_subscriber::{Layer, Registry};

#[cfg(feature = "otlp")]
pub use collected::{Traces, start};

/// The layer of the log that receives the spans.
pub type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Without the feature, there are no values of this type.
#[cfg(not(feature = "otlp"))]
pub enum Traces {}

#[cfg(not(feature = "otlp"))]
impl Traces {
    /// Never called, because there are no values of this type.
    pub fn layer(&self) -> SpanLayer {
        match *self {}
    }
}

/// Returns the error for `--otlp` in a build without the feature.
///
/// # Errors
/// Always.
#[cfg(not(feature = "otlp"))]
pub fn start(_collector: &str) -> anyhow::Result<Traces> {
    anyhow::bail!(
        "--otlp: this build sends no traces; build one that does: cargo build --release --features otlp"
    )
}

#[cfg(feature = "otlp")]
mod collected {
    use anyhow::{Context, bail};
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_otlp::{SpanExporter, WithExportConfig};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing::level_filters::LevelFilter;
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::Targets;

    use super::SpanLayer;

    /// Sends spans to a collector in the background. Dropping it sends the remaining spans.
    pub struct Traces(SdkTracerProvider);

    impl Traces {
        /// A layer that receives only the spans of requests.
        pub fn layer(&self) -> SpanLayer {
            let requests = Targets::new().with_target(framewire_http::SPANS, LevelFilter::TRACE);
            let spans = tracing_opentelemetry::layer().with_tracer(self.0.tracer("framewire"));
            spans.with_filter(requests).boxed()
        }
    }

    impl Drop for Traces {
        fn drop(&mut self) {
            // A missing collector is not an error.
            let _ = self.0.shutdown();
        }
    }

    /// Starts to send traces to the collector at `collector`, such as `http://127.0.0.1:4318`. Do not call it from
    /// within a tokio runtime.
    ///
    /// # Errors
    /// If `collector` is not an address that begins with `http://`.
    pub fn start(collector: &str) -> anyhow::Result<Traces> {
        if !collector.starts_with("http://") {
            bail!("--otlp {collector}: write the collector's address like http://127.0.0.1:4318");
        }
        let endpoint = format!("{}/v1/traces", collector.trim_end_matches('/'));
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(endpoint)
            .build()
            .with_context(|| format!("--otlp {collector}"))?;
        let resource = Resource::builder().with_service_name("framewire").build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        Ok(Traces(provider))
    }

    #[cfg(test)]
    mod tests {
        use std::io::{Read, Write};
        use std::net::TcpListener;

        use tracing_subscriber::layer::SubscriberExt;

        use super::*;

        #[test]
        fn spans_of_requests_reach_the_collector_and_others_do_not() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let collector = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut received = vec![0; 64 * 1024];
                let mut size = 0;
                while !received[..size].windows(8).any(|window| window == b"the span") {
                    match stream.read(&mut received[size..]).unwrap() {
                        0 => break,
                        count => size += count,
                    }
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                String::from_utf8_lossy(&received[..size]).into_owned()
            });
            let traces = start(&url).unwrap();
            let subscriber = tracing_subscriber::registry().with(traces.layer());
            tracing::subscriber::with_default(subscriber, || {
                tracing::info_span!("another").in_scope(|| {});
                tracing::trace_span!(target: framewire_http::SPANS, "the span").in_scope(|| {});
            });
            drop(traces);
            let received = collector.join().unwrap();
            assert!(received.starts_with("POST /v1/traces ") && received.contains("framewire"), "{received}");
            assert!(received.contains("the span") && !received.contains("another"), "{received}");
        }

        #[test]
        fn addresses_without_http_are_refused() {
            for wrong in ["", "127.0.0.1:4318", "grpc://127.0.0.1:4317"] {
                assert!(start(wrong).is_err(), "{wrong}");
            }
        }
    }
}
