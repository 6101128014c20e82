//! Every metric name and log record, once.
