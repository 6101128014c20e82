//! CPU time and memory of processes, read from `/proc`.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// CPU time of all threads of these processes, to the nanosecond.
#[must_use]
pub fn cpu(processes: &[i32]) -> Duration {
    let threads = processes
        .iter()
        .filter_map(|process| fs::read_dir(format!("/proc/{process}/task")).ok())
        .flatten()
        .flatten();
    threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok())
        .filter_map(|stat| stat.split(' ').next()?.parse().ok())
        .map(Duration::from_nanos)
        .sum()
}

/// Resident memory of these processes, in bytes. Shared pages count once: a worker maps most of its
/// master's.
#[must_use]
pub fn memory_bytes(processes: &[i32]) -> u64 {
    let maps: Vec<Resident> = processes
        .iter()
        .filter_map(|process| fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok())
        .map(|text| Resident::read(&text))
        .collect();
    let shared = maps.iter().map(|map| map.shared_bytes).max();
    let private: u64 = maps.iter().map(|map| map.private_bytes).sum();
    private + shared.unwrap_or_default()
}

/// A process and all its descendants.
#[must_use]
pub fn family(process: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| parent(&entry.path()))
        .collect();
    let mut family = vec![process];
    let mut known = 0;
    while let Some(parent) = family.get(known).copied() {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        family.extend(children.map(|(child, _)| *child));
        known += 1;
    }
    family
}

/// Resident memory of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Resident {
    private_bytes: u64,
    shared_bytes: u64,
}

impl Resident {
    fn read(rollup: &str) -> Self {
        let sum = |kind: &str| {
            let lines = rollup.lines().filter(|line| line.starts_with(kind));
            let kibibytes: u64 = lines
                .filter_map(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok())
                .sum();
            kibibytes * 1_024
        };
        Self {
            private_bytes: sum("Private_Clean:") + sum("Private_Dirty:"),
            shared_bytes: sum("Shared_Clean:") + sum("Shared_Dirty:"),
        }
    }
}

/// The id of a process in `/proc` and its parent's. The name of its program may contain any
/// character.
fn parent(folder: &Path) -> Option<(i32, i32)> {
    let process = folder.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    let parent = after_name.split(' ').nth(1)?.parse().ok()?;
    Some((process, parent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn this_process() -> i32 {
        i32::try_from(std::process::id()).unwrap()
    }

    #[test]
    fn a_child_belongs_to_the_family() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let family = family(this_process());
        assert!(family.contains(&this_process()));
        assert!(family.contains(&i32::try_from(child.id()).unwrap()));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn this_process_has_used_time_and_memory() {
        assert!(cpu(&[this_process()]) > Duration::ZERO);
        assert!(memory_bytes(&[this_process()]) > 0);
        assert_eq!(memory_bytes(&[]), 0);
    }

    #[test]
    fn huge_pages_are_not_taken_for_shared_ones() {
        let rollup = "Rss: 900 kB\nShared_Clean:  10 kB\nShared_Dirty: 1 kB\n\
                      Private_Clean: 2 kB\nPrivate_Dirty: 3 kB\nShared_Hugetlb: 500 kB\n";
        let expected = Resident {
            private_bytes: 5 * 1_024,
            shared_bytes: 11 * 1_024,
        };
        assert_eq!(Resident::read(rollup), expected);
    }
}
