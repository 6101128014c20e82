//! Serving of static files as HTTP representations. [`Directory`] is the entry point.

mod directory;

mod beneath;

mod conditions;
mod content;
mod file_path;
mod range;
mod validators;
mod variant;

pub use content::Content;
pub use directory::{Directory, FileError, FileRequest, FileResponse};
pub use file_path::FilePath;
