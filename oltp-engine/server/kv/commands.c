// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of commands: what there is, and how it is found by name. */
#include <ctype.h>
#include <string.h>

#include "oltp-engine/server/kv/private.h"

#define NAME_MAX_BYTES	16u

#define READ	(CMD_READ | CMD_TXN)
#define WRITE	(CMD_WRITE | CMD_TXN)
#define GROW	(CMD_WRITE | CMD_TXN | CMD_DENY_OOM)

/* Name, arity, flags; first key, last key, step; group, version of Redis that had it first. */
const struct command kv_commands[] = {
	{ "GET", 2, READ | CMD_FAST, 1, 1, 1, "string", "1.0.0",
	  "Returns the value of a string.", cmd_get },
	{ "SET", -3, GROW, 1, 1, 1, "string", "1.0.0",
	  "Sets a string, whatever the key was before.", cmd_set },
	{ "SETNX", 3, GROW | CMD_FAST, 1, 1, 1, "string", "1.0.0",
	  "Sets a string if the key is not there.", cmd_setnx },
	{ "GETSET", 3, GROW | CMD_FAST, 1, 1, 1, "string", "1.0.0",
	  "Sets a string and returns the value before.", cmd_getset },
	{ "GETDEL", 2, WRITE | CMD_FAST, 1, 1, 1, "string", "6.2.0",
	  "Returns the value of a string and removes the key.", cmd_getdel },
	{ "MGET", -2, READ | CMD_FAST, 1, -1, 1, "string", "1.0.0",
	  "Returns the values of strings.", cmd_mget },
	{ "MSET", -3, GROW, 1, -1, 2, "string", "1.0.1",
	  "Sets strings, all at once.", cmd_mset },
	{ "MSETNX", -3, GROW, 1, -1, 2, "string", "1.0.1",
	  "Sets strings if none of the keys is there.", cmd_msetnx },
	{ "APPEND", 3, GROW | CMD_FAST, 1, 1, 1, "string", "2.0.0",
	  "Appends to a string.", cmd_append },
	{ "STRLEN", 2, READ | CMD_FAST, 1, 1, 1, "string", "2.2.0",
	  "Returns the length of a string.", cmd_strlen },
	{ "GETRANGE", 4, READ, 1, 1, 1, "string", "2.4.0",
	  "Returns a part of a string.", cmd_getrange },
	{ "SUBSTR", 4, READ, 1, 1, 1, "string", "1.0.0",
	  "Returns a part of a string.", cmd_getrange },
	{ "SETRANGE", 4, GROW, 1, 1, 1, "string", "2.2.0",
	  "Overwrites a part of a string.", cmd_setrange },
	{ "INCR", 2, GROW | CMD_FAST, 1, 1, 1, "string", "1.0.0",
	  "Adds 1 to a number.", cmd_incr },
	{ "DECR", 2, GROW | CMD_FAST, 1, 1, 1, "string", "1.0.0",
	  "Subtracts 1 from a number.", cmd_decr },
	{ "INCRBY", 3, GROW | CMD_FAST, 1, 1, 1, "string", "1.0.0",
	  "Adds to a number.", cmd_incrby },
	{ "DECRBY", 3, GROW | CMD_FAST, 1, 1, 1, "string", "1.0.0",
	  "Subtracts from a number.", cmd_decrby },
	{ "INCRBYFLOAT", 3, GROW | CMD_FAST, 1, 1, 1, "string", "2.6.0",
	  "Adds to a floating point number.", cmd_incrbyfloat },
	{ "DEL", -2, WRITE, 1, -1, 1, "generic", "1.0.0",
	  "Removes keys.", cmd_del },
	{ "UNLINK", -2, WRITE | CMD_FAST, 1, -1, 1, "generic", "4.0.0",
	  "Removes keys.", cmd_del },
	{ "EXISTS", -2, READ | CMD_FAST, 1, -1, 1, "generic", "1.0.0",
	  "Counts the keys that are there.", cmd_exists },
	{ "TOUCH", -2, READ | CMD_FAST, 1, -1, 1, "generic", "3.2.1",
	  "Counts the keys that are there.", cmd_exists },
	{ "TYPE", 2, READ | CMD_FAST, 1, 1, 1, "generic", "1.0.0",
	  "Returns the type of a key.", cmd_type },
	{ "DBSIZE", 1, READ | CMD_FAST | CMD_ALL_KEYS, 0, 0, 0, "server", "1.0.0",
	  "Returns the number of keys.", cmd_dbsize },
	{ "RANDOMKEY", 1, READ | CMD_ALL_KEYS, 0, 0, 0, "generic", "1.0.0",
	  "Returns some key.", cmd_randomkey },
	{ "KEYS", 2, READ | CMD_ALL_KEYS, 0, 0, 0, "generic", "1.0.0",
	  "Returns the keys that fit a pattern, if one transaction can read all keys; see SCAN.",
	  cmd_keys },
	{ "SCAN", -2, READ | CMD_ALL_KEYS, 0, 0, 0, "generic", "2.8.0",
	  "Returns some keys, and where to go on.", cmd_scan },
	{ "HSET", -4, GROW | CMD_FAST, 1, 1, 1, "hash", "2.0.0",
	  "Sets fields of a hash.", cmd_hset },
	{ "HMSET", -4, GROW | CMD_FAST, 1, 1, 1, "hash", "2.0.0",
	  "Sets fields of a hash.", cmd_hmset },
	{ "HSETNX", 4, GROW | CMD_FAST, 1, 1, 1, "hash", "2.0.0",
	  "Sets a field of a hash if it is not there.", cmd_hsetnx },
	{ "HGET", 3, READ | CMD_FAST, 1, 1, 1, "hash", "2.0.0",
	  "Returns the value of a field.", cmd_hget },
	{ "HMGET", -3, READ | CMD_FAST, 1, 1, 1, "hash", "2.0.0",
	  "Returns the values of fields.", cmd_hmget },
	{ "HGETALL", 2, READ, 1, 1, 1, "hash", "2.0.0",
	  "Returns all fields of a hash with their values.", cmd_hgetall },
	{ "HKEYS", 2, READ, 1, 1, 1, "hash", "2.0.0",
	  "Returns the names of all fields of a hash.", cmd_hkeys },
	{ "HVALS", 2, READ, 1, 1, 1, "hash", "2.0.0",
	  "Returns the values of all fields of a hash.", cmd_hvals },
	{ "HLEN", 2, READ | CMD_FAST, 1, 1, 1, "hash", "2.0.0",
	  "Returns the number of fields of a hash.", cmd_hlen },
	{ "HDEL", -3, WRITE | CMD_FAST, 1, 1, 1, "hash", "2.0.0",
	  "Removes fields of a hash.", cmd_hdel },
	{ "HEXISTS", 3, READ | CMD_FAST, 1, 1, 1, "hash", "2.0.0",
	  "Says whether a hash has a field.", cmd_hexists },
	{ "HSTRLEN", 3, READ | CMD_FAST, 1, 1, 1, "hash", "3.2.0",
	  "Returns the length of a field's value.", cmd_hstrlen },
	{ "HINCRBY", 4, GROW | CMD_FAST, 1, 1, 1, "hash", "2.0.0",
	  "Adds to a number in a field.", cmd_hincrby },
	{ "HINCRBYFLOAT", 4, GROW | CMD_FAST, 1, 1, 1, "hash", "2.6.0",
	  "Adds to a floating point number in a field.", cmd_hincrbyfloat },
	{ "HSCAN", -3, READ, 1, 1, 1, "hash", "2.8.0",
	  "Returns some fields of a hash, and where to go on.", cmd_hscan },
	{ "FLUSHALL", -1, WRITE | CMD_NO_MULTI | CMD_ALL_KEYS, 0, 0, 0, "server", "1.0.0",
	  "Removes all keys, some at a time.", cmd_flush },
	{ "FLUSHDB", -1, WRITE | CMD_NO_MULTI | CMD_ALL_KEYS, 0, 0, 0, "server", "1.0.0",
	  "Removes all keys, some at a time.", cmd_flush },
	{ "FCALL", -3, GROW, 0, 0, 0, "scripting", "7.0.0",
	  "Runs a procedure of the server in one transaction.", cmd_fcall },
	{ "FCALL_RO", -3, READ, 0, 0, 0, "scripting", "7.0.0",
	  "Runs a procedure of the server that only reads.", cmd_fcall_ro },
	{ "MULTI", 1, CMD_FAST | CMD_AT_ONCE, 0, 0, 0, "transactions", "1.2.0",
	  "Begins to queue commands for a transaction.", cmd_multi },
	{ "EXEC", 1, CMD_TXN | CMD_AT_ONCE, 0, 0, 0, "transactions", "1.2.0",
	  "Runs what was queued in one transaction.", cmd_exec },
	{ "DISCARD", 1, CMD_FAST | CMD_AT_ONCE, 0, 0, 0, "transactions", "2.0.0",
	  "Drops what was queued.", cmd_discard },
	{ "WATCH", -2, CMD_TXN | CMD_FAST | CMD_AT_ONCE, 1, -1, 1, "transactions", "2.2.0",
	  "EXEC does nothing if one of these keys has changed.", cmd_watch },
	{ "UNWATCH", 1, CMD_FAST, 0, 0, 0, "transactions", "2.2.0",
	  "Forgets the keys of WATCH.", cmd_unwatch },
	{ "PING", -1, CMD_FAST, 0, 0, 0, "connection", "1.0.0",
	  "Answers.", cmd_ping },
	{ "ECHO", 2, CMD_FAST, 0, 0, 0, "connection", "1.0.0",
	  "Returns what it was given.", cmd_echo },
	{ "HELLO", -1, CMD_FAST | CMD_NO_AUTH | CMD_NO_MULTI, 0, 0, 0, "connection", "6.0.0",
	  "Chooses the version of the protocol.", cmd_hello },
	{ "AUTH", -2, CMD_FAST | CMD_NO_AUTH | CMD_NO_MULTI | CMD_RESTRICTED, 0, 0, 0,
	  "connection", "1.0.0",
	  "Authenticates the connection.", cmd_auth },
	{ "SELECT", 2, CMD_FAST, 0, 0, 0, "connection", "1.0.0",
	  "Chooses the database, of which there is one: 0.", cmd_select },
	{ "QUIT", -1, CMD_FAST | CMD_NO_AUTH | CMD_AT_ONCE | CMD_RESTRICTED, 0, 0, 0,
	  "connection", "1.0.0",
	  "Closes the connection.", cmd_quit },
	{ "RESET", 1, CMD_FAST | CMD_NO_AUTH | CMD_AT_ONCE, 0, 0, 0, "connection", "6.2.0",
	  "Makes the connection like a new one.", cmd_reset },
	{ "CLIENT", -2, 0, 0, 0, 0, "connection", "2.4.0",
	  "ID, SETNAME, GETNAME, SETINFO, LIST and INFO of connections.", cmd_client },
	{ "INFO", -1, 0, 0, 0, 0, "server", "1.0.0",
	  "Returns figures of the server.", cmd_info },
	{ "CONFIG", -2, CMD_ADMIN, 0, 0, 0, "server", "2.0.0",
	  "GET: returns options of the server.", cmd_config },
	{ "COMMAND", -1, 0, 0, 0, 0, "server", "2.8.13",
	  "COUNT, INFO, DOCS and LIST of the commands there are.", cmd_command },
	{ "RELOCATE", -2, CMD_ADMIN | CMD_NO_MULTI | CMD_RESTRICTED, 0, 0, 0, "server", "1.0.0",
	  "TO and CANCEL move the database to another node and back, STATUS says how that goes.",
	  cmd_relocate },
	{ "TIME", 1, CMD_FAST, 0, 0, 0, "server", "2.6.0",
	  "Returns the time of the server.", cmd_time },
};

