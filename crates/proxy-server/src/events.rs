//! What the process says of itself, as JSON lines on the standard error output: written by a thread of
//! its own, so that neither workers nor signals wait for its reader.

mod layer;
mod repetitions;

use proxy_telemetry::{EventFields, EventLog, EventRecord, LogCounters, LogWriter, Registry};
use repetitions::{Kind, Repetitions, Summary};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The target of events that answer a signal of the operator's: each is written, however often it is
/// repeated.
pub(crate) const ANSWER: &str = "proxy_server::answer";

/// The name of this log in metrics.
const NAME: &str = "events";

/// How long the last lines may take to be written when the process ends.
const FLUSH_TIME: Duration = Duration::from_secs(1);

/// The events of the process. A clone is the same; as a layer of `tracing-subscriber` it takes them from
/// every thread.
///
/// Beyond five of one kind within a few seconds, events are counted and told as
/// one line, `… repeated N times`.
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
type Lock = std::sync::Mutex<State>;

#[derive(Debug)]
struct State {
    repetitions: Repetitions,
    /// None once the log is closed.
    writer: Option<LogWriter>,
}

impl Events {
    /// Events that go to the standard error output.
    ///
    /// # Errors
    /// When there is no such output, or no thread can be started.
    pub fn on_stderr() -> io::Result<Self> {
        // A duplicate of the descriptor: the standard library's handle has a lock, which a write that
        // nothing reads would hold for ever.
        let out: File = io::stderr().as_fd().try_clone_to_owned()?.into();
        let metrics = LogCounters::default();
        let (writer, log) = EventLog::over(out, metrics.clone())?;
        let state = State {
            repetitions: Repetitions::default(),
            writer: Some(writer),
        };
        Ok(Self(Arc::new(Inner {
            log,
            metrics,
            state: Lock::new(state),
        })))
    }

    /// Writes `text`, whatever it is, and the end of its line.
    pub fn text(&self, text: &str) {
        self.0.log.write(format!("{text}\n").into_bytes());
    }

    /// Writes what is still on its way, for as long as a second, and ends.
    pub fn close(&self) {
        self.sum_up(true);
        let writer = self.lock().writer.take();
        if let Some(writer) = writer {
            writer.close(FLUSH_TIME);
        }
    }

    /// Shows in `registry` how many lines were written and lost.
    pub(crate) fn count_into(&self, registry: &Registry) {
        self.0.metrics.register(registry, NAME);
    }

    /// Writes the number of repetitions of each kind of event whose time is over, or of `all` kinds.
    pub(crate) fn sum_up(&self, all: bool) {
        let ended = self.lock().repetitions.take_ended(unix_now(), all);
        for summary in ended {
            self.write(&summary);
        }
    }

    /// Writes an event, unless there were too many of its kind.
    fn say(&self, kind: Kind, fields: EventFields) {
        let at = unix_now();
        let (ended, admitted) = {
            let mut state = self.lock();
            let ended = state.repetitions.take_ended(at, false);
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time since 1970.
#[expect(clippy::disallowed_methods, reason = "events tell when they happened")]
pub(crate) fn unix_now() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}
