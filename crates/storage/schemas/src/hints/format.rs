//! Texts with `{field}` placeholders.

use serde_json::Value;

use super::fuel::{BoundedText, HintBudget};
use super::path::{self, HintStep};

#[derive(Debug)]
pub(super) struct Format(Vec<Piece>);

#[derive(Debug)]
enum Piece {
    Text(String),
    Field(Vec<HintStep>),
}

impl Format {
    /// Braces around something that is not a path are literal text.
    pub(super) fn parse(text: &str) -> Self {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(open) = rest.find('{') {
            let field =
                rest[open + 1..].split_once('}').and_then(|(inside, after)| Some((path::parse(inside)?, after)));
            if let Some((steps, after)) = field {
                plain.push_str(&rest[..open]);
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Field(steps));
                rest = after;
            } else {
                plain.push_str(&rest[..=open]);
                rest = &rest[open + 1..];
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Self(pieces)
    }

    pub(super) fn render(&self, context: &Value, fuel: &mut HintBudget) -> String {
        let mut text = BoundedText::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(plain) => text.push(plain),
                Piece::Field(steps) => {
                    if text.is_full() || !fuel.burn(1) {
                        text.cut();
                        break;
                    }
                    if let Some(found) = path::find(context, steps, fuel).first() {
                        text.push_value(found.value());
                    }
                }
            }
        }
        text.finish()
    }
}
