//! Session resumption: on any worker and after any reload, until the ticket key is dropped.

use crate::support::{Leaf, RecordingClient, Site, TICKETS_EVERY, connect, now, site, tickets};
use proxy_tls::{ServerTls, TicketKeys, TlsError, TlsVersion};
use rustls::client::{Resumption, Tls12Resumption};
use rustls::server::ProducesTickets;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, HandshakeKind, SupportedProtocolVersion};
use std::sync::Arc;
use std::time::Duration;

fn kind(client: &Arc<ClientConfig>, server: &ServerTls) -> HandshakeKind {
    let mut pair = connect(client, &server.config(), "a.example").unwrap();
    pair.exchange_data();
    pair.server.handshake_kind().unwrap()
}

/// Creates another listener with the same ticket keys, as after a reload.
fn reloaded(site: &Site, keys: &Arc<TicketKeys>) -> ServerTls {
    ServerTls::load(site.server.settings().clone(), keys, now()).unwrap()
}

/// Creates a client that can perform only one full handshake: its verifier works only once.
fn client(version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
    Arc::new(RecordingClient::with_all_schemes().config(&[version]))
}

/// Creates a client without earlier sessions.
fn new_client(site: &Site) -> Arc<ClientConfig> {
    let mut config = ClientConfig::clone(&site.client.config());
    config.resumption = Resumption::in_memory_sessions(8);
    Arc::new(config)
}

#[test]
fn a_session_resumes_on_every_listener_with_the_same_keys() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let keys = tickets();
    let (before, after) = (reloaded(&site, &keys), reloaded(&site, &keys));

    for version in [&TLS12, &TLS13] {
        let client = client(version);
        assert_eq!(kind(&client, &before), HandshakeKind::Full);
        assert_eq!(kind(&client, &after), HandshakeKind::Resumed);
        assert_eq!(kind(&client, &before), HandshakeKind::Resumed);
    }
}

#[test]
fn a_session_does_not_resume_under_other_keys() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let (one, other) = (reloaded(&site, &tickets()), reloaded(&site, &tickets()));

    let client = site.client.config();
    assert_eq!(kind(&client, &one), HandshakeKind::Full);
    assert_eq!(kind(&client, &other), HandshakeKind::Full);
}

#[test]
fn a_session_outlives_two_rotations_of_the_keys_and_not_three() {
    let site = site(&[Leaf::new(&["a.example"])]);
    for (rotations, expected) in [
        (1, HandshakeKind::Resumed),
        (2, HandshakeKind::Resumed),
        (3, HandshakeKind::Full),
    ] {
        let keys = tickets();
        let server = reloaded(&site, &keys);
        let client = new_client(&site);
        assert_eq!(kind(&client, &server), HandshakeKind::Full);
        for rotation in 1..=rotations {
            assert_eq!(keys.rotate(now() + TICKETS_EVERY * rotation), Ok(true));
        }
        assert_eq!(kind(&client, &server), expected, "{rotations} rotations");
    }
}

#[test]
fn keys_are_rotated_only_when_they_are_due() {
    let keys = tickets();
    let ticket = keys.encrypt(b"session").unwrap();

    assert_eq!(keys.rotate(now() + TICKETS_EVERY / 2), Ok(false));
    assert_eq!(keys.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
    // After a suspension of the machine, old keys are dropped at once.
    assert_eq!(keys.rotate(now() + TICKETS_EVERY * 3), Ok(true));
    assert_eq!(keys.decrypt(&ticket), None);
    // A clock that was set back must not keep a key in use.
    assert_eq!(keys.rotate(now()), Ok(true));
}

#[test]
fn a_ticket_that_was_tampered_with_opens_nothing() {
    let keys = tickets();
    let ticket = keys.encrypt(b"session").unwrap();

    for position in 0..ticket.len() {
        let mut forged = ticket.clone();
        forged[position] ^= 1;
        assert_eq!(keys.decrypt(&forged), None, "byte {position}");
        assert_eq!(keys.decrypt(&ticket[..position]), None, "{position} bytes");
    }
    assert_ne!(keys.encrypt(b"session").unwrap(), ticket);
}

#[test]
fn an_implausibly_large_session_gets_no_ticket() {
    assert_eq!(tickets().encrypt(&vec![0; 100_000]), None);
}

#[test]
fn the_lifetime_sent_to_clients_is_the_one_kept() {
    let lifetime_secs = u64::from(tickets().lifetime());

    assert_eq!(Duration::from_secs(lifetime_secs), TICKETS_EVERY * 2);
}

#[test]
fn a_rotation_interval_outside_its_range_is_refused() {
    for every in [
        Duration::ZERO,
        Duration::from_secs(59),
        Duration::from_hours(49),
    ] {
        let refused = TicketKeys::new(every, now()).unwrap_err();
        assert_eq!(refused, TlsError::TicketPace(every));
    }
}

#[test]
fn keys_are_not_in_debug_output() {
    assert_eq!(
        format!("{:?}", tickets()),
        "TicketKeys { every: 14400s, .. }"
    );
}

#[test]
fn a_tls_1_2_client_without_tickets_resumes_by_session_id() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let mut config = RecordingClient::with_all_schemes().config(&[&TLS12]);
    config.resumption =
        Resumption::in_memory_sessions(8).tls12_resumption(Tls12Resumption::SessionIdOnly);
    let client = Arc::new(config);

    assert_eq!(kind(&client, &site.server), HandshakeKind::Full);
    assert_eq!(kind(&client, &site.server), HandshakeKind::Resumed);
}

#[test]
fn a_listener_for_tls_1_3_alone_keeps_no_sessions() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let mut settings = site.server.settings().clone();
    settings.min_version = TlsVersion::V1_3;
    let server = ServerTls::load(settings, &tickets(), now()).unwrap();

    assert!(!server.config().session_storage.can_cache());
    let client = client(&TLS13);
    assert_eq!(kind(&client, &server), HandshakeKind::Full);
    assert_eq!(kind(&client, &server), HandshakeKind::Resumed);
}
