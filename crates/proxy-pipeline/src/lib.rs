//! One request from head to log line.
