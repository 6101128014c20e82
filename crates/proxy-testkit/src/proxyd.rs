//! A running proxyd: requests, signals and measurements.

pub(crate) mod config;
pub(crate) mod configuration;
pub(crate) mod launch;
pub(crate) mod log;
pub(crate) mod process;

use crate::client::RawClient;
use crate::deadline::EVENT_TIMEOUT;
use crate::proxyd::configuration::with_admin;
use crate::proxyd::log::{Log, Record};
use crate::proxyd::process::{Process, adopt_orphans};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;
use tempfile::TempDir;

/// A running proxyd, with the processes that handed over to it; killed when dropped.
#[derive(Debug)]
pub struct Proxyd {
    process: Process,
    /// Processes that handed over, the last one last.
    former: Vec<Process>,
    folder: TempDir,
    config: PathBuf,
    addresses: Vec<SocketAddr>,
    stdout: Log,
    stderr: Log,
}

/// The result of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reload {
    /// The new configuration is active.
    Applied,
    /// The old configuration is still active; the text is the error.
    Refused(String),
}

/// The result of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upgrade {
    /// A new process has taken over.
    Done,
    /// The old process still serves; the text is the error.
    Failed(String),
}

impl Proxyd {
    pub(crate) fn new(
        child: Child,
        folder: TempDir,
        config: PathBuf,
        (stdout, stderr): (Log, Log),
    ) -> Self {
        Self {
            process: Process::from(child),
            former: Vec::new(),
            folder,
            config,
            addresses: Vec::new(),
            stdout,
            stderr,
        }
    }

    pub(crate) fn reading(mut self) -> Self {
        self.read_stdout();
        self
    }

    /// Begins to read standard output, if that was held back.
    pub fn read_stdout(&mut self) {
        if let Some(output) = self.process.take_stdout() {
            self.stdout.follow(output);
        }
    }

    #[track_caller]
    pub(crate) fn wait_for_listeners(&mut self, count: usize) {
        let printed = self
            .stderr
            .several(count, |record| record.text("message") == "listening");
        self.addresses = printed
            .iter()
            .filter_map(|record| record.text("address").parse().ok())
            .collect();
        let listens = printed.len() >= count;
        assert!(
            listens,
            "it does not listen; it said:\n{}",
            self.stderr.lines().join("\n")
        );
    }

    /// The address of the first listener.
    #[must_use]
    #[track_caller]
    pub fn address(&self) -> SocketAddr {
        *self.addresses.first().expect("it listens somewhere")
    }

    /// The address of each listener, in the configuration's order, as logged at the start.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The address of the admin interface. Waits until it listens.
    #[must_use]
    #[track_caller]
    pub fn admin_address(&self) -> SocketAddr {
        let printed = self
            .stderr
            .find(0, |record| record.text("message") == "admin interface");
        let address = printed.text("address").parse();
        address.expect("the admin interface prints its address")
    }

    /// A connection to the first listener.
    #[must_use]
    #[track_caller]
    pub fn connect(&self) -> RawClient {
        RawClient::connect(self.address())
    }

    /// Standard output: access records, error records, limit records.
    #[must_use]
    pub fn stdout(&self) -> &Log {
        &self.stdout
    }

    /// Standard error: events of the process.
    #[must_use]
    pub fn stderr(&self) -> &Log {
        &self.stderr
    }

    /// Waits for the access record of the request with this correlation ID.
    #[must_use]
    #[track_caller]
    pub fn access_record(&self, correlation_id: &str) -> Record {
        self.stdout.access_record(correlation_id)
    }

    /// Waits for the error record of the request with this correlation ID.
    #[must_use]
    #[track_caller]
    pub fn error_record(&self, correlation_id: &str) -> Record {
        self.stdout.error_record(correlation_id)
    }

    /// Waits for the limit record of the request with this correlation ID.
    #[must_use]
    #[track_caller]
    pub fn limit_record(&self, correlation_id: &str) -> Record {
        self.stdout.limit_record(correlation_id)
    }

