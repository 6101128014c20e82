//! URLs of servers.

/// A URL with a supported scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Url<'u> {
    /// `http`, `https` or `h2c`.
    pub(super) scheme: &'u str,
    /// Host and port, as written.
    pub(super) authority: &'u str,
    /// Path and query; empty if there are none.
    pub(super) path: &'u str,
}

impl<'u> Url<'u> {
    pub(super) fn parse(text: &'u str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let is_offered = matches!(scheme, "http" | "https" | "h2c");
        let is_plain = !authority.is_empty() && !authority.contains(['@', '$', '{', ' ']);
        (is_offered && is_plain).then_some(Self {
            scheme,
            authority,
            path,
        })
    }

    /// Host and port of a target.
    pub(super) fn target(&self) -> String {
        let port = self.authority.rsplit_once(':');
        let has_port = port.is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = match (has_port, self.scheme) {
            (true, _) => self.authority.to_owned(),
            (false, "https") => format!("{}:443", self.authority),
            (false, _) => format!("{}:80", self.authority),
        };
        match address.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => address,
        }
    }

    /// Host without the port.
    pub(super) fn host(&self) -> &'u str {
        match self.authority.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => host,
            _ => self.authority,
        }
    }
}
