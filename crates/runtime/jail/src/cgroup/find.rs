//! Finds the control groups of this process in what the kernel reports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A resource that a group can limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    Memory,
    Cpu,
    Processes,
}

impl Controller {
    pub const ALL: [Self; 3] = [Self::Memory, Self::Cpu, Self::Processes];

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Processes => "pids",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    V1,
    V2,
}

/// The group of this process for one controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupMembership {
    pub version: Version,
    /// The folder of the group's files.
    pub folder: PathBuf,
}

/// One mounted hierarchy of groups.
struct Mount {
    version: Version,
    /// The group that is mounted at `point`.
    root: String,
    point: PathBuf,
    /// The mount options. In version 1 they include the controllers of the hierarchy.
    options: Vec<String>,
}

/// Parses `/proc/self/cgroup` and `/proc/self/mountinfo`. The error of a controller says why it has
/// no group.
pub fn memberships(groups: &str, mounts: &str) -> BTreeMap<Controller, Result<CgroupMembership, String>> {
    let mounts: Vec<Mount> = mounts.lines().filter_map(mount).collect();
    Controller::ALL.into_iter().map(|controller| (controller, membership(controller, groups, &mounts))).collect()
}

fn membership(controller: Controller, groups: &str, mounts: &[Mount]) -> Result<CgroupMembership, String> {
    let name = controller.name();
    // A controller belongs to version 1 or to version 2, never to both.
    if let Some(path) = group_path(groups, |controllers| controllers.split(',').any(|one| one == name)) {
        let mount = mounts.iter().find(|mount| mount.version == Version::V1 && mount.options.iter().any(|o| o == name));
        return at(mount, path);
    }
    let path = group_path(groups, str::is_empty).ok_or("this kernel has no control groups")?;
    at(mounts.iter().find(|mount| mount.version == Version::V2), path)
}

/// The path in a line `number:controllers:path` whose controllers match.
fn group_path(groups: &str, is_wanted: impl Fn(&str) -> bool) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        is_wanted(controllers).then_some(path)
    })
}

fn at(mount: Option<&Mount>, path: &str) -> Result<CgroupMembership, String> {
    let mount = mount.ok_or("control groups are not mounted")?;
    let below = Path::new(path).strip_prefix(&mount.root).ok();
    let below = below.filter(|below| !below.components().any(|part| part == std::path::Component::ParentDir));
    let below = below.ok_or_else(|| format!("the group {path} is not within the mounted hierarchy"))?;
    // Joining an empty path would add a slash.
    let folder = if below.as_os_str().is_empty() { mount.point.clone() } else { mount.point.join(below) };
    Ok(CgroupMembership { version: mount.version, folder })
}

/// A line of mountinfo: `id parent device root point options [optional…] - type source options`.
fn mount(line: &str) -> Option<Mount> {
    let (first, last) = line.split_once(" - ")?;
    let mut last = last.split(' ');
    let version = match last.next()? {
        "cgroup" => Version::V1,
        "cgroup2" => Version::V2,
        _ => return None,
    };
    let options = last.nth(1)?.split(',').map(str::to_owned).collect();
    let mut first = first.split(' ').skip(3);
    let (root, point) = (unescaped(first.next()?), unescaped(first.next()?));
    Some(Mount { version, root, point: point.into(), options })
}

/// The kernel escapes white space and backslashes in paths as three octal digits.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(code.into());
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(groups: &str, mounts: &str) -> Vec<Result<(Version, String), String>> {
        let shown = |membership: CgroupMembership| (membership.version, membership.folder.display().to_string());
        memberships(groups, mounts).into_values().map(|membership| membership.map(shown)).collect()
    }

    #[test]
    fn version_1_has_a_hierarchy_for_each_controller() {
        let groups = "8:pids:/\n4:memory:/box/a\n2:cpu,cpuacct:/\n0::/\n";
        let mounts = "\
            31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
            32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:7 - cgroup cgroup rw,memory\n\
            40 31 0:37 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            found(groups, mounts),
            [
                Ok((Version::V1, "/sys/fs/cgroup/memory/box/a".into())),
                Ok((Version::V1, "/sys/fs/cgroup/cpu,cpuacct".into())),
                Ok((Version::V1, "/sys/fs/cgroup/pids".into())),
            ]
        );
    }

    #[test]
    fn version_2_has_one_hierarchy_for_all_controllers() {
        let groups = "0::/system.slice/rcrt.service\n";
        let mounts = "25 1 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let here = Ok((Version::V2, "/sys/fs/cgroup/system.slice/rcrt.service".to_owned()));
        assert_eq!(found(groups, mounts), [here.clone(), here.clone(), here]);
    }

    #[test]
    fn the_root_of_the_mount_is_the_group_of_a_container() {
        let mounts = "9 1 0:22 /docker/abc /sys/fs/cgroup/my\\040memory ro - cgroup cgroup rw,memory\n";
        let memory = |groups: &str| found(groups, mounts).remove(0);
        assert_eq!(memory("4:memory:/docker/abc\n"), Ok((Version::V1, "/sys/fs/cgroup/my memory".into())));
        assert_eq!(memory("4:memory:/docker/abc/x:y\n"), Ok((Version::V1, "/sys/fs/cgroup/my memory/x:y".into())));
        for outside in ["/docker/abcd", "/", "/docker/abc/../../other"] {
            let reason = memory(&format!("4:memory:{outside}\n")).unwrap_err();
            assert!(reason.contains("not within"), "{reason}");
        }
    }

    #[test]
    fn missing_cgroups_are_reported() {
        let reasons = |groups, mounts| found(groups, mounts).into_iter().map(Result::unwrap_err).collect::<Vec<_>>();
        assert_eq!(reasons("", ""), ["this kernel has no control groups"; 3]);
        assert_eq!(reasons("0::/\n", ""), ["control groups are not mounted"; 3]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_without_panic(groups in ".*", mounts in "[ -~\n]{0,200}", path in "[a-z/\\\\0-9 ]{0,40}") {
            let _ = memberships(&groups, &mounts);
            let mounts = format!("1 2 0:1 {path} /sys {path} - cgroup2 none rw\n");
            let _ = memberships(&format!("0::{path}\n"), &mounts);
        }
    }
}
