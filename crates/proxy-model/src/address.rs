//! Addresses of listeners and of targets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::path::PathBuf;
use std::str::FromStr;

/// The address that a listener binds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BindAddress {
    /// An IP address and a port, as `0.0.0.0:8080` or `[::]:80`. With port 0 the kernel picks one.
    /// A link-local address includes its interface's index, as `[fe80::1%2]:80`. [RFC 6874 §2]
    Tcp(SocketAddr),
    /// The path of a Unix socket, written `unix:/path`.
    Unix(PathBuf),
}

/// The address of a target: a host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetAddress {
    /// IP address or DNS name.
    pub host: Host,
    /// TCP port, 1 to 65535; 0 for a name of SRV records, which have the ports.
    pub port: u16,
}

impl TargetAddress {
    /// Returns true for a DNS name.
    #[must_use]
    pub const fn is_name(&self) -> bool {
        match self.host {
            Host::Ip(_) => false,
            Host::Name(_) | Host::Service(_) => true,
        }
    }

    /// The host that a certificate of the target has: for a name of SRV records its domain, which
    /// unlike the hosts in an answer cannot be forged. [RFC 6125 §6.2.1]
    #[must_use]
    pub fn certificate_host(&self) -> String {
        match &self.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.to_string(),
            Host::Service(name) => service_domain(name).to_owned(),
        }
    }
}

/// A host, by address or by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// An IP address, used without resolution.
    Ip(IpAddr),
    /// A DNS name, in lower case, without a trailing dot.
    Name(Box<str>),
    /// A name of SRV records, as `_http._tcp.example.com`, in lower case, without a trailing dot.
    /// The records name hosts, ports and weights. [RFC 2782]
    Service(Box<str>),
}

/// The reason why text is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// There is no `:port`.
    #[error("the port is missing")]
    NoPort,
    /// The port is not a number from 0 to 65535.
    #[error("the port is not a number of at most 65535")]
    Port,
    /// A target has port 0, which cannot be connected to.
    #[error("port 0 cannot be connected to")]
    PortZero,
    /// There is no host before the port.
    #[error("the host is missing; `0.0.0.0` and `[::]` stand for all addresses")]
    NoHost,
    /// An IPv6 address lacks its brackets.
    #[error("write an IPv6 address in brackets, as in `[::1]:80`")]
    Brackets,
    /// A name is given where only an IP address is allowed.
    #[error("a listener needs an IP address; names are not resolved here")]
    Name,
    /// The host is neither an IP address nor a valid DNS name.
    #[error("the host is neither an IP address nor a host name")]
    Host,
    /// A URL is given instead of a host and a port.
    #[error("write the host and the port only, without a scheme or a path")]
    Url,
    /// A name of SRV records is given as a URL, as other programs write it.
    #[error(
        "write the name of the SRV records alone, as in `_http._tcp.example.com`: they have the ports"
    )]
    ServiceUrl,
    /// A link-local address lacks the index of its interface.
    #[error("a link-local address needs the number of its interface, as in `[fe80::1%2]:80`")]
    NoScope,
    /// The text after `%` is not the index of an interface.
    #[error("write the number of an interface after `%`; `ip link` shows it")]
    Scope,
    /// `unix:` is not followed by an absolute path.
    #[error("a Unix socket is written `unix:/path`")]
    UnixPath,
}

/// Parses an IP address and a port; `localhost` is 127.0.0.1.
///
/// # Errors
///
/// The text has another form.
pub(crate) fn socket_address(text: &str) -> Result<SocketAddr, AddressError> {
    if let Some(scoped) = scoped(text)? {
        return Ok(scoped.into());
    }
    let (host, port) = host_and_port(text)?;
    match host {
        Host::Ip(IpAddr::V6(ip)) if ip.is_unicast_link_local() => Err(AddressError::NoScope),
        Host::Ip(ip) => Ok(SocketAddr::new(ip, port)),
        Host::Name(name) if *name == *"localhost" => Ok((Ipv4Addr::LOCALHOST, port).into()),
        Host::Name(_) | Host::Service(_) => Err(AddressError::Name),
    }
}

