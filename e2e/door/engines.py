"""Real SGLang behind the launcher of kvfence-engine, as processes on loopback, and the operator's side of the door."""

from __future__ import annotations

import base64
import http.client
import json
import random
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from e2e import progress
from e2e.engines import processes
from e2e.engines.servers import SERVED_NAME, Ports, Server, launch
from e2e.said import Said
from kvfence_engine.admission import PREFIX, Admission, encode
from kvfence_engine.state import Door

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOST = processes.HOST
POOL = "pool-of-this-test"
START_SECONDS = 240.0
STOP_SECONDS = 20.0
ENGINE_FOLDER = Path(__file__).resolve().parents[2] / "engine_image"


class EngineError(RuntimeError):
    """An engine ended or did not start in time; the message ends with the last lines of its log."""


@dataclass(frozen=True)
class Injection:
    """What an init container would have brought: the unpacked wheel, and the operator's public keys."""

    packages: Path
    keys: Path
    signer: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @classmethod
    def build(cls, folder: Path) -> Injection:
        """Build the distribution as it is shipped and unpack it into a new folder."""
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
        subprocess.run(command, cwd=ENGINE_FOLDER, check=True, capture_output=True)
        (wheel,) = folder.glob("*.whl")
        made = cls(folder / "packages", folder / "keys")
        zipfile.ZipFile(wheel).extractall(made.packages)
        made.keys.mkdir()
        public = made.signer.public_key().public_bytes_raw()
        (made.keys / "current").write_text(base64.b64encode(public).decode() + "\n")
        return made

    def body(self, admission: Admission, signer: Ed25519PrivateKey | None = None) -> dict[str, str]:
        """Return a signed admission as the launcher takes it."""
        message = encode(admission)
        signature = (signer or self.signer).sign(PREFIX + message)
        return {"message": base64.b64encode(message).decode(), "signature": base64.b64encode(signature).decode()}


@dataclass
class Engine:
    """One engine; `process` is its launcher's keeper and changes when it is started again."""

    server: Server
    injection: Injection
    ports: Ports
    control: int
    log: Path
    termination_log: Path
    argv: tuple[str, ...]
    env: Mapping[str, str]
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def peer(self) -> str:
        """How others name it in `bootstrap_host` and `bootstrap_port`."""
        return f"{HOST}:{self.ports.bootstrap}"

    def ask(self, path: str, body: object = None, method: str = "", headers: Mapping[str, str] | None = None) -> Said:
        """Ask the engine itself."""
        return self._ask(self.ports.http, path, body, method, headers or {})

    def tell(self, path: str, body: object = None) -> Said:
        """Ask its launcher."""
        return self._ask(self.control, path, body, "", {})

    def status(self) -> dict[str, Any]:
        """What its launcher says of it."""
        status: dict[str, Any] = self.tell("/status").json
        return status

    def admission(self, **changes: Any) -> Admission:
        """Return one that fits this boot, but for the changes."""
        now = self.status()
        fields = {
            "pool": POOL,
            "pod": self.server.name,
            "nonces": tuple(now["nonces"]),
            "epoch": now["epoch"] + 1,
            "door": Door.OPEN,
            "cap": 1000,
            "peers": (),
            "passes": (),
            "expires": int(time.time()) + 60,
        }
        return Admission(**{**fields, **changes})

    def admit(self, **changes: Any) -> Said:
        """Send one that fits this boot, but for the changes."""
        return self.tell("/admission", self.injection.body(self.admission(**changes)))

    def wait_until_started(self) -> None:
        """Wait as a startup probe does.

        Raises:
            EngineError: when it ends first, or is late.
        """
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self.process.poll() is not None:
                raise EngineError(f"{self.server.name} ended with {self.process.returncode}; {self.tail()}")
            try:
                if self.tell("/started").status == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise EngineError(f"{self.server.name} did not start; {self.tail()}")
            time.sleep(0.2)

    def tail(self) -> str:
        """The end of its log."""
        return "its log ends:\n" + "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])

    def _ask(self, port: int, path: str, body: object, method: str, headers: Mapping[str, str]) -> Said:
        raw = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(HOST, port, timeout=60)
        began = time.monotonic()
        try:
            sent = {"Content-Type": "application/json", **headers}
            connection.request(method or ("GET" if raw is None else "POST"), path, raw, sent)
            answer = connection.getresponse()
            return Said(answer.status, answer.read().decode(errors="replace"), time.monotonic() - began)
        finally:
            connection.close()

    def launcher(self) -> int:
        """Pid of the launcher."""
        status = Path(f"/proc/{self.status()['server']['pid']}/status").read_text()
        return int(status.split("PPid:")[1].split()[0])

    def start(self, *, outlived: bool = False) -> None:
        """Run the command, the first time or again.

        Args:
            outlived: have the keeper's command live on when the launcher ends. Else the keeper, which leaves nothing of
                a command that ended, kills the engine, and nobody sees whether it would have ended by itself.
        """
        above = ("sh", "-c", '"$@"; sleep 600', "sh") if outlived else ()
        if self._was_started():
            self.stop()
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-I", str(processes.KEEPER), *above, *self.argv],
                stdin=subprocess.PIPE,  # the keeper ends the engine when this closes
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(self.env),
                start_new_session=True,
            )

    def _was_started(self) -> bool:
        return hasattr(self, "process")

    def stop(self) -> None:
        """End it with all its processes."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass(frozen=True)
class Given:
    """What a test gives an engine beside what all engines get."""

    launcher: tuple[str, ...] = ()
    """Further arguments of the launcher."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables."""


