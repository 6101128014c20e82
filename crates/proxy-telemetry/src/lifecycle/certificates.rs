//! State of the certificates that the process obtains itself, for `/status` and `/ready`.

use super::time::timestamp;
use arc_swap::ArcSwap;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// State of a certificate that the process obtains itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObtainedCertificate {
    /// Hosts of the certificate.
    pub hosts: Vec<String>,
    /// End of validity of the stored certificate; `None` if there is none yet.
    pub not_after: Option<SystemTime>,
    /// Time of the next attempt to obtain one; `None` during an attempt.
    pub next_attempt: Option<SystemTime>,
    /// The last attempt, if it failed.
    pub failure: Option<ObtainingFailure>,
}

/// A failed attempt to obtain a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObtainingFailure {
    /// Time of the failure.
    pub at: SystemTime,
    /// Failures since the last success.
    pub failures: u32,
    /// The authority's problem type, or a cause on this side.
    pub problem: String,
    /// Error in the words of the authority.
    pub detail: String,
    /// Advice for the operator.
    pub advice: String,
}

/// The certificates, by the path of their file.
#[derive(Debug, Default)]
pub(super) struct Certificates(ArcSwap<BTreeMap<String, ObtainedCertificate>>);

impl Certificates {
    pub(super) fn set(&self, file: &str, certificate: &ObtainedCertificate) {
        self.0.rcu(|current| {
            let mut next = BTreeMap::clone(current);
            next.insert(file.to_owned(), certificate.clone());
            next
        });
    }

    pub(super) fn retain(&self, is_kept: impl Fn(&str) -> bool) {
        self.0.rcu(|current| {
            let mut next = BTreeMap::clone(current);
            next.retain(|file, _| is_kept(file));
            next
        });
    }

    /// An element for each certificate; `None` without any.
    pub(super) fn document(&self) -> Option<Value> {
        let certificates = self.0.load();
        let elements = certificates.iter();
        let elements: Vec<Value> = elements
            .map(|(file, certificate)| element(file, certificate))
            .collect();
        (!elements.is_empty()).then(|| elements.into())
    }

    /// A line for each host set without a certificate or with a failed renewal.
    pub(super) fn warnings(&self) -> Vec<String> {
        let certificates = self.0.load();
        certificates.values().filter_map(warning).collect()
    }
}

fn element(file: &str, certificate: &ObtainedCertificate) -> Value {
    let ObtainedCertificate {
        hosts,
        not_after,
        next_attempt,
        failure,
    } = certificate;
    let failure = failure.as_ref().map(|failure| {
        let ObtainingFailure {
            at,
            failures,
            problem,
            detail,
            advice,
        } = failure;
        json!({
            "at": timestamp(*at),
            "failures": failures,
            "problem": problem,
            "detail": detail,
            "advice": advice,
        })
    });
    json!({
        "file": file,
        "hosts": hosts,
        "not_after": not_after.map(timestamp),
        "next_attempt": next_attempt.map(timestamp),
        "failure": failure,
    })
}

fn warning(certificate: &ObtainedCertificate) -> Option<String> {
    let hosts = certificate.hosts.join(", ");
    let state = match certificate.not_after {
        None => "has no certificate yet".to_owned(),
        Some(not_after) => format!("has a certificate until {}", timestamp(not_after)),
    };
    match &certificate.failure {
        Some(ObtainingFailure {
            failures,
            problem,
            advice,
            ..
        }) => Some(format!(
            "{hosts} {state}; {failures} attempts failed: {problem}; {advice}"
        )),
        None => certificate
            .not_after
            .is_none()
            .then(|| format!("{hosts} {state}")),
    }
}
