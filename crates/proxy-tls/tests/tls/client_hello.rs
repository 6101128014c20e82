//! Parsing of a `ClientHello` from received bytes.

use proptest::prelude::{any, prop, proptest};
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

/// A `ClientHello` of TLS 1.0 with these extensions, as devices without signature algorithms send it.
fn old_hello(extensions: Option<&[u8]>) -> Vec<u8> {
    let mut body = vec![3, 1];
    body.extend([7; 32]);
    // Session ID, cipher suites, compression methods.
    body.extend([0, 0, 2, 0, 0x2f, 1, 0]);
    if let Some(extensions) = extensions {
        body.extend(counted(extensions));
    }
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    let message = [&[1, 0][..], &length, &body].concat();
    [&[0x16, 3, 1][..], &counted(&message)].concat()
}

/// The bytes after their length.
fn counted(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    [&length[..], bytes].concat()
}

/// The extension `server_name` with these names, each with its type.
fn server_names(names: &[(u8, &[u8])]) -> Vec<u8> {
    let list = names.iter();
    let list = list.flat_map(|(kind, name)| [vec![*kind], counted(name)].concat());
    let list: Vec<u8> = list.collect();
    [&[0, 0][..], &counted(&counted(&list))].concat()
}

#[test]
fn a_hello_of_an_old_device_is_passed_on() {
    let without = Some(ClientHello { server_name: None });
    assert_eq!(read([&old_hello(None)[..]]).unwrap(), without);
    assert_eq!(read([&old_hello(Some(&[]))[..]]).unwrap(), without);
    let hello = old_hello(Some(&server_names(&[(0, b"a.example")])));
    assert_eq!(read([&hello[..]]).unwrap(), Some(named("a.example")));
}

#[test]
fn odd_names_are_routed_as_hosts_or_as_no_name() {
    let read_names = |names: &[(u8, &[u8])]| {
        let hello = old_hello(Some(&server_names(names)));
        read([&hello[..]]).map(|hello| hello.unwrap().server_name)
    };
    for (name, expected) in [
        (&b"a-.Example"[..], Some("a-.example")),
        (b"_sip.example", Some("_sip.example")),
        (b"a.example.", Some("a.example")),
        (b"device", Some("device")),
        (b"192.0.2.1", None),
        (b"::1", None),
        (b"a.example:443", None),
        (b"a..example", None),
        (b".", None),
        (b"caf\xc3\xa9.example", None),
        (b"a.example\0", None),
        (&[b'a'; 254], None),
    ] {
        let found = read_names(&[(0, name)]).unwrap();
        assert_eq!(found.as_deref(), expected, "{name:?}");
    }
    let other_type = read_names(&[(9, b""), (0, b"a.example")]).unwrap();
    assert_eq!(other_type.as_deref(), Some("a.example"));
    // The target might take another name than the route.
    for ambiguous in [
        &[(0, &b"a.example"[..]), (0, b"b.example")][..],
        &[(0, b"")],
        &[],
    ] {
        assert!(read_names(ambiguous).is_err(), "{ambiguous:?}");
    }
    let twice = server_names(&[(0, b"a.example")]).repeat(2);
    assert!(read([&old_hello(Some(&twice))[..]]).is_err());
}

#[test]
fn a_hello_may_be_as_long_as_the_maximum() {
    let padded = |padding: usize| {
        let name = server_names(&[(0, b"a.example")]);
        let padding = [&[0, 21][..], &counted(&vec![0; padding])].concat();
        old_hello(Some(&[name, padding].concat()))
    };
    let rest = MAX_CLIENT_HELLO_BYTES - padded(0).len();
    let expected = Some(named("a.example"));
    assert_eq!(read([&padded(rest)[..]]).unwrap(), expected);
    assert_eq!(read(padded(rest).chunks(1)).unwrap(), expected);
    for size in [1, usize::MAX] {
        let found = read(padded(rest + 1).chunks(size));
        assert_eq!(found, Err(ClientHelloError::TooLong));
    }
}

proptest! {
    #[test]
    fn the_start_of_a_hello_is_neither_complete_nor_refused(
        name in "[a-z0-9]{1,20}(\\.[a-z]{1,20}){0,3}",
        is_new in any::<bool>(),
        record_bytes in 1_usize..300,
        cut in any::<prop::sample::Index>(),
        piece_bytes in 1_usize..50,
    ) {
        let name = format!("{name}.example");
        let hello = if is_new {
            hello(&name)
        } else {
            old_hello(Some(&server_names(&[(0, name.as_bytes())])))
        };
        let records = in_records(&hello, record_bytes);
        let cut = &records[..cut.index(records.len())];
        assert_eq!(read([cut]), Ok(None));
        assert_eq!(read(cut.chunks(piece_bytes)), Ok(None));
        assert_eq!(read(records.chunks(piece_bytes)), Ok(Some(named(&name))));
    }
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
