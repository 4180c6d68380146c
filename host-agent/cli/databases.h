/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of databases: a JSON file {"NAME": {"address": A, "node": A, "clients": A,
 * "password_file": PATH}, ...}, of which all members are optional and others are passed over.
 */
#ifndef EBB_CLI_DATABASES_H
#define EBB_CLI_DATABASES_H

#include <stddef.h>

#define DATABASES_DEFAULT	"/etc/ebb/databases.json"

/* A database of the file; members that are not in the file are "". */
struct database {
	char address[256];		/* where it is served */
	char node[256];			/* where its server takes a database over */
	char clients[256];		/* what clients are told who shall go there */
	char password_file[256];
};

/*
 * what: a name, or an address (has a colon), which then is the member that `is_node` says: node,
 * else address.  0, or -1 and a message about what is wrong.
 */
int database_find(const char *path, const char *what, int is_node, struct database *ret,
		  char *message, size_t size);

#endif
