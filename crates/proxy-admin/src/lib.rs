//! Health, status, upstreams, routes, explain, metrics.
