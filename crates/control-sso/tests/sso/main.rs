//! Sign-in through identity providers, from the outside: genuine, forged and mutated messages.

mod corpus;
mod fixture;
mod genuine_responses;
mod id_tokens;
mod metadata;
mod mutants;
mod requests;
mod response_forgeries;
mod token_signer;
