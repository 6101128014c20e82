//! Converts `tcp-request` rules of relays to networks of clients.

use super::advice::advice;
use super::checks;
use super::parser::{Line, Section};
use crate::site::Site;

/// Networks of clients.
#[derive(Debug, Default)]
pub(super) struct Networks {
    /// Admitted networks; empty for all.
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
}

/// Networks of the clients that the rules of sections admit; `None` if a rule that could refuse
/// connections has no counterpart, which is noted. Each rule has the access lists of its section.
pub(super) fn read(site: &mut Site, sections: &[&Section], reads_names: bool) -> Option<Networks> {
    let mut networks = Networks::default();
    let mut accepts_tls = false;
    let mut is_closed = false;
    let lines = sections
        .iter()
        .flat_map(|section| section.lines.iter().map(move |line| (*section, line)));
    for (section, line) in lines.filter(|(_, line)| checks::is_rule(line)) {
        let is_read = match Kind::from_line(line, section) {
            Kind::Passive => true,
            Kind::AcceptTls => {
                accepts_tls = true;
                true
            }
            // A listener that reads server names closes connections without a handshake.
            Kind::RejectOthers => reads_names,
            Kind::RejectAll => reads_names && accepts_tls,
            Kind::RejectFrom(sources) => {
                networks.deny.extend(sources);
                true
            }
            Kind::RejectAllBut(sources) => {
                let is_first = networks.allow.is_empty();
                networks.allow.extend(sources);
                is_first
            }
            Kind::Unknown => false,
        };
        if !is_read {
            is_closed = true;
            let advice = advice(line.word(0));
            let advice = format!("{advice}; its frontend has no listener until then");
            line.note(site, &advice);
        }
    }
    (!is_closed).then_some(networks)
}

/// Effect of a rule on connections.
#[derive(Debug)]
enum Kind {
    Passive,
    /// Accepts connections with a TLS handshake.
    AcceptTls,
    /// Rejects all connections that were not accepted before.
    RejectOthers,
    RejectAll,
    RejectFrom(Vec<String>),
    RejectAllBut(Vec<String>),
    Unknown,
}

impl Kind {
    fn from_line(line: &Line, section: &Section) -> Self {
        // Later rules would compare another address.
        if line.word(2) == "set-src" {
            return Self::Unknown;
        }
        if !checks::is_check(line) {
            // An `accept` may exempt connections from a later `reject`.
            let accepts = line.word(0) == "tcp-request" && line.word(2) == "accept";
            return match (accepts, Test::from_line(line, section)) {
                (false, _) => Self::Passive,
                (true, Some(test)) if test.is_handshake() && !test.is_negated => Self::AcceptTls,
                (true, _) => Self::Unknown,
            };
        }
        if line.word(0) != "tcp-request" || line.word(2) != "reject" {
            return Self::Unknown;
        }
        if line.words.len() == 3 {
            return Self::RejectAll;
        }
        let Some(test) = Test::from_line(line, section) else {
            return Self::Unknown;
        };
        match (test.sources(), test.is_negated) {
            (None, true) if test.is_handshake() => Self::RejectOthers,
            (Some(sources), false) => Self::RejectFrom(sources),
            (Some(sources), true) => Self::RejectAllBut(sources),
            (None, _) => Self::Unknown,
        }
    }
}

/// The single test of a rule's condition.
#[derive(Debug)]
struct Test<'w> {
    is_negated: bool,
    words: &'w [String],
}

impl<'w> Test<'w> {
    /// Parses a rule's test; `None` if there are several.
    fn from_line(line: &'w Line, section: &'w Section) -> Option<Self> {
        let mut words = line.words.iter();
        let at = words.position(|word| word == "if" || word == "unless")?;
        let is_unless = line.word(at) == "unless";
        let condition = line.words.get(at + 1..)?;
        let (first, rest) = condition.split_first()?;
        let (is_not, name) = match first.strip_prefix('!') {
            Some(name) => (true, name),
            None => (false, first.as_str()),
        };
        let words = match (name, rest.split_last()) {
            ("{", Some((last, inner))) if last == "}" && !inner.iter().any(|it| it == "}") => inner,
            ("{", _) | (_, Some(_)) => return None,
            (name, None) => {
                let mut lines = section.list(name);
                let only = lines.next().filter(|_| lines.next().is_none())?;
                only.words.get(2..)?
            }
        };
        Some(Self {
            is_negated: is_not != is_unless,
            words,
        })
    }

    fn is_handshake(&self) -> bool {
        let [kind, value] = self.words else {
            return false;
        };
        matches!(kind.as_str(), "req.ssl_hello_type" | "req_ssl_hello_type") && value == "1"
    }

    /// Networks of a `src` test without flags or files.
    fn sources(&self) -> Option<Vec<String>> {
        let (kind, values) = self.words.split_first()?;
        let is_list = kind == "src" && !values.is_empty();
        let is_plain = values.iter().all(|value| !value.starts_with('-'));
        (is_list && is_plain).then(|| values.to_vec())
    }
}
