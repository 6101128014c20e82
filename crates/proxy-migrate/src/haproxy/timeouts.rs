//! Converts client timeouts.

use super::parser::Line;
use crate::kdl::Node;
use crate::site::Site;
use crate::units;

/// Client timeouts of a section and its defaults, as listener settings.
pub(super) fn client_timeouts<'l>(
    site: &mut Site,
    lines: impl Iterator<Item = &'l Line>,
) -> Vec<Node> {
    let mut timeouts: Vec<(&str, u64)> = Vec::new();
    for line in lines.filter(|line| line.word(0) == "timeout") {
        let Some(ms) = units::milliseconds(line.word(2), 1).filter(|ms| *ms > 0) else {
            continue;
        };
        let names: &[&str] = match line.word(1) {
            "client" => &["body-idle", "write-idle"],
            "http-request" => &["header"],
            "http-keep-alive" => &["keep-alive"],
            _ => &[],
        };
        for name in names {
            let ms = site.within(&line.place, &line.text(), name, ms);
            timeouts.retain(|(known, _)| known != name);
            timeouts.push((name, ms));
        }
    }
    timeouts
        .iter()
        .map(|(name, ms)| Node::number(&format!("{name}-ms"), *ms))
        .collect()
}
