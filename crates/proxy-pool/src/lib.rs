//! A connection to a target kept for the next request.
