/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The storage daemon as a child process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util/clock.h"
#include "util/log.h"
#include "volumed/storage.h"

#define MAX_LINE	1024
/* As Linux has it: 3/4 of the stack that programs have by default, if RLIMIT_STACK is higher. */
#define MAX_ARGUMENTS	(6u << 20)
/* Of that for all arguments but those that make volumes, and for a stack to begin with. */
#define OTHER_ARGUMENTS	65536u
#define RESTART_USEC	100000	/* after the second death in a row; doubles with each */
#define SLOW_USEC	5000000	/* one that has not come up for so long may hang */
/* Descriptors that the child inherits, by fixed numbers. */
enum { CHILD_QMP_FD = 3, CHILD_NBD_FD = 4, CHILD_LOCK_FD = 5 };

struct ebb_storage {
	sd_event *event;
	struct ebb_storage_config cfg;
	pid_t pid;
	uint64_t started_at;
	unsigned int deaths;		/* young ones, in a row */
	unsigned int attempt;
	bool is_up, is_stopping;
	struct ebb_qmp *qmp;
	sd_event_source *child, *output, *timer;
	int output_fd;
	char line[MAX_LINE];		/* of what it says, not complete yet */
	size_t line_len;
};

static int start(struct ebb_storage *s);

/* ---- what it says ---- */

static void log_line(struct ebb_storage *s)
{
	const char *program = strrchr(s->cfg.program, '/') + 1, *text = s->line;
	const size_t len = strlen(program);

	s->line[s->line_len] = '\0';
	s->line_len = 0;
	/* It begins with its name, which the reader knows. */
	if (strncmp(text, program, len) == 0 && strncmp(text + len, ": ", 2) == 0)
		text += len + 2;
	if (*text)
		ebb_log(LOG_WARNING, "storage_daemon_says", EBB_KS("text", text));
}

/* 1: something was read; 0: there is nothing just now; negative: there will be no more. */
static int read_output(struct ebb_storage *s)
{
	char buf[4096];
	ssize_t n = read(s->output_fd, buf, sizeof(buf));

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
	for (ssize_t i = 0; i < n; i++) {
		if (buf[i] != '\n')
			s->line[s->line_len++] = buf[i];
		if (buf[i] == '\n' || s->line_len == sizeof(s->line) - 1)
			log_line(s);
	}
	return 1;
}

static int on_output(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	(void)fd;
	(void)revents;
	if (read_output(arg) < 0)
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return 0;
}

/* ---- its end ---- */

static void close_all(struct ebb_storage *s)
{
	ebb_qmp_destroy(s->qmp);
	s->qmp = NULL;
	s->child = sd_event_source_disable_unref(s->child);
	s->output = sd_event_source_disable_unref(s->output);
	s->timer = sd_event_source_disable_unref(s->timer);
	if (s->output_fd >= 0)
		close(s->output_fd);
	s->output_fd = -1;
}

static int on_restart(sd_event_source *source, uint64_t usec, void *arg)
{
	struct ebb_storage *s = arg;

	(void)source;
	(void)usec;
	if (start(s) < 0)
		s->cfg.ended(s->cfg.ctx, true);
	return 0;
}

static void restart(struct ebb_storage *s)
{
	uint64_t wait = s->deaths < 2 ? 0 : RESTART_USEC << (s->deaths - 2);

	s->timer = sd_event_source_disable_unref(s->timer);
	if (sd_event_add_time_relative(s->event, &s->timer, CLOCK_MONOTONIC, wait, 1000,
				       on_restart, s) < 0)
		s->cfg.ended(s->cfg.ctx, true);
}

static void describe_end(const siginfo_t *si, char *text, size_t size)
{
	if (si->si_code == CLD_EXITED)
		snprintf(text, size, "exit status %d", si->si_status);
	else
		snprintf(text, size, "signal %d (%s)", si->si_status, strsignal(si->si_status));
}

