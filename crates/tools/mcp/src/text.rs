//! Texts of servers, without the secrets that they were given.

use rcrt_breadcrumb::foreign_text::lines;
use rcrt_egress::Vault;

/// [`lines`], also without the secrets of the vault.
pub fn redacted(text: &str, most: usize, vault: &Vault) -> String {
    // Before the text is cut, which could leave a part of a value; and after the characters are
    // gone that could have divided one.
    vault.cleared(&lines(&vault.cleared(text), most)).into_owned()
}

/// The same as one line, for messages.
pub fn redacted_line(text: &str, vault: &Vault) -> String {
    redacted(text, 500, vault).replace(['\n', '\t'], " ")
}
