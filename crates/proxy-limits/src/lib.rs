//! How fast, how many, how large.
