//! A compiled configuration and the decision it takes.
