//! The allocator of array buffers: like the engine's own, but it refuses allocations beyond the
//! account's limit.

use std::ffi::c_void;
use std::sync::Arc;

use deno_core::v8;
use nix::libc;

use super::Account;

static VTABLE: v8::RustAllocatorVtable<Account> =
    v8::RustAllocatorVtable { allocate, allocate_uninitialized: allocate, free, drop: release };

pub fn allocator(account: Arc<Account>) -> v8::UniqueRef<v8::Allocator> {
    // SAFETY: the handle is the account that every function of the table takes; `release` drops
    // this reference.
    #[allow(unsafe_code)]
    unsafe {
        v8::new_rust_allocator(Arc::into_raw(account), &VTABLE)
    }
}

/// Always zeroed, so that data of another call in this memory stays hidden.
#[allow(unsafe_code)]
unsafe extern "C" fn allocate(account: &Account, bytes: usize) -> *mut c_void {
    if !account.take(bytes) {
        return std::ptr::null_mut();
    }
    // SAFETY: plain allocation; the engine asks for at least one byte where it will use one.
    let memory = unsafe { libc::calloc(bytes.max(1), 1) };
    if memory.is_null() {
        account.release(bytes);
    }
    memory
}

#[allow(unsafe_code)]
unsafe extern "C" fn free(account: &Account, memory: *mut c_void, bytes: usize) {
    // SAFETY: the engine frees what `allocate` returned, once.
    unsafe { libc::free(memory) };
    account.release(bytes);
}

#[allow(unsafe_code)]
unsafe extern "C" fn release(account: *const Account) {
    // SAFETY: this is the reference that `allocator` passed to the engine.
    drop(unsafe { Arc::from_raw(account) });
}
