//! Parser messages about queries and bodies, reworded in the interface's terms.

/// Removes names of Rust types from `reason`.
pub(crate) fn reworded(reason: &str) -> String {
    let (field, fault) = match reason.split_once(": ") {
        Some((field, fault)) if !field.contains(' ') => (Some(field), fault),
        _ => (None, reason),
    };
    let plain = match fault {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "is not a whole number"
        }
        "number too large to fit in target type" => "is too large a number",
        "number too small to fit in target type" => "is too small a number",
        _ if fault.starts_with("UUID parsing failed") => "is not a UUID",
        _ => return without_types(reason),
    };
    match field {
        Some(field) => format!("{field}: {plain}"),
        None => plain.to_owned(),
    }
}

fn without_types(reason: &str) -> String {
    let Some((what, expected)) = reason.rsplit_once(", expected ") else {
        return reason.to_owned();
    };
    let kind = match expected {
        "f32" | "f64" => "a number",
        "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize" => {
            "a whole number"
        }
        _ => return reason.to_owned(),
    };
    format!("{what}, expected {kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reason_names_a_type_of_the_program() {
        for (reason, reported) in [
            (
                "limit: invalid digit found in string",
                "limit: is not a whole number",
            ),
            (
                "limit: cannot parse integer from empty string",
                "limit: is not a whole number",
            ),
            (
                "limit: number too large to fit in target type",
                "limit: is too large a number",
            ),
            (
                "cursor: UUID parsing failed: invalid character: found `z` at 0",
                "cursor: is not a UUID",
            ),
            (
                "invalid type: string \"x\", expected f64",
                "invalid type: string \"x\", expected a number",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "invalid value: integer `-1`, expected a whole number",
            ),
            ("duplicate field `limit`", "duplicate field `limit`"),
            (
                "invalid type: null, expected a string",
                "invalid type: null, expected a string",
            ),
        ] {
            assert_eq!(reworded(reason), reported);
        }
    }
}
