//! The parts of its plan that a request needs at its end: route, upstream, target.

use crate::worker::active_plan::ActivePlan;
use crate::worker::removed_parts::Part;
use proxy_limits::ClientShareLimit;
use proxy_plan::{EditedFields, TargetIdentity};
use proxy_telemetry::{EscapedField, EscapedFields, RouteMetrics, TargetMetrics};
use std::rc::Rc;
use std::sync::Arc;

/// The parts of its plan that a request uses, by index.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlanParts {
    pub(crate) route: Option<usize>,
    /// Index of the route's upstream.
    pub(crate) route_upstream: Option<usize>,
    /// Index of the last upstream and of its target.
    pub(crate) upstream: Option<(usize, u16)>,
}

/// The plan, or an extract of it.
#[derive(Debug)]
pub(crate) enum Origin {
    /// The whole plan.
    Plan(Rc<ActivePlan>),
    /// An extract, for a stream that may outlive the plan by days.
    // Boxed, because it is rare.
    Extract(Box<Extract>),
}

/// Route and target of one request, without their plan.
#[derive(Debug)]
pub(crate) struct Extract {
    route: Option<Arc<str>>,
    edited_fields: Option<Arc<EditedFields>>,
    route_metrics: Arc<RouteMetrics>,
    /// The entry of the route; empty if the log is off.
    route_fields: EscapedFields,
    target: Option<ExtractedTarget>,
}

#[derive(Debug)]
struct ExtractedTarget {
    upstream: Arc<str>,
    identity: Arc<TargetIdentity>,
    label: Arc<str>,
    metrics: Arc<TargetMetrics>,
    /// The entry of the target; empty if the log is off.
    target_fields: EscapedFields,
}

impl Origin {
    /// Replaces the plan by an extract.
    pub(crate) fn extract(&mut self, parts: PlanParts) {
        if let Self::Plan(active) = self {
            *self = Self::Extract(Box::new(Extract::new(active, parts)));
        }
    }

    pub(crate) fn route_id(&self, parts: PlanParts) -> Option<&str> {
        match self {
            Self::Plan(active) => Some(&active.plan.routes().get(parts.route?)?.id),
            Self::Extract(extract) => extract.route.as_deref(),
        }
    }

    /// The response fields that the route edits.
    pub(crate) fn edited_fields(&self, parts: PlanParts) -> Option<&EditedFields> {
        match self {
            Self::Plan(active) => Some(&active.plan.routes().get(parts.route?)?.edited_fields),
            Self::Extract(extract) => extract.edited_fields.as_deref(),
        }
    }

    /// The limit on connections of the route; `None` for one without, and for an extract.
    pub(crate) fn route_connections(&self, parts: PlanParts) -> Option<&ClientShareLimit> {
        match self {
            Self::Plan(active) => active.limits.get(parts.route?)?.connections.as_ref(),
            Self::Extract(_) => None,
        }
    }

    /// The last upstream used, or the route's.
    pub(crate) fn upstream_name(&self, parts: PlanParts) -> Option<&str> {
        match self {
            Self::Plan(active) => {
                let called = parts.upstream.map(|(upstream, _)| upstream);
                let upstream = called.or(parts.route_upstream)?;
                Some(&active.plan.upstreams().get(upstream)?.name)
            }
            Self::Extract(extract) => Some(&*extract.target.as_ref()?.upstream),
        }
    }

    /// The address of the last target.
    pub(crate) fn target_label(&self, parts: PlanParts) -> Option<&str> {
        match self {
            Self::Plan(active) => {
                let (upstream, target) = parts.upstream?;
                let upstream = active.plan.upstreams().get(upstream)?;
                Some(&upstream.targets.get(usize::from(target))?.label)
            }
            Self::Extract(extract) => Some(&extract.target.as_ref()?.label),
        }
    }

