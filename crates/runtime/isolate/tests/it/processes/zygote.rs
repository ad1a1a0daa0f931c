//! Workers that are forked from a zygote: they inherit nothing from it, nor from each other.

use std::collections::BTreeSet;

use rcrt_sandbox::Invocation;
use serde_json::Value;
use uuid::Uuid;

use super::{HAS_ZYGOTE, Program, parent_of, status, while_it_waits};
use crate::fixture::{ZYGOTE, block_on, function, invocation, run_in};

fn of_tenant(number: u128, body: &str) -> Invocation {
    Invocation { owner_id: Uuid::from_u128(number), ..invocation(&function(body), Value::Null) }
}

#[test]
fn a_killed_zygote_is_replaced_and_its_workers_continue() {
    if !HAS_ZYGOTE {
        return;
    }
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|options| options.max_workers = 2).await;
        let first = program.zygote().unwrap();
        let once = of_tenant(1, "return 1");
        run_in(&sandbox, once.clone()).await.result.unwrap();
        let worker = program.worker();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(first as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
        assert_eq!(run_in(&sandbox, once).await.result.unwrap(), 1);
        assert_eq!(program.worker(), worker);
        assert_eq!(run_in(&sandbox, of_tenant(2, "return 2")).await.result.unwrap(), 2);
        assert!(program.workers().contains(&worker));
        let second = program.zygote().unwrap();
        assert_ne!(first, second);
        sandbox.close().await;
    });
}

#[test]
fn the_zygote_inherits_nothing_and_leads_its_own_session() {
    if !HAS_ZYGOTE {
        return;
    }
    while_it_waits(|_, worker| {
        let found = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            (name.trim() == ZYGOTE && parent_of(pid) == parent_of(worker)).then_some(pid)
        });
        let zygotes: Vec<_> = found.collect();
        assert!(!zygotes.is_empty());
        for zygote in zygotes {
            assert_eq!(status(zygote)["Threads"], "1");
            assert!(std::fs::read(format!("/proc/{zygote}/environ")).unwrap().is_empty());
            let session = nix::unistd::getsid(Some(nix::unistd::Pid::from_raw(zygote as i32))).unwrap();
            assert_eq!(session.as_raw() as u32, zygote);
            let open: BTreeSet<_> = std::fs::read_dir(format!("/proc/{zygote}/fd"))
                .unwrap()
                .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap().to_str().unwrap().to_owned())
                .map(|link| link.split(':').next().unwrap().to_owned())
                .collect();
            assert_eq!(open, BTreeSet::from(["/dev/null", "pipe", "socket"].map(str::to_owned)));
        }
    });
}

/// The difference of two numbers modulo 1, as an integer in `[0, 1e9)`.
fn apart(one: &Value, other: &Value) -> i64 {
    let difference = one.as_f64().unwrap() - other.as_f64().unwrap();
    (difference.rem_euclid(1.0) * 1e9).round() as i64 % 1_000_000_000
}

#[test]
fn random_numbers_of_two_processes_are_unrelated() {
    const DRAWN: usize = 64;
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|options| options.max_workers = 3).await;
        let draw = format!("return Array.from({{ length: {DRAWN} }}, () => Math.random())");
        let mut drawn = Vec::new();
        for tenant in 1..=3 {
            for _ in 0..2 {
                let numbers = run_in(&sandbox, of_tenant(tenant, &draw)).await.result.unwrap();
                let numbers = numbers.as_array().unwrap().clone();
                assert!(numbers.iter().all(|number| (0.0..1.0).contains(&number.as_f64().unwrap())));
                drawn.push(numbers);
            }
        }
        // Not the same sequence with an offset, and not one that is shifted by a constant.
        for (at, one) in drawn.iter().enumerate() {
            for other in &drawn[at + 1..] {
                for lag in 0..DRAWN / 2 {
                    for (one, other) in [(one, other), (other, one)] {
                        let apart: BTreeSet<i64> =
                            one[lag..].iter().zip(other).map(|(one, other)| apart(one, other)).collect();
                        assert!(apart.len() > (DRAWN - lag) / 2, "{lag}: {apart:?}");
                    }
                }
            }
        }
        sandbox.close().await;
    });
}

/// The first numbers of each generator. A generator that was used before the fork would return the
/// same next numbers in all processes.
#[test]
fn forked_workers_draw_different_numbers() {
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|options| options.max_workers = 3).await;
        let draw =
            "const bytes = crypto.getRandomValues(new Uint8Array(8)); const key = await crypto.subtle.generateKey(
            { name: 'AES-GCM', length: 128 }, true, ['encrypt']);
            const text = async (form, key) => new Uint8Array(await crypto.subtle.exportKey(form, key)).join();
            const hmac = await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, true, ['sign']);
            const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
            const other = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify']);
            return [Math.random(), crypto.randomUUID(), bytes.join(), await text('raw', key), await text('raw', hmac),
              await text('pkcs8', pair.privateKey), await text('pkcs8', other.privateKey)]";
        let mut seen = BTreeSet::new();
        for tenant in 1..=3 {
            for _ in 0..2 {
                let drawn = run_in(&sandbox, of_tenant(tenant, draw)).await.result.unwrap();
                for one in drawn.as_array().unwrap() {
                    assert!(seen.insert(one.to_string()), "{one} twice");
                }
            }
        }
        sandbox.close().await;
    });
}
