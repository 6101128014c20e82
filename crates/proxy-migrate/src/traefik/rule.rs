//! Parser for rules of routers: matchers with `&&`, `||`, `!` and parentheses.

/// Maximum depth of parentheses and negations.
const MAX_DEPTH: usize = 32;
/// Maximum number of alternatives per rule, and of matchers per alternative.
const MAX_ALTERNATIVES: usize = 64;

/// A matcher such as ``Host(`example.com`)``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Matcher {
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    pub(super) is_negated: bool,
}

/// Matchers that must all hold.
pub(super) type Alternative = Vec<Matcher>;

/// Parses a rule into alternatives; `None` if it is invalid, or has too many.
pub(super) fn parse(text: &str) -> Option<Vec<Alternative>> {
    let mut parser = Parser { rest: text };
    let expression = parser.any(0)?;
    parser.skip_spaces();
    if !parser.rest.is_empty() {
        return None;
    }
    alternatives(&expression, false)
}

enum Expression {
    Matcher(String, Vec<String>),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
}

struct Parser<'t> {
    rest: &'t str,
}

impl Parser<'_> {
    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Consumes `token` if it follows; returns whether it did.
    fn eat(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn any(&mut self, depth: usize) -> Option<Expression> {
        let mut parts = vec![self.all(depth)?];
        while self.eat("||") {
            parts.push(self.all(depth)?);
        }
        Some(Expression::Any(parts))
    }

    fn all(&mut self, depth: usize) -> Option<Expression> {
        let mut parts = vec![self.operand(depth)?];
        while self.eat("&&") {
            parts.push(self.operand(depth)?);
        }
        Some(Expression::All(parts))
    }

    fn operand(&mut self, depth: usize) -> Option<Expression> {
        if depth > MAX_DEPTH {
            return None;
        }
        if self.eat("!") {
            return Some(Expression::Not(Box::new(self.operand(depth + 1)?)));
        }
        if self.eat("(") {
            let inner = self.any(depth + 1)?;
            return self.eat(")").then_some(inner);
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric());
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        if name.is_empty() || !self.eat("(") {
            return None;
        }
        let mut arguments = Vec::new();
        loop {
            arguments.push(self.argument()?);
            if self.eat(")") {
                break;
            }
            if !self.eat(",") {
                return None;
            }
        }
        Some(Expression::Matcher(name.to_owned(), arguments))
    }

    fn argument(&mut self) -> Option<String> {
        if self.eat("`") {
            let (text, rest) = self.rest.split_once('`')?;
            self.rest = rest;
            return Some(text.to_owned());
        }
        if !self.eat("\"") {
            return None;
        }
        let mut text = String::new();
        let mut chars = self.rest.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => match chars.next()? {
                    c @ ('"' | '\\') => text.push(c),
                    _ => return None,
                },
                c => text.push(c),
            }
        }
        self.rest = chars.as_str();
        Some(text)
    }
}

fn alternatives(expression: &Expression, is_negated: bool) -> Option<Vec<Alternative>> {
    match (expression, is_negated) {
        (Expression::Matcher(name, arguments), _) => Some(vec![vec![Matcher {
            name: name.clone(),
            arguments: arguments.clone(),
            is_negated,
        }]]),
        (Expression::Not(inner), _) => alternatives(inner, !is_negated),
        (Expression::Any(parts), false) | (Expression::All(parts), true) => {
            let mut joined = Vec::new();
            for part in parts {
                joined.extend(alternatives(part, is_negated)?);
                if joined.len() > MAX_ALTERNATIVES {
                    return None;
                }
            }
            Some(joined)
        }
        (Expression::All(parts), false) | (Expression::Any(parts), true) => {
            let mut joined: Vec<Alternative> = vec![Vec::new()];
            for part in parts {
                let part = alternatives(part, is_negated)?;
                if joined.len().saturating_mul(part.len()) > MAX_ALTERNATIVES {
                    return None;
                }
                joined = product(&joined, &part);
                if joined.iter().any(|all| all.len() > MAX_ALTERNATIVES) {
                    return None;
                }
            }
            Some(joined)
        }
    }
}

fn product(left: &[Alternative], right: &[Alternative]) -> Vec<Alternative> {
    let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
    pairs.map(|(a, b)| [a.as_slice(), b].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        let matcher = |it: &Matcher| {
            let sign = if it.is_negated { "!" } else { "" };
            format!("{sign}{}({})", it.name, it.arguments.join(","))
        };
        let all = |it: &Alternative| it.iter().map(matcher).collect::<Vec<_>>().join(" ");
        let alternatives = parse(text)?;
        Some(alternatives.iter().map(all).collect::<Vec<_>>().join(" | "))
    }

    #[test]
    fn rules_are_alternatives() {
        for (text, expected) in [
            ("Host(`a`)", Some("Host(a)")),
            ("Host(`a`, `b`)", Some("Host(a,b)")),
            ("Host(\"a\\\"\") && Path(`/`)", Some("Host(a\") Path(/)")),
            (
                "Host(`a`) || Host(`b`) && Path(`/`)",
                Some("Host(a) | Host(b) Path(/)"),
            ),
            (
                "(Host(`a`)||Host(`b`))&&Path(`/`)",
                Some("Host(a) Path(/) | Host(b) Path(/)"),
            ),
            ("!(Host(`a`) && Path(`/`))", Some("!Host(a) | !Path(/)")),
            ("!!Host(`a`)", Some("Host(a)")),
            ("Host(`a`", None),
            ("Host()", None),
            ("Host(a)", None),
            ("Host(`a`) Path(`/`)", None),
            ("", None),
        ] {
            assert_eq!(shown(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn rules_with_too_many_alternatives_or_too_deep_are_refused() {
        let two = "(A(`1`) || A(`2`))";
        assert!(parse(&[two; 6].join(" && ")).is_some());
        assert!(parse(&[two; 7].join(" && ")).is_none());
        assert!(parse(&"(".repeat(100_000)).is_none());
        assert!(parse(&"!".repeat(100_000)).is_none());
    }
}
