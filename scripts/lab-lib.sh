# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The parts of scripts/lab. Sourced after lib.sh.
#
# Life of a lab: `start` leaves a supervisor (outside the namespace) that starts an inner shell
# (inside it) and waits for the owner to die or for `stop`. A process belongs to the lab if it
# sees the lab's own marker file under /run/libvirt: that holds for daemons, QEMUs and their
# helpers, however they were forked, and can hold for nothing else.

LAB_LIBVIRT_FOLDERS='run:/run/libvirt etc:/etc/libvirt lib:/var/lib/libvirt
	log:/var/log/libvirt cache:/var/cache/libvirt'
# What using namespaces makes on the machine besides.
LAB_SIDE_FOLDERS=/run/mount
LAB_REGISTRY=/run/ebb-labs

lab_init() { # $1 folder
	mkdir -p "$1" || die "cannot make the lab folder $1"
	LAB=$(cd "$1" && pwd -P)
	LAB_ID=$(hash_text "$LAB" | cut -c1-6)
	LAB_PREFIX=ebb$LAB_ID-
	LAB_URI="qemu+unix:///system?socket=$LAB/libvirt-sock"
	# A unix socket's path has at most 107 bytes, and libvirt's longest is about 30 in here.
	[ ${#LAB} -le 75 ] || die "the path of the lab is too long for unix sockets: $LAB"
}

lab_env() {
	printf 'export EBB_LAB_DIR=%q EBB_LAB_PREFIX=%q LIBVIRT_DEFAULT_URI=%q\n' \
		"$LAB" "$LAB_PREFIX" "$LAB_URI"
}

lab_virsh() { virsh -q -c "$LAB_URI" "$@"; }

lab_start_time() { # $1 pid: its start time, in clock ticks since boot; nothing if it is dead
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
	# The name, in parentheses, may hold blanks; state and start time come 1st and 20th after.
	stat=${stat##*) }
	[ "${stat%% *}" != Z ] || return 1
	cut -d' ' -f20 <<<"$stat"
}

# The supervisor as recorded: "pid start-time".
lab_supervisor() {
	local pid start
	read -r pid start 2>/dev/null <"$LAB/supervisor" || return 1
	[ "$(lab_start_time "$pid")" = "$start" ] && echo "$pid"
}

lab_is_up() {
	lab_supervisor >/dev/null && [ -S "$LAB/libvirt-sock" ]
}

lab_members() {
	local proc
	for proc in /proc/[0-9]*; do
		[ "$(cat "$proc/root/run/libvirt/.ebb-lab" 2>/dev/null)" = "$LAB" ] || continue
		echo "${proc#/proc/}"
	done
}

# ---- what labs share on the machine: folders and cgroups that are there only for labs ----

lab_cgroup_roots() {
	awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts
}

# Until descriptor 7 is closed. The folder above is locked: the last lab removes the registry, and a
# lock in it would be held by one lab on a file that is gone, and by the next one on a new file.
lab_lock_registry() {
	exec 7<"${LAB_REGISTRY%/*}"
	flock 7
}

lab_register() {
	local item path root
	lab_lock_registry
	mkdir -p "$LAB_REGISTRY"
	for item in $LAB_LIBVIRT_FOLDERS $LAB_SIDE_FOLDERS; do
		path=${item#*:}
		[ -d "$path" ] || { mkdir -p "$path" && echo "$path" >>"$LAB_REGISTRY/made"; }
	done
	if ! compgen -G "$LAB_REGISTRY/lab-*" >/dev/null; then
		for root in $(lab_cgroup_roots); do
			[ -d "$root/machine" ] || echo "$root/machine" >>"$LAB_REGISTRY/made"
		done
	fi
	echo "$LAB" >"$LAB_REGISTRY/lab-$LAB_ID"
	exec 7>&-
}

lab_unregister() {
	local path
	[ -e "$LAB_REGISTRY/lab-$LAB_ID" ] || return 0
	lab_lock_registry
	rm -f "$LAB_REGISTRY/lab-$LAB_ID"
	if ! compgen -G "$LAB_REGISTRY/lab-*" >/dev/null; then
		# The last lab: what none had before the first one goes, if it is empty.
		while read -r path; do
			rmdir "$path" 2>/dev/null || true
		done < <(cat "$LAB_REGISTRY/made" 2>/dev/null)
		rm -rf "$LAB_REGISTRY"
	fi
	exec 7>&-
}

lab_remove_cgroups() {
	local root try left path
	for try in 1 2 3 4 5 6 7 8 9 10; do
		left=
		for root in $(lab_cgroup_roots); do
			while read -r path; do
				rmdir "$path" 2>/dev/null || left=$path
			done < <(find "$root" -depth -type d \( \
				-path "$root/machine*/*qemu-*-$LAB_PREFIX*" -o \
				-path "$root/ebb-emu-$LAB_PREFIX*" \) 2>/dev/null)
		done
		[ -n "$left" ] || return 0
		# The kernel frees a cgroup a little after its last process has gone.
		sleep "0.$try"
	done
	say "cannot remove the cgroup $left, ignoring"
}

# ---- the network ----

# The namespace and all in it go with the lab's last process, so there is nothing to take down.
lab_make_network() { # $1 address/bits
	ip link set lo up
	ip link add ebb0 type bridge
	ip address add "$1" dev ebb0
	ip link set ebb0 up
}

# Replaces the shell, so that a signal to it is one to the command.
lab_net() {
	local pid
	pid=$(cat "$LAB/run/libvirtd.pid" 2>/dev/null) || die "no lab runs in $LAB"
	exec nsenter --net="/proc/$pid/ns/net" -- "$@"
}

# ---- inside the namespace ----

lab_write_config() {
	cat >"$LAB/etc/libvirtd.conf" <<-EOF
	unix_sock_rw_perms = "0700"
	auth_unix_ro = "none"
	auth_unix_rw = "none"
	log_outputs = "2:file:/var/log/libvirt/libvirtd.log"
	host_uuid = "$(cat /proc/sys/kernel/random/uuid)"
	max_workers = 40
	prio_workers = 10
	EOF
	# QEMU runs as root and without its own namespace: it must see the sockets of the host
	# agent, and it counts as a member of the lab only while it sees the lab's folders.
	cat >"$LAB/etc/qemu.conf" <<-EOF
	security_driver = "none"
	user = "root"
	group = "root"
	dynamic_ownership = 0
	remember_owner = 0
	namespaces = []
	max_core = 0
	EOF
	# With cgroup v2 a thread can be in one group only: that of its emulated core.
	case ${EBB_LAB_CGROUPS:-auto}-$(stat -fc %T /sys/fs/cgroup) in
	none-* | auto-cgroup2fs) echo 'cgroup_controllers = [ ]' >>"$LAB/etc/qemu.conf" ;;
	esac
	cat >"$LAB/etc/virtlogd.conf" <<-EOF
	log_outputs = "3:file:/var/log/libvirt/virtlogd.log"
	max_size = 16777216
	EOF
}

# Only the QEMU driver is wanted; the others would look at networks, storage and devices.
lab_driver_folder() {
	local path
	for path in /usr/lib/*/libvirt/connection-driver /usr/lib*/libvirt/connection-driver; do
		[ ! -e "$path/libvirt_driver_qemu.so" ] || { echo "$path"; return; }
	done
	die "libvirt's QEMU driver is not installed (make bootstrap)"
}

# libvirt does not start without the user that its service package would make, though no QEMU of
# a lab runs as that user.
lab_bind_users() {
	local name file
	name=libvirt-qemu
	for file in passwd group; do
		! getent "$file" "$name" >/dev/null || continue
		cp "/etc/$file" "$LAB/etc/$file"
		case $file in
		passwd) echo "$name:x:65533:65533::/nonexistent:/usr/sbin/nologin" ;;
		group) echo "$name:x:65533:" ;;
		esac >>"$LAB/etc/$file"
		mount --bind "$LAB/etc/$file" "/etc/$file"
	done
}

lab_inside() {
	local item drivers
	[ -z "${EBB_LAB_NETWORK:-}" ] || lab_make_network "$EBB_LAB_NETWORK"
	lab_write_config
	lab_bind_users
	for item in $LAB_LIBVIRT_FOLDERS; do
		mount --bind "$LAB/${item%%:*}" "${item#*:}"
	done
	drivers=$(lab_driver_folder)
	mkdir -p "$LAB/drivers"
	cp "$drivers/libvirt_driver_qemu.so" "$LAB/drivers/"
	mount --bind "$LAB/drivers" "$drivers"
	cd /
	/usr/sbin/virtlogd --pid-file /run/libvirt/virtlogd.pid </dev/null &
	exec /usr/sbin/libvirtd --pid-file /run/libvirt/libvirtd.pid </dev/null
}

# ---- start and stop ----

lab_require() {
	[ "$(id -u)" -eq 0 ] || die "a lab needs root: its libvirt puts each vCPU into a cgroup"
	[ -x /usr/sbin/libvirtd ] || die "libvirtd is not installed (make bootstrap)"
}

lab_lock() {
	exec 6>"$LAB/.lock"
	flock -w 60 6 || die "another start or stop of $LAB does not end"
}

lab_start() { # $1 owner's pid, or 0
	local item
	lab_require
	lab_lock
	if lab_is_up && lab_virsh connect >/dev/null 2>&1; then
		exec 6>&-
		return 0
	fi
	lab_clean
	for item in $LAB_LIBVIRT_FOLDERS; do
		mkdir -p "$LAB/${item%%:*}"
	done
	# libvirt asks each QEMU binary what it can, which takes seconds, and checks by itself
	# whether an old answer still holds.
	[ ! -d "$BUILD/lab-cache" ] || cp -a "$BUILD/lab-cache/." "$LAB/cache/"
	echo "$LAB" >"$LAB/run/.ebb-lab"
	ln -sfn run/libvirt-sock "$LAB/libvirt-sock"
	lab_register
	setsid "$TOP/scripts/lab" -d "$LAB" --supervise "$1" </dev/null \
		>"$LAB/log/supervisor.log" 2>&1 6>&- 7>&- 8>&- 9>&- &
	for _ in $(seq 600); do
		sleep 0.1
		if [ -S "$LAB/run/libvirt-sock" ] && lab_virsh connect >/dev/null 2>&1; then
			exec 6>&-
			return 0
		fi
		[ ! -e "$LAB/ended" ] || break
	done
	tail -n 20 "$LAB"/log/*.log >&2 || true
	lab_clean
	die "libvirtd did not start in $LAB"
}

lab_supervise() { # $1 owner's pid, or 0
	local inner owner_start='' network=''
	echo "$$ $(lab_start_time $$)" >"$LAB/supervisor"
	[ "$1" = 0 ] || owner_start=$(lab_start_time "$1") || true
	trap 'exit 0' TERM INT HUP
	[ -z "${EBB_LAB_NETWORK:-}" ] || network=--net
	# shellcheck disable=SC2086 # none or one
	unshare -m $network --propagation private "$TOP/scripts/lab" -d "$LAB" --inside &
	inner=$!
	while kill -0 "$inner" 2>/dev/null; do
		if [ "$1" != 0 ] && [ "$(lab_start_time "$1" || true)" != "$owner_start" ]; then
			say "the owner $1 is gone"
			break
		fi
		sleep 0.5 &
		wait $!
	done
	trap '' TERM INT HUP
	# Not stopped from outside: clean up as `stop` would. Whoever waits in `start` holds the
	# lock and has to hear of it; and a later lab in this folder is none of our business.
	touch "$LAB/ended"
	lab_lock
	[ "$(lab_supervisor)" = $$ ] || exit 0
	lab_clean
}

lab_stop() {
	[ -e "$LAB/.lock" ] || return 0
	[ "$(id -u)" -eq 0 ] || die "stopping a lab needs root, as starting it did"
	lab_lock
	lab_clean
	exec 6>&-
}

lab_kill() { # $1 signal, rest pids
	local signal=$1
	shift
	[ $# -eq 0 ] || kill "-$signal" "$@" 2>/dev/null || true
}

# Removes all that a lab in this folder has on the machine, running or dead. Needs the lock.
lab_clean() {
	local pid name try
	if pid=$(lab_supervisor) && [ "$pid" != $$ ]; then
		kill -TERM "$pid" 2>/dev/null || true
	fi
	if [ -S "$LAB/run/libvirt-sock" ] && [ -n "$(lab_members)" ]; then
		# Asked politely first, libvirt removes its cgroups and files itself.
		for name in $(timeout 5 virsh -q -c "$LAB_URI" list --name 2>/dev/null); do
			timeout 10 virsh -q -c "$LAB_URI" destroy "$name" >/dev/null 2>&1 || true
		done
	fi
	for try in TERM 1 2 3 4 5 6 7 8 9 10 KILL 1 2 3 4 5; do
		mapfile -t pids < <(lab_members)
		[ ${#pids[@]} -gt 0 ] || break
		case $try in
		TERM | KILL) lab_kill "$try" "${pids[@]}" ;;
		*) sleep 0.2 ;;
		esac
	done
	lab_remove_cgroups
	if [ -d "$LAB/cache/qemu" ]; then
		mkdir -p "$BUILD/lab-cache"
		cp -a "$LAB/cache/qemu" "$BUILD/lab-cache/"
	fi
	(cd "$LAB" && rm -rf run libvirt-sock supervisor ended drivers etc lib)
	lab_unregister
}
