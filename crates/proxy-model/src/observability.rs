//! Settings of logs, traces and exports.

mod log_line;
mod otlp;

pub use log_line::{COMMON_TIME, LOG_FIELDS, LogLine, LogLinePart};
pub use otlp::{Otlp, OtlpCompression, OtlpEndpoint, OtlpHeader};

use crate::place::Setting;
use http::HeaderName;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The `observability` block.
#[derive(Clone, Debug)]
pub struct Observability {
    /// The access log: one line per request.
    pub access_log: AccessLog,
    /// The error log: faults, limits and reloads.
    pub error_log: ErrorLog,
    /// Names of query parameters to redact, in lower case.
    pub redact_query: Vec<Setting<String>>,
    /// Traces that begin here.
    pub trace_context: TraceContext,
    /// Recording of requests' heads; `None` if disabled.
    pub recording: Option<Recording>,
    /// Export of traces and metrics; `None` exports nothing.
    pub otlp: Option<Otlp>,
}

/// The recording of requests' heads, in memory.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Share of requests that is recorded, 0 to 100.
    pub sample_percent: Setting<f64>,
    /// Bytes of the newest records that are kept.
    pub keep_bytes: Setting<u64>,
    /// Fields recorded as digests, in addition to credentials.
    pub redact: Vec<Setting<HeaderName>>,
}

/// Traces that begin here.
#[derive(Clone, Debug)]
pub struct TraceContext {
    /// True if requests without a valid `traceparent` begin a trace.
    pub begin: Setting<bool>,
    /// Share of the traces begun here that are marked as sampled, 0 to 100.
    pub sample_percent: Setting<f64>,
}

/// The access log: one line per request.
#[derive(Clone, Debug)]
pub struct AccessLog {
    /// True if lines are written.
    pub enabled: Setting<bool>,
    /// Destination of the lines: a file or a standard stream.
    pub path: Setting<LogTarget>,
    /// The format of a line.
    pub format: Setting<AccessLogFormat>,
    /// Lines that may wait for a slow destination; further ones are dropped and counted.
    pub buffer_lines: Setting<u32>,
}

/// The error log: faults, limits and reloads.
#[derive(Clone, Debug)]
pub struct ErrorLog {
    /// The lowest level written.
    pub level: Setting<LogLevel>,
    /// The destination.
    pub path: Setting<LogTarget>,
}

/// The format of an access record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AccessLogFormat {
    /// An object with all fields.
    Json,
    /// A line of the Combined Log Format of Apache and nginx.
    Combined,
    /// A line of fields.
    Line(LogLine),
}

/// The destination of a log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LogTarget {
    /// Standard output of the process.
    Stdout,
    /// Standard error of the process.
    Stderr,
    /// Path of a file, opened for appending, and again on SIGUSR1 and on reload.
    File(PathBuf),
    /// Path of the local socket of a syslog server.
    SyslogSocket(PathBuf),
    /// A syslog server by UDP.
    SyslogServer(SocketAddr),
}

/// The socket that syslog servers of this machine have.
const LOCAL_SYSLOG: &str = "/dev/log";

/// The level of a record, most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// An operator must act.
    Error,
    /// A limit was reached, or a fault was recovered from.
    Warn,
    /// Starts, reloads, drains.
    Info,
    /// Decisions, for development.
    Debug,
    /// All records.
    Trace,
}

impl LogLevel {
    /// The word in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

impl AccessLogFormat {
    /// Parses `json`, `combined`, or a line of fields.
    ///
    /// # Errors
    /// See [`LogLine::parse`].
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "json" => Ok(Self::Json),
            "combined" => Ok(Self::Combined),
            line => LogLine::parse(line).map(Self::Line),
        }
    }
}

impl fmt::Display for AccessLogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json => f.write_str("json"),
            Self::Combined => f.write_str("combined"),
            Self::Line(line) => line.fmt(f),
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl LogTarget {
    /// Parses `stdout`, `stderr`, `syslog`, `syslog:` with a path or an address, or the path of a file.
    ///
    /// # Errors
    /// The text is empty, or names no syslog server.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("it is empty".to_owned()),
            "stdout" => Ok(Self::Stdout),
            "stderr" => Ok(Self::Stderr),
            "syslog" => Ok(Self::SyslogSocket(LOCAL_SYSLOG.into())),
            other => match other.strip_prefix("syslog:") {
                None => Ok(Self::File(other.into())),
                Some(path) if path.starts_with('/') => Ok(Self::SyslogSocket(path.into())),
                Some(server) => server.parse().map(Self::SyslogServer).map_err(|_| {
                    "a syslog server is `syslog:192.0.2.1:514` or `syslog:/path`".to_owned()
                }),
            },
        }
    }
}

impl fmt::Display for LogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("stdout"),
            Self::Stderr => f.write_str("stderr"),
            Self::File(path) => path.display().fmt(f),
            Self::SyslogSocket(path) if path == Path::new(LOCAL_SYSLOG) => f.write_str("syslog"),
            Self::SyslogSocket(path) => write!(f, "syslog:{}", path.display()),
            Self::SyslogServer(server) => write!(f, "syslog:{server}"),
        }
    }
}
