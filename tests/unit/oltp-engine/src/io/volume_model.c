// SPDX-License-Identifier: GPL-2.0-or-later
/* See volume_model.h. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "volume_model.h"
#include "oltp-engine/src/io/volume_format.h"

#define UNIT		((uint64_t)VOLUME_UNIT_BYTES_MIN)
#define CELL_BYTES	4096u
#define SECTOR_BYTES	512u

uint64_t model_draw(struct volume_model *model, uint64_t below)
{
	model->rng ^= model->rng << 13;
	model->rng ^= model->rng >> 7;
	model->rng ^= model->rng << 17;
	return model->rng % below;
}

static struct model_state *now(struct volume_model *model)
{
	return &model->states[model->n_states - 1];
}

/* What is now may be on disk from here on, or what was before. */
static struct model_state *change(struct volume_model *model)
{
	assert_true(model->n_states < MODEL_STATES);
	model->states[model->n_states] = model->states[model->n_states - 1];
	model->n_states++;
	return now(model);
}

/* That state is on disk for sure, or a later one. */
static void settle(struct volume_model *model, uint32_t state)
{
	model->n_states -= state;
	memmove(model->states, model->states + state, model->n_states * sizeof(model->states[0]));
	for (uint32_t i = 1; i <= model->n_inodes; i++) {
		struct model_inode *inode = &model->inodes[i];

		inode->grown = inode->grown > state ? inode->grown - state : 0;
	}
}

static const char *path_of(uint32_t name)
{
	static char path[32];

	snprintf(path, sizeof(path), "/somewhere/file-%u", name);
	return path;
}

void model_init(struct volume_model *model, struct volume *volume, uint64_t seed)
{
	struct oltp_volume_info info;

	volume_info_read(volume, &info);
	assert_int_equal(info.n_files, 0);
	memset(model, 0, sizeof(*model));
	model->rng = seed * 0x9e3779b97f4a7c15ull + 11;
	model->total_units = (uint32_t)(info.free_bytes / UNIT);
	model->n_states = 1;
	for (uint32_t i = 0; i < MODEL_HELD; i++)
		model->held[i].fd = -1;
}

static bool is_alive(struct volume_model *model, uint32_t inode)
{
	for (uint32_t i = 0; i < MODEL_NAMES; i++) {
		if (now(model)->inodes[i] == inode)
			return true;
	}
	return model->inodes[inode].is_open;
}

static uint32_t units_used(struct volume_model *model)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= model->n_inodes; i++) {
		if (is_alive(model, i))
			n += model->inodes[i].units;
	}
	return n;
}

/* M3. */
static bool has_room(struct volume_model *model, uint32_t inode, uint32_t units)
{
	uint32_t has = model->inodes[inode].units;

	return units <= has || units_used(model) + units - has <= model->total_units;
}

static void set_bytes(struct volume_model *model, uint32_t inode, uint64_t bytes)
{
	struct model_inode *it = &model->inodes[inode];
	struct model_state *state;

	if (bytes <= it->bytes)
		return;
	it->bytes = bytes;
	state = change(model);
	it->grown = model->n_states - 1;
	for (uint32_t i = 0; i < MODEL_NAMES; i++) {
		if (state->inodes[i] == inode)
			state->bytes[i] = bytes;
	}
}

static uint32_t inode_new(struct volume_model *model)
{
	assert_true(model->n_inodes + 1 < MODEL_INODES);
	memset(&model->inodes[++model->n_inodes], 0, sizeof(model->inodes[0]));
	for (uint32_t i = 0; i < MODEL_CELLS; i++)
		model->inodes[model->n_inodes].cells[i].is_any = true;
	return model->n_inodes;
}

static void fill(uint8_t *block, uint32_t stamp)
{
	for (uint32_t i = 0; i < CELL_BYTES / sizeof(stamp); i++)
		memcpy(block + i * sizeof(stamp), &(uint32_t){ stamp * 2654435761u + i },
		       sizeof(stamp));
}

static void cell_synced(struct model_cell *cell)
{
	if (!cell->n)
		return;
	cell->stamps[0] = cell->stamps[cell->n - 1];
	cell->n = 1;
	cell->is_any = false;
}

static void inode_synced(struct volume_model *model, uint32_t inode)
{
	for (uint32_t i = 0; i < MODEL_CELLS; i++)
		cell_synced(&model->inodes[inode].cells[i]);
}

