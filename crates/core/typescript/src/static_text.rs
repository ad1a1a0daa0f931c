//! The text of an expression, if it is known without running it.

use oxc::ast::ast::{Expression, IdentifierReference};

/// The text of a literal, of a template without substitutions, of a name that `text_of` knows, or
/// of a sum of these. A name has at most a few hundred bytes, so longer text returns `None`.
pub(crate) fn static_text<'n>(
    expression: &Expression<'_>,
    text_of: impl Fn(&IdentifierReference<'_>) -> Option<&'n str>,
) -> Option<String> {
    const LONGEST: usize = 300;
    // A sum is left-associative, so the parts are visited from last to first.
    let mut parts = Vec::new();
    let mut left = expression.get_inner_expression();
    while let Expression::BinaryExpression(sum) = left {
        if sum.operator.as_str() != "+" || parts.len() > LONGEST {
            return None;
        }
        parts.push(part(sum.right.get_inner_expression(), &text_of)?);
        left = sum.left.get_inner_expression();
    }
    parts.push(part(left, &text_of)?);
    let text: String = parts.into_iter().rev().collect();
    (text.len() <= LONGEST).then_some(text)
}

fn part<'n>(
    expression: &Expression<'_>,
    text_of: impl Fn(&IdentifierReference<'_>) -> Option<&'n str>,
) -> Option<String> {
    match expression {
        Expression::Identifier(name) => text_of(name).map(str::to_owned),
        Expression::StringLiteral(text) => Some(text.value.to_string()),
        Expression::TemplateLiteral(template) => {
            let [only] = template.quasis.as_slice() else { return None };
            only.value.cooked.map(|text| text.to_string())
        }
        _ => None,
    }
}
