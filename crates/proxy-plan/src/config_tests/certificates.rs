//! Expectations of certificates, from files that the caller has read.

use super::explain_command::command;
use super::question;
use crate::plan::Plan;
use crate::targets::TargetRegistry;
use crate::upstream_states::AssumeHealthy;
use proxy_model::{ConfigTest, Expectation, FailedTest, Model};
use std::sync::Arc;

/// A certificate that a listener serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedCertificate {
    /// Hosts of the certificate, in lower case.
    pub names: Vec<String>,
    /// Whole days until the certificate expires; negative after that.
    pub days_left: i64,
}

/// An expectation of a certificate that fails.
#[derive(Clone, Debug)]
pub struct CertificateFailure {
    /// Test that the certificate fails.
    pub test: FailedTest,
    /// True if the certificate expires too soon: time alone causes this failure.
    pub is_expiry: bool,
}

/// The tests with a failed expectation of a certificate. `served` returns the certificate that the
/// listener with this index serves for a host; `None` without TLS.
#[must_use]
pub fn failed_certificate_tests(
    model: &Model,
    served: impl Fn(usize, &str) -> Option<ServedCertificate>,
) -> Vec<CertificateFailure> {
    let concerned =
        |test: &&ConfigTest| test.expectations.iter().any(|one| one.value.needs_files());
    let mut tests = model.tests.iter().filter(concerned).peekable();
    if tests.peek().is_none() {
        return Vec::new();
    }
    let mut targets = TargetRegistry::default().begin();
    let plan = Plan::compile(1, Arc::new(model.clone()), &mut targets);
    let states = AssumeHealthy::new(&plan);
    let failed = tests.flat_map(|test| {
        let request = question(test);
        // A request that cannot be explained fails as a test already.
        let explanation = request.ask_briefly(&plan, &states).ok();
        let found = explanation.and_then(|explanation| {
            let name = explanation.listener?.name;
            let mut listeners = plan.listeners().iter();
            let index = listeners.position(|listener| listener.name == name)?;
            served(index, &explanation.host.seen.unwrap_or_default())
        });
        let explain = command(&request, &model.sources);
        let failed = test.expectations.iter().filter_map(move |expected| {
            let test = FailedTest {
                name: test.name.clone(),
                place: expected.place().unwrap_or(test.place),
                request: test.request.place,
                difference: difference(&expected.value, found.as_ref())?,
                explain: explain.clone(),
            };
            let is_days = matches!(expected.value, Expectation::CertificateDays(_));
            Some(CertificateFailure {
                test,
                is_expiry: is_days && found.is_some(),
            })
        });
        failed.collect::<Vec<_>>()
    });
    failed.collect()
}

fn difference(expected: &Expectation, found: Option<&ServedCertificate>) -> Option<String> {
    if !expected.needs_files() {
        return None;
    }
    let Some(ServedCertificate { names, days_left }) = found else {
        return Some("the listener serves no certificate".to_owned());
    };
    if let Expectation::Certificate(name) = expected
        && !names.contains(name)
    {
        let names = names.join(", ");
        return Some(format!("the certificate is for {names}, not `{name}`"));
    }
    if let Expectation::CertificateDays(days) = expected
        && *days_left < i64::from(*days)
    {
        return Some(format!(
            "the certificate is valid for {days_left} days, not {days}"
        ));
    }
    None
}
