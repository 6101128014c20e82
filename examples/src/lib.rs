//! Empty: the examples are the files next to `src`.
