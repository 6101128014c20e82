//! Cases: directives and credentials in requests.

use super::Expected::{Forwarded, Status, Stored};
use super::{Case, GET, Step, asked, check, first};

const FRESH: Step = first(&["Cache-Control: max-age=60"]);

const PRAGMA_AND_DIRECTIVES_OF_CLIENTS: &[Case] = &[
    Case(
        "Pragma of a response",
        &[
            first(&["Cache-Control: max-age=60", "Pragma: no-cache"]),
            GET,
        ],
    ),
    Case(
        "ignored Pragma",
        &[FRESH, asked(&["Pragma: no-cache"], Stored(0))],
    ),
    Case(
        "ignored no-cache",
        &[FRESH, asked(&["Cache-Control: no-cache"], Stored(0))],
    ),
    Case(
        "ignored only-if-cached",
        &[asked(&["Cache-Control: only-if-cached"], Forwarded)],
    ),
    Case(
        "no-store",
        &[asked(&["Cache-Control: no-store"], Forwarded), FRESH],
    ),
];

const PRAGMA_AND_DIRECTIVES_OF_CLIENTS_2: &[Case] = &[
    Case("Pragma", &[FRESH, asked(&["Pragma: no-cache"], Forwarded)]),
    Case(
        "Pragma beside Cache-Control",
        &[
            FRESH,
            asked(
                &["Pragma: no-cache", "Cache-Control: max-age=60"],
                Stored(0),
            ),
        ],
    ),
    Case(
        "no-cache",
        &[
            FRESH,
            asked(&["Cache-Control: no-cache"], Forwarded),
            asked(&[], Stored(1)),
        ],
    ),
    Case(
        "max-age of 0",
        &[
            first(&["Cache-Control: max-age=60", "Age: 5"]),
            asked(&["Cache-Control: max-age=0"], Forwarded),
        ],
    ),
    Case(
        "min-fresh",
        &[FRESH, asked(&["Cache-Control: min-fresh=600"], Forwarded)],
    ),
    Case(
        "max-stale",
        &[
            first(&["Cache-Control: max-age=60", "Age: 65", "ETag: \"a\""]),
            asked(&["Cache-Control: max-stale=600"], Stored(0)),
        ],
    ),
    Case(
        "only-if-cached",
        &[
            asked(&["Cache-Control: only-if-cached"], Status(504)),
            FRESH,
            asked(&["Cache-Control: only-if-cached"], Stored(1)),
        ],
    ),
];

#[test]
fn pragma_and_directives_of_clients() {
    check("", PRAGMA_AND_DIRECTIVES_OF_CLIENTS);
    check(
        "client-directives #true",
        PRAGMA_AND_DIRECTIVES_OF_CLIENTS_2,
    );
}

const WITH: &[&str] = &["Authorization: Basic eA=="];
const fn authorized(answer: &'static [&'static str]) -> Step {
    first(answer).fields(WITH)
}

const RESPONSES_TO_AUTHORIZATION: &[Case] = &[
    Case(
        "max-age",
        &[
            authorized(&["Cache-Control: max-age=60"]),
            asked(WITH, Forwarded),
        ],
    ),
    Case(
        "public",
        &[authorized(&["Cache-Control: max-age=60, public"]), GET],
    ),
    Case(
        "s-maxage",
        &[authorized(&["Cache-Control: s-maxage=60"]), GET],
    ),
    Case(
        "must-revalidate",
        &[
            authorized(&["Cache-Control: max-age=60, must-revalidate"]),
            GET,
        ],
    ),
    Case(
        "private",
        &[
            authorized(&["Cache-Control: max-age=60, private"]),
            asked(WITH, Forwarded),
        ],
    ),
    Case(
        "an authorized request does not spoil what is stored",
        &[
            first(&["Cache-Control: max-age=1", "Age: 10", "ETag: \"a\""]),
            authorized(&["Cache-Control: max-age=60", "ETag: \"b\""]),
            GET.status(304)
                .answer(&["Cache-Control: max-age=60", "ETag: \"a\""]),
        ],
    ),
];

#[test]
fn responses_to_authorization() {
    check("", RESPONSES_TO_AUTHORIZATION);
}
