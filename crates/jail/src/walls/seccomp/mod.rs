//! Filters for system calls. The callers decide which calls they name.

pub mod rules;

use seccompiler::{BpfProgram, SeccompFilter, TargetArch, apply_filter_all_threads};

pub use seccompiler::SeccompAction;

use super::Outcome;
use rules::Rules;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;

/// Puts a filter on all threads of this process, and on those that start later: `listed` happens to the calls that the
/// rules name, `others` to every other. Calls of another architecture end the process.
pub fn install(rules: Rules, listed: SeccompAction, others: SeccompAction) -> Outcome {
    let filter = SeccompFilter::new(rules, others, listed, ARCHITECTURE).map_err(|error| error.to_string())?;
    let program: BpfProgram = filter.try_into().map_err(|error: seccompiler::BackendError| error.to_string())?;
    apply_filter_all_threads(&program).map_err(|error| error.to_string())
}

/// Refuses the second set of numbers by which some kernels know every call: rules are by the first.
pub fn refuse_other_numbers() -> Outcome {
    #[cfg(target_arch = "x86_64")]
    {
        use nix::libc::{BPF_ABS, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, ENOSYS};
        use nix::libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO};
        use seccompiler::sock_filter;
        /// Set in each number of that set.
        const OTHER: u32 = 0x4000_0000;
        let code = |parts: u32| u16::try_from(parts).map_err(|error| error.to_string());
        let done = code(BPF_RET | BPF_K)?;
        let program = [
            // The number of the call is the first of what the kernel shows.
            sock_filter { code: code(BPF_LD | BPF_W | BPF_ABS)?, jt: 0, jf: 0, k: 0 },
            sock_filter { code: code(BPF_JMP | BPF_JGE | BPF_K)?, jt: 0, jf: 1, k: OTHER },
            sock_filter { code: done, jt: 0, jf: 0, k: SECCOMP_RET_ERRNO | ENOSYS.unsigned_abs() },
            sock_filter { code: done, jt: 0, jf: 0, k: SECCOMP_RET_ALLOW },
        ];
        apply_filter_all_threads(&program).map_err(|error| error.to_string())?;
    }
    Ok(())
}
