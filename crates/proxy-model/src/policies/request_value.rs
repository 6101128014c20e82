//! Values of a request in header fields: `{client_ip}`, `{host}` and further ones of a closed set.

use http::HeaderValue;
use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

/// A value of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestValue {
    /// The client's address, as limits and logs use it.
    ClientIp,
    /// `Host` or `:authority`, including a port.
    Host,
    /// `http` or `https`: the connection's, or as reported by a trusted proxy.
    Scheme,
    /// The method.
    Method,
    /// The path as sent.
    Path,
    /// The query without its `?`.
    Query,
    /// The path as sent, with its query.
    Uri,
    /// The id of the route.
    Route,
    /// The name of the listener.
    Listener,
    /// The correlation ID.
    CorrelationId,
    /// The client's version of HTTP: `HTTP/1.1`.
    Protocol,
    /// The version of TLS: `1.2` or `1.3`; empty without TLS.
    TlsVersion,
    /// The server name of the client in TLS; empty without one.
    TlsServerName,
    /// The subject of the client's certificate that was verified; empty without one.
    TlsClientSubject,
    /// SHA-256 of that certificate, in hexadecimal digits; empty without one.
    TlsClientFingerprint,
    /// The time at which the request began. [RFC 3339]
    Time,
    /// The user that `basic-auth` of the route admitted, or `sub` of the token that `jwt` verified;
    /// empty without one.
    User,
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UrlScheme {
    /// HTTP without TLS.
    Http,
    /// HTTP over TLS.
    Https,
}

/// The values of one request.
#[derive(Clone, Copy, Debug)]
pub struct RequestValues<'a> {
    /// The client's address.
    pub client_ip: IpAddr,
    /// `Host` or `:authority` as sent.
    pub host: &'a str,
    /// The scheme of the client's URL.
    pub scheme: UrlScheme,
    /// The method.
    pub method: &'a str,
    /// The path as sent.
    pub path: &'a str,
    /// The query without its `?`, if there is one.
    pub query: Option<&'a str>,
    /// The route's id.
    pub route: &'a str,
    /// The listener's name.
    pub listener: &'a str,
    /// The correlation ID.
    pub correlation_id: &'a str,
    /// The version of HTTP.
    pub protocol: &'a str,
    /// The version of TLS; empty without TLS.
    pub tls_version: &'a str,
    /// The server name in TLS; empty without one.
    pub tls_server_name: &'a str,
    /// The subject of the client's certificate; empty without one.
    pub tls_client_subject: &'a str,
    /// SHA-256 of the client's certificate; empty without one.
    pub tls_client_fingerprint: &'a str,
    /// Start of the request, since 1970; `None` keeps `{time}` unchanged.
    pub time: Option<Duration>,
    /// The user; empty without one.
    pub user: &'a str,
}

/// The value of a header field with values of the request in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValueTemplate {
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TemplatePart {
    Text(Box<str>),
    Value(RequestValue),
}

/// A word in braces that names no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownValue(pub String);

impl UrlScheme {
    /// The word in a URL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The default port of URLs.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl RequestValue {
    /// All values, in the order of the reference.
    pub const ALL: [Self; 17] = [
        Self::ClientIp,
        Self::Host,
        Self::Scheme,
        Self::Method,
        Self::Path,
        Self::Query,
        Self::Uri,
        Self::Route,
        Self::Listener,
        Self::CorrelationId,
        Self::Protocol,
        Self::TlsVersion,
        Self::TlsServerName,
        Self::TlsClientSubject,
        Self::TlsClientFingerprint,
        Self::Time,
        Self::User,
    ];

    /// The word in braces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientIp => "client_ip",
            Self::Host => "host",
            Self::Scheme => "scheme",
            Self::Method => "method",
            Self::Path => "path",
            Self::Query => "query",
            Self::Uri => "uri",
            Self::Route => "route",
            Self::Listener => "listener",
            Self::CorrelationId => "correlation_id",
            Self::Protocol => "protocol",
            Self::TlsVersion => "tls_version",
            Self::TlsServerName => "tls_server_name",
            Self::TlsClientSubject => "tls_client_subject",
            Self::TlsClientFingerprint => "tls_client_fingerprint",
            Self::Time => "time",
            Self::User => "user",
        }
    }

    /// The value called `name`.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.name() == name)
    }
}

impl ValueTemplate {
    /// Parses `text`; `None` without a value. A word in braces is a name if it consists of
    /// lower-case letters, digits and `_` and does not follow `$` or `%`, as in the syntax of other
    /// programs; other text in braces is kept.
    ///
    /// # Errors
    /// A name is unknown.
    pub fn parse(text: &str) -> Result<Option<Self>, UnknownValue> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from_brace) = rest.split_at(at);
            literal.push_str(before);
            let Some((name, after)) =
                name_in_braces(from_brace).filter(|_| !before.ends_with(['$', '%']))
            else {
                literal.push('{');
                rest = from_brace.get(1..).unwrap_or_default();
                continue;
            };
            let value = RequestValue::find(name).ok_or_else(|| UnknownValue(name.to_owned()))?;
            if !literal.is_empty() {
                parts.push(TemplatePart::Text(std::mem::take(&mut literal).into()));
            }
            parts.push(TemplatePart::Value(value));
            rest = after;
        }
        literal.push_str(rest);
        if parts.is_empty() {
            return Ok(None);
        }
        if !literal.is_empty() {
            parts.push(TemplatePart::Text(literal.into()));
        }
        Ok(Some(Self { parts }))
    }

    /// Returns true if `value` is a part of it.
    #[must_use]
    pub fn has(&self, value: RequestValue) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, TemplatePart::Value(own) if *own == value))
    }

    /// The value for one request; `None` if it is empty, so that no field is sent.
    #[must_use]
    pub fn fill(&self, values: &RequestValues<'_>) -> Option<HeaderValue> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(literal) => text.push_str(literal),
                TemplatePart::Value(value) => values.write(*value, &mut text),
            }
        }
        HeaderValue::try_from(text)
            .ok()
            .filter(|value| !value.is_empty())
    }
}

