//! Files of a folder as HTTP representations. Read `folder.rs` first.

mod folder;

mod beneath;
mod coding;
mod conditions;
mod content;
mod file_path;
mod range;
mod validators;

pub use content::Content;
pub use file_path::FilePath;
pub use folder::{Asked, Fault, Folder, Served};
