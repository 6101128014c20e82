//! Request bodies shared by several kinds of resources.

use serde::Deserialize;
use utoipa::ToSchema;

/// Another name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenameRequest {
    #[schema(min_length = 1, max_length = 100)]
    pub(crate) name: String,
}
