//! Places for work with high cost in time or memory: few at once, and only some of them for one
//! owner.

mod body;
mod fair;
mod heavy;
mod owner;
mod upload;

pub use body::BodyPlace;
pub(crate) use body::BodyPlaces;
pub(crate) use heavy::HeavyPlaces;
pub(crate) use upload::UploadPlaces;
pub use upload::{UploadPlace, UploadPressure};
