//! State machine of a node: enrol, get a token, fetch keys, report, poll, fetch, verify, stage,
//! activate.
//!
//! Each outcome leads to one action. The driver executes it; the machine uses neither network nor
//! disk nor clock.

mod action;
mod bounds;
mod order;
mod phase;
mod published_keys;
mod renewal;
mod revert;
mod served_certificates;
mod trial;
mod verdict;

use crate::bundle::{Bundle, OwnVersions};
use crate::event::{Event, EventKind, RefusalReason};
use crate::state::{Identity, PersistedState};
pub use action::Action;
use control_wire::{HttpChallenge, JsonWebKeySet, NodeStatus, Order, RegisterResponse};
pub(crate) use phase::Phase;
use published_keys::PublishedKeys;
use served_certificates::ServedCertificates;
use std::sync::Arc;
use std::time::Duration;
pub use trial::Served;
use trial::Trial;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_mins(1);
/// Age at which a token is renewed: half of its lifetime. Counted from the response, so that a
/// wrong clock does no harm.
const TOKEN_RENEWAL: Duration = Duration::from_hours(6);
const FIRST_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum duration of a long poll; the control plane permits no more.
const MAX_POLL: Duration = Duration::from_secs(30);
const MIN_INTERVAL: Duration = Duration::from_secs(1);
const MAX_EVENTS: usize = 100;

/// Outcome of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The node is enrolled.
    Enrolled(RegisterResponse),
    /// A token was issued.
    TokenIssued,
    /// The published keys were fetched.
    Keys(JsonWebKeySet),
    /// The heartbeat was accepted; the next one is due after this time. An order on trial is not
    /// confirmed yet.
    Reported(Duration),
    /// The heartbeat was accepted, and the order on trial is confirmed. The next one is due after
    /// this time.
    Confirmed(Duration),
    /// The heartbeat was accepted, but the rollout of the order on trial is paused. The next one is
    /// due after this time.
    Held(Duration),
    /// There is no newer order; the poll took this long.
    Unchanged(Duration),
    /// There is an order.
    Assigned(Assignment),
    /// There is no order, by a response with this `ETag`; empty without one.
    Unassigned(String),
    /// The archive was fetched; its digest is not verified yet.
    Fetched(Arc<[u8]>),
    /// The control plane refused the request permanently: a retry is pointless.
    Refused(String),
    /// The bundle is stored on the disk.
    Staged,
    /// The certificates were fetched.
    CertificatesFetched,
    /// The bundle is active.
    Activated,
    /// The certificates are served; true if they differ from the previous ones.
    Renewed(bool),
    /// The bundle or the certificates cannot be used; the previous ones stay active.
    Rejected(Vec<String>),
    /// The wait is over.
    Waited,
    /// The credential was not accepted.
    Unauthorized,
    /// The control plane is unreachable or slow, or its response is invalid; with its
    /// `Retry-After`, if any.
    Failed(Option<Duration>),
}

/// A response with an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Order, not verified yet.
    pub order: Order,
    /// Number of certificate renewals in the project.
    pub renewals: u64,
    /// Time limit for the confirmation of the order; `None` without a trial.
    pub trial: Option<Duration>,
    /// Challenges for the node, which the driver answers.
    pub challenges: Vec<HttpChallenge>,
    /// `ETag` of the response, unchanged with its quotes; empty without one.
    pub tag: String,
}

/// The node's state and phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    identity: Option<Identity>,
    state: PersistedState,
    phase: Phase,
    status: NodeStatus,
    versions: OwnVersions,
    /// `ETag` of the last processed response.
    known: String,
    /// `ETag` of the response with the current order; empty without one.
    assigned_tag: String,
    /// Time when the token was issued; `None` without a token.
    token_since: Option<Duration>,
    now: Duration,
    wait: Duration,
    interval: Duration,
    storage_fault: Option<String>,
    events: Vec<Event>,
    last_refusal: Option<String>,
    renewal: ServedCertificates,
    /// Time limit of a trial in the last response with an order.
    assigned_trial: Option<Duration>,
    trial: Option<Trial>,
    /// Traffic at the last report.
    served: Served,
}

