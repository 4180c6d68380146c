/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See child.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "placed/child.h"
#include "util/clock.h"
#include "util/text.h"

#define MAX_OUTPUT	(64u << 20)

extern char **environ;

struct output {
	int fd;
	char *text;			/* with room for a NUL */
	size_t len, size, most;		/* what is beyond `most` is thrown away, or too much */
};

/* 1: there may be more; 0: it has ended. */
static int take(struct output *o)
{
	ssize_t n;
	char *more;

	if (o->len + 4096 > o->size) {
		more = realloc(o->text, o->size + 65536 + o->size / 2);
		if (!more)
			return -ENOMEM;
		o->text = more;
		o->size += 65536 + o->size / 2;
	}
	n = read(o->fd, o->text + o->len, o->size - o->len - 1);
	if (n < 0)
		return errno == EINTR ? 1 : -errno;
	o->len += n;
	o->text[o->len] = '\0';
	return n == 0 ? 0 : o->len > o->most ? -EFBIG : 1;
}

/* Until both have ended. */
static int take_all(struct output *out, struct output *errors, uint64_t until)
{
	struct pollfd fds[2] = { { .fd = out->fd, .events = POLLIN },
				 { .fd = errors->fd, .events = POLLIN } };
	int rc = 1;

	while (rc >= 0 && (fds[0].fd >= 0 || fds[1].fd >= 0)) {
		const uint64_t now = ebb_clock_mono_usec();

		if (now >= until)
			return -ETIMEDOUT;
		if (poll(fds, 2, (int)((until - now) / 1000 + 1)) < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; rc >= 0 && i < 2; i++) {
			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			rc = take(i == 0 ? out : errors);
			if (rc == 0)
				fds[i].fd = -1;
		}
	}
	return rc < 0 ? rc : 0;
}

static int start(const char *const *argv, const int out[2], const int errors[2], pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, defaults;
	int rc;

	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	sigaddset(&defaults, SIGHUP);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
				 POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	rc = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&files, out[1], 1);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&files, errors[1], 2);
	if (rc == 0)
		rc = posix_spawnp(ret_pid, argv[0], &files, &attr, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return -rc;
}

/* Its process group, too: whatever it started must not hold the pipes. */
static int end(pid_t pid, bool is_killed)
{
	int status;

	if (is_killed)
		kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid;
}

static void first_line(char *text)
{
	text[strcspn(text, "\n")] = '\0';
	ebb_text_clean(text);
}

static int run(const char *const *argv, const int out[2], const int errors[2], unsigned limit_ms,
	       struct output *o, struct output *e)
{
	const uint64_t until = ebb_clock_mono_usec() + limit_ms * 1000ull;
	pid_t pid;
	int rc = start(argv, out, errors, &pid), status;

	close(out[1]);
	close(errors[1]);
	if (rc < 0)
		return rc;
	rc = take_all(o, e, until);
	/* One that closes its output may run on. */
	while (rc == 0 && !has_ended(pid)) {
		if (ebb_clock_mono_usec() >= until)
			rc = -ETIMEDOUT;
		usleep(1000);
	}
	status = end(pid, rc < 0);
	return rc < 0 ? rc : status;
}

int placed_child_run(const char *const *argv, unsigned limit_ms, char **ret_output,
		     struct ebb_err *err)
{
	struct output o = { .most = MAX_OUTPUT }, e = { .most = MAX_OUTPUT };
	int out[2], errors[2], rc;

	if (pipe2(out, O_CLOEXEC) < 0)
		return ebb_err_set(err, -errno, "%s: %s", argv[0], strerror(errno));
	if (pipe2(errors, O_CLOEXEC) < 0) {
		rc = -errno;
		close(out[0]);
		close(out[1]);
		return ebb_err_set(err, rc, "%s: %s", argv[0], strerror(-rc));
	}
	o.fd = out[0];
	e.fd = errors[0];
	rc = run(argv, out, errors, limit_ms, &o, &e);
	close(out[0]);
	close(errors[0]);
	if (rc < 0) {
		free(o.text);
		ebb_err_set(err, rc, "%s: %s", argv[0], rc == -ETIMEDOUT ? "no end in time" :
			    strerror(-rc));
	} else {
		if (rc > 0 && e.text)
			first_line(e.text);
		if (rc > 0)
			ebb_err_set(err, rc, "%s: status %d: %.300s", argv[0], rc,
				    e.text && *e.text ? e.text : "no word");
		*ret_output = o.text ? o.text : strdup("");
	}
	free(e.text);
	return rc;
}
