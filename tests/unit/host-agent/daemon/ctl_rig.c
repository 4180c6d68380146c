// SPDX-License-Identifier: GPL-2.0-or-later
/* See ctl_rig.h. */
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
#include "daemon/ctl-cmds.h"
#include "backend/real/hosttopo.h"
#include "tests/unit/host-agent/daemon/ctl_rig.h"
#include "util/clock.h"
#include "util/heap.h"
#include "util/log.h"

static int connect_client(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 ? fd : -1;
}

int ctl_rig_setup(void **state, bool has_shared)
{
	const struct ebb_emuspec spec = { 2, 2, 1, 250, 10 };
	struct ctl_rig *f = calloc(1, sizeof(*f));
	struct ebb_ctl_config ctl = {
		.path = f->path, .group = -1, .handle = ebb_ctl_handle, .ctx = &f->agent,
	};
	struct ebb_state_config cfg;
	struct ebb_err err = { "" };

	ebb_log_set_level(LOG_ERR);
	strcpy(f->folder, "/tmp/ctl_rig.XXXXXX");
	if (!mkdtemp(f->folder) || ebb_hosttopo_emulated(&spec, &f->host, &err) < 0)
		return -1;
	/* A core of each node. */
	f->host.cores[1].is_shared = f->host.cores[3].is_shared = has_shared;
	snprintf(f->path, sizeof(f->path), "%s/control.sock", f->folder);
	ebb_state_config_default(&cfg);
	cfg.alloc = (struct ebb_alloc){ .alloc = ebb_heap_alloc, .free = ebb_heap_free };
	f->agent.host_spec = "emulated:2x2x1@0.25";
	/* Less than a VM with one vCPU may ask for. */
	cfg.promise.overbook_percent = 80;
	f->agent.state = ebb_state_create(&cfg, &f->host, &ebb_policy_fair);
	if (!f->agent.state || sd_event_new(&f->agent.event) < 0 ||
	    ebb_workers_create(f->agent.event, 2, &f->workers) < 0 ||
	    ebb_history_open(NULL, 1000, f->workers, f->agent.event, &f->agent.history, &err) < 0 ||
	    ebb_agent_init(&f->agent) < 0 ||
	    ebb_dryrun_create(&f->agent, &f->host, 2, &f->dryrun) < 0)
		return -1;
	f->agent.backend = ebb_dryrun_backend(f->dryrun);
	if (ebb_ctl_create(f->agent.event, &ctl, &f->ctl, &err) < 0 ||
	    ebb_dryrun_begin(f->dryrun) < 0)
		return -1;
	f->fd = connect_client(f->path);
	*state = f;
	return f->fd < 0 ? -1 : 0;
}

int ctl_rig_teardown(void **state)
{
	struct ctl_rig *f = *state;

	close(f->fd);
	ebb_ctl_destroy(f->ctl);
	if (ebb_workers_destroy(f->workers, PATIENCE_USEC) < 0)
		return -1;
	ebb_agent_finish(&f->agent);
	ebb_dryrun_destroy(f->dryrun);
	ebb_history_close(f->agent.history);
	ebb_state_destroy(f->agent.state);
	sd_event_unref(f->agent.event);
	rmdir(f->folder);
	free(f);
	return 0;
}

json_t *ctl_ask(struct ctl_rig *f, const char *request)
{
	static char buf[1 << 18];
	uint64_t t0 = ebb_clock_mono_usec();
	size_t len = 0;
	json_t *answer;

	assert_int_equal(send(f->fd, request, strlen(request), 0), strlen(request));
	assert_int_equal(send(f->fd, "\n", 1, 0), 1);
	while (len == 0 || buf[len - 1] != '\n') {
		ssize_t n = recv(f->fd, buf + len, sizeof(buf) - len, MSG_DONTWAIT);

		if (n > 0)
			len += n;
		else
			sd_event_run(f->agent.event, 10000);
		if (ebb_clock_mono_usec() - t0 > PATIENCE_USEC)
			fail_msg("%s was not answered", request);
	}
	answer = json_loadb(buf, len, 0, NULL);
	assert_true(json_is_object(answer));
	return answer;
}

json_t *ctl_ask_good(struct ctl_rig *f, const char *request)
{
	json_t *answer = ctl_ask(f, request);

	if (!json_is_true(json_object_get(answer, "ok")))
		fail_msg("%s was refused", request);
	return answer;
}

void ctl_expect_refused(struct ctl_rig *f, const char *request, const char *code,
			const char *message)
{
	json_t *answer = ctl_ask(f, request), *e = json_object_get(answer, "error");

	assert_true(json_is_false(json_object_get(answer, "ok")));
	assert_string_equal(json_string_value(json_object_get(e, "code")), code);
	if (!strstr(json_string_value(json_object_get(e, "message")), message))
		fail_msg("\"%s\" is not in \"%s\"", message,
			 json_string_value(json_object_get(e, "message")));
	json_decref(answer);
}

json_int_t ctl_number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v))
		fail_msg("\"%s\" is no integer", key);
	return json_integer_value(v);
}

const char *ctl_text(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v))
		fail_msg("\"%s\" is no string", key);
	return json_string_value(v);
}
