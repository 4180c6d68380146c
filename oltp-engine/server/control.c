// SPDX-License-Identifier: GPL-2.0-or-later
/* The server's control channel: see control.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "control.h"
#include "oltp-engine/bench/accept.h"
#include "oltp-engine/bench/unix_listen.h"
#include "oltp-engine/src/base/clock.h"
#include "relocation.h"

#define CLIENTS_MAX	4u
#define LINE_MAX_BYTES	1024u
#define REASON_BYTES	512u
#define RATE_MAX	1e9
/* How often it is looked whether the other node has answered, and when that is given up. */
#define LOOK_MS		10u
#define ANSWER_S	12u

struct client {
	struct control *control;
	int fd;			/* -1: free */
	bool has_answers;
	/* Its order, about which the other node is being asked; no line is read meanwhile. */
	uint64_t waits_for;	/* 0: none */
	uint64_t until_ns;	/* it waits no longer */
	size_t used;
	char line[LINE_MAX_BYTES];
};

struct control {
	struct session *session;
	struct relocation *relocation;
	int listen_fd;		/* -1: standard input only */
	int timer_fd;		/* while clients wait for the other node; else -1 */
	char *path;		/* of the socket */
	struct client clients[CLIENTS_MAX];
};

static void client_close(struct client *client)
{
	session_unwatch(client->control->session, client->fd);
	if (client->has_answers)
		close(client->fd);
	client->fd = -1;
}

