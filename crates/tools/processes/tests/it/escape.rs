//! Real attempts to escape from the jail: to this machine's files, other processes, the kernel, and
//! other privileges.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rcrt_jail::command::ExitReason;

use crate::fixture::{Cell, SECRET, needs_the_jail};

/// A script, and exactly what it must print.
type Attempt = (&'static str, &'static str, &'static str);

const ATTEMPTS: &[Attempt] = &[
    ("its own root", "print(sorted(os.listdir('/')))", "ROOT"),
    (
        "the kernel's settings",
        "print(error(open, '/proc/sys/kernel/core_pattern', 'w'), error(open, '/proc/sysrq-trigger', 'w'))",
        "EROFS EROFS|EROFS ENOENT|EACCES EACCES|EACCES ENOENT",
    ),
    (
        "programs",
        "print(error(open, '/usr/bin/env', 'r+b'), error(os.unlink, '/usr/bin/env'))",
        "EROFS EROFS|EACCES EACCES|EACCES EROFS|EROFS EACCES",
    ),
    (
        "the users of the machine",
        "print(error(open, '/etc/passwd', 'a'), error(open, '/etc/shadow'))",
        "EROFS ENOENT|EACCES ENOENT",
    ),
    (
        "a new file in the root",
        "print(error(os.mkdir, '/new'), error(os.mkdir, '/etc/new'), error(os.mkdir, '/dev/new'))",
        "EROFS EROFS EROFS|EACCES EACCES EACCES",
    ),
    (
        "a disk",
        "print(error(os.mknod, '/work/disk', 0o600 | 0o060000, os.makedev(254, 0)), error(os.mknod, '/tmp/null', 0o600 | 0o020000, os.makedev(1, 3)))",
        "EPERM EPERM|EACCES EACCES",
    ),
    (
        "memory of the machine",
        "print(error(open, '/dev/mem'), error(open, '/dev/kmsg'), error(open, '/proc/kcore', 'rb'))",
        "ENOENT ENOENT EACCES|ENOENT ENOENT EPERM|ENOENT ENOENT ENOENT",
    ),
    (
        "mounting",
        "print(call(165, b'none', b'/tmp', b'tmpfs', 0, 0), call(166, b'/proc', 2), call(430, b'tmpfs', 0), call(428, -100, b'/', 1))",
        "EPERM EPERM EPERM EPERM",
    ),
    (
        "another root",
        "print(call(161, b'/tmp'), call(155, b'.', b'.'), error(os.chroot, '/work'))",
        "EPERM EPERM EPERM",
    ),
    (
        "namespaces of its own",
        "print([call(272, f) for f in (0x10000000, 0x20000, 0x40000000, 0x20000000)], call(56, 0x10000011, 0, 0, 0, 0), call(435, 0, 0))",
        "['EPERM', 'EPERM', 'EPERM', 'EPERM'] EPERM ENOSYS",
    ),
    ("another process's namespaces", "f = os.open('/proc/self/ns/net', os.O_RDONLY); print(call(308, f, 0))", "EPERM"),
    ("files by their handles", "print(call(303, -100, b'/work', 0, 0, 0), call(304, -100, 0, 0))", "EPERM EPERM"),
    (
        "another user",
        "print(error(os.setuid, 0), error(os.setgid, 0), error(os.setgroups, [0]))",
        "EINVAL EINVAL EPERM|EPERM EPERM EPERM",
    ),
    (
        "its rights",
        "s = dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines() if ':\\t' in line)\nprint([s[n] for n in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp')])",
        "['0000000000000000', '0000000000000000', '0000000000000000', '0000000000000000', '0000000000000000', '1', '2']",
    ),
    (
        "all space of the disk at once",
        "f = os.open('big', os.O_CREAT | os.O_RDWR)\nprint(call(285, f, 0, 0, 1 << 20), os.fstat(f).st_size, error(os.posix_fallocate, f, 0, 1 << 20), os.fstat(f).st_size)\nos.unlink('big')",
        "EOPNOTSUPP 0 ('no error', None) 1048576|ENOTSUP 0 ('no error', None) 1048576",
    ),
    (
        "a program of its owner's rights, by every call",
        "\
open('p', 'w').close(); f = os.open('p', os.O_RDONLY)\n\
print(error(os.chmod, 'p', 0o4755), error(os.chmod, 'p', 0o2755), error(os.fchmod, f, 0o4755), error(os.chmod, 'p', 0o6755, dir_fd=os.open('.', 0)), \
call(452, -100, b'p', 0o4755, 0), error(os.open, 'q', os.O_CREAT | os.O_WRONLY, 0o4755), call(437, -100, b'q', 0, 24), call(85, b'q', 0o4755), call(133, b'q', 0o104755, 0), oct(os.stat('p').st_mode), os.path.exists('q'))",
        "EPERM EPERM EPERM EPERM EPERM EPERM ENOSYS EPERM EPERM 0o100644 False|EPERM EPERM EPERM EPERM EPERM EPERM ENOSYS EPERM EPERM 0o100600 False",
    ),
    (
        "a program of its owner's rights, by a file without a name",
        "\
print([error(os.open, '.', os.O_TMPFILE | flags, mode) for flags in (os.O_RDWR, os.O_WRONLY) for mode in (0o6755, 0o4755, 0o2755)], \
call(2, b'.', os.O_TMPFILE | os.O_RDWR, 0o4755), call(257, -100, b'.', os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o2755), \
error(os.mkdir, 'd', 0o2755), call(83, b'd', 0o4755), os.path.exists('d'), error(os.close, os.open('/tmp', os.O_TMPFILE | os.O_RDWR, 0o755)))",
        "['EPERM', 'EPERM', 'EPERM', 'EPERM', 'EPERM', 'EPERM'] EPERM EPERM EPERM EPERM False ('no error', None)",
    ),
    (
        "folders where the rights of a program's owner count",
        "print([path for path in ('/', '/work', '/tmp', '/dev/shm', '/usr', '/proc') if os.statvfs(path).f_flag & 6 != 6])",
        "[]",
    ),
    (
        "the first process",
        "print(call(101, 16, 1, 0, 0), call(101, 0x4206, 1, 0, 0), call(310, 1, 0, 0, 0, 0, 0), error(open, '/proc/1/mem', 'rb'), error(open, '/proc/1/environ', 'rb'), error(os.readlink, '/proc/1/root'), error(os.listdir, '/proc/1/fd'))",
        "EPERM EPERM EPERM EACCES EACCES EACCES EACCES",
    ),
    (
        "a child's insides",
        "c = os.fork() or os.execvp('sleep', ['sleep', '600'])\nprint(call(101, 16, c, 0, 0), call(311, c, 0, 0, 0, 0, 0)); os.kill(c, 9)",
        "EPERM EPERM",
    ),
    ("ending the first process", "os.kill(1, 9); os.kill(1, 15); print('still here')", "still here"),
    (
        "processes of the machine",
        "print([p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())])",
        "[]",
    ),
    ("signals to everybody", "print(error(os.kill, -1, 9))", "ESRCH"),
    (
        "descriptors of the runner",
        "print(sorted(os.listdir('/proc/self/fd'))[:-1], os.readlink('/proc/self/fd/0'), os.readlink('/proc/self/fd/1')[:5])",
        "['0', '1', '2'] /dev/null pipe:",
    ),
    ("the environment of the runner", "print(sorted(os.environ))", "['LC_CTYPE', 'PATH']|['PATH']"),
    (
        "a terminal",
        "import fcntl\nprint(error(open, '/dev/tty'), error(fcntl.ioctl, 1, 0x5412, b'x'), error(fcntl.ioctl, 1, 0x541C, b'x'), os.path.exists('/dev/pts'))",
        "ENOENT EPERM EPERM False",
    ),
    (
        "keys",
        "print(call(248, b'user', b'k', b'v', 1, -3), call(250, 0, -3, 0), call(249, b'user', b'k', 0, -3))",
        "EPERM EPERM EPERM",
    ),
    (
        "parts of the kernel that were broken into",
        "print(call(321, 0, 0, 0), call(298, 0, 0, -1, -1, 0), call(323, 0), call(425, 1, 0), call(300, 0, 0), call(29, 0, 4096, 0o1600))",
        "EPERM EPERM EPERM ENOSYS EPERM EPERM",
    ),
    (
        "the machine itself",
        "print(call(169, 0xfee1dead, 672274793, 0, 0), call(103, 3, 0, 0), call(170, b'x', 1), call(175, 0, 0, 0), call(246, 0, 0, 0, 0), call(227, 0, 0))",
        "EPERM EPERM EPERM EPERM EPERM EPERM",
    ),
    ("another personality", "print(call(135, 0x0040000), call(135, 8), call(135, 0xffffffff))", "EPERM EPERM 0"),
    (
        "the other numbers of calls",
        "print(call(0x40000000 + 39), call(0x40000000 + 161, b'/tmp'), call(0x40000000 + 521, 16, 1, 0, 0))",
        "ENOSYS ENOSYS ENOSYS",
    ),
    (
        "more than its limits",
        "import resource\nprint(resource.getrlimit(resource.RLIMIT_CORE), [error_of(resource.setrlimit, n, (1 << 30, 1 << 30)) for n in (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_DATA)])",
        "(0, 0) ['ValueError', 'ValueError', 'ValueError']",
    ),
];

async fn assert_all_fail(cell: &Cell, attempts: &[Attempt]) {
    let mut found = Vec::new();
    for (name, script, expected) in attempts {
        let finished = cell.run(&cell.script(script)).await;
        let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
        let actual = stdout.trim_end();
        let is_right = match *expected {
            "ROOT" => has_only_shown_folders(actual),
            expected => expected.split('|').any(|one| one == actual),
        };
        if finished.how != ExitReason::Exited(0) || !is_right {
            found.push(format!("{name}: expected {expected}, got {actual:?} {:?} {stderr}", finished.how));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn has_only_shown_folders(listing: &str) -> bool {
    let shown = ["bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "dev", "proc", "tmp", "work", "nix"];
    let names: Vec<&str> = listing.trim_matches(['[', ']']).split(", ").map(|name| name.trim_matches('\'')).collect();
    names.contains(&"work") && names.iter().all(|name| shown.contains(name))
}

/// Attempts against the jail, for any user and machine.
pub async fn no_attempt_succeeds(cell: &Cell) {
    assert_all_fail(cell, ATTEMPTS).await;
    assert_eq!(with_rights_of_their_owner(&cell.work()), [] as [PathBuf; 0]);
    secret_is_unreadable(cell).await;
    nothing_is_written_outside(cell).await;
}

/// Files and folders below `folder` that have a set-user-id or set-group-id bit.
fn with_rights_of_their_owner(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let metadata = entry.metadata().unwrap();
        if metadata.mode() & 0o6000 != 0 {
            found.push(entry.path());
        }
        if metadata.is_dir() {
            found.extend(with_rights_of_their_owner(&entry.path()));
        }
    }
    found
}

async fn secret_is_unreadable(cell: &Cell) {
    let secret = cell.folders.path().join("secret");
    let path = secret.display();
    // Links in the working folder, created inside and outside, and every other way to name the
    // path. The system's programs and /proc are not copied: in a folder in memory, they exceed its
    // limit.
    symlink(&secret, cell.work().join("planted")).unwrap();
    symlink("../secret", cell.work().join("beside")).unwrap();
    let relative = path.to_string().trim_start_matches('/').to_owned();
    let command = format!(
        "ln -s '{path}' own; ln '{path}' hard; mkdir all; \
         for one in ../*; do case $one in ../usr|../nix|../proc) ;; *) cp -r $one all;; esac; done; \
         cat '{path}' own planted beside ../secret ../../../../../../'{relative}' /proc/self/root'{path}' /proc/1/root'{path}' \
         /proc/1/cwd/../secret /proc/self/cwd/../secret /proc/*/root'{path}'; \
         grep -r 'own secret' / --exclude-dir=usr --exclude-dir=proc; find / -name secret -not -path '/proc/*' -not -path '/usr/*'; echo done"
    );
    let finished = cell.run(&cell.shell(&command)).await;
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    assert!(stdout.ends_with("done\n"), "{stdout} {stderr}");
    assert!(!stdout.contains(SECRET) && !stderr.contains(SECRET), "{stdout} {stderr}");
    // The same path can be read outside, so the attempt names the right place.
    assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET);
}

async fn nothing_is_written_outside(cell: &Cell) {
    let outside = cell.folders.path().join("written");
    symlink(&outside, cell.work().join("out")).unwrap();
    let path = outside.display();
    let command = format!(
        "echo x > out; echo x > ../written; echo x > '{path}'; mkdir -p '{path}'; mv /work/out /usr/; echo done"
    );
    let finished = cell.run(&cell.shell(&command)).await;
    assert_eq!(finished.stdout.text(), "done\n");
    assert!(!outside.exists());
    assert_eq!(fs::read_to_string(cell.folders.path().join("secret")).unwrap(), SECRET);
}

#[tokio::test]
async fn no_escape_attempt_succeeds() {
    needs_the_jail!();
    no_attempt_succeeds(&Cell::open().await).await;
}

#[tokio::test]
async fn no_escape_attempt_succeeds_without_control_groups() {
    needs_the_jail!();
    no_attempt_succeeds(&Cell::without_groups().await).await;
}

#[tokio::test]
async fn homes_and_runner_memory_are_invisible() {
    needs_the_jail!();
    let cell = Cell::open().await;
    let home = std::env::var("HOME").unwrap_or_else(|_| "/root".into());
    let command = format!(
        "ls -d '{home}' /root /home /var /run /sys /opt /mnt /srv /boot 2>/dev/null; ls /proc | grep -c '^[0-9]' ; cat /proc/{}/environ",
        std::process::id()
    );
    let finished = cell.run(&cell.shell(&command)).await;
    // The first process, the shell, and the two of the pipe.
    assert_eq!(finished.stdout.text(), "4\n", "{}", finished.stderr.text());
}

#[tokio::test]
async fn set_uid_programs_gain_no_rights() {
    needs_the_jail!();
    let cell = Cell::open().await;
    // Such a program is placed into the working folder.
    let planted = cell.work().join("id");
    fs::copy("/usr/bin/id", &planted).unwrap();
    fs::set_permissions(&planted, fs::Permissions::from_mode(0o6755)).unwrap();
    assert_eq!(fs::metadata(&planted).unwrap().mode() & 0o6000, 0o6000);
    let finished = cell
        .run(&cell.shell(
            "./id -u; ./id -g; for p in su sudo passwd mount; do $p -h >/dev/null 2>&1; done; su -c 'id -u' </dev/null",
        ))
        .await;
    assert_eq!(finished.stdout.text(), "1000\n1000\n");
    assert_ne!(finished.how, ExitReason::Exited(0));
}

#[tokio::test]
async fn escape_attempts_succeed_outside_the_jail() {
    needs_the_jail!();
    // The same scripts without a jail. Attempts that everybody is refused show nothing here, but
    // these succeed.
    let cell = Cell::open().await;
    let order =
        cell.script("print(len(os.listdir('/')) > 10, len([p for p in os.listdir('/proc') if p.isdigit()]) > 3)");
    let output = std::process::Command::new(&order.program).args(&order.arguments).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "True True\n");
}
