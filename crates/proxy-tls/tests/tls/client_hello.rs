//! Parsing of a `ClientHello` from received bytes.

use proxy_tls::{ClientHello, ClientHelloError, ClientHelloReader, MAX_CLIENT_HELLO_BYTES};
use rustls::client::{EchGreaseConfig, EchMode};
use rustls::crypto::aws_lc_rs::{default_provider, hpke};
use rustls::crypto::hpke::Hpke;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::sync::Arc;

fn hello_of(config: ClientConfig, name: &str) -> Vec<u8> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).unwrap();
    }
    bytes
}

fn config() -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

/// Creates a `ClientHello` with this server name.
fn hello(name: &str) -> Vec<u8> {
    hello_of(config(), name)
}

/// Divides the handshake message into records of `size` bytes.
fn in_records(hello: &[u8], size: usize) -> Vec<u8> {
    let (head, message) = hello.split_at(5);
    let records = message.chunks(size).flat_map(|piece| {
        let length = u16::try_from(piece.len()).unwrap().to_be_bytes();
        [&head[..3], &length, piece].concat()
    });
    records.collect()
}

fn read<'b>(
    pieces: impl IntoIterator<Item = &'b [u8]>,
) -> Result<Option<ClientHello>, ClientHelloError> {
    let mut reader = ClientHelloReader::default();
    for piece in pieces {
        if let Some(hello) = reader.read(piece)? {
            return Ok(Some(hello));
        }
    }
    Ok(None)
}

fn named(name: &str) -> ClientHello {
    ClientHello {
        server_name: Some(name.into()),
    }
}

#[test]
fn the_server_name_is_found_for_every_split() {
    let hello = hello("Mail.Example.com");
    let expected = named("mail.example.com");

    assert_eq!(read([&hello[..]]).unwrap(), Some(expected.clone()));
    assert_eq!(read(hello.chunks(1)).unwrap(), Some(expected.clone()));
    for size in [1, 4, 100] {
        let records = in_records(&hello, size);
        assert_eq!(
            read([&records[..]]).unwrap(),
            Some(expected.clone()),
            "{size}"
        );
        assert_eq!(
            read(records.chunks(3)).unwrap(),
            Some(expected.clone()),
            "{size}"
        );
    }
}

#[test]
fn a_hello_without_a_name_has_none() {
    assert_eq!(
        read([&hello("192.0.2.1")[..]]).unwrap(),
        Some(ClientHello { server_name: None })
    );
}

#[test]
fn an_encrypted_inner_hello_leaves_the_outer_name() {
    let suite = hpke::DH_KEM_X25519_HKDF_SHA256_AES_128;
    let (key, _) = suite.generate_key_pair().unwrap();
    let grease = EchGreaseConfig::new(suite, key);
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_ech(EchMode::Grease(grease))
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();

    let hello = hello_of(config, "outer.example");

    assert_eq!(read([&hello[..]]).unwrap(), Some(named("outer.example")));
}

#[test]
fn other_bytes_are_refused_and_endless_ones_too() {
    for garbage in [
        &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        b"SSH-2.0-OpenSSH_9\r\n",
        &[0; 64],
        &[0x16, 3, 1, 0, 4, 2, 0, 0, 0],
    ] {
        let found = read([garbage]);
        assert!(
            matches!(found, Err(ClientHelloError::Malformed(_))),
            "{garbage:?}"
        );
    }
    // The declared length of the message exceeds the maximum.
    let mut endless = vec![0x16, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff];
    endless.resize(5 + 0x4000, 0);
    let endless = endless.repeat(3);
    assert!(endless.len() > MAX_CLIENT_HELLO_BYTES);
    assert!(read(endless.chunks(1000)).is_err());
}

#[test]
fn no_bytes_make_it_panic_and_their_division_changes_nothing() {
    let whole = hello("a.example");
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).unwrap()
    };
    for _ in 0..4000 {
        let mut bytes = whole.clone();
        for _ in 0..=next(4) {
            let at = next(bytes.len());
            bytes[at] = u8::try_from(next(256)).unwrap();
        }
        bytes.truncate(1 + next(bytes.len()));
        let at_once = read([&bytes[..]]);
        let size = 1 + next(40);
        let divided = read(bytes.chunks(size));
        match (at_once, divided) {
            (Ok(one), Ok(other)) => assert_eq!(one, other, "{size} {bytes:?}"),
            (Err(_), Err(_)) => {}
            (one, other) => panic!("{one:?} {other:?} {size} {bytes:?}"),
        }
    }
}
