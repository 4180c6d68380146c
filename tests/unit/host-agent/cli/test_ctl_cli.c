/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbd and ebbctl as programs: exit codes, messages, tables, JSON; ebbd in a dry run. */
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "util/clock.h"

static char bin[PATH_MAX], folder[64], out[1 << 17];
static pid_t ebbd;

/* Run a shell command; its output, both streams, is in out.  Returns the exit code. */
static int run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int run(const char *fmt, ...)
{
	char command[PATH_MAX * 3], args[PATH_MAX];
	size_t len = 0, n;
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(args, sizeof(args), fmt, ap);
	va_end(ap);
	snprintf(command, sizeof(command),
		 "EBB_SOCKET=%s/control.sock PATH=%s:$PATH timeout 90 %s 2>&1", folder, bin, args);
	f = popen(command, "r");
	assert_non_null(f);
	while (len < sizeof(out) - 1 && (n = fread(out + len, 1, sizeof(out) - 1 - len, f)) > 0)
		len += n;
	out[len] = '\0';
	return WEXITSTATUS(pclose(f));
}

static void expect(int code, const char *words, const char *args)
{
	int rc = run("%s", args);

	if (rc != code)
		fail_msg("%s: exit code %d, should be %d: %s", args, rc, code, out);
	if (!strstr(out, words))
		fail_msg("%s: \"%s\" is not in: %s", args, words, out);
}

static int start_ebbd(void **state)
{
	uint64_t t0 = ebb_clock_mono_usec();
	char run_dir[128], state_dir[128], program[PATH_MAX + 8];

	(void)state;
	snprintf(run_dir, sizeof(run_dir), "run_dir=%s", folder);
	snprintf(state_dir, sizeof(state_dir), "state_dir=%s", folder);
	snprintf(program, sizeof(program), "%s/ebbd", bin);
	ebbd = fork();
	if (ebbd == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(program, "ebbd", "--dry-run=2", "-o", run_dir, "-o", state_dir, "-o",
		      "host=emulated:2x2x1@0.25", "-o", "log_level=error", NULL);
		_exit(127);
	}
	while (run("ebbctl explain simulated-1") != 0 || strstr(out, "does not run"))
		if (ebb_clock_mono_usec() - t0 > 60000000)
			return -1;
	return 0;
}

static int stop_ebbd(void **state)
{
	int status = 0;

	(void)state;
	kill(ebbd, SIGTERM);
	waitpid(ebbd, &status, 0);
	return status;
}

static void test_tables(void **state)
{
	(void)state;
	expect(0, "emulated:2x2x1@0.25 (dry run, simulated VMs)", "ebbctl host");
	expect(0, "NODE  CORE  CPU  VM", "ebbctl host");
	expect(0, "simulated-1  running", "ebbctl vms");
	expect(0, "VCPU  NODE  STATE", "ebbctl vms simulated-1");
	expect(0, "* fair", "ebbctl policy");
	expect(0, "* isolate", "ebbctl policy isolate");
	expect(0, "* spot", "ebbctl policy spot");
	expect(0, "* strict", "ebbctl policy strict");
	expect(0, "no: nothing new is given", "ebbctl quorum no");
	expect(0, "quorum    no", "ebbctl host");
	expect(0, "yes", "ebbctl quorum yes");
	expect(2, "allowed are yes and no", "ebbctl quorum perhaps");
	expect(0, "holds ", "ebbctl explain simulated-1");
	expect(0, "what its memory is worth", "ebbctl histogram simulated-1");
	expect(0, "TIME ", "ebbctl history simulated-1 --since 1h --limit 5");
	expect(0, "VM  OF  FROM  PROMISE", "ebbctl ledger");
	expect(0, "LAST BROKEN  WHY", "ebbctl ledger simulated-1 --since 1h");
	expect(0, "TIME  VM  OF  PROMISE", "ebbctl ledger --intervals --limit 5");
	expect(0, "backend fake", "ebbctl version");
	expect(0, "spot, priority 900, weight 7, deadline 50 ms, tier park, plug ahead",
	       "ebbctl set simulated-1 weight=7 class=spot deadline-ms=50 priority=900 tier=park "
	       "plug=ahead");
	expect(0, "TPS", "ebbctl top --count 2 --interval 0.05");
}

