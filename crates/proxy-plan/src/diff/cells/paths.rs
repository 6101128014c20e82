//! The paths of requests, divided by path conditions of both plans.

use proxy_routing::{PathPattern, canonical_path};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// Maximum number of sample paths of one regex.
const MAX_SAMPLE_PATHS: usize = 16;
/// Maximum number of sample paths that are tried below each prefix.
const MAX_SAMPLE_PATHS_BELOW: usize = 4;
/// Maximum number of paths of one partition that are sampled for regexes.
const MAX_SAMPLED_PATHS: usize = 20_000;
/// The target of `OPTIONS *`.
pub(in crate::diff) const ASTERISK: &str = "*";

/// Path conditions, indexed for lookup by path.
#[derive(Debug, Default)]
pub(in crate::diff) struct PathPartition {
    exact: HashMap<String, u32>,
    prefixes: HashMap<String, u32>,
    regexes: Vec<(PathPattern, u32)>,
    /// Number among the partitions of one comparison.
    id: usize,
}

/// Paths with equal results for the path conditions of both plans.
#[derive(Clone, Debug)]
pub struct PathCell {
    /// Description: a path; a path with `/…` for paths below it, including itself unless it has a
    /// separate cell; `other paths`; or `paths like` and an example if a regex is involved.
    pub label: String,
    /// A path of the cell.
    pub example: String,
    /// True if it was found in the sample of a regex: paths that fulfil the same conditions may be
    /// missed.
    pub is_sampled: bool,
    pub(in crate::diff) index: usize,
    pub(in crate::diff) fulfilled: Vec<u32>,
    partition: Arc<PathPartition>,
}

/// The identity of a cell among all cells of one comparison.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::diff) enum PathCellKey {
    /// A single path, which is the same cell in every partition.
    Single(String),
    /// A partition, and the index of the cell in it.
    Cell(usize, usize),
}

/// A path that may begin a separate cell.
#[derive(Debug)]
struct Candidate {
    label: Option<String>,
    path: String,
}

impl PathPartition {
    /// The partition of `patterns`, which are distinct: the conditions have their indexes as ids.
    pub(in crate::diff) fn new(id: usize, patterns: &[&PathPattern]) -> Self {
        let mut partition = Self {
            id,
            ..Self::default()
        };
        for (id, pattern) in (0..).zip(patterns) {
            let text = pattern.as_str().to_owned();
            match pattern.setting() {
                "path" => _ = partition.exact.insert(text, id),
                "path-prefix" => _ = partition.prefixes.insert(text, id),
                _ => partition.regexes.push(((*pattern).clone(), id)),
            }
        }
        partition
    }

    pub(in crate::diff) fn regexes(&self) -> impl Iterator<Item = &str> {
        self.regexes.iter().map(|(regex, _)| regex.as_str())
    }

