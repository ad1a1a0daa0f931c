"""A copy of the scripts for build/fresh, with fake programs for those that need privileges."""

import shutil

from stage import Stage


# `make up` until Ctrl-C.
UP = """echo '"status": "success"'; echo 'Response in 5 ms'; echo 'Ctrl-C stops everything'
trap 'exit 130' INT; for _ in {1..1000}; do sleep 0.05; done"""


class FreshStage(Stage):
    def setUp(self):
        super().setUp()
        self.stand_in("id", "echo 0")
        self.stand_in("uname", "echo Linux")
        self.stand_in("git")
        self.stand_in("umount")
        # Already in the namespace: nothing is mounted before a root exists.
        self.stand_in("unshare")
        self.toolchain = self.folder / "toolchain"
        self.stand_in("cargo", at=self.toolchain / "bin")
        self.stand_in("rustc", at=self.toolchain / "bin")
        (self.bin / "cargo").symlink_to(self.toolchain / "bin/cargo")
        self.apt = self.folder / "apt"
        self.sources("one.sources", "Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm\nComponents: main\n")
        self.settings = {"FRESH_INSIDE": 1, "FRESH_APT": self.apt, "FRESH_OS_RELEASE": self.folder / "os-release"}

    def sources(self, name, text):
        """Makes this the only configuration of apt."""
        shutil.rmtree(self.apt, ignore_errors=True)
        path = self.apt / ("" if name == "sources.list" else "sources.list.d") / name
        path.parent.mkdir(parents=True)
        path.write_text(text)

    def fresh(self, *words):
        return self.run_script("build/fresh", *words, **self.settings)


class RunsStage(FreshStage):
    """With a root: a fake mmdebstrap makes one, and commands in it run outside, with a fake `make`."""

    def setUp(self):
        super().setUp()
        self.mounts = self.folder / "mounts"
        self.mounts.write_text("proc /proc proc rw 0 0\n")
        self.settings["FRESH_MOUNTS"] = self.mounts
        self.stand_in("nproc", "echo 2")
        self.stand_in("mmdebstrap", 'root=${@: -2:1}; mkdir -p "$root"/{etc,root,sys,dev,proc,tmp}; echo bare >"$root/etc/is"')
        self.stand_in("chroot", 'case $2 in */useradd) mkdir -p "$1/home/tester" ;; esac')
        self.stand_in("git", """case "$*" in
*clone*) mkdir -p "${@: -1}" ;;
*" log "*) echo 'commit abc' ;;
esac""")
        # Like the kernel: a remount changes a mount, and adds none.
        self.stand_in("mount", f'case "$*" in *remount*) ;; *) echo "x ${{@: -1}} x rw 0 0" >>"{self.mounts}" ;; esac')
        self.stand_in("umount", f"""grep -vF " ${{@: -1}} " "{self.mounts}" >"{self.mounts}.left"; mv "{self.mounts}.left" "{self.mounts}" """)
        # Keeps a copy of the root, and runs the command with its home folder there. A fake `make`
        # is on the PATH.
        self.stand_in("unshare", f"""while [ "$1" != inside ]; do shift; done
root=$2; shift 3
printf '%s\\n' "$@" >"{self.folder}/environment"
cp -R "$root" "{self.folder}/seen"
settings=()
while [[ $1 = *=* ]]; do case $1 in HOME=*) home=$root${{1#HOME=}} ;; esac; shift; done
exec env -i PATH="$PATH" HOME="$home" TMPDIR="$root/tmp" "$@" """)
        self.make(UP, "echo '3 passed, 0 failed, 0 skipped'")

    def make(self, up, test):
        self.stand_in("make", f"case $1 in\nup) {up} ;;\ntest) {test} ;;\nesac")

    def seen(self, name):
        return (self.folder / "seen" / name).read_text()

    def environment(self):
        """What the command in the root gets: its variables, then its words."""
        return (self.folder / "environment").read_text().splitlines()
