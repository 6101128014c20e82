//! Presets of security header fields.

use http::header::{
    HeaderName, HeaderValue, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// A preset of header fields of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderPreset {
    /// Fields that break hardly any site.
    Basic,
    /// Further fields, for sites that use HTTPS throughout and that no other site embeds.
    Strict,
}

impl HeaderPreset {
    /// The fields that are set.
    #[must_use]
    pub fn fields(self) -> Vec<(HeaderName, HeaderValue)> {
        let (frames, referrers) = match self {
            Self::Basic => ("SAMEORIGIN", "strict-origin-when-cross-origin"),
            Self::Strict => ("DENY", "no-referrer"),
        };
        let basic = [
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, frames),
            (REFERRER_POLICY, referrers),
        ];
        let strict = [
            (STRICT_TRANSPORT_SECURITY, "max-age=31536000"),
            (OPENER_POLICY, "same-origin"),
            (RESOURCE_POLICY, "same-origin"),
        ];
        let strict = strict.into_iter().filter(|_| self == Self::Strict);
        basic
            .into_iter()
            .chain(strict)
            .map(|(name, value)| (name, HeaderValue::from_static(value)))
            .collect()
    }
}
