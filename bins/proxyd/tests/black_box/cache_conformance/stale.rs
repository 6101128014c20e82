//! Cases: stale responses.

use super::Expected::{Forwarded, Stored};
use super::{Case, Step, asked, check, first};

const LATE: Step = first(&["Cache-Control: max-age=1", "Age: 10", "ETag: \"a\""]);
const DOWN: Step = first(&[]).status(503);
const STANDS_IN: Step = DOWN.expected(Stored(0));

const STALE_BY_ITSELF: &[Case] = &[
    Case("not by itself", &[LATE, DOWN]),
    Case(
        "stale-if-error",
        &[
            first(&[
                "Cache-Control: max-age=1, stale-if-error=600",
                "Age: 10",
                "ETag: \"a\"",
            ]),
            STANDS_IN,
            STANDS_IN,
        ],
    ),
    Case(
        "after its time",
        &[
            first(&[
                "Cache-Control: max-age=1, stale-if-error=5",
                "Age: 10",
                "ETag: \"a\"",
            ]),
            DOWN,
        ],
    ),
    Case(
        "must-revalidate",
        &[
            first(&[
                "Cache-Control: max-age=1, must-revalidate, stale-if-error=600",
                "Age: 10",
                "ETag: \"a\"",
            ]),
            DOWN,
        ],
    ),
    Case(
        "another error",
        &[
            first(&[
                "Cache-Control: max-age=1, stale-if-error=600",
                "Age: 10",
                "ETag: \"a\"",
            ]),
            DOWN.status(501),
        ],
    ),
    Case(
        "too stale to be sent meanwhile",
        &[
            first(&[
                "Cache-Control: max-age=1, stale-while-revalidate=5",
                "Age: 60",
                "ETag: \"a\"",
            ]),
            asked(&[], Forwarded),
        ],
    ),
];

const STALE_BY_ROUTE: &[Case] = &[
    Case("stale-if-error", &[LATE, STANDS_IN]),
    Case(
        "own time",
        &[
            first(&[
                "Cache-Control: max-age=1, stale-if-error=0",
                "Age: 10",
                "ETag: \"a\"",
            ]),
            DOWN,
        ],
    ),
    Case(
        "s-maxage",
        &[
            first(&["Cache-Control: s-maxage=1", "Age: 10", "ETag: \"a\""]),
            DOWN,
        ],
    ),
    Case(
        "proxy-revalidate",
        &[
            first(&[
                "Cache-Control: max-age=1, proxy-revalidate",
                "Age: 10",
                "ETag: \"a\"",
            ]),
            DOWN,
        ],
    ),
];

#[test]
fn stale_responses() {
    check("", STALE_BY_ITSELF);
    check("stale-if-error-secs 600", STALE_BY_ROUTE);
}
