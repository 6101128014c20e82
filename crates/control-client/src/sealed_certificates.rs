//! Stored certificates of the active bundle, sealed by a key of the machine, so that a node that
//! restarts while the control plane is unreachable can serve TLS.

use crate::bundle::{Certificates, HeldCertificate};
use crate::storage::{entries, make_folder, read_bounded, write};
use aws_lc_rs::rand;
use control_auth::{MasterKey, Sealed, Sealer};
use control_wire::{CertificateId, NodeId};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const FOLDER: &str = "certificates";
const KEY_FILE: &str = "machine.key";
const KEY_BYTES: usize = 32;
/// Maximum size of a file; a chain and its key have a few KiB.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Folder of sealed certificates, and the key file.
#[derive(Clone, Debug)]
pub(crate) struct SealedCertificates {
    folder: PathBuf,
    key_file: PathBuf,
    /// Whether a missing key file is created; a file named in the node's settings is the
    /// operator's.
    is_own_key: bool,
}

/// Contents of a file, as stored.
#[derive(Serialize, Deserialize)]
struct SealedFile {
    /// Name of the key that sealed it.
    key: String,
    sealed: String,
}

/// Contents of a file, before sealing.
#[derive(Serialize, Deserialize)]
struct Plain<'a> {
    chain_pem: &'a str,
    key_pem: &'a str,
}

#[derive(Deserialize)]
struct Opened {
    chain_pem: String,
    key_pem: String,
}

impl SealedCertificates {
    pub(crate) fn new(data_dir: &Path, key_file: Option<&Path>) -> Self {
        let own = data_dir.join(KEY_FILE);
        Self {
            folder: data_dir.join(FOLDER),
            is_own_key: key_file.is_none(),
            key_file: key_file.map_or(own, Path::to_owned),
        }
    }

    /// Loads the certificates that the node needs; `None` unless all of them can be opened.
    pub(crate) fn load(&self, node: NodeId, needed: &[CertificateId]) -> Option<Certificates> {
        let sealer = self.sealer(false).ok()?;
        let mut found = Certificates::default();
        for id in needed {
            let bytes = read_bounded(&self.folder.join(id.to_string()), MAX_FILE_BYTES).ok()?;
            let SealedFile { key, sealed } = serde_json::from_slice(&bytes).ok()?;
            let sealed = Sealed {
                master_key: key,
                text: sealed,
            };
            let opened = sealer.open(&place(node, *id), &sealed).ok()?;
            let Opened { chain_pem, key_pem } = serde_json::from_slice(&opened).ok()?;
            let held = HeldCertificate {
                chain_pem,
                key_pem: Zeroizing::new(key_pem),
            };
            found.0.insert(*id, held);
        }
        Some(found)
    }

    /// Stores these certificates and deletes all other ones.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the disk fails, or the key file is unusable.
    pub(crate) fn save(&self, node: NodeId, certificates: &Certificates) -> io::Result<()> {
        let stale = entries(&self.folder).filter(|file| {
            let name = file.file_name().and_then(|name| name.to_str());
            let id = name.and_then(|name| name.parse().ok());
            id.is_none_or(|id| !certificates.0.contains_key(&id))
        });
        for file in stale {
            fs::remove_file(file)?;
        }
        if certificates.0.is_empty() {
            return Ok(());
        }
        make_folder(&self.folder)?;
        let sealer = self.sealer(true)?;
        for (id, HeldCertificate { chain_pem, key_pem }) in &certificates.0 {
            let plain = Plain { chain_pem, key_pem };
            let plain = Zeroizing::new(serde_json::to_vec(&plain)?);
            let mut nonce = [0; 12];
            rand::fill(&mut nonce).map_err(|_| no_randomness())?;
            let sealed = sealer.seal(&place(node, *id), nonce, &plain);
            let Sealed { master_key, text } = sealed.map_err(io::Error::other)?;
            let file = SealedFile {
                key: master_key,
                sealed: text,
            };
            write(
                &self.folder.join(id.to_string()),
                &serde_json::to_vec(&file)?,
            )?;
        }
        Ok(())
    }

