//! Files that changed on disk, taken into use while connections run.

use crate::certificate::{Certificate, SourceContents};
use crate::client::ClientTls;
use crate::error::TlsError;
use crate::file::Stamp;
use crate::resolver::CertificateStore;
use crate::server::ServerTls;
use crate::settings::CertificateSource;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Notices new certificates, keys, staples and roots, and swaps them in.
///
/// It looks at times, sizes and inodes (through links, so that a directory swapped by link is
/// seen), reads only what they say may have changed, and compares content. It has no thread:
/// its owner calls [`poll`](Self::poll) every second.
#[derive(Debug, Default)]
pub struct Watcher {
    entries: Vec<Entry>,
}

/// What a poll found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// New content is in use, for every handshake from now on.
    Swapped {
        /// The certificate's or the roots' file.
        file: PathBuf,
    },
    /// New content cannot be used; what was there stays in use. Said once, and only
    /// when it lasted for two polls: a file may be half written, or a key not be there yet.
    Kept {
        /// Why; at least one.
        faults: Vec<TlsError>,
    },
    /// The content that is in use is back on disk after a fault.
    Recovered {
        /// The certificate's or the roots' file.
        file: PathBuf,
    },
    /// The OCSP response became stale and is no longer stapled.
    StapleDropped {
        /// The certificate's file.
        file: PathBuf,
    },
}

impl Watcher {
    /// A watcher of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches every file of a listener.
    pub fn watch_server(&mut self, server: &Arc<ServerTls>) {
        let sources = server.store().each(|one| one.source().clone());
        for (position, source) in sources.into_iter().enumerate() {
            let CertificateSource {
                cert_file,
                key_file,
                ocsp_file,
                server_names: _,
            } = source.clone();
            let files = [cert_file, key_file].into_iter().chain(ocsp_file);
            self.entries.push(Entry::new(
                files.collect(),
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

    /// Watches every file of an upstream.
    pub fn watch_client(&mut self, client: &Arc<ClientTls>) {
        let files = client.files();
        if !files.is_empty() {
            let subject = Subject::Upstream(Arc::clone(client));
            self.entries.push(Entry::new(files, subject));
        }
    }

    /// What is wrong with content on disk that is not in use for that reason, as of the last poll.
    pub fn faults(&self) -> impl Iterator<Item = &TlsError> {
        self.entries.iter().flat_map(|entry| match &entry.trouble {
            Trouble::None => &[][..],
            Trouble::Fresh(faults) | Trouble::Reported(faults) => faults,
        })
    }

    /// Looks at every file and takes new content into use.
    pub fn poll(&mut self, now: SystemTime) -> Vec<Change> {
        self.entries
            .iter_mut()
            .filter_map(|entry| entry.poll(now))
            .collect()
    }
}

/// Files that make sense only together.
#[derive(Debug)]
struct Entry {
    files: Vec<PathBuf>,
    subject: Subject,
    /// The files' stamps when their content was last known to be in use, once those are old
    /// enough for any later write to show.
    settled: Option<Vec<Stamp>>,
    trouble: Trouble,
}

#[derive(Debug)]
enum Trouble {
    None,
    Fresh(Vec<TlsError>),
    Reported(Vec<TlsError>),
}

impl Entry {
    fn new(files: Vec<PathBuf>, subject: Subject) -> Self {
        Self {
            files,
            subject,
            settled: None,
            trouble: Trouble::None,
        }
    }

    fn poll(&mut self, now: SystemTime) -> Option<Change> {
        // Taken before the content is read: what is written in between is seen next time.
        let stamps: Option<Vec<Stamp>> = self.files.iter().map(|file| Stamp::of(file)).collect();
        if stamps.is_some() && stamps == self.settled {
            return self.grow_old(now);
        }
        match self.subject.refresh(now) {
            Err(faults) => {
                self.settled = None;
                self.trouble.meet(faults)
            }
            Ok(swapped) => {
                self.settled =
                    stamps.filter(|stamps| stamps.iter().all(|stamp| stamp.is_settled(now)));
                let trouble = mem::replace(&mut self.trouble, Trouble::None);
                match (swapped, trouble) {
                    (true, _) => Some(Change::Swapped { file: self.file() }),
                    (false, Trouble::Reported(_)) => Some(Change::Recovered { file: self.file() }),
                    (false, Trouble::None | Trouble::Fresh(_)) => self.grow_old(now),
                }
            }
        }
    }

    fn grow_old(&self, now: SystemTime) -> Option<Change> {
        let dropped = self.subject.drop_stale_staple(now);
        dropped.then(|| Change::StapleDropped { file: self.file() })
    }

    fn file(&self) -> PathBuf {
        self.files.first().cloned().unwrap_or_default()
    }
}

impl Trouble {
    fn meet(&mut self, faults: Vec<TlsError>) -> Option<Change> {
        match self {
            Self::None => {
                *self = Self::Fresh(faults);
                None
            }
            Self::Reported(known) if *known == faults => None,
            Self::Fresh(_) | Self::Reported(_) => {
                *self = Self::Reported(faults.clone());
                Some(Change::Kept { faults })
            }
        }
    }
}

/// What the files are for.
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
    /// Reads the files; true if they held something new and it is in use now.
    fn refresh(&self, now: SystemTime) -> Result<bool, Vec<TlsError>> {
        match self {
            Self::Authority(server) => server.reload_authority().map_err(|fault| vec![fault]),
            Self::Upstream(client) => client.reload(now),
            Self::Certificate {
                store,
                position,
                source,
            } => {
                let contents = SourceContents::read(source)?;
                let Some(current) = store.get(*position) else {
                    return Ok(false);
                };
                if contents.digest() == current.digest() {
                    return Ok(false);
                }
                let next = Certificate::parse(source, &contents).map_err(|fault| vec![fault])?;
                if let Some(fault) = next.worse_than(&current, now) {
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
