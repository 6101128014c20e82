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
    let mut rest_bytes = u64::try_from(operation.max_body_bytes).unwrap_or(u64::MAX);
    let mut add = |name: String, path: &Path| -> io::Result<()> {
        rest_bytes = rest_bytes
            .checked_sub(fs::metadata(path)?.len())
            .ok_or_else(|| too_large(operation))?;
        match String::from_utf8(fs::read(path)?) {
            Ok(text) => files.insert(name, text.into()),
            Err(error) => assets.insert(name, STANDARD.encode(error.as_bytes()).into()),
        };
        Ok(())
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
fn walk(
    folder: &Path,
    prefix: &str,
    depth: usize,
    add: &mut impl FnMut(String, &Path) -> io::Result<()>,
) -> io::Result<()> {
    if depth == 0 {
        return Err(io::Error::other(format!(
            "more than {MAX_DEPTH} folders within each other"
        )));
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let fault = |cause: &str| io::Error::other(format!("{prefix}{}: {cause}", name.display()));
        let text = name
            .to_str()
            .ok_or_else(|| fault("the name is not UTF-8"))?;
        let own = format!("{prefix}{text}");
        let kind = fs::metadata(&path).map_err(|error| fault(&error.to_string()))?;
        if kind.is_dir() {
            walk(&path, &format!("{own}/"), depth - 1, add)?;
        } else if kind.is_file() {
            add(own, &path).map_err(|error| fault(&error.to_string()))?;
        } else {
            // Reading a pipe would wait for its writer.
            return Err(fault("is neither a file nor a folder"));
        }
    }
    Ok(())
}

fn too_large(operation: &Operation) -> io::Error {
    let max = operation.max_body_bytes / 1024;
    io::Error::other(format!("the files have more than {max} KiB"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctl::operation::{Field, Kind, RequestBody};
    use crate::ctl::operations;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::UnixListener;

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
            max_body_bytes: 64,
            is_raw: false,
            is_versioned: false,
            by_link: false,
        };
        let refused = from_folder(&operation, folder.path());
        assert!(refused.is_err(), "it takes no files");
        operation.body = RequestBody::Json(vec![field]);
        operation.max_body_bytes = 8;
        let large = from_folder(&operation, folder.path()).unwrap_err();
        assert!(large.to_string().contains("more than"), "{large}");
        operation.max_body_bytes = 64;
        let fields = Value::Object(from_folder(&operation, folder.path()).unwrap());
        let expected = serde_json::json!({
            "files": {"proxy.kdl": "listeners {}"}, "assets": {"site/logo": "/wA="},
        });
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_folder_with_other_than_files_is_refused() {
        let create = operations()
            .into_iter()
            .find(|one| one.noun == "bundle" && one.verb == "create");
        let create = create.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        let refused = from_folder(&create, folder.path()).unwrap_err().to_string();
        assert!(refused.contains("socket: is neither a file"), "{refused}");
        fs::remove_file(&socket).unwrap();
        let name = OsStr::from_bytes(b"a\xff");
        fs::write(folder.path().join(name), "").unwrap();
        let refused = from_folder(&create, folder.path()).unwrap_err().to_string();
        assert!(refused.contains("the name is not UTF-8"), "{refused}");
        let missing = from_folder(&create, &folder.path().join("none"));
        assert_eq!(missing.unwrap_err().exit_code(), 2);
    }
}
