"""vendor/v8/rebuild, with a fake crate and compiler: what it builds from, and what it replaces."""

import hashlib
import sys
import unittest

from stage import ROOT, Stage

sys.path.insert(0, str(ROOT / "vendor/v8"))
import archive  # noqa: E402

# The library that a build looks for.
NAME = archive.VENDORED
VENDOR = """while [ "$1" != --versioned-dirs ]; do shift; done
for folder in compiler sanitizers; do mkdir -p "$2/v8-9.9.9/build/config/$folder"; done
printf '%s\n' 'a += [ "-fno-lifetime-dse" ]' 'b += [ "-O2" ]' '/clang:-fdiagnostics-show-inlining-chain' >"$2/v8-9.9.9/build/config/compiler/BUILD.gn"
printf '%s\n' '"-fsanitize-ignore-for-ubsan-feature=$x",' '"-kept",' >"$2/v8-9.9.9/build/config/sanitizers/sanitizers.gni"
mkdir -p "$2/v8-9.9.9/src"
echo code >"$2/v8-9.9.9/src/lib.rs"
echo 'channel = "1.0.0"' >"$2/v8-9.9.9/rust-toolchain.toml"
mkdir -p "$2/deno_core_icudata-0.77.0/src"
echo icu >"$2/deno_core_icudata-0.77.0/src/icudtl.dat"
"""
# The folders of Debian's.
CLANG = """case $1 in
--print-resource-dir) echo "{clang}/lib/clang/22" ;;
*) echo "{clang}/lib/clang/22/lib/linux/libclang_rt.builtins-x86_64.a" ;;
esac"""
BUILD = """env >"{folder}/environment"
pwd >"{folder}/built-in"
mkdir -p "$CARGO_TARGET_DIR/release/gn_out/obj"
echo library >"$CARGO_TARGET_DIR/release/gn_out/obj/librusty_v8.a"
echo "is_debug=false" >"$CARGO_TARGET_DIR/release/gn_out/args.gn"
"""


