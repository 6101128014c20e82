//! Judgement of exchanges by the access log and the table of reasons.

use super::exchange::{ClientRequest, Content, Exchange, Outcome};
use proxy_errors::Reason;
use proxy_testkit::Record;
use std::collections::{BTreeMap, HashMap};

/// Faults found, and the number of exchanges by outcome.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) faults: Vec<String>,
    pub(crate) counts: BTreeMap<String, usize>,
}

/// Judges all `exchanges`; `lines` are all logs, and `once` are the IDs that targets read.
pub(crate) fn judge(exchanges: &[Exchange], lines: &[String], once: &[String]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut records = Vec::new();
    for line in lines {
        match Record::parse(line) {
            Some(record) => records.push(record),
            None => verdict.fault(&format!("a line is not a record: {line}"), &[]),
        }
    }
    let mut by_id: HashMap<&str, Vec<&Record>> = HashMap::new();
    for record in records.iter().filter(|record| record.has("status")) {
        by_id
            .entry(record.text("correlation_id"))
            .or_default()
            .push(record);
        verdict.check_table(record);
    }
    for Exchange { request, outcome } in exchanges {
        let found = by_id
            .get(request.id.as_str())
            .map_or(&[][..], Vec::as_slice);
        let judged = match (outcome, found) {
            (Outcome::Unanswered(why), _) => Err(format!("no answer: {why}")),
            // A client may leave before its request has been read.
            (Outcome::Left, []) => Ok("left unread".to_owned()),
            (_, [record]) => check_outcome(request, outcome, record),
            _ => Err(format!("{} access records for {outcome:?}", found.len())),
        };
        match judged {
            Ok(kind) => *verdict.counts.entry(kind).or_default() += 1,
            Err(fault) => verdict.fault(
                &format!("{:?} {}: {fault}", request.route, request.id),
                found,
            ),
        }
    }
    verdict.check_once(once);
    verdict
}

impl Verdict {
    fn fault(&mut self, what: &str, records: &[&Record]) {
        self.faults.push(format!("{what}; access log: {records:?}"));
    }

    /// The reason of a record, its type and its status are from one row of the table.
    fn check_table(&mut self, record: &Record) {
        let status = status(record);
        let name = record.text("reason");
        let Some(reason) = reason_by_name(name) else {
            // A target's own failure has no reason of the proxy's.
            if !name.is_empty() || status >= 400 && status != 503 {
                self.fault("a failure without a reason of the table", &[record]);
            }
            return;
        };
        if record.text("error_type") != reason.error_type().name() {
            self.fault("a reason with another type", &[record]);
        }
    }

    /// Refused requests reach no target, and requests that may not be repeated reach one once.
    fn check_once(&mut self, once: &[String]) {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for id in once {
            *counts.entry(id).or_default() += 1;
        }
        for (id, count) in counts {
            if id.starts_with("denied-") {
                self.fault(&format!("{id} reached a target"), &[]);
            } else if count > 1 {
                self.fault(&format!("{id} reached targets {count} times"), &[]);
            }
        }
    }
}

/// Returns the kind of a correct outcome, or the fault of a wrong one.
fn check_outcome(
    request: &ClientRequest,
    outcome: &Outcome,
    record: &Record,
) -> Result<String, String> {
    let logged = status(record);
    let name = record.text("reason");
    let reason = reason_by_name(name);
    let may_fail = |reason: Reason| {
        let blocked = request.denied && reason == Reason::AgentBlocked;
        blocked || request.route.may_fail_for(reason)
    };
    if let Some(reason) = reason.filter(|reason| *reason != Reason::ClientAborted)
        && !may_fail(reason)
    {
        return Err(format!("its route may not fail for {name}"));
    }
    match outcome {
        Outcome::Left => Ok("left".to_owned()),
        Outcome::Unanswered(why) => Err(why.clone()),
        Outcome::Cut(status) | Outcome::Answered(status, _) if logged != *status => {
            Err(format!("{outcome:?} and another status in its record"))
        }
        Outcome::Cut(_) => match reason {
            Some(reason) if reason.blame().may_be_target() => Ok(format!("cut: {name}")),
            _ => Err("cut without a failure of its target".to_owned()),
        },
        Outcome::Answered(status, content) => match reason {
            None => check_response(request, *status, content),
            Some(reason) => check_error(reason, *status, content),
        },
    }
}

/// Returns the kind of a correct response of a target.
fn check_response(
    request: &ClientRequest,
    status: u16,
    content: &Content,
) -> Result<String, String> {
    match (status, content) {
        _ if request.denied => Err(format!("refused by its agent, and answered {status}")),
        (200, Content::Echo) => Ok("200".to_owned()),
        (503, Content::TargetFailure) => Ok("503 of the target".to_owned()),
        wrong => Err(format!("answered {wrong:?}")),
    }
}

/// Returns the kind of a correct error: its status and code match its reason.
fn check_error(reason: Reason, status: u16, content: &Content) -> Result<String, String> {
    let code = Content::Error(reason.error_type().code().to_owned());
    if (reason.status().as_u16(), &code) == (status, content) {
        return Ok(reason.as_str().to_owned());
    }
    let name = reason.as_str();
    Err(format!("answered {status} {content:?} for {name}"))
}

/// The status of an access record.
fn status(record: &Record) -> u16 {
    let number = record.number("status").unwrap_or_default();
    format!("{number:.0}").parse().unwrap_or_default()
}

fn reason_by_name(name: &str) -> Option<Reason> {
    let mut all = Reason::ALL.iter();
    all.find(|reason| reason.as_str() == name).copied()
}
