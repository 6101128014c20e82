//! Requests to the site, and where files of other servers differ.

/// A request with its outcome.
pub(crate) struct Case {
    pub(crate) title: &'static str,
    pub(crate) url: &'static str,
    /// `TOKEN` is a valid token.
    pub(crate) fields: &'static [&'static str],
    /// The status; then `Location`, or the body of a 200 with `X-Frame-Options` and `Cache-Control`.
    pub(crate) outcome: &'static str,
}

/// A server with a file to migrate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Nginx,
    Caddy,
    Traefik,
}

/// Another outcome of a case, with its row on the page.
pub(crate) struct Difference {
    server: Server,
    title: &'static str,
    outcome: &'static str,
    pub(crate) row: &'static str,
}

const OUTSIDE: &str = "X-Forwarded-For: 198.51.100.7";
const INSIDE: &str = "X-Forwarded-For: 10.0.0.5";
const ANN: &str = "Authorization: Basic YW5uOm9uZQ==";

const fn case(
    title: &'static str,
    url: &'static str,
    fields: &'static [&'static str],
    outcome: &'static str,
) -> Case {
    Case {
        title,
        url,
        fields,
        outcome,
    }
}

pub(crate) const CASES: &[Case] = &[
    case(
        "plain HTTP",
        "http://shop.example.com/cart?item=1",
        &[],
        "308 https://shop.example.com/cart?item=1",
    ),
    case(
        "apex",
        "https://example.com/about?x=1",
        &[],
        "308 https://www.example.com/about?x=1",
    ),
    case(
        "file",
        "https://www.example.com/",
        &[],
        "200 www / max-age=300",
    ),
    case("no file", "https://www.example.com/none", &[], "404"),
    case(
        "fixed answer",
        "https://www.example.com/health",
        &[],
        "200 ok",
    ),
    case("gone", "https://www.example.com/2019/a", &[], "410"),
    case(
        "shop",
        "https://shop.example.com/cart?item=1",
        &[OUTSIDE, "X-Real-IP: 10.0.0.1"],
        "200 shop /cart?item=1 x-real-ip=198.51.100.7 DENY",
    ),
    case(
        "API without a token",
        "https://shop.example.com/api/orders?page=2",
        &[],
        "401",
    ),
    case(
        "API with a token",
        "https://shop.example.com/api/orders?page=2",
        &["Authorization: Bearer TOKEN"],
        "200 api /orders?page=2 x-user=ann DENY",
    ),
    case(
        "wiki without a session",
        "https://wiki.example.com/page",
        &["Remote-User: mallory"],
        "302 https://auth.example.com/?rd=wiki.example.com/page",
    ),
    case(
        "wiki with a session",
        "https://wiki.example.com/page",
        &["Remote-User: mallory", "Cookie: session=ann"],
        "200 wiki /page remote-user=ann",
    ),
    case(
        "login server",
        "https://auth.example.com/?rd=x",
        &[],
        "200 auth /?rd=x",
    ),
    case(
        "tools from elsewhere",
        "https://tools.example.com/",
        &[OUTSIDE, ANN],
        "403",
    ),
    case(
        "tools without a password",
        "https://tools.example.com/",
        &[INSIDE],
        "401",
    ),
    case(
        "tools with a password",
        "https://tools.example.com/",
        &[INSIDE, ANN],
        "200 tools / x-user=ann",
    ),
    case(
        "documents",
        "https://docs.example.com/v2/install?print",
        &[],
        "200 docs /handbook/v2/install?print host=handbook.internal x-original-url=https://docs.example.com/v2/install?print",
    ),
    case(
        "documents that moved",
        "https://docs.example.com/v1/install?print",
        &[],
        "301 https://docs.example.com/v2/install?print",
    ),
];

const fn difference(
    server: Server,
    title: &'static str,
    outcome: &'static str,
    row: &'static str,
) -> Difference {
    Difference {
        server,
        title,
        outcome,
        row,
    }
}