/* A shell stops ebbctl while it waits for ebbd, and lets it go on: ebbctl prints the answer. */
static void test_stopped(void **state)
{
	char args[256];

	(void)state;
	snprintf(args, sizeof(args), "sh -c 'kill -STOP %d; ebbctl vms & p=$!; sleep 0.3; "
		 "kill -STOP $p; sleep 0.1; kill -CONT $p; sleep 0.1; kill -CONT %d; wait $p'",
		 (int)ebbd, (int)ebbd);
	expect(0, "simulated-1  running", args);
}

static void test_json(void **state)
{
	static const char *const commands[] = {
		"host", "vms", "vms simulated-1", "top --count 1", "policy", "explain simulated-1",
		"histogram simulated-1",
		"history", "ledger", "ledger simulated-1 --intervals", "metrics", "version",
		"set simulated-2 weight=9",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		/* The option may stand on either side of the command. */
		assert_int_equal(run("ebbctl --json %s", commands[i]), 0);
		if (out[0] != '{' || strchr(out, '\n') != out + strlen(out) - 1)
			fail_msg("%s --json: %s", commands[i], out);
		assert_int_equal(run("ebbctl %s --json", commands[i]), 0);
		assert_int_equal(out[0], '{');
	}
	expect(0, "{\"t_s\":", "ebbctl --json top --count 1");
	/* When ebbd looked, for those that read the line later. */
	expect(0, "\"ts\":", "ebbctl --json top --count 1");
	expect(1, "{\"ok\":false,\"error\":{\"code\":\"no-such-vm\"", "ebbctl --json vms nobody");
}

/* Needs no ebbd: the socket that it is told of does not exist. */
static void test_simulate(void **state)
{
	char first[sizeof(out)];

	(void)state;
	expect(0, "simulated host 2x4x1, 8 CPUs to give; 6 made-up VMs of seed 9, 20.0 s",
	       "ebbctl -s /nowhere simulate --topology 2x4x1 --vms 6 --seconds 20 --seed 9 "
	       "--policy fair --policy spot");
	if (!strstr(out, "WHAT") || !strstr(out, "fair reserved  fair spot") ||
	    !strstr(out, "spot missed") || !strstr(out, "\nvm6 "))
		fail_msg("%s", out);
	expect(0, "{\"ok\":true,\"topology\":\"4x18x2\",\"seconds\":5.0",
	       "ebbctl -s /nowhere simulate --topology 4x18x2 --count-threads --seconds 5 --vms 9 "
	       "--policy isolate --json");
	if (!strstr(out, "\"policy\":\"isolate\",\"cpus\":144"))
		fail_msg("%s", out);
	strcpy(first, out);
	expect(0, "{\"ok\":true", "ebbctl -s /nowhere simulate --topology 4x18x2 --count-threads "
	       "--seconds 5 --vms 9 --policy isolate --json");
	assert_string_equal(out, first);
	expect(1, "/nowhere/history.db: unable to open", "ebbctl simulate -H /nowhere/history.db");
	expect(1, "is no history of ebbd", "ebbctl simulate --history /dev/null");
	expect(2, "--policy=generous: allowed: fair, strict, isolate, spot, vom",
	       "ebbctl simulate --policy generous");
	expect(2, "--topology=4x18: write SxCxT with 1 to 16 sockets",
	       "ebbctl simulate --topology 4x18");
	expect(2, "--topology=17x1x1: write", "ebbctl simulate --topology 17x1x1");
	expect(2, "--topology=16x99x1: write", "ebbctl simulate --topology 16x99x1");
	expect(2, "--topology=2x-4x1: write", "ebbctl simulate --topology 2x-4x1");
	expect(2, "--vms=0: allowed: 1 to 1024", "ebbctl simulate --vms 0");
	expect(2, "--seconds=soon: allowed: 1 to 1000000", "ebbctl simulate --seconds soon");
	expect(2, "--spot=101: allowed: 0 to 100", "ebbctl simulate --spot 101");
	expect(2, "--slots=0: allowed: 1 to 1000", "ebbctl simulate --slots 0");
	expect(2, "--seed=x: allowed: 0 to 4294967295", "ebbctl simulate --seed x");
	expect(2, "--history replays others", "ebbctl simulate --history a --vms 2");
	expect(2, "one argument too many: now", "ebbctl simulate now");
	expect(2, "--window=0: allowed: 1 to 300", "ebbctl simulate --shared --window 0");
	expect(2, "--vcpus=65: allowed: 1 to 64", "ebbctl simulate --shared --vcpus 65");
	expect(2, "--promise, --shared, --reserve or", "ebbctl simulate --shared --broker");
	expect(2, "or --place, not several", "ebbctl simulate --shared --reserve");
	expect(2, "--reserve takes no other", "ebbctl simulate --reserve --vms 5");
	expect(2, "at most 3600 seconds", "ebbctl simulate --reserve --seconds 3601");
	expect(0, "swap: 600 and 200 of 1000 per second",
	       "ebbctl -s /nowhere simulate --reserve --seconds 2 --seed 3");
	expect(0, "\"case\":\"penalty\"", "ebbctl simulate --reserve --seconds 1 --json");
	expect(2, "they replay no --history", "ebbctl simulate --broker --history a");
	expect(1, "--promise needs 2 to 17 VMs", "ebbctl simulate --promise --vms 1");
	expect(0, "equal         kept ", "ebbctl simulate --promise --policy equal");
	expect(2, "--idle-half is for --broker", "ebbctl simulate --idle-half 5");
	expect(2, "is for --shared", "ebbctl simulate --demand a");
	expect(1, "/nowhere/traces: No such file",
	       "ebbctl simulate --shared --demand /nowhere/traces");
	expect(1, "as many cores as the largest VM has vCPUs",
	       "ebbctl simulate --shared --topology 1x4x1 --vcpus 4");
	expect(0, "10 VMs of 2, 4 or 8 vCPUs on 2 nodes of 8 shared cores, 45 s; demands made up",
	       "ebbctl -s /nowhere simulate --shared --topology 2x4x2 --vms 10 --vcpus 4 "
	       "--seconds 45");
	if (!strstr(out, "\n   5  rebalanced ") || !strstr(out, "hot core-intervals"))
		fail_msg("%s", out);
	expect(0, "{\"ok\":true,\"vms\":10,\"vcpus\":4,\"nodes\":2,\"cores_per_node\":8,"
	       "\"seconds\":45,\"window_s\":5,\"demand\":\"made up\",\"seeds\":[{\"seed\":3,",
	       "ebbctl simulate --shared --topology 2x4x2 --vms 10 --vcpus 4 --seconds 45 --seed 3 "
	       "--window 5 --json");
}

