//! The figures that the load-test study of 2025 published, row by row. That study tested several versions of a server
//! for scripts in mGBA.

use framewire_loadtest::Strategy;

/// A version of the study's server that was load-tested.
#[derive(Debug)]
pub struct Version {
    /// Its name here and in the names of files.
    pub name: &'static str,
    /// The strategy of `framewire bench` that uses sockets in the same way.
    pub strategy: Strategy,
    /// The title of its section on the page.
    pub title: &'static str,
    /// The rows that the study published for it.
    pub rows: &'static [Published],
}

/// A published row: a run of 30 s without a warm-up. Latencies are in ms.
#[derive(Debug)]
pub struct Published {
    /// The requested rate, in requests per second.
    pub asked: u32,
    /// The length of the random text in a message, in bytes; `None` means a UUID, which has 36 bytes.
    pub bytes: Option<usize>,
    /// Correct replies per second.
    pub achieved: f64,
    /// The mean latency.
    pub mean: f64,
    /// The 99th percentile of the latency, if it was published.
    pub p99: Option<f64>,
    /// The largest latency.
    pub max: f64,
    /// The share of correct replies, in percent.
    pub success: f64,
}

const fn row(asked: u32, achieved: f64, mean: f64, p99: Option<f64>, max: f64, success: f64) -> Published {
    Published { asked, bytes: None, achieved, mean, p99, max, success }
}

/// The same row with messages of 5,000 bytes.
const fn long(row: Published) -> Published {
    Published { bytes: Some(5000), ..row }
}

/// The versions that were load-tested.
pub const VERSIONS: [Version; 4] = [
    Version {
        name: "v4",
        strategy: Strategy::PerRequest,
        title: "Version 4: a new socket for each request",
        rows: &[
            row(1, 1.0, 32.0, None, 264.0, 100.0),
            row(2, 1.98, 28.0, None, 245.0, 100.0),
            row(3, 2.95, 32.0, None, 279.0, 100.0),
            row(4, 3.79, 37.0, None, 282.0, 96.0),
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
            row(1, 1.0, 43.0, None, 240.0, 100.0),
            row(2, 1.97, 36.0, None, 314.0, 100.0),
            row(3, 2.95, 33.0, None, 246.0, 100.0),
            row(4, 3.92, 29.0, None, 297.0, 100.0),
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
            row(1, 1.0, 19.0, None, 145.0, 100.0),
            row(2, 1.98, 17.0, None, 129.0, 100.0),
            row(3, 2.95, 19.0, None, 108.0, 100.0),
            row(4, 3.92, 18.0, None, 145.0, 100.0),
            row(5, 4.9, 18.0, None, 132.0, 100.0),
            row(10, 9.75, 19.0, None, 209.0, 100.0),
            row(15, 14.65, 17.0, None, 101.0, 100.0),
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
            row(1, 1.0, 21.0, Some(40.0), 121.0, 100.0),
            row(2, 1.97, 19.0, Some(39.0), 129.0, 100.0),
            row(3, 2.95, 17.0, Some(40.0), 115.0, 100.0),
            row(4, 3.92, 17.0, Some(39.0), 122.0, 100.0),
            row(5, 4.9, 18.0, Some(39.0), 109.0, 100.0),
            row(10, 9.77, 18.0, Some(40.0), 117.0, 100.0),
            row(15, 14.65, 17.0, Some(40.0), 192.0, 100.0),
            row(20, 19.43, 18.0, Some(40.0), 124.0, 100.0),
            row(40, 32.24, 18.0, Some(40.0), 126.0, 100.0),
            long(row(1, 1.0, 30.0, Some(40.0), 235.0, 100.0)),
            long(row(2, 1.98, 19.0, Some(40.0), 108.0, 100.0)),
            long(row(3, 2.95, 21.0, Some(39.0), 152.0, 100.0)),
            long(row(4, 3.92, 20.0, Some(38.0), 133.0, 100.0)),
            long(row(5, 4.9, 18.0, Some(38.0), 115.0, 100.0)),
            long(row(10, 9.76, 18.0, Some(39.0), 113.0, 100.0)),
            long(row(15, 14.65, 18.0, Some(39.0), 143.0, 100.0)),
            long(row(20, 19.41, 18.0, Some(39.0), 128.0, 100.0)),
            long(row(40, 32.25, 18.0, Some(41.0), 118.0, 100.0)),
            row(100, 95.0, 19.0, Some(36.0), 1075.0, 100.0),
            row(200, 181.0, 17.0, Some(35.0), 637.0, 100.0),
            row(300, 260.0, 16.0, Some(35.0), 679.0, 100.0),
            row(325, 278.0, 16.0, Some(34.0), 1046.0, 100.0),
            row(330, 282.0, 16.0, Some(34.0), 1042.0, 100.0),
            row(335, 285.0, 16.0, Some(34.0), 554.0, 100.0),
            row(340, 283.0, 26.0, Some(34.0), 2136.0, 99.0),
            row(350, 283.0, 21.0, Some(35.0), 1651.0, 99.0),
            row(400, 121.0, 18081.0, Some(63338.0), 69769.0, 96.0),
        ],
    },
];
