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

    def add_user(self, name, *rights):
        """Makes a user with these rights, and returns the header of its calls."""
        token = self.folder / f"{name}.token"
        self.client("role", "grant", f"role-{name}", *rights)
        self.client("user", "set", name, "--role", f"role-{name}")
        self.client("token", "create", name, "--file", str(token))
        return "authorization", f"Bearer {token.read_text().strip()}"
