//! Files of a folder as HTTP representations. Read `folder.rs` first.

mod directory;

mod beneath;
mod coding;
mod conditions;
mod content;
mod file_path;
mod range;
mod validators;

pub use content::Content;
pub use directory::{Directory, FileError, FileRequest, FileResponse};
pub use file_path::FilePath;
