/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding cgroups. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/emulated/cgroup.h"
#include "util/fs.h"

/* Is word one of the comma separated words of list? */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (list && *list) {
		size_t n = strcspn(list, ",");

		if (n == len && memcmp(list, word, len) == 0)
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

/* mountinfo writes blanks and backslashes of paths as \ooo. */
static int copy_path(char *to, size_t size, const char *from)
{
	size_t n = 0;

	while (*from) {
		char c = *from++;

		if (c == '\\' && strspn(from, "01234567") >= 3) {
			c = (from[0] - '0') << 6 | (from[1] - '0') << 3 | (from[2] - '0');
			from += 3;
		}
		if (n + 1 >= size)
			return -ENAMETOOLONG;
		to[n++] = c;
	}
	to[n] = '\0';
	return 0;
}

/* A line: id parent maj:min root mount-point options [optional ...] - type source options */
static int parse_line(char *line, struct ebb_cgroup *ret, bool *ret_is_whole)
{
	char *word[6], *save = NULL, *type, *rest = strstr(line, " - ");
	const char *options = NULL;
	int rc, num = 0;

	if (!rest)
		return -EINVAL;
	*rest = '\0';
	for (char *w = strtok_r(line, " ", &save); w && num < 6; w = strtok_r(NULL, " ", &save))
		word[num++] = w;
	if (num < 6)
		return -EINVAL;
	type = strtok_r(rest + 3, " ", &save);
	if (strtok_r(NULL, " ", &save))
		options = strtok_r(NULL, " ", &save);
	if (type && strcmp(type, "cgroup") == 0 && has_word(options, "cpu"))
		ret->version = 1;
	else if (type && strcmp(type, "cgroup2") == 0)
		ret->version = 2;
	else
		return -ENOENT;
	*ret_is_whole = strcmp(word[3], "/") == 0;
	rc = copy_path(ret->root, sizeof(ret->root), word[3]);
	return rc < 0 ? rc : copy_path(ret->mount, sizeof(ret->mount), word[4]);
}

int ebb_cgroup_find(const char *mountinfo, struct ebb_cgroup *ret, struct ebb_err *err)
{
	char *text = strdup(mountinfo), *save = NULL;
	int best = 0;

	if (!text)
		return -ENOMEM;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct ebb_cgroup cg;
		bool is_whole;
		int score;

		if (parse_line(line, &cg, &is_whole) < 0)
			continue;
		score = (cg.version == 1 ? 4 : 1) + is_whole;
		if (score > best) {
			best = score;
			*ret = cg;
		}
	}
	free(text);
	if (!best)
		return ebb_err_set(err, -ENOENT,
				   "no cgroup hierarchy with the cpu controller is mounted");
	return 0;
}

int ebb_cgroup_folder(const struct ebb_cgroup *cg, const char *text, const char *controller,
		      char *ret_path, size_t size)
{
	size_t root_len = strcmp(cg->root, "/") == 0 ? 0 : strlen(cg->root);

	while (*text) {
		size_t len = strcspn(text, "\n");
		const char *end = text + len, *list = memchr(text, ':', len);
		const char *path = list ? memchr(list + 1, ':', end - list - 1) : NULL;
		char names[128];

		text = *end ? end + 1 : end;
		if (!path || path - list > (long)sizeof(names))
			continue;
		snprintf(names, sizeof(names), "%.*s", (int)(path - list - 1), list + 1);
		if (cg->version == 1 ? !has_word(names, controller) : names[0] != '\0')
			continue;
		path++;
		if ((size_t)(end - path) < root_len || memcmp(path, cg->root, root_len) != 0)
			return -ENOENT;
		path += root_len;
		if ((size_t)snprintf(ret_path, size, "%s%.*s", cg->mount, (int)(end - path),
				     path) >= size)
			return -ENAMETOOLONG;
		return 0;
	}
	return -ENOENT;
}

int ebb_cgroup_of_thread(const struct ebb_cgroup *cg, pid_t tid, const char *controller,
			 char *ret_path, size_t size)
{
	char file[64], text[8192];
	int rc;

	snprintf(file, sizeof(file), "/proc/%d/cgroup", tid);
	rc = ebb_fs_read(file, text, sizeof(text), NULL);
	if (rc == -ENOENT)
		return -ESRCH;
	return rc < 0 ? rc : ebb_cgroup_folder(cg, text, controller, ret_path, size);
}
