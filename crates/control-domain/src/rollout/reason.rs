//! Short forms of the reasons for which rollouts stop.

/// Starts of the gate's reasons, after the name of a route or a node.
const STARTS: [(&str, &str); 11] = [
    ("99 % of requests take up to ", "requests take too long"),
    ("a request takes ", "requests take too long"),
    ("half of its ", "requests take too long"),
    (
        "the first byte of a stream comes after ",
        "streams begin too late",
    ),
    ("answers are smaller: ", "answers have other sizes"),
    ("answers are larger: ", "answers have other sizes"),
    ("a node uses ", "nodes use too much CPU"),
    ("it uses ", "nodes use too much CPU"),
    (
        "connections are closed for their PROXY header ",
        "connections are closed for their PROXY header",
    ),
    ("TLS handshakes fail ", "TLS handshakes fail"),
    (
        "clients connect with TLS for ",
        "clients connect with TLS too seldom",
    ),
];
/// Words after the figures of the gate's other reasons. The first one comes before a name from reports.
const COUNTED: [(&str, &str); 5] = [
    (" fail with the reason ", "requests fail for a new reason"),
    (" end with 5xx", "too many requests fail"),
    (" are answered with ", "requests are answered differently"),
    (
        " are refused with 401 or 403",
        "requests are no longer refused",
    ),
    (
        " nodes did not switch in time",
        "its batch did not pass in time",
    ),
];
/// Prefix of a reason that a lack of data gives.
pub(super) const TOO_LITTLE_DATA: &str = "the gate has too little data: ";
/// Words between the name of a node and its first diagnostic.
pub(super) const REJECTED: &str = " rejected the bundle: ";
/// Reason of a rollout after its bundle was revoked.
pub(super) const REVOKED: &str = "the bundle was revoked";

/// Short form of a reason for a stop, as a clause; `None` for a condition on a metric and for unknown
/// reasons, which are complete as they are.
pub fn short_reason(reason: &str) -> Option<&'static str> {
    // Names, queries and diagnostics may contain any words: fixed words count only at their place.
    if reason.starts_with("node ") && reason.contains(REJECTED) {
        return Some("a node rejected the bundle");
    }
    if reason.starts_with(REVOKED) {
        return Some("its bundle was revoked");
    }
    if let Some(missing) = reason.strip_prefix(TOO_LITTLE_DATA) {
        return Some(short_lack(missing));
    }
    let is_named = reason.starts_with("route ") || reason.starts_with("node ");
    if !is_named {
        return measured(reason);
    }
    // A name may contain a colon itself.
    let rests = reason.match_indices(": ");
    let mut rests = rests.filter_map(|(at, colon)| reason.get(at + colon.len()..));
    rests.find_map(measured).or_else(|| mixed(reason))
}

fn measured(text: &str) -> Option<&'static str> {
    let start = STARTS.iter().find(|(start, _)| text.starts_with(start));
    if let Some((_, short)) = start {
        return Some(short);
    }
    let is_counted = text.starts_with(|first: char| first.is_ascii_digit());
    let clause = text.split(';').next().filter(|_| is_counted)?;
    let found = COUNTED.iter().find(|(words, _)| clause.contains(words));
    found.map(|(_, short)| *short)
}

/// A route that serves another share of the requests.
fn mixed(reason: &str) -> Option<&'static str> {
    let mut rests = reason.split(" serves ").skip(1);
    let is_share = rests.any(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    (reason.starts_with("route ") && is_share).then_some("requests go to other routes")
}

fn short_lack(missing: &str) -> &'static str {
    if missing.starts_with('`') {
        return "its metric has no value";
    }
    if missing.starts_with("the metrics server") {
        return "the metrics server gives no answer";
    }
    if missing.starts_with("node ") {
        return "a node serves almost nothing";
    }
    // The second one is of an earlier release.
    let unknown = [" report no traffic", " do not say what they serve"];
    if unknown.iter().any(|end| missing.ends_with(end)) {
        return "nodes report no traffic";
    }
    if missing.contains(": the gate needs ") {
        return "too few requests to judge by";
    }
    "too little data to judge by"
}
