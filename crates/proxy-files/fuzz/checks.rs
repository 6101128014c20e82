//! Properties that hold for any bytes; shared by the fuzz targets and the test that replays their
//! corpora.

use http::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderName, HeaderValue, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{Method, StatusCode};
use proxy_files::{Directory, FileError, FilePath, FileRequest, FileResponse};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Component;
use std::sync::OnceLock;
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

/// Header names, selected by the first byte of a line.
const NAMES: [(u8, HeaderName); 7] = [
    (b'r', RANGE),
    (b'i', IF_RANGE),
    (b'm', IF_MATCH),
    (b'n', IF_NONE_MATCH),
    (b's', IF_MODIFIED_SINCE),
    (b'u', IF_UNMODIFIED_SINCE),
    (b'a', ACCEPT_ENCODING),
];

const TEXT: &[u8] = b"0123456789";
const CHANGED: Duration = Duration::from_secs(100);

/// `data` is a request's path: it names a file below the root, or none.
pub(crate) fn path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Some(file) = FilePath::parse(text) else {
        return;
    };
    let name = file.relative();
    assert!(
        name.components()
            .all(|one| matches!(one, Component::Normal(_)))
    );
    let bytes = name.as_os_str().as_bytes();
    assert!(!bytes.contains(&0) && !bytes.contains(&b'\\') && !bytes.starts_with(b"/"));
    let hidden = bytes
        .split(|byte| *byte == b'/')
        .filter(|name| name.starts_with(b"."));
    assert!(hidden.into_iter().all(|name| name == b".well-known"));
}

/// `data` is conditions, ranges and codings: the response is always part of the file.
pub(crate) fn request(data: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n') {
        let Some((first, value)) = line.split_first() else {
            continue;
        };
        let named = NAMES.into_iter().find(|(letter, _)| letter == first);
        let value = HeaderValue::from_bytes(value).ok();
        if let Some(((_, name), value)) = named.zip(value) {
            headers.append(name, value);
        }
    }
    let method = if data.first() == Some(&b'H') {
        Method::HEAD
    } else {
        Method::GET
    };
    let asked = FileRequest::new(&method, "/a.txt", None, &headers);
    let Some((_, folder)) = folder() else {
        return;
    };
    match folder.serve(&asked, UNIX_EPOCH + 1000 * CHANGED) {
        Ok(served) => check_response(&method, served),
        Err(fault) => assert!(matches!(
            fault,
            FileError::PreconditionFailed | FileError::OutOfRange { size_bytes: 0..=10 }
        )),
    }
}

fn check_response(method: &Method, served: FileResponse) {
    let FileResponse {
        status,
        headers,
        content,
    } = served;
    let number = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .map(number);
    if status == StatusCode::NOT_MODIFIED {
        assert!(content.is_none());
        return;
    }
    assert_eq!(content.is_some(), *method == Method::GET);
    let sent = content.and_then(|mut content| content.read().ok());
    if let Some(sent) = &sent {
        assert_eq!(Some(sent.len() as u64), length);
    }
    let range = headers
        .get(CONTENT_RANGE)
        .and_then(|value| value.to_str().ok());
    assert_eq!(range.is_some(), status == StatusCode::PARTIAL_CONTENT);
    let Some(range) = range.and_then(|range| range.strip_prefix("bytes ")) else {
        return;
    };
    let (span, size) = range.split_once('/').unwrap_or_default();
    let (first, last) = span.split_once('-').unwrap_or_default();
    let (first, last) = (number(first), number(last));
    assert!(first <= last && last < number(size));
    assert_eq!(length, Some(last - first + 1));
}

/// A folder with a file and its compressed variants.
fn folder() -> Option<&'static (TempDir, Directory)> {
    static MADE: OnceLock<Option<(TempDir, Directory)>> = OnceLock::new();
    let make = || {
        let place = tempfile::tempdir().ok()?;
        for (name, bytes) in [("a.txt", TEXT), ("a.txt.gz", b"gzip")] {
            let path = place.path().join(name);
            fs::write(&path, bytes).ok()?;
            File::options()
                .write(true)
                .open(path)
                .ok()?
                .set_modified(UNIX_EPOCH + CHANGED)
                .ok()?;
        }
        let folder = Directory {
            root: place.path().to_owned(),
            index: "index.html".into(),
            fallback: None,
            precompressed: true,
        };
        Some((place, folder))
    };
    MADE.get_or_init(make).as_ref()
}
