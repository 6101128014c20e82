//! Events of the process, as JSON lines on standard error, written by a separate thread so that
//! neither workers nor signals wait for the reader.

mod layer;
mod repetitions;

use proxy_telemetry::{
    EventFields, EventLog, EventRecord, LogCounters, LogWriter, Registry, Windows,
};
use repetitions::{EventKind, Repetitions, Summary};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The `tracing` target of events that respond to an operator's signal: each is written, also if
/// repeated.
pub(crate) const ANSWER: &str = "proxy_server::answer";

/// The name of this log in metrics.
const NAME: &str = "events";

/// Maximum time for writing the last lines at exit.
const FLUSH_TIME: Duration = Duration::from_secs(1);

/// The events of the process. Clones write to the same log; as a layer of `tracing-subscriber` it
/// takes events from every thread.
///
/// After five events of one kind within a few seconds, further ones are counted and reported as one
/// line, `… repeated N times`.
#[derive(Clone, Debug)]
pub struct Events(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    log: EventLog,
    metrics: LogCounters,
    state: Lock,
}

#[expect(
    clippy::disallowed_types,
    reason = "taken once per event, which no request makes, and never held while anything is written"
)]
type Lock = std::sync::Mutex<EventLogState>;

#[derive(Debug)]
struct EventLogState {
    repetitions: Repetitions,
    /// `None` once the log is closed.
    writer: Option<LogWriter>,
}

impl Events {
    /// Events to standard error.
    ///
    /// # Errors
    /// Standard error is closed, or the thread cannot be started.
    pub fn on_stderr() -> io::Result<Self> {
        // A duplicate of the descriptor, because the standard library's handle has a lock, which a
        // blocked write would hold indefinitely.
        let out: File = io::stderr().as_fd().try_clone_to_owned()?.into();
        let metrics = LogCounters::default();
        let (writer, log) = EventLog::to_writer(out, metrics.clone())?;
        let state = EventLogState {
            repetitions: Repetitions::default(),
            writer: Some(writer),
        };
        Ok(Self(Arc::new(Inner {
            log,
            metrics,
            state: Lock::new(state),
        })))
    }

    /// Writes `text` and a line end.
    pub fn text(&self, text: &str) {
        self.0.log.write(format!("{text}\n").into_bytes());
    }

    /// Writes pending lines, for at most a second, and closes the log.
    pub fn close(&self) {
        self.sum_up(Windows::All);
        let writer = self.lock().writer.take();
        if let Some(writer) = writer {
            writer.close(FLUSH_TIME);
        }
    }

    /// Exposes in `registry` the number of lines written and lost.
    pub(crate) fn count_into(&self, registry: &Registry) {
        self.0.metrics.register(registry, NAME);
    }

    /// Writes a summary for each kind of event with suppressed repetitions in `windows`.
    pub(crate) fn sum_up(&self, windows: Windows) {
        let ended = self.lock().repetitions.take(unix_now(), windows);
        for summary in ended {
            self.write(&summary);
        }
    }

    /// Writes an event, unless there were too many of its kind.
    fn log(&self, kind: EventKind, fields: EventFields) {
        let at = unix_now();
        let (ended, admitted) = {
            let mut state = self.lock();
            let ended = state.repetitions.take(at, Windows::Ended);
            (ended, state.repetitions.admit(&kind, &fields, at))
        };
        for summary in ended {
            self.write(&summary);
        }
        if admitted {
            self.write(&Summary {
                kind,
                fields,
                repeated: 0,
            });
        }
    }

    fn write(&self, summary: &Summary) {
        let Summary {
            kind,
            fields,
            repeated,
        } = summary;
        let record = EventRecord {
            level: kind.level,
            at: unix_now(),
            message: &kind.message,
            repeated: *repeated,
            fields,
        };
        self.0.log.write(record.line());
    }

    fn lock(&self) -> MutexGuard<'_, EventLogState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time since 1970.
#[expect(clippy::disallowed_methods, reason = "events have the time of day")]
pub(crate) fn unix_now() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}
