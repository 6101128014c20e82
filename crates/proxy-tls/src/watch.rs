//! Detection of changed files, and their replacement at run time.

use crate::certificate::{Certificate, SourceContents};
use crate::client::ClientTls;
use crate::error::TlsError;
use crate::file::Stamp;
use crate::server::ServerTls;
use crate::server::resolver::CertificateStore;
use crate::settings::CertificateSource;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Detects changed certificates, keys, OCSP responses and roots, and puts them into use.
///
/// Compares times, sizes and inodes, following links so that an exchanged directory link is
/// detected, then the contents of files that may have changed. Has no thread: its owner calls
/// [`poll`](Self::poll) every second.
#[derive(Debug, Default)]
pub struct Watcher {
    entries: Vec<Entry>,
}

/// A change found by a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// New contents are used for all further handshakes.
    Swapped {
        /// Path of the certificate or of the roots.
        file: PathBuf,
    },
    /// New contents are unusable, and the old ones stay in use. Reported once, after two polls,
    /// because a file may be half written or its key may follow later.
    Kept {
        /// Errors; at least one.
        faults: Vec<TlsError>,
    },
    /// After an error, the files contain again what is in use.
    Recovered {
        /// Path of the certificate or of the roots.
        file: PathBuf,
    },
    /// An OCSP response became stale, and is no longer stapled.
    StapleDropped {
        /// Path of the certificate.
        file: PathBuf,
    },
}

impl Watcher {
    /// Creates a watcher without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches the files of a listener.
    pub fn watch_server(&mut self, server: &Arc<ServerTls>) {
        let sources = server.store().sources();
        for (position, source) in sources.into_iter().enumerate() {
            let CertificateSource {
                cert_file,
                key_file,
                held,
                is_obtained: _,
                ocsp_file,
                server_names: _,
            } = source.clone();
            let files = held.is_none().then_some([cert_file, key_file]);
            let files: Vec<_> = files.into_iter().flatten().chain(ocsp_file).collect();
            if files.is_empty() {
                continue;
            }
            self.entries.push(Entry::new(
                files,
                Subject::Certificate {
                    store: Arc::clone(server.store()),
                    position,
                    source,
                },
            ));
        }
        if let Some(ca_file) = server.ca_file() {
            let subject = Subject::Authority(Arc::clone(server));
            self.entries
                .push(Entry::new(vec![ca_file.clone()], subject));
        }
    }

    /// Watches the files of an upstream.
    pub fn watch_client(&mut self, client: &Arc<ClientTls>) {
        let files = client.files();
        if !files.is_empty() {
            let subject = Subject::Upstream(Arc::clone(client));
            self.entries.push(Entry::new(files, subject));
        }
    }

    /// Errors of unusable files, as of the last poll.
    pub fn faults(&self) -> impl Iterator<Item = &TlsError> {
        self.entries.iter().flat_map(|entry| match &entry.state {
            FileState::Usable => &[][..],
            FileState::Unreported(faults) | FileState::Reported(faults) => faults,
        })
    }

    /// Checks all files, and puts changed contents into use.
    pub fn poll(&mut self, now: SystemTime) -> Vec<Change> {
        self.entries
            .iter_mut()
            .filter_map(|entry| entry.poll(now))
            .collect()
    }
}

/// Files that are used together.
#[derive(Debug)]
struct Entry {
    files: Vec<PathBuf>,
    subject: Subject,
    /// Metadata of the files when their contents were last known to be in use; set once every later
    /// write is certain to change it.
    settled: Option<Vec<Stamp>>,
    state: FileState,
}

#[derive(Debug)]
enum FileState {
    Usable,
    Unreported(Vec<TlsError>),
    Reported(Vec<TlsError>),
}

impl Entry {
    fn new(files: Vec<PathBuf>, subject: Subject) -> Self {
        Self {
            files,
            subject,
            settled: None,
            state: FileState::Usable,
        }
    }

    fn poll(&mut self, now: SystemTime) -> Option<Change> {
        // Read before the contents, so that the next poll detects a write in between.
        let stamps: Option<Vec<Stamp>> = self.files.iter().map(|file| Stamp::read(file)).collect();
        if stamps.is_some() && stamps == self.settled {
            return self.drop_stale(now);
        }
        match self.subject.refresh(now) {
            Err(faults) => {
                self.settled = None;
                self.state.fail(faults)
            }
            Ok(swapped) => {
                self.settled =
                    stamps.filter(|stamps| stamps.iter().all(|stamp| stamp.is_settled(now)));
                let state = mem::replace(&mut self.state, FileState::Usable);
                match (swapped, state) {
                    (true, _) => Some(Change::Swapped { file: self.file() }),
                    (false, FileState::Reported(_)) => {
                        Some(Change::Recovered { file: self.file() })
                    }
                    (false, FileState::Usable | FileState::Unreported(_)) => self.drop_stale(now),
                }
            }
        }
    }

    fn drop_stale(&self, now: SystemTime) -> Option<Change> {
        let dropped = self.subject.drop_stale_staple(now);
        dropped.then(|| Change::StapleDropped { file: self.file() })
    }

    fn file(&self) -> PathBuf {
        self.files.first().cloned().unwrap_or_default()
    }
}

impl FileState {
    fn fail(&mut self, faults: Vec<TlsError>) -> Option<Change> {
        match self {
            Self::Usable => {
                *self = Self::Unreported(faults);
                None
            }
            Self::Reported(known) if *known == faults => None,
            Self::Unreported(_) | Self::Reported(_) => {
                *self = Self::Reported(faults.clone());
                Some(Change::Kept { faults })
            }
        }
    }
}

/// Use of the watched files.
#[derive(Debug)]
enum Subject {
    Certificate {
        store: Arc<CertificateStore>,
        position: usize,
        source: CertificateSource,
    },
    Authority(Arc<ServerTls>),
    Upstream(Arc<ClientTls>),
}

impl Subject {
    /// Reads the files; returns true if changed contents are now in use.
    fn refresh(&self, now: SystemTime) -> Result<bool, Vec<TlsError>> {
        match self {
            Self::Authority(server) => server.reload_authority().map_err(|fault| vec![fault]),
            Self::Upstream(client) => client.reload(now),
            Self::Certificate {
                store,
                position,
                source,
            } => {
                let current = store.get(*position);
                let contents = SourceContents::read(source);
                if let Err(faults) = &contents
                    && current.is_none()
                    && source.is_awaited(faults)
                {
                    return Ok(false);
                }
                let contents = contents?;
                let digest = contents.digest();
                if current.as_ref().is_some_and(|one| one.digest() == digest) {
                    return Ok(false);
                }
                let next = Certificate::parse(source, &contents).map_err(|fault| vec![fault])?;
                let worse = current.and_then(|current| next.worse_than(&current, now));
                if let Some(fault) = worse {
                    return Err(vec![fault]);
                }
                store.replace(*position, next.without_stale_staple(now).unwrap_or(next));
                Ok(true)
            }
        }
    }

    fn drop_stale_staple(&self, now: SystemTime) -> bool {
        match self {
            Self::Certificate {
                store, position, ..
            } => store.drop_stale_staple(*position, now),
            Self::Authority(_) | Self::Upstream(_) => false,
        }
    }
}
