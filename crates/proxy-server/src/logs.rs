//! The logs of the process: where they go, and the ends that workers write to.

use proxy_config::{Fault, FaultCode};
use proxy_model::{LogLevel, LogTarget, Observability, Setting};
use proxy_pipeline::Logs;
use proxy_telemetry::{Destination, LogCounters, LogFault, LogWriter, Registry};
use std::io;
use std::time::Duration;

/// How long the last lines may take to be written when the process ends.
const FLUSH_TIME: Duration = Duration::from_secs(2);

/// Both logs, open.
#[derive(Debug)]
pub(crate) struct OpenLogs {
    access: (Destination, LogWriter),
    errors: (Destination, LogWriter),
    lines: u64,
    warnings: bool,
}

impl OpenLogs {
    /// Opens the logs that `observability` names.
    pub(crate) fn open(observability: &Observability, registry: &Registry) -> Result<Self, Fault> {
        let (access_log, error_log) = (&observability.access_log, &observability.error_log);
        let (access, errors) = destinations(observability);
        let lines = u64::from(*access_log.buffer_lines);
        let access_writer = start(&access, "access", registry);
        let access_writer = access_writer.map_err(|error| fault(&access_log.path, &error))?;
        let errors_writer = start(&errors, "error", registry);
        let errors_writer = errors_writer.map_err(|error| fault(&error_log.path, &error))?;
        Ok(Self {
            access: (access, access_writer.bounded(lines)),
            errors: (errors, errors_writer),
            lines,
            warnings: warnings(observability),
        })
    }

    /// Whether `observability` names the same logs.
    pub(crate) fn are_those_of(&self, observability: &Observability) -> bool {
        let (access, errors) = destinations(observability);
        self.access.0 == access
            && self.errors.0 == errors
            && self.lines == u64::from(*observability.access_log.buffer_lines)
            && self.warnings == warnings(observability)
    }

    /// Opens files again that were moved away.
    pub(crate) fn reopen(&self) {
        self.access.1.reopen();
        self.errors.1.reopen();
    }

    /// Ends for one worker.
    pub(crate) fn worker(&self) -> Logs {
        Logs {
            access: self.access.1.worker(),
            errors: self.errors.1.worker(),
            warnings: self.warnings,
        }
    }

    /// Writes what is still on its way.
    pub(crate) fn close(self) {
        for (_, writer) in [self.access, self.errors] {
            writer.close(FLUSH_TIME);
        }
    }
}

fn warnings(observability: &Observability) -> bool {
    *observability.error_log.level >= LogLevel::Warn
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

fn fault(path: &Setting<LogTarget>, error: &io::Error) -> Fault {
    let place = path.place().unwrap_or_default();
    let message = format!("a log cannot be opened: {error}");
    Fault::new(FaultCode::UnwritableLog, place, message)
}

fn report(log: &str, fault: &LogFault) {
    match fault {
        LogFault::Write(error) => tracing::error!(log, %error, "cannot write the log"),
        LogFault::Reopen(error) => tracing::error!(log, %error, "cannot open the log again"),
        LogFault::Recovered { lost } => tracing::warn!(log, lost, "the log is written again"),
    }
}
