// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A small bank on the engine: accounts with an ordered index by branch, transfers between them on
 * a pool of workers that grows and shrinks, and a look at all of it in the end.
 *
 * What to take away from it:
 *
 *   - OLTP_CONFLICT is a result like any other: abort, and run the same transaction again
 *     (open_accounts does so itself, the pool does it for the transfers).
 *   - After a failed call nothing is to be done but oltp_txn_abort.
 *   - Say in oltp_config how many records the largest transaction touches.
 *
 * Build: gcc bank.c -Ioltp-engine/include liboltp.a -luring -pthread. Exit status: 0, or 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "oltp.h"

#define ACCOUNTS	1000u
#define BRANCHES	10u
#define OPENING_CENTS	10000
#define TRANSFERS	20000u	/* at least so many at each number of workers */

struct account {
	uint64_t branch;
	int64_t cents;
	uint64_t transfers;	/* that it took part in */
};

struct bank {
	struct oltp_engine *engine;
	struct oltp_table *accounts;	/* by number, from 0 */
	struct oltp_index *by_branch;
};

/* ---- tables -------------------------------------------------------------------------------- */

static uint64_t branch_of(void *ctx, uint64_t number, const void *record)
{
	const struct account *account = record;

	(void)ctx;
	(void)number;
	return account->branch;
}

static int bank_open(struct bank *bank)
{
	/* The statement reads all accounts in one transaction. */
	const struct oltp_config config = { .txn_records_max = ACCOUNTS, .node = -1 };
	/* A branch is what the index sorts by: updates may not touch it. */
	const struct oltp_index_config by_branch = {
		.key_of = branch_of,
		.key_spans = { { offsetof(struct account, branch), sizeof(uint64_t) } },
		.n_key_spans = 1,
	};
	int rc;

	memset(bank, 0, sizeof(*bank));
	rc = oltp_engine_open(&config, &bank->engine);
	if (!rc)
		rc = oltp_table_create(bank->engine, sizeof(struct account), ACCOUNTS,
				       &bank->accounts);
	if (!rc)
		rc = oltp_index_create(bank->accounts, &by_branch, &bank->by_branch);
	return rc;
}

/* ---- transactions on one's own worker ------------------------------------------------------ */

static enum oltp_rc open_account(struct bank *bank, struct oltp_worker *worker, uint64_t number)
{
	const struct account account = { .branch = number % BRANCHES, .cents = OPENING_CENTS };
	enum oltp_rc rc = oltp_txn_begin(worker);

	if (!rc)
		rc = oltp_txn_insert(worker, bank->accounts, number, &account);
	if (!rc)
		rc = oltp_txn_commit(worker);
	if (rc)
		oltp_txn_abort(worker);
	return rc;
}

static enum oltp_rc open_accounts(struct bank *bank, struct oltp_worker *worker)
{
	for (uint64_t number = 0; number < ACCOUNTS; number++) {
		enum oltp_rc rc;

		do
			rc = open_account(bank, worker, number);
		while (rc == OLTP_CONFLICT);
		if (rc)
			return rc;
	}
	return OLTP_OK;
}

struct statement {
	uint64_t accounts;
	int64_t cents;
	uint64_t transfers;	/* sides of them */
	uint64_t overdrawn;
};

static int add_account(void *ctx, uint64_t branch, uint64_t number, const void *record)
{
	const struct account *account = record;
	struct statement *statement = ctx;

	(void)branch;
	(void)number;
	statement->accounts++;
	statement->cents += account->cents;
	statement->transfers += account->transfers;
	statement->overdrawn += account->cents < 0;
	return 0;
}

/* Of all branches at one moment: no transfer is seen by half. */
static enum oltp_rc read_statements(struct bank *bank, struct oltp_worker *worker,
				    struct statement statements[BRANCHES])
{
	enum oltp_rc rc = oltp_txn_begin(worker);

	/* Begun anew with each attempt. */
	memset(statements, 0, BRANCHES * sizeof(statements[0]));
	for (uint64_t branch = 0; !rc && branch < BRANCHES; branch++) {
		const struct oltp_range range = { .from = branch, .to = branch };

		rc = oltp_txn_scan(worker, bank->by_branch, &range, add_account,
				   &statements[branch]);
	}
	if (!rc)
		rc = oltp_txn_commit(worker);
	if (rc)
		oltp_txn_abort(worker);
	return rc;
}

