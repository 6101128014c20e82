//! Parsing of certificates and keys in PEM, with precise errors.

use crate::error::TlsError;
use crate::file::Contents;
use rustls_pki_types::pem::{self, PemObject, SectionKind};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use zeroize::Zeroizing;

const BEGIN: &str = "-----BEGIN ";
/// Byte order mark that Windows editors write before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// OpenSSL's header for encrypted keys in formats before PKCS#8. [RFC 1421 §4.6.1.1]
const OLD_ENCRYPTION: &[u8] = b"Proc-Type: 4,ENCRYPTED";

/// Certificates of a file in order, at least one.
pub(crate) fn certificates(
    path: &Path,
    contents: &Contents,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    check_places(path, contents)?;
    let mut chain = Vec::new();
    for section in sections(contents) {
        let (kind, der) = section.map_err(|error| damage(path, &error))?;
        if kind == SectionKind::Certificate {
            chain.push(CertificateDer::from(der));
        } else {
            drop(Zeroizing::new(der));
        }
    }
    if chain.is_empty() {
        return Err(match labels(contents) {
            found if found.is_empty() => TlsError::NotPem {
                file: path.to_owned(),
            },
            found => TlsError::NoCertificate {
                file: path.to_owned(),
                found,
            },
        });
    }
    Ok(chain)
}

/// The first private key of the file.
pub(crate) fn private_key(
    path: &Path,
    contents: &Contents,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    let file = || path.to_owned();
    if contains(contents.bytes(), OLD_ENCRYPTION) {
        return Err(TlsError::EncryptedKey { file: file() });
    }
    check_places(path, contents)?;
    for section in sections(contents) {
        let (kind, der) = section.map_err(|error| damage(path, &error))?;
        if let Some(key) = PrivateKeyDer::from_pem(kind, der) {
            return Ok(key);
        }
    }
    let found = labels(contents);
    if found.iter().any(|label| label == "ENCRYPTED PRIVATE KEY") {
        return Err(TlsError::EncryptedKey { file: file() });
    }
    if found.is_empty() {
        return Err(TlsError::NotPem { file: file() });
    }
    Err(TlsError::NoKey {
        file: file(),
        found,
    })
}

fn sections(
    contents: &Contents,
) -> impl Iterator<Item = Result<(SectionKind, Vec<u8>), pem::Error>> {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(text(contents.bytes()))
}

/// Contents of a file without a byte order mark.
pub(crate) fn text(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// Refuses a section that the parser would skip silently because its `BEGIN` does not start a line:
/// after white space, after a second file's byte order mark, or directly after an `END` without a
/// line break, as in concatenated files.
fn check_places(path: &Path, contents: &Contents) -> Result<(), TlsError> {
    let lines = text(contents.bytes()).split(|byte| matches!(byte, b'\n' | b'\r'));
    for line in lines {
        let what = if line.starts_with(BYTE_ORDER_MARK) {
            "a byte order mark stands within it"
        } else if line.trim_ascii_start().len() < line.len()
            && line.trim_ascii_start().starts_with(BEGIN.as_bytes())
        {
            "a BEGIN line is indented"
        } else if line.starts_with(b"-----END ") && contains(line, BEGIN.as_bytes()) {
            "an END line and the next BEGIN are one line"
        } else {
            continue;
        };
        return Err(TlsError::DamagedPem {
            file: path.to_owned(),
            what,
        });
    }
    Ok(())
}

fn damage(path: &Path, error: &pem::Error) -> TlsError {
    let what = match error {
        pem::Error::MissingSectionEnd { .. } => "the last section has no END line",
        pem::Error::IllegalSectionStart { .. } => "a BEGIN line is malformed",
        pem::Error::Base64Decode(_) => "a section is not Base64",
        pem::Error::Io(_) | pem::Error::NoItemsFound | pem::Error::SectionTooLarge | _ => {
            "it cannot be read"
        }
    };
    TlsError::DamagedPem {
        file: path.to_owned(),
        what,
    }
}

/// The distinct labels of the file's sections.
fn labels(contents: &Contents) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for line in String::from_utf8_lossy(text(contents.bytes())).lines() {
        let Some(rest) = line.strip_prefix(BEGIN) else {
            continue;
        };
        let label = rest.trim_end().trim_end_matches('-');
        if !labels.iter().any(|known| known == label) {
            labels.push(label.to_owned());
        }
    }
    labels
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}
