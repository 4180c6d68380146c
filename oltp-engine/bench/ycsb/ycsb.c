// SPDX-License-Identifier: GPL-2.0-or-later
/* YCSB's table and its workers: see ycsb.h. */
#include <errno.h>
#include <stdlib.h>

#include "ycsb_private.h"
#include "ycsb_record.h"

/* If there are inserts, the hash index has room for this many times the records that are loaded. */
#define ROOM_TO_GROW	2u

static bool class_is_valid(const struct ycsb_class *class)
{
	double sum = 0;

	for (uint32_t kind = 0; kind < YCSB_READ; kind++) {
		if (!(class->shares[kind] >= 0))
			return false;
		sum += class->shares[kind];
	}
	return class->operations >= 1 && class->operations <= YCSB_OPERATIONS_MAX &&
	       sum <= 1 + 1e-9;
}

/* The shares of one kind of operation, added up over all classes. */
static double share_of(const struct ycsb_config *config, enum ycsb_op kind)
{
	double sum = 0;

	for (uint32_t i = 0; i < config->n_classes; i++)
		sum += config->classes[i].shares[kind];
	return sum;
}

static bool config_is_valid(const struct ycsb_config *config)
{
	if (config->n_classes > YCSB_CLASSES_MAX ||
	    !(config->cold_access >= 0 && config->cold_access <= 1) ||
	    (config->cold_access > 0 && !(config->cold_part > 0 && config->cold_part < 1)) ||
	    (config->cold_access > 0 && config->keys != YCSB_KEYS_ZIPF) ||
	    (config->records_max && config->records_max < config->records))
		return false;
	if (share_of(config, YCSB_SCAN) > 0 &&
	    (config->scan_rows < 1 || config->scan_rows > YCSB_SCAN_ROWS_MAX))
		return false;
	for (uint32_t i = 0; i < config->n_classes; i++) {
		if (!class_is_valid(&config->classes[i]))
			return false;
	}
	return true;
}

/* The one class that a configuration without any describes. */
static void fill_classes(struct ycsb_config *config)
{
	if (config->n_classes)
		return;
	config->n_classes = 1;
	config->classes[0] = (struct ycsb_class){
		.name = "ycsb",
		.operations = config->operations,
		.shares = { [YCSB_UPDATE] = config->update_share },
		.by_transaction = config->mix_by_transaction,
		.read_all_fields = config->read_all_fields,
	};
}

uint32_t ycsb_accesses_max(const struct ycsb_config *config)
{
	uint32_t most = config->operations;

	for (uint32_t i = 0; i < config->n_classes; i++) {
		const struct ycsb_class *class = &config->classes[i];
		uint32_t n = class->operations;

		n *= class->shares[YCSB_SCAN] > 0 ? config->scan_rows : 1;
		most = n > most ? n : most;
	}
	return most;
}

static void mix_init(struct ycsb_mix *mix, const struct ycsb_class *class)
{
	double sum = 0;

	*mix = (struct ycsb_mix){ .operations = class->operations,
				  .by_transaction = class->by_transaction,
				  .whole = 1u << YCSB_MODIFY | 1u << YCSB_INSERT |
					   (uint8_t)(class->read_all_fields << YCSB_READ),
				  .work = class->work };
	for (uint32_t kind = 0; kind < YCSB_READ; kind++) {
		sum += class->shares[kind];
		mix->bounds[kind] = (uint64_t)(sum * 0x1p32 + 0.5);
	}
}

static int create_classes(struct ycsb *ycsb)
{
	const char *names[YCSB_CLASSES_MAX];

	ycsb->n_mixes = ycsb->config.n_classes;
	for (uint32_t i = 0; i < ycsb->n_mixes; i++) {
		names[i] = ycsb->config.classes[i].name;
		mix_init(&ycsb->mixes[i], &ycsb->config.classes[i]);
		ycsb_set_weight(ycsb, i, 1);
	}
	return ycsb->n_mixes > 1 ? classes_create(names, ycsb->n_mixes, &ycsb->classes) : 0;
}

static int create_growth(struct ycsb *ycsb)
{
	uint64_t max = ycsb->config.records_max;

	if (!(share_of(&ycsb->config, YCSB_INSERT) > 0))
		return 0;
	ycsb->growth = malloc(sizeof(*ycsb->growth));
	if (!ycsb->growth)
		return -ENOMEM;
	growth_init(ycsb->growth, ycsb->config.records, max ?: UINT64_MAX);
	return 0;
}

static int create_table(struct ycsb *ycsb)
{
	uint64_t capacity = ycsb->config.records;
	int rc;

	if (ycsb->growth)
		capacity = ycsb->config.records_max ?: capacity * ROOM_TO_GROW;
	rc = oltp_table_create(ycsb->engine, sizeof(struct ycsb_record), capacity, &ycsb->table);
	if (!rc && share_of(&ycsb->config, YCSB_SCAN) > 0)
		rc = oltp_index_create(ycsb->table, NULL, &ycsb->index);
	return rc;
}

static void split_hot(struct ycsb *ycsb)
{
	const struct ycsb_config *config = &ycsb->config;
	uint64_t hot = config->records;

	if (config->cold_access > 0) {
		hot -= (uint64_t)((double)config->records * config->cold_part);
		/* Nothing to be hot, or cold, in a table of one record. */
		hot = hot ?: 1;
		ycsb->cold_share = hot < config->records ?
					   (uint64_t)(config->cold_access * 0x1p32) : 0;
	}
	ycsb->hot = hot;
}

