//! Serving of a folder: from a request to a response.

use crate::beneath;

use crate::conditions::{Conditions, Verdict};
use crate::content::Content;
use crate::file_path::FilePath;
use crate::range::{Part, part};
use crate::validators::Validators;
use crate::variant::{VARIANTS, suffix};
use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap,
    LAST_MODIFIED, LOCATION, VARY,
};
use http::{HeaderValue, Method, StatusCode};
use proxy_coding::{Accepted, Coding};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A folder of static files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Path of the folder. Resolved for each request.
    pub root: PathBuf,
    /// The file sent for a folder.
    pub index: PathBuf,
    /// The file, relative to the root, sent for paths without a file.
    pub fallback: Option<PathBuf>,
    /// True if the `.br`, `.zst` and `.gz` variants of a file are sent to clients that accept them.
    pub precompressed: bool,
}

/// The parts of a request that matter. Only GET and HEAD request files.
#[derive(Clone, Debug)]
pub struct FileRequest {
    /// `None` if the path cannot name a file.
    path: Option<FilePath>,
    /// Target of the redirect for a folder requested without its slash.
    with_slash: Option<HeaderValue>,
    wants_bytes: bool,
    conditions: Conditions,
    accepted: Accepted,
}

/// The response to a request for a file.
#[derive(Debug)]
pub struct FileResponse {
    /// 200, 206, 301 or 304.
    pub status: StatusCode,
    /// Header fields that describe the file, including its length.
    pub headers: HeaderMap,
    /// The contents; `None` for HEAD and for a status without content.
    pub content: Option<Content>,
}

/// The reason why a request gets no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file does not exist.
    #[error("there is no such file")]
    Missing,
    /// The file is not readable, or is outside the root.
    #[error("the file may not be read, or lies outside the root")]
    Forbidden,
    /// A condition of the request does not hold.
    #[error("a condition of the request does not hold")]
    PreconditionFailed,
    /// The file has none of the requested bytes.
    #[error("the file ends before the range, after {size_bytes} bytes")]
    OutOfRange {
        /// Its size, in bytes.
        size_bytes: u64,
    },
    /// The operating system could not open or read the file.
    #[error("{0}")]
    Unreadable(io::ErrorKind),
}

impl FileRequest {
    /// The file request with this path and query, as sent.
    #[must_use]
    pub fn new(method: &Method, path: &str, query: Option<&str>, headers: &HeaderMap) -> Self {
        let file = FilePath::parse(path);
        let with_slash = file
            .as_ref()
            .filter(|file| !file.is_folder())
            .and_then(|_| with_slash(path, query));
        Self {
            path: file,
            with_slash,
            wants_bytes: *method == Method::GET,
            conditions: Conditions::from_request(method, headers),
            accepted: Accepted::from_headers(headers, &VARIANTS),
        }
    }
}

/// The path of a folder with its slash. It never begins with two slashes, which would name another
/// host.
fn with_slash(path: &str, query: Option<&str>) -> Option<HeaderValue> {
    let path = path.trim_start_matches('/');
    let (mark, query) = query.map_or(("", ""), |query| ("?", query));
    HeaderValue::try_from(format!("/{path}/{mark}{query}")).ok()
}

impl Directory {
    /// The response to `asked` at `now`. Blocks.
    ///
    /// # Errors
    /// The reason in [`FileError`].
    pub fn serve(&self, asked: &FileRequest, now: SystemTime) -> Result<FileResponse, FileError> {
        let root = beneath::root(&self.root);
        let root = root.map_err(|error| FileError::Unreadable(io::Error::from(error).kind()))?;
        let found = match &asked.path {
            Some(path) => self.find(&root, path),
            None => Err(FileError::Missing),
        };
        match (found, &self.fallback) {
            (Ok(EntryKind::Directory), _) => redirect(asked),
            (Ok(EntryKind::File(file, name)), _) => self.send(&root, file, &name, asked, now),
            (Err(FileError::Missing), Some(fallback)) => {
                let file = Opened::from_fd(beneath::file(&root, fallback)?)?.file()?;
                self.send(&root, file, fallback, asked, now)
            }
            (Err(fault), _) => Err(fault),
        }
    }

    fn find(&self, root: &OwnedFd, path: &FilePath) -> Result<EntryKind, FileError> {
        let name = if path.is_folder() {
            path.relative().join(&self.index)
        } else {
            path.relative().to_owned()
        };
        match Opened::from_fd(beneath::file(root, &name)?)? {
            Opened::File(file) => Ok(EntryKind::File(file, name)),
            Opened::Directory if path.is_folder() => Err(FileError::Missing),
            Opened::Directory => Ok(EntryKind::Directory),
        }
    }

