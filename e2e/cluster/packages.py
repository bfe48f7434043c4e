"""What the stage takes from Debian."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from e2e.commands import run
from e2e.errors import StageError
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
# what Mooncake's library links; without one of them SGLang says "Please install mooncake"
MOONCAKE_PACKAGES = {
    "libibverbs1": "/usr/lib/x86_64-linux-gnu/libibverbs.so.1",
    "libnuma1": "/usr/lib/x86_64-linux-gnu/libnuma.so.1",
    "libcurl4": "/usr/lib/x86_64-linux-gnu/libcurl.so.4",
}
FRONT_PACKAGES = {"nginx-light": "/usr/sbin/nginx"}  # the front of a router pod, as a process
FRONT_PACKAGES = {"nginx-light": "/usr/sbin/nginx"}  # the router's front, outside of its image
BUILDING_PACKAGES = {"buildah": "buildah"}  # images from their Dockerfiles, without a daemon
IMAGE_PACKAGES = {"mmdebstrap": "mmdebstrap", **MOONCAKE_PACKAGES}


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
        quietly = {"DEBIAN_FRONTEND": "noninteractive"}
        with contextlib.suppress(StageError):  # a third-party list that is not reached matters only if it is needed
            run("apt-get", "-q", "update", settings=quietly)
        run("apt-get", "-q", "install", "-y", "--no-install-recommends", *names, settings=quietly, shown=f"`{command}`")
    still = missing(wanted)
    if still:
        raise StageError(f"apt-get installed {' '.join(still)}, but their files are not where they are on Debian 12")
