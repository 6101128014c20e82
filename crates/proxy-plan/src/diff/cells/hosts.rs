//! The hosts of requests, divided by the host conditions of both plans.

use proxy_routing::HostPattern;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Host conditions, indexed for lookup by host.
#[derive(Debug, Default)]
pub(in crate::diff) struct HostPartition {
    exact: HashMap<String, u32>,
    /// Cells by suffix, which begins with a dot; empty for `*`.
    below: HashMap<String, u32>,
}

/// Hosts with equal results for the host conditions of both plans.
#[derive(Clone, Debug)]
pub struct HostCell {
    /// Description: a name, `*.` and a name, `any other host`, or `no host`.
    pub label: String,
    /// A host of the cell; empty for requests without a host.
    pub example: String,
    pub(in crate::diff) index: usize,
    fulfilled: Vec<u32>,
    partition: Arc<HostPartition>,
}

impl HostPartition {
    pub(in crate::diff) fn new<'p>(patterns: impl Iterator<Item = &'p HostPattern>) -> Self {
        let mut partition = Self::default();
        for (id, pattern) in (0..).zip(patterns) {
            let text = pattern.to_string();
            match text.strip_prefix('*') {
                Some(suffix) => partition.below.entry(suffix.to_owned()).or_insert(id),
                None => partition.exact.entry(text).or_insert(id),
            };
        }
        partition
    }

    /// The conditions that `host` fulfils, in order.
    fn fulfilled(&self, host: &str) -> Vec<u32> {
        let dots = host.match_indices('.').filter(|(at, _)| 0 < *at);
        let suffixes = dots.filter_map(|(at, _)| self.below.get(host.get(at..)?));
        let any = self.below.get("").filter(|_| !host.is_empty());
        let exact = self.exact.get(host);
        let mut ids: Vec<u32> = suffixes.chain(any).chain(exact).copied().collect();
        ids.sort_unstable();
        ids
    }

    /// A cell for each set of conditions that a host can fulfil. Complete: the patterns below names
    /// are nested or disjoint, so each host is in the cell of its narrowest pattern.
    pub(in crate::diff) fn cells(self) -> Vec<HostCell> {
        let label = self.unused_label();
        let mut hosts = vec![
            ("no host".to_owned(), String::new()),
            ("any other host".to_owned(), format!("{label}.example")),
        ];
        let exact = self.exact.keys().map(|name| (name.clone(), name.clone()));
        let named_below = self.below.keys().filter(|suffix| !suffix.is_empty());
        let below = named_below.map(|suffix| (format!("*{suffix}"), format!("{label}{suffix}")));
        let mut named: Vec<_> = exact.chain(below).collect();
        named.sort();
        hosts.extend(named);
        let partition = Arc::new(self);
        let cells = hosts.into_iter().enumerate();
        let cells = cells.map(|(index, (label, example))| HostCell {
            label,
            index,
            fulfilled: partition.fulfilled(&example),
            example,
            partition: Arc::clone(&partition),
        });
        cells.collect()
    }

    /// A label that no pattern contains.
    fn unused_label(&self) -> String {
        let texts = || self.exact.keys().chain(self.below.keys());
        let mut labels = (0..).map(|number| match number {
            0 => "other".to_owned(),
            number => format!("other{number}"),
        });
        let unused = labels.find(|label| texts().all(|text| !text.contains(label.as_str())));
        unused.unwrap_or_default()
    }
}

impl HostCell {
    /// Returns true if `host`, in the form of [`normal_host`](proxy_routing::normal_host), is in
    /// the cell.
    #[must_use]
    pub fn contains(&self, host: &str) -> bool {
        host.is_empty() == self.example.is_empty()
            && self.partition.fulfilled(host) == self.fulfilled
    }
}

impl fmt::Display for HostCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}
