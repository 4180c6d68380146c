/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See volumes_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include "tests/unit/host-agent/backend/volumes/volumes_rig.h"
#include "util/clock.h"
#include "util/log.h"

/* ---- the agent's end ---------------------------------------------------------- */

static int take_fact(void *ctx, usec_t now, const struct ebb_fact *fact)
{
	struct volumes_rig *f = ctx;
	struct seen *seen = &f->facts[f->num_facts++];

	assert_true(now > 0);
	assert_false(f->is_submitting);
	assert_true(f->num_facts < MAX_FACTS);
	*seen = (struct seen){ .type = fact->type };
	if (fact->type == EBB_FACT_ACTION_DONE) {
		assert_int_equal(fact->u.action_done.type, EBB_ACTION_VOLUME);
		seen->id = fact->u.action_done.id;
		seen->err = fact->u.action_done.err;
		snprintf(seen->text, sizeof(seen->text), "%s",
			 fact->u.action_done.text ? fact->u.action_done.text : "");
	} else if (fact->type == EBB_FACT_VOLUMES_SERVER) {
		const struct ebb_volume_server *s = &fact->u.volumes_server;

		snprintf(seen->text, sizeof(seen->text), "%u %u %u %u %d",
			 (unsigned)s->capacity_iops, (unsigned)s->capacity_bytes,
			 (unsigned)s->promised_iops, (unsigned)s->promised_bytes,
			 s->allow_overbooking);
	} else if (fact->type == EBB_FACT_VOLUMES_UP) {
		for (uint32_t i = 0; i < fact->u.volumes_up.num; i++)
			snprintf(seen->text + strlen(seen->text),
				 sizeof(seen->text) - strlen(seen->text), "%s ",
				 fact->u.volumes_up.owned[i]);
	} else if (fact->type == EBB_FACT_VOLUMES_METERS) {
		f->meters = fact->u.volumes_meters;
		for (uint32_t i = 0; i < f->meters.num && i < 2; i++)
			f->readings[i] = f->meters.volumes[i];
	} else if (fact->type == EBB_FACT_VOLUMES_LOST) {
		memcpy(seen->text, fact->u.volumes_lost.text, sizeof(seen->text));
	}
	return 0;
}

static void inner_submit(void *be, usec_t now, const struct ebb_action *action)
{
	struct volumes_rig *f = be;

	assert_int_equal(now, 77);
	assert_int_equal(action->type, EBB_ACTION_PLUG);
	f->num_inner++;
}

static void inner_destroy(void *be)
{
	((struct volumes_rig *)be)->num_inner += 100;
}

static const struct ebb_backend_ops inner_ops = {
	.name = "inner", .submit = inner_submit, .destroy = inner_destroy,
};

void rig_begin(struct volumes_rig *f)
{
	assert_int_equal(ebb_volumes_create(f->event, &f->cfg, &f->volumes), 0);
	f->backend = ebb_volumes_backend(f->volumes);
}

void rig_submit(struct volumes_rig *f, uint64_t id, const char *name, struct ebb_sla_io io)
{
	struct ebb_action a = {
		.type = EBB_ACTION_VOLUME, .id = id,
		.u.volume = { .io = io, .is_owned = io.reserve_iops > 0 },
	};

	strcpy(a.u.volume.name, name);
	f->is_submitting = true;
	f->backend.ops->submit(f->backend.be, 1, &a);
	f->is_submitting = false;
}

void rig_pump(struct volumes_rig *f)
{
	assert_true(sd_event_run(f->event, 5 * MSEC) >= 0);
}

/* The next fact that came. */
static const struct seen *next_fact(struct volumes_rig *f)
{
	const usec_t until = ebb_clock_mono_usec() + HANG_USEC;

	while (f->num_read == f->num_facts && ebb_clock_mono_usec() < until)
		rig_pump(f);
	assert_true(f->num_read < f->num_facts);
	return &f->facts[f->num_read++];
}

void rig_expect(struct volumes_rig *f, enum ebb_fact_type type, const char *text)
{
	const struct seen *seen = next_fact(f);

	assert_string_equal(ebb_fact_name(seen->type), ebb_fact_name(type));
	if (!strstr(seen->text, text))
		fail_msg("\"%s\" is not in \"%s\"", text, seen->text);
}

