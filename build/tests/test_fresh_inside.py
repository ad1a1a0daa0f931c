"""build/fresh: what a command in the root gets from this machine, and how `make up` is judged."""

import unittest
from pathlib import Path

from fresh_stage import UP, RunsStage


class Lent(RunsStage):
    def keep(self, name, text):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_the_addresses_of_registries_are_copied_into_the_users_home(self):
        for name in (".cargo/config.toml", ".config/pip/pip.conf", ".npmrc"):
            self.keep(name, f"of {name}")
        self.fresh("user", "test").ends(0)
        for name in (".cargo/config.toml", ".config/pip/pip.conf", ".npmrc"):
            self.assertEqual(self.seen(f"home/tester/{name}"), f"of {name}")

    def test_other_places_of_the_same_files_are_known(self):
        self.keep(".pip/pip.conf", "old pip")
        self.keep("elsewhere/config.toml", "other cargo")
        self.settings["CARGO_HOME"] = self.home / "elsewhere"
        self.fresh("root", "test").ends(0)
        self.assertEqual(self.seen("root/.config/pip/pip.conf"), "old pip")
        self.assertEqual(self.seen("root/.cargo/config.toml"), "other cargo")

    def test_nothing_else_of_the_home_is_copied(self):
        for name in (".cargo/credentials.toml", ".pypirc", ".netrc", ".ssh/id_rsa", "notes"):
            self.keep(name, "private")
        self.fresh("root", "test").ends(0)
        home = self.folder / "seen/root"
        files = [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]
        self.assertEqual(files, [])

    def test_names_and_certificates_are_those_of_this_machine(self):
        self.fresh("root", "test").ends(0)
        for name in ("etc/hosts", "etc/resolv.conf", "etc/pip.conf", "etc/ssl/certs/ca-certificates.crt"):
            if (own := Path("/") / name).exists():
                self.assertEqual(self.seen(name), own.read_text(), name)

    def test_the_environment_has_settings_of_registries_and_nothing_else(self):
        passed = {
            "https_proxy": "http://proxy.test:1",
            "NO_PROXY": "a.test b.test",
            "PIP_INDEX_URL": "http://pip.test/simple",
            "CARGO_REGISTRIES_OWN_INDEX": "sparse+http://cargo.test/",
            "CARGO_SOURCE_CRATES_IO_REPLACE_WITH": "own",
            "npm_config_registry": "http://npm.test",
            "SSL_CERT_FILE": "/etc/ssl/own.pem",
        }
        private = {"TOKEN": "t", "CARGO_HOME": "/x", "CARGO_REGISTRY_TOKEN": "t", "PIP_USER": "1", "RCRT_CACHE": "/c", "CI": "true"}
        self.settings |= passed | private
        self.fresh("user", "test").ends(0)
        variables = dict(line.split("=", 1) for line in self.environment()[: self.environment().index("bash")])
        path = "/opt/rust/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        own = {"HOME": "/home/tester", "USER": "tester", "LANG": "C.UTF-8", "PATH": path}
        self.assertEqual(variables, own | passed)

    def test_a_command_runs_in_its_own_processes_and_mounts(self):
        self.fresh("user", "test").ends(0)
        (call,) = (call for call in self.called() if call.startswith("unshare"))
        self.assertTrue(call.startswith("unshare --mount --pid --fork --kill-child -- bash -euc"), call)


class Up(RunsStage):
    def up(self, script):
        self.make(script, "exit 0")
        return self.fresh("root", "up")

    def test_it_must_make_a_call_and_end_with_ctrl_c(self):
        self.up(UP).ends(0).says('"status": "success"', "Response in 5 ms", "make up as root: done")

    def test_ctrl_c_can_also_end_it_with_success(self):
        self.up(UP.replace("exit 130", "exit 0")).ends(0)

    def test_one_that_exits_by_itself_fails_with_its_output(self):
        self.up("echo 'error: no C compiler'; exit 2").ends(1).says("no C compiler", "make up exited with 2", "some steps failed")

    def test_one_that_makes_no_successful_call_fails(self):
        self.up(UP.replace("success", "error")).ends(1).says('"status": "error"', "make up made no call")

    def test_one_that_fails_after_ctrl_c_fails_with_its_status(self):
        self.up(UP.replace("exit 130", 'echo "Postgres remains"; exit 3')).ends(1).says("Postgres remains", "make up exited with 3 after Ctrl-C")


class Made(RunsStage):
    def test_debootstrap_is_the_second_choice(self):
        made = (self.bin / "mmdebstrap").read_text()
        (self.bin / "mmdebstrap").unlink()
        self.stand_in("debootstrap", made.split("\n", 2)[2])
        self.fresh("root", "test").ends(0)
        (call,) = (call for call in self.called() if call.startswith("debootstrap"))
        self.assertIn("--variant=minbase --include=", call)

    def test_mmdebstrap_is_installed_if_neither_exists(self):
        (self.bin / "mmdebstrap").rename(self.folder / "mmdebstrap")
        self.stand_in("apt-get", f'case $1 in install) mv "{self.folder}/mmdebstrap" "{self.bin}/" ;; esac')
        self.fresh("root", "test").ends(0).says("Installing mmdebstrap")
        self.assertIn("apt-get install -y -qq --no-install-recommends mmdebstrap", self.called())


if __name__ == "__main__":
    unittest.main()
