//! OCSP stapling: fresh responses are stapled, stale ones and those for other certificates are not.

use crate::support::{
    Ca, Dir, Leaf, RecordingClient, connect, load_server, now, server_settings, tickets,
};
use proxy_tls::{CertificateSource, Change, ServerTls, StapleError, TlsError, TlsWarning, Watcher};
use rustls::version::{TLS12, TLS13};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SERIAL: u8 = 42;
const GOOD: u8 = 0x80;
const REVOKED: u8 = 0xa1;
/// 1 January 2030, when the responses in this test become stale.
const NEXT_UPDATE: &[u8] = b"20300101000000Z";

fn next_update() -> SystemTime {
    UNIX_EPOCH + Duration::from_hours(525_960)
}

fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u8::try_from(content.len()).unwrap();
    let mut element = match length {
        0..128 => vec![tag, length],
        128.. => vec![tag, 0x81, length],
    };
    element.extend(content);
    element
}

/// Creates an `OCSPResponse` (RFC 6960) about one certificate, without a valid signature.
fn response(serial: u8, status: u8) -> Vec<u8> {
    let oid = der(6, &[&[0x2b]]);
    let algorithm = der(0x30, &[&oid]);
    let hash = der(4, &[&[1; 20]]);
    let id = der(0x30, &[&algorithm, &hash, &hash, &der(2, &[&[serial]])]);
    let time = der(0x18, &[NEXT_UPDATE]);
    let single = der(0x30, &[&id, &der(status, &[]), &time, &der(0xa0, &[&time])]);
    let responder = der(0xa2, &[&hash]);
    let data = der(0x30, &[&responder, &time, &der(0x30, &[&single])]);
    let basic = der(0x30, &[&data, &algorithm, &der(3, &[&[0]])]);
    let typed = der(0x30, &[&oid, &der(4, &[&basic])]);
    der(0x30, &[&der(0x0a, &[&[0]]), &der(0xa0, &[&typed])])
}

struct Stapled {
    dir: Dir,
    source: CertificateSource,
}

impl Stapled {
    fn new(response: &[u8]) -> Self {
        let dir = Dir::new();
        let leaf = Leaf::new(&["a.example"]);
        let issued = Ca::new("root").issue(&Leaf {
            serial: SERIAL,
            ..leaf
        });
        let source = CertificateSource {
            ocsp_file: Some(dir.write("leaf.ocsp", response)),
            ..dir.put("leaf", &issued)
        };
        Self { dir, source }
    }

    fn load(&self, now: SystemTime) -> Result<ServerTls, Vec<TlsError>> {
        let settings = server_settings(vec![self.source.clone()]);
        ServerTls::load(settings, &tickets(), now)
    }
}

/// Returns the OCSP response that a new client receives; empty if there is none.
fn staple(server: &ServerTls) -> Vec<u8> {
    let witness = RecordingClient::with_all_schemes();
    let client = Arc::new(witness.config(&[&TLS13]));
    connect(&client, &server.config(), "a.example").unwrap();
    witness.staple().unwrap().to_vec()
}

#[test]
fn a_fresh_response_is_stapled() {
    let response = response(SERIAL, GOOD);
    let server = Stapled::new(&response).load(now()).unwrap();

    for version in [&TLS12, &TLS13] {
        let witness = RecordingClient::with_all_schemes();
        let client = Arc::new(witness.config(&[version]));
        connect(&client, &server.config(), "a.example").unwrap();
        assert_eq!(witness.staple(), Some(&response[..]));
    }
    assert_eq!(server.warnings(now()), []);
}

#[test]
fn a_response_that_does_not_call_this_certificate_good_is_refused() {
    let refused = der(0x30, &[&der(0x0a, &[&[6]])]);
    let good = response(SERIAL, GOOD);
    let cases = [
        (response(SERIAL, REVOKED), StapleError::NotGood),
        (response(SERIAL + 1, GOOD), StapleError::OtherCertificate),
        (refused, StapleError::Refused),
        (good[..good.len() - 1].to_vec(), StapleError::Malformed),
        (
            b"-----BEGIN OCSP RESPONSE-----".to_vec(),
            StapleError::Malformed,
        ),
        (Vec::new(), StapleError::Malformed),
    ];
    for (response, reason) in &cases {
        let stapled = Stapled::new(response);
        let file = stapled.source.ocsp_file.clone().unwrap();
        let reason = *reason;
        assert_eq!(
            stapled.load(now()).unwrap_err(),
            [TlsError::BadStaple { file, reason }]
        );
    }
}

#[test]
fn a_stale_response_is_not_stapled() {
    let stapled = Stapled::new(&response(SERIAL, GOOD));
    let server = stapled.load(next_update()).unwrap();

    assert_eq!(staple(&server), []);
    let file = stapled.source.ocsp_file.clone().unwrap();
    let next_update = next_update();
    assert_eq!(
        server.warnings(next_update),
        [TlsWarning::StapleStale { file, next_update }]
    );
}

#[test]
fn a_response_that_becomes_stale_is_dropped_while_running() {
    let stapled = Stapled::new(&response(SERIAL, GOOD));
    let server = load_server(server_settings(vec![stapled.source.clone()]));
    let mut watcher = Watcher::new();
    watcher.watch_server(&server);

    let before = next_update() - Duration::from_secs(1);
    assert_eq!(watcher.poll(before), []);
    assert!(!staple(&server).is_empty());

    let file = stapled.source.cert_file.clone();
    assert_eq!(
        watcher.poll(next_update()),
        [Change::StapleDropped { file }]
    );
    assert_eq!(watcher.poll(next_update()), []);
    assert_eq!(staple(&server), []);

    let mut renewed = response(SERIAL, GOOD);
    let year = renewed
        .windows(4)
        .rposition(|text| text == b"2030")
        .unwrap();
    renewed[year..year + 4].copy_from_slice(b"2031");
    stapled.dir.write("leaf.ocsp", &renewed);
    let file = stapled.source.cert_file.clone();
    assert_eq!(watcher.poll(next_update()), [Change::Swapped { file }]);
    assert_eq!(staple(&server), renewed);
}
