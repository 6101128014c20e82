//! A full pipe.

use rustix::fs::{OFlags, fcntl_setfl};
use std::io::{ErrorKind, PipeReader, PipeWriter, Write};

/// A pipe without room for another byte: a blocking write to it returns when the reader reads or is
/// dropped.
#[must_use]
pub fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe can be made");
    fcntl_setfl(&writer, OFlags::NONBLOCK).expect("a pipe can be set");
    for bytes in [&[b'\n'; 4096][..], b"\n"] {
        loop {
            match writer.write(bytes) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("a pipe takes bytes until it is full: {error}"),
            }
        }
    }
    fcntl_setfl(&writer, OFlags::empty()).expect("a pipe can be set");
    (reader, writer)
}
