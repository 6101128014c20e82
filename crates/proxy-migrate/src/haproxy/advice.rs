//! Advice on alternatives to directives that cannot be converted.

/// Advice for a directive.
pub(super) fn advice(name: &str) -> &'static str {
    match name {
        "stick-table" | "stick" => {
            "write `rate-limit` in the routes' policies, or `load-balancing \"sticky\"`"
        }
        "block" | "http-request" | "redirect" | "use_backend" => {
            "write a route with that condition"
        }
        "errorfile" | "errorloc" => {
            "write the HTML behind the response's head into a file, and `error-pages { page 503 file=… }`"
        }
        "from" => "no `defaults` section before it has this name",
        "capture" | "log-format" => "the access log has fixed fields: see docs/operate/logs.md",
        "filter" | "lua-load" => "run it as an agent",
        "tcp-request" | "tcp-response" => {
            "write `deny`, `max-connections-per-client` or `rate-limit`"
        }
        "monitor-uri" => "write a route with `builtin-handler \"health\"`",
        "stats" => "the admin interface has `/metrics` and `/status`",
        _ => "not carried over; see docs/learn/coming-from/haproxy.md",
    }
}
