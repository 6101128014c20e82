//! Verification of orders, and the actions that follow.

use super::published_keys::PublishedKeys;
use super::{Action, Machine, Phase};
use crate::error::OrderError;
use crate::event::EventKind;
use crate::state::Answer;
use crate::trust::Trust;
use control_bundle::verify_order;
use control_wire::{Order, Verdict};
use std::mem::take;

impl Machine {
    /// Verifies an order. Without a valid signature, neither is its bundle fetched nor its counter
    /// stored.
    pub(super) fn handle_order(&mut self, order: Order, keys: PublishedKeys) -> Action {
        if self.is_done(&order) {
            if let Some(action) = self.restore() {
                return action;
            }
            if let Some(needed) = self.renewal.needed() {
                self.phase = Phase::FetchingRenewal;
                return Action::FetchCertificates(needed);
            }
            let tag = take(&mut self.assigned_tag);
            return self.learn_tag(tag);
        }
        match self.check(&order) {
            Ok(()) => {
                self.status.desired = Some(order.bundle);
                self.phase = Phase::Fetching(order.clone());
                Action::Fetch(order)
            }
            Err(OrderError::UnknownKey(_)) if keys == PublishedKeys::MayBeStale => {
                self.fetch_keys(Some(order))
            }
            Err(error) => self.refuse(&order, &error),
        }
    }

    /// Activates the last good bundle if the process could not start with it: private keys were
    /// missing while the control plane was unreachable, and a rejected newer order leaves no bundle
    /// active.
    pub(super) fn restore(&mut self) -> Option<Action> {
        let good = self.state.last_good.clone();
        let good = good.filter(|_| self.status.active.is_none())?;
        self.phase = Phase::Fetching(good.clone());
        Some(Action::Fetch(good))
    }

    /// Returns true if the order was answered and, unless it was rejected, its bundle is active.
    fn is_done(&self, order: &Order) -> bool {
        let Some(answer) = &self.state.answer else {
            return false;
        };
        let same = order.counter == self.state.counter && is_answered(answer, order);
        let in_force = self.status.active == Some(order.bundle);
        same && (in_force || answer.verdict == Verdict::Rejected)
    }

    fn check(&self, order: &Order) -> Result<(), OrderError> {
        let own = self.identity.as_ref().map(|identity| identity.node);
        if own != Some(order.node) {
            return Err(OrderError::OtherNode);
        }
        let (found, seen) = (order.counter, self.state.counter);
        if found < seen || found == 0 {
            return Err(OrderError::Old { found, seen });
        }
        let answer = self.state.answer.as_ref();
        if found == seen && !answer.is_some_and(|answer| is_answered(answer, order)) {
            return Err(OrderError::Conflict(found));
        }
        let trust = self.state.trust.as_ref();
        let key = trust.and_then(|trust: &Trust| trust.key(order.kid));
        let key = key.ok_or(OrderError::UnknownKey(order.kid))?;
        verify_order(order, &key).map_err(|_| OrderError::Signature)
    }

    /// Refuses an order, and waits before the next request because the order will be sent again.
    /// Records a verdict only if the order claims to be newer: an old order must not replace the
    /// answer to a newer one.
    fn refuse(&mut self, order: &Order, error: &OrderError) -> Action {
        let reason = error.to_string();
        if self.last_refusal.as_ref() != Some(&reason) {
            self.note(EventKind::OrderRefused(error.into()), reason.clone());
            self.last_refusal = Some(reason.clone());
        }
        let is_own = *error != OrderError::OtherNode;
        if is_own && self.state.counter < order.counter {
            self.status.order = Some(order.counter);
            self.status.verdict = Some(Verdict::Rejected);
            self.status.diagnostics = vec![format!("order: {reason}")];
        }
        self.back_off(None)
    }
}

/// Returns true if the answer is for this order. A new signature changes neither bundle nor digest.
fn is_answered(answer: &Answer, order: &Order) -> bool {
    answer.bundle == order.bundle && answer.digest == order.digest
}