pub(crate) const DIFFERENCES: &[Difference] = &[
    difference(
        Server::Nginx,
        "fixed answer",
        "200 ok max-age=300",
        "| `/health` | nginx, Caddy |",
    ),
    difference(
        Server::Caddy,
        "fixed answer",
        "200 ok max-age=300",
        "| `/health` | nginx, Caddy |",
    ),
    difference(
        Server::Nginx,
        "API without a token",
        "200 api /orders?page=2 x-user=none DENY",
        "| the API without a token | nginx, Caddy, Traefik |",
    ),
    difference(
        Server::Nginx,
        "API with a token",
        "200 api /orders?page=2 x-user=none DENY",
        "| the API without a token | nginx, Caddy, Traefik |",
    ),
    difference(
        Server::Caddy,
        "API without a token",
        "200 api /orders?page=2 x-user=none DENY",
        "| the API without a token | nginx, Caddy, Traefik |",
    ),
    difference(
        Server::Caddy,
        "API with a token",
        "200 api /orders?page=2 x-user=none DENY",
        "| the API without a token | nginx, Caddy, Traefik |",
    ),
    difference(
        Server::Traefik,
        "API without a token",
        "200 api /orders?page=2 x-user=none DENY",
        "| the API without a token | nginx, Caddy, Traefik |",
    ),
    difference(
        Server::Traefik,
        "API with a token",
        "200 api /orders?page=2 x-user=none DENY",
        "| the API without a token | nginx, Caddy, Traefik |",
    ),
    difference(
        Server::Nginx,
        "wiki without a session",
        "401",
        "| the wiki without a session | nginx |",
    ),
    difference(
        Server::Traefik,
        "plain HTTP",
        "301 https://shop.example.com/cart?item=1",
        "| permanent redirects | Traefik |",
    ),
    difference(
        Server::Traefik,
        "apex",
        "301 https://www.example.com/about?x=1",
        "| permanent redirects | Traefik |",
    ),
    difference(
        Server::Traefik,
        "no file",
        "200 www /none max-age=300",
        "| `www.example.com` | Traefik |",
    ),
    difference(
        Server::Traefik,
        "fixed answer",
        "200 www /health max-age=300",
        "| `www.example.com` | Traefik |",
    ),
    difference(
        Server::Traefik,
        "gone",
        "200 www /2019/a max-age=300",
        "| `www.example.com` | Traefik |",
    ),
    difference(
        Server::Traefik,
        "shop",
        "200 shop /cart?item=1 x-real-ip=10.0.0.1 DENY",
        "| `X-Real-IP` | Traefik |",
    ),
    difference(
        Server::Traefik,
        "documents",
        "200 docs /handbook/v2/install?print host=handbook.internal x-original-url=none",
        "| `X-Original-URL` | Traefik |",
    ),
];

/// The beginnings of the directives that are listed, as the page has them.
pub(crate) const NOTES: &[(Server, &str)] = &[
    (
        Server::Nginx,
        "`error_page 401 =302 https://auth.example.com/`",
    ),
    (Server::Nginx, "`proxy_pass_request_body off`"),
    (
        Server::Nginx,
        "`proxy_pass http://127.0.0.1:3006/handbook/`",
    ),
    (Server::Caddy, "`email ops@example.com`"),
    (Server::Traefik, "`letsencrypt: acme`"),
];

impl Case {
    /// The outcome with the migrated file of a server.
    pub(crate) fn outcome_of(&self, server: Server) -> &'static str {
        let mut differences = DIFFERENCES.iter();
        let found = differences.find(|it| it.server == server && it.title == self.title);
        found.map_or(self.outcome, |it| it.outcome)
    }
}

impl Server {
    /// Its name in `--from`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Caddy => "caddy",
            Self::Traefik => "traefik",
        }
    }

    /// Its files, the one to migrate first.
    pub(crate) fn files(self) -> &'static [&'static str] {
        match self {
            Self::Nginx => &["nginx.conf"],
            Self::Caddy => &["Caddyfile"],
            Self::Traefik => &["traefik.yml", "dynamic.yml"],
        }
    }

    /// The first host of each certificate that is obtained.
    pub(crate) fn first_hosts(self) -> &'static [&'static str] {
        match self {
            Self::Nginx => &[],
            Self::Caddy => &super::HOSTS,
            Self::Traefik => &["auth.example.com"],
        }
    }

    /// Lines of a migration that the table does not have, and rows of the table that it lacks.
    pub(crate) fn unexpected_notes(self, printed: &str) -> Vec<String> {
        let notes = NOTES.iter().filter(|(server, _)| *server == self);
        let notes: Vec<&str> = notes.map(|(_, note)| *note).collect();
        let lines: Vec<&str> = printed
            .lines()
            .filter(|line| line.contains(": `"))
            .collect();
        let unknown = lines
            .iter()
            .filter(|line| !notes.iter().any(|it| line.contains(it)));
        let missing = notes
            .iter()
            .filter(|it| !lines.iter().any(|line| line.contains(*it)));
        unknown
            .chain(missing)
            .map(|it| format!("{}: {it}", self.name()))
            .collect()
    }
}
