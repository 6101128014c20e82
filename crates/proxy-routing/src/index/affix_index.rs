//! An index of texts by prefix or suffix: prefixes of paths, suffixes of hosts.

use super::hash::Hash;
use super::table::Table;
use crate::rank::Rank;

/// A text of the index.
#[derive(Debug)]
pub(crate) struct Link {
    text: Box<str>,
    /// The id stored for the text.
    pub(crate) target: usize,
    /// The best rank of this text and of all its parents.
    pub(crate) top: Rank,
    /// The longest other text that is an affix of this one.
    parent: Option<u32>,
}

/// The affix that texts share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shared {
    Nothing,
    Start,
    End,
}

/// A set of texts. The longest one that is an affix of a given text is found in one pass; its
/// parents are all shorter ones, because each affix of the longest is an affix of the given text,
/// and vice versa.
#[derive(Debug, Default)]
pub(crate) struct AffixIndex {
    links: Vec<Link>,
    table: Table,
    /// Bit `n % 64` is set if there is a text of `n` bytes.
    lengths: u64,
    longest: usize,
    top: Option<Rank>,
}

impl AffixIndex {
    /// Texts for [`AffixIndex::exact`], each with its best rank; ids count from 0.
    pub(super) fn from_exact(texts: Vec<(Box<str>, Rank)>) -> Self {
        Self::new(texts, Shared::Nothing)
    }

    /// Texts for [`AffixIndex::longest_prefix`], each with its best rank.
    pub(super) fn from_prefixes(texts: Vec<(Box<str>, Rank)>) -> Self {
        Self::new(texts, Shared::Start)
    }

    /// Texts for [`AffixIndex::longest_suffix`], each with its best rank.
    pub(super) fn from_suffixes(texts: Vec<(Box<str>, Rank)>) -> Self {
        Self::new(texts, Shared::End)
    }

    fn new(texts: Vec<(Box<str>, Rank)>, shared: Shared) -> Self {
        let mut links: Vec<Link> = texts
            .into_iter()
            .enumerate()
            .map(|(target, (text, top))| Link {
                text,
                target,
                top,
                parent: None,
            })
            .collect();
        links.sort_by_key(|link| link.text.len());
        let hashes: Vec<u64> = links.iter().map(|link| hash(&link.text, shared)).collect();
        let mut index = Self {
            table: Table::new(&hashes),
            lengths: links
                .iter()
                .fold(0, |mask, link| mask | bit(link.text.len())),
            longest: links.last().map_or(0, |link| link.text.len()),
            top: links.iter().map(|link| link.top).max(),
            links,
        };
        index.find_parents(shared);
        index
    }

    /// Sets the parent and the best rank of each text. Texts are in order of length, so a parent's
    /// `top` already includes its own parents.
    fn find_parents(&mut self, shared: Shared) {
        for at in 0..self.links.len() {
            let Some(link) = self.links.get(at) else {
                continue;
            };
            let parent = match shared {
                Shared::Nothing => None,
                Shared::Start => self.prefix_below(&link.text, link.text.len()),
                Shared::End => self.longest_suffix_id(&link.text),
            };
            let outer = parent.and_then(|id| self.link(id)).map(|link| link.top);
            if let Some(link) = self.links.get_mut(at) {
                link.parent = parent;
                link.top = outer.map_or(link.top, |outer| outer.max(link.top));
            }
        }
    }

    /// The best rank of all; `None` if there are no texts.
    pub(crate) fn top(&self) -> Option<Rank> {
        self.top
    }

    /// The entry of exactly this text.
    pub(crate) fn exact(&self, text: &str) -> Option<&Link> {
        if self.lengths & bit(text.len()) == 0 {
            return None;
        }
        self.link(self.id(Hash::from_bytes(text.bytes()), text)?)
    }

    /// The longest text that is a prefix of `path` and ends in a `/` or at the end of a segment.
    pub(crate) fn longest_prefix(&self, path: &str) -> Option<&Link> {
        self.link(self.prefix_below(path, usize::MAX)?)
    }

    fn prefix_below(&self, path: &str, below: usize) -> Option<u32> {
        let mut found = None;
        let mut hash = Hash::new();
        let mut before = 0;
        for (length, byte) in path.bytes().chain([b'/']).enumerate() {
            if below <= length || self.longest < length {
                break;
            }
            let ends_here = byte == b'/' || before == b'/';
            if ends_here && self.lengths & bit(length) != 0 {
                let prefix = path.get(..length).unwrap_or_default();
                found = self.id(hash, prefix).or(found);
            }
            hash = hash.push(byte);
            before = byte;
        }
        found
    }

    /// The longest text that is a suffix of `host`, begins with a dot, and is shorter than `host`;
    /// the empty text is included.
    pub(crate) fn longest_suffix(&self, host: &str) -> Option<&Link> {
        self.link(self.longest_suffix_id(host)?)
    }

    fn longest_suffix_id(&self, host: &str) -> Option<u32> {
        if self.links.is_empty() {
            return None;
        }
        let mut hash = Hash::new();
        let mut found = self.id(hash, "").filter(|_| !host.is_empty());
        for (length, byte) in (1..host.len()).zip(host.bytes().rev()) {
            if self.longest < length {
                break;
            }
            hash = hash.push(byte);
            if byte == b'.' && self.lengths & bit(length) != 0 {
                let suffix = host.get(host.len() - length..).unwrap_or_default();
                found = self.id(hash, suffix).or(found);
            }
        }
        found
    }

    /// `link`, followed by its parents from longest to shortest.
    pub(crate) fn with_parents<'a>(
        &'a self,
        link: Option<&'a Link>,
    ) -> impl Iterator<Item = &'a Link> + use<'a> {
        std::iter::successors(link, |link| self.link(link.parent?))
    }

    fn id(&self, hash: Hash, text: &str) -> Option<u32> {
        let same = |id| self.link(id).is_some_and(|link| *link.text == *text);
        self.table.find(hash.finish(), same)
    }

    fn link(&self, id: u32) -> Option<&Link> {
        self.links.get(usize::try_from(id).ok()?)
    }
}

const fn bit(length: usize) -> u64 {
    1 << (length % 64)
}

fn hash(text: &str, shared: Shared) -> u64 {
    match shared {
        Shared::Nothing | Shared::Start => Hash::from_bytes(text.bytes()).finish(),
        Shared::End => Hash::from_bytes(text.bytes().rev()).finish(),
    }
}
