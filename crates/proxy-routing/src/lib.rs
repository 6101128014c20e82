//! Which route a request belongs to, and why not the others.
