//! Folders as request bodies, for `ctl bundle create -f DIR`.

use crate::ctl::error::CtlError;
use crate::ctl::operation::Operation;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::path::Path;

/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 16;

/// Reads a folder to the fields `files`, with texts by relative path, and `assets`, with binary
/// files.
pub(crate) fn from_folder(
    operation: &Operation,
    folder: &Path,
) -> Result<Map<String, Value>, CtlError> {
    let place = folder.display();
    let takes_files = operation.fields().iter().any(|field| field.name == "files");
    if !takes_files {
        return Err(CtlError::usage(format!("{place} is a folder: name a file")));
    }
    let (mut files, mut assets) = (Map::new(), Map::new());
    let mut add = |name: String, bytes: Vec<u8>| match String::from_utf8(bytes) {
        Ok(text) => files.insert(name, text.into()),
        Err(error) => assets.insert(name, STANDARD.encode(error.as_bytes()).into()),
    };
    let walked = walk(folder, "", MAX_DEPTH, &mut add);
    walked.map_err(|error| CtlError::usage(format!("{place}: {error}")))?;
    let mut fields = Map::from_iter([("files".to_owned(), Value::Object(files))]);
    if !assets.is_empty() {
        fields.insert("assets".to_owned(), Value::Object(assets));
    }
    Ok(fields)
}

/// Hidden files are skipped, because they belong to editors and version control.
fn walk<T>(
    folder: &Path,
    prefix: &str,
    depth: usize,
    add: &mut impl FnMut(String, Vec<u8>) -> T,
) -> io::Result<()> {
    if depth == 0 {
        return Err(io::Error::other(format!(
            "more than {MAX_DEPTH} folders within each other"
        )));
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let name = format!("{prefix}{name}");
        let path = entry.path();
        if path.is_dir() {
            walk(&path, &format!("{name}/"), depth - 1, add)?;
        } else {
            add(name, fs::read(path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctl::operation::{Field, Kind, RequestBody};

    #[test]
    fn a_folder_is_its_texts_and_assets() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("site/.git")).unwrap();
        fs::write(folder.path().join("proxy.kdl"), "listeners {}").unwrap();
        fs::write(folder.path().join("site/logo"), [0xff, 0]).unwrap();
        fs::write(folder.path().join("site/.git/config"), "no").unwrap();
        let field = Field {
            name: "files".to_owned(),
            kind: Kind::Json,
            required: true,
            about: String::new(),
            is_id: false,
            values: Vec::new(),
        };
        let mut operation = Operation {
            noun: "bundle".to_owned(),
            tag: "bundles".to_owned(),
            verb: "create".to_owned(),
            about: String::new(),
            method: http::Method::POST,
            path: String::new(),
            path_fields: Vec::new(),
            query: Vec::new(),
            body: RequestBody::None,
            is_raw: false,
            is_versioned: false,
            by_link: false,
        };
        let refused = from_folder(&operation, folder.path());
        assert!(refused.is_err(), "it takes no files");
        operation.body = RequestBody::Json(vec![field]);
        let fields = Value::Object(from_folder(&operation, folder.path()).unwrap());
        let expected = serde_json::json!({
            "files": {"proxy.kdl": "listeners {}"}, "assets": {"site/logo": "/wA="},
        });
        assert_eq!(fields, expected);
    }
}
