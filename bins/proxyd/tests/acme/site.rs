//! A site with a certificate that `proxyd` obtains.

use proxy_testkit::{CurlAnswer, https};
use proxy_testkit::{EXTERNAL_ACCOUNT, Pebble};
use proxy_testkit::{Launch, Proxyd, Record};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_proxyd");

/// A site with a certificate that `proxyd` obtains. The folder for certificates outlives the process.
pub(crate) struct Site {
    pub(crate) folder: TempDir,
    directory: String,
    server_roots: PathBuf,
    pub(crate) http_port: u16,
    pub(crate) tls_port: u16,
}

impl Site {
    /// Creates a site that `pebble` can reach, and issues certificates for.
    pub(crate) fn new(pebble: &Pebble) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (_, key) = EXTERNAL_ACCOUNT;
        fs::write(folder.path().join("eab.key"), key).unwrap();
        Self {
            folder,
            directory: pebble.directory(),
            server_roots: pebble.server_roots(),
            http_port: pebble.http_port,
            tls_port: pebble.tls_port,
        }
    }

    /// Formats an `acme` block for `hosts`, with further settings.
    pub(crate) fn block(&self, hosts: &str, more: &str) -> String {
        let Self {
            directory,
            server_roots,
            ..
        } = self;
        format!(
            r#"acme {{
                hosts {hosts}
                email "ops@example.com"
                terms-agreed #true
                directory "{directory}"
                directory-ca-file "{}"
                storage "{}"
                {more}
            }}"#,
            server_roots.display(),
            self.storage().display()
        )
    }

    /// Formats a configuration with `acme` blocks.
    pub(crate) fn kdl(&self, blocks: &str) -> String {
        let Self {
            http_port,
            tls_port,
            ..
        } = self;
        format!(
            r#"
            listeners {{
                listener "web" {{ address "127.0.0.1:{http_port}" }}
                listener "secure" {{
                    address "127.0.0.1:{tls_port}"
                    protocol "https"
                    tls {{ {blocks} }}
                }}
            }}
            routes {{ route "all" {{ respond 200 "hello" }} }}
            system {{ worker-threads 2 }}
            "#
        )
    }

    /// Starts `proxyd` with `acme` blocks.
    #[track_caller]
    pub(crate) fn start(&self, blocks: &str) -> Proxyd {
        Launch::new(BINARY, &self.kdl(blocks)).start()
    }

    /// Requests the page of `host`.
    #[track_caller]
    pub(crate) fn ask(&self, host: &str, roots: &Path) -> CurlAnswer {
        https(host, self.tls_port, roots)
    }

    pub(crate) fn storage(&self) -> PathBuf {
        self.folder.path().join("acme")
    }

    /// Returns the files in the storage, with their modes.
    pub(crate) fn files(&self) -> Vec<(PathBuf, u32)> {
        let mut files = Vec::new();
        walk(&self.storage(), &mut files);
        files
    }

    /// Returns the only file with this ending.
    #[track_caller]
    pub(crate) fn file(&self, ending: &str) -> PathBuf {
        self.find(|path| path.ends_with(ending))
    }

    /// Returns the stored certificate with `host` as its first host.
    #[track_caller]
    pub(crate) fn file_of(&self, host: &str) -> PathBuf {
        let name = format!("/{host}-");
        self.find(|path| path.contains(&name) && path.ends_with("pem"))
    }

    #[track_caller]
    fn find(&self, is_wanted: impl Fn(&str) -> bool) -> PathBuf {
        let files = self.files();
        let mut files = files.into_iter().map(|(path, _)| path);
        let found = files.find(|path| is_wanted(&path.to_string_lossy()));
        found.unwrap_or_else(|| panic!("no such file"))
    }
}

fn walk(path: &Path, files: &mut Vec<(PathBuf, u32)>) {
    let metadata = fs::metadata(path).unwrap();
    files.push((path.to_owned(), metadata.permissions().mode() & 0o7777));
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            walk(&entry.unwrap().path(), files);
        }
    }
}

/// Waits until a certificate is issued and served.
#[track_caller]
pub(crate) fn wait_for_certificate(proxyd: &Proxyd) {
    let events = proxyd.stderr();
    let _obtained = events.find(0, |record| {
        record.text("message") == "a certificate was obtained"
    });
    let _served = events.find(0, |record| {
        record.text("message") == "a new certificate is in use"
    });
}

/// Waits for a failed attempt.
#[track_caller]
pub(crate) fn wait_for_failure(proxyd: &Proxyd) -> Record {
    proxyd.stderr().find(0, |record| {
        record.text("message") == "a certificate could not be obtained"
    })
}
