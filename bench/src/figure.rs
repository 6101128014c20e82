//! Measured figures, their units and format.

use serde::{Deserialize, Serialize};

/// A measured figure. Lower is better, except for requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Figure {
    /// CPU time of the proxy's threads per request, in microseconds.
    CpuMicros,
    /// Used share of the proxy's cores.
    Share,
    /// Share of the time in which the load generator was busy.
    LoadShare,
    /// Responses per second.
    PerSecond,
    /// Median response time, in microseconds.
    P50Micros,
    /// 99th percentile of the response time, in microseconds.
    P99Micros,
    /// 99.9th percentile of the response time, in microseconds.
    P999Micros,
    /// Resident memory after the first request, in bytes.
    RssBytes,
    /// Resident memory that an idle connection adds, in bytes.
    ConnectionBytes,
    /// Resident memory that a route adds, in bytes.
    RouteBytes,
    /// Time from the signal until the new configuration is active, in milliseconds.
    ReloadMillis,
    /// Instructions in user mode per request.
    Instructions,
    /// System calls per request.
    SystemCalls,
    /// Reads of a clock per request, which need no system call.
    ClockReads,
}

impl Figure {
    /// Heading in tables.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::CpuMicros => "CPU per request",
            Self::Share => "share of its core",
            Self::LoadShare => "share of the load's core",
            Self::PerSecond => "requests a second",
            Self::P50Micros => "p50",
            Self::P99Micros => "p99",
            Self::P999Micros => "p99.9",
            Self::RssBytes => "RSS at start",
            Self::ConnectionBytes => "RSS per idle connection",
            Self::RouteBytes => "RSS per route",
            Self::ReloadMillis => "time to reload",
            Self::Instructions => "user instructions per request",
            Self::SystemCalls => "system calls per request",
            Self::ClockReads => "clock readings per request",
        }
    }

    /// Formats a value with its unit.
    pub(crate) fn written(self, value: f64) -> String {
        const MEBI: f64 = 1_048_576.0;
        match self {
            Self::CpuMicros if value < 100.0 => format!("{value:.2} µs"),
            Self::CpuMicros => format!("{value:.0} µs"),
            Self::Share | Self::LoadShare => format!("{:.0} %", value * 100.0),
            Self::PerSecond | Self::Instructions => grouped(value),
            Self::P50Micros | Self::P99Micros | Self::P999Micros if value < 1_000.0 => {
                format!("{value:.0} µs")
            }
            Self::P50Micros | Self::P99Micros | Self::P999Micros => {
                format!("{:.1} ms", value / 1_000.0)
            }
            Self::RssBytes => format!("{:.1} MiB", value / MEBI),
            Self::ConnectionBytes | Self::RouteBytes => format!("{} B", grouped(value)),
            Self::ReloadMillis => format!("{value:.0} ms"),
            Self::SystemCalls | Self::ClockReads => format!("{value:.2}"),
        }
    }
}

/// Formats a whole number, with groups of three digits.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (place, digit) in digits.char_indices() {
        let left = digits.len() - place;
        if place > 0 && left.is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// Converts a count to a figure.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and bytes stay far below 2^53"
)]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_with_their_units() {
        let cases = [
            (Figure::CpuMicros, 11.024, "11.02 µs"),
            (Figure::CpuMicros, 411.4, "411 µs"),
            (Figure::Share, 0.984, "98 %"),
            (Figure::PerSecond, 90_123.4, "90 123"),
            (Figure::P99Micros, 843.2, "843 µs"),
            (Figure::P99Micros, 10_940.0, "10.9 ms"),
            (Figure::RssBytes, 5_242_880.0, "5.0 MiB"),
            (Figure::ConnectionBytes, 2_094.0, "2 094 B"),
            (Figure::RouteBytes, -120.0, "-120 B"),
            (Figure::Instructions, 22_200.0, "22 200"),
        ];
        for (figure, value, text) in cases {
            assert_eq!(figure.written(value), text);
        }
    }
}
