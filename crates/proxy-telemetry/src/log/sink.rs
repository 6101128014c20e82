//! Writing of whole lines to a destination.

use super::destination::{StreamLock, append_to};
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

/// Delay before the next attempt to write to a destination that is not ready.
const RETRY_DELAY: Duration = Duration::from_millis(5);

/// A failure of a log, reported once when it begins and once when it ends.
#[derive(Debug)]
pub enum LogError {
    /// Lines cannot be written and are lost.
    Write(io::Error),
    /// The file cannot be reopened; lines still go to the old file.
    Reopen(io::Error),
    /// Lines are written again.
    Recovered {
        /// Lines lost since writing began to fail.
        lost: u64,
    },
}

/// Maximum size of a write to a pipe that no write of another thread or process divides, in bytes:
/// `PIPE_BUF` of Linux.
const MAX_ATOMIC_BYTES: usize = 4_096;

/// A destination for lines.
pub(crate) struct Sink {
    out: Box<dyn Write + Send>,
    path: Option<PathBuf>,
    /// Held while lines are written to a stream that other logs of the process may share.
    turn: Option<&'static StreamLock>,
    /// Limits each write to the size that a pipe takes undivided.
    is_pipe: bool,
    /// The last write ended within a line.
    torn: bool,
}

/// A batch was not written completely.
#[derive(Debug)]
pub(crate) struct PartialWrite {
    /// Number of lines not written completely.
    pub(crate) lost: u64,
    pub(crate) cause: io::Error,
}

impl Sink {
    /// A sink for `out`; `path` is its file's path, if it is a file.
    pub(crate) fn new(out: Box<dyn Write + Send>, path: Option<PathBuf>) -> Self {
        Self {
            out,
            path,
            turn: None,
            is_pipe: false,
            torn: false,
        }
    }

    /// A sink on a stream that several logs share; their lines must not be mixed.
    pub(crate) fn shared(self, turn: Option<&'static StreamLock>, is_pipe: bool) -> Self {
        Self {
            turn,
            is_pipe,
            ..self
        }
    }

    /// Writes whole lines.
    pub(crate) fn write(&mut self, lines: &[u8]) -> Result<(), PartialWrite> {
        let turn = self.turn;
        let _turn = turn.map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
        let rest = &mut &*lines;
        self.end_torn_line()
            .and_then(|()| self.write_all(rest))
            .and_then(|()| self.out.flush())
            .map_err(|cause| PartialWrite {
                lost: line_count(rest),
                cause,
            })
    }

    /// Reopens the file, after it was moved away.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        if let Some(path) = &self.path {
            self.out = Box::new(append_to(path)?);
            self.torn = false;
        }
        Ok(())
    }

    /// Ends an incomplete line, so that the next one is separate.
    fn end_torn_line(&mut self) -> io::Result<()> {
        if self.torn {
            self.write_all(&mut &b"\n"[..])?;
        }
        Ok(())
    }

    /// Writes `rest`, and leaves in it the bytes that were not written.
    fn write_all(&mut self, rest: &mut &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            let lines = *rest;
            let piece = if self.is_pipe {
                undivided(lines)
            } else {
                lines
            };
            match self.out.write(piece) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(taken) => {
                    let (done, left) = rest.split_at_checked(taken).unwrap_or((rest, &[]));
                    self.torn = !done.ends_with(b"\n");
                    *rest = left;
                }
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => {
                    thread::park_timeout(RETRY_DELAY);
                }
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink")
            .field("path", &self.path)
            .field("torn", &self.torn)
            .finish_non_exhaustive()
    }
}

/// The whole lines that fit into one undivided write to a pipe, or the first line if it is longer.
fn undivided(lines: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| *byte == b'\n';
    let head = lines.get(..MAX_ATOMIC_BYTES).unwrap_or(lines);
    let end = head.iter().rposition(is_end);
    let end = end.or_else(|| lines.iter().position(is_end));
    let end = end.map_or(lines.len(), |end| end + 1);
    lines.get(..end).unwrap_or(lines)
}

fn line_count(bytes: &[u8]) -> u64 {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').count();
    u64::try_from(lines).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::mpsc::{Sender, channel};

    /// Accepts as many bytes as scripted, or fails; accepted bytes are sent to the channel.
    struct Scripted {
        script: VecDeque<Result<usize, ErrorKind>>,
        taken: Sender<Vec<u8>>,
    }

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let most = self.script.pop_front().unwrap_or(Ok(usize::MAX))?;
            let taken = most.min(bytes.len());
            self.taken.send(bytes[..taken].to_vec()).unwrap();
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(
        script: impl Into<VecDeque<Result<usize, ErrorKind>>>,
        batches: &[&str],
    ) -> (String, Vec<u64>) {
        let (taken, all) = channel();
        let script = script.into();
        let mut sink = Sink::new(Box::new(Scripted { script, taken }), None);
        let lost = batches
            .iter()
            .map(|batch| {
                sink.write(batch.as_bytes())
                    .map_or_else(|cut| cut.lost, |()| 0)
            })
            .collect();
        drop(sink);
        let bytes: Vec<u8> = all.iter().flatten().collect();
        (String::from_utf8(bytes).unwrap(), lost)
    }

    #[test]
    fn short_writes_and_interruptions_lose_nothing() {
        let script = [
            Ok(1),
            Err(ErrorKind::Interrupted),
            Ok(2),
            Err(ErrorKind::WouldBlock),
        ];

        let (text, lost) = written(script, &["one\ntwo\n"]);

        assert_eq!((text.as_str(), lost), ("one\ntwo\n", vec![0]));
    }

    #[test]
    fn no_write_to_a_pipe_ends_within_a_line_or_is_larger_than_the_pipe_takes_undivided() {
        let (taken, all) = channel();
        let script = VecDeque::new();
        let sink = Sink::new(Box::new(Scripted { script, taken }), None);
        let line = |length: usize| [vec![b'x'; length - 1], b"\n".to_vec()].concat();
        let lines = [1_000, 1_000, 2_096, 1, 5_000, 4_096, 4_095, 2].map(line);

        sink.shared(None, true).write(&lines.concat()).unwrap();

        let written: Vec<_> = all.iter().map(|piece| piece.len()).collect();
        assert_eq!(written, [4_096, 1, 5_000, 4_096, 4_095, 2]);
    }

    #[test]
    fn a_cut_line_counts_as_lost_and_the_next_one_is_whole() {
        let script = [Ok(6), Err(ErrorKind::StorageFull)];

        let (text, lost) = written(script, &["one\ntwo\nthree\n", "four\n"]);

        assert_eq!((text.as_str(), lost), ("one\ntw\nfour\n", vec![2, 0]));
    }

    #[test]
    fn a_cut_between_lines_needs_no_mending() {
        let script = [Ok(4), Err(ErrorKind::StorageFull)];

        let (text, lost) = written(script, &["one\ntwo\n", "three\n"]);

        assert_eq!((text.as_str(), lost), ("one\nthree\n", vec![1, 0]));
    }

    #[test]
    fn batches_are_lost_while_ending_a_torn_line_fails() {
        let full = || Err(ErrorKind::StorageFull);
        let script = [Ok(1), full(), full(), Ok(0)];

        let (text, lost) = written(script, &["one\n", "two\n", "a\nb\n", "three\n"]);

        assert_eq!((text.as_str(), lost), ("o\nthree\n", vec![1, 1, 2, 0]));
    }
}
