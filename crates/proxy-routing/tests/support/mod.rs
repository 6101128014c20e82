//! Compact notation for rules and requests.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]

use http::{HeaderMap, HeaderName, Method};
use proxy_routing::{Head, HeaderCondition, HostPattern, PathPattern, QueryCondition, Rule};

/// A rule for each line of words: `host:a.com path:/a prefix:/a regex:^/a header:X-A=1 method:GET
/// query:a=1 priority:7`.
pub(crate) fn rules(text: &str) -> Vec<Rule> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(rule)
        .collect()
}

fn rule(words: &str) -> Rule {
    let mut rule = Rule::new(words);
    for word in words.split_whitespace() {
        let (kind, text) = word.split_once(':').unwrap();
        match kind {
            "listener" => rule.listeners.push(text.to_owned()),
            "host" => rule.hosts.push(HostPattern::parse(text).unwrap()),
            "path" => rule.paths.push(PathPattern::exact(text).unwrap()),
            "prefix" => rule.paths.push(PathPattern::prefix(text).unwrap()),
            "regex" => rule.paths.push(PathPattern::regex(text).unwrap()),
            "header" => {
                let text = text.replacen('=', ":", 1);
                rule.headers.push(HeaderCondition::parse(&text).unwrap());
            }
            "method" => rule.methods.push(text.parse().unwrap()),
            "query" => rule.query_params.push(QueryCondition::parse(text).unwrap()),
            "priority" => rule.priority = text.parse().unwrap(),
            _ => panic!("{word}"),
        }
    }
    rule
}

/// A request that owns the data that a head borrows.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) listener: String,
    pub(crate) method: Method,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
}

impl Request {
    pub(crate) fn head(&self) -> Head<'_> {
        Head {
            listener: &self.listener,
            method: &self.method,
            host: &self.host,
            path: &self.path,
            query: &self.query,
            headers: &self.headers,
        }
    }
}

/// A request from words: `GET a.com /path?query x-a=1 x-b=2`; `-` means no host. A method after
/// `plain:` arrives at the listener of that name.
pub(crate) fn request(words: &str) -> Request {
    let mut words = words.split_whitespace();
    let first = words.next().unwrap();
    let (listener, method) = first.split_once(':').unwrap_or(("", first));
    let method = method.parse().unwrap();
    let host = words.next().unwrap().replace('-', "");
    let target = words.next().unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = HeaderMap::new();
    for (name, value) in words.map(|word| word.split_once('=').unwrap()) {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, value.parse().unwrap());
    }
    let (path, query) = (path.to_owned(), query.to_owned());
    Request {
        listener: listener.to_owned(),
        method,
        host,
        path,
        query,
        headers,
    }
}
