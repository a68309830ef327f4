"""Debian's packages: installed without starting or enabling the service that comes with them."""

import os
import shutil
import subprocess
from collections.abc import Sequence

from ackworth.model.errors import Unavailable

# While packages are configured, `policy-rc.d` says no to every start of a service (101: not allowed). One
# that is there already is the administrator's, and stays; so the service is stopped and disabled in any case.
_SCRIPT = """
policy=$1 package=$2 service=$3
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\\nexit 101\\n' > "$policy" && chmod 755 "$policy" || exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get install -q -y --no-install-recommends "$package" ||
    { apt-get update -q && apt-get install -q -y --no-install-recommends "$package"; } || exit 1
service "$service" stop > /dev/null 2>&1
update-rc.d "$service" disable > /dev/null 2>&1
exit 0
"""
_POLICY = "/usr/sbin/policy-rc.d"


def install(package: str, service: str) -> str:
    """Install a package and see that its service neither runs nor starts at boot. Raises Unavailable."""
    if shutil.which("apt-get") is None:
        raise Unavailable(f"there is no apt-get here: install {package} with this system's own tools")
    command = [*_as_root(package), "sh", "-c", _SCRIPT, "sh", _POLICY, package, service]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise Unavailable(f"apt-get install {package} failed: {lines[-1] if lines else done.returncode}")
    return f"installed Debian's {package}; its own service '{service}' is stopped and does not start at boot"


def _as_root(package: str) -> Sequence[str]:
    """What to put before a command so that root runs it."""
    if os.geteuid() == 0:
        return ()
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:
        return (sudo, "-n")
    raise Unavailable(f"installing needs root: run `apt-get install {package}` as root, or allow sudo without password")
