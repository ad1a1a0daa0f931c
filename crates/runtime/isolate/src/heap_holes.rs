//! The holes that freed memory leaves in the C library's heap. A process that was forked from the
//! zygote and allocates in a hole gets its own copy of that page. Without holes, what it allocates
//! is together, on new pages.

use nix::libc;

/// Larger ones are few. The C library maps pages for blocks of twice this size.
const LARGEST: usize = 64 * 1024;
/// Up to this size, the C library has a list of holes for each multiple of [`STEP`].
const LISTED: usize = 1024;
const STEP: usize = 16;

/// Allocates all holes of the heap, and never frees them.
pub fn fill() {
    let powers = std::iter::successors(Some(LARGEST), |size| Some(size / 2)).take_while(|size| *size > LISTED);
    let multiples = (STEP..=LISTED).rev().step_by(STEP);
    // SAFETY: allocates memory, and accesses none of it.
    #[allow(unsafe_code)]
    unsafe {
        let end = (libc::sbrk(0) as usize).saturating_sub(libc::mallinfo2().keepcost);
        for size in powers.chain(multiples) {
            loop {
                let block = libc::malloc(size);
                if block.is_null() || block as usize >= end {
                    libc::free(block);
                    break;
                }
            }
        }
    }
}
