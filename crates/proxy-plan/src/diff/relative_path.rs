//! Paths of files as text, the same for copies of a configuration in two folders.

use proxy_model::{FileId, Model};
use std::path::Path;

/// `path` as text, relative to the configuration's folder if it is inside.
pub(super) fn relative(model: &Model, path: &Path) -> String {
    let folder = Path::new(model.sources.name(FileId::default())).parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    let inside = folder.and_then(|folder| path.strip_prefix(folder).ok());
    inside.unwrap_or(path).to_string_lossy().into_owned()
}