static int on_child(sd_event_source *source, const siginfo_t *si, void *arg)
{
	struct ebb_storage *s = arg;
	const uint64_t age = ebb_clock_mono_usec() - s->started_at;
	const bool was_up = s->is_up;
	char how[80];

	(void)source;
	while (s->output_fd >= 0 && read_output(s) > 0)
		;
	describe_end(si, how, sizeof(how));
	s->pid = 0;
	s->is_up = false;
	/* First, so that a caller that gets no answer finds that the daemon is gone. */
	if (was_up)
		s->cfg.down(s->cfg.ctx);
	close_all(s);
	if (s->is_stopping) {
		ebb_log(LOG_NOTICE, "storage_daemon_stopped", EBB_KS("how", how));
		s->cfg.ended(s->cfg.ctx, false);
		return 0;
	}
	s->deaths = age < EBB_STORAGE_YOUNG_USEC ? s->deaths + 1 : 1;
	ebb_log(LOG_ERR, "storage_daemon_died", EBB_KS("how", how), EBB_KMS("age_ms", age),
		EBB_KI("in_a_row", s->deaths));
	if (s->deaths >= EBB_STORAGE_MAX_DEATHS) {
		ebb_log(LOG_CRIT, "storage_daemon_given_up",
			EBB_KS("program", s->cfg.program), EBB_KI("deaths", s->deaths),
			EBB_KS("error", "it dies whenever it is started; see what it said"));
		s->cfg.ended(s->cfg.ctx, true);
	} else {
		restart(s);
	}
	return 0;
}

static int on_kill(sd_event_source *source, uint64_t usec, void *arg)
{
	struct ebb_storage *s = arg;

	(void)source;
	(void)usec;
	ebb_log(LOG_ERR, "storage_daemon_killed",
		EBB_KS("error", "it did not end in order when it was told to"));
	kill(s->pid, SIGKILL);
	return 0;
}

void ebb_storage_stop(struct ebb_storage *s)
{
	if (s->is_stopping)
		return;
	s->is_stopping = true;
	s->timer = sd_event_source_disable_unref(s->timer);
	if (!s->pid) {
		s->cfg.ended(s->cfg.ctx, false);
		return;
	}
	kill(s->pid, SIGTERM);
	if (sd_event_add_time_relative(s->event, &s->timer, CLOCK_MONOTONIC, EBB_STORAGE_END_USEC,
				       1000, on_kill, s) < 0)
		kill(s->pid, SIGKILL);
}

/* ---- its start ---- */

static void on_ready(void *ctx, const json_t *result, const char *error)
{
	struct ebb_storage *s = ctx;

	(void)error;
	if (!result)
		return;
	s->is_up = true;
	s->attempt = 0;
	s->timer = sd_event_source_disable_unref(s->timer);
	s->cfg.up(s->cfg.ctx, s->qmp);
}

static void on_event(void *ctx, const char *name, const json_t *data)
{
	struct ebb_storage *s = ctx;

	s->cfg.event(s->cfg.ctx, name, data);
}

/* In the child.  Copies first, to numbers above those that they get. */
static bool place_fds(const int *fds, size_t num)
{
	int copies[8];

	for (size_t i = 0; i < num; i++) {
		copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64);
		if (copies[i] < 0)
			return false;
	}
	for (size_t i = 0; i < num; i++)
		if (dup2(copies[i], CHILD_QMP_FD + i) < 0)
			return false;
	return true;
}

