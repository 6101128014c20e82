//! Opening of the files that settings name, without waiting.
//!
//! Opening a named pipe waits for its other end, for ever if there is none, and with it a start, a check or a
//! reload. Input must be a regular file of bounded size ([`read`], [`RegularFile`]); a log that is a pipe must
//! have a reader ([`open_for_appending`]).

mod append;
mod regular_file;

pub use append::open_for_appending;
pub use regular_file::{ReadError, RegularFile, read};
