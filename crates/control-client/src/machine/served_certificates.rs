//! The certificates that the node serves.

use control_wire::CertificateId;

/// Certificates that the node serves.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ServedCertificates {
    /// Number of renewals of certificates of the project, as of the last answer with an order.
    pub(super) count: u64,
    /// Certificates that the active bundle needs.
    pub(super) needed: Vec<CertificateId>,
    /// The count when the served ones were fetched; `None` if unknown.
    pub(super) served: Option<u64>,
    /// Reason why renewed ones are not served.
    pub(super) fault: Option<String>,
}

impl ServedCertificates {
    /// A bundle is active; its certificates were fetched before the count was known.
    pub(super) fn begin(&mut self, needed: Vec<CertificateId>) {
        self.needed = needed;
        self.served = None;
        self.fault = None;
    }

    /// A bundle was activated, with the current certificates.
    pub(super) fn activated(&mut self, needed: Vec<CertificateId>) {
        self.begin(needed);
        self.served = Some(self.count);
    }

    /// The certificates to fetch again, if any may have been renewed.
    pub(super) fn needed(&self) -> Option<Vec<CertificateId>> {
        let is_due = !self.needed.is_empty() && self.served != Some(self.count);
        is_due.then(|| self.needed.clone())
    }

    pub(super) fn fault(&self) -> Option<&String> {
        self.fault.as_ref()
    }
}
