//! Periodic work of a replica: rollouts, webhooks, managed certificates, housekeeping, and reloads
//! of keys and certificates.

use crate::key_file::{KeyFile, Stamp};
use crate::tls::Tls;
use control_app::{App, DeliveryTurns, Error, metric};
use control_wire::{ManagedCertificateId, WebhookId};
use metrics::{counter, gauge};
use metrics_exporter_prometheus::PrometheusHandle;
use proxy_telemetry::Process;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};
use uuid::Uuid;

/// Interval of looking for changes by other replicas, and for a changed key file.
const RELAY_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of rolling nodes with a revoked bundle back.
const RECALL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of advancing rollouts.
const ROLLOUT_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of drift detection.
const DRIFT_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of measuring the stored data.
const STORAGE_INTERVAL: Duration = Duration::from_mins(5);
/// Interval of looking for webhook events to deliver.
const WEBHOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of detecting silent nodes. Each detection reads every webhook that subscribes to this
/// event.
const SILENCE_INTERVAL: Duration = Duration::from_secs(5);
/// After the start of the process, no node counts as silent for this number of heartbeat intervals:
/// earlier heartbeats are not known.
const SILENCE_INTERVALS: u32 = 4;
/// Interval of writing counts from memory to the database.
const COUNTS_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of looking for certificates to obtain.
const ISSUANCE_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of certificates that a replica obtains at the same time.
const MAX_ISSUANCES: usize = 20;
const HOUSEKEEPING_INTERVAL: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Background {
    pub(crate) app: Arc<App>,
    pub(crate) metrics: PrometheusHandle,
    pub(crate) key_file: KeyFile,
    pub(crate) tls: Option<Arc<Tls>>,
}

impl Background {
    /// Runs until it is aborted. A failed round is simply repeated, because each round starts from
    /// the state in the database.
    pub(crate) async fn run(self) {
        let replica = Uuid::now_v7();
        tokio::join!(
            self.maintain(),
            self.clean(replica),
            self.schedule(replica),
            self.deliver(replica),
            self.issue()
        );
    }

    /// Advances rollouts and detects drift. Runs separately, because a large batch takes long.
    async fn schedule(&self, replica: Uuid) {
        self.app.note_outage();
        let mut rollouts = rounds(ROLLOUT_INTERVAL);
        let mut drifts = rounds(DRIFT_INTERVAL);
        loop {
            let (task, done) = tokio::select! {
                _ = rollouts.tick() => {
                    let done = self.app.advance_rollouts(replica, self.app.now()).await;
                    ("rollouts", done)
                }
                _ = drifts.tick() => {
                    ("drift", self.app.watch_drift(replica, self.app.now()).await)
                }
            };
            if let Err(error) = done {
                failed(task, &error);
            }
        }
    }

