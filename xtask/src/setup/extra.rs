//! Selection of tools that only some tasks need.

/// Tools that the tests do not need.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    /// Installs peers to compare in benchmarks, and the tools of `ship`.
    pub(crate) bench: bool,
    /// Installs the tools of `package --check`.
    pub(crate) package: bool,
}