/// Parses `[address%interface]:port`; `None` without a `%`.
fn scoped(text: &str) -> Result<Option<SocketAddrV6>, AddressError> {
    let Some((address, rest)) = text.split_once('%') else {
        return Ok(None);
    };
    let (interface, port) = rest.split_once("]:").ok_or(AddressError::NoPort)?;
    let address = address.strip_prefix('[').ok_or(AddressError::Brackets)?;
    let address = address.parse().map_err(|_| AddressError::Host)?;
    let interface = interface.parse().ok().filter(|number| *number > 0);
    let interface = interface.ok_or(AddressError::Scope)?;
    let port = self::port(port)?;
    Ok(Some(SocketAddrV6::new(address, port, 0, interface)))
}

fn host_and_port(text: &str) -> Result<(Host, u16), AddressError> {
    if text.contains('/') {
        return Err(AddressError::Url);
    }
    let (host, port) = text.rsplit_once(':').ok_or(AddressError::NoPort)?;
    if host.is_empty() {
        return Err(AddressError::NoHost);
    }
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host = match bracketed {
        Some(inside) => inside
            .parse::<Ipv6Addr>()
            .map_err(|_| AddressError::Host)?
            .into(),
        None if host.contains(':') => return Err(AddressError::Brackets),
        None => return Ok((plain_host(host)?, self::port(port)?)),
    };
    Ok((Host::Ip(host), self::port(port)?))
}

/// Checks the authority of a URL: a host, and a port unless it is the scheme's.
///
/// # Errors
/// It has another form, or port 0.
pub(crate) fn check_authority(text: &str) -> Result<(), AddressError> {
    let has_port = text
        .rsplit(']')
        .next()
        .is_some_and(|rest| rest.contains(':'));
    let (_, port) = if has_port {
        host_and_port(text)?
    } else {
        host_and_port(&format!("{text}:1"))?
    };
    if port == 0 {
        return Err(AddressError::PortZero);
    }
    Ok(())
}

fn port(text: &str) -> Result<u16, AddressError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|_| digits);
    port.ok_or(AddressError::Port)
}

/// Parses a DNS name: labels of letters, digits, `-` and `_`. [RFC 1123 §2.1]
fn plain_host(text: &str) -> Result<Host, AddressError> {
    if let Ok(ip) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Ip(ip.into()));
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // A name of digits alone is a mistyped address.
    let is_number = name
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if name.len() > 253 || is_number || !name.split('.').all(is_label) {
        return Err(AddressError::Host);
    }
    Ok(Host::Name(name.to_ascii_lowercase().into()))
}

/// The domain of `_service._proto.domain`.
fn service_domain(name: &str) -> &str {
    name.splitn(3, '.').nth(2).unwrap_or(name)
}

/// Parses the name of SRV records: `_service._tcp.domain`, without a port. [RFC 2782]
fn service(text: &str) -> Option<Box<str>> {
    let (service, rest) = text.split_once('.')?;
    let (protocol, _) = rest.split_once('.')?;
    let is_marked = |label: &str| label.len() > 1 && label.starts_with('_');
    if !is_marked(service) || !is_marked(protocol) || text.contains(':') {
        return None;
    }
    match plain_host(text) {
        Ok(Host::Name(name)) => Some(name),
        Ok(Host::Ip(_) | Host::Service(_)) | Err(_) => None,
    }
}

/// Returns true for `srv://…`, `srv+http://…`, `dns+srv:…` and similar forms of other programs.
fn is_service_url(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let schemes = ["srv://", "srv+", "dns+srv:", "dnssrv+"];
    schemes.iter().any(|scheme| text.starts_with(scheme))
}

impl FromStr for BindAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(_) => Err(AddressError::UnixPath),
            None => socket_address(text).map(Self::Tcp),
        }
    }
}