    /// Delivers events to webhooks. Runs separately, because receivers may be slow.
    #[expect(
        clippy::disallowed_methods,
        reason = "the time since the start of this process, independent of the wall clock"
    )]
    async fn deliver(&self, replica: Uuid) {
        let heartbeats = Duration::from_secs(self.app.heartbeat_interval.secs().into());
        let quiet_until = Instant::now() + heartbeats * SILENCE_INTERVALS;
        let mut next_silence = quiet_until;
        let mut queues = rounds(WEBHOOK_INTERVAL);
        let (mut sending, mut receivers) = (JoinSet::new(), Vec::<(Id, WebhookId)>::new());
        let mut turns = DeliveryTurns::default();
        loop {
            tokio::select! {
                _ = queues.tick() => {}
                Some(ended) = sending.join_next_with_id() => {
                    let (id, done) = match ended {
                        Ok((id, done)) => (id, done),
                        Err(error) => (error.id(), Ok(())),
                    };
                    for (_, webhook) in receivers.extract_if(.., |(own, _)| *own == id) {
                        turns.leave(webhook);
                    }
                    if let Err(error) = done {
                        failed("webhooks", &error);
                    }
                    continue;
                }
            }
            let now = self.app.now();
            let silence = next_silence <= Instant::now();
            if silence {
                next_silence = Instant::now() + SILENCE_INTERVAL;
            }
            let queued = self.app.queue_webhooks(replica, now, silence).await;
            let due = match queued {
                Ok(()) => self.app.due_webhooks(now).await,
                Err(error) => Err(error),
            };
            let due = due.unwrap_or_else(|error| {
                failed("webhooks", &error);
                Vec::new()
            });
            for webhook in turns.take(&due) {
                let app = Arc::clone(&self.app);
                let task = sending.spawn(async move { app.send_webhook(webhook).await });
                receivers.push((task.id(), webhook));
            }
        }
    }

    /// Obtains certificates, several at the same time. Runs separately, because authorities are
    /// slow. Leases in the database prevent two replicas from obtaining one for the same host.
    async fn issue(&self) {
        let mut rounds_due = rounds(ISSUANCE_INTERVAL);
        let mut attempts = JoinSet::new();
        let mut running = Vec::<(Id, ManagedCertificateId)>::new();
        loop {
            tokio::select! {
                _ = rounds_due.tick() => {}
                Some(ended) = attempts.join_next_with_id() => {
                    let (id, done) = match ended {
                        Ok((id, done)) => (id, done),
                        Err(error) => (error.id(), Ok(())),
                    };
                    running.retain(|(own, _)| *own != id);
                    if let Err(error) = done {
                        failed("certificates", &error);
                    }
                    continue;
                }
            }
            let due = self.app.due_issuances(self.app.now()).await;
            let due = due.unwrap_or_else(|error| {
                failed("certificates", &error);
                Vec::new()
            });
            for certificate in due {
                let is_running = running.iter().any(|(_, own)| *own == certificate);
                if is_running || MAX_ISSUANCES <= running.len() {
                    continue;
                }
                let app = Arc::clone(&self.app);
                let task = attempts.spawn(async move { app.issue_certificate(certificate).await });
                running.push((task.id(), certificate));
            }
        }
    }

    /// Relays changes by other replicas, recalls bundles, and reloads files that have changed or on
    /// SIGHUP. Runs apart from [`Self::clean`]: `controld key` relies on a changed key file being read
    /// within seconds.
    async fn maintain(&self) {
        let mut relays = rounds(RELAY_INTERVAL);
        let mut recalls = rounds(RECALL_INTERVAL);
        let mut reloads = signal(SignalKind::hangup()).ok();
        let mut known = self.key_file.stamp();
        self.measure_certificate();
        loop {
            let round = tokio::select! {
                _ = relays.tick() => {
                    self.metrics.run_upkeep();
                    measure_process();
                    known = self.take_keys(known).await;
                    ("relay", self.app.relay().await)
                }
                _ = recalls.tick() => {
                    let recalled = self.app.recall_bundles(self.app.now()).await;
                    ("recall", recalled.map(drop))
                }
                () = next(&mut reloads) => {
                    self.reload();
                    known = self.take_keys(None).await;
                    continue;
                }
            };
            if let (task, Err(error)) = round {
                failed(task, &error);
            }
        }
    }

    /// Writes counts, and deletes or archives what has ended. The object store may be slow.
    async fn clean(&self, replica: Uuid) {
        let mut counts = rounds(COUNTS_INTERVAL);
        let mut cleanings = rounds(HOUSEKEEPING_INTERVAL);
        let mut sweeps = rounds(HOUSEKEEPING_INTERVAL);
        let mut archives = rounds(HOUSEKEEPING_INTERVAL);
        let mut measurements = rounds(STORAGE_INTERVAL);
        loop {
            let round = tokio::select! {
                _ = counts.tick() => self.write_counts().await,
                _ = cleanings.tick() => {
                    let now = self.app.now();
                    if let Some(tls) = &self.tls {
                        tls.rotate_tickets(now.into());
                    }
                    let cleaned = self.app.clean_up(replica, now).await.map(drop);
                    ("housekeeping", cleaned)
                }
                _ = sweeps.tick() => {
                    let swept = self.app.sweep_archives(replica, self.app.now()).await;
                    ("archives", swept.map(drop))
                }
                _ = archives.tick() => {
                    let archived = self.app.archive_audit(replica, self.app.now()).await;
                    ("audit", archived.map(drop))
                }
                _ = measurements.tick() => {
                    ("storage", self.app.measure_storage().await)
                }
            };
            if let (task, Err(error)) = round {
                failed(task, &error);
            }
        }
    }

    /// Writes the counts in memory: refused sign-ins, then traffic. Stops at the first error; the
    /// name identifies the last part tried.
    async fn write_counts(&self) -> (&'static str, Result<(), Error>) {
        let now = self.app.now();
        let refusals = self.app.write_folded_refusals(now).await;
        if refusals.is_err() {
            return ("refusals", refusals);
        }
        ("traffic", self.app.write_traffic(now).await)
    }

    /// Reads the key file if it has changed since `known`: another process may have added keys. A
    /// file without a key that secrets need is not used, as at the start.
    /// Returns the stamp of the version read, even if it is unusable, so that an error is logged
    /// once.
    async fn take_keys(&self, known: Option<Stamp>) -> Option<Stamp> {
        let stamp = self.key_file.stamp();
        if stamp == known || stamp.is_none() {
            return known;
        }
        // Without the database, the file is read in the next round.
        let Ok(used) = self.app.master_keys_in_use().await else {
            return known;
        };
        let checked = self.key_file.check(&used);
        match checked.and_then(|()| self.key_file.read()) {
            Ok(keys) => {
                tracing::info!(current = keys.current(), "the key file was read");
                self.app.replace_master_keys(keys);
            }
            Err(error) => {
                tracing::error!(%error, "the key file cannot be used; the keys stay");
            }
        }
        stamp
    }

    fn reload(&self) {
        let Some(tls) = &self.tls else { return };
        match tls.reload(self.app.now().into()) {
            Ok(()) => tracing::info!("the certificate was read"),
            Err(error) => {
                tracing::error!(error, "the certificate cannot be used; the old one stays");
            }
        }
        self.measure_certificate();
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a gauge is a float; seconds fit"
    )]
    fn measure_certificate(&self) {
        let end = self.tls.as_ref().and_then(|tls| tls.not_after());
        if let Some(since) = end.and_then(|end| end.duration_since(UNIX_EPOCH).ok()) {
            gauge!(metric::TLS_NOT_AFTER).set(since.as_secs() as f64);
        }
    }
}

/// Sets the gauges of memory, processor time and open files, unless the system does not report
/// them.
#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; bytes and descriptors fit"
)]
fn measure_process() {
    let Process {
        resident_bytes,
        cpu,
        open_fds,
    } = Process::read();
    if let Some(cpu) = cpu {
        gauge!(metric::PROCESS_CPU).set(cpu.as_secs_f64());
    }
    if let Some(bytes) = resident_bytes {
        gauge!(metric::PROCESS_MEMORY).set(bytes as f64);
    }
    if let Some(open) = open_fds {
        gauge!(metric::PROCESS_FDS).set(open as f64);
    }
}

fn failed(task: &'static str, error: &Error) {
    tracing::error!(task, %error, "background work failed");
    counter!(metric::BACKGROUND_FAILURES, "task" => task).increment(1);
}

/// Creates a timer that postpones further ticks after a missed one, instead of catching up.
fn rounds(every: Duration) -> Interval {
    let mut rounds = interval(every);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    rounds
}

/// Waits for the signal; forever if the handler could not be installed.
async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
