//! System call filters. The callers choose the calls.

pub mod denied;
pub mod rules;

use seccompiler::{BpfProgram, SeccompFilter, TargetArch, apply_filter_all_threads};

pub use seccompiler::SeccompAction;

use super::ProtectionResult;
use rules::Rules;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;

/// Installs a filter on all threads of this process, and on those that start later. `listed` is the
/// action for calls that match the rules, `others` for all other calls. Calls of another
/// architecture kill the process.
pub fn install(rules: Rules, listed: SeccompAction, others: SeccompAction) -> ProtectionResult {
    let filter = SeccompFilter::new(rules, others, listed, ARCHITECTURE).map_err(|error| error.to_string())?;
    let program: BpfProgram = filter.try_into().map_err(|error: seccompiler::BackendError| error.to_string())?;
    apply_filter_all_threads(&program).map_err(|error| error.to_string())
}

/// Refuses the x32 system call numbers, since the rules use the ordinary ones.
pub fn refuse_other_numbers() -> ProtectionResult {
    #[cfg(target_arch = "x86_64")]
    {
        use nix::libc::{BPF_ABS, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, ENOSYS};
        use nix::libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO};
        use seccompiler::sock_filter;
        /// The bit that marks an x32 number.
        const OTHER: u32 = 0x4000_0000;
        let code = |parts: u32| u16::try_from(parts).map_err(|error| error.to_string());
        let done = code(BPF_RET | BPF_K)?;
        let program = [
            // The call's number is the first field of the data.
            sock_filter { code: code(BPF_LD | BPF_W | BPF_ABS)?, jt: 0, jf: 0, k: 0 },
            sock_filter { code: code(BPF_JMP | BPF_JGE | BPF_K)?, jt: 0, jf: 1, k: OTHER },
            sock_filter { code: done, jt: 0, jf: 0, k: SECCOMP_RET_ERRNO | ENOSYS.unsigned_abs() },
            sock_filter { code: done, jt: 0, jf: 0, k: SECCOMP_RET_ALLOW },
        ];
        apply_filter_all_threads(&program).map_err(|error| error.to_string())?;
    }
    Ok(())
}
