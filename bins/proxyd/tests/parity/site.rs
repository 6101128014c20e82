//! The sites that both servers serve, as configurations of nginx.

/// Names and texts. `PORT` is the port of the server, `UPSTREAM` and `CLOSED` are addresses of a target that answers and
/// of one that refuses connections, `ROOT` is a folder of files.
pub(crate) const SITES: &[(&str, &str)] = &[
    ("access", include_str!("sites/access.conf")),
    ("application", include_str!("sites/application.conf")),
    ("cache", include_str!("sites/cache.conf")),
    ("errors", include_str!("sites/errors.conf")),
    ("files", include_str!("sites/files.conf")),
    ("gzip", include_str!("sites/gzip.conf")),
    ("headers", include_str!("sites/headers.conf")),
    ("limits", include_str!("sites/limits.conf")),
    ("locations", include_str!("sites/locations.conf")),
    ("real-ip", include_str!("sites/real-ip.conf")),
    ("redirects", include_str!("sites/redirects.conf")),
    ("rewrites", include_str!("sites/rewrites.conf")),
    ("upstreams", include_str!("sites/upstreams.conf")),
];
