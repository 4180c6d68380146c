// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two nodes that read each other's volumes: cold values go as references, and the target reads them
 * where they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "move_cold_rig.h"
#include "move_history.h"
#include "oltp-engine/server/kv/unit.h"

#define KEYS	MOVE_COLD_KEYS

/* A reference as it comes over the link. */
struct sent {
	struct kv_record head;
	uint8_t name_and_place[64];
};

static struct sent reference(void)
{
	struct sent sent = { .head = { .value_bytes = 700, .name_bytes = 3,
				       .type = KV_RECORD_STRING, .flags = KV_RECORD_REFERS } };
	const struct oltp_place place = { 4096, 77 };

	memcpy(sent.name_and_place, "abc", 3);
	memcpy(sent.name_and_place + 3, &place, sizeof(place));
	return sent;
}

static size_t length_of(const struct sent *sent)
{
	return kv_record_bytes((const uint8_t *)sent, sizeof(*sent));
}

static void test_records(void **state)
{
	struct sent sent = reference();
	struct oltp_place_read read;
	uint8_t value[1008], record[KV_RECORD_MAX];
	struct kv_record head;

	(void)state;
	assert_int_equal(length_of(&sent), sizeof(head) + 24);
	assert_int_equal(kv_record_bytes((uint8_t *)&sent, sizeof(head) + 16), 0);
	assert_true(kv_record_refers((uint8_t *)&sent, &read));
	assert_int_equal(read.place.offset, 4096);
	assert_int_equal(read.place.seed, 77);
	assert_int_equal(read.bytes, sizeof(value));
	memset(value, 'v', sizeof(value));
	assert_int_equal(kv_record_resolve((uint8_t *)&sent, value, record), sizeof(head) + 704);
	assert_int_equal(kv_record_bytes(record, sizeof(record)), sizeof(head) + 704);
	assert_false(kv_record_refers(record, &read));
	assert_memory_equal(record + sizeof(head), "abcvv", 5);
	assert_int_equal(record[sizeof(head) + 3 + 699], 'v');
	assert_int_equal(record[sizeof(head) + 3 + 700], 0);
	sent.head.flags = 2;
	assert_int_equal(length_of(&sent), 0);
	/* The value is in the row; behind the name; of a hash. */
	sent = reference();
	sent.head.value_bytes = 80;
	assert_int_equal(length_of(&sent), 0);
	sent = reference();
	sent.head.name_bytes = 89;
	assert_int_equal(length_of(&sent), 0);
	sent = reference();
	sent.head.type = KV_RECORD_HASH;
	sent.head.value_bytes = 0;
	sent.head.n_fields = 1;
	assert_int_equal(length_of(&sent), 0);
	sent = reference();
	sent.head.type = KV_RECORD_FIELD;
	assert_int_equal(length_of(&sent), sizeof(head) + 24);
}

/* A reference is never put as it is. */
static void test_put_refuses(void **state)
{
	const struct sent sent = reference();
	struct kv_unit_put put = { 0 };
	struct oltp_worker *worker;
	struct move_rig rig;
	uint32_t n_wrong = 0;

	(void)state;
	move_rig_init(&rig, 1);
	move_rig_open(&rig, 0);
	assert_int_equal(oltp_worker_create(rig.nodes[0].engine, &worker), 0);
	for (uint32_t unit = 0; unit < 2; unit++)
		n_wrong += kv_unit_put(rig.nodes[0].kv, worker, unit, &put, (const uint8_t *)&sent,
				       length_of(&sent)) == -EPROTO;
	assert_int_equal(n_wrong, 2);
	oltp_worker_destroy(worker);
	move_rig_close_both(&rig);
}

static uint64_t all_bytes(void)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < KEYS; k++)
		bytes += move_cold_bytes(k);
	return bytes;
}

/* Nothing of the source is needed any more, also after a crash. */
static void check_alone(struct move_rig *rig, struct move_cold_volumes *volumes)
{
	move_cold_check(rig, 1);
	move_rig_close(rig, 0, true);
	move_rig_close(rig, 1, true);
	assert_int_equal(truncate(volumes->paths[0], 0), 0);
	move_rig_open(rig, 1);
	move_cold_check(rig, 1);
	move_rig_close_both(rig);
	move_cold_remove_volumes(volumes);
}

static void test_all(void **state)
{
	struct move_cold_volumes volumes;
	struct move_stats source, target;
	struct oltp_memory_stats before;
	struct move_rig rig;

	(void)state;
	move_cold_open_volumes(&rig, &volumes, NULL);
	oltp_memory_stats_read(rig.nodes[0].engine, &before);
	move_cold_share(&rig);
	move_cold_finish(&rig);
	source = move_cold_stats(&rig, 0);
	target = move_cold_stats(&rig, 1);
	assert_int_equal(source.error, 0);
	assert_int_equal(target.error, 0);
	assert_int_equal(source.records_sent, KEYS + 1 + MOVE_COLD_FIELDS);
	assert_true(source.references_sent > KEYS / 4);
	assert_int_equal(target.references_read, source.references_sent);
	assert_int_equal(target.units_unread, 0);
	/* The bound of the scenario migrate. */
	assert_true(target.link_received_bytes * 10 < before.resident_bytes * 13);
	assert_true(target.link_received_bytes < all_bytes() / 2);
	check_alone(&rig, &volumes);
}

