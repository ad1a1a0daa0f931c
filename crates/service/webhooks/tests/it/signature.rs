//! Signatures, verified by code that is independent of the signer: HMAC implemented from RFC 2104.

use std::time::{SystemTime, UNIX_EPOCH};

use rcrt_breadcrumb::hex;
use rcrt_webhooks::sign;
use sha2::{Digest, Sha256};

use crate::harness::{Delivering, Receiver, World, options, status};

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = if key.len() > 64 { Sha256::digest(key).to_vec() } else { key.to_vec() };
    block.resize(64, 0);
    let pad = |byte: u8| block.iter().map(|key| key ^ byte).collect::<Vec<u8>>();
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for index in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * index) & 63) as usize];
            text.push(if index <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[tokio::test]
async fn a_receiver_can_verify_what_it_gets_and_tell_a_retry_from_a_replay() {
    let world = World::start().await;
    let mut receiver = Receiver::start(vec![status(503)]).await;
    world.webhook(&receiver.url).await;
    let key = b"0123456789abcdef0123456789abcdef";
    let secret = format!("whsec_{}", base64(key));
    world.secret(&secret).await;
    let delivering = Delivering::start(&world.store, options());
    world.write("caf\u{e9} \u{1f980}").await;
    let first = receiver.next().await;
    world.until("SELECT count(*) FROM deliveries WHERE state = 'waiting' AND attempts = 1", 1).await;
    world.time_passes().await;
    let again = receiver.next().await;
    for received in [&first, &again] {
        let (id, timestamp) = (received.header("webhook-id"), received.header("webhook-timestamp"));
        let content = format!("{id}.{timestamp}.{}", received.body);
        assert_eq!(received.header("webhook-signature"), format!("v1,{}", base64(&hmac(key, content.as_bytes()))));
        let of_body = hex(&hmac(secret.as_bytes(), received.body.as_bytes()));
        assert_eq!(received.header("x-rcrt-signature"), format!("sha256={of_body}"));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(now.abs_diff(timestamp.parse().unwrap()) < 60, "the time is that of the attempt");
    }
    assert_eq!(first.header("webhook-id"), again.header("webhook-id"));
    delivering.stop().await;

    // After a change of the secret nothing is signed with the old one, and no row shows either.
    world.secret("another secret, any text").await;
    let delivering = Delivering::start(&world.store, options());
    world.write("two").await;
    let second = receiver.next().await;
    let content = format!("{}.{}.{}", second.header("webhook-id"), second.header("webhook-timestamp"), second.body);
    let expected = base64(&hmac(b"another secret, any text", content.as_bytes()));
    assert_eq!(second.header("webhook-signature"), format!("v1,{expected}"));
    assert_ne!(second.header("webhook-id"), first.header("webhook-id"));
    let shown =
        world.count("SELECT count(*) FROM webhook_secrets WHERE position('secret'::bytea IN sealed_value) > 0").await;
    assert_eq!(shown, 0);
    delivering.stop().await;
    world.store.close().await;
}

/// The test vector of docs/webhooks.md.
#[test]
fn the_test_vector_of_the_documentation_is_reproduced() {
    let page = include_str!("../../../../../docs/webhooks.md");
    let field = |name: &str| {
        let line = page.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("the page names no {name}")).trim().to_owned()
    };
    let (id, timestamp) = (field("webhook-id"), field("webhook-timestamp"));
    let signed = sign(&field("secret"), id.parse().unwrap(), timestamp.parse().unwrap(), &field("body"));
    assert_eq!(signed.standard, field("webhook-signature"));
    assert_eq!(signed.rcrt, field("X-RCRT-Signature"));
}

#[test]
fn a_secret_without_the_prefix_is_used_as_text() {
    let id = uuid::Uuid::nil();
    for text in ["whsec_", "whsec_short", "whsec_not*base64*not*base64*not*base64", "plain text"] {
        let expected = base64(&hmac(text.as_bytes(), format!("{id}.1.{{}}").as_bytes()));
        assert_eq!(sign(text, id, 1, "{}").standard, format!("v1,{expected}"), "{text}");
    }
}