/* What bash offers for the last of the words; candidates are joined by spaces. */
static void expect_completion(const char *words, int last, const char *candidates)
{
	expect(0, "", "test -r host-agent/completion/ebbctl");
	assert_int_equal(run("bash -c '. host-agent/completion/ebbctl; COMP_WORDS=(%s); "
			     "COMP_CWORD=%d; _ebbctl; echo \"=${COMPREPLY[*]}=\"'",
			     words, last), 0);
	if (strncmp(out + 1, candidates, strlen(candidates)) != 0 ||
	    strcmp(out + 1 + strlen(candidates), "=\n") != 0)
		fail_msg("%s: should offer \"%s\": %s", words, candidates, out);
}

static void test_completion(void **state)
{
	(void)state;
	/* Of ebbctl itself: what it tells in its help. */
	expect_completion("ebbctl \"\"", 1,
			  "host vms top set policy quorum explain histogram metrics history ledger "
			  "simulate relocate volumes place version");
	expect_completion("ebbctl ex", 1, "explain");
	expect_completion("ebbctl --json se", 2, "set");
	expect_completion("ebbctl --so", 1, "--socket");
	expect_completion("ebbctl history --c", 2, "--charge");
	expect_completion("ebbctl simulate --topology 2x2x1 --se", 4, "--seconds --seed --seeds");
	expect_completion("ebbctl nonsense x", 2, "");
	expect_completion("ebbctl volumes s", 2, "set scheduler");
	/* Of the ebbd that runs. */
	expect_completion("ebbctl vms \"\"", 2, "simulated-1 simulated-2");
	expect_completion("ebbctl explain simulated-1 \"\"", 3, "");
	expect_completion("ebbctl history --since 1h s", 4, "simulated-1 simulated-2");
	expect_completion("ebbctl ledger --limit 3 s", 4, "simulated-1 simulated-2");
	expect_completion("ebbctl ledger --int", 2, "--intervals");
	expect_completion("ebbctl policy s", 2, "strict spot");
	expect_completion("ebbctl simulate --policy i", 3, "isolate");
	expect_completion("ebbctl set simulated-1 we", 3, "weight=");
	expect_completion("ebbctl relocate --ca", 2, "--cancel");
	expect_completion("ebbctl -s /nowhere vms \"\"", 4, "");
}

