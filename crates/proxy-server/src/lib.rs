//! Workers, listeners, reload, drain, hand-over.
