//! Single sign-on: connections and attempts.

pub(crate) mod attempt;
pub(crate) mod connection;
pub(crate) mod sign_in;
