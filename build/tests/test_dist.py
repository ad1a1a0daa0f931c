"""build/dist, build/sbom and build/seccomp-nested."""

import json
import tarfile
import unittest

from stage import ROOT, Stage

# Prints its version, and writes a page and completions as the program does.
PROGRAM = """case $1 in
--version) echo "rcrt 1.2.3" ;;
man) mkdir -p "$2"; echo .TH >"$2/rcrt.1" ;;
completions) echo "complete for $2" ;;
esac"""


class Dist(Stage):
    def setUp(self):
        super().setUp()
        self.program = self.stand_in("rcrt", PROGRAM, at=self.folder)
        self.stand_in("sbom", 'mkdir -p "$1"; echo "{}" >"$1/sbom.cdx.json"; echo texts >"$1/THIRD-PARTY-LICENSES.txt"', at=self.tree / "build")
        for name in ("LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "SECURITY.md", "docs/a.md", "bootstrap-breadcrumbs/b.json", "dashboard/dist/index.html.gz", "deploy/systemd/rcrt-server.service", "deploy/README.md", "deploy/compose/compose.yaml", "deploy/container/Dockerfile", "deploy/helm/rcrt/Chart.yaml", "deploy/tests/chart.py"):
            self.write(name, name)
        for name in ("tar", "gzip"):
            self.real(name)
        self.stand_in("git", "echo 1700000000")

    def real(self, name):
        import shutil

        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).symlink_to(shutil.which(name))

    def test_a_tree_has_what_is_installed(self):
        tree = self.folder / "staged"
        self.run_script("build/dist", "--tree", tree, self.program).ends(0).is_silent()
        for name in (
            "bin/rcrt",
            "lib/systemd/system/rcrt-server.service",
            "share/man/man1/rcrt.1",
            "share/bash-completion/completions/rcrt",
            "share/zsh/site-functions/_rcrt",
            "share/fish/vendor_completions.d/rcrt.fish",
            "share/doc/rcrt/LICENSE",
            "share/doc/rcrt/THIRD-PARTY-LICENSES.txt",
            "share/doc/rcrt/sbom.cdx.json",
            "share/doc/rcrt/docs/a.md",
            "share/doc/rcrt/deploy/README.md",
            "share/doc/rcrt/deploy/compose/compose.yaml",
            "share/doc/rcrt/deploy/container/Dockerfile",
            "share/doc/rcrt/deploy/helm/rcrt/Chart.yaml",
            "share/rcrt/tools/b.json",
            "share/rcrt/dashboard/index.html.gz",
        ):
            self.assertTrue((tree / name).is_file(), name)
        self.assertFalse((tree / "share/doc/rcrt/deploy/tests").exists())
        self.assertEqual((tree / "share/zsh/site-functions/_rcrt").read_text(), "complete for zsh\n")

    def test_the_same_binary_makes_the_same_archive(self):
        sums = []
        for folder in ("one", "two"):
            self.run_script("build/dist", self.program, DIST_DIR=self.folder / folder).ends(0).says("rcrt-1.2.3-")
            sums.append((self.folder / folder / "SHA256SUMS").read_text())
        self.assertEqual(sums[0], sums[1])
        (archive,) = (self.folder / "one").glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            members = opened.getmembers()
        self.assertEqual({(one.uid, one.gid, int(one.mtime)) for one in members}, {(0, 0, 1700000000)})
        self.assertEqual([one.name for one in members], sorted((one.name for one in members), key=lambda name: name.split("/")))
        # What is staged does not stay.
        self.assertEqual(sorted(path.name.split(".")[-1] for path in (self.folder / "one").iterdir()), ["SHA256SUMS", "gz", "json"])

    def test_it_builds_the_program_if_none_is_given(self):
        self.stand_in("cargo", f'mkdir -p target/release; cp "{self.program}" target/release/rcrt')
        self.run_script("build/dist", DIST_DIR=self.folder / "dist").ends(0)
        self.assertIn("cargo build --locked --release --bin rcrt", self.called())
        self.stand_in("cargo", "echo 'error: it does not compile' >&2; exit 101")
        self.run_script("build/dist").ends(1).says("it does not compile", "the program cannot be built")

    def test_a_key_signs_the_checksums(self):
        self.stand_in("ssh-keygen", 'for last; do :; done; echo signature >"$last.sig"')
        self.run_script("build/dist", self.program, DIST_DIR=self.folder / "dist", SIGN_KEY="/keys/release").ends(0)
        self.assertTrue((self.folder / "dist/SHA256SUMS.sig").is_file())
        self.assertIn("-Y sign -f /keys/release -n rcrt-release", next(call for call in self.called() if call.startswith("ssh-keygen")))
        # An old signature does not stay beside new checksums.
        self.run_script("build/dist", self.program, DIST_DIR=self.folder / "dist").ends(0)
        self.assertFalse((self.folder / "dist/SHA256SUMS.sig").exists())
        self.stand_in("ssh-keygen", "echo 'no such key' >&2; exit 255")
        self.run_script("build/dist", self.program, DIST_DIR=self.folder / "dist", SIGN_KEY="/nowhere").ends(1).says("no such key", "cannot be signed with /nowhere")

    def test_wrong_arguments_are_reported(self):
        self.run_script("build/dist", "a", "b").ends(2).says("build/dist [BINARY]")
        self.run_script("build/dist", "--tree", "a").ends(2).says("--tree DIR BINARY")
        self.run_script("build/dist", "--tree", self.folder / "staged", "/nowhere").ends(1).says("/nowhere is not a program")
        self.run_script("build/dist", "--tree", self.folder, self.program).ends(1).says("exists already")


