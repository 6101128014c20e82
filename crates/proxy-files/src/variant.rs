//! The file names of compressed variants.

use proxy_coding::Coding;

/// In the server's order of preference.
pub(crate) const VARIANTS: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// Suffix of the name of a variant with this coding.
pub(crate) const fn suffix(coding: Coding) -> &'static str {
    match coding {
        Coding::Brotli => ".br",
        Coding::Zstd => ".zst",
        Coding::Gzip => ".gz",
    }
}
