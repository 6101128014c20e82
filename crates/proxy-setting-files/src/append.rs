//! Opening of logs.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens the file at `path` for appending, and creates it if there is none. A named pipe is opened only while it
/// has a reader; writes to it wait as usual.
///
/// # Errors
/// Errors of opening; for a pipe without a reader, one that says so.
pub fn open_for_appending(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    let options = options.create(true).append(true);
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| {
        if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) {
            return io::Error::new(error.kind(), "a pipe that no process reads, or a socket");
        }
        error
    })?;
    let flags = fcntl_getfl(&file)?;
    fcntl_setfl(&file, flags.difference(OFlags::NONBLOCK))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::io::{Read, Write};

    #[test]
    fn a_pipe_needs_a_reader() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        let error = open_for_appending(&pipe).unwrap_err();
        assert!(error.to_string().contains("no process reads"), "{error}");

        let reading = OFlags::RDONLY | OFlags::NONBLOCK;
        let reader = rustix::fs::open(&pipe, reading, Mode::empty()).unwrap();
        let mut log = open_for_appending(&pipe).unwrap();
        assert!(!fcntl_getfl(&log).unwrap().contains(OFlags::NONBLOCK));
        log.write_all(b"a line\n").unwrap();
        drop(log);
        let mut text = String::new();
        File::from(reader).read_to_string(&mut text).unwrap();
        assert_eq!(text, "a line\n");
    }

    #[test]
    fn a_file_is_created_and_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for line in ["a\n", "b\n"] {
            let mut log = open_for_appending(&path).unwrap();
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"a\nb\n");
    }
}