NOTHING = Given()


@contextmanager
def launched(
    injection: Injection, logs: Path, *servers: Server, first: Path | None = None, given: Given = NOTHING
) -> Iterator[list[Engine]]:
    """Start engines at the same time; wait for none of them.

    Args:
        injection: what they get.
        logs: an existing folder.
        servers: what they are.
        first: a folder ahead of all others on `PYTHONPATH`.
        given: what each of them gets beside that.
    """
    engines = [_engine(server, injection, logs, first, given) for server in servers]
    try:
        for engine in engines:
            engine.start()
        yield engines
    finally:
        for engine in engines:
            engine.stop()


@contextmanager
def started(
    injection: Injection, logs: Path, *servers: Server, first: Path | None = None, given: Given = NOTHING
) -> Iterator[list[Engine]]:
    """Start engines at the same time and wait until all of them have started; their doors are closed."""
    with launched(injection, logs, *servers, first=first, given=given) as engines:
        names = ", ".join(server.name for server in servers)
        with progress.step(f"starting SGLang behind the door: {names}", f"about {10 + 10 * len(servers)} s"):
            for engine in engines:
                engine.wait_until_started()
        yield engines


def question(prompt_tokens: int, pair: tuple[str, int] | None = None, **fields: Any) -> dict[str, Any]:
    """Return a completion request whose prompt has so many tokens: one each character and one to begin with."""
    body: dict[str, Any] = {
        "model": SERVED_NAME,
        "prompt": "x" * (prompt_tokens - 1),
        "max_tokens": 4,
        "temperature": 0,
    }
    if pair is not None:
        room = random.randrange(2**63)  # noqa: S311 - not a secret
        body |= {"bootstrap_host": pair[0], "bootstrap_port": pair[1], "bootstrap_room": room}
    return body | fields


def _engine(server: Server, injection: Injection, logs: Path, first: Path | None, given: Given) -> Engine:
    http_port, bootstrap, rendezvous, control = processes.free_ports(4)
    ports = Ports(http_port, bootstrap, rendezvous)
    command = launch(server, processes.place_of(server), ports)
    python, _, module, *arguments = command.argv
    assert module == "sglang.launch_server"
    own = ["--pool", POOL, "--pod", server.name, "--keys", str(injection.keys)]
    termination_log = logs / f"{server.name}.termination"
    own += ["--listen", HOST, "--port", str(control), "--termination-log", str(termination_log), *given.launcher]
    # The launcher says that there is no warm-up; the stage's own flag would hide it if it did not.
    of_sglang = [argument for argument in arguments if argument != "--skip-server-warmup"]
    program, path = [str(injection.packages / "kvfence_engine")], [command.env["PYTHONPATH"]]
    if first:  # the program would put itself ahead of that
        program, path = ["-m", "kvfence_engine.launcher"], [str(first), str(injection.packages), *path]
    return Engine(
        server=server,
        injection=injection,
        ports=ports,
        control=control,
        log=logs / f"{server.name}.log",
        termination_log=termination_log,
        argv=(python, *program, *own, "--", *of_sglang),
        env=processes.inherited() | command.env | {"PYTHONPATH": ":".join(path)} | dict(given.settings),
    )