    fn sealer(&self, may_make_key: bool) -> io::Result<Sealer> {
        let key = match read_bounded(&self.key_file, MAX_FILE_BYTES) {
            Ok(key) => Zeroizing::new(key),
            Err(error)
                if error.kind() == ErrorKind::NotFound && self.is_own_key && may_make_key =>
            {
                let mut key = Zeroizing::new(vec![0; KEY_BYTES]);
                rand::fill(&mut key).map_err(|_| no_randomness())?;
                write(&self.key_file, &key)?;
                key
            }
            Err(error) => return Err(error),
        };
        if fs::metadata(&self.key_file)?.permissions().mode() & 0o077 != 0 {
            let why = "others can read the machine's key";
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        let master = MasterKey::new(&key).map_err(|_| {
            io::Error::new(
                ErrorKind::InvalidData,
                "the machine's key is not of 32 bytes",
            )
        })?;
        Sealer::new(vec![master]).map_err(io::Error::other)
    }
}

/// Context of the seal: a file opens only for its node and its certificate.
fn place(node: NodeId, id: CertificateId) -> String {
    format!("node {node} certificate {id}")
}

fn no_randomness() -> io::Error {
    io::Error::other("the system has no random bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const NODE: NodeId = NodeId(Uuid::from_u128(1));

    fn id(number: u128) -> CertificateId {
        CertificateId(Uuid::from_u128(number))
    }

    fn certificates(numbers: &[u128]) -> Certificates {
        let held = numbers.iter().map(|number| {
            let held = HeldCertificate {
                chain_pem: format!("chain {number}"),
                key_pem: Zeroizing::new(format!("private {number}")),
            };
            (id(*number), held)
        });
        Certificates(held.collect())
    }

    #[test]
    fn certificates_are_opened_by_their_node_on_their_machine_only() {
        let folder = tempfile::tempdir().unwrap();
        let kept = SealedCertificates::new(folder.path(), None);
        assert_eq!(kept.load(NODE, &[id(1)]), None);
        kept.save(NODE, &certificates(&[1, 2])).unwrap();
        assert_eq!(
            kept.load(NODE, &[id(1), id(2)]),
            Some(certificates(&[1, 2]))
        );
        assert_eq!(kept.load(NODE, &[id(1), id(3)]), None, "all or none");
        assert_eq!(kept.load(NodeId(Uuid::from_u128(9)), &[id(1)]), None);
        for file in entries(&folder.path().join(FOLDER)) {
            let text = fs::read_to_string(file).unwrap();
            assert!(!text.contains("private"), "{text}");
        }
        // A file renamed to another certificate's name must not open.
        let place = |number| folder.path().join(FOLDER).join(id(number).to_string());
        fs::copy(place(1), place(2)).unwrap();
        assert_eq!(kept.load(NODE, &[id(2)]), None);
        // Certificates that are no longer served must be deleted.
        kept.save(NODE, &certificates(&[1])).unwrap();
        assert_eq!(entries(&folder.path().join(FOLDER)).count(), 1);
        kept.save(NODE, &Certificates::default()).unwrap();
        assert_eq!(entries(&folder.path().join(FOLDER)).count(), 0);
    }

    #[test]
    fn a_copied_folder_opens_nothing_without_the_key_of_the_machine() {
        let (folder, machine) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = machine.path().join("key");
        let kept = SealedCertificates::new(folder.path(), Some(&key));
        let missing = kept.save(NODE, &certificates(&[1])).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound, "no key is made up");
        write(&key, &[7; KEY_BYTES]).unwrap();
        kept.save(NODE, &certificates(&[1])).unwrap();
        assert!(kept.load(NODE, &[id(1)]).is_some());
        let copied = SealedCertificates::new(folder.path(), None);
        assert_eq!(copied.load(NODE, &[id(1)]), None);
        write(&key, &[8; KEY_BYTES]).unwrap();
        assert_eq!(kept.load(NODE, &[id(1)]), None, "another key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        let readable = kept.save(NODE, &certificates(&[1])).unwrap_err();
        assert_eq!(readable.kind(), ErrorKind::PermissionDenied);
    }
}