impl FromStr for TargetAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(service) = service(text) {
            let host = Host::Service(service);
            return Ok(Self { host, port: 0 });
        }
        if is_service_url(text) {
            return Err(AddressError::ServiceUrl);
        }
        match host_and_port(text)? {
            (_, 0) => Err(AddressError::PortZero),
            (host, port) => Ok(Self { host, port }),
        }
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Display for TargetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        match host {
            Host::Ip(ip) => SocketAddr::new(*ip, *port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{port}"),
            Host::Service(name) => name.fmt(f),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Name(name) | Self::Service(name) => name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_take_ip_addresses_and_unix_sockets() {
        for text in [
            "0.0.0.0:8080",
            "[::]:80",
            "[fe80::1%2]:80",
            "127.0.0.1:0",
            "unix:/run/a.sock",
        ] {
            assert_eq!(text.parse::<BindAddress>().unwrap().to_string(), text);
        }
        let local = "localhost:80".parse::<BindAddress>().unwrap();
        assert_eq!(local.to_string(), "127.0.0.1:80");
    }

    #[test]
    fn an_invalid_address_has_a_reason() {
        let cases = [
            ("8080", AddressError::NoPort),
            (":8080", AddressError::NoHost),
            ("0.0.0.0:", AddressError::Port),
            ("0.0.0.0:65536", AddressError::Port),
            ("0.0.0.0:+80", AddressError::Port),
            ("::1:80", AddressError::Brackets),
            ("[::1]", AddressError::Brackets),
            ("[::1]x:80", AddressError::Brackets),
            ("app.internal:80", AddressError::Name),
            ("http://0.0.0.0:80", AddressError::Url),
            ("256.0.0.1:80", AddressError::Host),
            ("[fe80::1]:80", AddressError::NoScope),
            ("[fe80::1%eth0]:80", AddressError::Scope),
            ("[fe80::1%0]:80", AddressError::Scope),
            ("[fe80::1%2]", AddressError::NoPort),
            ("fe80::1%2]:80", AddressError::Brackets),
            ("unix:run", AddressError::UnixPath),
        ];
        for (text, fault) in cases {
            assert_eq!(text.parse::<BindAddress>(), Err(fault), "{text}");
        }
    }

    #[test]
    fn an_authority_has_a_host_and_perhaps_a_port() {
        for text in [
            "a",
            "a.test:80",
            "[::1]",
            "[::1]:443",
            "10.0.0.1",
            "my_app:1",
        ] {
            assert_eq!(check_authority(text), Ok(()), "{text}");
        }
        for (text, fault) in [
            ("a:99999", AddressError::Port),
            ("a:x", AddressError::Port),
            ("a:", AddressError::Port),
            ("a:0", AddressError::PortZero),
            (":80", AddressError::NoHost),
            ("::1", AddressError::Brackets),
            ("[::1", AddressError::Brackets),
            ("user@a", AddressError::Host),
        ] {
            assert_eq!(check_authority(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn a_name_of_srv_records_has_no_port() {
        let service = "_HTTP._tcp.App.Internal.".parse::<TargetAddress>().unwrap();
        assert_eq!(service.to_string(), "_http._tcp.app.internal");
        assert_eq!(service.certificate_host(), "app.internal");
        assert!(service.is_name());
        let plain = "_http._tcp.app.internal:80"
            .parse::<TargetAddress>()
            .unwrap();
        assert_eq!(plain.host, Host::Name("_http._tcp.app.internal".into()));
        for text in ["_http.app", "_http._tcp", "http._tcp.app", "_._tcp.app"] {
            assert_eq!(
                text.parse::<TargetAddress>(),
                Err(AddressError::NoPort),
                "{text}"
            );
        }
    }

    #[test]
    fn targets_take_names_in_any_case_and_no_port_zero() {
        for host in ["srv", "srv.internal", "dnssrv"] {
            let target = format!("{host}:80").parse::<TargetAddress>();
            assert_eq!(target.unwrap().host, Host::Name(host.into()));
        }
        let target = "App.Internal.:8080".parse::<TargetAddress>().unwrap();
        assert_eq!(target.to_string(), "app.internal:8080");
        let six = "[2001:db8::1]:443".parse::<TargetAddress>().unwrap();
        assert_eq!(six.to_string(), "[2001:db8::1]:443");
        for (text, fault) in [
            ("app:0", AddressError::PortZero),
            ("-app:80", AddressError::Host),
            ("a..b:80", AddressError::Host),
            ("a b:80", AddressError::Host),
            ("[::g]:80", AddressError::Host),
            ("srv://_http._tcp.example.com", AddressError::ServiceUrl),
            ("SRV://app.example.com/", AddressError::ServiceUrl),
            ("srv+http://app.example.com", AddressError::ServiceUrl),
            ("dns+srv://_http._tcp.example.com", AddressError::ServiceUrl),
            ("dnssrv+_http._tcp.example.com", AddressError::ServiceUrl),
            ("http://app.example.com", AddressError::Url),
        ] {
            assert_eq!(text.parse::<TargetAddress>(), Err(fault), "{text}");
        }
    }
}
