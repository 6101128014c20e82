//! Live tests: sent to a listener after a switch, and compared with the answer.

use super::question;
use crate::explain::Handler;
use crate::plan::Plan;
use crate::upstream_states::AssumeHealthy;
use http::Uri;
use http::header::HOST;
use proxy_model::{Expectation, LiveAnswer, LiveRequest, Setting};
use std::time::Duration;

/// Maximum time for the whole answer, unless the test expects one.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The first status that is a failure, unless a test expects one.
const FIRST_FAILURE: u16 = 400;

/// Statuses of requests and responses that did not arrive in time.
const TIMEOUTS: [u16; 2] = [408, 504];

/// A live test of a plan, ready to send.
#[derive(Clone, Debug)]
pub struct LiveTest {
    /// Name, unique among the tests of the configuration.
    pub name: String,
    /// Index of the listener that takes the request.
    pub listener: usize,
    /// Name of the upstream that answers, if one does.
    pub upstream: Option<String>,
    /// Method of the request.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Host and port of the URL or the `Host` header; `None` if the test has neither.
    pub authority: Option<String>,
    /// Header fields in their order, without `Host`.
    pub headers: Vec<(String, String)>,
    /// Protocol and body.
    pub form: LiveRequest,
    expectations: Vec<Setting<Expectation>>,
}

/// The live tests of a plan, in file order. A test with a request that no client can send is
/// excluded: it fails as an ordinary test.
#[must_use]
pub fn live_tests(plan: &Plan) -> Vec<LiveTest> {
    let states = AssumeHealthy::new(plan);
    let tests = plan.model().tests.iter();
    let live = tests.filter_map(|test| {
        let form = test.live?;
        let explanation = question(test).ask_briefly(plan, &states).ok()?;
        let upstream = if let Handler::Upstream { upstream, .. } = &explanation.answerer {
            Some(upstream.name.clone())
        } else {
            None
        };
        let listener = explanation.listener?.name;
        let mut listeners = plan.model().listeners.iter();
        let listener = listeners.position(|one| one.name == listener)?;
        let uri: Uri = test.request.url.parse().ok()?;
        let (host, headers): (Vec<_>, Vec<_>) = test
            .request
            .headers
            .iter()
            .cloned()
            .partition(|(name, _)| name.eq_ignore_ascii_case(HOST.as_str()));
        let host = host.into_iter().next().map(|(_, host)| host);
        Some(LiveTest {
            name: test.name.clone(),
            listener,
            upstream,
            method: test.request.method.clone(),
            path: uri
                .path_and_query()
                .map_or("/", |path| path.as_str())
                .to_owned(),
            authority: host.or_else(|| Some(uri.authority()?.as_str().to_owned())),
            headers,
            form,
            expectations: test.expectations.clone(),
        })
    });
    live.collect()
}