/* ---- transfers, as the workload of a pool -------------------------------------------------- */

struct transfer {
	uint64_t from, to;
	int64_t cents;
};

/* One worker's side. */
struct teller {
	struct bank *bank;
	struct oltp_worker *worker;
	uint64_t random;
	struct transfer transfers[OLTP_TICKETS];	/* by slot: a retry is the same one */
};

static uint64_t draw(struct teller *teller, uint64_t below)
{
	teller->random = teller->random * 6364136223846793005ull + 1442695040888963407ull;
	return (teller->random >> 33) % below;
}

static int teller_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	struct teller *teller = calloc(1, sizeof(*teller));

	if (!teller)
		return -ENOMEM;
	teller->bank = ctx;
	teller->worker = worker;
	teller->random = (uint64_t)(uintptr_t)teller;
	*ret_local = teller;
	return 0;
}

static enum oltp_rc open_to_change(struct teller *teller, uint64_t number,
				   struct account **ret_account)
{
	/* Everything that is written below; all else must stay as it is. */
	static const struct oltp_span spans[] = {
		{ offsetof(struct account, cents), sizeof(int64_t) },
		{ offsetof(struct account, transfers), sizeof(uint64_t) },
	};
	void *record;
	enum oltp_rc rc = oltp_txn_update(teller->worker, teller->bank->accounts, number, spans, 2,
					  &record);

	if (!rc)
		*ret_account = record;
	return rc;
}

static enum oltp_rc transfer(struct teller *teller, const struct transfer *t)
{
	struct account *from, *to;
	enum oltp_rc rc = open_to_change(teller, t->from, &from);

	/* In any order: the engine knows no deadlock. */
	if (!rc)
		rc = open_to_change(teller, t->to, &to);
	/* Not covered: a transaction that changes nothing. */
	if (rc || from->cents < t->cents)
		return rc;
	from->cents -= t->cents;
	from->transfers++;
	to->cents += t->cents;
	to->transfers++;
	return OLTP_OK;
}

static enum oltp_rc teller_run(void *local, uint32_t slot, bool retry)
{
	struct teller *teller = local;
	struct transfer *t = &teller->transfers[slot];
	enum oltp_rc rc;

	if (!retry) {
		t->from = draw(teller, ACCOUNTS);
		t->to = (t->from + 1 + draw(teller, ACCOUNTS - 1)) % ACCOUNTS;
		t->cents = (int64_t)draw(teller, OPENING_CENTS);
	}
	rc = oltp_txn_begin(teller->worker);
	if (!rc)
		rc = transfer(teller, t);
	if (!rc)
		rc = oltp_txn_commit(teller->worker);
	if (rc)
		oltp_txn_abort(teller->worker);
	/* With OLTP_CONFLICT the pool calls again. */
	return rc;
}

static void teller_detach(void *local)
{
	free(local);
}

/* ---- a pool that follows its CPUs ---------------------------------------------------------- */

struct office {
	void *source;
	struct oltp_pool *pool;
	struct oltp_elastic *elastic;
};

static int office_open(struct office *office, struct bank *bank)
{
	/* Two CPUs to be had, one held from the start. */
	static const uint32_t cpus[] = { 0, 1 };
	const struct oltp_workload workload = {
		.attach = teller_attach,
		.run = teller_run,
		.detach = teller_detach,
		.ctx = bank,
	};
	/* no_pin: this is to run on a machine with one CPU, too. */
	const struct oltp_pool_config pool = { .engine = bank->engine, .workload = &workload,
					       .no_pin = true };
	struct oltp_elastic_config elastic = { .ops = &oltp_source_fixed_ops };
	int rc;

	memset(office, 0, sizeof(*office));
	rc = oltp_source_fixed_create(cpus, 2, 1, &office->source);
	if (rc)
		return rc;
	oltp_source_fixed_set_limit(office->source, 1);
	rc = oltp_pool_create(&pool, &office->pool);
	elastic.pool = office->pool;
	elastic.source = office->source;
	if (!rc)
		rc = oltp_elastic_create(&elastic, &office->elastic);
	return rc;
}

