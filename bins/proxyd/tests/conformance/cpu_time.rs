//! CPU time of processes as the kernel counts it.

use std::fs;
use std::time::Duration;

const TICKS_PER_SECOND: u64 = 100;

/// Returns the CPU time of everything since the machine's start, except of the processes `own`.
/// [`proc_stat(5)`]
pub(crate) fn foreign_time(own: &[String]) -> Duration {
    // User, nice, system, interrupts and stolen time; not idle time (4) and waiting time (5).
    const BUSY: [usize; 6] = [1, 2, 3, 6, 7, 8];
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let own: Duration = own.iter().map(|process| process_time(process)).sum();
    ticks(&stat, &BUSY).saturating_sub(own)
}

/// Returns user and system time of a process, in steps of 10 ms. [`proc_pid_stat(5)`]
pub(crate) fn process_time(process: &str) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The program's name may contain spaces. The state follows its closing parenthesis.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    ticks(fields, &[11, 12])
}

fn ticks(line: &str, fields: &[usize]) -> Duration {
    let values: Vec<&str> = line.split_whitespace().collect();
    let value = |field: &usize| values[*field].parse::<u64>().unwrap();
    let ticks: u64 = fields.iter().map(value).sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}
