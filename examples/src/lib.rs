//! Nothing: the examples are the files beside `src`.
