"""A kilokvd with TLS and logins, and what its clients need."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from certificates import SERVER, Authority  # noqa: E402
from programs import Server  # noqa: E402


class GuardedServer(Server):
    """Its commands trust the server, and log in as the administrator."""

    def __init__(self, folder, *flags, **more):
        authority = Authority(folder, "Test CA")
        self.authority = str(authority.certificate)
        self.token_file = pathlib.Path(folder) / "admin.token"
        super().__init__(folder, *authority.issue("server", SERVER).flags(), "--login", "on", "--bootstrap-file",
                         str(self.token_file), *flags, **more)

    def command(self, program, *arguments):
        return [*super().command(program, *arguments), "--tls-ca", self.authority, "--token-file",
                str(self.token_file)]
