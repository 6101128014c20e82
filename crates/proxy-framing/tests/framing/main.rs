//! Tests of the validators with tables of raw messages, every division into pieces, two other
//! parsers and the fuzz targets' corpora.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod cases;
mod drive;
mod legal_requests;
mod legal_responses;
mod refused_bodies;
mod refused_fields;
mod refused_lengths;
mod refused_lines;
mod refused_responses;

mod corpus;
mod decoding;
mod guards;
mod httparse_agrees;
mod hyper_agrees;
mod limits;
mod noted_lines;
mod splits;
mod tables;
