//! The classes of risk of a change.

use std::fmt;
use std::fmt::Write;

/// A class of risk. Closed: a change that is in no other class and not known to be harmless is
/// [`Unlisted`](Self::Unlisted).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RiskClass {
    /// Requests that were answered are refused.
    RequestsRefused,
    /// Requests move to a route that lacks a guard of the route before.
    FewerGuards,
    /// A route no longer calls an agent.
    AgentRemoved,
    /// An agent is called differently, or decides on less.
    AgentChanged,
    /// Clients of more networks are admitted.
    AccessWidened,
    /// Responses are stored for all clients that were fetched for one.
    ResponsesShared,
    /// Requests continue while an agent is unavailable.
    AgentFailsOpen,
    /// A listener or its address was removed.
    ListenerRemoved,
    /// A listener refuses clients that it accepted.
    ListenerNarrowed,
    /// TLS of a listener was removed or weakened.
    TlsWeakened,
    /// Certificates of targets are verified less strictly, or not at all.
    VerificationWeakened,
    /// A response header that was removed reaches clients.
    InnerHeaderExposed,
    /// An edit of headers was removed.
    HeaderEditRemoved,
    /// A header edit has another value, or is a new one of a field that decides on access, storage
    /// or rendering.
    HeadersChanged,
    /// Pages of other sites may read more or less.
    CrossOriginChanged,
    /// A limit was removed.
    LimitRemoved,
    /// A limit is far below the one before, or new.
    LimitTightened,
    /// A body that was streamed is held until it is whole.
    BodyHeld,
    /// A listener has a new default route.
    DefaultRouteChanged,
    /// Requests move to another upstream, handler or folder.
    RequestsMoved,
    /// Targets get another share of requests, or are spoken to otherwise.
    TargetsChanged,
    /// Targets count as healthy by other rules.
    HealthCheckChanged,
    /// A second upstream gets copies of requests.
    RequestsCopied,
    /// The proxy's own answer differs.
    AnswerChanged,
    /// Fewer requests are logged, or more of them is recorded.
    RecordsChanged,
    /// A test is gone.
    TestsRemoved,
    /// Nodes send a request that may change data, or that carries a credential.
    UnsafeLiveTest,
    /// A change in no other class that is not known to be harmless.
    Unlisted,
}

impl RiskClass {
    /// All classes, most severe first.
    pub const ALL: [Self; 28] = [
        Self::RequestsRefused,
        Self::FewerGuards,
        Self::AgentRemoved,
        Self::AgentChanged,
        Self::AccessWidened,
        Self::ResponsesShared,
        Self::AgentFailsOpen,
        Self::ListenerRemoved,
        Self::ListenerNarrowed,
        Self::TlsWeakened,
        Self::VerificationWeakened,
        Self::InnerHeaderExposed,
        Self::HeaderEditRemoved,
        Self::HeadersChanged,
        Self::CrossOriginChanged,
        Self::LimitRemoved,
        Self::LimitTightened,
        Self::BodyHeld,
        Self::DefaultRouteChanged,
        Self::RequestsMoved,
        Self::TargetsChanged,
        Self::HealthCheckChanged,
        Self::RequestsCopied,
        Self::AnswerChanged,
        Self::RecordsChanged,
        Self::TestsRemoved,
        Self::UnsafeLiveTest,
        Self::Unlisted,
    ];

