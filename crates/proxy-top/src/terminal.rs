//! The terminal: its mode, its size, its keys, and what is drawn on it.

use crate::screen::{Key, Size};
use crate::table::{Line, Tone};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::panic;
use std::thread;
use tokio::sync::mpsc;

/// The alternate screen, empty and without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
/// Maximum number of keys that wait for the screen.
const MAX_KEYS: usize = 64;
/// Size of a terminal that does not report its own.
const DEFAULT_SIZE: Size = Size {
    columns: 80,
    lines: 24,
};

/// A terminal in raw mode, on its alternate screen. Restored by drop, and before the message of a panic.
pub(crate) struct Terminal {
    before: Termios,
    has_colours: bool,
}

impl Terminal {
    /// Changes the terminal of standard input and output.
    pub(crate) fn open() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        let terminal = Self {
            before: before.clone(),
            has_colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            restore(&before);
            report(panic);
        }));
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        write(ENTER)?;
        Ok(terminal)
    }

    /// Its size at this moment.
    pub(crate) fn size() -> Size {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if 0 < size.ws_col && 0 < size.ws_row => Size {
                columns: size.ws_col.into(),
                lines: size.ws_row.into(),
            },
            Ok(_) | Err(_) => DEFAULT_SIZE,
        }
    }

    /// Draws all lines, in one write.
    pub(crate) fn draw(&self, lines: &[Line]) -> io::Result<()> {
        write(&frame(lines, self.has_colours))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore(&self.before);
    }
}

/// Leaves the alternate screen, and raw mode. A terminal that is gone needs neither.
fn restore(before: &Termios) {
    if tcsetattr(io::stdin(), OptionalActions::Flush, before).is_ok() {
        drop(write(LEAVE));
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The escape sequences that draw lines from the top, and clear the rest of the screen.
fn frame(lines: &[Line], has_colours: bool) -> String {
    let mut frame = String::new();
    for (number, line) in (1..).zip(lines) {
        _ = write!(frame, "\x1b[{number};1H");
        for cell in line {
            let colour = match cell.tone {
                Tone::Title => "\x1b[1m",
                Tone::Good if has_colours => "\x1b[32m",
                Tone::Warning if has_colours => "\x1b[33m",
                Tone::Bad if has_colours => "\x1b[31m",
                Tone::Plain | Tone::Good | Tone::Warning | Tone::Bad => "",
            };
            frame.push_str(colour);
            frame.push_str(&cell.text);
            if !colour.is_empty() {
                frame.push_str("\x1b[0m");
            }
        }
        frame.push_str("\x1b[K");
    }
    frame.push_str("\x1b[J");
    frame
}

/// The keys that are pressed from now on; closed at the end of standard input. The thread that reads them ends with the
/// process.
pub(crate) fn keys() -> mpsc::Receiver<Key> {
    let (sender, receiver) = mpsc::channel(MAX_KEYS);
    thread::spawn(move || {
        let mut bytes = [0; 64];
        while let Ok(length @ 1..) = io::stdin().read(&mut bytes) {
            for key in keys_of(bytes.get(..length).unwrap_or_default()) {
                if sender.blocking_send(key).is_err() {
                    return;
                }
            }
        }
    });
    receiver
}

/// The keys of some bytes of a terminal, without those that have no meaning here.
fn keys_of(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let [first, after @ ..] = bytes {
        let (key, rest) = match (first, after) {
            (b'\x1b', [b'[' | b'O', sequence @ ..]) => {
                let end = sequence.iter().position(|byte| matches!(byte, 0x40..=0x7e));
                let end = end.map_or(sequence.len(), |end| end + 1);
                let (sequence, rest) = sequence.split_at(end);
                (key_of_sequence(sequence), rest)
            }
            (byte, rest) => (key_of_byte(*byte), rest),
        };
        keys.extend(key);
        bytes = rest;
    }
    keys
}

/// The key of an escape sequence, without its beginning.
const fn key_of_sequence(sequence: &[u8]) -> Option<Key> {
    Some(match sequence {
        b"A" => Key::Up,
        b"B" => Key::Down,
        b"C" => Key::NextView,
        b"D" | b"Z" => Key::PreviousView,
        b"5~" => Key::PageUp,
        b"6~" => Key::PageDown,
        _ => return None,
    })
}

const fn key_of_byte(byte: u8) -> Option<Key> {
    Some(match byte {
        // Control-C is a key in raw mode.
        b'q' | b'Q' | 0x03 => Key::Quit,
        b'\t' => Key::NextView,
        b's' => Key::Sort,
        b'k' => Key::Up,
        b'j' => Key::Down,
        b'1'..=b'9' => Key::View((byte - b'1') as usize),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Cell;

    #[test]
    fn keys_are_letters_and_sequences() {
        let keys = keys_of(b"q\x03\ts\x1b[A\x1bOB\x1b[C\x1b[D\x1b[Z\x1b[5~\x1b[6~2x\x1b[1;5R\x1b");
        let expected = [
            Key::Quit,
            Key::Quit,
            Key::NextView,
            Key::Sort,
            Key::Up,
            Key::Down,
            Key::NextView,
            Key::PreviousView,
            Key::PreviousView,
            Key::PageUp,
            Key::PageDown,
            Key::View(1),
        ];
        assert_eq!(keys, expected);
        assert_eq!(keys_of(b"\x1b[12"), []);
    }

    #[test]
    fn a_frame_draws_each_line_in_its_place() {
        let lines = [
            vec![
                Cell::new("route".to_owned(), Tone::Title),
                Cell::plain("  5".to_owned()),
            ],
            vec![Cell::new("down".to_owned(), Tone::Bad)],
        ];
        assert_eq!(
            frame(&lines, true),
            "\x1b[1;1H\x1b[1mroute\x1b[0m  5\x1b[K\x1b[2;1H\x1b[31mdown\x1b[0m\x1b[K\x1b[J"
        );
        assert!(!frame(&lines, false).contains("[31m"));
    }
}
