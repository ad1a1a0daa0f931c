//! The name under which the chunks of a page are stored: `web:` and a readable form of its address.

use sha2::{Digest, Sha256};
use url::Url;

/// The most characters of the address in the name.
const MAX_ADDRESS: usize = 120;

/// `https://example.com/docs/page` becomes `web:example.com-docs-page`. If two addresses could have
/// the same name, a hash of the address is added: with a query, a port, `http`, a `-`, or any other
/// character that is not a letter or a digit.
pub(crate) fn page_name(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    let address = match url.as_str().split_once("://") {
        Some((_, rest)) => rest.strip_suffix('/').filter(|rest| !rest.contains('/')).unwrap_or(rest),
        None => url.as_str(),
    };
    let mut name = String::new();
    for character in address.chars() {
        let kept = if character.is_ascii_alphanumeric() || character == '.' { character } else { '-' };
        if kept != '-' || !name.ends_with('-') {
            name.push(kept);
        }
    }
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '/');
    let is_unique = url.scheme() == "https"
        && address.chars().all(is_plain)
        && !address.contains("//")
        && !address.ends_with('/')
        && name.len() <= MAX_ADDRESS;
    if is_unique {
        return format!("web:{name}");
    }
    let hash = rcrt_breadcrumb::hex(&Sha256::digest(url.as_str().as_bytes()));
    let short: String = name.chars().take(MAX_ADDRESS).collect();
    format!("web:{}-{}", short.trim_matches('-'), &hash[..12])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(url: &str) -> String {
        page_name(&Url::parse(url).unwrap())
    }

    #[test]
    fn simple_addresses_are_readable_and_others_have_a_hash() {
        assert_eq!(name("https://example.com"), "web:example.com");
        assert_eq!(name("https://example.com/docs/page.html#part"), "web:example.com-docs-page.html");
        for url in
            ["http://example.com/a", "https://example.com/a?b=1", "https://example.com/a-b", "https://example.com:8/a"]
        {
            let (address, hash) = name(url).rsplit_once('-').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
            assert!(address.starts_with("web:example.com"), "{address}");
            assert!(hash.len() == 12 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{hash}");
        }
    }

    proptest! {
        #[test]
        fn different_addresses_have_different_names(a in "[a-b/.?#-]{0,8}", b in "[a-b/.?#-]{0,8}") {
            let url = |path: &str| {
                let mut url = Url::parse(&format!("https://x.test/{path}")).unwrap();
                url.set_fragment(None);
                url
            };
            let (a, b) = (url(&a), url(&b));
            prop_assert_eq!(page_name(&a) == page_name(&b), a == b);
            prop_assert!(page_name(&a).chars().count() < 160 && !page_name(&a).contains('/'));
        }
    }
}
