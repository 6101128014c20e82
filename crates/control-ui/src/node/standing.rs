//! Wording of nodes' standings.

use crate::view::component::{Bar, Status, Tone, bar};
use crate::view::phrase::{count, few, list_of, number, pick, sentence};
use control_app::StandingCounts;
use control_domain::NodeStanding;

/// All standings, from the best to the one that needs most attention.
const ORDER: [NodeStanding; 7] = [
    NodeStanding::AsOrdered,
    NodeStanding::Moving,
    NodeStanding::Unordered,
    NodeStanding::Enrolled,
    NodeStanding::Silent,
    NodeStanding::Drifted,
    NodeStanding::Refused,
];

/// Number of a project's nodes by standing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standings {
    counts: StandingCounts,
}

/// Number of nodes with one standing.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub(crate) status: Status,
    pub(crate) nodes: i64,
    pub(crate) number: String,
    /// Words after the number.
    pub(crate) words: &'static str,
    /// Name in query parameters.
    pub(crate) name: &'static str,
}

/// Standing as an icon and a word.
pub(crate) fn status(standing: NodeStanding) -> Status {
    let (tone, icon, word) = match standing {
        NodeStanding::AsOrdered => (Tone::Ok, "ok", "As assigned"),
        NodeStanding::Moving => (Tone::Busy, "busy", "Moving"),
        NodeStanding::Unordered => (Tone::Off, "wait", "No bundle"),
        NodeStanding::Enrolled => (Tone::Off, "wait", "Not reported yet"),
        NodeStanding::Silent => (Tone::Off, "off", "Offline"),
        NodeStanding::Drifted => (Tone::Warn, "drift", "Drifted"),
        NodeStanding::Refused => (Tone::Bad, "bad", "Rejected its bundle"),
    };
    Status::new(tone, icon, word)
}

impl Standings {
    /// Standings from the counts of the database.
    pub(crate) fn new(counts: &StandingCounts) -> Self {
        Self {
            counts: counts.clone(),
        }
    }

    /// Number of all nodes.
    pub(crate) fn total(&self) -> i64 {
        self.counts.values().sum()
    }

    pub(crate) fn nodes(&self, standing: NodeStanding) -> i64 {
        self.counts.get(&standing).copied().unwrap_or_default()
    }

    /// Nodes by standing, the best first.
    pub(crate) fn shares(&self) -> Vec<Share> {
        let shares = ORDER.into_iter().map(|standing| self.share(standing));
        shares.filter(|share| 0 < share.nodes).collect()
    }

    fn share(&self, standing: NodeStanding) -> Share {
        let nodes = self.nodes(standing);
        let words = match standing {
            NodeStanding::AsOrdered => "as assigned",
            NodeStanding::Moving => "moving",
            NodeStanding::Unordered => "without a bundle",
            NodeStanding::Enrolled => "not reported yet",
            NodeStanding::Silent => "offline",
            NodeStanding::Drifted => "drifted",
            NodeStanding::Refused => pick(nodes, "rejected its bundle", "rejected their bundles"),
        };
        Share {
            status: status(standing),
            nodes,
            number: number(nodes),
            words,
            name: standing.name(),
        }
    }

    /// Bar chart of all nodes.
    pub(crate) fn bar(&self) -> Bar {
        let shares = self.shares();
        let label: Vec<String> = shares
            .iter()
            .map(|share| format!("{} {}", share.number, share.words))
            .collect();
        let parts: Vec<(Tone, i64)> = shares
            .iter()
            .map(|share| (share.status.tone, share.nodes))
            .collect();
        bar(list_of(&label), &parts)
    }