static void office_close(struct office *office)
{
	oltp_elastic_destroy(office->elastic);
	oltp_pool_destroy(office->pool);
	oltp_source_fixed_destroy(office->source);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* Runs transactions on that many CPUs until that many more have committed. */
static int office_work(struct office *office, uint32_t cpus, uint64_t transactions)
{
	struct oltp_totals totals;
	uint64_t goal = UINT64_MAX;

	oltp_source_fixed_set_limit(office->source, cpus);
	for (;;) {
		struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
		uint64_t wake_ns;
		int own[2], rc;

		rc = oltp_elastic_run(office->elastic, now_ns(), &wake_ns);
		if (rc)
			return rc;
		oltp_pool_totals(office->pool, &totals);
		if (totals.failed)
			return -EIO;
		if (totals.committed >= goal)
			return 0;
		if (goal == UINT64_MAX && oltp_pool_count(office->pool) == cpus) {
			printf("bank: %u worker%s\n", cpus, cpus > 1 ? "s" : "");
			goal = totals.committed + transactions;
		}
		oltp_elastic_fds(office->elastic, own);
		fds[0].fd = own[0];
		fds[1].fd = own[1];
		if (poll(fds, 2, 10) < 0 && errno != EINTR)
			return -errno;
	}
}

static int work(struct bank *bank)
{
	struct office office;
	int rc = office_open(&office, bank);

	if (!rc)
		rc = office_work(&office, 1, TRANSFERS);
	if (!rc)
		rc = office_work(&office, 2, TRANSFERS);
	if (!rc)
		rc = office_work(&office, 1, TRANSFERS);
	office_close(&office);
	return rc;
}

/* ---- all together -------------------------------------------------------------------------- */

static enum oltp_rc report(struct bank *bank, struct oltp_worker *worker, bool *ret_is_good)
{
	struct statement statements[BRANCHES], sum = { 0 };
	enum oltp_rc rc;

	do
		rc = read_statements(bank, worker, statements);
	while (rc == OLTP_CONFLICT);
	if (rc)
		return rc;
	for (uint32_t branch = 0; branch < BRANCHES; branch++) {
		sum.accounts += statements[branch].accounts;
		sum.cents += statements[branch].cents;
		sum.transfers += statements[branch].transfers;
		sum.overdrawn += statements[branch].overdrawn;
	}
	printf("bank: %" PRIu64 " accounts in %u branches, %" PRId64 " cents, %" PRIu64
	       " overdrawn\n", sum.accounts, BRANCHES, sum.cents, sum.overdrawn);
	/* Each transfer has two sides. */
	*ret_is_good = sum.accounts == ACCOUNTS && sum.cents == (int64_t)ACCOUNTS * OPENING_CENTS &&
		       !sum.overdrawn && sum.transfers % 2 == 0;
	printf("bank: %s\n", *ret_is_good ? "all is there" : "something is wrong");
	return OLTP_OK;
}

static bool run(struct bank *bank)
{
	struct oltp_worker *worker;
	bool is_good = false;
	enum oltp_rc txn_rc;
	int rc = oltp_worker_create(bank->engine, &worker);

	if (rc) {
		fprintf(stderr, "bank: %s\n", strerror(-rc));
		return false;
	}
	txn_rc = open_accounts(bank, worker);
	if (!txn_rc)
		txn_rc = report(bank, worker, &is_good);
	if (!txn_rc)
		rc = work(bank);
	if (!txn_rc && !rc)
		txn_rc = report(bank, worker, &is_good);
	if (txn_rc || rc)
		fprintf(stderr, "bank: %s\n", txn_rc ? oltp_strerror(txn_rc) : strerror(-rc));
	oltp_worker_destroy(worker);
	return is_good && !txn_rc && !rc;
}

int main(void)
{
	struct bank bank;
	int rc = bank_open(&bank);
	bool is_good = false;

	if (rc)
		fprintf(stderr, "bank: %s\n", strerror(-rc));
	else
		is_good = run(&bank);
	oltp_engine_close(bank.engine);
	return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
