//! Times of clients.

use super::parser::Line;
use crate::kdl::Node;
use crate::units;

/// Times of clients of a section and its defaults, as settings of a listener.
pub(super) fn client_times<'l>(lines: impl Iterator<Item = &'l Line>) -> Vec<Node> {
    let mut times: Vec<(&str, u64)> = Vec::new();
    for line in lines.filter(|line| line.word(0) == "timeout") {
        let Some(ms) =
            units::milliseconds(line.word(2), 1).filter(|ms| (1_000..=3_600_000).contains(ms))
        else {
            continue;
        };
        let names: &[&str] = match line.word(1) {
            "client" => &["body-idle-ms", "write-idle-ms"],
            "http-request" => &["header-ms"],
            "http-keep-alive" => &["keep-alive-ms"],
            _ => &[],
        };
        for name in names {
            times.retain(|(known, _)| known != name);
            times.push((name, ms));
        }
    }
    times
        .iter()
        .map(|(name, ms)| Node::number(name, *ms))
        .collect()
}