impl Machine {
    /// Creates the machine from persisted state.
    pub fn new(
        identity: Option<Identity>,
        mut state: PersistedState,
        versions: OwnVersions,
    ) -> Self {
        if let Some(identity) = &identity
            && state.trust.is_none()
        {
            state.trust = Some(identity.trust.clone());
        }
        let events = Self::interrupt_trial(&mut state).into_iter().collect();
        let last_good = state.last_good.as_ref();
        let status = NodeStatus {
            desired: state.answer.as_ref().map(|answer| answer.bundle),
            staged: None,
            active: None,
            last_good: last_good.map(|order| order.bundle),
            order: state.answer.as_ref().map(|_| state.counter),
            verdict: state.answer.as_ref().map(|answer| answer.verdict),
            diagnostics: diagnostics_of(&state),
            altered: false,
        };
        Self {
            identity,
            state,
            phase: Phase::Waiting,
            status,
            versions,
            known: String::new(),
            assigned_tag: String::new(),
            token_since: None,
            now: Duration::ZERO,
            wait: FIRST_WAIT,
            interval: FIRST_INTERVAL,
            storage_fault: None,
            events,
            last_refusal: None,
            renewal: ServedCertificates::default(),
            assigned_trial: None,
            trial: None,
            served: Served::default(),
        }
    }

    /// The first action.
    pub fn begin(&mut self) -> Action {
        self.resume()
    }

    /// Records whether the process could start with this bundle.
    pub fn started_with(&mut self, bundle: &Bundle, outcome: Result<(), Vec<String>>) {
        match outcome {
            Ok(()) => {
                self.status.active = Some(bundle.order.bundle);
                self.renewal.begin(bundle.certificates());
            }
            Err(diagnostics) => self.failed_again(RefusalReason::Activation, diagnostics),
        }
    }

    /// State to persist.
    pub fn state(&self) -> &PersistedState {
        &self.state
    }

    /// Identity of the node; `None` before its enrolment.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Status for the next heartbeat.
    pub fn status(&self) -> NodeStatus {
        let mut status = self.status.clone();
        status.diagnostics.extend(self.storage_fault.clone());
        status.diagnostics.extend(self.renewal.fault().cloned());
        bounds::truncate_diagnostics(&mut status.diagnostics);
        status
    }

