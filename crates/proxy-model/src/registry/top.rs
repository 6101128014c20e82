//! What may stand at the top of a file.

use super::kind::Block;
use super::number::Integer;
use super::spec::{Given, Many};
use super::table::{block, integer, named, settings, words};
use super::text::Text;

settings! {
    /// The version of this language. Files without it are read as the newest version.
    SCHEMA_VERSION: Integer<u32>, Given<u32> = integer("schema-version", 1, 1, "")
        .or(1)
        .enforced("proxy-config", "a_schema_version_from_the_future_is_refused");
    /// Reads further files, as if their text stood here. Relative to the folder of this file; `*`
    /// and `?` stand for parts of a name; files are read in the order of their names. A pattern
    /// that matches no file is a fault.
    INCLUDE: Text<String>, Many = words("include", "a file name or a pattern", "routes/*.kdl")
        .many()
        .enforced("proxy-config", "included_files_are_read_in_the_order_of_their_names");
    /// The process. `server` is another name for it.
    SYSTEM: Block, Many = block("system")
        .many()
        .aliases(&["server"])
        .enforced("proxy-config", "every_block_is_decoded");
    /// Where clients connect.
    LISTENERS: Block, Many = block("listeners")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// Where requests go.
    ROUTES: Block, Many = block("routes")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// Groups of targets that answer the same requests.
    UPSTREAMS: Block, Many = block("upstreams")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// External agents that decide about requests.
    AGENTS: Block, Many = block("agents").many().not_yet("agents");
    /// How much of everything the proxy takes.
    LIMITS: Block, Many = block("limits")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// The admin interface.
    ADMIN: Block, Many = block("admin")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// Logs.
    OBSERVABILITY: Block, Many = block("observability")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// The control plane that this node follows.
    CONTROL_PLANE: Block, Many = block("control-plane").many().not_yet("control-plane");
    /// Requests, and what this configuration should do with them; run by `--test`.
    TESTS: Block, Many = block("tests").many().not_yet("config-tests");
    /// One request and what should become of it.
    TEST: Block, Many = named("tests.test", "a sentence").many().not_yet("config-tests");
}