void rig_expect_done(struct volumes_rig *f, uint64_t id, int err, const char *text)
{
	rig_expect(f, EBB_FACT_ACTION_DONE, text);
	assert_int_equal(f->facts[f->num_read - 1].id, id);
	assert_int_equal(f->facts[f->num_read - 1].err, err);
}

void rig_expect_nothing(struct volumes_rig *f, usec_t wait)
{
	const usec_t until = ebb_clock_mono_usec() + wait;

	do
		rig_pump(f);
	while (ebb_clock_mono_usec() < until);
	assert_int_equal(f->num_read, f->num_facts);
}

/* ---- the server's end ----------------------------------------------------------- */

void rig_serve(struct volumes_rig *f)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	strcpy(addr.sun_path, f->path);
	f->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(f->listen_fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(f->listen_fd, 8), 0);
}

void rig_hang_up(struct volumes_rig *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

void rig_stop(struct volumes_rig *f)
{
	rig_hang_up(f);
	if (f->listen_fd >= 0)
		close(f->listen_fd);
	f->listen_fd = -1;
	unlink(f->path);
}

void rig_let_in(struct volumes_rig *f)
{
	const usec_t until = ebb_clock_mono_usec() + HANG_USEC;

	assert_int_equal(f->fd, -1);
	while (f->fd < 0 && ebb_clock_mono_usec() < until) {
		rig_pump(f);
		f->fd = accept(f->listen_fd, NULL, NULL);
	}
	assert_true(f->fd >= 0);
}

void rig_read_line(struct volumes_rig *f, char *line, size_t size)
{
	const usec_t until = ebb_clock_mono_usec() + HANG_USEC;
	size_t len = 0;

	while ((len == 0 || line[len - 1] != '\n') && ebb_clock_mono_usec() < until) {
		ssize_t n;

		rig_pump(f);
		n = recv(f->fd, line + len, size - len - 1, MSG_DONTWAIT);
		if (n > 0)
			len += (size_t)n;
	}
	assert_true(len > 0 && line[len - 1] == '\n');
	line[len] = '\0';
	/* One request at a time. */
	assert_ptr_equal(strchr(line, '\n'), line + len - 1);
}

void rig_asked(struct volumes_rig *f, const char *words)
{
	char line[1024];

	rig_read_line(f, line, sizeof(line));
	if (!strstr(line, words))
		fail_msg("\"%s\" is not in %s", words, line);
}

void rig_answer(struct volumes_rig *f, const char *text)
{
	assert_int_equal(send(f->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

void rig_greet(struct volumes_rig *f)
{
	rig_let_in(f);
	rig_asked(f, ASKED_CLAIM);
	rig_answer(f, OK);
}

void rig_bring_up(struct volumes_rig *f)
{
	rig_greet(f);
	rig_asked(f, ASKED_OWNED(0));
	rig_answer(f, SERVER);
	rig_expect(f, EBB_FACT_VOLUMES_UP, "");
	assert_string_equal(f->facts[f->num_read - 1].text, "");
	rig_expect(f, EBB_FACT_VOLUMES_SERVER, "500 0 0 9 1");
}

int rig_setup(void **state)
{
	struct volumes_rig *f = calloc(1, sizeof(*f));

	ebb_log_set_level(LOG_ERR);
	strcpy(f->folder, "/tmp/test_io_volumes.XXXXXX");
	if (!mkdtemp(f->folder) || sd_event_new(&f->event) < 0)
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/sock", f->folder);
	f->listen_fd = f->fd = -1;
	ebb_volumes_config_default(&f->cfg);
	f->cfg.path = f->path;
	f->cfg.owner = "me";
	f->cfg.inner = (struct ebb_backend){ .ops = &inner_ops, .be = f };
	f->cfg.sink = (struct ebb_sink){ .ctx = f, .report = take_fact };
	f->cfg.retry_usec[0] = 20 * MSEC;
	f->cfg.retry_usec[1] = 80 * MSEC;
	/* Not in the way of tests of other things. */
	f->cfg.meter_usec = HANG_USEC;
	*state = f;
	return 0;
}

int rig_teardown(void **state)
{
	struct volumes_rig *f = *state;

	ebb_volumes_destroy(f->volumes);
	rig_stop(f);
	sd_event_unref(f->event);
	rmdir(f->folder);
	free(f);
	return 0;
}
