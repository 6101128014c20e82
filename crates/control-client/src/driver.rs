//! Executes the actions of [`Machine`]: one action, one outcome, in a loop.

mod altered_files;
mod certificates;
mod challenges;
mod events;
mod jitter;
mod liveness;

use crate::bundle::{Bundle, Certificates, OwnVersions, PartialFetch, UnpackedFiles};
use crate::channel::{self, Channel, ChannelError, Desired};
use crate::error::ClientError;
use crate::event::{Event, EventKind, RefusalReason};
use crate::host::{Host, Measured, Observation, Started};
use crate::machine::{Action, Machine, Outcome, Served};
use crate::sealed_certificates::SealedCertificates;
use crate::settings::Settings;
use crate::state::{Identity, PersistedState};
use crate::storage::{Storage, StoredState};
use control_wire::{
    Confirmation, Health, HeartbeatRequest, HttpChallenge, InstanceId, NodeEvent, NodeStatus,
    RegisterRequest, Traffic,
};
use jiff::Timestamp;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;
use zeroize::Zeroizing;

/// Heartbeat interval before the first response.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of diagnostics in a heartbeat.
const MAX_DIAGNOSTICS: usize = 100;
/// Maximum length of a node's name in a registration; longer names are truncated.
const MAX_NAME_CHARS: usize = 100;

/// Client of the control plane, for one node.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    channel: Channel,
    storage: Storage,
    machine: Machine,
    /// Folder of the bundle being activated.
    folder: PathBuf,
    /// Folders of the current and the previous bundle.
    in_use: Vec<PathBuf>,
    /// The active bundle.
    current: Option<Started>,
    /// Previous bundle, which the node reverts to from a trial.
    good: Option<Started>,
    /// Set while the active bundle is on trial and not confirmed.
    is_on_trial: bool,
    /// The files of the active bundle; `None` for a node without a disk.
    active_files: Option<UnpackedFiles>,
    /// Alteration of these files in the last report.
    last_alteration: Option<String>,
    /// The certificates fetched last.
    certificates: Certificates,
    /// Certificates that the active bundle uses.
    served: Certificates,
    /// Certificates of an unfinished fetch.
    partial: Option<PartialFetch>,
    /// `None` for a node without a disk.
    sealed: Option<SealedCertificates>,
    /// Challenges that the node answers.
    challenges: Vec<HttpChallenge>,
    saved_identity: bool,
    saved: Option<PersistedState>,
    last_fault: Option<String>,
    events: Vec<NodeEvent>,
    connected: bool,
    last_contact: Option<Timestamp>,
    refusals: Vec<RefusalReason>,
    /// Identifier of this process, sent with each heartbeat so that a copied data folder is
    /// detected. `None` if the control plane does not support the field.
    instance: Option<InstanceId>,
    /// Heartbeat interval in the last response.
    interval: Duration,
    /// CPU use at the last heartbeat, in percent of one core.
    cpu_percent: f64,
    /// Maximum heartbeat interval; a simulated node may report more often than requested.
    max_interval: Duration,
}

impl Client {
    /// Opens the node's data folder. Returns the bundle to start with, if there is a usable one;
    /// its private keys are loaded from the disk, or awaited for ten seconds.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the folder, its state or the HTTP client cannot be used.
    pub fn open(settings: Settings) -> Result<(Self, Option<Started>), ClientError> {
        let storage = Storage::open(&settings.data_dir)?;
        let http = channel::client(&settings)?;
        let StoredState {
            identity,
            state,
            bundle,
        } = storage.load(versions(&settings));
        let sealed =
            SealedCertificates::new(&settings.data_dir, settings.machine_key_file.as_deref());
        let mut client = Self::new(settings, http, storage, identity, state);
        client.sealed = Some(sealed);
        let started = bundle.and_then(|bundle| client.prepare_start(bundle));
        Ok((client, started))
    }

