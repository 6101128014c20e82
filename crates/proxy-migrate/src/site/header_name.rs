//! Names of header fields that routes may edit.

/// Message with the edited fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Request,
    Response,
}

/// Reason why a field with this name cannot be edited; `None` if it can.
pub(crate) fn fault(name: &str, message: Message) -> Option<&'static str> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Some("it is not the name of a header field");
    }
    match name.to_ascii_lowercase().as_str() {
        "connection" | "content-length" | "keep-alive" | "proxy-connection" | "te" | "trailer"
        | "transfer-encoding" | "upgrade" => {
            Some("the proxy writes the fields of a connection by itself")
        }
        "x-correlation-id" => Some("the proxy writes it: it names the request in the logs"),
        "via" | "x-forwarded-for" | "x-forwarded-host" | "x-forwarded-proto"
            if message == Message::Request =>
        {
            Some("the proxy writes it: see docs/reference/forwarding-headers.md")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_connections_are_not_edited() {
        for (name, request, response) in [
            ("X-A", true, true),
            ("X A", false, false),
            ("", false, false),
            ("Content-Length", false, false),
            ("X-Forwarded-For", false, true),
        ] {
            assert_eq!(fault(name, Message::Request).is_none(), request, "{name}");
            assert_eq!(fault(name, Message::Response).is_none(), response, "{name}");
        }
    }
}
