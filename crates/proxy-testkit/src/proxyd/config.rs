//! A configuration for a test: one listener, one worker, and the test's own blocks.

use crate::upstream::Upstream;
use std::fmt::Write;
use std::marker::PhantomData;
use std::net::SocketAddr;

/// A way to start a proxy: as a process, or in the test's own.
pub trait Launcher {
    /// The running proxy.
    type Proxy;

    /// Starts a proxy with this configuration, and waits until it serves.
    fn launch(kdl: &str) -> Self::Proxy;
}

/// A configuration that the launcher `L` starts.
#[derive(Clone, Debug)]
pub struct Config<L> {
    address: Option<SocketAddr>,
    listener: String,
    routes: String,
    upstreams: String,
    top: String,
    launcher: PhantomData<L>,
}

impl<L: Launcher> Config<L> {
    /// No route and no upstream.
    #[must_use]
    pub fn new() -> Self {
        Self {
            address: None,
            listener: String::new(),
            routes: String::new(),
            upstreams: String::new(),
            top: String::new(),
            launcher: PhantomData,
        }
    }

    /// One route, `all`, for every request to `upstream`, which is named `u`.
    #[must_use]
    pub fn to(upstream: &Upstream) -> Self {
        Self::new()
            .route("all", r#"upstream "u""#)
            .upstream("u", &target(upstream))
    }

    /// Like [`Config::to`], with settings for the route.
    #[must_use]
    pub fn through(upstream: &Upstream, route: &str) -> Self {
        let route = format!(r#"upstream "u"; {route}"#);
        Self::new()
            .route("all", &route)
            .upstream("u", &target(upstream))
    }

    /// Like [`Config::to`], with settings for the upstream.
    #[must_use]
    pub fn to_with(upstream: &Upstream, settings: &str) -> Self {
        let settings = format!("{}; {settings}", target(upstream));
        Self::new()
            .route("all", r#"upstream "u""#)
            .upstream("u", &settings)
    }

    /// Sets the address, instead of a port picked by the kernel.
    #[must_use]
    pub fn at(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// More settings for the listener.
    #[must_use]
    pub fn listener(mut self, settings: &str) -> Self {
        add(&mut self.listener, format_args!("{settings}"));
        self
    }

    /// One more route.
    #[must_use]
    pub fn route(mut self, id: &str, settings: &str) -> Self {
        let route = format_args!("route \"{id}\" {{ {settings} }}");
        add(&mut self.routes, route);
        self
    }

    /// One more upstream.
    #[must_use]
    pub fn upstream(mut self, name: &str, settings: &str) -> Self {
        let upstream = format_args!("upstream \"{name}\" {{ {settings} }}");
        add(&mut self.upstreams, upstream);
        self
    }

    /// More blocks.
    #[must_use]
    pub fn top(mut self, blocks: &str) -> Self {
        add(&mut self.top, format_args!("{blocks}"));
        self
    }

    /// The text.
    #[must_use]
    pub fn kdl(&self) -> String {
        let Self {
            address,
            listener,
            routes,
            upstreams,
            top,
            launcher: _,
        } = self;
        let workers = if top.contains("worker-threads") {
            ""
        } else {
            "worker-threads 1"
        };
        let address = address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
        format!(
            "listeners {{ listener \"main\" {{\naddress \"{address}\"\n{listener}}} }}\n\
             routes {{\n{routes}}}\nupstreams {{\n{upstreams}}}\n{workers}\n{top}"
        )
    }

    /// A proxy with this configuration.
    #[must_use]
    #[track_caller]
    pub fn start(&self) -> L::Proxy {
        L::launch(&self.kdl())
    }
}

impl<L: Launcher> Default for Config<L> {
    fn default() -> Self {
        Self::new()
    }
}

/// The `target` line for an upstream.
#[must_use]
pub fn target(upstream: &Upstream) -> String {
    format!("target \"{}\"", upstream.address())
}

fn add(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string takes all");
}
