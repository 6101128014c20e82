//! Conformance of the cache to RFC 9111 and RFC 5861, in the categories of the HTTP working group's
//! `cache-tests`. A case is a sequence of requests to one path. An `Age` above the lifetime makes a
//! response stale at once.

mod conditions;
mod directives;
mod freshness;
mod invalidation;
mod partial;
mod selection;
mod stale;

use crate::support::{Config, request, target};
use proxy_testkit::Upstream;
use std::fmt::Write;

/// Name and requests of a case.
struct Case(&'static str, &'static [Step]);

/// A request, the upstream's response if it is forwarded, and the expected response.
#[derive(Clone, Copy)]
struct Step {
    method: &'static str,
    /// Path below that of the case.
    path: &'static str,
    fields: &'static [&'static str],
    status: u16,
    answer: &'static [&'static str],
    expected: Expected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// The upstream's response to this request.
    Forwarded,
    /// The response that the upstream sent to the request with this number, from 0.
    Stored(usize),
    /// This status, without a request to the upstream.
    Status(u16),
}

use Expected::{Forwarded, Status, Stored};

const GET: Step = Step {
    method: "GET",
    path: "",
    fields: &[],
    status: 200,
    answer: &["Cache-Control: max-age=600"],
    expected: Stored(0),
};

/// A request without a stored response, and the fields of the upstream's response.
const fn first(answer: &'static [&'static str]) -> Step {
    Step {
        answer,
        expected: Forwarded,
        ..GET
    }
}

/// A request with these fields.
const fn asked(fields: &'static [&'static str], expected: Expected) -> Step {
    Step {
        fields,
        expected,
        ..GET
    }
}

impl Step {
    const fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    const fn path(mut self, path: &'static str) -> Self {
        self.path = path;
        self
    }

    const fn fields(mut self, fields: &'static [&'static str]) -> Self {
        self.fields = fields;
        self
    }

    const fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    const fn answer(mut self, answer: &'static [&'static str]) -> Self {
        self.answer = answer;
        self
    }

    const fn expected(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }
}

/// Runs the cases through a proxy with these cache settings.
#[track_caller]
fn check(settings: &str, cases: &'static [Case]) {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.request() {
            let number = |name| -> usize {
                let value = request.fields.get(name);
                value.and_then(|value| value.parse().ok()).unwrap_or(0)
            };
            let (case, at) = (number("x-case"), number("x-step"));
            let step = &cases[case].1[at];
            let mut head = format!("HTTP/1.1 {} X\r\n", step.status);
            for field in step.answer {
                let field = field.replace("CASE", &case.to_string());
                let _written = write!(head, "{field}\r\n");
            }
            let body = if matches!(step.status, 204 | 304) {
                String::new()
            } else {
                format!("body {at}")
            };
            let length = body.len();
            if !matches!(step.status, 204 | 304) {
                let _written = write!(head, "Content-Length: {length}\r\n");
            }
            let is_head = request.method == "HEAD";
            let body = if is_head { "" } else { &*body };
            served.send(format!("{head}\r\n{body}"));
        }
    });
    let proxyd = Config::new()
        .route("all", &format!("upstream \"u\"; cache {{ {settings} }}"))
        .upstream("u", &target(&upstream))
        .start();
    for (case, Case(name, steps)) in cases.iter().enumerate() {
        let mut client = proxyd.connect();
        for (at, step) in steps.iter().enumerate() {
            let before = upstream.requests().len();
            let mut fields = format!("X-Case: {case}\r\nX-Step: {at}\r\n");
            for field in step.fields {
                let _written = write!(fields, "{field}\r\n");
            }
            let line = format!("{} /{case}{}", step.method, step.path);
            client.send(request(&line, &fields, ""));
            let response = if step.method == "HEAD" {
                client.response_to_head()
            } else {
                client.response()
            };
            let asked = upstream.requests().len() - before;
            let body = response.text();
            let place = format!("{name}, request {at}: {} {body:?}", response.status);
            match step.expected {
                Forwarded => {
                    assert_eq!((asked, response.status), (1, step.status), "{place}");
                    if step.method == "GET" && !matches!(step.status, 204 | 304) {
                        assert_eq!(body, format!("body {at}"), "{place}");
                    }
                }
                Stored(of) => {
                    assert_eq!(response.status, steps[of].status, "{place}");
                    assert_eq!(body, format!("body {of}"), "{place}");
                    assert_eq!(asked, usize::from(step.status != 200), "{place}");
                }
                Status(status) => {
                    assert_eq!((asked, response.status), (0, status), "{place}");
                }
            }
        }
    }
}
