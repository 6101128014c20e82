//! The label of a passed socket: its purpose and address as text.

use proxy_model::BindAddress;
use std::fmt::Write;

/// First line of the text; any other version is refused.
const VERSION: &str = "proxyd-sockets-1";

/// The label of a listening socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) purpose: Purpose,
    /// Bound by the process itself or a predecessor, not by a service manager.
    pub(crate) owned: bool,
    /// The address as written in the configuration. The new process identifies the socket by it.
    pub(crate) address: BindAddress,
}

/// The user of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A listener. Sockets with the same number belong to one listener.
    Listener(u32),
    /// The UDP sockets of a listener.
    Datagrams,
    /// Forwards datagrams to the old process, and further ones to still older processes.
    DatagramRelay,
    /// The admin interface.
    Admin,
    /// No listener: a service manager's socket at another address.
    Unclaimed,
}

/// Labels in the order of their sockets, and the number of labels in later messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    pub(super) labels: Vec<Label>,
    pub(super) more: usize,
}

impl List {
    /// Encodes the list as text; entries end in NUL, which no path contains.
    pub(super) fn encode(&self) -> String {
        let mut text = format!("{VERSION} {}\0", self.more);
        for Label {
            purpose,
            owned,
            address,
        } in &self.labels
        {
            let owner = if *owned { "own" } else { "lent" };
            // Writing to a string cannot fail.
            let written = match purpose {
                Purpose::Listener(number) => {
                    write!(text, "door-{number} {owner} {address}\0")
                }
                Purpose::Datagrams => write!(text, "datagrams {owner} {address}\0"),
                Purpose::DatagramRelay => write!(text, "relay {owner} {address}\0"),
                Purpose::Admin => write!(text, "admin {owner} {address}\0"),
                Purpose::Unclaimed => write!(text, "spare {owner} {address}\0"),
            };
            written.unwrap_or_default();
        }
        text
    }

    /// Parses the text of [`List::encode`].
    pub(super) fn decode(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\0')?.split('\0');
        let more = lines.next()?.strip_prefix(VERSION)?.trim().parse().ok()?;
        let labels = lines.map(Label::decode).collect::<Option<_>>()?;
        Some(Self { labels, more })
    }
}

impl Label {
    fn decode(line: &str) -> Option<Self> {
        let (purpose, rest) = line.split_once(' ')?;
        let (owner, address) = rest.split_once(' ')?;
        Some(Self {
            purpose: match purpose.strip_prefix("door-") {
                Some(number) => Purpose::Listener(number.parse().ok()?),
                None if purpose == "datagrams" => Purpose::Datagrams,
                None if purpose == "relay" => Purpose::DatagramRelay,
                None if purpose == "admin" => Purpose::Admin,
                None if purpose == "spare" => Purpose::Unclaimed,
                None => return None,
            },
            owned: match owner {
                "own" => true,
                "lent" => false,
                _ => return None,
            },
            address: address.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(purpose: Purpose, owned: bool, address: &str) -> Label {
        Label {
            purpose,
            owned,
            address: address.parse().unwrap(),
        }
    }

    #[test]
    fn labels_are_read_as_they_were_written() {
        let list = List {
            labels: vec![
                label(Purpose::Listener(0), true, "127.0.0.1:0"),
                label(Purpose::Listener(7), false, "unix:/run/with space.sock"),
                label(Purpose::Datagrams, true, "127.0.0.1:443"),
                label(Purpose::DatagramRelay, true, "127.0.0.1:443"),
                label(Purpose::Admin, true, "[::1]:9090"),
                label(Purpose::Unclaimed, false, "[fe80::1%2]:80"),
            ],
            more: 12,
        };
        assert_eq!(List::decode(&list.encode()), Some(list));
    }

    #[test]
    fn a_file_of_another_version_is_refused() {
        for text in [
            "",
            "\0",
            "proxyd-sockets-2 0\0",
            "proxyd-sockets-1 0",
            "proxyd-sockets-1 0\0door-0 own\0",
            "proxyd-sockets-1 0\0door-0 own nowhere\0",
            "proxyd-sockets-1 0\0window-0 own 127.0.0.1:80\0",
            "proxyd-sockets-1 0\0admin none 127.0.0.1:80\0",
        ] {
            assert_eq!(List::decode(text), None, "{text:?}");
        }
    }
}