    /// Counter of the active bundle's order; 0 without one.
    pub fn order_in_force(&self) -> u64 {
        if let Some(counter) = self.order_on_trial() {
            return counter;
        }
        let last_good = self.state.last_good.as_ref();
        let in_force = last_good.filter(|order| self.status.active == Some(order.bundle));
        in_force.map_or(0, |order| order.counter)
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Sets or clears a failure to store the state, which is part of every report until a write
    /// succeeds.
    pub fn set_storage_fault(&mut self, fault: Option<String>) {
        self.storage_fault = fault;
    }

    /// Returns true while a staged bundle is being activated.
    pub fn is_activating(&self) -> bool {
        matches!(
            self.phase,
            Phase::Staging(_) | Phase::FetchingCertificates(_) | Phase::Activating(_)
        )
    }

    /// Number of renewals in the project, by the last order.
    pub(crate) fn renewals(&self) -> u64 {
        self.renewal.count
    }

    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The action after an outcome; `now` is the time since any fixed moment.
    pub fn next(&mut self, outcome: Outcome, now: Duration) -> Action {
        self.now = now;
        if let Some(action) = self.judge_trial(&outcome) {
            return action;
        }
        let phase = std::mem::replace(&mut self.phase, Phase::Waiting);
        match (phase, outcome) {
            (_, Outcome::Failed(wanted)) => self.back_off(wanted),
            (Phase::Enrolling | Phase::ExchangingToken, Outcome::Unauthorized) => {
                self.back_off(None)
            }
            (_, Outcome::Unauthorized) => self.renew_token(),
            (Phase::Enrolling, Outcome::Enrolled(response)) => self.enrolled(response),
            (Phase::ExchangingToken, Outcome::TokenIssued) => {
                self.token_since = Some(now);
                self.fetch_keys(None)
            }
            (Phase::FetchingKeys(order), Outcome::Keys(keys)) => self.take_keys(order, &keys),
            (
                Phase::Reporting,
                Outcome::Reported(interval)
                | Outcome::Confirmed(interval)
                | Outcome::Held(interval),
            ) => self.poll(interval),
            // An older control plane may not understand the report, but its orders are valid.
            (Phase::Reporting, Outcome::Refused(_)) => self.poll(self.interval),
            (Phase::Polling, Outcome::Unchanged(took)) => self.pace(took),
            (Phase::Polling, Outcome::Assigned(assignment)) => {
                self.renewal.count = assignment.renewals;
                self.assigned_tag = assignment.tag;
                self.assigned_trial = assignment.trial;
                self.handle_order(assignment.order, PublishedKeys::MayBeStale)
            }
            (Phase::Polling, Outcome::Unassigned(tag)) => {
                self.restore().unwrap_or_else(|| self.learn_tag(tag))
            }
            (Phase::Fetching(order), Outcome::Fetched(archive)) => self.open(&order, archive),
            (Phase::Fetching(order), Outcome::Refused(reason)) => self.reject(
                &order,
                RefusalReason::Archive,
                vec![format!("archive: {reason}")],
            ),
            (Phase::Staging(bundle), Outcome::Staged) => self.staged(bundle),
            (Phase::FetchingCertificates(bundle), Outcome::CertificatesFetched) => {
                self.activate(bundle)
            }
            (Phase::Staging(bundle), Outcome::Rejected(diagnostics)) => {
                self.reject(&bundle.order, RefusalReason::Disk, diagnostics)
            }
            (Phase::FetchingCertificates(bundle), Outcome::Refused(reason)) => {
                let diagnostics = vec![format!("certificates: {reason}")];
                self.reject(&bundle.order, RefusalReason::Certificates, diagnostics)
            }
            (Phase::Activating(bundle), Outcome::Rejected(diagnostics)) => {
                self.reject(&bundle.order, RefusalReason::Activation, diagnostics)
            }
            (Phase::Activating(bundle), Outcome::Activated) => {
                let before = self.renewal.clone();
                self.renewal.activated(bundle.certificates());
                self.accept(&bundle.order, before)
            }
            (Phase::Reverting, Outcome::Rejected(diagnostics)) => {
                self.retry_revert_later(&diagnostics)
            }
            (Phase::Reverting, Outcome::Activated) => self.finish_revert(),
            (phase, outcome) => self.next_of_renewal(phase, outcome),
        }
    }

    /// Waits twice as long as the control plane requested: the driver's jitter may halve the time,
    /// and a node that returns too early is refused again.
    fn back_off(&mut self, wanted: Option<Duration>) -> Action {
        let wanted = wanted.unwrap_or_default().min(MAX_WAIT) * 2;
        let wait = self.wait.max(wanted);
        self.wait = (self.wait * 2).min(MAX_WAIT);
        self.phase = Phase::Waiting;
        self.assigned_tag.clear();
        Action::Wait(self.within_trial(wait))
    }

    /// Renews the token after a 401. If the token is new, for example refused by a replica with a
    /// wrong clock, waits first, because another new one would be refused as well.
    fn renew_token(&mut self) -> Action {
        let since = self.token_since.take();
        if since.is_some_and(|since| self.now.saturating_sub(since) < MAX_WAIT) {
            return self.back_off(None);
        }
        self.resume()
    }

    /// Continues with the most urgent action.
    fn resume(&mut self) -> Action {
        if self.identity.is_none() {
            self.phase = Phase::Enrolling;
            return Action::Enrol;
        }
        let age = |since| self.now.saturating_sub(since);
        if self
            .token_since
            .is_none_or(|since| TOKEN_RENEWAL <= age(since))
        {
            self.phase = Phase::ExchangingToken;
            return Action::ExchangeToken;
        }
        self.phase = Phase::Reporting;
        Action::Report(self.status())
    }

    fn enrolled(&mut self, response: RegisterResponse) -> Action {
        let identity = Identity::new(response);
        self.state.trust = Some(identity.trust.clone());
        self.identity = Some(identity);
        self.resume()
    }

    /// Fetches the published keys, once per token, to add new keys and remove retired ones.
    fn fetch_keys(&mut self, order: Option<Order>) -> Action {
        let Some(identity) = &self.identity else {
            return self.resume();
        };
        self.phase = Phase::FetchingKeys(order);
        Action::FetchKeys(identity.org)
    }

    fn take_keys(&mut self, order: Option<Order>, keys: &JsonWebKeySet) -> Action {
        let trust = self.state.trust.as_mut();
        if trust.is_some_and(|trust| trust.update(&keys.keys, &keys.ended)) {
            let pinned = self
                .state
                .trust
                .as_ref()
                .map_or(0, |trust| trust.pinned().len());
            self.note(EventKind::KeysChanged, format!("{pinned} keys are trusted"));
        }
        match order {
            Some(order) => self.handle_order(order, PublishedKeys::JustFetched),
            None => self.resume(),
        }
    }

    fn poll(&mut self, interval: Duration) -> Action {
        self.interval = interval.max(MIN_INTERVAL);
        self.phase = Phase::Polling;
        Action::Poll {
            known: self.known.clone(),
            wait: self.within_trial(self.interval.min(MAX_POLL)),
        }
    }

    /// Limits the rate of polls if responses arrive too early.
    fn pace(&mut self, took: Duration) -> Action {
        self.last_refusal = None;
        let rest = self.interval.saturating_sub(took);
        if rest.is_zero() {
            self.wait = FIRST_WAIT;
            return self.resume();
        }
        let wait = self.wait.min(rest);
        self.wait = if rest < MIN_INTERVAL {
            FIRST_WAIT
        } else {
            (self.wait * 2).min(MAX_WAIT)
        };
        self.phase = Phase::Waiting;
        Action::Wait(self.within_trial(wait))
    }

    /// Records the tag of a processed response; the next poll waits for another tag. A server that
    /// changes the tag with each response does not make the node poll without pauses.
    fn learn_tag(&mut self, tag: String) -> Action {
        let is_first = self.known.is_empty() && !tag.is_empty();
        self.known = tag;
        if is_first {
            self.poll(self.interval)
        } else {
            self.pace(Duration::ZERO)
        }
    }

    fn open(&mut self, order: &Order, archive: Arc<[u8]>) -> Action {
        match Bundle::open(order.clone(), archive, self.versions) {
            Ok(bundle) => {
                let bundle = Arc::new(bundle);
                self.phase = Phase::Staging(Arc::clone(&bundle));
                Action::Stage(bundle)
            }
            Err(error) => {
                let diagnostics = vec![format!("archive: {error}")];
                self.reject(order, RefusalReason::Archive, diagnostics)
            }
        }
    }

    fn staged(&mut self, bundle: Arc<Bundle>) -> Action {
        self.status.staged = Some(bundle.order.bundle);
        let certificates = bundle.certificates();
        if certificates.is_empty() {
            return self.activate(bundle);
        }
        self.phase = Phase::FetchingCertificates(bundle);
        Action::FetchCertificates(certificates)
    }

    fn activate(&mut self, bundle: Arc<Bundle>) -> Action {
        self.phase = Phase::Activating(Arc::clone(&bundle));
        if self.starts_trial(&bundle.order) {
            return Action::TryOut(bundle);
        }
        Action::Activate(bundle)
    }

    fn note(&mut self, kind: EventKind, message: String) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(Event { kind, message });
        }
    }
}

fn diagnostics_of(state: &PersistedState) -> Vec<String> {
    let answer = state.answer.as_ref();
    answer
        .map(|answer| answer.diagnostics.clone())
        .unwrap_or_default()
}
