//! Random numbers of the simulations, reproducible by their seeds.

/// `SplitMix64`, a generator of uniform random numbers.
pub(crate) struct Random {
    state: u64,
    /// Mean above which counts are normal: drawing them one by one would take long.
    max_poisson_mean: f64,
}

impl Random {
    pub(crate) fn new(seed: u64, max_poisson_mean: f64) -> Self {
        Self {
            state: seed,
            max_poisson_mean,
        }
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a uniform random number from 0 to 1.
    pub(crate) fn even(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, least: f64, most: f64) -> f64 {
        least + self.even() * (most - least)
    }

    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.even().max(1e-300), self.even());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Returns a random count with this mean: Poisson-distributed, or above the generator's maximum
    /// normal with the same deviation.
    pub(crate) fn poisson(&mut self, mean: f64) -> u64 {
        if mean > self.max_poisson_mean {
            return (mean + mean.sqrt() * self.normal()).max(0.0).round() as u64;
        }
        let (mut count, mut product, end) = (0, self.even(), (-mean).exp());
        while product > end {
            count += 1;
            product *= self.even();
        }
        count
    }
}
