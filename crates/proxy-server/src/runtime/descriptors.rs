//! Maximum number of connections by the limit of file descriptors.

use rustix::process::{Resource, getrlimit};

/// Descriptors reserved for everything except clients' connections.
const RESERVED_DESCRIPTORS: u64 = 100;

/// The effective limit on connections if `max` is configured: at most the descriptors less 100, or
/// half of the descriptors if there are fewer than 200. Logs a warning if it lowers `max`.
pub(crate) fn max_connections(max: u32) -> u32 {
    let Some(descriptors) = getrlimit(Resource::Nofile).current else {
        return max;
    };
    let room = room(descriptors);
    if max <= room {
        return max;
    }
    tracing::warn!(
        configured = max,
        in_force = room,
        descriptors,
        "max-total-connections is lowered to what the limit on open files allows"
    );
    room
}

fn room(descriptors: u64) -> u32 {
    let room = descriptors.saturating_sub(RESERVED_DESCRIPTORS);
    u32::try_from(room.max(descriptors / 2).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_descriptors_are_left_or_half_of_few() {
        for (descriptors, connections) in [(1_000, 900), (201, 101), (150, 75), (1, 1), (0, 1)] {
            assert_eq!(room(descriptors), connections, "{descriptors}");
        }
    }
}
