//! Cases: invalidation by unsafe methods.

use super::{Case, GET, Step, check, first};

const FRESH: Step = first(&["Cache-Control: max-age=60"]);
const DONE: Step = first(&[]).method("POST");
const AT_B: Step = FRESH.path("/b");

const INVALIDATION_BY_UNSAFE_METHODS: &[Case] = &[
    Case("POST", &[FRESH, DONE, FRESH]),
    Case("PUT", &[FRESH, DONE.method("PUT"), FRESH]),
    Case("DELETE", &[FRESH, DONE.method("DELETE").status(204), FRESH]),
    Case("unknown method", &[FRESH, DONE.method("M-SEARCH"), FRESH]),
    Case("redirect", &[FRESH, DONE.status(303), FRESH]),
    Case("refused", &[FRESH, DONE.status(403), GET]),
    Case("failed", &[FRESH, DONE.status(500), GET]),
    Case("safe method", &[FRESH, DONE.method("OPTIONS"), GET]),
    Case("other path", &[FRESH, DONE.path("/b"), GET]),
    Case(
        "Location",
        &[AT_B, DONE.answer(&["Location: /CASE/b"]), AT_B],
    ),
    Case(
        "Content-Location",
        &[
            AT_B,
            DONE.answer(&["Content-Location: http://a.test/CASE/b"]),
            AT_B,
        ],
    ),
    Case(
        "equivalent escapes",
        &[
            FRESH.path("/~b%C3%A9"),
            DONE.path("/%7eb%c3%a9"),
            FRESH.path("/~b%C3%A9"),
        ],
    ),
    Case(
        "Location with the default port",
        &[
            AT_B,
            DONE.answer(&["Location: http://A.test:80/CASE/b"]),
            AT_B,
        ],
    ),
    Case(
        "Location with another port",
        &[
            AT_B,
            DONE.answer(&["Location: http://a.test:443/CASE/b"]),
            GET.path("/b"),
        ],
    ),
    Case(
        "Location of another host",
        &[
            AT_B,
            DONE.answer(&["Location: http://b.test/CASE/b"]),
            GET.path("/b"),
        ],
    ),
];

#[test]
fn invalidation_by_unsafe_methods() {
    check("", INVALIDATION_BY_UNSAFE_METHODS);
}
