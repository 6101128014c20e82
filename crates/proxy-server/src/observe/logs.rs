//! The access log and the error log of the process.

use crate::observe::events::unix_now;
use proxy_config::{Diagnostic, DiagnosticCode};
use proxy_model::{LogLevel, LogTarget, Observability, Setting};
use proxy_pipeline::Logs;
use proxy_telemetry::{
    Destination, EventFields, EventRecord, LineRing, LogCounters, LogError, LogWriter, Registry,
    RingWriter, WorkerLog,
};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time for writing the last lines at exit.
const FLUSH_TIME: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct OpenLogs {
    access: OpenLog,
    errors: OpenLog,
    /// `None` if no head is recorded.
    recording: Option<LogWriter>,
    /// The control thread's end of the error log.
    own: WorkerLog,
    lines: u64,
    level: LogLevel,
}

#[derive(Debug)]
struct OpenLog {
    destination: Destination,
    writer: LogWriter,
}

/// Settings that the open logs depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogSettings {
    access: Destination,
    errors: Destination,
    is_recording: bool,
    lines: u64,
    level: LogLevel,
}

impl From<&Observability> for LogSettings {
    fn from(observability: &Observability) -> Self {
        let (access, errors) = destinations(observability);
        Self {
            access,
            errors,
            is_recording: observability.recording.is_some(),
            lines: u64::from(*observability.access_log.buffer_lines),
            level: *observability.error_log.level,
        }
    }
}

impl OpenLogs {
    /// Opens the logs of `observability`; heads are recorded in the ring `recording`.
    pub(crate) fn open(
        observability: &Observability,
        registry: &Registry,
        recording: &Arc<LineRing>,
    ) -> Result<Self, Diagnostic> {
        let (access_log, error_log) = (&observability.access_log, &observability.error_log);
        let (access, errors) = destinations(observability);
        let lines = u64::from(*access_log.buffer_lines);
        let access_writer = start(&access, "access", registry);
        let access_writer = access_writer.map_err(|error| fault(&access_log.path, &error))?;
        let errors_writer = start(&errors, "error", registry);
        let errors_writer = errors_writer.map_err(|error| fault(&error_log.path, &error))?;
        let recording_writer = match &observability.recording {
            None => None,
            Some(settings) => {
                let writer = record_to(recording, registry);
                Some(writer.map_err(|error| fault(&settings.keep_bytes, &error))?)
            }
        };
        Ok(Self {
            recording: recording_writer,
            own: errors_writer.worker(),
            access: OpenLog {
                destination: access,
                writer: access_writer.bounded(lines),
            },
            errors: OpenLog {
                destination: errors,
                writer: errors_writer,
            },
            lines,
            level: *error_log.level,
        })
    }

    /// The settings that the open logs depend on, to compare with a new configuration's.
    pub(crate) fn settings(&self) -> LogSettings {
        LogSettings {
            access: self.access.destination.clone(),
            errors: self.errors.destination.clone(),
            is_recording: self.recording.is_some(),
            lines: self.lines,
            level: self.level,
        }
    }

    /// Reopens files that were moved away.
    pub(crate) fn reopen(&self) {
        self.access.writer.reopen();
        self.errors.writer.reopen();
    }

    /// The write ends of both logs for one worker.
    pub(crate) fn worker(&self) -> Logs {
        Logs {
            access: self.access.writer.worker(),
            errors: self.errors.writer.worker(),
            recording: self
                .recording
                .as_ref()
                .map_or_else(WorkerLog::off, LogWriter::worker),
            warnings: self.level >= LogLevel::Warn,
        }
    }

    /// Writes an event of the process to the error log, if its level is enabled. Skipped by an
    /// error log on standard error, where the event is written already.
    pub(crate) fn log_event(&mut self, level: LogLevel, message: &str, fields: &EventFields) {
        if self.level < level || self.errors.destination == Destination::Stderr {
            return;
        }
        self.own.event(&EventRecord {
            level: match level {
                LogLevel::Error => "ERROR",
                LogLevel::Warn => "WARN",
                LogLevel::Info => "INFO",
                LogLevel::Debug => "DEBUG",
                LogLevel::Trace => "TRACE",
            },
            at: unix_now(),
            message,
            repeated: 0,
            fields,
        });
    }

    /// Writes pending lines of both logs, for [`FLUSH_TIME`] in total.
    pub(crate) fn close(self) {
        let Self {
            access,
            errors,
            recording,
            own,
            ..
        } = self;
        drop(own);
        let until = unix_now() + FLUSH_TIME;
        access.writer.finish();
        errors.writer.finish();
        for writer in [access.writer, errors.writer].into_iter().chain(recording) {
            writer.close(until.saturating_sub(unix_now()).min(FLUSH_TIME));
        }
    }
}

fn destinations(observability: &Observability) -> (Destination, Destination) {
    let access = &observability.access_log;
    let access = if *access.enabled {
        destination(&access.path)
    } else {
        Destination::Off
    };
    (access, destination(&observability.error_log.path))
}

fn destination(target: &LogTarget) -> Destination {
    match target {
        LogTarget::Stdout => Destination::Stdout,
        LogTarget::Stderr => Destination::Stderr,
        LogTarget::File(path) => Destination::File(path.clone()),
        LogTarget::SyslogSocket(path) => Destination::SyslogSocket(path.clone()),
        LogTarget::SyslogServer(server) => Destination::SyslogServer(*server),
    }
}

fn start(
    destination: &Destination,
    name: &'static str,
    registry: &Registry,
) -> io::Result<LogWriter> {
    let counters = LogCounters::registered(registry, name);
    LogWriter::start(destination, counters, move |fault| report(name, &fault))
}

fn record_to(ring: &Arc<LineRing>, registry: &Registry) -> io::Result<LogWriter> {
    let counters = LogCounters::registered(registry, "recording");
    let ring = RingWriter::new(Arc::clone(ring));
    LogWriter::to_writer(ring, counters, |fault| report("recording", &fault))
}

fn fault<T>(setting: &Setting<T>, error: &io::Error) -> Diagnostic {
    let place = setting.place().unwrap_or_default();
    let message = format!("a log cannot be opened: {error}");
    Diagnostic::new(DiagnosticCode::UnwritableLog, place, message)
}

fn report(log: &str, fault: &LogError) {
    match fault {
        LogError::Write(error) => report_error(log, error, "cannot write the log"),
        LogError::Reopen(error) => report_error(log, error, "cannot open the log again"),
        LogError::Recovered { lost } => tracing::warn!(log, lost, "the log is written again"),
    }
}

fn report_error(log: &str, error: &io::Error, message: &str) {
    tracing::error!(log, %error, "{message}");
}
