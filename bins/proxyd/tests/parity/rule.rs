//! The reason of a difference between a server and proxyd.

use crate::exchange::Request;

/// A reason, by the requests and the differences that it explains.
pub(crate) struct Rule {
    /// Its row on the page of differences.
    pub(crate) row: &'static str,
    /// The site; empty for all.
    site: &'static str,
    /// A part of the request as it is shown.
    request: &'static str,
    /// Beginnings of the differences.
    differences: &'static [&'static str],
}

impl Rule {
    pub(crate) fn holds(&self, site: &str, request: &Request, difference: &str) -> bool {
        let is_of_site = self.site.is_empty() || self.site == site;
        let mut beginnings = self.differences.iter();
        is_of_site
            && request.to_string().contains(self.request)
            && beginnings.any(|it| difference.starts_with(it))
    }
}

pub(crate) const fn rule(
    row: &'static str,
    site: &'static str,
    request: &'static str,
    differences: &'static [&'static str],
) -> Rule {
    Rule {
        row,
        site,
        request,
        differences,
    }
}
