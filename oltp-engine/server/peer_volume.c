// SPDX-License-Identifier: GPL-2.0-or-later
/* See peer_volume.h. */
#include "oltp-engine/server/peer_volume.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "oltp_volume.h"

/* Freed by its owner, or by a look that ends after the owner has left it. */
struct peer_volume {
	char *path;
	pthread_mutex_t lock;
	pthread_cond_t looked;
	/* Under the lock. */
	bool is_looking, is_destroyed;
	uint8_t uuid[GREETING_VOLUME_BYTES];
};

int peer_volume_create(const char *path, struct peer_volume **ret_volume)
{
	struct peer_volume *volume = calloc(1, sizeof(*volume));
	pthread_condattr_t attr;

	if (!volume)
		return -ENOMEM;
	if (path) {
		volume->path = strdup(path);
		if (!volume->path) {
			free(volume);
			return -ENOMEM;
		}
	}
	pthread_mutex_init(&volume->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&volume->looked, &attr);
	pthread_condattr_destroy(&attr);
	*ret_volume = volume;
	return 0;
}

static void volume_free(struct peer_volume *volume)
{
	pthread_cond_destroy(&volume->looked);
	pthread_mutex_destroy(&volume->lock);
	free(volume->path);
	free(volume);
}

static void *look(void *ctx)
{
	struct peer_volume *volume = ctx;
	struct oltp_volume_info info = { 0 };
	bool is_destroyed;

	_Static_assert(sizeof(info.uuid) == GREETING_VOLUME_BYTES, "as sent");
	pthread_setname_np(pthread_self(), "peer-volume");
	if (oltp_volume_list(volume->path, &info, NULL, NULL))
		memset(info.uuid, 0, sizeof(info.uuid));
	pthread_mutex_lock(&volume->lock);
	memcpy(volume->uuid, info.uuid, sizeof(volume->uuid));
	volume->is_looking = false;
	is_destroyed = volume->is_destroyed;
	pthread_cond_signal(&volume->looked);
	pthread_mutex_unlock(&volume->lock);
	if (is_destroyed)
		volume_free(volume);
	return NULL;
}

void peer_volume_look(struct peer_volume *volume)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (!volume->path)
		return;
	pthread_mutex_lock(&volume->lock);
	if (!volume->is_looking) {
		memset(volume->uuid, 0, sizeof(volume->uuid));
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		volume->is_looking = !pthread_create(&thread, &attr, look, volume);
		pthread_attr_destroy(&attr);
	}
	pthread_mutex_unlock(&volume->lock);
}

void peer_volume_uuid(struct peer_volume *volume, uint32_t wait_ms,
		      uint8_t ret[GREETING_VOLUME_BYTES])
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	memset(ret, 0, GREETING_VOLUME_BYTES);
	pthread_mutex_lock(&volume->lock);
	while (volume->is_looking && !rc)
		rc = pthread_cond_timedwait(&volume->looked, &volume->lock, &until);
	if (!volume->is_looking)
		memcpy(ret, volume->uuid, sizeof(volume->uuid));
	pthread_mutex_unlock(&volume->lock);
}

void peer_volume_destroy(struct peer_volume *volume)
{
	bool is_looking;

	if (!volume)
		return;
	pthread_mutex_lock(&volume->lock);
	is_looking = volume->is_looking;
	volume->is_destroyed = true;
	pthread_mutex_unlock(&volume->lock);
	if (!is_looking)
		volume_free(volume);
}
