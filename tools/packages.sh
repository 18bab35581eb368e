# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Sourced by tools/build and ./test: finds out which Debian packages are missing, and installs
# just those. What is there by other means (another distribution, /usr/local) is left alone.
# And by what makes other Debians: where packages come from.

missing=

need_command() # COMMAND PACKAGE
{
	command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

need_header() # HEADER PACKAGE
{
	printf '#include <%s>\n' "$1" | cc -E - >/dev/null 2>&1 || missing="$missing $2"
}

# Install $missing. Says what it does in one line; details go to the file LOG.
install_missing() # NAME LOG
{
	[ -n "$missing" ] || return 0
	set -- "$1" "$2" "apt-get install -y --no-install-recommends$missing"
	if ! command -v apt-get >/dev/null 2>&1; then
		echo "$1: missing here, by their Debian names:$missing" >&2
		return 1
	fi
	root=
	if [ "$(id -u)" != 0 ]; then
		if ! command -v sudo >/dev/null 2>&1; then
			printf '%s: packages are missing; run this as root, then try again:\n  %s\n' \
				"$1" "$3" >&2
			return 1
		fi
		root=sudo
	fi
	echo "$1: installing$missing" >&2
	# Package lists may be absent (containers) or stale: refresh them once, only then.
	# shellcheck disable=SC2086
	if apt_get "$2" install $missing || { apt_get "$2" update && apt_get "$2" install $missing; }; then
		missing=
		return 0
	fi
	tail -n 15 "$2" >&2
	printf '%s: that did not work; try it by hand:\n  %s\n' "$1" "${root:+$root }$3" >&2
	return 1
}

apt_get() # LOG VERB [PACKAGE...]
{
	log=$1 verb=$2
	shift 2
	[ "$verb" = update ] || set -- -y --no-install-recommends "$@"
	# shellcheck disable=SC2086
	$root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
		"$verb" "$@" >>"$log" 2>&1 </dev/null
}

# Where this machine has its packages from: the first source that apt knows.
package_mirror()
{
	awk '/^URIs:/ { print $2; exit } /^deb / { print $2; exit }' \
		/etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null
}