    /// Creates a node without a disk, with the given HTTP client. It reports at the control plane's
    /// interval, but at least every `max_interval`, so that a simulation takes only seconds.
    pub fn simulated(settings: Settings, http: reqwest::Client, max_interval: Duration) -> Self {
        let state = PersistedState::default();
        Self {
            max_interval,
            ..Self::new(settings, http, Storage::Memory, None, state)
        }
    }

    fn new(
        settings: Settings,
        http: reqwest::Client,
        storage: Storage,
        identity: Option<Identity>,
        state: PersistedState,
    ) -> Self {
        Self {
            channel: Channel::new(http, &settings.url),
            saved_identity: identity.is_some(),
            saved: Some(state.clone()),
            machine: Machine::new(identity, state, versions(&settings)),
            settings,
            storage,
            folder: PathBuf::new(),
            in_use: Vec::new(),
            current: None,
            good: None,
            is_on_trial: false,
            active_files: None,
            last_alteration: None,
            certificates: Certificates::default(),
            served: Certificates::default(),
            partial: None,
            sealed: None,
            challenges: Vec::new(),
            last_fault: None,
            events: Vec::new(),
            connected: false,
            last_contact: None,
            refusals: Vec::new(),
            instance: Some(InstanceId(Uuid::now_v7())),
            interval: DEFAULT_INTERVAL,
            cpu_percent: 0.0,
            max_interval: Duration::MAX,
        }
    }

    /// Records whether the process could start with the bundle of [`Client::open`].
    pub fn started(&mut self, started: &Started, outcome: Result<(), Vec<String>>) {
        if outcome.is_ok() {
            self.in_use.push(started.folder.clone());
            self.current = Some(started.clone());
            self.watch_files(&started.bundle, &started.folder);
            self.served = started.certificates.clone();
            self.keep_served();
        }
        self.machine.started_with(&started.bundle, outcome);
    }

    /// Status for the next heartbeat.
    pub fn status(&self) -> NodeStatus {
        self.machine.status()
    }

    /// Executes actions until it is dropped.
    pub async fn run(mut self, host: &mut impl Host) {
        let clock = Clock::start();
        let mut action = self.machine.begin();
        loop {
            let outcome = self.perform_in_time(&action, host, clock.elapsed()).await;
            action = self.machine.next(outcome, clock.elapsed());
            self.store_state();
            host.observe(self.observation());
        }
    }

    /// Performs an action. In a trial, a request that hangs is aborted when the trial ends.
    async fn perform_in_time(
        &mut self,
        action: &Action,
        host: &mut impl Host,
        now: Duration,
    ) -> Outcome {
        match self.machine.trial_left(now) {
            Some(left) if action.is_request() => {
                let performed = timeout(left, self.perform(action, host)).await;
                performed.unwrap_or(Outcome::Failed(None))
            }
            Some(_) | None => self.perform(action, host).await,
        }
    }

    fn observation(&mut self) -> Observation {
        Observation {
            connected: self.connected,
            last_contact: self.last_contact,
            order: self.machine.order_in_force(),
            refusals: std::mem::take(&mut self.refusals),
        }
    }

    /// Unpacks the last good bundle; if it needs private keys, only if they arrive in time.
    fn prepare_start(&mut self, bundle: Bundle) -> Option<Started> {
        let bundle = Arc::new(bundle);
        let folder = match self.storage.stage(&bundle) {
            Ok(folder) => folder,
            Err(error) => {
                tracing::error!(%error, "the last good bundle cannot be unpacked");
                let reason = format!("cannot unpack the bundle: {error}");
                self.machine.started_with(&bundle, Err(vec![reason]));
                return None;
            }
        };
        let needed = bundle.certificates();
        if !needed.is_empty()
            && !self.open_sealed(&needed)
            && let Err(error) = self.certificates_at_start(&needed)
        {
            tracing::error!(error, "the last good bundle waits for its private keys");
            self.machine.started_with(&bundle, Err(vec![error]));
            return None;
        }
        let certificates = self.certificates.clone();
        Some(Started {
            bundle,
            folder,
            certificates,
        })
    }