class Rebuild(Stage):
    def setUp(self):
        super().setUp()
        self.copy("vendor/v8/rebuild")
        self.write("vendor/v8/archive.py", 'OTHER = 1\nVENDORED_VERSION = "1.0.0"\n')
        self.write(f"vendor/v8/{NAME}.xz", "old")
        self.write("vendor/v8/SHA256SUMS", "old")
        self.write("Cargo.lock", '[[package]]\nname = "v8"\nversion = "9.9.9"\n\n[[package]]\nname = "v8_valueserializer"\nversion = "1.2.3"\n')
        self.clang = self.folder / "llvm"
        self.builtins = self.clang / "lib/clang/22/lib/linux/libclang_rt.builtins-x86_64.a"
        self.builtins.parent.mkdir(parents=True)
        self.builtins.write_text("builtins")
        self.stand_in("clang", CLANG.format(clang=self.clang), at=self.clang / "bin")
        for name in ("llvm-ar", "ld.lld"):
            self.stand_in(name, at=self.clang / "bin")
        self.stand_in("llvm-strip", 'echo stripped >"${@: -1}"', at=self.clang / "bin")
        self.stand_in("uname", "echo Linux x86_64")
        for name in ("git", "gn", "ninja", "python3"):
            self.stand_in(name)
        self.stand_in("xz", 'cp "${@: -1}" "${@: -1}.xz"')
        self.cargo()

    def cargo(self, vendor=VENDOR, build=BUILD):
        build = build.format(folder=self.folder)
        self.stand_in("cargo", f"case $1 in\nvendor) {vendor} ;;\nbuild) {build} ;;\nesac")

    def rebuild(self, *words):
        return self.run_script("vendor/v8/rebuild", *words, CLANG_BASE_PATH=self.clang)

    def vendored(self, name):
        return (self.tree / "vendor/v8" / name).read_text()

    def assert_unchanged(self):
        self.assertEqual((self.vendored(f"{NAME}.xz"), self.vendored("SHA256SUMS")), ("old", "old"))
        self.assertIn('VENDORED_VERSION = "1.0.0"', self.vendored("archive.py"))

    def test_it_replaces_the_library_its_checksums_and_its_version(self):
        self.rebuild(self.folder / "work").ends(0).says("Building V8 of the crate v8 9.9.9", f"Replaced {self.tree}/vendor/v8/{NAME}.xz")
        self.assertEqual(self.vendored(f"{NAME}.xz"), "stripped\n")
        sum_of = hashlib.sha256(b"stripped\n").hexdigest()
        self.assertEqual(self.vendored("SHA256SUMS"), f"{sum_of}  {NAME}.xz\n{sum_of}  {NAME}\n")
        self.assertEqual(self.vendored("archive.py"), 'OTHER = 1\nVENDORED_VERSION = "9.9.9"\n')
        self.assertEqual(sorted(path.name for path in (self.tree / "vendor/v8").iterdir()), sorted([f"{NAME}.xz", "SHA256SUMS", "archive.py", "args.gn", "rebuild"]))
        self.assertEqual(self.vendored("args.gn"), "is_debug=false\n")

    def test_the_crate_is_built_from_source_with_its_data_and_this_clang(self):
        work = self.folder / "work"
        self.rebuild(work).ends(0)
        self.assertEqual((work / "crates/v8-9.9.9/third_party/icu/common/icudtl.dat").read_text(), "icu\n")
        self.assertEqual((self.folder / "built-in").read_text().strip(), str(work / "crates/v8-9.9.9"))
        environment = dict(line.split("=", 1) for line in (self.folder / "environment").read_text().splitlines())
        for name, value in {
            "V8_FROM_SOURCE": "1",
            "PYTHON": str(work / "python"),
            "CLANG_BASE_PATH": str(work / "clang"),
            "LIBCLANG_PATH": f"{self.clang}/lib",
            "GN": str(self.bin / "gn"),
            "NINJA": str(self.bin / "ninja"),
        }.items():
            self.assertEqual(environment[name], value)
        self.assertIn('clang_version="22" ', environment["GN_ARGS"])
        self.assertIn("cargo build --release --features simdutf", self.called())
        manifest = (work / "fetch/Cargo.toml").read_text()
        self.assertIn('v8 = { version = "=9.9.9", features = ["simdutf"] }', manifest)

    def test_the_crate_is_changed_for_this_clang_and_cargo(self):
        work = self.folder / "work"
        self.rebuild(work).ends(0)
        source = work / "crates/v8-9.9.9"
        self.assertEqual((source / "build/config/compiler/BUILD.gn").read_text(), 'b += [ "-O2" ]\n')
        self.assertEqual((source / "build/config/sanitizers/sanitizers.gni").read_text(), '"-kept",\n')
        self.assertFalse((source / "rust-toolchain.toml").exists())
        self.assertEqual((source / "src/lib.rs").read_text(), "")
        # Where V8's build looks for it.
        library = work / "clang/lib/clang/22/lib/x86_64-unknown-linux-gnu/libclang_rt.builtins.a"
        self.assertEqual(library.resolve(), self.builtins)
        self.assertEqual((work / "clang/bin").resolve(), self.clang / "bin")

    def test_its_python_fetches_no_rust_toolchain_and_runs_the_rest(self):
        work = self.folder / "work"
        self.rebuild(work).ends(0)
        self.calls.write_text("")
        self.run_script(work / "python", "/x/rust_toolchain.py", "--download").ends(0)
        self.assertEqual(self.called(), [])
        self.run_script(work / "python", "/x/other.py", "-v").ends(0)
        self.assertEqual(self.called(), ["python3 /x/other.py -v"])

    def test_without_a_folder_it_works_in_a_temporary_one(self):
        self.rebuild().ends(0)
        self.assertEqual(len(list(self.folder.glob("v8.*/crates"))), 1)

    def test_older_cargos_name_the_folder_without_a_version(self):
        self.cargo(vendor=VENDOR.replace("v8-9.9.9", "v8"))
        self.rebuild(self.folder / "work").ends(0)

    def test_another_system_is_refused(self):
        self.stand_in("uname", "echo Linux aarch64")
        self.rebuild().ends(1).says("built on Linux x86-64")
        self.assertFalse(any(call.startswith("cargo") for call in self.called()))

    def test_each_missing_program_is_named(self):
        for name in ("cargo", "git", "gn", "ninja", "xz", "python3"):
            with self.subTest(name):
                path = self.bin / name
                path.rename(self.folder / name)
                self.rebuild().ends(1).says(f"there is no {name}; see the head of this script")
                (self.folder / name).rename(path)
        for name in ("clang", "llvm-ar", "llvm-strip", "ld.lld"):
            with self.subTest(name):
                path = self.clang / "bin" / name
                path.rename(self.folder / name)
                self.rebuild().ends(1).says(f"there is no {path}; set CLANG_BASE_PATH")
                (self.folder / name).rename(path)
        self.builtins.unlink()
        self.rebuild().ends(1).says(f"there is no {self.builtins}; see the head of this script")
        self.assert_unchanged()

    def test_missing_sources_are_reported(self):
        for gone, words in (("v8-9.9.9", "no source of v8 9.9.9"), ("deno_core_icudata-0.77.0", "deno_core_icudata 0.77.0 has no icudtl.dat")):
            with self.subTest(gone):
                self.cargo(vendor=f'{VENDOR}\nrm -r "$2/{gone}"')
                self.rebuild().ends(1).says(words)
        self.cargo(vendor="echo 'error: no network' >&2; exit 101")
        self.rebuild().ends(101).says("no network")
        self.assert_unchanged()

    def test_it_uses_the_version_that_the_build_needs(self):
        self.copy("Cargo.lock")
        self.rebuild().ends(1).says(f"of the crate v8 {archive.VENDORED_VERSION} in", f"no source of v8 {archive.VENDORED_VERSION}")

    def test_a_failed_build_replaces_nothing(self):
        self.cargo(build="echo 'ninja: build stopped' >&2; exit 101")
        self.rebuild().ends(101).says("build stopped")
        self.cargo(build="exit 0")
        self.rebuild().ends(1).says("the build left no", "librusty_v8.a")
        self.cargo()
        self.stand_in("xz", "exit 1")
        self.assertEqual(self.rebuild().status, 1)
        self.assert_unchanged()


if __name__ == "__main__":
    unittest.main()
