//! What the end of a request needs of the plan that the request began under.

use crate::closing::Facts;
use crate::state::ActivePlan;
use proxy_plan::TargetIdentity;
use proxy_telemetry::{Phrase, Phrases, RouteCells, TargetCells};
use std::rc::Rc;
use std::sync::Arc;

/// The plan, or what its request needs of it still.
#[derive(Debug)]
pub(crate) enum Origin {
    /// The whole plan.
    Plan(Rc<ActivePlan>),
    /// An extract, for a stream that may outlive the plan by days.
    // Boxed: hardly any request has one.
    Extract(Box<Extract>),
}

/// Route and target of one request, without their plan.
#[derive(Debug)]
pub(crate) struct Extract {
    route: Option<Arc<str>>,
    route_cells: Arc<RouteCells>,
    /// One phrase, or none where there are no records.
    route_phrases: Phrases,
    target: Option<ExtractedTarget>,
}

#[derive(Debug)]
struct ExtractedTarget {
    upstream: Arc<str>,
    identity: Arc<TargetIdentity>,
    cells: Arc<TargetCells>,
    /// One phrase, or none where there are no records.
    phrases: Phrases,
}

impl Origin {
    /// Lets go of the plan.
    pub(crate) fn extract(&mut self, facts: &Facts) {
        if let Self::Plan(active) = self {
            *self = Self::Extract(Box::new(Extract::of(active, facts)));
        }
    }

    pub(crate) fn route_id(&self, facts: &Facts) -> Option<&str> {
        match self {
            Self::Plan(active) => Some(&active.plan.routes().get(facts.route?)?.id),
            Self::Extract(extract) => extract.route.as_deref(),
        }
    }

    /// The upstream called last, or the one that the request was meant for.
    pub(crate) fn upstream_name(&self, facts: &Facts) -> Option<&str> {
        match self {
            Self::Plan(active) => {
                let called = facts.upstream.map(|(upstream, _)| upstream);
                let upstream = called.or(facts.meant)?;
                Some(&active.plan.upstreams().get(upstream)?.name)
            }
            Self::Extract(extract) => Some(&*extract.target.as_ref()?.upstream),
        }
    }

    /// The target called last.
    pub(crate) fn target_identity(&self, facts: &Facts) -> Option<&Arc<TargetIdentity>> {
        match self {
            Self::Plan(active) => {
                let (upstream, target) = facts.upstream?;
                let upstream = active.plan.upstreams().get(upstream)?;
                Some(&upstream.targets.get(usize::from(target))?.identity)
            }
            Self::Extract(extract) => Some(&extract.target.as_ref()?.identity),
        }
    }

    pub(crate) fn target_cells(&self, facts: &Facts) -> Option<&TargetCells> {
        match self {
            Self::Plan(active) => {
                let (upstream, target) = facts.upstream?;
                let upstream = active.upstreams.get(upstream)?;
                Some(&**upstream.targets.get(usize::from(target))?)
            }
            Self::Extract(extract) => Some(&*extract.target.as_ref()?.cells),
        }
    }

    #[inline]
    pub(crate) fn route_cells(&self, facts: &Facts) -> &RouteCells {
        match self {
            Self::Plan(active) => active.routes.route(facts.route),
            Self::Extract(extract) => &extract.route_cells,
        }
    }

    /// The route as access records have it.
    pub(crate) fn route_phrase(&self, facts: &Facts) -> Option<Phrase<'_>> {
        match self {
            Self::Plan(active) => active.route_phrases.get(facts.route?),
            Self::Extract(extract) => extract.route_phrases.get(0),
        }
    }

    /// The upstream and target called last, as access records have them; the upstream alone when no
    /// target was called.
    pub(crate) fn target_phrase(&self, facts: &Facts) -> Option<Phrase<'_>> {
        match self {
            Self::Plan(active) => match facts.upstream {
                Some((upstream, target)) => {
                    let upstream = active.upstreams.get(upstream)?;
                    upstream.phrases.get(usize::from(target))
                }
                None => active.upstreams.get(facts.meant?)?.phrase.get(0),
            },
            Self::Extract(extract) => extract.target.as_ref()?.phrases.get(0),
        }
    }
}

impl Extract {
    fn of(active: &ActivePlan, facts: &Facts) -> Self {
        let recorded = active.access_format.is_some();
        let route = facts
            .route
            .and_then(|route| active.plan.routes().get(route));
        let route = route.map(|route| Arc::clone(&route.id));
        let id = route.as_deref().filter(|_| recorded);
        Self {
            route_cells: active.routes.shared(facts.route),
            route_phrases: Phrases::of_routes(id),
            route,
            target: ExtractedTarget::of(active, facts),
        }
    }
}