    /// Sentence on the nodes as a whole.
    pub(crate) fn heading(&self) -> String {
        let (total, good) = (self.total(), self.nodes(NodeStanding::AsOrdered));
        if total == 0 {
            return "No node has been enrolled yet.".to_owned();
        }
        if self.waits_for_orders() {
            return format!(
                "{} {} for a first bundle.",
                count(total, "node"),
                pick(total, "waits", "wait")
            );
        }
        if total == 1 && good == 0 {
            let rest = self.rest();
            return format!("The only node {}", rest.trim_start_matches("One "));
        }
        match (good == total, total) {
            (true, 1) => "The only node serves what it should.".to_owned(),
            (true, _) => format!("All {} serve what they should.", count(total, "node")),
            (false, _) => format!(
                "{} of {} {} what {} should.",
                number(good),
                count(total, "node"),
                pick(good, "serves", "serve"),
                pick(good, "it", "they")
            ),
        }
    }

    /// Returns true if there are nodes, and none of them has ever had an order.
    pub(crate) fn waits_for_orders(&self) -> bool {
        let waiting = self.nodes(NodeStanding::Unordered) + self.nodes(NodeStanding::Enrolled);
        0 < waiting && waiting == self.total()
    }

    /// Sentence on the nodes that the heading does not cover; empty if there are none.
    pub(crate) fn rest(&self) -> String {
        let mut parts = Vec::new();
        if self.nodes(NodeStanding::Unordered) == self.total() {
            return String::new();
        }
        for (standing, one, several) in [
            (
                NodeStanding::Refused,
                "rejected its bundle",
                "rejected their bundles",
            ),
            (
                NodeStanding::Drifted,
                "differs from its assigned bundle",
                "differ from their assigned bundles",
            ),
            (NodeStanding::Silent, "is offline", "are offline"),
            (
                NodeStanding::Moving,
                "has not confirmed its new bundle",
                "have not confirmed their new bundles",
            ),
            (NodeStanding::Unordered, "has no bundle", "have no bundle"),
            (
                NodeStanding::Enrolled,
                "has not reported yet",
                "have not reported yet",
            ),
        ] {
            let nodes = self.nodes(standing);
            if 0 < nodes {
                parts.push(format!("{} {}", few(nodes), pick(nodes, one, several)));
            }
        }
        if parts.is_empty() {
            return String::new();
        }
        sentence(&list_of(&parts))
    }

    /// Returns true if a node needs attention.
    pub(crate) fn is_troubled(&self) -> bool {
        let bad = [
            NodeStanding::Refused,
            NodeStanding::Drifted,
            NodeStanding::Silent,
        ];
        bad.into_iter().any(|standing| 0 < self.nodes(standing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standings(counts: &[(NodeStanding, i64)]) -> Standings {
        Standings::new(&counts.iter().copied().collect())
    }

    #[test]
    fn nodes_are_summed_up_in_one_sentence() {
        use NodeStanding::{AsOrdered, Drifted, Enrolled, Moving, Silent, Unordered};
        for (counts, heading, rest) in [
            (&[][..], "No node has been enrolled yet.", ""),
            (
                &[(AsOrdered, 1)][..],
                "The only node serves what it should.",
                "",
            ),
            (
                &[(AsOrdered, 220)][..],
                "All 220 nodes serve what they should.",
                "",
            ),
            (
                &[(AsOrdered, 208), (Moving, 10), (Drifted, 1), (Silent, 1)][..],
                "208 of 220 nodes serve what they should.",
                "One differs from its assigned bundle, one is offline and ten have not confirmed their new bundles.",
            ),
            (
                &[(AsOrdered, 1), (Silent, 1)][..],
                "1 of 2 nodes serves what it should.",
                "One is offline.",
            ),
            (
                &[(Unordered, 2), (Enrolled, 1)][..],
                "3 nodes wait for a first bundle.",
                "Two have no bundle and one has not reported yet.",
            ),
            (
                &[(Unordered, 1)][..],
                "1 node waits for a first bundle.",
                "",
            ),
        ] {
            let standings = standings(counts);
            assert_eq!(standings.heading(), heading);
            assert_eq!(standings.rest(), rest);
        }
    }
}
