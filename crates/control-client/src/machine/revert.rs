//! Trials of orders, and reverts to the last good bundle.
//!
//! During a trial, the order's bundle is active but not confirmed by the control plane, and the
//! previous bundle remains the last good one, so that a crashed process starts with it. The node
//! reverts if the confirmation does not arrive in time, or if far more requests fail than before.

use super::served_certificates::ServedCertificates;
use super::trial::{Served, Trial};
use super::{Action, MAX_WAIT, Machine, Outcome, Phase};
use crate::event::{Event, EventKind, RefusalReason};
use crate::state::PersistedState;
use control_wire::{Order, Verdict};
use std::time::Duration;

/// Processes that may end in the trial of one order: more than one, because a restart by an operator
/// looks like a crash.
const MAX_INTERRUPTED_TRIALS: u32 = 2;

impl Machine {
    /// Ends the trial in which the previous process ended: this one starts with the last good bundle. It
    /// tries the order again once, and rejects it after that: a bundle that crashes its process would
    /// otherwise be active most of the time.
    pub(super) fn interrupt_trial(state: &mut PersistedState) -> Option<Event> {
        let order = state.trial.take()?;
        let answer = state.answer.as_mut()?;
        if order.counter != state.counter {
            return None;
        }
        state.interrupted_trials = state.interrupted_trials.saturating_add(1);
        if state.interrupted_trials < MAX_INTERRUPTED_TRIALS {
            return None;
        }
        let why = format!(
            "the process ended {} times in the trial of the bundle",
            state.interrupted_trials
        );
        answer.verdict = Verdict::Rejected;
        answer.diagnostics = vec![why.clone()];
        Some(Event {
            kind: EventKind::BundleRejected(RefusalReason::Crashed),
            message: why,
        })
    }

    /// Records the traffic since the activation, for the next report.
    pub fn note_served(&mut self, served: Served) {
        self.served = served;
    }

    /// Time until the node reverts; `None` without a trial. `now` is as in [`Machine::next`].
    pub fn trial_left(&self, now: Duration) -> Option<Duration> {
        let trial = self.trial.as_ref()?;
        Some(trial.until.saturating_sub(now))
    }

    /// Counter of the order on trial.
    pub fn order_on_trial(&self) -> Option<u64> {
        self.trial.as_ref().map(|trial| trial.order.counter)
    }

    /// Returns true if activating `order` starts a trial, which the last good order does not.
    pub(super) fn starts_trial(&self, order: &Order) -> bool {
        self.assigned_trial.is_some() && self.state.last_good.as_ref() != Some(order)
    }

    /// Starts the trial of the activated order; `None` without another bundle to revert to. A trial
    /// right after another is compared with the traffic before both.
    pub(super) fn begin_trial(
        &self,
        order: &Order,
        certificates_before: ServedCertificates,
    ) -> Option<Trial> {
        let confirm_within = self.assigned_trial?;
        let good = self.state.last_good.as_ref()?;
        let can_revert = self.status.active.is_some() && good.bundle != order.bundle;
        let (before, certificates_before) = match &self.trial {
            Some(trial) => (trial.before, trial.certificates_before.clone()),
            None => (self.served, certificates_before),
        };
        can_revert.then(|| Trial {
            order: order.clone(),
            confirm_within,
            until: self.now + confirm_within,
            before,
            certificates_before,
        })
    }

    /// Ends the trial if `outcome` confirms it. Returns the revert if it is due, unless a bundle is
    /// being activated.
    pub(super) fn judge_trial(&mut self, outcome: &Outcome) -> Option<Action> {
        if matches!(outcome, Outcome::Confirmed(_)) {
            self.confirm();
        }
        if matches!(outcome, Outcome::Held(_)) {
            self.restart_confirmation_timeout();
        }
        let is_busy = self.is_activating() || self.phase == Phase::Reverting;
        let trial = self.trial.as_ref().filter(|_| !is_busy)?;
        let is_due = trial.until <= self.now || self.served.is_far_worse_than(trial.before);
        is_due.then(|| {
            self.phase = Phase::Reverting;
            Action::Revert
        })
    }

    /// Ends the trial successfully: the order becomes the last good one.
    fn confirm(&mut self) {
        if let Some(trial) = self.trial.take() {
            self.state.trial = None;
            self.state.interrupted_trials = 0;
            self.status.last_good = Some(trial.order.bundle);
            self.state.last_good = Some(trial.order);
        }
    }

    /// Restarts the time limit, because an operator has paused the rollout.
    fn restart_confirmation_timeout(&mut self) {
        if let Some(trial) = &mut self.trial {
            trial.until = self.now + trial.confirm_within;
        }
    }

    /// Ends the trial after the last good bundle was reactivated, and rejects the order.
    pub(super) fn finish_revert(&mut self) -> Action {
        let Some(trial) = self.trial.take() else {
            return self.resume();
        };
        self.state.trial = None;
        let (reason, why) = self.revert_reason(&trial);
        self.note(EventKind::BundleRejected(reason), why.clone());
        self.status.active = self.state.last_good.as_ref().map(|good| good.bundle);
        self.renewal = ServedCertificates {
            count: self.renewal.count,
            ..trial.certificates_before
        };
        self.answer(&trial.order, Verdict::Rejected, vec![why]);
        self.settled()
    }

    /// Keeps the bundle on trial active, because the last good one could not be reactivated.
    /// Retries after [`MAX_WAIT`].
    pub(super) fn retry_revert_later(&mut self, diagnostics: &[String]) -> Action {
        if let Some(trial) = &mut self.trial {
            trial.until = self.now + MAX_WAIT;
            self.served = Served::default();
        }
        let why = format!("cannot revert: {}", diagnostics.join("; "));
        self.note(EventKind::BundleRejected(RefusalReason::Activation), why);
        self.resume()
    }

    fn revert_reason(&self, trial: &Trial) -> (RefusalReason, String) {
        let Served { requests, errors } = self.served;
        if self.served.is_far_worse_than(trial.before) {
            let Served {
                requests: requests_before,
                errors: errors_before,
            } = trial.before;
            let why = format!(
                "reverted by itself: {errors} of {requests} requests failed with a 5xx status, \
                 before the switch {errors_before} of {requests_before}"
            );
            return (RefusalReason::FarWorse, why);
        }
        let why = format!(
            "reverted by itself: no confirmation by the control plane within {} s",
            trial.confirm_within.as_secs()
        );
        (RefusalReason::Unconfirmed, why)
    }

    /// `wait`, or the rest of the trial if it is shorter; at least 1 ms.
    pub(super) fn within_trial(&self, wait: Duration) -> Duration {
        match self.trial_left(self.now) {
            Some(left) => wait.min(left.max(Duration::from_millis(1))),
            None => wait,
        }
    }
}
