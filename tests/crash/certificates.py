"""Makes certificates, keys and revocation lists with the command `openssl`, in a folder of the test."""

import base64
import datetime
import pathlib
import re
import subprocess

CONFIGURATION = """
[ca]
default_ca = authority
[authority]
dir = {folder}
database = {folder}/index.txt
serial = {folder}/serial
new_certs_dir = {folder}
certificate = {folder}/ca.pem
private_key = {folder}/ca.key
default_md = sha256
default_crl_days = 30
policy = any
unique_subject = no
copy_extensions = none
[any]
commonName = supplied
[authority_extensions]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
"""
SERVER = "subjectAltName = DNS:localhost, IP:127.0.0.1\nextendedKeyUsage = serverAuth\n"
OTHER_SERVER = "subjectAltName = DNS:other.example\nextendedKeyUsage = serverAuth\n"
CLIENT = "extendedKeyUsage = clientAuth\n"
ISSUER = "basicConstraints = critical, CA:true\nkeyUsage = critical, keyCertSign, cRLSign\n"


def openssl(*arguments):
    run = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"openssl {arguments}: {run.stderr}"
    return run.stdout


def new_key(path):
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)
    path.chmod(0o600)


def day(days):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ")


class Pair:
    """The files of a certificate and its key."""

    def __init__(self, certificate, key):
        self.certificate, self.key = pathlib.Path(certificate), pathlib.Path(key)

    def flags(self):
        return ["--tls-cert", str(self.certificate), "--tls-key", str(self.key)]


class Authority:
    """An authority with its folder. Without `issuer` it signs its own certificate."""

    def __init__(self, folder, name, issuer=None):
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir(parents=True)
        self._issuer = issuer
        self._configuration = self.folder / "openssl.cnf"
        self._configuration.write_text(CONFIGURATION.format(folder=self.folder))
        (self.folder / "index.txt").touch()
        (self.folder / "serial").write_text("1000\n")
        self.certificate, self._key = self.folder / "ca.pem", self.folder / "ca.key"
        if issuer is None:
            new_key(self._key)
            openssl("req", "-x509", "-new", "-key", self._key, "-subj", f"/CN={name}", "-days", "3650", "-config",
                    self._configuration_of_requests(), "-extensions", "authority_extensions", "-out", self.certificate)
        else:
            pair = issuer.issue(name, ISSUER)
            pair.certificate.rename(self.certificate)
            pair.key.rename(self._key)

    def _configuration_of_requests(self):
        path = self.folder / "request.cnf"
        path.write_text(CONFIGURATION.format(folder=self.folder) + "[req]\ndistinguished_name = none\n[none]\n")
        return path

    def issue(self, name, extensions, begin=-1, end=365, file=None):
        """A certificate that is valid from `begin` days after now to `end` days after now."""
        file = file or name
        pair = Pair(self.folder / f"{file}.pem", self.folder / f"{file}.key")
        request, extension_file = self.folder / f"{file}.csr", self.folder / f"{file}.ext"
        new_key(pair.key)
        openssl("req", "-new", "-key", pair.key, "-subj", f"/CN={name}", "-config", self._configuration_of_requests(),
                "-out", request)
        extension_file.write_text(extensions)
        openssl("ca", "-batch", "-notext", "-config", self._configuration, "-startdate", day(begin), "-enddate",
                day(end), "-extfile", extension_file, "-in", request, "-out", pair.certificate)
        if self._issuer is not None:
            pair.certificate.write_text(pair.certificate.read_text() + self.certificate.read_text())
        return pair

    def revoke(self, pair):
        openssl("ca", "-config", self._configuration, "-revoke", pair.certificate)

    def write_list(self, path, *, end=30):
        """Writes the revocation list, in one step."""
        draft = pathlib.Path(path).parent.parent / "draft.crl"
        openssl("ca", "-gencrl", "-config", self._configuration, "-crl_lastupdate", day(-2), "-crl_nextupdate", day(end),
                "-out", draft)
        draft.rename(path)


def self_signed(folder, name, extensions):
    folder = pathlib.Path(folder)
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    configuration = folder / f"{name}.cnf"
    configuration.write_text(f"[req]\ndistinguished_name = none\n[none]\n[own]\n{extensions}")
    new_key(pair.key)
    openssl("req", "-x509", "-new", "-key", pair.key, "-subj", f"/CN={name}", "-days", "30", "-config", configuration,
            "-extensions", "own", "-out", pair.certificate)
    return pair


def forms_of(secret):
    """The forms in which these bytes could be written: as they are, as hex and as base64, wherever they begin in what
    is encoded."""
    forms = [secret, secret.hex().encode(), secret.hex().upper().encode()]
    for lead in range(3):  # base64 depends on what comes before
        forms.append(base64.b64encode(b"x" * lead + secret)[(lead * 4 + 2) // 3 + 1:-4])
    return forms


def secrets_of(folder):
    """All that nobody may show of the private keys below the folder, in each form: the lines of the file, the whole key
    as DER, and its secret number."""
    secrets = set()
    for path in pathlib.Path(folder).rglob("*.key"):
        lines = [line for line in path.read_text().splitlines() if not line.startswith("-----")]
        der = base64.b64decode("".join(lines))
        number = re.search(b"\x02\x01\x01\x04\x20(.{32})", der, re.DOTALL)[1]  # RFC 5915
        secrets.update(line.encode() for line in lines if len(line) > 20)
        secrets.update(form for content in (der, number) for form in forms_of(content))
    return secrets
