//! Cases: conditional requests and validation.

use super::Expected::{Forwarded, Status, Stored};
use super::{Case, GET, Step, asked, check, first};
use crate::support::{Config, target};
use proxy_testkit::{Upstream, get};

const TAGGED: Step = first(&[
    "Cache-Control: max-age=60",
    "ETag: \"a\"",
    "Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT",
]);

const CONDITIONS_OF_CLIENTS: &[Case] = &[
    Case(
        "tag",
        &[TAGGED, asked(&["If-None-Match: \"a\""], Status(304))],
    ),
    Case(
        "weak tag",
        &[TAGGED, asked(&["If-None-Match: W/\"a\""], Status(304))],
    ),
    Case(
        "list",
        &[TAGGED, asked(&["If-None-Match: \"b\", \"a\""], Status(304))],
    ),
    Case("any", &[TAGGED, asked(&["If-None-Match: *"], Status(304))]),
    Case(
        "other tag",
        &[TAGGED, asked(&["If-None-Match: \"b\""], Stored(0))],
    ),
    Case(
        "tag without quotes",
        &[TAGGED, asked(&["If-None-Match: a"], Stored(0))],
    ),
    Case(
        "date",
        &[
            TAGGED,
            asked(
                &["If-Modified-Since: Thu, 01 Jan 2015 00:00:00 GMT"],
                Status(304),
            ),
            asked(
                &["If-Modified-Since: Thu, 01 Jan 2015 00:00:01 GMT"],
                Status(304),
            ),
            asked(
                &["If-Modified-Since: Wed, 31 Dec 2014 23:59:59 GMT"],
                Stored(0),
            ),
        ],
    ),
    Case(
        "tag before date",
        &[
            TAGGED,
            asked(
                &[
                    "If-None-Match: \"b\"",
                    "If-Modified-Since: Thu, 01 Jan 2015 00:00:00 GMT",
                ],
                Stored(0),
            ),
        ],
    ),
    Case(
        "of the fetch",
        &[TAGGED.fields(&["If-None-Match: \"b\""]), GET],
    ),
    Case(
        "precondition",
        &[TAGGED, asked(&["If-Match: \"a\""], Forwarded)],
    ),
];

#[test]
fn conditions_of_clients() {
    check("", CONDITIONS_OF_CLIENTS);
}

const STALE: Step = first(&["Cache-Control: max-age=1", "Age: 10", "ETag: \"a\""]);
const VALID: Step = GET
    .status(304)
    .answer(&["Cache-Control: max-age=60", "ETag: \"a\""])
    .expected(Stored(0));

const VALIDATION_OF_STALE_RESPONSES: &[Case] = &[
    Case("not modified", &[STALE, VALID, GET]),
    Case(
        "modified",
        &[STALE, asked(&[], Forwarded), asked(&[], Stored(1))],
    ),
    Case(
        "gone",
        &[
            STALE,
            first(&["Cache-Control: no-store"]).status(404),
            STALE,
        ],
    ),
    Case("failure", &[STALE, first(&[]).status(503), VALID]),
    Case(
        "no-cache with a tag",
        &[
            first(&["Cache-Control: no-cache, max-age=60", "ETag: \"a\""]),
            VALID.answer(&["Cache-Control: no-cache", "ETag: \"a\""]),
            VALID,
            GET,
        ],
    ),
    Case(
        "private from now on",
        &[
            STALE,
            VALID.answer(&["Cache-Control: private", "ETag: \"a\""]),
            asked(&[], Forwarded),
        ],
    ),
];

#[test]
fn validation_of_stale_responses() {
    check("", VALIDATION_OF_STALE_RESPONSES);
}

/// The tag would identify the wrong body. [RFC 9111 §4.3.4]
#[test]
fn a_304_about_another_response_changes_no_field() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.request() {
            served.send(match request.fields.get("if-none-match") {
                None => {
                    "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nCache-Control: max-age=0\r\nX-Of: a\r\n\
                     Content-Length: 4\r\n\r\nbody"
                }
                Some(_) => "HTTP/1.1 304 Not Modified\r\nETag: \"b\"\r\nX-Of: b\r\n\r\n",
            });
        }
    });
    let proxyd = Config::new()
        .route("all", "upstream \"u\"; cache")
        .upstream("u", &target(&upstream))
        .start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let answer = client.ask(get("/", &[]));

        assert_eq!(answer.status, 200);
        assert_eq!(answer.text(), "body");
        assert_eq!(answer.fields.get("etag"), Some("\"a\""));
        assert_eq!(answer.fields.get("x-of"), Some("a"));
    }
    assert_eq!(upstream.requests().len(), 2);
}
