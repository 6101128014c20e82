//! The choice of tools.

/// Tools beyond those of the tests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    /// Peers to measure against, and what `ship` needs.
    pub(crate) bench: bool,
    /// What `package --check` needs.
    pub(crate) package: bool,
}