const uint32_t kv_n_commands = sizeof(kv_commands) / sizeof(kv_commands[0]);

_Static_assert(sizeof(kv_commands) / sizeof(kv_commands[0]) < KV_TABLE_SLOTS / 2, "mostly empty");

/* A name in upper case as two numbers; a word that is longer than every name is none of them. */
struct packed {
	uint64_t words[2];
};

static bool pack(const char *name, uint32_t n, struct packed *ret)
{
	char upper[NAME_MAX_BYTES] = { 0 };

	if (n > NAME_MAX_BYTES)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		char c = name[i];

		if (!c)	/* the bytes behind a name are zeros */
			return false;
		upper[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
	}
	memcpy(ret, upper, sizeof(*ret));
	return true;
}

static uint32_t slot_of(const struct packed *name)
{
	uint64_t mixed = (name->words[0] ^ name->words[1] * 31) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(mixed >> 32) % KV_TABLE_SLOTS;
}

void commands_index(struct kv *kv)
{
	for (uint32_t i = 0; i < kv_n_commands; i++) {
		const char *name = kv_commands[i].name;
		struct packed packed;
		uint32_t slot;

		pack(name, (uint32_t)strlen(name), &packed);
		for (slot = slot_of(&packed); kv->table[slot]; slot = (slot + 1) % KV_TABLE_SLOTS)
			;
		kv->table[slot] = &kv_commands[i];
		kv->names[slot][0] = packed.words[0];
		kv->names[slot][1] = packed.words[1];
	}
}

const struct command *command_find(const struct kv *kv, const struct resp_arg *name)
{
	struct packed packed;

	if (!pack(name->bytes, name->n, &packed))
		return NULL;
	for (uint32_t slot = slot_of(&packed); kv->table[slot];
	     slot = (slot + 1) % KV_TABLE_SLOTS) {
		if (kv->names[slot][0] == packed.words[0] && kv->names[slot][1] == packed.words[1])
			return kv->table[slot];
	}
	return NULL;
}

const char *command_lower(const struct command *command, char *to)
{
	uint32_t i;

	for (i = 0; command->name[i]; i++)
		to[i] = (char)tolower((unsigned char)command->name[i]);
	to[i] = '\0';
	return to;
}
