//! Single sign-on: connections, providers, sign-in.

pub(crate) mod admission;
pub(crate) mod arrival;
pub(crate) mod connection;
pub(crate) mod failure;
mod logout;
pub(crate) mod provider;
mod record;
pub(crate) mod sign_in;