    /// The last target.
    fn target_identity(&self, parts: PlanParts) -> Option<&Arc<TargetIdentity>> {
        match self {
            Self::Plan(active) => {
                let (upstream, target) = parts.upstream?;
                let upstream = active.plan.upstreams().get(upstream)?;
                Some(&upstream.targets.get(usize::from(target))?.identity)
            }
            Self::Extract(extract) => Some(&extract.target.as_ref()?.identity),
        }
    }

    pub(crate) fn target_metrics(&self, parts: PlanParts) -> Option<&TargetMetrics> {
        match self {
            Self::Plan(active) => {
                let (upstream, target) = parts.upstream?;
                let upstream = active.upstreams.get(upstream)?;
                Some(&**upstream.targets.get(usize::from(target))?)
            }
            Self::Extract(extract) => Some(&*extract.target.as_ref()?.metrics),
        }
    }

    /// The request's route or target, if `active`, a later plan, lacks it.
    pub(crate) fn lost(&self, parts: PlanParts, active: &ActivePlan) -> Option<Part> {
        let route = self.route_id(parts).filter(|id| !active.has_route(id));
        if let Some(id) = route {
            return Some(Part::Route(id.into()));
        }
        let target = self.target_identity(parts)?;
        let lost = !active.has_target(target);
        lost.then(|| Part::Target(Arc::clone(target)))
    }

    #[inline]
    pub(crate) fn route_metrics(&self, parts: PlanParts) -> &RouteMetrics {
        match self {
            Self::Plan(active) => active.routes.route(parts.route),
            Self::Extract(extract) => &extract.route_metrics,
        }
    }

    /// The route in the form of access records.
    pub(crate) fn route_field(&self, parts: PlanParts) -> Option<EscapedField<'_>> {
        match self {
            Self::Plan(active) => active.route_fields.get(parts.route?),
            Self::Extract(extract) => extract.route_fields.get(0),
        }
    }

    /// The last upstream and target in the form of access records; the upstream alone if there was
    /// no attempt.
    pub(crate) fn target_field(&self, parts: PlanParts) -> Option<EscapedField<'_>> {
        match self {
            Self::Plan(active) => match parts.upstream {
                Some((upstream, target)) => {
                    let upstream = active.upstreams.get(upstream)?;
                    upstream.target_fields.get(usize::from(target))
                }
                None => active
                    .upstreams
                    .get(parts.route_upstream?)?
                    .upstream_field
                    .get(0),
            },
            Self::Extract(extract) => extract.target.as_ref()?.target_fields.get(0),
        }
    }
}

impl Extract {
    fn new(active: &ActivePlan, parts: PlanParts) -> Self {
        let recorded = active.access_format.is_some();
        let route = parts
            .route
            .and_then(|route| active.plan.routes().get(route));
        let edited_fields = route.map(|route| Arc::clone(&route.edited_fields));
        let route = route.map(|route| Arc::clone(&route.id));
        let id = route.as_deref().filter(|_| recorded);
        Self {
            route_metrics: active.routes.shared(parts.route),
            route_fields: EscapedFields::from_routes(id),
            route,
            edited_fields,
            target: ExtractedTarget::new(active, parts),
        }
    }
}

impl ExtractedTarget {
    fn new(active: &ActivePlan, parts: PlanParts) -> Option<Self> {
        let (upstream, target) = parts.upstream?;
        let target = usize::from(target);
        let plan = active.plan.upstreams().get(upstream)?;
        let metrics = active.upstreams.get(upstream)?.targets.get(target)?;
        let target = plan.targets.get(target)?;
        let label = active.access_format.as_ref().map(|_| &*target.label);
        Some(Self {
            upstream: Arc::clone(&plan.name),
            identity: Arc::clone(&target.identity),
            label: Arc::clone(&target.label),
            metrics: Arc::clone(metrics),
            target_fields: EscapedFields::from_targets(&plan.name, label),
        })
    }
}