/* Every other block is written from a place that the device cannot read from. */
static bool write_cell(struct volume_model *model, struct volume *volume, int fd, uint32_t inode,
		       bool sync)
{
	static _Alignas(4096) uint8_t room[CELL_BYTES + 8];
	uint32_t c = (uint32_t)model_draw(model, MODEL_CELLS), stamp = ++model->stamp;
	struct model_cell *cell = &model->inodes[inode].cells[c];
	uint8_t *block = room + (stamp % 2 ? 8 : 0);
	struct iovec iov = { block, CELL_BYTES };
	ssize_t n;

	if (cell->n == MODEL_STAMPS)
		return true;
	fill(block, stamp);
	if (!has_room(model, inode, c + 1)) {
		model->n_full++;
		n = (sync ? volume_ops.pwritev_sync : volume_ops.pwritev)(volume, fd, &iov, 1,
									 c * UNIT);
		return n == -ENOSPC;
	}
	if (c + 1 > model->inodes[inode].units)
		model->inodes[inode].units = c + 1;
	cell->stamps[cell->n++] = stamp;
	set_bytes(model, inode, c * UNIT + CELL_BYTES);
	n = (sync ? volume_ops.pwritev_sync : volume_ops.pwritev)(volume, fd, &iov, 1, c * UNIT);
	if (n != CELL_BYTES)
		return false;
	if (sync) {
		cell_synced(cell);
		settle(model, model->inodes[inode].grown);
	}
	return true;
}

static bool read_cell(struct volume_model *model, struct volume *volume, int fd, uint32_t inode)
{
	static _Alignas(4096) uint8_t block[CELL_BYTES + 1], expected[CELL_BYTES];
	uint32_t c = (uint32_t)model_draw(model, MODEL_CELLS);
	const struct model_inode *it = &model->inodes[inode];
	uint8_t *at = block + model_draw(model, 2);
	ssize_t n = volume_ops.pread(volume, fd, at, CELL_BYTES, c * UNIT);

	if (n < 0)
		return false;
	assert_int_equal(n, it->bytes >= c * UNIT + CELL_BYTES ? CELL_BYTES :
			    it->bytes > c * UNIT ? it->bytes - c * UNIT : 0);
	if (n != CELL_BYTES || !it->cells[c].n)
		return true;
	fill(expected, it->cells[c].stamps[it->cells[c].n - 1]);
	assert_memory_equal(at, expected, CELL_BYTES);
	return true;
}

static bool sync_file(struct volume_model *model, struct volume *volume, int fd, uint32_t inode)
{
	if (volume_ops.fdatasync(volume, fd))
		return false;
	inode_synced(model, inode);
	settle(model, model->inodes[inode].grown);
	return true;
}

static bool reserve(struct volume_model *model, struct volume *volume, int fd, uint32_t inode)
{
	uint32_t units = 1 + (uint32_t)model_draw(model, MODEL_CELLS);
	bool fits = has_room(model, inode, units);
	int rc;

	if (fits) {
		if (units > model->inodes[inode].units)
			model->inodes[inode].units = units;
		set_bytes(model, inode, units * UNIT);
	}
	model->n_full += !fits;
	rc = volume_ops.fallocate(volume, fd, units * UNIT);
	return rc == (fits ? 0 : -ENOSPC);
}

static bool use_fd(struct volume_model *model, struct volume *volume, int fd, uint32_t inode)
{
	switch (model_draw(model, 6)) {
	case 0:
	case 1:
		return write_cell(model, volume, fd, inode, false);
	case 2:
		return write_cell(model, volume, fd, inode, true);
	case 3:
		return read_cell(model, volume, fd, inode);
	case 4:
		return sync_file(model, volume, fd, inode);
	default:
		return reserve(model, volume, fd, inode);
	}
}

