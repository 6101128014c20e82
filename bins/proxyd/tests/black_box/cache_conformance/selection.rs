//! Cases: selection of a stored response by `Vary`, method and status.

use super::Expected::{Forwarded, Status, Stored};
use super::{Case, GET, Step, asked, check, first};

const VARIES: &[&str] = &["Cache-Control: max-age=60", "Vary: Foo"];
const ONE: &[&str] = &["Foo: 1"];
const fn fetched(fields: &'static [&'static str], answer: &'static [&'static str]) -> Step {
    first(answer).fields(fields)
}

const SELECTION_BY_VARY: &[Case] = &[
    Case("same", &[fetched(ONE, VARIES), asked(ONE, Stored(0))]),
    Case(
        "other",
        &[fetched(ONE, VARIES), asked(&["Foo: 2"], Forwarded)],
    ),
    Case("absent", &[fetched(ONE, VARIES), asked(&[], Forwarded)]),
    Case(
        "newly there",
        &[fetched(&[], VARIES), asked(ONE, Forwarded)],
    ),
    Case(
        "both are stored",
        &[
            fetched(ONE, VARIES),
            fetched(&["Foo: 2"], VARIES),
            asked(ONE, Stored(0)),
            asked(&["Foo: 2"], Stored(1)),
        ],
    ),
    Case(
        "name in another case",
        &[
            fetched(ONE, &["Cache-Control: max-age=60", "Vary: fOO"]),
            asked(ONE, Stored(0)),
        ],
    ),
    Case(
        "second line",
        &[
            fetched(
                &["Foo: 1", "Bar: 1"],
                &["Cache-Control: max-age=60", "Vary: Foo", "Vary: Bar"],
            ),
            asked(&["Foo: 1", "Bar: 2"], Forwarded),
        ],
    ),
    Case(
        "everything",
        &[
            fetched(ONE, &["Cache-Control: max-age=60", "Vary: *"]),
            asked(ONE, Forwarded),
        ],
    ),
    Case(
        "everything, beside a name",
        &[
            fetched(ONE, &["Cache-Control: max-age=60", "Vary: Foo, *"]),
            asked(ONE, Forwarded),
        ],
    ),
    Case(
        "everything, in a second line",
        &[
            fetched(ONE, &["Cache-Control: max-age=60", "Vary: ", "Vary: *"]),
            asked(ONE, Forwarded),
        ],
    ),
    Case(
        "address of the client",
        &[
            fetched(&[], &["Cache-Control: max-age=60", "Vary: X-Forwarded-For"]),
            asked(&[], Forwarded),
        ],
    ),
    Case(
        "coding without Vary",
        &[
            fetched(
                &["Accept-Encoding: gzip"],
                &["Cache-Control: max-age=60", "Content-Encoding: gzip"],
            ),
            asked(&["Accept-Encoding: gzip"], Stored(0)),
            asked(&[], Forwarded),
        ],
    ),
];

#[test]
fn selection_by_vary() {
    check("", SELECTION_BY_VARY);
}

const FRESH: Step = first(&["Cache-Control: max-age=60"]);

const METHODS_AND_STATUSES: &[Case] = &[
    Case(
        "HEAD from a stored GET",
        &[FRESH, GET.method("HEAD").expected(Status(200))],
    ),
    Case("HEAD is not stored", &[FRESH.method("HEAD"), FRESH]),
    Case("POST is not stored", &[FRESH.method("POST"), FRESH]),
    Case("404", &[FRESH.status(404), GET]),
    Case(
        "301",
        &[
            first(&["Cache-Control: max-age=60", "Location: /x"]).status(301),
            GET,
        ],
    ),
    Case("302", &[FRESH.status(302), FRESH]),
    Case("500", &[FRESH.status(500), FRESH]),
    Case("unknown status", &[FRESH.status(299), FRESH]),
];

#[test]
fn methods_and_statuses() {
    check("", METHODS_AND_STATUSES);
}
