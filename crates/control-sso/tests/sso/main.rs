//! Sign-in through identity providers, from the outside: genuine, forged and mutated messages.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may stop"
)]

mod corpus;
mod fixture;
mod genuine_responses;
mod id_tokens;
mod metadata;
mod mutants;
mod requests;
mod response_forgeries;
mod token_signer;