impl ExtractedTarget {
    fn of(active: &ActivePlan, facts: &Facts) -> Option<Self> {
        let (upstream, target) = facts.upstream?;
        let target = usize::from(target);
        let plan = active.plan.upstreams().get(upstream)?;
        let cells = active.upstreams.get(upstream)?.targets.get(target)?;
        let target = plan.targets.get(target)?;
        let label = active.access_format.as_ref().map(|_| &*target.label);
        Some(Self {
            upstream: Arc::clone(&plan.name),
            identity: Arc::clone(&target.identity),
            cells: Arc::clone(cells),
            phrases: Phrases::of_targets(&plan.name, label),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use crate::client::{Client, Stream};
    use crate::client_body::ClientBody;
    use crate::correlation::IdSource;
    use crate::exchange::Exchange;
    use crate::forwarding::Peer;
    use crate::state::{Logs, Shared, UpstreamLinks, Worker};
    use crate::time::Time;
    use http::{Request, Response};
    use proxy_clock::Deadline;
    use proxy_limits::Gauge;
    use proxy_plan::{Plan, TargetRegistry};
    use proxy_pool::{ConnectSettings, Transport, Tunnel};
    use proxy_telemetry::{Lifecycle, Registry, RegistrySettings};
    use std::cell::Cell;
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::Weak;
    use std::time::{Duration, SystemTime};
    use tokio::net::TcpStream;

    fn registry() -> Arc<Registry> {
        Arc::new(Registry::new(RegistrySettings {
            reasons: &[],
            max_series: 10,
        }))
    }

    /// A plan with one route, and a way to its one target.
    fn active(generation: u64, route: &str, registry: &Arc<Registry>) -> ActivePlan {
        let text = format!(
            "listeners {{ listener \"main\" {{ address \"127.0.0.1:0\" }} }}\n\
             routes {{ route \"{route}\" {{ upstream \"u\" }} }}\n\
             upstreams {{ upstream \"u\" {{ target \"127.0.0.1:81\" }} }}"
        );
        let loaded = proxy_config::parse(&text, "test.kdl").unwrap();
        let mut targets = TargetRegistry::default().begin();
        let plan = Plan::compile(generation, Arc::new(loaded.model), &mut targets);
        let settings = ConnectSettings {
            timeout: Duration::ZERO,
            tls: None,
            limit: None,
        };
        let links = vec![UpstreamLinks {
            targets: vec![settings],
        }];
        ActivePlan::new(Arc::new(plan), links, registry, 0)
    }

    fn worker(active: ActivePlan, registry: &Arc<Registry>) -> Rc<Worker> {
        let versions = ("1", "abc");
        let lifecycle = Lifecycle::new(versions, Arc::clone(registry), SystemTime::UNIX_EPOCH);
        let shared = Shared {
            in_flight: Gauge::new(10),
            connections: Gauge::new(10),
            lifecycle: Arc::new(lifecycle),
        };
        let cells = registry.worker(0);
        let ids = IdSource::new([7; 32]);
        let clock_and_ids = (Time::start(), ids);
        let worker = Worker::new(Arc::new(shared), clock_and_ids, active, cells, Logs::off());
        Rc::new(worker)
    }

    async fn tunnel() -> Tunnel {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await;
        Tunnel {
            transport: Transport::Tcp(stream.unwrap()),
            early: bytes::Bytes::new(),
            lane: None,
        }
    }

    /// A request that has become a tunnel, and its client.
    async fn switched(worker: &Rc<Worker>) -> Rc<Client> {
        let peer = Peer::new(Ipv4Addr::LOCALHOST.into(), false, &[]);
        let client = Rc::new(Client::new(Rc::new(Cell::new(0)), peer, true));
        let stream = Stream {
            client: Rc::clone(&client),
            deadline: Rc::<Deadline>::default(),
        };
        let (head, ()) = Request::new(()).into_parts();
        let mut exchange = Exchange::begin(Rc::clone(worker), stream, head, ClientBody::Empty);
        let plan = Rc::clone(exchange.active());
        exchange.enter(&plan.plan.routes()[0]);
        exchange.ask(0, 0);
        client.offer(tunnel().await, None, Duration::from_mins(1));
        let Exchange { closing, found, .. } = exchange;
        let response = Response::new(Body::bytes(bytes::Bytes::new()));
        drop(closing.finish(&found, response));
        client
    }

    #[tokio::test]
    async fn a_tunnel_outlives_the_plan_that_it_began_under() {
        let registry = registry();
        let worker = worker(active(1, "old", &registry), &registry);
        let plan: Weak<Plan> = Arc::downgrade(&worker.active().plan);
        let client = switched(&worker).await;
        assert!(plan.upgrade().is_some());

        worker.adopt(active(2, "new", &registry));

        assert!(plan.upgrade().is_none(), "something holds the old plan");
        let mut tunnel = client.take_switched().unwrap();
        assert_eq!(tunnel.closing.upstream_name(), "u");
        let facts = &tunnel.closing.facts;
        assert_eq!(tunnel.closing.origin.route_id(facts), Some("old"));
        // The time to drain is not over.
        assert!(tunnel.closing.removed().is_none());
        worker.clock.advance_to(Duration::from_hours(1));
        worker.end_removed();
        let problem = tunnel.closing.removed().unwrap();
        assert_eq!(problem.reason().as_str(), "route_removed");
    }
}
