//! A counter for each value of an enumeration, on separate cache lines.

use super::cell::Counter;

const PER_LINE: usize = 16;

/// Two cache lines, because processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line([Counter; PER_LINE]);

/// Counters by index, and one more for indexes beyond the list.
#[derive(Debug)]
pub(crate) struct EnumCounters {
    lines: Box<[Line]>,
    len: usize,
}

impl EnumCounters {
    pub(crate) fn new(len: usize) -> Self {
        let lines = len / PER_LINE + 1;
        Self {
            lines: (0..lines).map(|_| Line::default()).collect(),
            len,
        }
    }

    #[inline]
    pub(crate) fn add(&self, index: usize) {
        let index = index.min(self.len);
        let line = self.lines.get(index / PER_LINE);
        if let Some(counter) = line.and_then(|line| line.0.get(index % PER_LINE)) {
            counter.add(1);
        }
    }

    /// Adds every count to the same index of `total`, which has one element more than the list.
    pub(crate) fn add_to(&self, total: &mut Vec<u64>) {
        total.resize(self.len + 1, 0);
        let counters = self.lines.iter().flat_map(|line| &line.0);
        for (sum, counter) in total.iter_mut().zip(counters) {
            *sum += counter.get();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_beyond_the_list_is_counted_after_it() {
        let dense = EnumCounters::new(16);
        dense.add(0);
        dense.add(15);
        dense.add(16);
        dense.add(4000);

        let mut total = Vec::new();
        dense.add_to(&mut total);

        assert_eq!(total.len(), 17);
        assert_eq!((total[0], total[15], total[16]), (1, 1, 2));
    }
}