static void test_refused(void **state)
{
	(void)state;
	expect(1, "there is no policy \"generous\"; there are fair, strict",
	       "ebbctl policy generous");
	expect(1, "there is no VM \"nobody\"", "ebbctl explain nobody");
	expect(1, "there is no VM \"nobody\"", "ebbctl histogram nobody");
	expect(1, "there is no VM \"nobody\"", "ebbctl set nobody weight=1");
	expect(1, "there is no VM \"nobody\", and none in the ledger", "ebbctl ledger nobody");
	expect(1, "ebbctl ledger lists those", "ebbctl ledger nobody --intervals --since 1h");
	expect(1, "weight=0: allowed: 1 to 10000", "ebbctl set simulated-1 weight=0");
	expect(1, "another ebbd (process ", "sh -c 'ebbd --dry-run -o run_dir=${EBB_SOCKET%/*}'");
}

/* Output that is lost is an error; a closed standard output does not become the socket to ebbd. */
static void test_output_lost(void **state)
{
	static const char *const commands[] = {
		"host", "vms --json", "history", "metrics", "top --count 3 --interval 0.01",
		"simulate --vms 2 --seconds 2",
	};
	char args[256];

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		snprintf(args, sizeof(args), "sh -c 'ebbctl %s >/dev/full'", commands[i]);
		expect(1, "the output can not be written: No space left on device", args);
		snprintf(args, sizeof(args), "sh -c 'ebbctl %s >&-'", commands[i]);
		expect(1, "the output can not be written: Bad file descriptor", args);
	}
}

static void test_usage(void **state)
{
	(void)state;
	expect(2, "a command is missing", "ebbctl");
	expect(2, "there is no command \"dance\"", "ebbctl dance");
	expect(2, "no-such-option", "ebbctl vms --no-such-option");
	expect(2, "one argument too many: b", "ebbctl vms a b");
	expect(2, "an argument is missing", "ebbctl explain");
	expect(2, "an argument is missing", "ebbctl histogram");
	expect(2, "\"weight\" is not of the form key=value", "ebbctl set simulated-1 weight");
	expect(2, "--interval=0: allowed: 0.01 to 3600", "ebbctl top --interval 0");
	expect(2, "--interval=nan", "ebbctl top --interval nan");
	expect(2, "--count=0", "ebbctl top --count 0");
	expect(2, "--limit=x", "ebbctl history --limit x");
	expect(2, "--since=noon", "ebbctl history --since noon");
	expect(2, "--since=noon", "ebbctl ledger --since noon");
	expect(2, "--limit=0: allowed: 1 to 100000", "ebbctl ledger --intervals --limit 0");
	expect(2, "it needs --intervals", "ebbctl ledger --limit 3");
	expect(2, "one argument too many: b", "ebbctl ledger a b");
	expect(2, "--charge has none", "ebbctl history --charge --limit 3");
	expect(1, "there is no event \"grnt\"; there are join", "ebbctl history --event grnt");
	expect(0, "Exit status: 0 done", "ebbctl --help");
	expect(2, "--dry-run=65: allowed: 1 to 64", "ebbd --dry-run=65");
	expect(2, "allowed: 1 to 64", "ebbd --dry-run=4294967298");
	expect(2, "Too many arguments", "ebbd now");
}

static int listen_odd(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/odd.sock", folder);
	unlink(addr.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* An answer, or none (NULL), to one request; returns the process that gives it. */
static pid_t serve_once(const char *answer)
{
	const int fd = listen_odd();
	char buf[4096];
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		const int client = accept(fd, NULL, NULL);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(client, buf, sizeof(buf)) > 0 && answer &&
		    write(client, answer, strlen(answer)) < 0)
			_exit(1);
		_exit(0);
	}
	close(fd);
	return pid;
}

