//! The targets behind a name, and which is next.
