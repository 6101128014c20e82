//! Bounds of a bundle. They are the same on both sides: a packed bundle can be unpacked.

/// Bytes of an archive.
pub const MAX_ARCHIVE_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of the files of an archive together, with their headers.
pub const MAX_UNPACKED_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of one file.
pub const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;
/// Unpacked size that is always permitted, regardless of the archive's size.
pub const FREE_BYTES: usize = 1024 * 1024;
/// Bytes beyond [`FREE_BYTES`] that each byte of an archive may unpack to.
pub const MAX_RATIO: usize = 250;
/// Files, without the manifest and the bill of materials.
pub const MAX_FILES: usize = 4_096;
/// Bytes of a file's name with its folders.
pub const MAX_NAME_BYTES: usize = 200;
/// Parts of a file's name.
pub const MAX_DEPTH: usize = 16;