/* A client that does not read its answers loses them. */
static void answer(const struct client *client, const char *text)
{
	if (client->has_answers && send(client->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return;
}

/* Returns the answer. */
static const char *set_rate(struct session *session, const char *text)
{
	char *end;
	double rate = strtod(text, &end);

	/* Negated: not a number is no rate either. */
	if (end == text || *end || !(rate >= 0 && rate <= RATE_MAX))
		return "error: a rate is 0 to 1e9 transactions per second\n";
	switch (session_set_rate(session, rate)) {
	case 0:
		return "ok\n";
	case -EBUSY:
		return "error: --rate-schedule sets the rate\n";
	default:
		return "error: the rate cannot be set\n";
	}
}

/* Returns the answer. */
static const char *begin_audit(struct session *session)
{
	switch (session_audit(session)) {
	case 0:
		return "ok\n";
	case -EBUSY:
		return "error: one is going on\n";
	case -EOPNOTSUPP:
		return "error: this workload cannot be looked over while it runs\n";
	default:
		return "error: there is no thread for it\n";
	}
}

#define RELOCATE_USAGE \
	"relocate NODE CLIENTS [fast|fixed N|adaptive] [limit-s N] [speed PERCENT], or " \
	"relocate NODE CLIENTS failover [timeout-s N] [max-mib N] [mib-s N]"

/* The rest of a line, cut into words; NULL behind them. Returns their number, or 0: too many. */
static uint32_t cut_words(char *text, char **words, uint32_t room)
{
	char *rest = NULL;
	uint32_t n = 0;

	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (n == room)
			return 0;
		words[n++] = word;
	}
	words[n] = NULL;
	return n;
}

static bool look_for_answers(void *ctx, int fd);

static int start_timer(struct control *control)
{
	const struct timespec every = { .tv_nsec = LOOK_MS * 1000000 };
	const struct itimerspec times = { every, every };
	int rc;

	if (control->timer_fd >= 0)
		return 0;
	control->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (control->timer_fd < 0)
		return -errno;
	rc = timerfd_settime(control->timer_fd, 0, &times, NULL) ? -errno :
	     session_watch(control->session, control->timer_fd, look_for_answers, control);
	if (rc) {
		close(control->timer_fd);
		control->timer_fd = -1;
	}
	return rc;
}

static void stop_timer(struct control *control)
{
	if (control->timer_fd < 0)
		return;
	session_unwatch(control->session, control->timer_fd);
	close(control->timer_fd);
	control->timer_fd = -1;
}

static void wait_for_answer(struct client *client, uint64_t number)
{
	if (start_timer(client->control)) {
		answer(client, "error: it is being asked: see relocate-status\n");
		return;
	}
	session_unwatch(client->control->session, client->fd);
	client->waits_for = number;
	client->until_ns = clock_now_ns() + ANSWER_S * 1000000000ull;
}

static void order(struct client *client, char *const *words, uint32_t n, const char *usage)
{
	struct relocation_order parsed;
	const char *wrong = order_parse(words, n, &parsed);
	char line[LINE_MAX_BYTES];
	uint64_t number;

	if (wrong) {
		snprintf(line, sizeof(line), "error: %s: %s\n", usage, wrong);
		answer(client, line);
		return;
	}
	wrong = relocation_order(client->control->relocation, &parsed, &number);
	if (!wrong && !parsed.cancels) {
		wait_for_answer(client, number);
		return;
	}
	snprintf(line, sizeof(line), wrong ? "error: %s\n" : "ok\n", wrong);
	answer(client, line);
}

/* relocate NODE CLIENTS ...: TO NODE CLIENTS CLIENTS ... */
static void order_move(struct client *client, char *text)
{
	char *words[ORDER_WORDS_MAX + 1] = { "TO", NULL, "CLIENTS" };
	char *said[ORDER_WORDS_MAX] = { NULL };
	uint32_t n = cut_words(text, said, ORDER_WORDS_MAX - 2);

	if (n < 2) {
		answer(client, "error: " RELOCATE_USAGE "\n");
		return;
	}
	words[1] = said[0];
	for (uint32_t i = 1; i < n; i++)
		words[2 + i] = said[i];
	order(client, words, n + 2, RELOCATE_USAGE);
}

/* relocate-cancel ...: CANCEL ... */
static void order_back(struct client *client, char *text)
{
	char *words[ORDER_WORDS_MAX + 1] = { "CANCEL", NULL };
	uint32_t n = cut_words(text, words + 1, ORDER_WORDS_MAX - 1);

	order(client, words, n + 1, "relocate-cancel [to NODE] [clients CLIENTS] [...]");
}

static void take_over(const struct client *client)
{
	const char *why = relocation_take_over(client->control->relocation);
	char line[LINE_MAX_BYTES];

	snprintf(line, sizeof(line), why ? "error: %s\n" : "ok\n", why);
	answer(client, line);
}

static void obey_relocation(struct client *client, char *line)
{
	struct relocation *relocation = client->control->relocation;
	char status[RELOCATION_STATUS_BYTES];

	if (!relocation) {
		answer(client, "error: the server was started without --relocatable\n");
	} else if (!strcmp(line, "relocate-status")) {
		relocation_status(relocation, status);
		answer(client, status);
		answer(client, "\n");
	} else if (!strncmp(line, "relocate-cancel", 15)) {
		order_back(client, line + 15);
	} else if (!strcmp(line, "take-over")) {
		take_over(client);
	} else {
		order_move(client, line + strlen("relocate "));
	}
}

/* One word, or one that others follow. */
static bool begins(const char *line, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(line, word, n) && (!line[n] || line[n] == ' ');
}

static bool obey(struct client *client, char *line)
{
	if (!strcmp(line, "stop")) {
		answer(client, "ok\n");
		return true;
	}
	if (!strcmp(line, "audit")) {
		answer(client, begin_audit(client->control->session));
		return false;
	}
	if (!strncmp(line, "rate ", 5)) {
		answer(client, set_rate(client->control->session, line + 5));
		return false;
	}
	if (!strncmp(line, "relocate ", 9) || begins(line, "relocate-cancel") ||
	    !strcmp(line, "relocate-status") || !strcmp(line, "take-over")) {
		obey_relocation(client, line);
		return false;
	}
	answer(client, "error: unknown command; there are: stop, audit, rate R, relocate, "
	       "relocate-cancel, relocate-status, take-over\n");
	return false;
}

/*
 * Obeys whole lines in the buffer, up to one whose answer is waited for; the rest moves to its
 * start. True: to stop.
 */
static bool take_lines(struct client *client)
{
	char *start = client->line, *end;
	bool stop = false;

	while (!client->waits_for && (end = memchr(start, '\n', client->used))) {
		*end = '\0';
		stop |= obey(client, start);
		client->used -= (size_t)(end + 1 - start);
		start = end + 1;
	}
	memmove(client->line, start, client->used);
	return stop;
}

static bool client_readable(void *ctx, int fd);

/* True: to stop. */
static bool look_for_answer(struct client *client)
{
	char reason[REASON_BYTES], line[LINE_MAX_BYTES];
	struct control *control = client->control;
	bool has_answer = relocation_has_answer(control->relocation, client->waits_for, reason,
						sizeof(reason));

	if (!has_answer && clock_now_ns() < client->until_ns)
		return false;
	if (!has_answer)
		snprintf(reason, sizeof(reason), "no answer yet");
	snprintf(line, sizeof(line), *reason ? "error: %s\n" : "ok\n", reason);
	answer(client, line);
	client->waits_for = 0;
	/* Lines may have come with the order. */
	if (take_lines(client))
		return true;
	if (!client->waits_for &&
	    session_watch(control->session, client->fd, client_readable, client))
		client_close(client);
	return false;
}

static bool look_for_answers(void *ctx, int fd)
{
	struct control *control = ctx;
	bool stops = false, waits = false;
	uint64_t n_expired;

	if (read(fd, &n_expired, sizeof(n_expired)) < 0)
		return false;
	for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &control->clients[i];

		if (client->fd >= 0 && client->waits_for)
			stops |= look_for_answer(client);
		waits |= client->fd >= 0 && client->waits_for;
	}
	if (!waits)
		stop_timer(control);
	return stops;
}