/* What ebbd says to a client too many: it closes without a look at what the client sends. */
static pid_t turn_away_once(void)
{
	static const char answer[] = "{\"ok\":false,\"error\":{\"code\":\"too-many-clients\","
				     "\"message\":\"all are in use\",\"hint\":\"try again\"}}\n";
	const int fd = listen_odd();
	const pid_t pid = fork();

	if (pid == 0) {
		const int client = accept(fd, NULL, NULL);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(write(client, answer, sizeof(answer) - 1) < 0);
	}
	close(fd);
	return pid;
}

/* A server that is no ebbd, ends, or is too busy. */
static void test_odd_server(void **state)
{
	pid_t pid = serve_once("220 mail at your service\n");

	(void)state;
	expect(3, "the answer is no JSON\n  name the control socket of an ebbd",
	       "sh -c 'ebbctl -s ${EBB_SOCKET%/*}/odd.sock vms'");
	waitpid(pid, NULL, 0);
	pid = serve_once(NULL);
	expect(3, "it has ended; see its log",
	       "sh -c 'ebbctl -s ${EBB_SOCKET%/*}/odd.sock vms'");
	waitpid(pid, NULL, 0);
	/* It may be turned away before or after it has sent its request. */
	for (int i = 0; i < 5; i++) {
		pid = turn_away_once();
		expect(1, "ebbctl: all are in use\n  try again\n",
		       "sh -c 'ebbctl -s ${EBB_SOCKET%/*}/odd.sock vms'");
		waitpid(pid, NULL, 0);
	}
}

static void test_unreachable(void **state)
{
	(void)state;
	expect(3, "ebbd can not be reached at /nonexistent/control.sock",
	       "ebbctl --socket /nonexistent/control.sock vms");
	expect(3, "systemctl start ebbd", "ebbctl -s /nonexistent/control.sock top --json");
	expect(3, "systemctl start ebbd", "ebbctl -s /nonexistent/control.sock ledger");
}

/* An ebbd of its own, whose log says on which port it listens. */
static void test_metrics_over_http(void **state)
{
	(void)state;
	expect(0, "# TYPE ebb_resource_used_ratio gauge\n",
	       "bash -c 'at=${EBB_SOCKET%/*}/http; mkdir -p $at; ebbd --dry-run=1 -o run_dir=$at "
	       "-o host=emulated:1x2x1@0.25 -o metrics_listen=127.0.0.1:0 2>$at/log & while :; do "
	       "kill -0 $! || exit 1; "
	       "port=$(sed -n \"s/.*event=metrics_listen .*port=\\([0-9]*\\)$/\\1/p\" $at/log); "
	       "[ \"$port\" ] && break; sleep 0.1; done; exec 3<>/dev/tcp/127.0.0.1/$port; "
	       "printf \"GET /metrics HTTP/1.0\\r\\n\\r\\n\" >&3; cat <&3; kill $!; wait $!'");
	if (!strstr(out, "HTTP/1.1 200 OK\r\n") && !strstr(out, "HTTP/1.0 200 OK\r\n"))
		fail_msg("%s", out);
	assert_string_equal(strstr(out, "# EOF"), "# EOF\n");
}

/* How many threads of a process there are, and how many of these run with a real-time policy. */
static void count_threads(pid_t pid, int *ret_all, int *ret_realtime)
{
	char path[64];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	assert_non_null(d);
	*ret_all = *ret_realtime = 0;
	while ((e = readdir(d))) {
		const int policy = e->d_name[0] == '.' ? -1 : sched_getscheduler(atoi(e->d_name));

		if (policy < 0)
			continue;
		(*ret_all)++;
		*ret_realtime += (policy & ~SCHED_RESET_ON_FORK) == SCHED_RR;
	}
	closedir(d);
}