    fn send(
        &self,
        root: &OwnedFd,
        original: Facts,
        name: &Path,
        asked: &FileRequest,
        now: SystemTime,
    ) -> Result<FileResponse, FileError> {
        let (file, coding) = if self.precompressed {
            compressed(root, original, name, asked.accepted)
        } else {
            (original, None)
        };
        let validators = Validators::new(file.changed, file.size_bytes, coding, now);
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, validators.tag.clone());
        if let Some(value) = validators.last_modified() {
            headers.insert(LAST_MODIFIED, value);
        }
        if self.precompressed {
            headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        }
        match asked.conditions.judge(&validators) {
            Verdict::Serve => {}
            Verdict::Failed => return Err(FileError::PreconditionFailed),
            Verdict::NotModified => {
                return Ok(FileResponse {
                    status: StatusCode::NOT_MODIFIED,
                    headers,
                    content: None,
                });
            }
        }
        headers.insert(CONTENT_TYPE, content_type(name));
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if let Some(coding) = coding {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        }
        let size_bytes = file.size_bytes;
        let (status, bytes) = match part(asked.conditions.range(&validators), size_bytes) {
            Part::Nowhere => return Err(FileError::OutOfRange { size_bytes }),
            Part::Whole => (StatusCode::OK, 0..size_bytes),
            Part::Some(bytes) => {
                let (first, last) = (bytes.start, bytes.end.saturating_sub(1));
                if let Ok(value) =
                    HeaderValue::try_from(format!("bytes {first}-{last}/{size_bytes}"))
                {
                    headers.insert(CONTENT_RANGE, value);
                }
                (StatusCode::PARTIAL_CONTENT, bytes)
            }
        };
        headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.end - bytes.start));
        let content = asked.wants_bytes.then(|| Content::new(file.file, &bytes));
        Ok(FileResponse {
            status,
            headers,
            content: content.transpose()?,
        })
    }
}

/// The kind of entry that a name refers to.
enum EntryKind {
    File(Facts, PathBuf),
    Directory,
}

/// An opened entry.
enum Opened {
    File(Facts),
    Directory,
}

/// An open file with its metadata.
struct Facts {
    file: File,
    size_bytes: u64,
    changed: Option<SystemTime>,
}

impl Opened {
    fn from_fd(file: OwnedFd) -> Result<Self, FileError> {
        let file = File::from(file);
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Ok(Self::Directory);
        }
        if !metadata.is_file() {
            return Err(FileError::Forbidden);
        }
        Ok(Self::File(Facts {
            size_bytes: metadata.len(),
            changed: metadata.modified().ok(),
            file,
        }))
    }

    fn file(self) -> Result<Facts, FileError> {
        match self {
            Self::File(facts) => Ok(facts),
            Self::Directory => Err(FileError::Missing),
        }
    }
}

/// The time by which a variant may seem older than its original: copying programs often keep whole
/// seconds only, and not for every file.
const CLOCK_GRAIN: Duration = Duration::from_secs(1);

/// The best variant that the client accepts, else the original. A variant that is older than its
/// original is not used.
fn compressed(
    root: &OwnedFd,
    original: Facts,
    name: &Path,
    accepted: Accepted,
) -> (Facts, Option<Coding>) {
    for coding in accepted.iter() {
        let mut neighbour = name.as_os_str().to_owned();
        neighbour.push(suffix(coding));
        let opened = beneath::file(root, Path::new(&neighbour));
        let opened = opened.map_err(FileError::from).and_then(Opened::from_fd);
        if let Ok(Opened::File(file)) = opened
            && !is_older(file.changed, original.changed)
        {
            return (file, Some(coding));
        }
    }
    (original, None)
}

/// Returns true if a file changed at `time` is older than one changed at `original`, beyond the
/// precision of a coarse clock; true without a time.
fn is_older(time: Option<SystemTime>, original: Option<SystemTime>) -> bool {
    match (time, original) {
        (Some(time), Some(original)) => original
            .duration_since(time)
            .is_ok_and(|older| CLOCK_GRAIN < older),
        (None, Some(_)) => true,
        (_, None) => false,
    }
}

fn redirect(asked: &FileRequest) -> Result<FileResponse, FileError> {
    let location = asked.with_slash.clone().ok_or(FileError::Missing)?;
    let mut headers = HeaderMap::new();
    headers.insert(LOCATION, location);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
    Ok(FileResponse {
        status: StatusCode::MOVED_PERMANENTLY,
        headers,
        content: None,
    })
}

/// The type for the name's extension. Text types are declared as UTF-8.
fn content_type(name: &Path) -> HeaderValue {
    let Some(kind) = mime_guess::from_path(name).first_raw() else {
        return HeaderValue::from_static("application/octet-stream");
    };
    // The other name of this type is obsolete. [RFC 9239 §6]
    let kind = match kind {
        "application/javascript" => "text/javascript",
        kind => kind,
    };
    if !kind.starts_with("text/") {
        return HeaderValue::from_static(kind);
    }
    HeaderValue::try_from(format!("{kind}; charset=utf-8"))
        .unwrap_or_else(|_| HeaderValue::from_static(kind))
}

impl From<Errno> for FileError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::INVAL => Self::Missing,
            // The last one is the result of opening a socket.
            Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::LOOP | Errno::NXIO => {
                Self::Forbidden
            }
            _ => Self::Unreadable(io::Error::from(error).kind()),
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error.kind())
    }
}
