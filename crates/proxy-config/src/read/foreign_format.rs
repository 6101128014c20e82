//! Recognition of files in the notation of other programs.

/// The notation of a file that is not KDL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignFormat {
    Caddyfile,
    Haproxy,
    Json,
    Nginx,
    Toml,
    Yaml,
}

impl ForeignFormat {
    /// The format detected in the first line with content, with that line; `None` for a line that
    /// may be KDL.
    pub(crate) fn detect(text: &str) -> Option<(Self, &str)> {
        let mut lines = text.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty() && !is_comment(line))?;
        Some((Self::from_line(line, lines.next(), text)?, line))
    }

    fn from_line(line: &str, next: Option<&str>, text: &str) -> Option<Self> {
        let first = line.split_whitespace().next()?;
        let opens_block = line.ends_with('{');
        match first {
            "---" => Some(Self::Yaml),
            "global" | "defaults" | "frontend" | "backend" | "listen" if !opens_block => {
                Some(Self::Haproxy)
            }
            // nginx names an upstream without quotes.
            "upstream" if line.contains('"') => None,
            "user" | "worker_processes" | "events" | "http" | "load_module" | "error_log"
            | "pid" | "upstream" | "map" | "location" => Some(Self::Nginx),
            // `server` is also a block of a KDL configuration.
            "server" if text.contains("listen ") || text.contains("server_name ") => {
                Some(Self::Nginx)
            }
            "{" => Some(if next.is_some_and(|line| line.starts_with('"')) {
                Self::Json
            } else {
                Self::Caddyfile
            }),
            _ if first.starts_with('{') || first == "[" => Some(Self::Json),
            _ if first.starts_with('[') && line.ends_with(']') => Some(Self::Toml),
            _ if first.ends_with(':') && is_word(first.trim_end_matches(':')) => Some(Self::Yaml),
            _ if opens_block && is_site(first) => Some(Self::Caddyfile),
            _ => None,
        }
    }

    /// The server with files that `config migrate --from` reads; `None` for a notation of several
    /// programs.
    pub(crate) const fn server(self) -> Option<&'static str> {
        match self {
            Self::Caddyfile => Some("caddy"),
            Self::Haproxy => Some("haproxy"),
            Self::Nginx => Some("nginx"),
            Self::Json | Self::Toml | Self::Yaml => None,
        }
    }

    /// The notation's name, as the subject of a message.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Caddyfile => "a Caddyfile",
            Self::Haproxy => "a configuration of HAProxy",
            Self::Json => "JSON",
            Self::Nginx => "a configuration of nginx",
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
        }
    }
}

fn is_comment(line: &str) -> bool {
    line.starts_with("//") || (line.starts_with('#') && !line.starts_with("#\""))
}

fn is_word(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.chars().all(is_part)
}

/// `example.com`, `*.example.com`, `:443`, `localhost:8080`, `https://example.com`.
fn is_site(text: &str) -> bool {
    text == "localhost" || text.contains(['.', ':']) && !text.starts_with('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_shows_the_notation() {
        use ForeignFormat::{Caddyfile, Haproxy, Json, Nginx, Toml, Yaml};
        for (text, expected) in [
            ("listeners:\n  - name: main\n", Some(Yaml)),
            ("---\nroutes: []\n", Some(Yaml)),
            ("# nginx\nworker_processes auto;\nhttp {\n}\n", Some(Nginx)),
            ("server {\n    listen 80;\n}\n", Some(Nginx)),
            ("server {\n    worker-threads 2\n}\n", None),
            (
                "a.test {\n\treverse_proxy 127.0.0.1:1\n}\n",
                Some(Caddyfile),
            ),
            (":80 {\n}\n", Some(Caddyfile)),
            ("{\n\temail a@b.test\n}\n", Some(Caddyfile)),
            ("{\n  \"listeners\": []\n}\n", Some(Json)),
            ("{\"static_resources\": {}}", Some(Json)),
            ("[entryPoints]\n  [entryPoints.web]\n", Some(Toml)),
            ("global\n    maxconn 100\n", Some(Haproxy)),
            ("// a comment\nlisteners {\n}\n", None),
            ("/- kdl-version 2\nroutes {\n}\n", None),
            (
                "listeners { listener \"a\" { address \"127.0.0.1:1\" } }",
                None,
            ),
            ("upstream \"a\" {\n}\n", None),
            ("", None),
        ] {
            let found = ForeignFormat::detect(text).map(|(format, _)| format);
            assert_eq!(found, expected, "{text}");
        }
    }
}
