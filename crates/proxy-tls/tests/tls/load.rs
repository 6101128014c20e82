//! Loading of certificates: every error contains the path of the file.

use crate::support::{Ca, Dir, Issued, KeyKind, Leaf, now, server_settings, tickets};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proxy_tls::{CertificateSource, ClientAuth, ServerTls, ServerTlsSettings, TlsError};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use x509_parser::asn1_rs::{Any, FromDer};

fn issued() -> Issued {
    Ca::new("root").issue(&Leaf::new(&["a.example"]))
}

fn load(source: &CertificateSource) -> Result<ServerTls, Vec<TlsError>> {
    let settings = server_settings(vec![source.clone()]);
    ServerTls::load(settings, &tickets(), now())
}

fn fault(source: &CertificateSource) -> TlsError {
    let mut faults = load(source).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults.remove(0)
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

/// Returns the PKCS#1 or SEC1 key in a PKCS#8 one.
fn unwrapped(pkcs8: &[u8]) -> Vec<u8> {
    let (_, outer) = Any::from_der(pkcs8).unwrap();
    let (rest, _version) = Any::from_der(outer.data).unwrap();
    let (rest, _algorithm) = Any::from_der(rest).unwrap();
    let (_, octets) = Any::from_der(rest).unwrap();
    octets.data.to_vec()
}

#[test]
fn keys_load_as_pkcs8_pkcs1_and_sec1() {
    for (kind, label) in [
        (KeyKind::Rsa, "RSA PRIVATE KEY"),
        (KeyKind::Ecdsa, "EC PRIVATE KEY"),
    ] {
        let dir = Dir::new();
        let leaf = Leaf::new(&["a.example"]);
        let issued = Ca::new("root").issue(&Leaf { kind, ..leaf });
        let source = dir.put("leaf", &issued);
        assert!(load(&source).is_ok(), "{label} in PKCS#8");

        let inner = unwrapped(&issued.key.serialize_der());
        // OpenSSL writes the curve's parameters before the key.
        let text = format!("{}{}", pem("EC PARAMETERS", &[5, 0]), pem(label, &inner));
        dir.write("leaf.key", text);
        assert!(load(&source).is_ok(), "{label}");
    }
}

#[test]
fn certificate_and_key_may_share_a_file() {
    let dir = Dir::new();
    let issued = issued();
    let both = dir.write("both.pem", issued.key.serialize_pem() + &issued.cert);

    let source = CertificateSource {
        cert_file: both.clone(),
        key_file: both,
        held: None,
        is_obtained: false,
        ocsp_file: None,
        server_names: Vec::new(),
    };
    assert!(load(&source).is_ok());
}

#[test]
fn every_missing_file_is_named_at_once() {
    let dir = Dir::new();
    let [cert_file, key_file, ocsp_file, ca_file] =
        ["cert", "key", "ocsp", "ca"].map(|name| dir.path(name));
    let source = CertificateSource {
        cert_file: cert_file.clone(),
        key_file: key_file.clone(),
        held: None,
        is_obtained: false,
        ocsp_file: Some(ocsp_file.clone()),
        server_names: Vec::new(),
    };
    let settings = ServerTlsSettings {
        client_auth: ClientAuth::Required {
            ca_file: ca_file.clone(),
        },
        ..server_settings(vec![source])
    };

    let faults = ServerTls::load(settings, &tickets(), now()).unwrap_err();
    let expected = [cert_file, key_file, ocsp_file, ca_file].map(|file| TlsError::Missing { file });
    assert_eq!(faults, expected);
}

#[test]
fn a_path_that_is_not_a_file_is_refused() {
    let dir = Dir::new();
    let source = dir.put("leaf", &issued());
    let file = source.key_file.clone();

    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(fault(&source), TlsError::NotAFile { file: file.clone() });

    let below = CertificateSource {
        key_file: source.cert_file.join("key"),
        ..source.clone()
    };
    assert_eq!(
        fault(&below),
        TlsError::Unreadable {
            file: below.key_file.clone(),
            kind: ErrorKind::NotADirectory
        }
    );

    fs::remove_dir(&file).unwrap();
    dir.write("leaf.key", vec![b'\n'; 5 << 20]);
    let limit_bytes = 4 << 20;
    assert_eq!(fault(&source), TlsError::TooLarge { file, limit_bytes });
}

#[test]
fn a_certificate_file_without_a_certificate_is_explained() {
    let dir = Dir::new();
    let issued = issued();
    let source = dir.put("leaf", &issued);
    let file = || source.cert_file.clone();

    dir.write("leaf.crt", &issued.der);
    assert_eq!(fault(&source), TlsError::NotPem { file: file() });
    dir.write("leaf.crt", "");
    assert_eq!(fault(&source), TlsError::NotPem { file: file() });
    dir.write(
        "leaf.crt",
        issued.key.serialize_pem() + &pem("DH PARAMETERS", &[5, 0]),
    );
    assert_eq!(
        fault(&source),
        TlsError::NoCertificate {
            file: file(),
            found: vec!["PRIVATE KEY".to_owned(), "DH PARAMETERS".to_owned()]
        }
    );
    let text = "-----BEGIN CERTIFICATE-----\nno Base64!\n-----END CERTIFICATE-----\n";
    dir.write("leaf.crt", text);
    let what = "a section is not Base64";
    assert_eq!(fault(&source), TlsError::DamagedPem { file: file(), what });
    dir.write(
        "leaf.crt",
        issued.cert.clone() + &pem("CERTIFICATE", &[5, 0]),
    );
    let position = 2;
    assert_eq!(
        fault(&source),
        TlsError::BadCertificate {
            file: file(),
            position
        }
    );
}

#[test]
fn pem_loads_with_a_byte_order_mark_other_line_ends_and_text_around_it() {
    let dir = Dir::new();
    let source = dir.put("leaf", &issued());
    let (cert, key) = (fs::read(&source.cert_file), fs::read(&source.key_file));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (cert, key) = (text(cert.unwrap()), text(key.unwrap()));
    for (name, change) in [
        (
            "mark",
            (|pem| format!("\u{feff}{pem}")) as fn(&str) -> String,
        ),
        ("CRLF", |pem| pem.replace('\n', "\r\n")),
        ("CR", |pem| pem.replace('\n', "\r")),
        ("spaces", |pem| pem.replace('\n', "  \n")),
        ("blank lines", |pem| pem.replace('\n', "\n\n")),
        ("no line end", |pem| pem.trim_end().to_owned()),
        ("text", |pem| {
            format!("Bag Attributes\n    friendlyName: a\nsubject=CN = a\n{pem}end\n")
        }),
        ("all", |pem| {
            format!("\u{feff}issuer=\r\n{}", pem.replace('\n', " \r\n"))
        }),
    ] {
        dir.write("leaf.crt", change(&cert));
        dir.write("leaf.key", change(&key));
        assert!(load(&source).is_ok(), "{name}: {:?}", load(&source));
    }
}

#[test]
fn a_section_that_would_be_skipped_is_a_fault() {
    let dir = Dir::new();
    let issued = issued();
    let source = dir.put("leaf", &issued);
    let cert = issued.cert;
    for (text, what) in [
        (format!("  {cert}"), "a BEGIN line is indented"),
        (format!("{cert}\t{cert}"), "a BEGIN line is indented"),
        (
            format!("{cert}\u{feff}{cert}"),
            "a byte order mark stands within it",
        ),
        (
            format!("{}{cert}", cert.trim_end()),
            "an END line and the next BEGIN are one line",
        ),
    ] {
        dir.write("leaf.crt", text);
        let file = source.cert_file.clone();
        assert_eq!(fault(&source), TlsError::DamagedPem { file, what });
    }
}

#[test]
fn a_key_file_without_a_usable_key_is_explained() {
    let dir = Dir::new();
    let issued = issued();
    let source = dir.put("leaf", &issued);
    let file = || source.key_file.clone();

    dir.write("leaf.key", &issued.cert);
    let found = vec!["CERTIFICATE".to_owned()];
    assert_eq!(
        fault(&source),
        TlsError::NoKey {
            file: file(),
            found
        }
    );
    dir.write("leaf.key", pem("ENCRYPTED PRIVATE KEY", &[5, 0]));
    assert_eq!(fault(&source), TlsError::EncryptedKey { file: file() });
    let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n";
    dir.write("leaf.key", old);
    assert_eq!(fault(&source), TlsError::EncryptedKey { file: file() });
    dir.write("leaf.key", pem("PRIVATE KEY", &[5, 0]));
    assert_eq!(fault(&source), TlsError::BadKey { file: file() });
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let dir = Dir::new();
    let source = dir.put("leaf", &issued());
    dir.write("leaf.key", issued().key.serialize_pem());

    let CertificateSource {
        cert_file,
        key_file,
        held: _,
        is_obtained: _,
        ocsp_file: _,
        server_names: _,
    } = source.clone();
    let expected = TlsError::KeyMismatch {
        cert_file,
        key_file,
    };
    assert_eq!(fault(&source), expected);
}

#[test]
fn a_file_cut_anywhere_is_a_fault_and_never_a_panic() {
    let dir = Dir::new();
    let issued = issued();
    let source = dir.put("leaf", &issued);

    for length in 0..issued.cert.trim_end().len() - "-----END CERTIFICATE-----".len() {
        dir.write("leaf.crt", &issued.cert[..length]);
        assert!(load(&source).is_err(), "{length} bytes");
    }
}

#[test]
fn bytes_that_are_not_text_are_a_fault_and_never_a_panic() {
    let dir = Dir::new();
    let issued = issued();
    let source = dir.put("leaf", &issued);

    for position in (0..issued.der.len()).step_by(3) {
        let mut der = issued.der.clone();
        der[position] ^= 0xff;
        dir.write("leaf.crt", pem("CERTIFICATE", &der));
        drop(load(&source));
    }
}

#[test]
fn a_listener_without_a_certificate_is_refused() {
    let faults = ServerTls::load(server_settings(Vec::new()), &tickets(), now()).unwrap_err();

    assert_eq!(faults, [TlsError::NoCertificateConfigured]);
}

#[test]
fn faults_read_as_sentences() {
    let file = Path::new("/etc/key.pem").to_owned();
    let found = vec!["CERTIFICATE".to_owned()];
    let cases = [
        (
            TlsError::Missing { file: file.clone() },
            "/etc/key.pem: no such file",
        ),
        (
            TlsError::NoKey {
                file: file.clone(),
                found,
            },
            "/etc/key.pem: no private key in it, only CERTIFICATE",
        ),
        (
            TlsError::Expired {
                file,
                not_after: now(),
            },
            "/etc/key.pem: expired on Jan 15 08:00:00 2027 +00:00",
        ),
    ];
    for (fault, text) in cases {
        assert_eq!(fault.to_string(), text);
    }
}

#[test]
fn no_key_is_in_debug_output() {
    let dir = Dir::new();
    let issued = issued();
    let server = load(&dir.put("leaf", &issued)).unwrap();

    let shown = format!("{server:?}");
    let secret = unwrapped(&issued.key.serialize_der());
    let bytes: Vec<String> = secret[7..15].iter().map(ToString::to_string).collect();
    assert!(!shown.contains(&bytes.join(", ")));
}
