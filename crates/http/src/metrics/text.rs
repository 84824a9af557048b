//! The text that Prometheus reads.

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

/// Writes what is registered, in OpenMetrics or in the older format of Prometheus.
pub(super) fn encode(registry: &Registry, open_metrics: bool) -> String {
    let mut written = String::new();
    // Writing to a string cannot fail.
    let _ = text::encode(&mut written, registry);
    if open_metrics { written } else { classic(&written) }
}

/// The older format calls a counter by the whole name of its sample, and knows neither units nor an end.
fn classic(open_metrics: &str) -> String {
    let mut written = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), ..) => help = line,
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let suffix = if kind == "counter" { "_total" } else { "" };
                let text = help.splitn(4, ' ').nth(3).unwrap_or_default();
                written.push_str(&format!("# HELP {name}{suffix} {text}\n# TYPE {name}{suffix} {kind}\n"));
            }
            (Some("#"), ..) => {}
            _ => {
                written.push_str(line);
                written.push('\n');
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_format_names_counters_by_their_samples() {
        let written = classic(
            "# HELP a_b Some words.\n# TYPE a_b counter\na_b_total{x=\"# y\"} 1\n# HELP c C.\n# TYPE c gauge\n# UNIT c s\nc 2\n# EOF\n",
        );
        assert_eq!(
            written,
            "# HELP a_b_total Some words.\n# TYPE a_b_total counter\na_b_total{x=\"# y\"} 1\n# HELP c C.\n# TYPE c gauge\nc 2\n"
        );
    }
}
