//! Certificates that the node serves, and whether they are current.

use control_wire::CertificateId;

/// Certificates that the node serves.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ServedCertificates {
    /// Number of renewals in the project, by the last response with an order.
    pub(super) count: u64,
    /// Certificates that the active bundle needs.
    pub(super) needed: Vec<CertificateId>,
    /// That number when the served certificates were fetched; `None` if unknown.
    pub(super) served: Option<u64>,
    /// Reason why renewed certificates are not served.
    pub(super) fault: Option<String>,
}

impl ServedCertificates {
    /// Starts with an active bundle; its certificates were fetched when the number of renewals was
    /// unknown.
    pub(super) fn begin(&mut self, needed: Vec<CertificateId>) {
        self.needed = needed;
        self.served = None;
        self.fault = None;
    }

    /// Records that a bundle was activated with current certificates.
    pub(super) fn activated(&mut self, needed: Vec<CertificateId>) {
        self.begin(needed);
        self.served = Some(self.count);
    }

    /// Certificates to fetch again; `None` if none can have been renewed.
    pub(super) fn needed(&self) -> Option<Vec<CertificateId>> {
        let is_due = !self.needed.is_empty() && self.served != Some(self.count);
        is_due.then(|| self.needed.clone())
    }

    pub(super) fn fault(&self) -> Option<&String> {
        self.fault.as_ref()
    }
}