    /// Stores changed state. A full disk does not stop the node: it reports the fault, and retries
    /// after the next action.
    fn store_state(&mut self) {
        let mut fault = None;
        if let Some(identity) = self.machine.identity()
            && !self.saved_identity
        {
            match self.storage.save_identity(identity) {
                Ok(()) => self.saved_identity = true,
                Err(error) => fault = Some(error),
            }
        }
        if self.saved.as_ref() != Some(self.machine.state()) {
            match self.storage.save_state(self.machine.state()) {
                Ok(()) => self.saved = Some(self.machine.state().clone()),
                Err(error) => fault = Some(error),
            }
        }
        let fault = fault.map(|error| format!("the node's state cannot be kept: {error}"));
        if let Some(fault) = &fault {
            self.report_fault(fault);
        }
        self.machine.set_storage_fault(fault);
        if !self.machine.is_activating() {
            let saved = self.saved.as_ref();
            let mut in_use = self.in_use.clone();
            in_use.extend(self.good.iter().map(|good| good.folder.clone()));
            self.storage
                .clean(&[saved, Some(self.machine.state())], &in_use);
        }
        self.collect_events();
    }

    async fn perform(&mut self, action: &Action, host: &mut impl Host) -> Outcome {
        let outcome = self.attempt(action, host).await;
        if action.is_request() {
            self.connected = matches!(outcome, Ok(_) | Err(ChannelError::Refused(_)));
            if !matches!(outcome, Err(ChannelError::Failed(..))) {
                self.last_contact = Some(Timestamp::now());
            }
        }
        match outcome {
            Ok(outcome) => {
                if matches!(
                    outcome,
                    Outcome::Reported(_) | Outcome::Confirmed(_) | Outcome::Held(_)
                ) {
                    self.last_fault = None;
                }
                if matches!(outcome, Outcome::Confirmed(_)) {
                    self.is_on_trial = false;
                    self.keep_served();
                }
                outcome
            }
            Err(ChannelError::Unauthorized) => {
                self.report_fault(action.unauthorized());
                Outcome::Unauthorized
            }
            Err(ChannelError::Refused(why)) => {
                self.report_fault(&why);
                match action {
                    Action::Report(_) | Action::Fetch(_) | Action::FetchCertificates(_) => {
                        Outcome::Refused(why)
                    }
                    Action::Enrol
                    | Action::ExchangeToken
                    | Action::FetchKeys(_)
                    | Action::Poll { .. }
                    | Action::Stage(_)
                    | Action::Activate(_)
                    | Action::TryOut(_)
                    | Action::Revert
                    | Action::Renew
                    | Action::Wait(_) => Outcome::Failed(None),
                }
            }
            Err(ChannelError::Failed(why, wait)) => {
                self.report_fault(&why);
                Outcome::Failed(wait)
            }
        }
    }

    async fn attempt(
        &mut self,
        action: &Action,
        host: &mut impl Host,
    ) -> Result<Outcome, ChannelError> {
        match action {
            Action::Wait(wait) => {
                sleep(jitter::jittered_wait(*wait)).await;
                return Ok(Outcome::Waited);
            }
            Action::Enrol => return self.enrol().await,
            Action::FetchKeys(org) => return Ok(Outcome::Keys(self.channel.keys(*org).await?)),
            Action::Stage(bundle) => return Ok(self.stage(bundle)),
            Action::Activate(bundle) => return Ok(self.activate(bundle, host, false).await),
            Action::TryOut(bundle) => return Ok(self.activate(bundle, host, true).await),
            Action::Revert => return Ok(self.revert(host).await),
            Action::Renew => return Ok(self.renew(host).await),
            Action::ExchangeToken
            | Action::Report(_)
            | Action::Poll { .. }
            | Action::Fetch(_)
            | Action::FetchCertificates(_) => {}
        }
        let Some(own) = self.machine.identity().cloned() else {
            return Ok(Outcome::Failed(None));
        };
        match action {
            Action::ExchangeToken => {
                self.channel.exchange_token(&own).await?;
                Ok(Outcome::TokenIssued)
            }
            Action::Report(status) => self.report(&own, status, host.measure()).await,
            Action::Poll { known, wait } => self.poll(&own, known, *wait, host).await,
            Action::Fetch(order) => {
                let archive = match self.storage.archive(&order.digest) {
                    Some(archive) => archive,
                    None => self.channel.archive(&own, order).await?,
                };
                Ok(Outcome::Fetched(archive.into()))
            }
            Action::FetchCertificates(needed) => {
                self.fetch_certificates(&own, needed).await?;
                Ok(Outcome::CertificatesFetched)
            }
            Action::Enrol
            | Action::FetchKeys(_)
            | Action::Stage(_)
            | Action::Activate(_)
            | Action::TryOut(_)
            | Action::Revert
            | Action::Renew
            | Action::Wait(_) => Ok(Outcome::Failed(None)),
        }
    }

