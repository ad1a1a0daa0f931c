//! Normalises a text for the model: without accents and case, one space between words, punctuation
//! separated.

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Returns the words of a text in order. A punctuation mark is a word, and so is each ideograph.
pub(super) fn words(text: &str) -> Vec<String> {
    let plain = text
        .chars()
        .filter_map(visible)
        .flat_map(separated)
        .nfd()
        .filter(|c| !is_accent(*c))
        .flat_map(char::to_lowercase);
    let mut words = Vec::new();
    let mut word = String::new();
    for character in plain {
        let is_mark = is_mark(character);
        if (is_mark || character.is_whitespace()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if is_mark {
            words.push(character.to_string());
        } else if !character.is_whitespace() {
            word.push(character);
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Drops control characters, and turns all white space into a space.
fn visible(character: char) -> Option<char> {
    match character {
        '\t' | '\n' | '\r' => Some(' '),
        '\0' | '\u{fffd}' => None,
        _ if character.general_category_group() == GeneralCategoryGroup::Other => None,
        _ if character.is_whitespace() => Some(' '),
        _ => Some(character),
    }
}

fn separated(character: char) -> impl Iterator<Item = char> {
    let space = is_ideograph(character).then_some(' ');
    space.into_iter().chain([character]).chain(space)
}

fn is_accent(character: char) -> bool {
    character.general_category() == GeneralCategory::NonspacingMark
}

fn is_mark(character: char) -> bool {
    character.is_ascii_punctuation() || character.general_category_group() == GeneralCategoryGroup::Punctuation
}

fn is_ideograph(character: char) -> bool {
    matches!(u32::from(character),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F | 0x2B740..=0x2B81F
        | 0x2B920..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}
