//! Cases: lifetimes of responses.

use super::Expected::{Forwarded, Stored};
use super::{Case, GET, Step, asked, check, first};

const EXPLICIT_LIFETIMES: &[Case] = &[
    Case("max-age", &[first(&["Cache-Control: max-age=60"]), GET]),
    Case(
        "max-age of 0",
        &[first(&["Cache-Control: max-age=0"]), asked(&[], Forwarded)],
    ),
    Case(
        "s-maxage over max-age",
        &[first(&["Cache-Control: max-age=0, s-maxage=60"]), GET],
    ),
    Case(
        "s-maxage of 0",
        &[
            first(&["Cache-Control: max-age=60, s-maxage=0"]),
            asked(&[], Forwarded),
        ],
    ),
    Case(
        "Expires",
        &[first(&["Expires: Thu, 01 Jan 2099 00:00:00 GMT"]), GET],
    ),
    Case(
        "Expires in the past",
        &[
            first(&["Expires: Thu, 01 Jan 2015 00:00:00 GMT"]),
            asked(&[], Forwarded),
        ],
    ),
    Case(
        "Expires of 0",
        &[first(&["Expires: 0"]), asked(&[], Forwarded)],
    ),
    Case(
        "max-age over Expires",
        &[
            first(&[
                "Cache-Control: max-age=60",
                "Expires: Thu, 01 Jan 2015 00:00:00 GMT",
            ]),
            GET,
        ],
    ),
    Case(
        "Age over max-age",
        &[
            first(&["Cache-Control: max-age=60", "Age: 61"]),
            asked(&[], Forwarded),
        ],
    ),
    Case(
        "Age below max-age",
        &[first(&["Cache-Control: max-age=60", "Age: 9"]), GET],
    ),
    Case(
        "Age that is not a number",
        &[first(&["Cache-Control: max-age=60", "Age: abc"]), GET],
    ),
    Case(
        "first of two ages",
        &[
            first(&["Cache-Control: max-age=60", "Age: 100, 0"]),
            asked(&[], Forwarded),
        ],
    ),
    Case("quoted", &[first(&["Cache-Control: max-age=\"60\""]), GET]),
    Case(
        "negative",
        &[
            first(&["Cache-Control: max-age=-60"]),
            asked(&[], Forwarded),
        ],
    ),
    Case(
        "in another case",
        &[first(&["Cache-Control: MaX-aGe=60"]), GET],
    ),
    Case(
        "stricter of two",
        &[
            first(&["Cache-Control: max-age=60, max-age=0"]),
            asked(&[], Forwarded),
        ],
    ),
    Case(
        "no-store",
        &[
            first(&["Cache-Control: no-store, max-age=60"]),
            asked(&[], Forwarded),
        ],
    ),
    Case(
        "a directive in quotes is none",
        &[
            first(&["Cache-Control: extension=\"no-store, private\", max-age=60"]),
            GET,
        ],
    ),
    Case(
        "private",
        &[
            first(&["Cache-Control: private, max-age=60"]),
            asked(&[], Forwarded),
        ],
    ),
    Case(
        "private field",
        &[
            first(&[
                "Cache-Control: max-age=60, private=\"x-user\"",
                "X-User: ann",
            ]),
            asked(&[], Forwarded),
        ],
    ),
    Case(
        "no-cache without a validator",
        &[
            first(&["Cache-Control: no-cache, max-age=60"]),
            asked(&[], Forwarded),
        ],
    ),
    Case(
        "Set-Cookie",
        &[
            first(&["Cache-Control: public, max-age=60", "Set-Cookie: a=b"]),
            asked(&[], Forwarded),
        ],
    ),
];

#[test]
fn explicit_lifetimes() {
    check("", EXPLICIT_LIFETIMES);
}

const NONE: Step = first(&["Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT"]);

const RESPONSES_WITHOUT_A_LIFETIME: &[Case] = &[
    Case("no heuristic", &[NONE, asked(&[], Forwarded).answer(&[])]),
    Case(
        "public is not a lifetime",
        &[first(&["Cache-Control: public"]), asked(&[], Forwarded)],
    ),
];

const RESPONSES_WITHOUT_A_LIFETIME_2: &[Case] = &[
    Case("route", &[NONE, GET]),
    Case("listed status", &[NONE.status(404), GET]),
    Case("other status", &[NONE.status(302), asked(&[], Forwarded)]),
    Case(
        "own lifetime",
        &[first(&["Cache-Control: max-age=0"]), asked(&[], Forwarded)],
    ),
    Case(
        "cookie",
        &[
            NONE,
            asked(&["Cookie: sid=1"], Forwarded).answer(&[]),
            asked(&["Authorization: Basic eA=="], Forwarded).answer(&[]),
            GET,
        ],
    ),
    Case(
        "cookie first",
        &[
            NONE.fields(&["Cookie: sid=1"]),
            asked(&[], Forwarded).answer(&[]),
            asked(&[], Stored(1)),
        ],
    ),
];

#[test]
fn responses_without_a_lifetime() {
    check("", RESPONSES_WITHOUT_A_LIFETIME);
    check(
        "ttl-secs 60; statuses 200 404",
        RESPONSES_WITHOUT_A_LIFETIME_2,
    );
}