    /// The word in output and in the interface.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestsRefused => "requests-refused",
            Self::FewerGuards => "fewer-guards",
            Self::AgentRemoved => "agent-removed",
            Self::AgentChanged => "agent-changed",
            Self::AccessWidened => "access-widened",
            Self::ResponsesShared => "responses-shared",
            Self::AgentFailsOpen => "agent-fails-open",
            Self::ListenerRemoved => "listener-removed",
            Self::ListenerNarrowed => "listener-narrowed",
            Self::TlsWeakened => "tls-weakened",
            Self::VerificationWeakened => "verification-weakened",
            Self::InnerHeaderExposed => "inner-header-exposed",
            Self::HeaderEditRemoved => "header-edit-removed",
            Self::HeadersChanged => "headers-changed",
            Self::CrossOriginChanged => "cross-origin-changed",
            Self::LimitRemoved => "limit-removed",
            Self::LimitTightened => "limit-tightened",
            Self::BodyHeld => "body-held",
            Self::DefaultRouteChanged => "default-route-changed",
            Self::RequestsMoved => "requests-moved",
            Self::TargetsChanged => "targets-changed",
            Self::HealthCheckChanged => "health-check-changed",
            Self::RequestsCopied => "requests-copied",
            Self::AnswerChanged => "answer-changed",
            Self::RecordsChanged => "records-changed",
            Self::TestsRemoved => "tests-removed",
            Self::UnsafeLiveTest => "unsafe-live-test",
            Self::Unlisted => "unlisted",
        }
    }

    /// The condition of the class, as a clause.
    #[expect(clippy::too_many_lines, reason = "a table of one row for each class")]
    const fn condition(self) -> &'static str {
        match self {
            Self::RequestsRefused => {
                "requests that a route answered are refused (no route, an ambiguous path, an upstream without \
                 a target of weight), go to the built-in handler `not-found`, come from networks that `allow` \
                 and `deny` no longer admit (more than a /24 or a /48, private ones, and those of trusted proxies or of an `allow`), or have their token in another header or cookie than the route reads"
            }
            Self::FewerGuards => {
                "requests move to a route that lacks an agent, networks of clients, a password, a token, a rate limit or a header edit of the route before"
            }
            Self::AgentRemoved => "a route that stays no longer lists an agent",
            Self::AgentChanged => {
                "an agent that stays has another address, protocol, path or host, gets fewer events, treats bodies that are too large another way, or copies another list of headers; or a route calls its agents in another order"
            }
            Self::AccessWidened => {
                "a listener or a route that stays, or a route that now answers the same requests, has more in `allow`, less in `deny`, no longer an `allow`, a password or \
                 token, other users or rules for tokens, other `trusted-proxies`, `path-policy \"forward\"`, ten times \
                 as many `attempts` at a password, or passes credentials on; or a file of users or keys differs"
            }
            Self::ResponsesShared => {
                "a route that stays begins to store responses (`cache`), has more `statuses`, a new or longer \
                 `ttl-secs` or `heuristic-percent`, more in `ignore-query`, less in `key-headers`, or stale responses \
                 of a day or older"
            }
            Self::AgentFailsOpen => "an agent has a new `failure-mode \"open\"`",
            Self::ListenerRemoved => "a listener is gone, or has another address",
            Self::ListenerNarrowed => {
                "a listener that stays has another `protocol`, refuses a version of TLS, a protocol (`alpn`, `h2c`, `http3`) or clients without a certificate, or begins or ceases to take PROXY headers"
            }
            Self::TlsWeakened => {
                "a listener that stays goes from `https` to `http`, accepts a lower version of TLS or no longer \
                 the highest one, obtains certificates otherwise (`acme`, apart from `email`), has a certificate less or for other names, shows another one of its certificates to clients without a name, or asks for client certificates less strictly"
            }
            Self::VerificationWeakened => {
                "an upstream that stays no longer has `tls`, trusts the system's authorities or those of another \
                 `ca-file`, verifies another name (`sni`) or nothing (`verify #false`), or has another pin or none"
            }
            Self::InnerHeaderExposed => {
                "a route that stays no longer removes a response header, or a listener begins with `expose-reasons`"
            }
            Self::HeaderEditRemoved => {
                "a route that stays no longer sets, adds or removes a request header, or sets or adds a \
                 response header, including those of a `preset`"
            }
            Self::HeadersChanged => {
                "a route that stays sets or adds a header with another value, or has a new edit of a field such as `Host`, `Cookie`, `Set-Cookie`, `Cache-Control`, `Content-Type`, `Strict-Transport-Security`, `X-Robots-Tag` or `X-Forwarded-For`, or of one with the name of a credential; a listener begins or ceases to add `Via`"
            }
            Self::CrossOriginChanged => {
                "a route that stays has another `cors` block, apart from `max-age-secs` and from further origins, methods and \
                 headers by name"
            }
            Self::LimitRemoved => {
                "a limit of connections, memory or time or a circuit breaker is gone, `budget-percent` of retries is four times \
                 as high, a rate limit is gone, only observes, admits ten times as many requests in a minute, or counts by \
                 another key or in another store, a limit grows a thousandfold, or thirtyfold for times of clients and of \
                 connects; or an upstream gets requests that stored responses answered: `cache` is gone, stores for a \
                 quarter of the time or in a quarter of the memory, obeys clients, or has a field such as `Cookie` in its key"
            }
            Self::LimitTightened => {
                "a limit of rate, size or number is at most half of the one in force before, a time at most a quarter, or one \
                 is new where there was none, apart from usual ones that end connections between requests; one worker, no \
                 retry, half of the `attempts` at a password; a circuit breaker opens at half as many failures or for four times as long, closes after ten times as many successes, or a new \
                 one than by default; a rate limit counts in a new `store`"
            }
            Self::BodyHeld => {
                "a route that stays begins to buffer requests or responses, or an agent to inspect bodies"
            }
            Self::DefaultRouteChanged => {
                "a listener that stays has a new or another `default-route`"
            }
            Self::RequestsMoved => {
                "requests that were answered go to another upstream, built-in handler or folder, or to another path of \
                 their upstream (`rewrite`)"
            }
            Self::TargetsChanged => {
                "an upstream that stays has fewer targets, gives a target half or twice its share and moves a tenth of the requests by it, keeps clients at their targets otherwise (`sticky`, `ip_hash`), has another `protocol` or `send-proxy` or a new `tls`, has a target that was one of another upstream alone, no former target, keeps idle connections four times as long, or has a `slow-start-secs` of five minutes or more and four times as long; or names of targets are looked up by other `name-servers` or, with a `min-ttl-secs` of five minutes or more, less often"
            }
            Self::HealthCheckChanged => {
                "an upstream that stays has another health check or none, or another outlier detection; an interval, time or number of a check that stays above half and grows to four times at most is none"
            }
            Self::RequestsCopied => {
                "a route that stays has a new or another `shadow`, or a larger share of copies"
            }
            Self::AnswerChanged => {
                "a route that stays has another `redirect`, `respond` or `static-files` block, apart from `precompressed`, or another `service-type`; an error page is changed or gone, or is a new one for `4xx` or `5xx`"
            }
            Self::RecordsChanged => {
                "the access log is off, the error log leaves out warnings, a log or an export goes to another place or is gone, a query parameter or a header field is no longer redacted, or half of all requests or more are recorded"
            }
            Self::TestsRemoved => {
                "a `test` is gone, and none has its name or request, or a `live` one is no longer sent; a `never` is gone or forbids other requests"
            }
            Self::UnsafeLiveTest => {
                "a `live` test is new or differs, and its method is not GET, HEAD or OPTIONS, or a header or query \
                 parameter has the name of a credential"
            }
            Self::Unlisted => "anything else, apart from the list of harmless changes below",
        }
    }

    /// Harm that such a change has caused, and a check to make before deploying it.
    const fn harm(self) -> &'static str {
        match self {
            Self::RequestsRefused => {
                "many 404s; `proxyd explain` on the example names the nearest route"
            }
            Self::FewerGuards => "requests bypass a guard; test with `expect { agents … }`",
            Self::AgentRemoved => "requests pass without authentication or inspection",
            Self::AgentChanged => {
                "a server that answers 200 to unknown paths admits all requests; a header that the agent no longer sets comes from the client"
            }
            Self::AccessWidened => "outsiders reach internal services",
            Self::ResponsesShared => {
                "a visitor sees the page of another one, because the upstream did not say `private`"
            }
            Self::AgentFailsOpen => "requests pass without a decision as soon as the agent is slow",
            Self::ListenerRemoved => "clients cannot connect, which no error rate shows",
            Self::ListenerNarrowed => {
                "clients that connected before cannot, which no error rate shows"
            }
            Self::TlsWeakened => "clients refuse the connection, or speak in the clear",
            Self::VerificationWeakened => "any server can stand in for the targets",
            Self::InnerHeaderExposed => "internal names and versions leak",
            Self::HeaderEditRemoved => {
                "a security header is missing, or an upstream gets no tenant"
            }
            Self::HeadersChanged => {
                "another tenant's data, private answers in caches, pages without protection"
            }
            Self::CrossOriginChanged => {
                "browsers refuse the application, with 200 in each log, or strangers read answers"
            }
            Self::LimitRemoved => "one client can take all of an upstream",
            Self::LimitTightened => "429, 413 and 504 for requests that passed",
            Self::BodyHeld => "streams arrive at their end, and uploads need memory",
            Self::DefaultRouteChanged => "requests that were refused reach an upstream",
            Self::RequestsMoved => "a wrong upstream that answers 200",
            Self::TargetsChanged => {
                "a trial version gets all requests, sessions are lost, targets are overloaded"
            }
            Self::HealthCheckChanged => {
                "all targets of all nodes are unhealthy at once, later than a short trial sees"
            }
            Self::RequestsCopied => "orders that are executed twice",
            Self::AnswerChanged => {
                "a redirect to a wrong place, a page that search engines and browsers keep, or an error that programs cannot read"
            }
            Self::RecordsChanged => "no trace of an incident, or secrets in logs",
            Self::TestsRemoved => {
                "a mistake that the test has prevented, in this bundle or a later one"
            }
            Self::UnsafeLiveTest => {
                "an order, a deletion or a sign-in at every node, twice in a trial"
            }
            Self::Unlisted => "unknown: look at it",
        }
    }
}

