//! Export of traces and metrics to a collector.

mod collectors;
mod metrics;
mod support;
mod traces;