    /// The conditions that `path` fulfils, in order.
    pub(in crate::diff) fn fulfilled(&self, path: &str) -> Vec<u32> {
        let slashes = || path.match_indices('/').map(|(at, _)| at);
        let folders = slashes().filter_map(|at| self.prefixes.get(path.get(..=at)?));
        let parents = slashes().filter_map(|at| self.prefixes.get(path.get(..at)?));
        let own = self.prefixes.get(path);
        let exact = self.exact.get(path);
        let regexes = self.regexes.iter();
        let regexes = regexes.filter(|(regex, _)| regex.matches(path));
        let texts = folders.chain(parents).chain(own).chain(exact).copied();
        let mut ids: Vec<u32> = texts.chain(regexes.map(|(_, id)| *id)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// A cell for each set of conditions that a path can fulfil, and whether regexes have more
    /// paths than are sampled. Complete without regexes: sets of paths that begin with a text are
    /// nested or disjoint.
    pub(in crate::diff) fn cells(self) -> (Vec<PathCell>, bool) {
        let (candidates, is_cut) = self.candidates();
        let partition = Arc::new(self);
        let mut known: HashSet<(bool, Vec<u32>)> = HashSet::new();
        let mut cells: Vec<PathCell> = Vec::new();
        for Candidate { label, path } in candidates {
            if canonical_path(&path).is_ok_and(|canonical| canonical != path) {
                continue;
            }
            let fulfilled = partition.fulfilled(&path);
            if !known.insert((path == ASTERISK, fulfilled.clone())) {
                continue;
            }
            cells.push(PathCell {
                is_sampled: label.is_none(),
                label: label.unwrap_or_else(|| format!("paths like {path}")),
                example: path,
                index: cells.len(),
                fulfilled,
                partition: Arc::clone(&partition),
            });
        }
        (cells, is_cut)
    }

    /// Paths that may be in different cells. Texts and the paths below them are first, so that they
    /// describe their cell.
    fn candidates(&self) -> (Vec<Candidate>, bool) {
        let segment = self.unused_segment();
        let mut texts: Vec<&String> = self.exact.keys().chain(self.prefixes.keys()).collect();
        texts.sort();
        texts.dedup();
        let named = |label: &str, path: String| Candidate {
            label: Some(label.to_owned()),
            path,
        };
        let below = |text: &str| match text.strip_suffix('/') {
            Some(folder) => format!("{folder}/{segment}"),
            None => format!("{text}/{segment}"),
        };
        let mut all = vec![named(ASTERISK, ASTERISK.to_owned())];
        let mut neighbours = Vec::new();
        for text in texts {
            let inside = below(text);
            let label = format!("{}/…", text.strip_suffix('/').unwrap_or(text));
            let is_alike = self.fulfilled(text) == self.fulfilled(&inside);
            all.push(named(if is_alike { &label } else { text }, text.clone()));
            all.push(named(&label, inside));
            neighbours.extend([format!("{text}/"), format!("{text}{segment}")]);
        }
        all.push(named("other paths", format!("/{segment}")));
        let sampled = self.sampled();
        let is_cut = MAX_SAMPLED_PATHS < sampled.len();
        let sampled = sampled.into_iter().take(MAX_SAMPLED_PATHS);
        let unnamed = sampled.chain(neighbours);
        all.extend(unnamed.map(|path| Candidate { label: None, path }));
        (all, is_cut)
    }

    /// Paths that match regexes, alone and below each prefix.
    fn sampled(&self) -> Vec<String> {
        let mut sampled = Vec::new();
        for (regex, _) in &self.regexes {
            let own = regex.sample(MAX_SAMPLE_PATHS);
            let few = own.iter().take(MAX_SAMPLE_PATHS_BELOW);
            for path in few {
                let texts = self.prefixes.keys().map(|text| text.trim_end_matches('/'));
                let below = texts.filter(|text| !text.is_empty());
                sampled.extend(below.map(|text| format!("{text}{path}")));
            }
            sampled.extend(own);
            if MAX_SAMPLED_PATHS < sampled.len() {
                break;
            }
        }
        sampled.sort();
        sampled
    }

    /// A segment that no pattern contains.
    fn unused_segment(&self) -> String {
        let texts = || self.exact.keys().chain(self.prefixes.keys());
        let mut segments = (0..).map(|number| match number {
            0 => "other".to_owned(),
            number => format!("other{number}"),
        });
        let unused = segments.find(|segment| texts().all(|text| !text.contains(segment.as_str())));
        unused.unwrap_or_default()
    }
}

impl PathCell {
    /// Returns true if `path`, in canonical form, is in the cell.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        (path == ASTERISK) == (self.example == ASTERISK)
            && self.partition.fulfilled(path) == self.fulfilled
    }

    pub(in crate::diff) fn key(&self) -> PathCellKey {
        let is_single = self.partition.exact.contains_key(&self.example);
        if is_single {
            PathCellKey::Single(self.example.clone())
        } else {
            PathCellKey::Cell(self.partition.id, self.index)
        }
    }

    /// Number of the partition within one comparison.
    pub(in crate::diff) fn partition_id(&self) -> usize {
        self.partition.id
    }
}

impl fmt::Display for PathCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}