/* What the target cannot read at the source's volume comes over the link after all. */
static void unreadable(struct move_rig *rig, struct move_cold_volumes *volumes, uint32_t units)
{
	struct move_stats source, target;

	move_cold_share(rig);
	move_cold_finish(rig);
	source = move_cold_stats(rig, 0);
	target = move_cold_stats(rig, 1);
	assert_int_equal(source.error, 0);
	assert_int_equal(target.units_unread, units);
	assert_int_equal(target.units.taken, MOVE_COLD_UNITS);
	assert_int_equal(source.units.refused, units);
	check_alone(rig, volumes);
}

static void test_unreadable(void **state)
{
	const char *const others[] = { "/nowhere/volume", "/proc/self/status" };
	struct move_cold_volumes volumes;
	struct move_rig rig;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		move_cold_open_volumes(&rig, &volumes, others[i]);
		unreadable(&rig, &volumes, MOVE_COLD_UNITS);
	}
}

/* It reads another volume than the source's: its own. */
static void test_another_volume(void **state)
{
	struct move_cold_volumes volumes = { 0 };
	struct move_rig rig;

	(void)state;
	move_cold_open_volumes(&rig, &volumes, volumes.paths[1]);
	unreadable(&rig, &volumes, MOVE_COLD_UNITS);
}

static _Atomic bool hangs;
bool __real_oltp_places_poll(struct oltp_places *places, bool wait);
bool __wrap_oltp_places_poll(struct oltp_places *places, bool wait);

bool __wrap_oltp_places_poll(struct oltp_places *places, bool wait)
{
	return !hangs && __real_oltp_places_poll(places, wait);
}

/* The disk does not answer. It is waited for once, not for each unit. */
static void test_hanging(void **state)
{
	struct move_cold_volumes volumes;
	struct move_rig rig;

	(void)state;
	move_cold_open_volumes(&rig, &volumes, NULL);
	hangs = true;
	move_cold_share(&rig);
	move_cold_finish(&rig);
	hangs = false;
	assert_int_equal(move_cold_stats(&rig, 1).error, -ETIMEDOUT);
	assert_int_equal(move_cold_stats(&rig, 1).units_unread, MOVE_COLD_UNITS);
	check_alone(&rig, &volumes);
}

static void copy_file(const char *from, const char *to)
{
	char command[300];

	snprintf(command, sizeof(command), "cp %s %s", from, to);
	assert_int_equal(system(command), 0);
}

/* One byte in each 64 KiB is wrong where the target reads. */
static void test_damaged(void **state)
{
	struct move_cold_volumes volumes;
	struct move_stats target;
	struct move_rig rig;
	char copy[160];
	int fd;

	(void)state;
	snprintf(copy, sizeof(copy), "%s/move-cold-copy-%d", rig_dir(), (int)getpid());
	move_cold_open_volumes(&rig, &volumes, copy);
	copy_file(volumes.paths[0], copy);
	fd = open(copy, O_RDWR);
	assert_true(fd >= 0);
	for (off_t at = 1 << 20; at < (off_t)64 << 20; at += 65536) {
		char byte;

		assert_int_equal(pread(fd, &byte, 1, at + 1000), 1);
		byte ^= 1;
		assert_int_equal(pwrite(fd, &byte, 1, at + 1000), 1);
	}
	close(fd);
	move_cold_share(&rig);
	move_cold_finish(&rig);
	target = move_cold_stats(&rig, 1);
	assert_int_equal(target.error, -EBADMSG);
	assert_in_range(target.units_unread, 1, MOVE_COLD_UNITS);
	assert_true(target.references_read > 0);
	unlink(copy);
	check_alone(&rig, &volumes);
}

static void ask(struct move_rig *rig, uint32_t node, uint32_t from, uint32_t step)
{
	struct move_client client;

	move_client_open(&client, &rig->nodes[node]);
	for (uint32_t k = from; k < KEYS; k += step)
		move_cold_expect(&client, 'k', k, 0);
	move_client_close(&client);
}

static void write_some(struct move_rig *rig, uint32_t node, uint32_t from)
{
	struct move_client client;
	char line[MOVE_COLD_WORDS + 3] = "SET";

	move_client_open(&client, &rig->nodes[node]);
	for (uint32_t k = from; k < KEYS; k += 97) {
		move_cold_words(line + 3, 'k', k, 0);
		move_client_expect(&client, line, "+OK\r\n");
	}
	move_client_close(&client);
}