static void run_child(const struct ebb_storage *s, char **argv, int qmp_fd, int output_fd,
		      pid_t parent)
{
	const int fds[] = { qmp_fd, s->cfg.nbd_fd, s->cfg.lock_fd };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	/*
	 * Without its supervisor nobody sets promises: it ends in order, and clients wait for the
	 * next one.  The parent may have ended before this call.
	 */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	if (dup2(output_fd, STDOUT_FILENO) < 0 || dup2(output_fd, STDERR_FILENO) < 0 ||
	    !place_fds(fds, sizeof(fds) / sizeof(fds[0])))
		_exit(1);
	execv(argv[0], argv);
	fprintf(stderr, "%s can not be run: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/*
 * Without it nothing can be told to the daemon: another one is needed.  One that ends in order
 * closes it, too, and is let end.
 */
static void on_lost(void *ctx)
{
	struct ebb_storage *s = ctx;

	if (s->pid)
		kill(s->pid, SIGTERM);
}

size_t ebb_storage_cost(const char *argument)
{
	return strlen(argument) + 1 + sizeof(char *);
}

/* Bytes of arguments that execve() takes besides the environment; see execve(2). */
static size_t argument_space(void)
{
	const long limit = sysconf(_SC_ARG_MAX);
	size_t used = OTHER_ARGUMENTS, space;

	for (char **e = environ; *e; e++)
		used += ebb_storage_cost(*e);
	space = limit > 0 && limit < (long)MAX_ARGUMENTS ? (size_t)limit : MAX_ARGUMENTS;
	return space > used ? space - used : 0;
}

static char **make_argv(struct ebb_storage *s)
{
	char **volumes = s->cfg.arguments(s->cfg.ctx, s->attempt, argument_space()), **argv = NULL;
	char nbd[120], chardev[80];
	const char *first[] = {
		s->cfg.program, "--chardev", chardev, "--monitor", "chardev=qmp,mode=control",
		"--object", "iothread,id=io", "--nbd-server", nbd,
	};
	const size_t num_first = sizeof(first) / sizeof(first[0]);
	size_t num = 0;

	snprintf(chardev, sizeof(chardev), "socket,id=qmp,fd=%d", CHILD_QMP_FD);
	snprintf(nbd, sizeof(nbd), "addr.type=fd,addr.str=%d,max-connections=%u", CHILD_NBD_FD,
		 s->cfg.max_connections);
	while (volumes && volumes[num])
		num++;
	argv = volumes ? calloc(num_first + num + 1, sizeof(*argv)) : NULL;
	for (size_t i = 0; argv && i < num_first; i++)
		argv[i] = strdup(first[i]);
	for (size_t i = 0; i < num; i++) {
		if (argv)
			argv[num_first + i] = volumes[i];
		else
			free(volumes[i]);
	}
	free(volumes);
	return argv;
}

static int spawn(struct ebb_storage *s, int *ret_qmp_fd)
{
	int qmp[2] = { -1, -1 }, output[2] = { -1, -1 }, rc = 0;
	char **argv = make_argv(s);
	const pid_t parent = getpid();
	pid_t pid = -1;

	if (!argv)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, qmp) < 0 ||
	    pipe2(output, O_CLOEXEC) < 0 || fcntl(output[0], F_SETFL, O_NONBLOCK) < 0)
		rc = -errno;
	if (rc == 0)
		pid = fork();
	if (pid == 0)
		run_child(s, argv, qmp[1], output[1], parent);
	if (rc == 0 && pid < 0)
		rc = -errno;
	for (size_t i = 0; argv[i]; i++)
		free(argv[i]);
	free(argv);
	if (output[1] >= 0)
		close(output[1]);
	if (qmp[1] >= 0)
		close(qmp[1]);
	if (rc < 0) {
		if (output[0] >= 0)
			close(output[0]);
		if (qmp[0] >= 0)
			close(qmp[0]);
		return rc;
	}
	s->pid = pid;
	s->output_fd = output[0];
	*ret_qmp_fd = qmp[0];
	return 0;
}

/* Killing it would not help: the next one opens the same files. */
static int on_slow(sd_event_source *source, uint64_t usec, void *arg)
{
	struct ebb_storage *s = arg;

	ebb_log(LOG_WARNING, "storage_daemon_slow", EBB_KI("pid", s->pid),
		EBB_KMS("age_ms", ebb_clock_mono_usec() - s->started_at),
		EBB_KS("error", "it does not answer; the file of a volume may hang"));
	sd_event_source_set_time(source, usec + SLOW_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int start(struct ebb_storage *s)
{
	struct ebb_qmp_config cfg = {
		.fd = -1, .event = on_event, .lost = on_lost, .ctx = s,
	};
	int rc = spawn(s, &cfg.fd);

	if (rc < 0)
		goto out;
	s->started_at = ebb_clock_mono_usec();
	s->attempt++;
	rc = sd_event_add_child(s->event, &s->child, s->pid, WEXITED, on_child, s);
	if (rc >= 0)
		rc = sd_event_add_io(s->event, &s->output, s->output_fd, EPOLLIN, on_output, s);
	s->timer = sd_event_source_disable_unref(s->timer);
	if (rc >= 0)
		rc = sd_event_add_time_relative(s->event, &s->timer, CLOCK_MONOTONIC, SLOW_USEC, 0,
						on_slow, s);
	if (rc < 0) {
		close(cfg.fd);
		goto out;
	}
	rc = ebb_qmp_create(s->event, &cfg, &s->qmp);
	if (rc < 0)
		goto out;
	/* Answered when the daemon has done all that its command line says. */
	ebb_qmp_send(s->qmp, "qmp_capabilities", NULL, on_ready, s);
	ebb_log(LOG_INFO, "storage_daemon_started", EBB_KI("pid", s->pid));
out:
	if (rc < 0)
		ebb_log(LOG_ERR, "storage_daemon_start", EBB_KS("error", strerror(-rc)));
	return rc < 0 ? rc : 0;
}

int ebb_storage_create(sd_event *event, const struct ebb_storage_config *cfg,
		       struct ebb_storage **ret)
{
	struct ebb_storage *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->event = sd_event_ref(event);
	s->cfg = *cfg;
	s->output_fd = -1;
	rc = start(s);
	if (rc < 0) {
		ebb_storage_destroy(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void ebb_storage_destroy(struct ebb_storage *s)
{
	if (!s)
		return;
	close_all(s);
	if (s->pid) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	sd_event_unref(s->event);
	free(s);
}

pid_t ebb_storage_pid(const struct ebb_storage *s)
{
	return s->pid;
}
