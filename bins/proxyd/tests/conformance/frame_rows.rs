//! Valid and invalid HTTP/2 frames, at the corners of the standard. [RFC 9113]
//!
//! A row that accepts another error code than the standard's has a comment with the reason.

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
