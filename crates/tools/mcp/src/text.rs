//! Texts of third parties: bounded, without control characters, and without the secrets that they
//! were given.

use rcrt_egress::Vault;

/// Shortens a text to this many characters, and removes control characters except line breaks and
/// tabs.
pub fn clean(text: &str, most: usize) -> String {
    let is_shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let mut kept: String = text.chars().filter(is_shown).take(most + 1).collect();
    if let Some((end, _)) = kept.char_indices().nth(most) {
        kept.truncate(end);
        kept.push('…');
    }
    kept
}

/// The same as one line, for messages.
pub fn line(text: &str) -> String {
    clean(&text.replace(['\n', '\r', '\t'], " "), 500)
}

/// [`clean`], also without the secrets of the vault.
pub fn redacted(text: &str, most: usize, vault: &Vault) -> String {
    // Before the text is cut, which could leave a part of a value; and after the control characters
    // are gone, which could have divided one.
    vault.cleared(&clean(&vault.cleared(text), most)).into_owned()
}

/// [`line`], also without the secrets of the vault.
pub fn redacted_line(text: &str, vault: &Vault) -> String {
    redacted(text, 500, vault).replace(['\n', '\t'], " ")
}
