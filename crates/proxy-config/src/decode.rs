//! Decoding of KDL nodes into the model: one file per block; all faults are collected before the
//! result is dropped.

mod block;
mod compression;
mod contents;
mod decoder;
mod field;
mod forwarding;
mod known;
mod names;
mod references;
mod shadow;
mod suggest;
mod title;
mod unknown;
mod values;

mod admin;
mod agents;
mod config_tests;
mod control_plane;
mod headers;
mod health_check;
mod limits;
mod listener_tls;
mod listeners;
mod matches;
#[cfg(test)]
mod model_tests;
mod observability;
mod policies;
mod routes;
mod system;
mod top;
mod upstreams;

pub(crate) use decoder::Decoder;
pub(crate) use top::model;
