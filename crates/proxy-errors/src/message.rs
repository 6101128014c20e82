//! Message templates for the log and for the client.

use crate::detail::Detail;
use crate::error_type::ErrorType;
use crate::limit_type::LimitType;
use crate::problem::Problem;
use crate::reason::Reason;

/// The client's message for failures inside the proxy.
const GENERIC_MESSAGE: &str = "Internal error";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Log,
    Client,
}

impl Problem {
    /// The message for the log, with all details.
    #[must_use]
    pub fn log_message(&self) -> String {
        self.message(Reader::Log)
    }

    /// The message for the client: names and numbers of the configuration, never an address, an I/O
    /// error, or an agent's text. Failures inside the proxy are only "Internal error", and an
    /// upstream's bad certificate only a bad gateway.
    #[must_use]
    pub fn client_message(&self) -> String {
        let hidden = matches!(
            self.error_type(),
            ErrorType::Agent | ErrorType::Config | ErrorType::Internal | ErrorType::Io
        );
        if matches!(
            self.reason(),
            Reason::TlsVerifyFailed | Reason::TlsPinMismatch
        ) {
            return "Bad gateway".to_owned();
        }
        if hidden {
            return GENERIC_MESSAGE.to_owned();
        }
        self.message(Reader::Client)
    }

    fn message(&self, reader: Reader) -> String {
        let words = self.words(reader);
        match self.error_type() {
            ErrorType::RequestValidation => format!("Request validation failed: {words}"),
            ErrorType::Parse => format!("Request parsing failed: {words}"),
            ErrorType::AuthenticationFailed => format!("Authentication failed: {words}"),
            ErrorType::AuthorizationFailed => format!("Authorization failed: {words}"),
            ErrorType::WafBlocked => format!("WAF blocked request: {words}"),
            ErrorType::RouteNotFound => format!("Not found: {words}"),
            ErrorType::LimitExceeded => self.limit_message(words),
            ErrorType::RateLimit => format!("Rate limit exceeded: {words}"),
            ErrorType::Tls => format!("TLS error: {words}"),
            ErrorType::Config => format!("Configuration error: {words}"),
            ErrorType::Agent => format!("Agent error: {}", self.with_name(words)),
            ErrorType::Internal => format!("{GENERIC_MESSAGE}: {words}"),
            ErrorType::Io => format!("I/O failed: {words}"),
            ErrorType::Upstream => format!("Upstream error: {}", self.with_name(words)),
            ErrorType::ResponseValidation => format!("Response validation failed: {words}"),
            ErrorType::ServiceUnavailable => {
                format!("Service unavailable: {}", self.name().unwrap_or(words))
            }
            ErrorType::CircuitBreakerOpen => {
                format!("Circuit breaker open: {}", self.name().unwrap_or(words))
            }
            ErrorType::NoHealthyUpstream => {
                format!("No healthy upstream: {}", self.with_name(words))
            }
            ErrorType::Timeout => self.timeout_message(),
        }
    }

    fn words(&self, reader: Reader) -> &str {
        let text = match self.detail() {
            Detail::Text(text) | Detail::Named { text, .. } => text,
            Detail::None
            | Detail::Limit { .. }
            | Detail::LimitAtLeast { .. }
            | Detail::After(_) => "",
        };
        // Clients of the admin interface are operators.
        let is_admin = matches!(
            self.reason(),
            Reason::AdminBodyInvalid | Reason::AdminTargetUnknown
        );
        let is_theirs = reader == Reader::Log || is_admin;
        match reader {
            _ if is_theirs && !text.is_empty() => text,
            Reader::Client if self.error_type() == ErrorType::Upstream => self.side(),
            Reader::Log | Reader::Client => self.reason().phrase(),
        }
    }

    /// The part of an upstream's failure that may be disclosed to clients.
    fn side(&self) -> &'static str {
        let answering = matches!(
            self.reason(),
            Reason::UpstreamClosedEarly
                | Reason::UpstreamReset
                | Reason::UpstreamWriteFailed
                | Reason::UpstreamRefusedStream
        );
        if answering {
            "response failed"
        } else {
            "connection failed"
        }
    }

    fn name(&self) -> Option<&str> {
        match self.detail() {
            Detail::Named { name, .. } => Some(name),
            Detail::None
            | Detail::Text(_)
            | Detail::Limit { .. }
            | Detail::LimitAtLeast { .. }
            | Detail::After(_) => None,
        }
    }

    fn with_name(&self, words: &str) -> String {
        match self.name() {
            Some(name) => format!("{name} - {words}"),
            None => words.to_owned(),
        }
    }

    fn limit_message(&self, words: &str) -> String {
        let limit_type = self.reason().limit_type().map_or("", LimitType::as_str);
        match self.detail() {
            Detail::Limit { current, limit } => format!(
                "Limit exceeded: {limit_type} - Current value {current} exceeds limit {limit}"
            ),
            Detail::LimitAtLeast { current, limit } => format!(
                "Limit exceeded: {limit_type} - Current value at least {current} exceeds limit {limit}"
            ),
            Detail::None | Detail::Text(_) | Detail::Named { .. } | Detail::After(_) => {
                format!("Limit exceeded: {limit_type} - {words}")
            }
        }
    }

    fn timeout_message(&self) -> String {
        let operation = self.reason().phrase();
        match self.detail() {
            Detail::After(time) => format!("Timeout: {operation} after {}ms", time.as_millis()),
            Detail::None
            | Detail::Text(_)
            | Detail::Named { .. }
            | Detail::Limit { .. }
            | Detail::LimitAtLeast { .. } => {
                format!("Timeout: {operation}")
            }
        }
    }
}
