//! The process in two lines.

use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::reading::CLASSES;
use crate::text::{age, bytes, duration, escaped, number};

/// Version and gauges of the process, and the requests of all routes.
pub(crate) fn summary(interval: &Interval) -> [String; 2] {
    let process = &interval.now.process;
    let mut classes = [0.0; CLASSES];
    let mut all = Histogram::default();
    for (name, now) in &interval.now.routes {
        let before = interval.before.routes.get(name);
        for (class, rate) in classes.iter_mut().enumerate() {
            let count_of = |counts: &[f64; CLASSES]| counts.get(class).copied().unwrap_or_default();
            *rate += interval.rate(
                count_of(&now.classes),
                before.map(|it| count_of(&it.classes)),
            );
        }
        all.add(&now.duration.since(before.map(|it| &it.duration)));
    }
    let [_, success, redirection, client, server] = classes;
    let period = if interval.is_from_start() {
        "since the start"
    } else {
        "now"
    };
    [
        format!(
            "proxyd {}, up {}, configuration {}, {} connections, {} in flight, {} queued, {} tunnels, {}",
            escaped(&process.version),
            age(process.uptime),
            number(process.generation),
            number(process.connections),
            number(process.in_flight),
            number(process.queued),
            number(process.tunnels),
            bytes(process.memory),
        ),
        format!(
            "{period}: {} req/s, 2xx {}, 3xx {}, 4xx {}, 5xx {}, p50 {}, p99 {}",
            number(classes.iter().sum()),
            number(success),
            number(redirection),
            number(client),
            number(server),
            duration(all.quantile(0.5)),
            duration(all.quantile(0.99)),
        ),
    ]
}