/* Is made if it is not there, now and then made empty, used, and closed or held. */
static bool use_file(struct volume_model *model, struct volume *volume, uint32_t name)
{
	bool cut = !model_draw(model, 8), is_there = now(model)->inodes[name];
	struct model_held *held = &model->held[model_draw(model, MODEL_HELD)];
	uint32_t inode;
	bool is_well;
	int fd;

	/* A file that is open and made empty is not what this model is about. */
	cut = cut && is_there && !model->inodes[now(model)->inodes[name]].is_open;
	if (!is_there || cut) {
		inode = inode_new(model);
		change(model)->inodes[name] = inode;
		now(model)->bytes[name] = 0;
	}
	inode = now(model)->inodes[name];
	fd = volume_ops.open(volume, path_of(name), O_RDWR | (is_there ? 0 : O_CREAT | O_EXCL) |
						    (cut ? O_TRUNC : 0), 0600);
	if (fd < 0)
		return false;
	is_well = use_fd(model, volume, fd, inode);
	if (held->fd < 0 && !model->inodes[inode].is_open && !model_draw(model, 4)) {
		*held = (struct model_held){ fd, inode };
		model->inodes[inode].is_open = true;
		return is_well;
	}
	volume_ops.close(volume, fd);
	return is_well;
}

static bool rename_file(struct volume_model *model, struct volume *volume, uint32_t from)
{
	uint32_t to = (uint32_t)model_draw(model, MODEL_NAMES);
	char path[32];
	int rc;

	strcpy(path, path_of(from));
	if (!now(model)->inodes[from])
		return volume_ops.rename(volume, path, path_of(to)) == -ENOENT;
	if (from != to) {
		struct model_state *state = change(model);

		state->inodes[to] = state->inodes[from];
		state->bytes[to] = state->bytes[from];
		state->inodes[from] = 0;
		state->bytes[from] = 0;
	}
	rc = volume_ops.rename(volume, path, path_of(to));
	return !rc;
}

static bool remove_file(struct volume_model *model, struct volume *volume, uint32_t name)
{
	if (!now(model)->inodes[name])
		return volume_ops.unlink(volume, path_of(name)) == -ENOENT;
	change(model)->inodes[name] = 0;
	now(model)->bytes[name] = 0;
	return !volume_ops.unlink(volume, path_of(name));
}

void model_remove(struct volume_model *model, struct volume *volume)
{
	uint32_t name = 0, n = model->n_states;

	while (name < MODEL_NAMES && volume_ops.unlink(volume, path_of(name)))
		name++;
	for (uint32_t i = 0; name < MODEL_NAMES && i < n; i++) {
		struct model_state *state = change(model);

		*state = model->states[i];
		state->inodes[name] = 0;
		state->bytes[name] = 0;
	}
}

static void drop_held(struct volume_model *model, struct volume *volume, struct model_held *held)
{
	volume_ops.close(volume, held->fd);
	model->inodes[held->inode].is_open = false;
	held->fd = -1;
}

static bool use_held(struct volume_model *model, struct volume *volume)
{
	struct model_held *held = &model->held[model_draw(model, MODEL_HELD)];

	if (held->fd < 0)
		return true;
	if (!model_draw(model, 4)) {
		drop_held(model, volume, held);
		return true;
	}
	return use_fd(model, volume, held->fd, held->inode);
}

static bool sync_names(struct volume_model *model, struct volume *volume)
{
	if (volume_ops.sync_dir(volume, "/somewhere"))
		return false;
	settle(model, model->n_states - 1);
	return true;
}

bool model_step(struct volume_model *model, struct volume *volume)
{
	uint32_t name = (uint32_t)model_draw(model, MODEL_NAMES);
	struct oltp_volume_info info;
	bool is_well;

	switch (model_draw(model, 10)) {
	case 0:
		is_well = remove_file(model, volume, name);
		break;
	case 1:
		is_well = rename_file(model, volume, name);
		break;
	case 2:
		is_well = sync_names(model, volume);
		break;
	case 3:
	case 4:
		is_well = use_held(model, volume);
		break;
	default:
		is_well = use_file(model, volume, name);
		break;
	}
	if (!is_well)
		return false;
	volume_info_read(volume, &info);
	assert_int_equal(info.free_bytes / UNIT, model->total_units - units_used(model));
	return true;
}

void model_end(struct volume_model *model, struct volume *volume)
{
	for (uint32_t i = 0; i < MODEL_HELD; i++) {
		if (model->held[i].fd >= 0)
			drop_held(model, volume, &model->held[i]);
	}
}

struct found {
	bool is_there[MODEL_NAMES];
	uint64_t bytes[MODEL_NAMES];
	uint32_t units[MODEL_NAMES];
};

static void find(void *ctx, const struct oltp_volume_extent *extent)
{
	struct found *found = ctx;
	uint32_t name;

	assert_int_equal(sscanf(extent->name, "file-%u", &name), 1);
	assert_true(name < MODEL_NAMES);
	found->is_there[name] = true;
	found->bytes[name] = extent->file_bytes;
	found->units[name] += (uint32_t)(extent->bytes / UNIT);
}

