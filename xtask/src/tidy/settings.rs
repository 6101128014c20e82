//! Check: patterns of settings types have no `..`. Otherwise, code that ignores a new setting would
//! compile.

use super::tree::Tree;
use super::violation::Violation;

/// Returns patterns with `..` of types named `…Settings`.
pub(super) fn violations(tree: &Tree) -> Vec<Violation> {
    let mut faults = Vec::new();
    for (file, source) in tree.rust() {
        let code = source.code.join("\n");
        let ends = code
            .match_indices("Settings")
            .map(|(at, name)| at + name.len());
        for end in ends {
            if code.get(end..).is_some_and(leaves_fields_out) {
                let line = code
                    .get(..end)
                    .map_or(0, |before| before.matches('\n').count());
                let what = "takes settings apart with `..`: name every field";
                faults.push(Violation::on_line(&file.path, line, what));
            }
        }
    }
    faults
}

/// Returns true if ` { … .. }` follows. In struct expressions, a value follows the dots.
fn leaves_fields_out(after: &str) -> bool {
    let Some(fields) = after.trim_start().strip_prefix('{') else {
        return false;
    };
    let mut depth = 1_u32;
    for (at, c) in fields.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let inside = fields.get(..at).unwrap_or_default();
            return inside.trim_end().ends_with("..");
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    #[test]
    fn dots_in_a_settings_pattern_are_a_fault() {
        let tree = Tree::from_files(&[(
            "a.rs",
            "//! A.\nlet PoolSettings {\n    max_idle,\n    ..\n} = settings;\nlet Settings { a, .. } = b;\n",
        )]);
        assert_eq!(
            rendered(&violations(&tree)),
            [
                "a.rs:2: takes settings apart with `..`: name every field",
                "a.rs:6: takes settings apart with `..`: name every field",
            ]
        );
    }

    #[test]
    fn whole_patterns_other_types_and_expressions_are_none() {
        let tree = Tree::from_files(&[(
            "a.rs",
            "let Settings { a, b: Other { .. } } = s;\nlet Head { .. } = h;\n\
             let s = Settings { a, ..base };\nstruct Settings { a: u8 }\nuse Settings;\n",
        )]);
        assert_eq!(rendered(&violations(&tree)), [""; 0]);
    }
}
