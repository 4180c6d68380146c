/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "cli/databases.h"

/* 0, or -1: it is there, and no text of this size. */
static int get(const json_t *entry, const char *key, char *ret, size_t size)
{
	const json_t *member = json_object_get(entry, key);
	const char *text = json_string_value(member);

	if (member && (!text || strlen(text) >= size))
		return -1;
	snprintf(ret, size, "%s", text ? text : "");
	return 0;
}

static int read_entry(const json_t *entry, struct database *ret, const char **ret_wrong)
{
	const struct {
		const char *key;
		char *text;
	} members[] = {
		{ "address", ret->address }, { "node", ret->node }, { "clients", ret->clients },
		{ "password_file", ret->password_file },
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		*ret_wrong = members[i].key;
		if (get(entry, members[i].key, members[i].text, sizeof(ret->address)) != 0)
			return -1;
	}
	return 0;
}

static int find_name(const char *path, const char *name, struct database *ret, char *message,
		     size_t size)
{
	json_error_t error;
	json_t *all = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	const json_t *entry = json_object_get(all, name);
	const char *member = "";
	int rc = -1;

	if (!all && error.line > 0)
		snprintf(message, size, "%s:%d: %s", path, error.line, error.text);
	else if (!all)
		snprintf(message, size, "\"%s\" is no address, and of its name: %s", name,
			 error.text);
	else if (!json_is_object(entry))
		snprintf(message, size, "there is no database \"%s\" in %s", name, path);
	else if (read_entry(entry, ret, &member) != 0)
		snprintf(message, size, "%s: \"%s\" of \"%s\" is no text of at most 255 bytes",
			 path, member, name);
	else
		rc = 0;
	json_decref(all);
	return rc;
}

int database_find(const char *path, const char *what, int is_node, struct database *ret,
		  char *message, size_t size)
{
	struct database found = { .address = "" };

	if (strchr(what, ':')) {
		if (strlen(what) >= sizeof(found.address)) {
			snprintf(message, size, "an address has at most 255 bytes");
			return -1;
		}
		strcpy(is_node ? found.node : found.address, what);
	} else if (find_name(path, what, &found, message, size) != 0) {
		return -1;
	}
	if (!*(is_node ? found.node : found.address)) {
		snprintf(message, size, "%s has no \"%s\" for \"%s\"", path,
			 is_node ? "node" : "address", what);
		return -1;
	}
	*ret = found;
	return 0;
}
