//! Renewal of certificates while their bundle is active.

use super::{Action, Machine, Outcome, Phase};
use crate::event::EventKind;
use std::mem::take;

impl Machine {
    /// The action after an outcome of a renewal's phase.
    pub(super) fn next_of_renewal(&mut self, phase: Phase, outcome: Outcome) -> Action {
        match (phase, outcome) {
            (Phase::FetchingRenewal, Outcome::CertificatesFetched) => {
                self.phase = Phase::Renewing;
                Action::Renew
            }
            (Phase::FetchingRenewal, Outcome::Refused(reason)) => self.keep_certificates(&reason),
            (Phase::Renewing, Outcome::Renewed(is_other)) => self.renewed(is_other),
            (Phase::Renewing, Outcome::Rejected(diagnostics)) => {
                self.renewal_failed(&diagnostics.join("; "))
            }
            // The outcome belongs to another action.
            (_, _) => self.resume(),
        }
    }

    /// Waits, which limits the rate of requests if a control plane announces a renewal in every
    /// response.
    fn renewed(&mut self, is_other: bool) -> Action {
        if is_other {
            let count = self.renewal.needed.len();
            self.note(
                EventKind::CertificatesRenewed,
                format!("{count} are served"),
            );
        }
        self.renewal.served = Some(self.renewal.count);
        self.renewal.fault = None;
        self.known = take(&mut self.assigned_tag);
        self.back_off(None)
    }

    /// Deleted upstream: keeps the old certificates until the next bundle.
    fn keep_certificates(&mut self, reason: &str) -> Action {
        self.renewal.served = Some(self.renewal.count);
        self.known = take(&mut self.assigned_tag);
        self.renewal_failed(reason)
    }

    fn renewal_failed(&mut self, reason: &str) -> Action {
        let fault = format!("certificates: {reason}");
        if self.renewal.fault.as_ref() != Some(&fault) {
            self.note(EventKind::CertificatesRejected, fault.clone());
            self.renewal.fault = Some(fault);
        }
        self.back_off(None)
    }
}
