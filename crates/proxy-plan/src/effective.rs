//! The settings in force: what each is, and where it was written.

mod block;
mod limits;
mod listeners;
mod policies;
mod process;
mod routes;
mod secret;
mod shown;
mod upstreams;
mod value;

pub use block::EffectiveSetting;
pub use value::SettingValue;

pub(crate) use limits::limits;
pub(crate) use listeners::listener;
pub(crate) use routes::route;
pub(crate) use shown::Shown;
pub(crate) use upstreams::upstream;

use proxy_model::{Model, Route};

impl EffectiveSetting {
    /// Every setting of `model` that has a value, in the order of the reference. Settings that
    /// were left out and have no default are not among them; secrets are hidden.
    #[must_use]
    pub fn all(model: &Model) -> Vec<Self> {
        let Model {
            listeners,
            routes,
            upstreams,
            agents,
            limits,
            admin,
            observability,
            system,
            control_plane,
            sources,
        } = model;
        let mut all = process::system(sources, system);
        all.extend(listeners.iter().flat_map(|one| listener(model, one)));
        all.extend(routes.iter().flat_map(|one| route(model, one)));
        for one in upstreams {
            all.extend(upstream(sources, one));
            all.extend(upstreams::targets(sources, one));
        }
        all.extend(agents.iter().flat_map(|one| process::agent(sources, one)));
        all.extend(self::limits(sources, limits));
        all.extend(process::admin(sources, admin));
        all.extend(process::observability(sources, observability));
        let followed = control_plane.iter();
        all.extend(followed.flat_map(|one| process::control_plane(sources, one)));
        all
    }

    /// The settings of `one`, a route of `model`.
    #[must_use]
    pub fn of_route(model: &Model, one: &Route) -> Vec<Self> {
        route(model, one)
    }
}
