//! One request all the way.

use crate::support::{start, to};
use proxy_testkit::{Upstream, get};

#[test]
fn a_request_reaches_its_upstream_and_the_answer_its_client() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream));

    let response = proxyd.connect().ask(get("/a?b=c", &[("X-Seen", "yes")]));

    assert_eq!((response.status, response.text().as_str()), (200, "hello"));
    let seen = upstream.last_request();
    assert_eq!(
        (seen.method.as_str(), seen.target.as_str()),
        ("GET", "/a?b=c")
    );
    assert_eq!(seen.fields.get("x-seen"), Some("yes"));
    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.number("status"), Some(200.0));
}
