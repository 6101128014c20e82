//! Check that all servers do the same work: equal responses, and equal requests to the upstream.

use crate::servers::load_process::LoadProcess;
use crate::servers::server::{RouteKind, Setup};
use proxy_load::command::{Capture, LoadProfile, Protocol, ResponseSize};
use xtask_kit::task_error::TaskError;

/// Size of a posted body.
const POSTED_BYTES: usize = 10 << 10;
/// Header field that every response has.
const CONTENT_TYPE: (&str, &str) = ("content-type", "text/plain");

/// Sends each kind of request that the run needs to a proxy, over one protocol.
///
/// # Errors
/// Difference from the expected result.
pub(crate) fn prove(
    load_process: &mut LoadProcess,
    port: u16,
    setup: &Setup,
    protocol: Protocol,
) -> Result<(), TaskError> {
    for answer in ResponseSize::ALL {
        check(load_process, port, setup, protocol, answer, 0)?;
    }
    if setup.route == RouteKind::Cached {
        return check_hit(load_process, port, setup);
    }
    // The HTTP/2 client of the load process cannot send bodies.
    if protocol == Protocol::Http2 {
        return Ok(());
    }
    check(
        load_process,
        port,
        setup,
        protocol,
        ResponseSize::Small,
        POSTED_BYTES,
    )
}

/// Repeats a request to a cache: the response must be complete, without a request to the upstream.
fn check_hit(load_process: &mut LoadProcess, port: u16, setup: &Setup) -> Result<(), TaskError> {
    let answer = ResponseSize::Medium;
    let mut profile = LoadProfile::get(port, setup.paths(answer.letter()), answer);
    profile.capture = true;
    let sample = load_process.run(profile)?;
    let capture = sample.capture.filter(|_| sample.failure.is_none());
    let is_hit = capture.is_some_and(|capture| {
        capture.answer_body_bytes == answer.body_bytes()
            && capture.answer_body_intact
            && capture.request_head.is_empty()
    });
    if is_hit {
        return Ok(());
    }
    Err(TaskError::Failed(
        "does not answer from its cache".to_owned(),
    ))
}

fn check(
    load_process: &mut LoadProcess,
    port: u16,
    setup: &Setup,
    protocol: Protocol,
    answer: ResponseSize,
    body_bytes: usize,
) -> Result<(), TaskError> {
    let mut profile = LoadProfile::get(port, setup.paths(answer.letter()), answer);
    profile.protocol = protocol;
    profile.request.body_bytes = body_bytes;
    profile.capture = true;
    let sample = load_process.run(profile)?;
    let difference = match (&sample.failure, &sample.capture) {
        (Some(failure), _) => Some(failure.clone()),
        (None, Some(capture)) => {
            let bodies = difference(capture, protocol, answer, body_bytes);
            let fields = || missing_field(capture).filter(|_| setup.route != RouteKind::Relay);
            bodies.or_else(fields)
        }
        (None, None) => Some("nothing was kept of it".to_owned()),
    };
    match difference {
        None => Ok(()),
        Some(what) => Err(TaskError::Failed(format!(
            "does not do as all must, asked for {answer:?} by {protocol:?} with a body of \
             {body_bytes} bytes: {what}"
        ))),
    }
}

/// Returns the difference of an exchange from the expected result.
fn difference(
    capture: &Capture,
    protocol: Protocol,
    answer: ResponseSize,
    body_bytes: usize,
) -> Option<String> {
    let Capture {
        answer_head,
        answer_body_bytes,
        answer_body_intact,
        request_body_bytes,
        ..
    } = capture;
    if *answer_body_bytes != answer.body_bytes() || !answer_body_intact {
        return Some("the answer's body is not the upstream's".to_owned());
    }
    let (name, expected) = CONTENT_TYPE;
    if protocol != Protocol::Http2 && header(answer_head, name) != Some(expected) {
        return Some(format!("the answer's {name} is not the upstream's"));
    }
    if *request_body_bytes != body_bytes {
        return Some(format!(
            "the upstream was sent {request_body_bytes} bytes of body"
        ));
    }
    None
}

/// Returns a header field that the proxy should have added to the upstream's request.
fn missing_field(capture: &Capture) -> Option<String> {
    let request_head = &capture.request_head;
    if header(request_head, "x-forwarded-for") != Some("127.0.0.1") {
        return Some("the upstream is not told the client's address".to_owned());
    }
    let correlation = header(request_head, "x-correlation-id");
    if correlation.is_none_or(str::is_empty) {
        return Some("the upstream is sent no correlation ID".to_owned());
    }
    None
}

/// Returns the value of a header field that occurs once.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut values = head.lines().filter_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    });
    values.next().filter(|_| values.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture() -> Capture {
        Capture {
            answer_head: "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_owned(),
            answer_body_bytes: 100,
            answer_body_intact: true,
            request_head: "GET /s HTTP/1.1\r\nX-Forwarded-For: 127.0.0.1\r\n\
                           X-Correlation-ID: 1\r\n\r\n"
                .to_owned(),
            request_body_bytes: 0,
        }
    }

    #[track_caller]
    fn differs(change: impl FnOnce(&mut Capture), what: &str) {
        let mut capture = capture();
        change(&mut capture);
        let found = difference(&capture, Protocol::Plain, ResponseSize::Small, 0)
            .or_else(|| missing_field(&capture));
        assert!(found.unwrap().contains(what));
    }

    #[test]
    fn an_exchange_as_it_must_be_passes() {
        assert_eq!(
            difference(&capture(), Protocol::Plain, ResponseSize::Small, 0),
            None
        );
        assert_eq!(missing_field(&capture()), None);
    }

    #[test]
    fn every_difference_is_reported() {
        differs(|c| c.answer_body_bytes = 99, "body is not");
        differs(|c| c.answer_body_intact = false, "body is not");
        differs(|c| c.answer_head.clear(), "content-type");
        differs(|c| c.request_body_bytes = 1, "1 bytes of body");
        differs(
            |c| c.request_head = c.request_head.replace("127.0.0.1", "127.0.0.2"),
            "address",
        );
        differs(
            |c| c.request_head = c.request_head.replace("ID: 1", "ID: "),
            "correlation",
        );
    }

    #[test]
    fn a_repeated_header_has_no_value() {
        assert_eq!(header("a: 1\r\nA: 2\r\n", "a"), None);
        assert_eq!(header("GET / HTTP/1.1\r\nA: 2\r\n", "a"), Some("2"));
    }
}
