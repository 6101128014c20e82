//! Verdicts on orders.

use super::bounds::truncate_diagnostics;
use super::served_certificates::ServedCertificates;
use super::trial::Served;
use super::{Action, FIRST_WAIT, Machine, diagnostics_of};
use crate::event::{EventKind, RefusalReason};
use crate::state::Answer;
use control_wire::{Order, Verdict};
use std::mem::take;

impl Machine {
    /// Accepts the order. Only this function and [`Machine::reject`] increase the counter: an order
    /// without a fetched archive is sent again.
    pub(super) fn accept(&mut self, order: &Order, before: ServedCertificates) -> Action {
        self.note(EventKind::BundleActivated, order.bundle.to_string());
        self.trial = self.begin_trial(order, before);
        self.served = Served::default();
        self.state.trial = self.trial.as_ref().map(|_| order.clone());
        self.status.active = Some(order.bundle);
        self.status.staged = None;
        if self.trial.is_none() {
            self.status.last_good = Some(order.bundle);
        }
        if order.counter < self.state.counter {
            // The previous bundle is active again; the answer to the newest order stays unchanged.
            self.repeat_answer();
        } else {
            if self.trial.is_none() {
                self.state.last_good = Some(order.clone());
            }
            self.answer(order, Verdict::Accepted, Vec::new());
        }
        self.settled()
    }

    pub(super) fn reject(
        &mut self,
        order: &Order,
        reason: RefusalReason,
        mut diagnostics: Vec<String>,
    ) -> Action {
        // An order that was completed before the process ended stays completed; one with an
        // interrupted trial is judged again.
        let last_good = self.state.last_good.as_ref();
        let is_on_trial = last_good.is_none_or(|good| good.counter < order.counter);
        if order.counter < self.state.counter
            || (order.counter == self.state.counter && !is_on_trial)
        {
            self.failed_again(reason, diagnostics);
            return self.back_off(None);
        }
        truncate_diagnostics(&mut diagnostics);
        let message = diagnostics.first().cloned().unwrap_or_default();
        self.note(EventKind::BundleRejected(reason), message);
        self.answer(order, Verdict::Rejected, diagnostics);
        self.settled()
    }

    pub(super) fn settled(&mut self) -> Action {
        self.known = take(&mut self.assigned_tag);
        self.wait = FIRST_WAIT;
        self.resume()
    }

    pub(super) fn answer(&mut self, order: &Order, verdict: Verdict, diagnostics: Vec<String>) {
        if self.state.counter != order.counter {
            self.state.interrupted_trials = 0;
        }
        self.state.counter = order.counter;
        self.status.order = Some(order.counter);
        self.status.verdict = Some(verdict);
        self.status.diagnostics.clone_from(&diagnostics);
        self.state.answer = Some(Answer {
            bundle: order.bundle,
            digest: order.digest.clone(),
            verdict,
            diagnostics,
        });
    }

    fn repeat_answer(&mut self) {
        let answer = self.state.answer.as_ref();
        self.status.verdict = answer.map(|answer| answer.verdict);
        self.status.diagnostics = diagnostics_of(&self.state);
    }

    /// Records that the bundle from before the restart fails now; the node retries.
    pub(super) fn failed_again(&mut self, reason: RefusalReason, mut diagnostics: Vec<String>) {
        truncate_diagnostics(&mut diagnostics);
        if self.status.diagnostics != diagnostics {
            let message = diagnostics.first().cloned().unwrap_or_default();
            self.note(EventKind::BundleRejected(reason), message);
        }
        self.known.clear();
        if self.status.order.is_some() {
            self.status.verdict = Some(Verdict::Rejected);
        }
        self.status.diagnostics = diagnostics;
    }
}
