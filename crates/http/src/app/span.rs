//! A span for each request, for OpenTelemetry. It is compiled only with the feature `otlp`.

use axum::http::{HeaderMap, Method, StatusCode};
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing::field::Empty;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::request_id::{RequestId, TRACEPARENT};

/// Target of the spans, which are of level TRACE.
pub const SPANS: &str = "framewire::request";

/// Begins the span of a request, as a part of the trace that its sender names.
pub(crate) fn begin(method: &Method, path: &str, id: &RequestId, headers: &HeaderMap) -> Span {
    let span = tracing::trace_span!(
        target: SPANS,
        "request",
        otel.kind = "server",
        otel.name = Empty,
        http.request.method = %method,
        http.route = Empty,
        http.response.status_code = Empty,
        url.path = path,
        request.id = id.as_str(),
    );
    if !span.is_disabled()
        && let Some(parent) = headers.get(TRACEPARENT).and_then(|parent| parent_of(parent.to_str().ok()?))
    {
        // This fails only if the span is not recorded.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
    span
}

/// Adds the outcome of the request to the span.
pub(crate) fn end(span: &Span, route: &str, method: &Method, status: StatusCode) {
    if span.is_disabled() {
        return;
    }
    span.record("otel.name", format!("{method} {route}").trim_end());
    span.record("http.route", route);
    span.record("http.response.status_code", status.as_u16());
}

/// Reads `00-TRACE-PARENT-FLAGS` (W3C Trace Context).
fn parent_of(text: &str) -> Option<SpanContext> {
    let mut parts = text.split('-').skip(1);
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let parent = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    let context = SpanContext::new(trace, parent, TraceFlags::new(flags), true, TraceState::default());
    if context.is_valid() { Some(context) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_traceparent_is_ignored() {
        let parent = parent_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        assert_eq!(parent.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(parent.is_sampled() && parent.is_remote());
        for wrong in ["", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736", "00-0-0-0", "00-x-y-z"] {
            assert!(parent_of(wrong).is_none(), "{wrong}");
        }
    }
}
