"""What the stage takes from Debian."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from e2e.cluster.errors import StageError
from e2e.progress import step

# package: a file that it brings
NODE_PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",  # crun does not work on hybrid cgroups v1
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "iptables": "iptables",
    "ipset": "ipset",
    "conntrack": "conntrack",
    "socat": "socat",  # kubectl port-forward
    "busybox-static": "busybox",  # the small image of tests
    "iproute2": "ip",
}
IMAGE_PACKAGES = {
    "mmdebstrap": "mmdebstrap",
    # what Mooncake's library links; without one of them SGLang says "Please install mooncake"
    "libibverbs1": "/usr/lib/x86_64-linux-gnu/libibverbs.so.1",
    "libnuma1": "/usr/lib/x86_64-linux-gnu/libnuma.so.1",
    "libcurl4": "/usr/lib/x86_64-linux-gnu/libcurl.so.4",
}


def missing(wanted: dict[str, str]) -> list[str]:
    """Names of the packages whose file is not on this machine."""
    return [name for name, brings in wanted.items() if not (shutil.which(brings) or Path(brings).exists())]


def install(wanted: dict[str, str]) -> None:
    """Install what is missing.

    Raises:
        StageError: this is not root on a Debian-like machine, or apt failed; the message has the command to run.
    """
    names = missing(wanted)
    if not names:
        return
    command = f"apt-get install --no-install-recommends {' '.join(names)}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise StageError(f"these Debian packages are missing: run, as root, `{command}`")
    with step(f"installing Debian packages: {' '.join(names)}"):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (["update"], ["install", "-y", "--no-install-recommends", *names]):
            ran = subprocess.run(
                ["apt-get", "-q", *arguments], env=environment, capture_output=True, text=True, check=False
            )
            # an unreachable third-party list fails the update but not what is needed here
            if ran.returncode != 0 and arguments[0] == "install":
                raise StageError(f"`{command}` failed:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    still = missing(wanted)
    if still:
        raise StageError(f"apt-get installed {' '.join(still)}, but their files are not where they are on Debian 12")