/* Until most of what the node has is on its disk. */
static void shrink(struct move_node *node)
{
	oltp_blocks_native_set_limit(node->blocks, 6 * MIB, 0);
	while (oltp_blocks_native_held(node->blocks) > 6 * MIB)
		usleep(1000);
}

/*
 * Units come one by one, and go back: whole after a cut of the connection, else what was changed.
 * The target's values are on disk by then, too.
 */
static void test_back(void **state)
{
	struct move_cold_volumes volumes;
	struct move_stats stats;
	struct move_rig rig;

	(void)state;
	move_cold_open_volumes(&rig, &volumes, NULL);
	move_cold_share(&rig);
	ask(&rig, 1, 0, 37);
	write_some(&rig, 1, 0);
	ask(&rig, 0, 1, 37);
	ask(&rig, 1, 2, 37);
	write_some(&rig, 1, 1);
	shrink(&rig.nodes[1]);
	stats = move_cold_stats(&rig, 1);
	assert_true(stats.references_read > KEYS / 4);
	assert_int_equal(stats.owned, MOVE_COLD_UNITS);
	/* Copies end with the connection. */
	move_rig_connect(&rig);
	ask(&rig, 0, 3, 37);
	stats = move_cold_stats(&rig, 0);
	assert_true(stats.references_read > KEYS / 4);
	assert_int_equal(stats.units_unread, 0);
	move_cold_finish(&rig);
	check_alone(&rig, &volumes);
}

/* References that went ahead of a failover do not exist: what goes ahead has its values. */
static void test_copied(void **state)
{
	const struct precopy_config config = {
		.bytes_per_s = 1u << 30, .bytes_max = 2 * MIB, .timeout_ns = 20000000000ull,
		.pause_ns = 1000000, .rounds_max = 30,
	};
	struct move_cold_volumes volumes;
	struct move_rig rig;

	(void)state;
	move_cold_open_volumes(&rig, &volumes, NULL);
	move_cold_share(&rig);
	move_copy(rig.nodes[0].move, &config);
	for (uint32_t i = 0; i < 30000 && !move_cold_stats(&rig, 0).copy.has_stopped; i++)
		usleep(1000);
	assert_true(move_cold_stats(&rig, 0).copy.has_stopped);
	assert_int_equal(move_cold_stats(&rig, 0).references_sent, 0);
	move_cold_finish(&rig);
	assert_true(move_cold_stats(&rig, 1).references_read > 0);
	check_alone(&rig, &volumes);
}

/* Nodes die while the target has read n references: neither, the source, the target, both. */
static void die_at(uint64_t n, uint32_t dead)
{
	struct move_cold_volumes volumes;
	struct move_rig rig;

	move_cold_open_volumes(&rig, &volumes, NULL);
	move_cold_share(&rig);
	move_leave(rig.nodes[0].move, true);
	while (move_cold_stats(&rig, n ? 1 : 0).references_read < n ||
	       !move_cold_stats(&rig, 0).references_sent)
		usleep(50);
	for (uint32_t i = 0; i < 2; i++) {
		if (dead & 1u << i)
			move_rig_close(&rig, i, false);
	}
	for (uint32_t i = 0; i < 2; i++) {
		if (dead & 1u << i)
			move_rig_open(&rig, i);
	}
	move_rig_connect(&rig);
	move_cold_finish(&rig);
	check_alone(&rig, &volumes);
}

static void test_dead(void **state)
{
	(void)state;
	for (uint32_t dead = 0; dead < 4; dead++)
		die_at(dead * 700, dead);
}

/* Clients of both nodes, while the source has too little memory, and nodes die. */
static void test_history(void **state)
{
	struct move_history *history = calloc(1, sizeof(*history));
	struct move_cold_volumes volumes;
	struct move_rig rig;
	uint64_t n_read = 0;

	(void)state;
	assert_non_null(history);
	move_history_init(history);
	move_cold_open_volumes(&rig, &volumes, NULL);
	/* Also once they have restarted. */
	rig.nodes[0].limit_bytes = rig.nodes[1].limit_bytes = MOVE_COLD_LIMIT;
	move_cold_share(&rig);
	for (uint32_t round = 0; round < 4; round++) {
		move_history_begin(history, &rig, round);
		ask(&rig, !(round & 1), round, 61);
		write_some(&rig, round & 1, round);
		move_history_end(history);
		n_read += move_cold_stats(&rig, round & 1).references_read;
		move_rig_close(&rig, round & 1, false);
		move_rig_open(&rig, round & 1);
		move_rig_connect(&rig);
	}
	move_cold_finish(&rig);
	n_read += move_cold_stats(&rig, 1).references_read;
	assert_true(n_read > KEYS / 4);
	move_history_check(history, &rig, 1, true);
	move_history_finish(history);
	free(history);
	move_rig_close_both(&rig);
	move_cold_remove_volumes(&volumes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_put_refuses),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_another_volume),
		cmocka_unit_test(test_hanging),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_back),
		cmocka_unit_test(test_copied),
		cmocka_unit_test(test_dead),
		cmocka_unit_test(test_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