static bool sector_is_of(const struct model_cell *cell, const uint8_t *sector, uint32_t s)
{
	uint8_t expected[CELL_BYTES];

	for (uint32_t i = 0; i < cell->n; i++) {
		fill(expected, cell->stamps[i]);
		if (!memcmp(sector, expected + (size_t)s * SECTOR_BYTES, SECTOR_BYTES))
			return true;
	}
	return cell->is_any;
}

/* M2 for the file under that name, if it is this inode. */
static bool bytes_are_of(struct volume_model *model, struct volume *volume, uint32_t name,
			 uint32_t inode, uint64_t bytes)
{
	static _Alignas(4096) uint8_t block[CELL_BYTES];
	int fd = volume_ops.open(volume, path_of(name), O_RDONLY, 0);
	bool are = true;

	assert_true(fd >= 0);
	for (uint32_t c = 0; are && c < MODEL_CELLS && c * UNIT + CELL_BYTES <= bytes; c++) {
		assert_int_equal(volume_ops.pread(volume, fd, block, CELL_BYTES, c * UNIT),
				 CELL_BYTES);
		for (uint32_t s = 0; are && s < CELL_BYTES / SECTOR_BYTES; s++)
			are = sector_is_of(&model->inodes[inode].cells[c],
					   block + (size_t)s * SECTOR_BYTES, s);
	}
	volume_ops.close(volume, fd);
	return are;
}

static bool is_state(struct volume_model *model, struct volume *volume, const struct found *found,
		     const struct model_state *state)
{
	for (uint32_t i = 0; i < MODEL_NAMES; i++) {
		if (found->is_there[i] != (state->inodes[i] != 0) ||
		    found->bytes[i] != state->bytes[i])
			return false;
	}
	for (uint32_t i = 0; i < MODEL_NAMES; i++) {
		if (state->inodes[i] && !bytes_are_of(model, volume, i, state->inodes[i],
						      state->bytes[i]))
			return false;
	}
	return true;
}

/* What is read now of the cells of a file is what it has. */
static void adopt_cells(struct volume_model *model, struct volume *volume, uint32_t name,
			struct model_inode *inode)
{
	static _Alignas(4096) uint8_t block[CELL_BYTES], expected[CELL_BYTES];
	int fd = volume_ops.open(volume, path_of(name), O_RDONLY, 0);

	(void)model;
	for (uint32_t c = 0; c < MODEL_CELLS; c++) {
		struct model_cell *cell = &inode->cells[c];
		bool is_whole = false;

		if (c * UNIT + CELL_BYTES <= inode->bytes)
			volume_ops.pread(volume, fd, block, CELL_BYTES, c * UNIT);
		for (uint32_t i = 0; !is_whole && i < cell->n; i++) {
			fill(expected, cell->stamps[i]);
			is_whole = c * UNIT + CELL_BYTES <= inode->bytes &&
				   !memcmp(block, expected, CELL_BYTES);
			if (is_whole)
				cell->stamps[0] = cell->stamps[i];
		}
		/* Opening has synced it. A torn one is of no use to the model. */
		cell->is_any = !is_whole;
		cell->n = is_whole;
	}
	volume_ops.close(volume, fd);
}

void model_adopt(struct volume_model *model, struct volume *volume)
{
	struct found found = { 0 };
	struct model_state state;
	uint32_t at = model->n_states;

	volume_extents(volume, find, &found);
	while (at && !is_state(model, volume, &found, &model->states[at - 1]))
		at--;
	assert_true(at);	/* M1 and M2 */
	state = model->states[at - 1];
	model->states[0] = state;
	model->n_states = 1;
	for (uint32_t i = 0; i < MODEL_HELD; i++)
		model->held[i].fd = -1;
	for (uint32_t i = 1; i <= model->n_inodes; i++) {
		model->inodes[i].is_open = false;
		model->inodes[i].grown = 0;
	}
	for (uint32_t i = 0; i < MODEL_NAMES; i++) {
		struct model_inode *inode = &model->inodes[state.inodes[i]];

		if (!state.inodes[i])
			continue;
		inode->bytes = state.bytes[i];
		inode->units = found.units[i];
		adopt_cells(model, volume, i, inode);
	}
}
