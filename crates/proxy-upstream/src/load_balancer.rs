//! Which of the ready targets is next.

/// How requests are spread over the targets of an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadBalancer {
    /// Each target in turn.
    #[default]
    RoundRobin,
}

impl LoadBalancer {
    /// The target for a request: an index into the upstream's targets, one of `ready`.
    ///
    /// `turn` counts the requests that were spread before this one. None when nothing is ready.
    #[inline]
    #[must_use]
    pub fn choose(self, turn: u32, ready: &[u16]) -> Option<u16> {
        match self {
            Self::RoundRobin => {
                let place = (turn as usize).checked_rem(ready.len())?;
                ready.get(place).copied()
            }
        }
    }

    /// The next target after `tried` failed; never one of `tried`.
    #[must_use]
    pub fn choose_another(self, turn: u32, ready: &[u16], tried: &[u16]) -> Option<u16> {
        let length = u32::try_from(ready.len()).ok()?;
        (0..length)
            .filter_map(|step| self.choose(turn.wrapping_add(step), ready))
            .find(|target| !tried.contains(target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_gives_each_ready_target_the_same_share() {
        let ready = [0, 2, 5];
        let mut seen = [0; 6];
        for turn in 0..300 {
            let target = LoadBalancer::RoundRobin.choose(turn, &ready).unwrap();
            seen[target as usize] += 1;
        }

        assert_eq!(seen, [100, 0, 100, 0, 0, 100]);
    }

    #[test]
    fn nothing_ready_is_nothing_chosen() {
        assert_eq!(LoadBalancer::RoundRobin.choose(7, &[]), None);
        assert_eq!(LoadBalancer::RoundRobin.choose_another(7, &[], &[]), None);
    }

    #[test]
    fn another_choice_is_never_one_that_was_tried() {
        let ready = [0, 1, 2];

        assert_eq!(
            LoadBalancer::RoundRobin.choose_another(1, &ready, &[1]),
            Some(2)
        );
        assert_eq!(
            LoadBalancer::RoundRobin.choose_another(1, &ready, &[1, 2]),
            Some(0)
        );
        assert_eq!(
            LoadBalancer::RoundRobin.choose_another(1, &ready, &[0, 1, 2]),
            None
        );
    }
}