static bool client_readable(void *ctx, int fd)
{
	struct client *client = ctx;
	ssize_t n = read(fd, client->line + client->used, LINE_MAX_BYTES - client->used);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		client_close(client);
		return false;
	}
	client->used += (size_t)n;
	if (take_lines(client))
		return true;
	if (client->used == LINE_MAX_BYTES && !client->waits_for) {
		answer(client, "error: line too long\n");
		client_close(client);
	}
	return false;
}

static int client_open(struct control *control, int fd, bool has_answers)
{
	for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &control->clients[i];

		if (client->fd >= 0)
			continue;
		*client = (struct client){ .control = control, .fd = fd,
					   .has_answers = has_answers };
		if (!session_watch(control->session, fd, client_readable, client))
			return 0;
		client->fd = -1;
		break;
	}
	return -ENOSPC;
}

static bool listener_readable(void *ctx, int listen_fd)
{
	int fd = accept_or_pause(listen_fd, SOCK_CLOEXEC | SOCK_NONBLOCK);

	/* A client too many, or one that has gone again, is not worth a message. */
	if (fd >= 0 && client_open(ctx, fd, true))
		close(fd);
	return false;
}

static int listener_open(struct control *control, const char *path)
{
	int rc;

	control->path = strdup(path);
	if (!control->path)
		return -ENOMEM;
	control->listen_fd = unix_listen(path, CLIENTS_MAX);
	if (control->listen_fd < 0) {
		rc = control->listen_fd;
		goto out_free;
	}
	rc = session_watch(control->session, control->listen_fd, listener_readable, control);
	if (!rc)
		return 0;
	unlink(path);
	close(control->listen_fd);
	control->listen_fd = -1;
out_free:
	free(control->path);
	control->path = NULL;
	return rc;
}

int control_open(const char *path, struct session *session, struct control **ret_control)
{
	struct control *control = calloc(1, sizeof(*control));
	int rc;

	if (!control)
		return -ENOMEM;
	control->session = session;
	control->listen_fd = control->timer_fd = -1;
	for (uint32_t i = 0; i < CLIENTS_MAX; i++)
		control->clients[i].fd = -1;
	if (!strcmp(path, "-"))
		rc = client_open(control, STDIN_FILENO, false);
	else
		rc = listener_open(control, path);
	if (rc) {
		free(control);
		return rc;
	}
	*ret_control = control;
	return 0;
}

void control_set_relocation(struct control *control, struct relocation *relocation)
{
	control->relocation = relocation;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	stop_timer(control);
	for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
		if (control->clients[i].fd >= 0)
			client_close(&control->clients[i]);
	}
	if (control->listen_fd >= 0) {
		session_unwatch(control->session, control->listen_fd);
		close(control->listen_fd);
		unlink(control->path);
		free(control->path);
	}
	free(control);
}
