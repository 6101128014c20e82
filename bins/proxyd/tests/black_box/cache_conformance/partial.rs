//! Cases: partial responses.

use super::Expected::{Forwarded, Status, Stored};
use super::{Case, Step, asked, check, first};

const WHOLE: Step = first(&["Cache-Control: max-age=60", "ETag: \"a\""]);
const PART: Step = first(&["Cache-Control: max-age=60", "Content-Range: bytes 0-5/100"])
    .fields(&["Range: bytes=0-5"])
    .status(206);

const PARTS_OF_RESPONSES: &[Case] = &[
    Case(
        "range",
        &[
            WHOLE,
            asked(&["Range: bytes=2-3"], Status(206)),
            asked(&["Range: bytes=2-"], Status(206)),
            asked(&["Range: bytes=-1"], Status(206)),
            asked(&["Range: bytes=6-"], Status(416)),
            asked(&["Range: bytes=3-2"], Stored(0)),
            asked(&["Range: lines=0-1"], Stored(0)),
            asked(&["Range: bytes=0-1,3-4"], Stored(0)),
        ],
    ),
    Case(
        "If-Range",
        &[
            WHOLE,
            asked(&["Range: bytes=0-1", "If-Range: \"a\""], Status(206)),
            asked(&["Range: bytes=0-1", "If-Range: \"b\""], Stored(0)),
            asked(&["Range: bytes=0-1", "If-Range: W/\"a\""], Stored(0)),
        ],
    ),
    Case(
        "a part is not stored",
        &[PART, asked(&["Range: bytes=0-5"], Forwarded), WHOLE],
    ),
    Case("a part is not a whole", &[PART.fields(&[]), WHOLE]),
];

#[test]
fn parts_of_responses() {
    check("", PARTS_OF_RESPONSES);
}