impl RequestValues<'_> {
    fn write(&self, value: RequestValue, text: &mut String) {
        let Self {
            client_ip,
            host,
            scheme,
            method,
            path,
            query,
            route,
            listener,
            correlation_id,
            protocol,
            tls_version,
            tls_server_name,
            tls_client_subject,
            tls_client_fingerprint,
            time,
            user,
        } = *self;
        let part = match value {
            RequestValue::ClientIp => {
                // Writing to a `String` cannot fail.
                _ = write!(text, "{client_ip}");
                return;
            }
            RequestValue::Uri => {
                text.push_str(path);
                if let Some(query) = query {
                    text.push('?');
                    text.push_str(query);
                }
                return;
            }
            RequestValue::Time => {
                match time {
                    Some(time) => write_time(time, text),
                    None => text.push_str("{time}"),
                }
                return;
            }
            RequestValue::Host => host,
            RequestValue::Scheme => scheme.name(),
            RequestValue::Method => method,
            RequestValue::Path => path,
            RequestValue::Query => query.unwrap_or_default(),
            RequestValue::Route => route,
            RequestValue::Listener => listener,
            RequestValue::CorrelationId => correlation_id,
            RequestValue::Protocol => protocol,
            RequestValue::TlsVersion => tls_version,
            RequestValue::TlsServerName => tls_server_name,
            RequestValue::TlsClientSubject => tls_client_subject,
            RequestValue::TlsClientFingerprint => tls_client_fingerprint,
            RequestValue::User => user,
        };
        text.push_str(part);
    }
}

/// Writes `since_1970` in UTC, in milliseconds. [RFC 3339]
fn write_time(since_1970: Duration, text: &mut String) {
    let (secs, millis) = (since_1970.as_secs(), since_1970.subsec_millis());
    let (days, of_day) = (secs / 86_400, secs % 86_400);
    let Date { year, month, day } = Date::from_days(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    // Writing to a `String` cannot fail.
    _ = write!(
        text,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
    );
}

/// A date of the Gregorian calendar; month and day from 1.
struct Date {
    year: u64,
    month: u64,
    day: u64,
}

impl Date {
    /// The date of a day since 1970. Years begin in March here, so that the leap day is their last.
    fn from_days(days: u64) -> Self {
        const DAYS_OF_400_YEARS: u64 = 146_097;
        // Days since 1 March of the year 0.
        let days = days + 719_468;
        let (era, of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12 + 1;
        Self {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day,
        }
    }
}

/// The name in the braces at the beginning of `text`, and the text after them.
pub(crate) fn name_in_braces(text: &str) -> Option<(&str, &str)> {
    let (name, after) = text.strip_prefix('{')?.split_once('}')?;
    let is_first = name.starts_with(|c: char| c.is_ascii_lowercase());
    let mut rest = name.bytes();
    let is_name =
        rest.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    (is_first && is_name).then_some((name, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const VALUES: RequestValues<'static> = RequestValues {
        client_ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
        host: "a.test:8080",
        scheme: UrlScheme::Https,
        method: "GET",
        path: "/a%20b",
        query: Some("c=d"),
        route: "site",
        listener: "main",
        correlation_id: "id-1",
        protocol: "HTTP/1.1",
        tls_version: "",
        tls_server_name: "",
        tls_client_subject: "CN=ann",
        tls_client_fingerprint: "ab12",
        time: Some(Duration::from_millis(951_827_696_789)),
        user: "ann",
    };

    fn filled(text: &str) -> String {
        let template = ValueTemplate::parse(text).unwrap().unwrap();
        let value = template.fill(&VALUES);
        value.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn values_of_the_request_are_filled_in() {
        for (text, expected) in [
            ("{client_ip}", "192.0.2.7"),
            (
                "for={client_ip};proto={scheme}",
                "for=192.0.2.7;proto=https",
            ),
            ("{scheme}://{host}{uri}", "https://a.test:8080/a%20b?c=d"),
            ("{path} {query} {method}", "/a%20b c=d GET"),
            (
                "{route}/{listener}/{protocol}/{correlation_id}",
                "site/main/HTTP/1.1/id-1",
            ),
            ("{tls_version}", ""),
            ("{user}", "ann"),
            (
                "{tls_client_subject} {tls_client_fingerprint}",
                "CN=ann ab12",
            ),
            ("{time}", "2000-02-29T12:34:56.789Z"),
            ("{{host}}", "{a.test:8080}"),
        ] {
            assert_eq!(filled(text), expected, "{text}");
        }
    }

    #[test]
    fn other_text_in_braces_stays_and_unknown_names_are_reported() {
        for text in [
            "",
            "plain",
            "{}",
            "{\"a\": 1}",
            "${host}",
            "%{host}",
            "{Host}",
            "{http.host}",
            "{host",
        ] {
            assert_eq!(ValueTemplate::parse(text), Ok(None), "{text}");
        }
        let unknown = ValueTemplate::parse("{host}{remote_addr}");
        assert_eq!(unknown, Err(UnknownValue("remote_addr".to_owned())));
    }

    #[test]
    fn days_have_their_dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (19_782, (2024, 2, 29)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            let Date { year, month, day } = Date::from_days(days);
            assert_eq!((year, month, day), date, "{days}");
        }
    }

    #[test]
    fn every_value_has_a_name_of_its_own() {
        for value in RequestValue::ALL {
            assert_eq!(RequestValue::find(value.name()), Some(value));
        }
    }
}
