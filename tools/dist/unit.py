# SPDX-License-Identifier: Apache-2.0
"""What a package manager runs for the agent's unit, where systemd runs: a removed agent ends, and one that runs is started again of a new file."""

# deb-systemd-invoke, of an essential package, asks the host's policy-rc.d first.
DEB_SCRIPTS = {
    "prerm": """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	deb-systemd-invoke stop pybpf-agent.service || true
fi
""",
    "postinst": """#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	if [ "$1" = configure ] && [ -n "$2" ]; then
		deb-systemd-invoke try-restart pybpf-agent.service || true
	fi
fi
""",
    "postrm": """#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	if [ "$1" = purge ]; then
		systemctl --quiet disable pybpf-agent.service 2>/dev/null || true
		rm -f /etc/systemd/system/*.wants/pybpf-agent.service
	fi
fi
""",
}

# rpm's own Lua: a root may have no shell, as long as it has no systemd. arg[2] counts the versions that are left.
RPM_SCRIPTS = """%post -p <lua>
if posix.access("/run/systemd/system") then
    os.execute("systemctl daemon-reload")
    if tonumber(arg[2]) > 1 then
        os.execute("systemctl try-restart pybpf-agent.service")
    end
end

%preun -p <lua>
if tonumber(arg[2]) == 0 and posix.access("/run/systemd/system") then
    os.execute("systemctl --no-reload disable --now pybpf-agent.service")
end

%postun -p <lua>
if posix.access("/run/systemd/system") then
    os.execute("systemctl daemon-reload")
end
"""