impl LiveTest {
    /// Maximum time for the whole answer.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        let mut expected = self.expectations.iter();
        expected
            .find_map(|one| {
                if let Expectation::Total(limit) = one.value {
                    return Some(limit);
                }
                None
            })
            .unwrap_or(DEFAULT_TIMEOUT)
    }

    /// The first difference between the expectations and the response, as the end of a sentence;
    /// `None` if they match.
    #[must_use]
    pub fn difference(&self, answer: &LiveAnswer) -> Option<String> {
        let mut expected = self.expectations.iter();
        self.status_difference(answer)
            .or_else(|| expected.find_map(|one| difference(&one.value, answer)))
    }

    /// Returns true if the answer might meet the expectations on a less busy machine: only its
    /// times differ, or its status reports a timeout.
    #[must_use]
    pub fn fails_by_time(&self, answer: &LiveAnswer) -> bool {
        let in_time = LiveAnswer {
            first_byte: Duration::ZERO,
            total: Duration::ZERO,
            ..answer.clone()
        };
        TIMEOUTS.contains(&answer.status) || self.difference(&in_time).is_none()
    }

    /// Returns true if two answers fail the test alike: by the same status, or by the same
    /// expectation. Different bodies and times are not compared.
    #[must_use]
    pub fn fails_alike(&self, one: &LiveAnswer, other: &LiveAnswer) -> bool {
        let [one, other] = [one, other].map(|answer| self.first_failure(answer));
        one.is_some() && one == other
    }

    /// The index of the first expectation that fails, `None` for the status; and the difference,
    /// empty for bodies and times, which vary between failures of the same cause.
    fn first_failure(&self, answer: &LiveAnswer) -> Option<(Option<usize>, String)> {
        if self.status_difference(answer).is_some() {
            return Some((None, answer.status.to_string()));
        }
        let mut expected = self.expectations.iter().enumerate();
        expected.find_map(|(index, one)| {
            let text = difference(&one.value, answer)?;
            let varies = matches!(
                one.value,
                Expectation::AnswerContains(_) | Expectation::FirstByte(_) | Expectation::Total(_)
            );
            Some((Some(index), if varies { String::new() } else { text }))
        })
    }

    fn status_difference(&self, answer: &LiveAnswer) -> Option<String> {
        let found = answer.status;
        let (mut of_answer, mut of_refusal) = (None, None);
        for expected in &self.expectations {
            if let Expectation::AnswerStatus(status) = expected.value {
                of_answer = Some(status);
            }
            if let Expectation::Status(status) = expected.value {
                of_refusal = Some(status);
            }
        }
        match of_answer.or(of_refusal) {
            Some(wanted) if wanted == found => None,
            Some(wanted) => Some(format!("the status is {found}, not {wanted}")),
            None => (FIRST_FAILURE <= found)
                .then(|| format!("the status is {found}, not below {FIRST_FAILURE}")),
        }
    }
}

/// The difference from one expectation other than the status.
fn difference(expected: &Expectation, answer: &LiveAnswer) -> Option<String> {
    match expected {
        Expectation::AnswerHeader(name, wanted) | Expectation::ResponseHeader(name, wanted) => {
            let values = answer.headers.get_all(name);
            if values.iter().any(|value| value == wanted) {
                return None;
            }
            let wanted = String::from_utf8_lossy(wanted.as_bytes());
            let found: Vec<_> = values
                .iter()
                .map(|value| String::from_utf8_lossy(value.as_bytes()))
                .collect();
            Some(if found.is_empty() {
                format!("the answer has no header `{name}`, which should be `{wanted}`")
            } else {
                let found = found.join(", ");
                format!("the header `{name}` is `{found}`, not `{wanted}`")
            })
        }
        Expectation::NoAnswerHeader(name) | Expectation::NoResponseHeader(name) => {
            let value = answer.headers.get(name)?;
            let value = String::from_utf8_lossy(value.as_bytes());
            Some(format!("the answer has the header `{name}` with `{value}`"))
        }
        Expectation::AnswerContains(text) => {
            let body = String::from_utf8_lossy(&answer.body);
            let begin: String = body.chars().take(40).collect();
            (!body.contains(text.as_str()))
                .then(|| format!("the body does not contain `{text}`; it begins with {begin:?}"))
        }
        Expectation::CertificateDays(wanted) => match answer.certificate_days {
            None => Some("there is no certificate".to_owned()),
            Some(found) if found < i64::from(*wanted) => Some(format!(
                "the certificate expires in {found} days, not in {wanted} or more"
            )),
            Some(_) => None,
        },
        Expectation::FirstByte(limit) => late("the first byte", answer.first_byte, *limit),
        Expectation::Total(limit) => late("the answer", answer.total, *limit),
        Expectation::Route(_)
        | Expectation::Upstream(_)
        | Expectation::UpstreamPath(_)
        | Expectation::Redirect(_)
        | Expectation::Builtin(_)
        | Expectation::Agents(_)
        | Expectation::Status(_)
        | Expectation::Reason(_)
        | Expectation::Listener(_)
        | Expectation::Certificate(_)
        | Expectation::Targets(_)
        | Expectation::Setting { .. }
        | Expectation::RequestHeader(..)
        | Expectation::NoRequestHeader(_)
        | Expectation::AnswerStatus(_) => None,
    }
}

fn late(noun: &str, found: Duration, limit: Duration) -> Option<String> {
    let (found, limit) = (found.as_millis(), limit.as_millis());
    (limit < found).then(|| format!("{noun} took {found} ms, not at most {limit} ms"))
}