/* Only the loop and the thread for what is urgent go before VMs; with libvirt's test driver. */
static void test_priority(void **state)
{
	const uint64_t t0 = ebb_clock_mono_usec();
	const struct sched_param param = { .sched_priority = 1 };
	char run_dir[128], state_dir[128], program[PATH_MAX + 8];
	int all = 0, realtime = 0, status = 0;
	pid_t pid;

	(void)state;
	snprintf(run_dir, sizeof(run_dir), "run_dir=%s/priority", folder);
	snprintf(state_dir, sizeof(state_dir), "state_dir=%s/priority", folder);
	snprintf(program, sizeof(program), "%s/ebbd", bin);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Where that is not permitted ebbd can not do it either. */
		if (sched_setscheduler(0, SCHED_RR, &param) < 0)
			_exit(77);
		sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
		execl(program, "ebbd", "-o", run_dir, "-o", state_dir, "-o", "workers=4", "-o",
		      "libvirt_uri=test:///default", "-o", "log_level=error", NULL);
		_exit(127);
	}
	while (run("ebbctl -s %s/priority/control.sock host", folder) != 0 ||
	       !strstr(out, "libvirt   up")) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
				print_message("needs SCHED_RR: CAP_SYS_NICE, or a limit of "
					      "real-time priorities (ulimit -r) of 1 or more\n");
				skip();
			}
			fail_msg("ebbd has ended: %d", status);
		}
		assert_true(ebb_clock_mono_usec() - t0 < 60000000);
	}
	count_threads(pid, &all, &realtime);
	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
	/* The loop, 4 workers, the urgent one, that of libvirt. */
	assert_true(all >= 7);
	assert_int_equal(realtime, 2);
}

/* What is wrong with the configuration is said, with place and value, and nothing starts. */
static void test_bad_config(void **state)
{
	(void)state;
	expect(1, "unknown key \\\"polcy\\\"", "ebbd -o polcy=fair");
	expect(1, "policy=generous: there is no such policy; there are fair strict",
	       "sh -c 'ebbd --dry-run -o policy=generous -o run_dir=${EBB_SOCKET%/*}/other'");
	expect(1, "is no emulated host",
	       "ebbd --dry-run -o host=emulated:2x2 -o run_dir=/nonexistent");
	expect(1, "is too large",
	       "ebbd --dry-run -o host=emulated:16x256x8@1 -o run_dir=/nonexistent");
	expect(1, "event=host_reserve cpus=0-1 ignored=",
	       "sh -c 'ebbd --dry-run -o host=emulated:2x2x1@1 -o host_reserve=0-1 "
	       "-o policy=generous -o run_dir=${EBB_SOCKET%/*}/other'");
	expect(1, "pool_mib=16777216: node 0 of this host has ",
	       "ebbd -o host=emulated:1x1x1@1 -o pool_mib=16777216 -o run_dir=/nonexistent");
	expect(1, "\\\"here\\\" is no address with a port", "ebbd -o metrics_listen=here");
	expect(1, "/nonexistent/ebbd.conf: No such file", "ebbd -c /nonexistent/ebbd.conf");
	expect(1, "link_group=nogroupofthisname: there is no such group",
	       "sh -c 'ebbd -o link_group=nogroupofthisname -o run_dir=${EBB_SOCKET%/*}/other "
	       "-o state_dir=${EBB_SOCKET%/*}/other'");
}

/* What is there while ebbd runs is gone when it has ended, and the socket answers no more. */
static void test_end(void **state)
{
	char path[128];

	assert_int_equal(start_ebbd(state), 0);
	assert_int_equal(stop_ebbd(state), 0);
	snprintf(path, sizeof(path), "%s/control.sock", folder);
	assert_int_equal(access(path, F_OK), -1);
	expect(3, "can not be reached", "ebbctl vms");
}

static int setup_group(void **state)
{
	char self[PATH_MAX] = "";

	(void)state;
	/* Tests and programs have folders side by side. */
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -1;
	snprintf(bin, sizeof(bin), "%s/../bin", dirname(self));
	strcpy(folder, "/tmp/test_ctl_cli.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown_group(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

#define WITH_EBBD(name)	cmocka_unit_test_setup_teardown(test_##name, start_ebbd, stop_ebbd)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_EBBD(tables), WITH_EBBD(completion), WITH_EBBD(json), WITH_EBBD(refused),
		WITH_EBBD(usage), WITH_EBBD(output_lost), WITH_EBBD(stopped),
		cmocka_unit_test(test_simulate),
		cmocka_unit_test(test_unreachable), cmocka_unit_test(test_odd_server),
		cmocka_unit_test(test_bad_config),
		cmocka_unit_test(test_metrics_over_http), cmocka_unit_test(test_priority),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests_name("ebbd and ebbctl", tests, setup_group, teardown_group);
}
