//! Settings at the top level of a file.

use super::kind::Block;
use super::number::Integer;
use super::spec::{DefaultValue, MachinePart, Repeatable};
use super::table::{block, integer, settings, words};
use super::text::Text;

settings! {
    /// The version of the configuration language. Files without it are read as the newest version.
    SCHEMA_VERSION: Integer<u32>, DefaultValue<u32> = integer("schema-version", 1, 1, "")
        .or(1)
        .enforced("proxy-config", "a_schema_version_from_the_future_is_refused");
    /// Includes other files at the place of this node. Paths are relative to the folder of this
    /// file; `*` and `?` match parts of a name; matching files are read in alphabetical order. A
    /// pattern that matches no file is an error.
    INCLUDE: Text<String>, Repeatable = words("include", "a file name or a pattern", "routes/*.kdl")
        .many()
        .names(MachinePart::File)
        .enforced("proxy-config", "included_files_are_read_in_the_order_of_their_names");
    /// Settings of the process. `server` is another name for it.
    SYSTEM: Block, Repeatable = block("system")
        .many()
        .aliases(&["server"])
        .enforced("proxy-config", "every_block_is_decoded");
    /// The listeners.
    LISTENERS: Block, Repeatable = block("listeners")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// The routes.
    ROUTES: Block, Repeatable = block("routes")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// The upstreams.
    UPSTREAMS: Block, Repeatable = block("upstreams")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// External agents that decide about requests.
    AGENTS: Block, Repeatable = block("agents").many().enforced("proxy-pipeline", "an_agent_sees_the_head_and_the_request_continues");
    /// Global limits.
    LIMITS: Block, Repeatable = block("limits")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// The admin interface.
    ADMIN: Block, Repeatable = block("admin")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// The access log and the error log.
    OBSERVABILITY: Block, Repeatable = block("observability")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// The control plane that this node follows.
    CONTROL_PLANE: Block, Repeatable = block("control-plane")
        .many()
        .enforced("control-client", "a_node_enrols_and_runs_the_bundle_of_its_order");
    /// Requests with the decision that is expected on each.
    TESTS: Block, Repeatable = block("tests")
        .many()
        .enforced("proxy-plan", "a_test_whose_expectation_holds_passes");
}
