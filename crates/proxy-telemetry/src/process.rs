//! The process's use of resources, from the operating system.

use std::fs;
use std::time::Duration;

/// Ticks per second in `/proc/self/stat`: part of Linux's stable interface on every supported
/// architecture, independent of the kernel's timer.
const TICKS_PER_SECOND: u64 = 100;

/// Use of memory, processor and descriptors; `None` where the system does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Resident memory, in bytes.
    pub resident_bytes: Option<u64>,
    /// Processor time spent, user and system.
    pub cpu: Option<Duration>,
    /// Open file descriptors.
    pub open_fds: Option<u64>,
}

/// Resident memory of this process in bytes; `None` if the system does not report it.
pub fn resident_memory_bytes() -> Option<u64> {
    resident_bytes(&fs::read_to_string("/proc/self/status").ok()?)
}

impl Process {
    /// Reads `/proc/self`.
    pub fn read() -> Self {
        let text = |path| fs::read_to_string(path).ok();
        Self {
            resident_bytes: resident_memory_bytes(),
            cpu: text("/proc/self/stat").and_then(|stat| cpu(&stat)),
            open_fds: open_fds(),
        }
    }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn cpu(stat: &str) -> Option<Duration> {
    // The second field is the program's name in parentheses and may contain spaces and parentheses;
    // fields are counted from the last parenthesis.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let ticks = user.checked_add(system)?;
    Some(Duration::from_millis(
        ticks.checked_mul(1000 / TICKS_PER_SECOND)?,
    ))
}

fn open_fds() -> Option<u64> {
    // Since Linux 6.2 the folder's size is the number of descriptors; before, the size is 0 and the
    // entries have to be counted.
    let size = fs::metadata("/proc/self/fd").ok()?.len();
    if size > 0 {
        return Some(size);
    }
    let listed = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(listed.saturating_sub(1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_found_in_kibibytes() {
        let status = "Name:\tproxyd\nVmHWM:\t  9000 kB\nVmRSS:\t    5120 kB\nThreads:\t3\n";

        assert_eq!(resident_bytes(status), Some(5_242_880));
        assert_eq!(resident_bytes("Name:\tproxyd\n"), None);
    }

    #[test]
    fn an_unusual_program_name_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 99 0 0";

        assert_eq!(cpu(stat), Some(Duration::from_secs(3)));
        assert_eq!(cpu("7 (cut"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_memory_and_descriptors() {
        let process = Process::read();

        assert!(process.resident_bytes > Some(100_000));
        assert!(process.open_fds >= Some(3));
        assert!(process.cpu.is_some());
    }
}
