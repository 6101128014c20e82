//! Single sign-on: connections, providers, sign-in.

pub(crate) mod admission;
pub(crate) mod connection;
pub(crate) mod failure;
pub(crate) mod provider;
pub(crate) mod sign_in;
