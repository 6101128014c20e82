//! Memory available to this process: of the machine, or of its control group.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of memory that the process may use; `None` if the system does not report it.
pub(crate) fn total_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| machine_bytes(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = group_files(&groups).into_iter().filter_map(|file| {
        let text = fs::read_to_string(file).ok()?;
        text.trim().parse().ok()
    });
    limits.chain(machine).min()
}

fn machine_bytes(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The files that may hold a memory limit of the groups in `/proc/self/cgroup`: the process's group
/// and all its parents. A group without a limit has a word there, or a number beyond all memory.
fn group_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (root, name) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max")
        } else if controllers
            .split(',')
            .any(|controller| controller == "memory")
        {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            continue;
        };
        let group = Path::new(group.trim_start_matches('/'));
        let around = group.ancestors().map(|group| Path::new(root).join(group));
        files.extend(around.map(|folder| folder.join(name)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_machine_is_in_kibibytes() {
        let meminfo = "MemTotal:       16384 kB\nMemFree:            1 kB\n";

        assert_eq!(machine_bytes(meminfo), Some(16 * 1024 * 1024));
        assert_eq!(machine_bytes("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn limits_of_the_group_and_of_those_around_it_are_found_in_both_versions() {
        let files = |groups| -> Vec<String> {
            let files = group_files(groups).into_iter();
            files.map(|file| file.display().to_string()).collect()
        };

        assert_eq!(
            files("0::/system.slice/proxyd.service\n"),
            [
                "/sys/fs/cgroup/system.slice/proxyd.service/memory.max",
                "/sys/fs/cgroup/system.slice/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        assert_eq!(
            files("5:cpu,cpuacct:/a\n4:memory:/docker\n1:name=systemd:/a:b\n"),
            [
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            ]
        );
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(total_bytes() > Some(64 << 20));
    }
}
