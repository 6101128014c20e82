//! Defects that a review against the contract has found.

use crate::support::{Config, refusal};
use proxy_testkit::{Gate, Upstream, get};

#[test]
fn a_number_that_exceeds_a_limit_is_more_than_it() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "done");
    for (limits, limit_type) in [
        ("max-connections-per-route 1", "connection_count"),
        (
            "max-in-flight-requests 1; max-queued-requests 0",
            "in_flight_requests",
        ),
    ] {
        let proxyd = Config::to(&upstream)
            .top(&format!("limits {{ {limits} }}"))
            .start();
        let mut first = proxyd.connect();
        first.send(get("/", &[]));
        upstream.wait_for_requests(1);

        let response = proxyd.connect().ask(get("/", &[]));

        let message = refusal(&response, 503, "LIMIT_EXCEEDED");
        let told = format!("Limit exceeded: {limit_type} - Current value 2 exceeds limit 1");
        assert_eq!(message, told);
        let record = proxyd.limit_record(&response.correlation_id());
        assert_eq!(
            (record.number("limit"), record.number("actual")),
            (Some(1.0), Some(2.0))
        );
    }
    gate.open();
}
