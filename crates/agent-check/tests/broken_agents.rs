//! The cases detect the fault of each broken agent, and none in a correct one.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests may fail loudly"
)]

mod flawed;

use agent_check::{Report, Settings, check};
use flawed::{Flaw, FlawedAgent};
use std::thread;
use std::time::Duration;

/// Each flaw with a case that finds it.
const FLAWS: &[(Flaw, &str)] = &[
    (Flaw::Silent, "handshake"),
    (Flaw::ClosesAtOnce, "handshake"),
    (Flaw::GarbageWelcome, "handshake"),
    (Flaw::OtherVersion, "handshake"),
    (Flaw::OtherEncoding, "handshake"),
    (Flaw::SpeaksFirst, "handshake"),
    (Flaw::AnyVersion, "handshake-versions"),
    (Flaw::StrictEvents, "unknown-fields"),
    (Flaw::WrongId, "request-headers"),
    (Flaw::WrongSeq, "request-body"),
    (Flaw::UnknownField, "request-headers"),
    (Flaw::ProtectedHeader, "request-headers"),
    (Flaw::DecidesTwice, "request-headers"),
    (Flaw::HalfDecision, "request-headers"),
    (Flaw::TooLongDecision, "request-headers"),
    (Flaw::Utf8Only, "bytes-of-headers"),
    (Flaw::RoundsIds, "greatest-id"),
    (Flaw::OneFrameOfEachRead, "interleaved-requests"),
    (Flaw::LateEdits, "response"),
    (Flaw::AnswersCompletion, "completion"),
    (Flaw::AnswersCancel, "cancel"),
    (Flaw::NeedsWholeFrames, "split-frames"),
    (Flaw::OneConnection, "several-connections"),
    (Flaw::KeepsBrokenConnections, "broken-payload"),
    (Flaw::NeedsNoHello, "no-hello"),
    (Flaw::DecidesParts, "body-parts"),
    (Flaw::DiesOfBrokenConnections, "unknown-type"),
];

fn checked(flaw: Flaw, timeout: Duration) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let agent = FlawedAgent::start(&folder.path().join("agent.sock"), flaw);
    check(&Settings {
        socket: agent.path().to_path_buf(),
        timeout,
        headers: Vec::new(),
    })
}

#[test]
fn a_correct_agent_passes_all_cases() {
    let report = checked(Flaw::None, Duration::from_secs(10));
    assert_eq!(report.failed, 0, "{report}");
    assert_eq!(report.passed, report.cases.len());
    assert!(report.passed > 20, "{report}");
}

#[test]
fn every_broken_agent_fails_the_case_of_its_flaw() {
    thread::scope(|scope| {
        for (flaw, case) in FLAWS {
            scope.spawn(move || {
                let report = checked(*flaw, Duration::from_millis(400));
                let mut failed = report.cases.iter().filter(|case| !case.passed);
                let is_found = failed.any(|found| found.name == *case && found.reason.is_some());
                assert!(is_found, "{flaw:?}\n{report}");
            });
        }
    });
}

#[test]
fn an_absent_agent_fails_the_first_case_and_ends_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let report = check(&Settings {
        socket: folder.path().join("absent.sock"),
        timeout: Duration::from_millis(100),
        headers: Vec::new(),
    });
    assert_eq!((report.passed, report.failed), (0, 1));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["cases"][0]["name"], "handshake");
    assert!(
        json["cases"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("cannot connect")
    );
}
