//! HTTP/2 as clients get it wrong, on purpose or not, and the corners where it is right. [RFC 9113]
//!
//! Where the standard names one error code and a row accepts another, the row says why.

mod compression;
mod connection;
mod content;
mod fields;
mod hosts;
mod pseudo;
mod settings;
mod sizes;
mod streams;
mod trailers;
mod tunnels;

use crate::frame_row::Row;

pub(crate) fn all() -> Vec<Row> {
    [
        connection::rows(),
        sizes::rows(),
        streams::rows(),
        settings::rows(),
        compression::rows(),
        pseudo::rows(),
        hosts::rows(),
        fields::rows(),
        content::rows(),
        trailers::rows(),
        tunnels::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
