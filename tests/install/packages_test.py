#!/usr/bin/env python3
"""The packages, as files: what they hold, that their parts are sound, and that they say what the programs say. What they do
in a system of their own is tested in tests/packages.

  packages_test.py --build BUILD_FOLDER
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from certificates import SERVER, Authority  # noqa: E402

PROGRAMS = {"kilokvd": 8, "kilokv": 1, "kilokv-bank": 1, "kilokv-bench": 1, "kilokv-engine-bench": 1}
WITH_COMPLETION = ("kilokvd", "kilokv", "kilokv-bank", "kilokv-bench")
EXPOSURE_MAX = 1.5  # by systemd-analyze security, which calls this OK; 10 is the worst
GLIBC_MAX = (2, 36)
# A line of the list of libraries: file, package, version.
LISTED = re.compile(r"(?m)^(\S+|\(compiled in\)) +(\S+) (\S+)$")


def run(*command, code=0, **how):
    how = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "timeout": 300, **how}
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=False, **how)
    if code is not None and done.returncode != code:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def flags_of(text):
    """The long flags that a help explains, each at the beginning of a line."""
    names = (name for line in text.splitlines() if line.startswith("  -") for name in line.split()[0].split(","))
    return {re.sub(r"\{.*", "", name) for name in names if name.startswith("--")}


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


class Made:
    """The packages, made once for all tests, and unpacked."""

    build = None  # the folder of the build

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        packages = self.folder / "packages"
        run("cpack", "--config", self.build / "CPackConfig.cmake", "-B", packages, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip",
            cwd=self.folder)
        shutil.rmtree(packages / "_CPack_Packages")
        names = sorted(path.name for path in packages.iterdir())
        patterns = (r"kilokv-\d.*-linux-x86_64\.tar\.gz", r"kilokv_\d.*_amd64\.deb", r"libkilokv-dev_\d.*_amd64\.deb")
        assert len(names) == 3 and all(map(re.fullmatch, patterns, names)), names
        self.archive, self.deb, self.dev = (packages / name for name in names)
        self.root = self.folder / "root"  # of the .deb
        run("dpkg-deb", "--extract", self.deb, self.root)
        run("tar", "-C", self.folder, "-xf", self.archive)
        self.unpacked = self.folder / self.archive.name.removesuffix(".tar.gz")


def setUpModule():
    made = Made(unittest.enterModuleContext(tempfile.TemporaryDirectory(prefix="kilokv-packages-")))
    for name, value in vars(made).items():
        setattr(Packages, name, value)


class Packages(unittest.TestCase):
    def tls_files(self):
        """Real files for the places of TLS that configurations name, by the ends of their names: --check-config reads them."""
        authority = Authority(tempfile.mkdtemp(prefix="kilokv-tls-", dir=self.folder), "Test CA")
        pair = authority.issue("server", SERVER)
        return {"server.pem": pair.certificate, "server.key": pair.key, "clients.pem": authority.certificate}

    def help_of(self, *words):
        return run(self.root / "usr" / "bin" / words[0], *words[1:], "--help")


class Deb(Packages):
    def files(self, root):
        return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}

    def test_it_has_all_parts(self):
        files = self.files(self.root)
        wanted = {"etc/kilokv/kilokvd.toml", "etc/logrotate.d/kilokvd", "lib/systemd/system/kilokvd.service",
                  "usr/share/doc/kilokv/copyright", "usr/share/doc/kilokv/changelog.gz",
                  "usr/share/doc/kilokv/changelog.Debian.gz", "usr/share/doc/kilokv/docs/install.md",
                  "usr/share/doc/kilokv/README.md", "usr/share/kilokv/monitoring/alerts.yml",
                  "usr/share/kilokv/monitoring/dashboard.json"}
        wanted |= {f"usr/bin/{name}" for name in PROGRAMS}
        wanted |= {f"usr/share/man/man{section}/{name}.{section}.gz" for name, section in PROGRAMS.items()}
        wanted |= {f"usr/share/bash-completion/completions/{name}" for name in WITH_COMPLETION}
        self.assertLessEqual(wanted, files)
        self.assertFalse([name for name in files if name.endswith((".a", ".hpp", ".so"))])
        self.assertEqual({path.name for path in (self.root / "usr" / "bin").iterdir()}, set(PROGRAMS))

    def test_its_dependencies_are_those_of_the_programs(self):
        depends = run("dpkg-deb", "--field", self.deb, "Depends")
        for package in ("adduser", "libc6", "libgrpc++1.51", "librocksdb7.8", "libjemalloc2", "libssl3", "libstdc++6"):
            self.assertRegex(depends, rf"(^|, ){re.escape(package)}(:\w+)?( \(|,|$)", package)

    def test_the_programs_use_the_libraries_of_the_system(self):
        for name in PROGRAMS:
            dynamic = run("readelf", "--dynamic", self.root / "usr" / "bin" / name)
            self.assertNotIn("RPATH", dynamic)
            self.assertNotIn("RUNPATH", dynamic)
            self.assertNotIn(".debug_info", run("readelf", "--sections", self.root / "usr" / "bin" / name))

    def test_lintian_finds_nothing(self):
        # The exit code also counts what the packages override.
        said = run("lintian", "--allow-root", "--show-overrides", self.deb, self.dev, code=None)
        self.assertIn("\nO: kilokv: bogus-mail-host", said)  # it has read the packages
        self.assertEqual(re.findall(r"(?m)^[EW]: .*$", said), [])

    def test_the_development_package_is_whole(self):
        root = self.folder / "dev"
        run("dpkg-deb", "--extract", self.dev, root)
        files = self.files(root)
        self.assertLessEqual({"usr/include/kilokv/client.hpp", "usr/include/kilokv-engine/engine/engine.hpp",
                              "usr/lib/cmake/kilokv/kilokv-config.cmake", "usr/lib/libkilokv_client.a",
                              "usr/share/kilokv/proto/kilokv/v1/kilokv.proto"}, files)
        self.assertFalse(files & self.files(self.root))
        self.assertNotIn(".debug_info", run("readelf", "--sections", root / "usr" / "lib" / "libkilokv_engine.a"))

    def test_the_scripts_are_sound(self):
        control = self.folder / "control"
        run("dpkg-deb", "--control", self.deb, control)
        for name in ("postinst", "prerm", "postrm"):
            self.assertTrue(os.access(control / name, os.X_OK), name)
            self.assertIn("\nset -e\n", (control / name).read_text())
            run("sh", "-n", control / name)
        conffiles = (control / "conffiles").read_text().split()
        self.assertEqual(sorted(conffiles), sorted(f"/{name}" for name in self.files(self.root) if name.startswith("etc/")))
        self.assertTrue((control / "md5sums").exists())


class Unit(Packages):
    def setUp(self):
        self.path = self.root / "lib" / "systemd" / "system" / "kilokvd.service"
        self.unit = self.path.read_text()

    def value(self, key):
        (found,) = re.findall(rf"(?m)^{key}=(.*)$", self.unit)
        return found

    def seconds(self, key):
        return int(run("systemd-analyze", "timespan", self.value(key)).split("μs: ")[1].split()[0]) / 1e6

    def verify(self, text):
        root = self.folder / "verify"
        shutil.rmtree(root, ignore_errors=True)
        for name in ("bin/sh", "usr/bin/kilokvd"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy("/bin/true", root / name)
        units = root / "lib" / "systemd" / "system"
        units.mkdir(parents=True)
        (units / "kilokvd.service").write_text(text)
        return run("systemd-analyze", "verify", f"--root={root}", "--man=no", "--recursive-errors=no", "kilokvd.service",
                   code=None)

    def test_systemd_understands_it(self):
        self.assertEqual(self.verify(self.unit), "")
        self.assertIn("Unknown key", self.verify(self.unit.replace("ProtectHome=", "ProtectHmoe=")))
        self.assertIn("is not executable", self.verify(self.unit.replace("/usr/bin/kilokvd", "/usr/bin/kilokv")))

    def test_a_start_makes_no_database(self):
        """Neither do the scripts of the package, after the first installation."""
        self.assertTrue(self.value("ExecStart").endswith(" --create never"))
        postinst = (ROOT / "deploy" / "package" / "debian" / "postinst").read_text()
        self.assertRegex(postinst, r'if \[ -z "\$2" \]; then\n[^\n]* --create-database')
        self.assertEqual(postinst.count("--create-database"), 1)

    def test_it_is_hardened(self):
        output = run("systemd-analyze", "security", "--offline=yes", f"--threshold={EXPOSURE_MAX * 10:.0f}", self.path)
        exposure = float(re.search(r"Overall exposure level for kilokvd.service: ([\d.]+)", output)[1])
        self.assertLessEqual(exposure, EXPOSURE_MAX)
        print(f"exposure of kilokvd.service by systemd-analyze security: {exposure}")

    def test_its_times_fit_those_of_the_server(self):
        self.assertEqual(self.value("Type"), "notify")
        drain = re.search(r"--drain-timeout DURATION \[(\d+)s\]", self.help_of("kilokvd"))
        self.assertGreater(self.seconds("TimeoutStopSec"), int(drain[1]))
        self.assertGreaterEqual(self.seconds("WatchdogSec"), 30)

    def test_its_command_line_is_valid(self):
        program, *arguments = self.value("ExecStart").split()
        arguments = [str(self.root / word[1:]) if word.startswith("/") else word for word in arguments]
        self.assertEqual(run(self.root / program[1:], *arguments, "--check-config"), "kilokvd: all settings are valid\n")

    def test_each_line_of_the_configuration_is_valid(self):
        text = (self.root / "etc" / "kilokv" / "kilokvd.toml").read_text()
        with_all = re.sub(r"(?m)^#(?=[a-z-]+ = )", "", text)
        self.assertNotEqual(with_all, text)
        path = self.folder / "all.toml"
        with_files = with_all
        for name, file in self.tls_files().items():
            self.assertIn(f'"/etc/kilokv/{name}"', with_files)
            with_files = with_files.replace(f"/etc/kilokv/{name}", str(file))
        path.write_text(with_files)
        run(self.root / "usr" / "bin" / "kilokvd", "--config", path, "--check-config")
        names = re.findall(r"(?m)^([a-z-]+) = ", with_all)
        self.assertEqual(len(names), len(set(names)))
        # The unit lets the server write there, and nowhere else.
        for name, value in re.findall(r'(?m)^([a-z-]+) = "(/.*)"$', with_all):
            if not name.startswith("tls-"):
                self.assertTrue(value.startswith(("/var/lib/kilokv/", "/var/log/kilokv/")), name)
        self.assertEqual((self.value("StateDirectory"), self.value("LogsDirectory")), ("kilokv", "kilokv"))


class Pages(Packages):
    def test_each_flag_is_on_the_manual_page(self):
        for name, section in PROGRAMS.items():
            page = run("gzip", "-dc", self.root / "usr" / "share" / "man" / f"man{section}" / f"{name}.{section}.gz")
            page = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
            flags = flags_of(self.help_of(name))
            self.assertGreaterEqual(len(flags), 2, name)
            for flag in flags:
                self.assertRegex(page, rf"(?m){flag}\b", f"{name}.{section}")
        self.assertIn("kilokv role grant", page_text(self.root, "kilokv", 1))
        for command in ("backup", "check", "restore"):  # a build without the server would lack them
            self.assertIn(f"kilokv {command}", page_text(self.root, "kilokv", 1))

    def complete(self, *words):
        """What bash offers for the last word."""
        script = self.root / "usr" / "share" / "bash-completion" / "completions" / words[0]
        line = " ".join(f"'{word}'" for word in words)
        return run("bash", "--norc", "-c",
                   f'source "{script}"; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); '
                   f'$(complete -p {words[0]} | sed "s/.*-F \\([^ ]*\\) .*/\\1/"); printf "%s\\n" "${{COMPREPLY[@]}}"').split()

    def test_each_flag_is_completed(self):
        for path in (("kilokvd",), ("kilokv",), ("kilokv", "txn"), ("kilokv", "role", "grant"), ("kilokv", "session", "attach"),
                     ("kilokv", "export"), ("kilokv", "import"), ("kilokv", "restore"), ("kilokv-bank", "demo"),
                     ("kilokv-bench", "run"), ("kilokv-bench", "sweep"), ("kilokv-bench", "tune")):
            flags = flags_of(self.help_of(*path))
            self.assertGreaterEqual(len(flags), 3, path)
            self.assertLessEqual(flags, set(self.complete(*path, "--")), path)
        self.assertEqual(self.complete("kilokv", "--outp"), ["--output"])
        self.assertEqual(self.complete("kilokv", "--endpoint", "a", "txn", "--b"), ["--batch"])

    def test_commands_and_values_are_completed(self):
        self.assertEqual(self.complete("kilokv", "sta"), ["status"])
        self.assertEqual(self.complete("kilokv", "--timeout", "3s", "role", "re"), ["revoke", "remove"])
        self.assertEqual(self.complete("kilokv", "--output", ""), ["text", "json"])
        self.assertEqual(self.complete("kilokv", "--output", "=", "j"), ["json"])
        self.assertEqual(self.complete("kilokvd", "--login", ""), ["on", "off"])
        self.assertEqual(self.complete("kilokv", "import", "--existing", ""), ["overwrite", "keep", "refuse"])
        self.assertIn("/etc/passwd", self.complete("kilokv", "import", "--quiet", "/etc/passw"))
        self.assertIn("/etc/passwd", self.complete("kilokv", "import", "--bad-lines", "/etc/passw"))
        self.assertEqual(self.complete("kilokv", "get", "/etc/passw"), [])
        self.assertEqual(self.complete("kilokv", "--endpoint", ""), [])
        self.assertIn("/etc/passwd", self.complete("kilokvd", "--config", "/etc/passw"))


class Archive(Packages):
    def test_it_has_one_folder_with_everything(self):
        names = run("tar", "-tf", self.archive).split("\n")
        self.assertEqual({name.split("/")[0] for name in names if name}, {self.unpacked.name})
        for name in ("LICENSE", "kilokvd.toml", "kilokvd.service", "licences/LIBRARIES"):
            self.assertTrue((self.unpacked / "share" / "kilokv" / name).is_file(), name)

    def test_the_programs_use_their_own_libraries(self):
        libraries = self.unpacked / "lib" / "kilokv"
        own = {path.name for path in libraries.iterdir()}
        for name in PROGRAMS:
            loaded = re.findall(r"^\s*(\S+) => (\S+) \(", run("ldd", self.unpacked / "bin" / name), re.MULTILINE)
            self.assertGreater(len(loaded), 1)
            for library, path in loaded:
                if library in own:
                    self.assertEqual(pathlib.Path(path).resolve().parent, libraries.resolve(), f"{name}: {library}")
                else:
                    self.assertRegex(library, r"^(lib(c|m|pthread|dl|rt|resolv)|ld-linux-x86-64)\.so\.\d$", name)

    def test_an_old_glibc_is_enough(self):
        newest = (0, 0)
        for path in self.unpacked.rglob("*"):
            if path.is_file() and is_elf(path):
                for version in re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", path)):
                    newest = max(newest, tuple(map(int, version)))
        self.assertGreater(newest, (2, 30))
        self.assertLessEqual(newest, GLIBC_MAX)

    def test_each_library_has_its_licence(self):
        licences = self.unpacked / "share" / "kilokv" / "licences"
        listed = LISTED.findall((licences / "LIBRARIES").read_text())
        own = {path.name for path in (self.unpacked / "lib" / "kilokv").iterdir()}
        self.assertEqual({name for name, _, _ in listed if not name.startswith("(")}, own)
        for _, package, _ in listed:
            text = (licences / f"{package}.txt").read_text(errors="replace")
            self.assertRegex(text, "(?i)copyright", package)
            for common in re.findall(r"/usr/share/common-licenses/([\w+-]+(?:\.\d+)*)", text):
                self.assertTrue((licences / common).is_file() or not (pathlib.Path("/usr/share/common-licenses") / common).is_file(),
                                f"{package}: {common}")

    def test_code_that_is_compiled_in_has_its_licence(self):
        """Headers leave code in the programs, also if there is no library to copy. The compiler noted which it has read."""
        headers, of_product = set(), False
        for line in run("ninja", "-C", Made.build, "-t", "deps").splitlines():
            if line.startswith("    "):
                if of_product and line.startswith("    /usr/") and not line.startswith("    /usr/local/"):  # CUDA is no package
                    headers.add(line.strip())
            elif line:
                of_product = re.match(r"(engine|tls|server|client|proto)/", line) is not None
        self.assertGreater(len(headers), 1000)
        found = run("dpkg-query", "--search", *sorted(headers), stderr=subprocess.DEVNULL)
        readers = set(re.findall(r"(?m)^([^\s:,]+)", found))
        licences = self.unpacked / "share" / "kilokv" / "licences"
        listed = {package for _, package, _ in LISTED.findall((licences / "LIBRARIES").read_text())}
        shown = run("dpkg-query", "--show", "--showformat", "${Package} ${source:Package}\n", *readers, *listed)
        source_of = dict(line.split() for line in shown.splitlines())
        sources = {source_of[name] for name in listed} | {"gcc-12", "glibc", "linux"}  # each program has code of these
        self.assertIn("libcli11-dev", readers)
        self.assertEqual({name for name in readers if source_of[name] not in sources}, set())

    def test_it_runs_where_it_is_unpacked(self):
        elsewhere = self.folder / "else where"
        elsewhere.mkdir()
        moved = elsewhere / "kilokv"
        shutil.copytree(self.unpacked, moved, symlinks=True)
        output = run(moved / "bin" / "kilokv-bank", "demo", "--duration", "2s", "--no-kill", cwd=elsewhere, env={})
        self.assertIn("Proven: the books are right to the cent.", output)


class Containers(Packages):
    """The files for containers are read, and their commands are checked: no engine for containers is needed."""

    def check_server(self, arguments):
        """The settings with which the image starts kilokvd, and these arguments."""
        image = (ROOT / "deploy" / "container" / "Containerfile").read_text()
        program, *entry = json.loads(re.search(r"(?m)^ENTRYPOINT (.*)$", image)[1])
        entry = [str(self.root / word[1:]) if word.startswith("/etc/") else word for word in entry]
        self.assertEqual(program, "kilokvd")
        self.assertEqual(entry[-2:], ["--create", "never"])
        files = self.tls_files()
        arguments = [str(files.get(word.removeprefix("/run/tls/"), word)) for word in arguments]
        run(self.root / "usr" / "bin" / program, *entry, *arguments, "--check-config")

    def check_client(self, command):
        """Whether the client takes the command: it finds no server, or cannot read a file."""
        program, *arguments = command
        output = run(self.root / "usr" / "bin" / program, *arguments, code=None)
        self.assertRegex(output, "cannot (read|open)|no server", command)
        self.assertNotIn("--help", output)

    def test_the_image(self):
        image = (ROOT / "deploy" / "container" / "Containerfile").read_text()
        self.check_server(json.loads(re.search(r"(?m)^CMD (.*)$", image)[1]))
        for script in re.findall(r"(?m)^RUN (deploy/\S+)", image):
            self.assertTrue(os.access(ROOT / script, os.X_OK), script)
        config = (self.root / "etc" / "kilokv" / "kilokvd.toml").read_text()
        (volume,) = re.findall(r"(?m)^VOLUME (.*)$", image)
        self.assertTrue(re.search(r'(?m)^data-dir = "(.*)"$', config)[1].startswith(volume + "/"))

    def test_the_compose_file(self):
        folder = ROOT / "deploy" / "container"
        text = (folder / "compose.yaml").read_text()
        (service,) = yaml.safe_load(text)["services"].values()
        self.check_server(service["command"])
        (once,) = re.findall(r"(?m)^#   docker compose .* run --rm kilokv (.*)$", text)
        self.assertEqual(once, "--create-database")
        self.check_server(once.split())
        self.check_client(service["healthcheck"]["test"][1:])
        self.assertTrue((folder / service["build"]["context"] / service["build"]["dockerfile"]).is_file())

    def test_the_example_for_kubernetes(self):
        page = (ROOT / "docs" / "install.md").read_text()
        once, example = re.findall(r"(?ms)^```yaml\n(.*?)^```$", page)
        service, stateful = yaml.safe_load_all(example)
        pod = stateful["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        self.check_server(container["args"])
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        listens = dict(zip(container["args"][::2], container["args"][1::2]))
        self.assertEqual(listens["--listen"], f"0.0.0.0:{ports['grpc']}")
        for probe, page in (("startupProbe", "/readyz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
            asks = container[probe]["httpGet"]
            self.assertEqual((asks["path"], asks["scheme"]), (page, "HTTPS"))
            self.assertEqual(listens["--http-listen"], f"0.0.0.0:{ports[asks['port']]}")
        self.assertEqual(service["spec"]["selector"], stateful["spec"]["template"]["metadata"]["labels"])
        self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, {volume["name"] for volume in pod["volumes"]})
        self.check_job(once, pod)
        ids = re.findall(r"--[gu]id (\d+)", (ROOT / "deploy" / "container" / "Containerfile").read_text())
        self.assertEqual({str(pod["securityContext"][name]) for name in ("runAsUser", "runAsGroup", "fsGroup")}, set(ids))

    def check_job(self, text, pod):
        """What makes the database once: on the volume of the server, and in the place where the server looks for it."""
        claim, job = yaml.safe_load_all(text)
        once = job["spec"]["template"]["spec"]
        (container,), (server,) = once["containers"], pod["containers"]
        self.assertIn("--create-database", container["args"])
        self.check_server(container["args"])
        def data(arguments):
            return arguments[arguments.index("--data-dir") + 1]
        self.assertEqual(data(container["args"]), data(server["args"]))
        def volume(of):
            (found,) = (volume for volume in of["volumes"] if volume["name"] == "data")
            return found["persistentVolumeClaim"]["claimName"]
        self.assertEqual({volume(once), volume(pod)}, {claim["metadata"]["name"]})
        self.assertEqual(once["securityContext"], pod["securityContext"])
        for one in (container, server):
            self.assertIn({"name": "data", "mountPath": "/var/lib/kilokv"}, one["volumeMounts"])


def page_text(root, name, section):
    return run("gzip", "-dc", root / "usr" / "share" / "man" / f"man{section}" / f"{name}.{section}.gz")


def main():
    parser = argparse.ArgumentParser(description="Tests the packages as files.")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder of the build")
    arguments, rest = parser.parse_known_args()
    Made.build = arguments.build.resolve()
    os.environ.pop("KILOKV_ENDPOINT", None)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
