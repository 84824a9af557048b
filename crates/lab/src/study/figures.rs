//! The figures of 2025: what the study published, row by row.

use framewire_loadtest::Strategy;

/// One version of the study's server, as far as its load tests go.
#[derive(Debug)]
pub struct Version {
    /// Its name here and in the names of files.
    pub name: &'static str,
    /// The strategy that does the same.
    pub strategy: Strategy,
    /// What it was.
    pub title: &'static str,
    /// Its published rows.
    pub rows: &'static [Published],
}

/// A published row: a run of 30 s, started cold. Latencies in ms.
#[derive(Debug)]
pub struct Published {
    /// Requests a second that were asked for.
    pub asked: u32,
    /// Bytes of random text in a message; none is a GUID of 36 bytes.
    pub bytes: Option<usize>,
    /// Right replies a second.
    pub achieved: f64,
    /// Mean latency.
    pub mean: f64,
    /// 99th percentile, where it was published.
    pub p99: Option<f64>,
    /// Largest latency.
    pub max: f64,
    /// Successes in percent.
    pub success: f64,
}

const fn row(asked: u32, achieved: f64, mean: f64, p99: Option<f64>, max: f64, success: f64) -> Published {
    Published { asked, bytes: None, achieved, mean, p99, max, success }
}

/// The versions that were load-tested.
pub const VERSIONS: [Version; 4] = [
    Version {
        name: "v4",
        strategy: Strategy::PerRequest,
        title: "Version 4: a new socket for each request",
        rows: &[
            row(1, 1.0, 32.0, None, 264.0, 100.0),
            row(5, 4.83, 31.0, None, 218.0, 98.0),
            row(10, 9.5, 70.0, None, 1465.0, 97.0),
            row(15, 14.23, 908.0, None, 8476.0, 97.0),
            row(20, 9.78, 10758.0, None, 32102.0, 79.0),
        ],
    },
    Version {
        name: "v5",
        strategy: Strategy::Pool,
        title: "Version 5: a pool of sockets",
        rows: &[
            row(5, 4.9, 29.0, None, 274.0, 100.0),
            row(10, 9.76, 29.0, None, 361.0, 100.0),
            row(15, 10.43, 5122.0, None, 12935.0, 81.0),
            row(20, 4.28, 38406.0, None, 87501.0, 74.0),
        ],
    },
    Version {
        name: "v6",
        strategy: Strategy::PoolRetry,
        title: "Version 6: a pool, three tries with a growing delay",
        rows: &[
            row(5, 4.9, 18.0, None, 132.0, 100.0),
            row(20, 19.4, 18.0, None, 118.0, 100.0),
            row(40, 32.06, 17.0, None, 123.0, 100.0),
            row(80, 63.31, 19.0, None, 1043.0, 100.0),
            row(160, 63.67, 17.5, None, 126.0, 100.0),
        ],
    },
    Version {
        name: "v7",
        strategy: Strategy::PoolRetry,
        title: "Version 7: the same with framed messages of any length",
        rows: &[
            row(5, 4.9, 18.0, Some(39.0), 109.0, 100.0),
            row(40, 32.24, 18.0, Some(40.0), 126.0, 100.0),
            Published { bytes: Some(5000), ..row(40, 32.25, 18.0, Some(41.0), 118.0, 100.0) },
            row(100, 95.0, 19.0, Some(36.0), 1075.0, 100.0),
            row(200, 181.0, 17.0, Some(35.0), 637.0, 100.0),
            row(300, 260.0, 16.0, Some(35.0), 679.0, 100.0),
            row(330, 282.0, 16.0, Some(34.0), 1042.0, 100.0),
            row(340, 283.0, 26.0, Some(34.0), 2136.0, 99.0),
            row(400, 121.0, 18081.0, Some(63338.0), 69769.0, 96.0),
        ],
    },
];