/// The reference page of the classes.
#[must_use]
pub fn risks_page() -> String {
    let mut page = String::from(
        "# Risks of a change\n\n\
         <!-- Written by `cargo xtask reference` from the tables in the code; changes here are lost. -->\n\n\
         `proxyd diff OLD NEW` and `GET …/bundles/{bundle}/diff` name these classes, most severe first. A project's \
         policy `approve \"risky\"` asks a second person where a change has one of them. They are found by one \
         comparison, so that the tool and the policy agree.\n\n\
         | class | when | harm |\n|---|---|---|\n",
    );
    for class in RiskClass::ALL {
        // Writing to a `String` cannot fail.
        _ = writeln!(
            page,
            "| `{}` | {} | {} |",
            class.name(),
            class.condition(),
            class.harm()
        );
    }
    page.push_str(
        "\nHarmless are: comments, layout, `tests` that are new or differ and are not `live`; a test with another name; defaults that are written out; another order of routes that \
         moves no request; a route, an upstream or an agent that is gone and was used by none that stays; new \
         upstreams without a health check, and agents, that no former route names. A route or an upstream of another name with equal settings is `unlisted` alone. A new route for requests that were \
         refused before is `unlisted`, also where it refuses them with another status, reason or body: a `respond` of 404 \
         is a page, and a browser runs its scripts. A new or different `live` test is `unlisted` at least, for every node \
         sends it; so is a new upstream with a health check, for every node asks its targets. In a bundle, each file that is not part of the configuration and differs is \
         `unlisted` too: it may be served. One that a setting names has the class of a change of that setting: a list of \
         users or keys `access-widened`, a certificate `tls-weakened`, an authority of targets `verification-weakened`, a served \
         file or an error page that differs or is gone `answer-changed`. Networks in a file are compared like inline ones. A certificate that is \
         renewed for the same names, as long and by the same authority, with a chain that leads to it, is `unlisted` alone, and so is the first health check of an upstream: each node probes the \
         targets before it serves the bundle.\n\n\
         The comparison is exact for hosts, paths, prefixes, methods, headers and query parameters. Paths of a \
         `path-regex` are sampled. A path with several readings (`//`, `;`, escaped separators) is not a case of its own: \
         it is refused where its readings lead to different routes. A reached limit of the comparison is `unlisted`. \
         The health of targets is not seen, nor are files that no setting names.\n",
    );
    page
}

impl fmt::Display for RiskClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