    /// The folder of the configuration.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Path of the configuration.
    #[must_use]
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// Replaces the configuration, signals the process, and waits for the result.
    #[track_caller]
    pub fn reload(&self, kdl: &str) -> Reload {
        fs::write(&self.config, with_admin(kdl)).expect("the file is writable");
        let since = self.stderr.len();
        self.signal(Signal::HUP);
        let printed = self.stderr.find(since, |record| {
            let message = record.text("message");
            message.starts_with("configuration reloaded")
                || message.starts_with("configuration not reloaded")
        });
        match printed.text("message") {
            "configuration reloaded" => Reload::Applied,
            _ => Reload::Refused(printed.text("faults").to_owned()),
        }
    }

    /// Signals it to hand over to a new process of the same binary, and waits for the result.
    /// Afterwards this value represents the new process.
    #[track_caller]
    pub fn upgrade(&mut self) -> Upgrade {
        let since = self.stderr.len();
        adopt_orphans();
        self.signal(Signal::USR2);
        let printed = self.stderr.find(since, |record| {
            let message = record.text("message");
            message == "handed over" || message.starts_with("not handed over")
        });
        let Some(id) = printed.number("id") else {
            return Upgrade::Failed(printed.text("reason").to_owned());
        };
        let successor = Process::adopted(id);
        let former = std::mem::replace(&mut self.process, successor);
        self.former.push(former);
        Upgrade::Done
    }

    /// Waits until every process that handed over has ended.
    #[track_caller]
    pub fn wait_for_former(&mut self) {
        for mut former in self.former.drain(..) {
            assert!(former.has_ended_within(EVENT_TIMEOUT), "it does not end");
            assert!(former.wait().success(), "it ends well");
        }
    }

    /// Sends a signal to the process that handed over last.
    #[track_caller]
    pub fn signal_former(&self, signal: Signal) {
        let former = self.former.last().expect("the process was upgraded before");
        former.signal(signal);
    }

    /// Waits up to `time` for all processes that handed over to end; whether they have ended.
    #[must_use]
    pub fn former_have_ended_within(&self, time: Duration) -> bool {
        let mut all = self.former.iter();
        all.all(|former| former.has_ended_within(time))
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends a signal. Has no effect on a process that has ended and was not waited for.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Sends SIGTERM: finish requests in flight and exit.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Like [`Self::terminate`]; waits until draining is logged.
    #[track_caller]
    pub fn drain(&self) {
        self.terminate();
        drop(
            self.stderr
                .find(0, |record| record.text("message") == "draining"),
        );
    }

    /// Sends the signal to exit at once.
    pub fn quit(&self) {
        self.signal(Signal::QUIT);
    }

    /// Waits for its exit.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        assert!(self.has_ended_within(EVENT_TIMEOUT), "it does not end");
        self.process.wait()
    }

    /// Waits up to `time` for its exit; returns true if it has exited.
    #[must_use]
    pub fn has_ended_within(&self, time: Duration) -> bool {
        self.process.has_ended_within(time)
    }

    /// Resident memory, in bytes.
    #[must_use]
    pub fn rss_bytes(&self) -> u64 {
        self.process.memory("VmRSS:")
    }

    /// Peak of the resident memory, in bytes.
    #[must_use]
    pub fn peak_rss_bytes(&self) -> u64 {
        self.process.memory("VmHWM:")
    }

    /// Number of open file descriptors.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.process.open_files()
    }

    /// Number of open file descriptors by kind, from `/proc`: sockets, pipes, timers, files.
    #[must_use]
    pub fn files_by_kind(&self) -> BTreeMap<String, usize> {
        self.process.files_by_kind()
    }

    /// Sets its limit of open files to `most`.
    pub fn limit_open_files(&self, most: u64) {
        self.process.limit_open_files(most);
    }
}