    /// Enrols the node. The token is used only if the identity can be stored, because it may be
    /// valid for a single node.
    async fn enrol(&mut self) -> Result<Outcome, ChannelError> {
        let failed = |why: String| ChannelError::Failed(why, None);
        let Settings {
            project,
            enrolment_token_file,
            name,
            labels,
            url: _, // The channel has it, the storage has the folder, its TLS the roots.
            data_dir: _,
            machine_key_file: _,
            ca_file: _,
            version: _,
            schema_version: _,
        } = &self.settings;
        let (Some(project), Some(file)) = (project, enrolment_token_file) else {
            let why = "the node has no identity, and no project and enrolment token to get one";
            return Err(failed(why.to_owned()));
        };
        let token = fs::read_to_string(file).map(Zeroizing::new);
        let token = token.map_err(|error| failed(format!("{}: {error}", file.display())))?;
        let written = self.storage.save_state(self.machine.state());
        written.map_err(|error| failed(format!("the node's state cannot be kept: {error}")))?;
        let body = RegisterRequest {
            name: name.chars().take(MAX_NAME_CHARS).collect(),
            labels: labels.clone(),
        };
        let response = self.channel.enrol(project, token.trim(), &body).await?;
        tracing::info!(node = %response.node_id, "enrolled at the control plane");
        Ok(Outcome::Enrolled(response))
    }

    async fn report(
        &mut self,
        own: &Identity,
        status: &NodeStatus,
        measured: Measured,
    ) -> Result<Outcome, ChannelError> {
        let Measured {
            cpu_percent,
            traffic,
        } = measured;
        if let Some(traffic) = &traffic {
            self.machine.note_served(served(traffic));
        }
        let mut status = status.clone();
        self.compare_files(&mut status);
        let mut body = HeartbeatRequest {
            health: Health { cpu_percent },
            version: Some(self.settings.version.to_owned()),
            status: Some(status),
            traffic,
            instance: self.instance,
        };
        let mut answer = self.channel.heartbeat(own, &body).await;
        if body.instance.is_some() && matches!(answer, Err(ChannelError::Refused(_))) {
            self.instance = None;
            body.instance = None;
            answer = self.channel.heartbeat(own, &body).await;
        }
        let answer = answer?;
        self.send_events(own).await;
        let interval = Duration::from_secs(answer.heartbeat_interval_secs);
        let interval = jitter::jittered_interval(interval.min(self.max_interval));
        (self.interval, self.cpu_percent) = (interval, cpu_percent);
        let is_of_trial = self.machine.order_on_trial() == Some(answer.order);
        Ok(match answer.confirmation {
            Confirmation::Confirmed if is_of_trial => Outcome::Confirmed(interval),
            Confirmation::Held if is_of_trial => Outcome::Held(interval),
            Confirmation::Confirmed | Confirmation::Held | Confirmation::Pending => {
                Outcome::Reported(interval)
            }
        })
    }