class Sbom(Stage):
    def setUp(self):
        super().setUp()
        self.real_python()
        self.stand_in("rustc", "echo 'host: x86_64-unknown-linux-gnu'")
        crate = self.folder / "registry/used"
        crate.mkdir(parents=True)
        (crate / "LICENSE").write_text("the text\n")
        package = lambda name, source, folder: {"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "source": source, "manifest_path": f"{folder}/Cargo.toml"}
        need = lambda name, *kinds: {"pkg": name, "dep_kinds": [{"kind": kind} for kind in kinds]}
        found = {
            "packages": [package("rcrt", None, self.tree), package("used", "registry", crate), package("tested", "registry", crate)],
            "resolve": {"nodes": [
                {"id": "rcrt", "deps": [need("used", None, "dev"), need("tested", "dev")]},
                {"id": "used", "deps": []},
                {"id": "tested", "deps": []},
            ]},
        }
        self.write("found.json", json.dumps(found))
        self.stand_in("cargo", f'cat "{self.tree}/found.json"')
        self.write("Cargo.lock", 'name = "used"\nversion = "1.0.0"\nsource = "registry"\nchecksum = "abc123"\n')
        self.write("vendor/v8/SHA256SUMS", "123  library.a.xz\n456  library.a\n")
        self.write("vendor/v8/licences/V8.txt", "V8's text")
        packages = {f"node_modules/{name}": {"version": "5.0.0"} for name in ("svelte", "esm-env", "clsx")}
        self.write("dashboard/package-lock.json", json.dumps({"packages": packages}))

    def test_it_has_what_is_in_the_binary_with_licences(self):
        self.run_script("build/sbom", self.folder / "out").ends(0).is_silent()
        bill = json.loads((self.folder / "out/sbom.cdx.json").read_text())
        names = [component["name"] for component in bill["components"]]
        self.assertEqual(names, ["used", "v8", "svelte", "esm-env", "clsx"])
        used = bill["components"][0]
        self.assertEqual(used["licenses"], [{"expression": "MIT OR Apache-2.0"}])
        self.assertEqual(used["hashes"], [{"alg": "SHA-256", "content": "abc123"}])
        texts = (self.folder / "out/THIRD-PARTY-LICENSES.txt").read_text()
        self.assertIn("used 1.0.0", texts)
        self.assertIn("the text", texts)
        self.assertIn("V8's text", texts)
        self.assertNotIn("tested", texts)

    def test_two_runs_write_the_same(self):
        written = []
        for folder in ("one", "two"):
            self.run_script("build/sbom", self.folder / folder).ends(0)
            written.append([path.read_text() for path in sorted((self.folder / folder).iterdir())])
        self.assertEqual(written[0], written[1])

    def test_a_failure_of_cargo_is_reported(self):
        self.stand_in("cargo", "echo 'error: the lock file' >&2; exit 101")
        self.run_script("build/sbom", self.folder / "out").ends(1).says("error: the lock file", "cargo cannot list the crates")
        self.run_script("build/sbom").ends(2).says("build/sbom DIRECTORY")


class SeccompNested(Stage):
    NINE = "mount mount_setattr move_mount open_tree pivot_root setdomainname sethostname umount2 unshare".split()

    def setUp(self):
        super().setUp()
        self.real_python()
        self.copy("vendor/moby", "deploy/helm/rcrt/files/seccomp-nested.json")
        (self.bin / "env").exists() or self.fail("env is missing")

    def test_the_file_of_the_chart_is_up_to_date(self):
        self.run_script("build/seccomp-nested", "--check").ends(0).is_silent()
        self.write("deploy/helm/rcrt/files/seccomp-nested.json", "{}")
        self.run_script("build/seccomp-nested", "--check").ends(1).says("out of date", "--write")
        self.run_script("build/seccomp-nested", "--write").ends(0)
        self.run_script("build/seccomp-nested", "--check").ends(0)
        self.run_script("build/seccomp-nested", "--other").ends(2).says("[--check|--write]")

    def test_it_is_the_default_without_capabilities_and_nine_calls(self):
        profile = json.loads(self.run_script("build/seccomp-nested").ends(0).out)
        default = json.loads((ROOT / "vendor/moby/seccomp-default.json").read_text())
        self.assertEqual(profile["defaultAction"], "SCMP_ACT_ERRNO")
        allowed = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
        plain = {name for rule in default["syscalls"] if not rule.get("includes") for name in rule["names"]}
        self.assertEqual(sorted(set(self.NINE) - allowed), [])
        for name in ("bpf", "reboot", "init_module", "setns", "keyctl", "kexec_load"):
            self.assertNotIn(name, allowed)
        self.assertTrue(plain - {"clone3"} <= allowed | {"clone"})
        # A runtime of the OCI knows none of the default's conditions.
        self.assertEqual({key for rule in profile["syscalls"] for key in rule} - {"names", "action", "args", "errnoRet"}, set())
        self.assertIn({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}, profile["syscalls"])


if __name__ == "__main__":
    unittest.main()