int ycsb_create(struct oltp_engine *engine, const struct ycsb_config *config,
		struct ycsb **ret_ycsb)
{
	struct ycsb *ycsb = calloc(1, sizeof(*ycsb));
	int rc = -EINVAL;

	if (!ycsb)
		return -ENOMEM;
	pthread_mutex_init(&ycsb->lock, NULL);
	ycsb->config = *config;
	ycsb->engine = engine;
	fill_classes(&ycsb->config);
	if (!config_is_valid(&ycsb->config))
		goto out;
	split_hot(ycsb);
	rc = ycsb_set_theta(ycsb, config->theta) ?:
	     zipf_init(&ycsb->spread, config->records, 0, true) ?:
	     ycsb_set_window(ycsb, 0, config->records) ?:
	     create_classes(ycsb) ?:
	     create_growth(ycsb) ?:
	     create_table(ycsb);
out:
	if (rc)
		ycsb_destroy(ycsb);
	else
		*ret_ycsb = ycsb;
	return rc;
}

void ycsb_destroy(struct ycsb *ycsb)
{
	if (!ycsb)
		return;
	classes_destroy(ycsb->classes);
	pthread_mutex_destroy(&ycsb->lock);
	free(ycsb->growth);
	free(ycsb);
}

const struct ycsb_config *ycsb_config(const struct ycsb *ycsb)
{
	return &ycsb->config;
}

struct oltp_table *ycsb_table(struct ycsb *ycsb)
{
	return ycsb->table;
}

struct classes *ycsb_classes(struct ycsb *ycsb)
{
	return ycsb->classes;
}

static int worker_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	struct ycsb *ycsb = ctx;
	struct ycsb_worker *yw = aligned_alloc(128, (sizeof(*yw) + 127) & ~127ul);
	uint64_t nth;

	if (!yw)
		return -ENOMEM;
	memset(yw, 0, sizeof(*yw));
	nth = atomic_fetch_add_explicit(&ycsb->attached, 1, memory_order_relaxed);
	yw->ycsb = ycsb;
	yw->worker = worker;
	yw->random.state = random64_mix(ycsb->config.seed) ^ random64_mix(nth + 1);
	for (uint32_t slot = 0; slot < OLTP_TICKETS; slot++)
		yw->txn_of[slot] = &yw->txns[slot];
	yw->next = &yw->txns[OLTP_TICKETS];
	if (ycsb->classes && classes_attach(ycsb->classes, &yw->classes)) {
		free(yw);
		return -ENOMEM;
	}
	*ret_local = yw;
	return 0;
}

static void worker_detach(void *local)
{
	struct ycsb_worker *yw = local;
	struct ycsb_books *books = &yw->ycsb->books;

	pthread_mutex_lock(&yw->ycsb->lock);
	books->updates += yw->books.updates;
	books->weighted_updates += yw->books.weighted_updates;
	books->inserts += yw->books.inserts;
	books->inserted_keys += yw->books.inserted_keys;
	books->inconsistent_reads += yw->books.inconsistent_reads;
	pthread_mutex_unlock(&yw->ycsb->lock);
	classes_detach(yw->classes);
	free(yw);
}

/* Whether an operation is an update cannot be predicted: no jump depends on it. */
static void book(struct ycsb_worker *yw, const struct ycsb_txn *txn)
{
	for (uint32_t i = 0; i < txn->mix->operations; i++) {
		uint8_t kind = txn->operations[i].kind;
		uint64_t is_update = kind == YCSB_UPDATE || kind == YCSB_MODIFY;

		yw->books.updates += is_update;
		yw->books.weighted_updates += ycsb_key_weight(txn->hints[i].key) & -is_update;
		if (kind == YCSB_INSERT) {
			yw->books.inserts++;
			yw->books.inserted_keys += ycsb_key_weight(txn->hints[i].key);
			growth_commit(yw->ycsb->growth, txn->numbers[i]);
		}
	}
}

static enum oltp_rc attempt(struct ycsb_worker *yw, const struct ycsb_txn *txn)
{
	enum oltp_rc rc = oltp_txn_begin(yw->worker);

	if (rc)
		return rc;
	rc = ycsb_run(yw, txn);
	if (!rc)
		rc = oltp_txn_commit(yw->worker);
	if (rc)
		oltp_txn_abort(yw->worker);
	else
		book(yw, txn);
	return rc;
}

/* Gives the slot a new transaction: the one that was drawn ahead, if any was. */
static void renew(struct ycsb_worker *yw, uint32_t slot)
{
	struct ycsb_txn *txn = yw->next;

	if (!yw->has_next)
		ycsb_draw(yw, txn);
	yw->has_next = false;
	yw->next = yw->txn_of[slot];
	yw->txn_of[slot] = txn;
	if (yw->classes)
		class_begin(yw->classes, slot, txn->class);
}

static void worker_arrived(void *local, uint64_t arrival_ns)
{
	struct ycsb_worker *yw = local;

	class_arrived(yw->classes, arrival_ns);
}

static enum oltp_rc worker_run(void *local, uint32_t slot, bool retry)
{
	struct ycsb_worker *yw = local;
	enum oltp_rc rc;

	if (!retry)
		renew(yw, slot);
	rc = attempt(yw, yw->txn_of[slot]);
	if (yw->classes)
		class_attempted(yw->classes, slot, rc);
	return rc;
}

struct oltp_workload ycsb_workload(struct ycsb *ycsb)
{
	return (struct oltp_workload){
		.attach = worker_attach,
		.run = worker_run,
		.arrived = ycsb->classes ? worker_arrived : NULL,
		.detach = worker_detach,
		.ctx = ycsb,
	};
}
