//! Places for work that takes long or much memory: few at once, and only some of them for one owner.

mod heavy;
mod owner;
mod upload;

pub(crate) use heavy::HeavyPlaces;
pub use upload::UploadPlace;
pub(crate) use upload::UploadPlaces;
