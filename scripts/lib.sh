# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Functions that the build scripts share. Sourced, never run.

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # for the scripts that source this file
BUILD=$TOP/build
EBB_PROG=$(basename "$0")

# A hook of git and `git rebase --exec` name the repository of Ebb in these. The scripts work with
# others, too, and their `git init` would change that one.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX GIT_OBJECT_DIRECTORY

say() { printf '%s: %s\n' "$EBB_PROG" "$*" >&2; }
die() { say "$*"; exit 1; }

# One holder at a time per name: two `make` started together must not build over each other.
# The lock is an open file, so it goes away with its holder, however that one ends; programs
# that outlive the script must be started with 8>&-.
hold_lock() { # $1 name
	mkdir -p "$BUILD"
	exec 8>"$BUILD/.lock-$1"
	flock -n 8 || { say "waiting for another $1 build"; flock 8; }
}

# A key of file contents and names; a folder stands for all files in it.
hash_inputs() { # paths, relative to TOP
	(cd "$TOP" && for p in "$@"; do
		[ ! -e "$p" ] || find "$p" -type f -print0
	done | sort -z | xargs -0 -r sha256sum) | sha256sum | cut -c1-16
}

hash_text() { printf '%s\n' "$@" | sha256sum | cut -c1-16; }

# Runs a command with its output in a log file; shows the end of the log when it fails.
logged() { # $1 log, rest command
	local log=$1
	shift
	mkdir -p "$(dirname "$log")"
	if ! "$@" >"$log" 2>&1; then
		tail -n 40 "$log" >&2
		die "failed: $* (whole log: $log)"
	fi
}

# make, for a module of a guest kernel: with the tools that the kernel came with, if it did
# (guest-kernel), in a root that sees this tree at its own place.
make_module() { # $1 series, rest: arguments of make
	local tools=$BUILD/guest/$1/tools
	shift
	if [ ! -e "$tools" ]; then
		make "$@"
		return
	fi
	# shellcheck disable=SC2016 # for the shell inside
	unshare --map-root-user --mount sh -eu -c 'tools=$1 top=$2
		shift 2
		mkdir -p "$tools$top"
		mount --bind "$top" "$tools$top"
		mount --rbind /proc "$tools/proc"
		# Of its own, so that no tool that runs as root can remove files of the machine.
		mount -t tmpfs -o mode=755 tmpfs "$tools/dev"
		for file in null zero urandom; do
			: >"$tools/dev/$file"
			mount --bind "/dev/$file" "$tools/dev/$file"
		done
		exec chroot "$tools" /usr/bin/env -i PATH=/usr/bin HOME=/tmp LC_ALL=C \
			DEB_BUILD_ARCH=amd64 "$@"' - "$(realpath "$tools")" "$TOP" make "$@"
}