    async fn poll(
        &mut self,
        own: &Identity,
        known: &str,
        wait: Duration,
        host: &mut impl Host,
    ) -> Result<Outcome, ChannelError> {
        let clock = Clock::start();
        let desired = self.channel.desired(own, known, wait).await?;
        match &desired {
            Desired::Unchanged => {}
            Desired::Order(offer) => {
                self.answer_challenges(own, &offer.challenges, host).await?;
            }
            Desired::NoOrder(_) => self.answer_challenges(own, &[], host).await?,
        }
        Ok(match desired {
            Desired::Unchanged => Outcome::Unchanged(clock.elapsed()),
            Desired::Order(offer) => Outcome::Assigned(offer),
            Desired::NoOrder(tag) => Outcome::Unassigned(tag),
        })
    }

    fn stage(&mut self, bundle: &Bundle) -> Outcome {
        match self.storage.stage(bundle) {
            Ok(folder) => {
                self.folder = folder;
                Outcome::Staged
            }
            Err(error) => Outcome::Rejected(vec![format!("cannot keep the bundle: {error}")]),
        }
    }

    async fn activate(
        &mut self,
        bundle: &Arc<Bundle>,
        host: &mut impl Host,
        with_live_tests: bool,
    ) -> Outcome {
        if self.machine.order_on_trial().is_none() {
            self.good.clone_from(&self.current);
        }
        if bundle.certificates().is_empty() {
            self.certificates = Certificates::default();
        }
        let started = Started {
            bundle: Arc::clone(bundle),
            folder: self.folder.clone(),
            certificates: self.certificates.clone(),
        };
        let activated = if with_live_tests {
            self.with_heartbeats(host.try_out(started.clone())).await
        } else {
            let activated = self.with_heartbeats(host.activate(started.clone())).await;
            activated.map(|()| Vec::new())
        };
        if let Ok(known) = &activated {
            for message in known {
                self.record_event(Event {
                    kind: EventKind::LiveTestFailing,
                    message: format!("{message}; it did before the bundle as well"),
                });
            }
            self.current = Some(started);
            self.is_on_trial = with_live_tests;
            self.served = self.certificates.clone();
            self.keep_served();
            self.in_use.push(self.folder.clone());
            let folder = self.folder.clone();
            self.watch_files(bundle, &folder);
            // Requests in flight may still read the previous folder.
            let surplus = self.in_use.len().saturating_sub(2);
            self.in_use.drain(..surplus);
        }
        activated.map_or_else(Outcome::Rejected, |_| Outcome::Activated)
    }

    async fn revert(&mut self, host: &mut impl Host) -> Outcome {
        let Some(good) = self.good.clone() else {
            return Outcome::Rejected(vec!["the former bundle is missing".to_owned()]);
        };
        let activated = host.activate(good.clone()).await;
        if activated.is_ok() {
            self.is_on_trial = false;
            self.served = good.certificates.clone();
            self.keep_served();
            self.in_use.push(good.folder.clone());
            self.watch_files(&good.bundle, &good.folder);
            let surplus = self.in_use.len().saturating_sub(2);
            self.in_use.drain(..surplus);
            self.current = Some(good);
        }
        activated.map_or_else(Outcome::Rejected, |()| Outcome::Activated)
    }

    /// Reports a fault once, until the next report succeeds.
    fn report_fault(&mut self, fault: &str) {
        if self.last_fault.as_deref() != Some(fault) {
            tracing::warn!(fault, "control plane");
            self.last_fault = Some(fault.to_owned());
        }
    }
}

struct Clock(Instant);

#[expect(
    clippy::disallowed_methods,
    reason = "the driver is where time comes from"
)]
impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

fn versions(settings: &Settings) -> OwnVersions {
    OwnVersions {
        schema: settings.schema_version,
        proxy: settings.version.parse().unwrap_or_default(),
    }
}

fn served(traffic: &Traffic) -> Served {
    let routes = traffic.routes.values();
    routes.fold(Served::default(), |sum, route| Served {
        requests: sum.requests.saturating_add(route.requests),
        errors: sum.errors.saturating_add(route.errors),
    })
}

fn fault_text(error: ChannelError) -> String {
    match error {
        ChannelError::Unauthorized => "the credential is not accepted".to_owned(),
        ChannelError::Refused(why) | ChannelError::Failed(why, _) => why,
    }
}
