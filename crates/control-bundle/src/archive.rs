//! Writing and reading of archives: tar within zstd, with names and bytes only.

use crate::bounds::{
    FREE_BYTES, MAX_ARCHIVE_BYTES, MAX_FILE_BYTES, MAX_FILES, MAX_RATIO, MAX_UNPACKED_BYTES,
};
use crate::error::{BundleError, NameError};
use crate::file_name::{check_folders, check_name, refused, shown};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use tar::{Archive, Builder, Entry, EntryType, Header};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

/// Compression level of zstd.
const LEVEL: i32 = 9;
/// Binary logarithm of the largest window that a decoder reserves: 8 MiB.
const WINDOW_LOG: u32 = 23;
/// The manifest and the bill of materials are stored in addition to the files.
const MAX_ENTRIES: usize = MAX_FILES + 2;
/// Permissions of every file in the archive.
const MODE: u32 = 0o644;
/// Block size of tar: a header is one block, and a file is padded to whole blocks.
const BLOCK_BYTES: usize = 512;
const END_BLOCKS: usize = 2;

/// Entries to write, by name.
pub(crate) type Entries<'a> = BTreeMap<String, Cow<'a, [u8]>>;

/// Writes the archive of `entries`, sorted by name, without times and owners. Compression is
/// streamed, so the files are in memory only once.
pub(crate) fn write(entries: &Entries<'_>) -> Result<Vec<u8>, BundleError> {
    check(entries)?;
    let compressor = Encoder::new(Vec::new(), LEVEL).map_err(|_| BundleError::Damaged)?;
    let mut tar = Builder::new(compressor);
    for (name, bytes) in entries {
        let mut header = Header::new_ustar();
        header
            .set_path(name)
            .map_err(|_| refused(name, NameError::TooLong))?;
        header.set_entry_type(EntryType::Regular);
        header.set_mode(MODE);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        tar.append(&header, &**bytes)
            .map_err(|_| BundleError::Damaged)?;
    }
    let compressor = tar.into_inner().map_err(|_| BundleError::Damaged)?;
    let archive = compressor.finish().map_err(|_| BundleError::Damaged)?;
    if archive.len() > MAX_ARCHIVE_BYTES {
        return Err(BundleError::ArchiveTooLarge);
    }
    let (max_bytes, error) = max_unpacked(archive.len());
    (tar_bytes(entries) <= max_bytes)
        .then_some(archive)
        .ok_or(error)
}

/// Reads the entries of an untrusted archive. Decompression is streamed, so the files are in memory
/// only once.
pub(crate) fn read(archive: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, BundleError> {
    if archive.len() > MAX_ARCHIVE_BYTES {
        return Err(BundleError::ArchiveTooLarge);
    }
    let (max_bytes, error) = max_unpacked(archive.len());
    let mut decoder = Decoder::with_buffer(archive).map_err(|_| BundleError::Damaged)?;
    decoder
        .window_log_max(WINDOW_LOG)
        .map_err(|_| BundleError::Damaged)?;
    let mut tar = decoder.take(max_bytes as u64 + 1);
    let entries = read_entries(&mut tar);
    let is_padding = ends_in_zeros(&mut tar);
    if tar.limit() == 0 {
        return Err(error);
    }
    let entries = entries?;
    check_folders(&entries)?;
    is_padding.then_some(entries).ok_or(BundleError::Damaged)
}

fn read_entries(tar: &mut impl Read) -> Result<BTreeMap<String, Vec<u8>>, BundleError> {
    let mut entries = BTreeMap::new();
    let mut tar = Archive::new(tar);
    // Raw: an extension header is an entry of a kind that is refused, and not read into memory.
    let found = tar.entries().map_err(|_| BundleError::Damaged)?.raw(true);
    for entry in found {
        let entry = entry.map_err(|_| BundleError::Damaged)?;
        let (name, bytes) = regular_file(entry)?;
        if entries.len() == MAX_ENTRIES {
            return Err(BundleError::TooManyFiles);
        }
        if entries.insert(name.clone(), bytes).is_some() {
            return Err(BundleError::Duplicate(name));
        }
    }
    Ok(entries)
}

/// Reads to the end; returns false if a byte is not zero or cannot be read.
fn ends_in_zeros(reader: &mut impl Read) -> bool {
    let mut buffer = [0; 4096];
    let mut are_zeros = true;
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return are_zeros,
            Ok(count) => are_zeros &= buffer.iter().take(count).all(|byte| *byte == 0),
            Err(_) => return false,
        }
    }
}

/// Size of the entries as a tar archive, with its end blocks.
fn tar_bytes(entries: &Entries<'_>) -> usize {
    let sizes = entries.values().map(|bytes| bytes.len());
    let blocks = sizes.map(|size| 1 + size.div_ceil(BLOCK_BYTES));
    (blocks.sum::<usize>() + END_BLOCKS) * BLOCK_BYTES
}

fn check(entries: &Entries<'_>) -> Result<(), BundleError> {
    if entries.len() > MAX_ENTRIES {
        return Err(BundleError::TooManyFiles);
    }
    for (name, bytes) in entries {
        check_name(name)?;
        if bytes.len() > MAX_FILE_BYTES {
            return Err(BundleError::FileTooLarge(name.clone()));
        }
    }
    let total: usize = entries.values().map(|bytes| bytes.len()).sum();
    if total > MAX_UNPACKED_BYTES {
        return Err(BundleError::TooLarge);
    }
    check_folders(entries)
}

/// Maximum unpacked size of an archive of this size, and the error beyond it.
fn max_unpacked(archive_bytes: usize) -> (usize, BundleError) {
    let by_ratio = FREE_BYTES + archive_bytes.saturating_mul(MAX_RATIO);
    if by_ratio < MAX_UNPACKED_BYTES {
        return (by_ratio, BundleError::Ratio);
    }
    (MAX_UNPACKED_BYTES, BundleError::TooLarge)
}

fn regular_file(mut entry: Entry<'_, impl Read>) -> Result<(String, Vec<u8>), BundleError> {
    let path = entry.path_bytes().into_owned();
    let header = entry.header();
    let is_regular = header.entry_type() == EntryType::Regular && header.as_ustar().is_some();
    let Ok(name) = String::from_utf8(path) else {
        return Err(refused("", NameError::Character));
    };
    if !is_regular {
        return Err(BundleError::NotAFile(shown(&name)));
    }
    check_name(&name)?;
    let size = usize::try_from(entry.size()).unwrap_or(usize::MAX);
    if size > MAX_FILE_BYTES {
        return Err(BundleError::FileTooLarge(name));
    }
    let mut bytes = Vec::new();
    entry
        .read_to_end(&mut bytes)
        .map_err(|_| BundleError::Damaged)?;
    (bytes.len() == size)
        .then_some((name, bytes))
        .ok_or(BundleError::Damaged)
}
