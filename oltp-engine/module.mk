# SPDX-License-Identifier: GPL-2.0-or-later
#
# The OLTP engine, its benchmark, its server and their tests.

# Rooms from the bottom up: each includes only its own headers and those of rooms before it.
OLTP_SRC := $(addprefix oltp-engine/src/base/,baseline.c checksum.c epoch.c hist.c mem.c) \
	$(addprefix oltp-engine/src/io/,io_files.c io_queue.c volume.c volume_files.c volume_make.c \
		volume_table.c) \
	$(addprefix oltp-engine/src/index/,index.c node_pool.c tree.c) \
	$(addprefix oltp-engine/src/storage/,lock.c room.c slots.c storage.c) \
	$(addprefix oltp-engine/src/txn/,node_set.c ordered.c promise.c revoked.c txn.c txn_rows.c \
		txn_scan.c worker.c) \
	$(addprefix oltp-engine/src/log/,log.c log_append.c log_buffer.c log_decode.c log_files.c \
		log_thread.c log_watch.c) \
	$(addprefix oltp-engine/src/cold/,admit.c cold.c cold_checkpoint.c cold_compact.c cold_file.c \
		fetch.c fetch_buffered.c place.c reread.c scan.c) \
	$(addprefix oltp-engine/src/recovery/,checkpoint.c checkpoint_directory.c checkpoint_file.c \
		checkpoint_pace.c lazy_load.c recover.c recover_lazy.c recover_plan.c recover_read.c recover_redo.c restore.c) \
	$(addprefix oltp-engine/src/memory/,blocks_native.c cutoff.c division.c evict.c idle.c make_room.c \
		manager.c memory.c oldest.c recency.c recency_sample.c rounds.c shrink.c uses.c) \
	$(addprefix oltp-engine/src/pool/,arrivals.c worker_figures.c worker_pool.c worker_thread.c) \
	$(addprefix oltp-engine/src/elastic/,elastic_policy.c elastic_queue.c elastic_search.c \
		worker_elastic.c worker_mover.c worker_source_fixed.c) \
	$(addprefix oltp-engine/src/,engine.c)
OLTP_TPCC_SRC := $(addprefix oltp-engine/bench/tpcc/,tpcc.c tpcc_check.c tpcc_customer.c tpcc_delivery.c \
	tpcc_load.c tpcc_new_order.c tpcc_options.c tpcc_order_status.c tpcc_payment.c tpcc_random.c tpcc_recycle.c \
	tpcc_stock_level.c tpcc_worker.c tpcc_workload.c)
OLTP_YCSB_SRC := $(addprefix oltp-engine/bench/ycsb/,cdb.c growth.c uniform.c ycsb.c ycsb_adopt.c ycsb_draw.c \
	ycsb_load.c ycsb_options.c ycsb_run.c ycsb_verify.c ycsb_workload.c zipf.c)
OLTP_BENCH_SRC := $(addprefix oltp-engine/bench/,accept.c audit.c block_times.c classes.c disk_probe.c fields.c limits.c \
	load.c log_figures.c options.c options_log.c progress.c recovery.c report.c session.c session_open.c \
	unix_listen.c volume.c warm.c workload.c) $(OLTP_YCSB_SRC) \
	$(OLTP_TPCC_SRC)
OLTP_DIST_SRC := $(addprefix oltp-engine/dist/,book.c client.c conn.c coord.c keeper.c log.c \
	message.c node.c node_ycsb.c part.c recover.c redo.c session.c tenants.c)
OLTP_RELOCATE_SRC := $(addprefix oltp-engine/relocate/,\
		drain.c \
		gate.c \
		precopy.c \
		units.c \
		units_sync.c \
		wire.c \
	)
OLTP_CHECK_SRC := $(addprefix oltp-engine/check/,check.c cycles.c graph.c history.c history_print.c \
	lists.c lives.c map.c order.c record.c record_crash.c record_events.c record_output.c record_plan.c report.c report_json.c \
	row_edges.c rows.c touches.c versions.c)
OLTP_LOAD_SRC := $(addprefix oltp-engine/load/decide/,\
		arrivals.c \
		books.c \
		counts.c \
		figures.c \
		mix.c \
		pool.c \
		queue.c \
		tpcc.c \
		tpcc_check.c \
	) \
	$(addprefix oltp-engine/load/wire/,\
		address.c \
		bytes.c \
		conn.c \
		info.c \
		push.c \
		reply.c \
	) \
	$(addprefix oltp-engine/load/run/,\
		commands.c \
		exchange.c \
		observe.c \
		procedures.c \
		report.c \
		run.c \
	) \
	oltp-engine/load/options.c
OLTP_KV_SRC := $(addprefix oltp-engine/server/kv/,\
		admin.c \
		client.c \
		cold_reads.c \
		commands.c \
		common.c \
		connection.c \
		counters.c \
		fcall.c \
		flush.c \
		gate.c \
		hashes.c \
		introspect.c \
		keys.c \
		keyspace.c \
		kv.c \
		layout.c \
		match.c \
		meta.c \
		multi.c \
		number.c \
		page.c \
		peer.c \
		reap.c \
		record.c \
		relocate.c \
		run.c \
		scan.c \
		session.c \
		strings.c \
		subcommand.c \
		unit.c \
	) \
	$(addprefix oltp-engine/server/kv/tpcc/,\
		check.c \
		delivery.c \
		load.c \
		new_order.c \
		order_status.c \
		payment.c \
		stock_level.c \
		tpcc.c \
	)
OLTP_FENCE_SRC := $(addprefix oltp-engine/server/fence/,\
		desk.c \
		lines.c \
		remote.c \
		secret.c \
		talk.c \
		volumed.c \
	)
OLTP_MOVE_SRC := $(addprefix oltp-engine/server/move/,\
		act.c \
		beat.c \
		channel.c \
		copy.c \
		facts.c \
		fence.c \
		gates.c \
		move.c \
		receive.c \
		references.c \
		send.c \
		trace.c \
	)
# A disk that fails, for tests.
OLTP_FAULTS_SRC := $(addprefix tests/unit/oltp-engine/,log_faults.c log_faults_disk.c log_faults_ops.c)
# Two nodes that hand units over, for tests.
OLTP_UNITS_MODEL_SRC := $(addprefix tests/unit/oltp-engine/,units_model.c units_model_check.c)
# A keyspace without sockets, for tests.
OLTP_KV_RIG_SRC := $(addprefix tests/unit/oltp-engine/,kv_audit.c kv_rig.c oltp_memory_rig.c) $(OLTP_FAULTS_SRC)
# Two nodes with a keyspace each, for tests.
OLTP_MOVE_RIG_SRC := $(addprefix tests/unit/oltp-engine/,move_rig.c power_file.c move_pairs.c kv_audit.c) $(OLTP_FAULTS_SRC)
# And clients of both that record what they see.
OLTP_MOVE_HISTORY_SRC := tests/unit/oltp-engine/move_history.c $(OLTP_MOVE_RIG_SRC)
# A VM without a VM, from the guest monitor's tests.
OLTP_EBB_RIG_SRC := $(EBB_RIG_SRC)

$(eval $(call lib,liboltp,$(OLTP_SRC),liburing numa))
$(eval $(call lib,liboltp-bench,$(OLTP_BENCH_SRC),))
$(eval $(call prog,oltp-bench,oltp-engine/bench/oltp_bench.c,liboltp-bench liboltp))
$(eval $(call prog,oltp-volume,oltp-engine/bench/oltp_volume.c,liboltp))
$(eval $(call prog,oltp-miss-bound,oltp-engine/bench/miss_probe.c,liboltp-bench liboltp))
$(eval $(call prog,oltp-index-bench,oltp-engine/bench/index_bench.c,liboltp-bench liboltp))
$(eval $(call prog,vom-cost,oltp-engine/bench/vom_cost.c,liboltp-bench liboltp))
$(eval $(call prog,oltp-example-bank,oltp-engine/examples/bank.c,liboltp))
$(eval $(call lib,liboltp-server,$(addprefix oltp-engine/server/,blocks_ebb.c control.c greeting.c handshake.c link.c order.c \
	peer_volume.c relocation.c relocation_clients.c relocation_source.c relocation_status.c relocation_target.c serve_fence.c serve_kv.c serve_options.c source_ebb.c vom_ebb.c),))
$(eval $(call lib,liboltp-auth,$(addprefix oltp-engine/server/auth/,hmac.c secret_file.c),nettle))
$(eval $(call lib,liboltp-resp,$(addprefix oltp-engine/server/resp/,out.c parse.c),))
$(eval $(call lib,liboltp-kv,$(OLTP_KV_SRC),))
$(eval $(call lib,liboltp-net,$(addprefix oltp-engine/server/net/,address.c conn.c drain.c listen.c net.c place.c ring.c worker.c),liburing))
$(eval $(call prog,oltp-server,oltp-engine/server/oltp_server.c,liboltp-server liboltp-fence liboltp-auth liboltp-net liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp-bench liboltp libebb))
$(eval $(call lib,liboltp-dist,$(OLTP_DIST_SRC),))
$(eval $(call prog,oltp-node,oltp-engine/dist/oltp_node.c,liboltp-dist liboltp-bench liboltp))
$(eval $(call lib,liboltp-load,$(OLTP_LOAD_SRC),))
$(eval $(call prog,oltp-load,oltp-engine/load/oltp_load.c,liboltp-load liboltp-bench liboltp))
$(eval $(call lib,liboltp-relocate,$(OLTP_RELOCATE_SRC),))
$(eval $(call lib,liboltp-fence,$(OLTP_FENCE_SRC),jansson))
$(eval $(call prog,ebb-fenced,oltp-engine/server/fence/ebb_fenced.c,liboltp-fence liboltp-auth liboltp-server liboltp-bench))
$(eval $(call lib,liboltp-move,$(OLTP_MOVE_SRC),))
$(eval $(call lib,liboltp-check,$(OLTP_CHECK_SRC),))
$(eval $(call prog,oltp-check,oltp-engine/check/oltp_check.c,liboltp-check))
$(eval $(call prog,oltp-history,oltp-engine/check/oltp_history.c,liboltp-check liboltp))

$(eval $(call unit_test,test_oltp_lock,tests/unit/oltp-engine/test_oltp_lock.c,liboltp))
$(eval $(call unit_test,test_oltp_wound,tests/unit/oltp-engine/test_oltp_wound.c,liboltp))
$(eval $(call unit_test,test_oltp_index,tests/unit/oltp-engine/test_oltp_index.c,liboltp))
$(eval $(call unit_test,test_oltp_tree,tests/unit/oltp-engine/test_oltp_tree.c,liboltp))
$(eval $(call unit_test_single,test_oltp_ordered,tests/unit/oltp-engine/test_oltp_ordered.c tests/unit/oltp-engine/ordered_rig.c,liboltp))
$(eval $(call unit_test_single,test_oltp_ordered_memory,tests/unit/oltp-engine/test_oltp_ordered_memory.c tests/unit/oltp-engine/ordered_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_phantom,tests/unit/oltp-engine/test_oltp_phantom.c tests/unit/oltp-engine/ordered_rig.c tests/unit/oltp-engine/ordered_stress.c,liboltp))
$(eval $(call unit_test,test_oltp_ordered_cold,tests/unit/oltp-engine/test_oltp_ordered_cold.c tests/unit/oltp-engine/ordered_rig.c tests/unit/oltp-engine/ordered_stress.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test_single,test_oltp_hist,tests/unit/oltp-engine/test_oltp_hist.c,liboltp))
$(eval $(call unit_test_single,test_oltp_zipf,tests/unit/oltp-engine/test_oltp_zipf.c,liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_txn,tests/unit/oltp-engine/test_oltp_txn.c,liboltp))
$(eval $(call unit_test_single,test_oltp_check,tests/unit/oltp-engine/test_oltp_check.c tests/unit/oltp-engine/check_script.c,liboltp-check))
$(eval $(call unit_test_single,test_oltp_check_random,tests/unit/oltp-engine/test_oltp_check_random.c tests/unit/oltp-engine/check_script.c,liboltp-check))
$(eval $(call unit_test,test_oltp_history,tests/unit/oltp-engine/test_oltp_history.c tests/unit/oltp-engine/record_rig.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp-check liboltp))
$(eval $(call unit_test,test_oltp_history_crash,tests/unit/oltp-engine/test_oltp_history_crash.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp-check liboltp,,$(foreach f,oltp_durable_wait oltp_recover oltp_worker_epoch,-Xlinker --wrap=$(f))))
$(eval $(call unit_test_bulk,test_oltp_power,tests/unit/oltp-engine/test_oltp_power.c tests/unit/oltp-engine/durable_rig.c $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test,test_oltp_volume,$(addprefix tests/unit/oltp-engine/,test_oltp_volume.c volume_rig.c durable_rig.c) $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test_single,test_oltp_volume_power,$(addprefix tests/unit/oltp-engine/,test_oltp_volume_power.c volume_model.c volume_rig.c durable_rig.c) $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test,test_oltp_volume_engine,$(addprefix tests/unit/oltp-engine/,test_oltp_volume_engine.c volume_rig.c) $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test_bulk,test_oltp_recover,tests/unit/oltp-engine/test_oltp_recover.c tests/unit/oltp-engine/durable_rig.c $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test_bulk,test_oltp_recover_cold,tests/unit/oltp-engine/test_oltp_recover_cold.c $(OLTP_FAULTS_SRC) tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_recover_lazy,tests/unit/oltp-engine/test_oltp_recover_lazy.c tests/unit/oltp-engine/lazy_rig.c $(OLTP_FAULTS_SRC) tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_recover_order,tests/unit/oltp-engine/test_oltp_recover_order.c tests/unit/oltp-engine/lazy_rig.c $(OLTP_FAULTS_SRC) tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test_bulk,test_oltp_recover_lives,tests/unit/oltp-engine/test_oltp_recover_lives.c tests/unit/oltp-engine/lazy_rig.c $(OLTP_FAULTS_SRC) tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_durable_kill,tests/unit/oltp-engine/test_oltp_durable_kill.c,liboltp))
$(eval $(call unit_test_bulk,test_oltp_durable_nomem,tests/unit/oltp-engine/test_oltp_durable_nomem.c tests/unit/oltp-engine/alloc_faults.c tests/unit/oltp-engine/durable_rig.c $(OLTP_FAULTS_SRC),liboltp,,$(foreach f,malloc calloc realloc aligned_alloc,-Xlinker --wrap=$(f))))
$(eval $(call unit_test,test_oltp_adopt,tests/unit/oltp-engine/test_oltp_adopt.c $(OLTP_FAULTS_SRC),liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_checkpoint_pace,tests/unit/oltp-engine/test_oltp_checkpoint_pace.c,liboltp))
$(eval $(call unit_test_bulk,test_oltp_checkpoint_directory,tests/unit/oltp-engine/test_oltp_checkpoint_directory.c $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test,test_oltp_checkpoint_files,tests/unit/oltp-engine/test_oltp_checkpoint_files.c tests/unit/oltp-engine/log_rig.c,liboltp,,$(foreach f,checkpoint_writer_open log_catalog_get log_recycle_before log_table_created,-Xlinker --wrap=$(f))))
$(eval $(call unit_test,test_oltp_recover_double,tests/unit/oltp-engine/test_oltp_recover_double.c tests/unit/oltp-engine/log_rig.c,liboltp))
$(eval $(call unit_test_single,test_oltp_recover_plan,tests/unit/oltp-engine/test_oltp_recover_plan.c,liboltp))
$(eval $(call unit_test_bulk,test_oltp_recover_redo,tests/unit/oltp-engine/test_oltp_recover_redo.c tests/unit/oltp-engine/ordered_rig.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
# Broken on purpose, with races: no sanitizer would let it run.
$(eval $(call unit_test_native,test_oltp_check_broken,tests/unit/oltp-engine/test_oltp_check_broken.c tests/unit/oltp-engine/broken_engine.c tests/unit/oltp-engine/record_rig.c,liboltp-check liboltp,,$(foreach f,oltp_txn_read oltp_txn_update oltp_txn_scan oltp_txn_abort node_set_is_valid,-Xlinker --wrap=$(f))))
$(eval $(call unit_test,test_oltp_verify,tests/unit/oltp-engine/test_oltp_verify.c,liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_tpcc,tests/unit/oltp-engine/test_oltp_tpcc.c tests/unit/oltp-engine/tpcc_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_tpcc_load,tests/unit/oltp-engine/test_oltp_tpcc_load.c tests/unit/oltp-engine/tpcc_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test_bulk,test_oltp_tpcc_check,tests/unit/oltp-engine/test_oltp_tpcc_check.c tests/unit/oltp-engine/tpcc_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_man,tests/unit/oltp-engine/test_oltp_man.c,))
$(B)/tests/test_oltp_man: | $(addprefix $(B)/bin/,oltp-bench oltp-check oltp-history oltp-index-bench \
	oltp-load oltp-node oltp-server oltp-volume)
$(eval $(call unit_test_single,test_oltp_usage,tests/unit/oltp-engine/test_oltp_usage.c,))
$(B)/tests/test_oltp_usage: | $(addprefix $(B)/bin/,oltp-bench oltp-check oltp-history oltp-index-bench oltp-load oltp-miss-bound oltp-node \
	oltp-server oltp-volume vom-cost)
$(eval $(call unit_test,test_oltp_example,tests/unit/oltp-engine/test_oltp_example.c,))
$(B)/tests/test_oltp_example: | $(B)/bin/oltp-example-bank
$(eval $(call unit_test,test_oltp_progress,tests/unit/oltp-engine/test_oltp_progress.c,liboltp-bench liboltp))
# Takes too long under sanitizers; test_oltp_moving has the like of it.
$(eval $(call unit_test_native,test_oltp_tpcc_cold,tests/unit/oltp-engine/test_oltp_tpcc_cold.c tests/unit/oltp-engine/tpcc_rig.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test_bulk,test_oltp_tpcc_recover,tests/unit/oltp-engine/test_oltp_tpcc_recover.c tests/unit/oltp-engine/tpcc_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test_bulk,test_oltp_workload,tests/unit/oltp-engine/test_oltp_workload.c,liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_workload_draw,tests/unit/oltp-engine/test_oltp_workload_draw.c,liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_policy,tests/unit/oltp-engine/test_oltp_policy.c,liboltp))
$(eval $(call unit_test_single,test_oltp_adapt,tests/unit/oltp-engine/test_oltp_adapt.c tests/unit/oltp-engine/adapt_model.c,liboltp))
$(eval $(call unit_test,test_oltp_elastic,tests/unit/oltp-engine/test_oltp_elastic.c,liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_pool,tests/unit/oltp-engine/test_oltp_pool.c,liboltp,,-Xlinker --wrap=pthread_setaffinity_np))
$(eval $(call unit_test,test_oltp_idle_worker,tests/unit/oltp-engine/test_oltp_idle_worker.c,liboltp))
$(eval $(call unit_test,test_oltp_feed,tests/unit/oltp-engine/test_oltp_feed.c,liboltp))
$(eval $(call unit_test,test_oltp_drain,tests/unit/oltp-engine/test_oltp_drain.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp,,$(foreach f,clock_gettime io_queue_next io_queue_wait,-Xlinker --wrap=$(f))))
$(eval $(call unit_test_single,test_oltp_warm,tests/unit/oltp-engine/test_oltp_warm.c,liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_options,tests/unit/oltp-engine/test_oltp_options.c,liboltp-bench liboltp))
$(eval $(call unit_test_single,test_resp_out,tests/unit/oltp-engine/test_resp_out.c,liboltp-resp))
$(eval $(call unit_test_single,test_resp_parse,tests/unit/oltp-engine/test_resp_parse.c,liboltp-resp))
$(eval $(call unit_test,test_kv_hashes,tests/unit/oltp-engine/test_kv_hashes.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_scan,tests/unit/oltp-engine/test_kv_scan.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_multi,tests/unit/oltp-engine/test_kv_multi.c tests/unit/oltp-engine/durable_rig.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_admin,tests/unit/oltp-engine/test_kv_admin.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_memory,tests/unit/oltp-engine/test_kv_memory.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_recover,tests/unit/oltp-engine/test_kv_recover.c tests/unit/oltp-engine/durable_rig.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_fcall,tests/unit/oltp-engine/test_kv_fcall.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test_bulk,test_kv_tpcc,tests/unit/oltp-engine/test_kv_tpcc.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test_single,test_kv_any,tests/unit/oltp-engine/test_kv_any.c tests/unit/oltp-engine/durable_rig.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_move_units,tests/unit/oltp-engine/test_move_units.c $(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_move_life,tests/unit/oltp-engine/test_move_life.c $(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp,,$(foreach f,facts_begin move_start ppoll kv_unit_remove_some,-Xlinker --wrap=$(f))))
$(eval $(call unit_test,test_move_facts,tests/unit/oltp-engine/test_move_facts.c $(OLTP_FAULTS_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test_single,test_move_gates,tests/unit/oltp-engine/test_move_gates.c,liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test_single,test_fence_talk,tests/unit/oltp-engine/test_fence_talk.c,liboltp-fence liboltp-auth))
$(eval $(call unit_test,test_fence_desk,tests/unit/oltp-engine/test_fence_desk.c,liboltp-fence liboltp-auth liboltp-server liboltp-bench))
$(eval $(call unit_test,test_move_fence,tests/unit/oltp-engine/test_move_fence.c $(OLTP_MOVE_HISTORY_SRC),liboltp-check liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_move_fence_volumed,tests/unit/oltp-engine/test_move_fence_volumed.c,liboltp-fence,jansson))
# With gates that are broken on purpose.
$(eval $(call unit_test_native,test_move_history,tests/unit/oltp-engine/test_move_history.c $(OLTP_MOVE_HISTORY_SRC),liboltp-check liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp,,-Xlinker --wrap=oltp_durable_wait))
$(eval $(call unit_test,test_move_copy,tests/unit/oltp-engine/test_move_copy.c $(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_move_cold,$(addprefix tests/unit/oltp-engine/,test_move_cold.c move_cold_rig.c oltp_memory_rig.c) $(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test_bulk,test_move_refer,$(addprefix tests/unit/oltp-engine/,test_move_refer.c move_cold_rig.c oltp_memory_rig.c) $(OLTP_MOVE_HISTORY_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp-check liboltp,,-Xlinker --wrap=oltp_places_poll))
# A disk that is slow.
$(eval $(call unit_test,test_move_refer_reuse,$(addprefix tests/unit/oltp-engine/,test_move_refer_reuse.c move_cold_rig.c oltp_memory_rig.c) $(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp,,-Xlinker --wrap=oltp_places_begin))
# Where the steps of a unit are in which power is lost.
$(eval $(call unit_test_bulk,test_move_refer_power,$(addprefix tests/unit/oltp-engine/,test_move_refer_power.c move_cold_rig.c oltp_memory_rig.c) $(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp,,$(foreach f,wire_put_message facts_write oltp_places_begin,-Xlinker --wrap=$(f))))
$(eval $(call unit_test,test_move_back,tests/unit/oltp-engine/test_move_back.c $(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp,,-Xlinker --wrap=kv_unit_put))
$(eval $(call unit_test,test_move_crash,tests/unit/oltp-engine/test_move_crash.c $(OLTP_MOVE_HISTORY_SRC),liboltp-check liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_strings,tests/unit/oltp-engine/test_kv_strings.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_oltp_net,$(addprefix tests/unit/oltp-engine/,test_oltp_net.c net_rig.c kv_stub.c log_rig.c),liboltp-net liboltp-resp liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_net_drain,$(addprefix tests/unit/oltp-engine/,test_oltp_net_drain.c net_rig.c kv_stub.c log_rig.c),liboltp-net liboltp-resp liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_greeting,tests/unit/oltp-engine/test_oltp_greeting.c,liboltp-server liboltp-auth))
$(eval $(call unit_test,test_oltp_peer_volume,tests/unit/oltp-engine/test_oltp_peer_volume.c,liboltp-server liboltp))
$(eval $(call unit_test,test_oltp_handshake,tests/unit/oltp-engine/test_oltp_handshake.c,liboltp-server liboltp-auth liboltp-bench))
$(eval $(call unit_test_single,test_oltp_hmac,tests/unit/oltp-engine/test_oltp_hmac.c,liboltp-auth))
$(eval $(call unit_test_single,test_oltp_order,tests/unit/oltp-engine/test_oltp_order.c,liboltp-server))
$(eval $(call unit_test,test_oltp_net_listen,$(addprefix tests/unit/oltp-engine/,test_oltp_net_listen.c net_rig.c kv_stub.c log_rig.c),liboltp-net liboltp-resp liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_server,tests/unit/oltp-engine/test_oltp_server.c,liboltp-server liboltp-fence liboltp-auth liboltp-net liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp-bench liboltp libebb,,-Xlinker --wrap=accept4))
$(eval $(call unit_test,test_oltp_serve,tests/unit/oltp-engine/test_oltp_serve.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp-server liboltp-fence liboltp-auth liboltp-net liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp-bench liboltp libebb))
$(eval $(call unit_test,test_oltp_source_ebb,tests/unit/oltp-engine/test_oltp_source_ebb.c $(OLTP_EBB_RIG_SRC),liboltp-server liboltp-bench liboltp monitord libebb))
$(eval $(call unit_test,test_oltp_storage,tests/unit/oltp-engine/test_oltp_storage.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test_bulk,test_oltp_cold,tests/unit/oltp-engine/test_oltp_cold.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_cold_volume,$(addprefix tests/unit/oltp-engine/,test_oltp_cold_volume.c oltp_memory_rig.c),liboltp))
$(eval $(call unit_test,test_oltp_cold_compact,tests/unit/oltp-engine/test_oltp_cold_compact.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test_bulk,test_oltp_cold_buffered,tests/unit/oltp-engine/test_oltp_cold_buffered.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_fetch,tests/unit/oltp-engine/test_oltp_fetch.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_fetch_neighbours,tests/unit/oltp-engine/test_oltp_fetch_neighbours.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_table_blocks,tests/unit/oltp-engine/test_oltp_table_blocks.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test_single,test_oltp_division,tests/unit/oltp-engine/test_oltp_division.c,liboltp))
$(eval $(call unit_test,test_oltp_cold_nomem,tests/unit/oltp-engine/test_oltp_cold_nomem.c tests/unit/oltp-engine/alloc_faults.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp,,$(foreach f,malloc calloc realloc aligned_alloc,-Xlinker --wrap=$(f))))
$(eval $(call unit_test_model,test_oltp_baseline,tests/unit/oltp-engine/test_oltp_baseline.c,liboltp-bench liboltp))
$(eval $(call unit_test_model,test_oltp_promise,tests/unit/oltp-engine/test_oltp_promise.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_recency,tests/unit/oltp-engine/test_oltp_recency.c,liboltp))
$(eval $(call unit_test,test_oltp_vom_ebb,tests/unit/oltp-engine/test_oltp_vom_ebb.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp-server liboltp))
$(eval $(call unit_test,test_oltp_retire,tests/unit/oltp-engine/test_oltp_retire.c,liboltp,,$(foreach f,evict_flush epoch_advance storage_slot_free,-Xlinker --wrap=$(f))))
$(eval $(call unit_test,test_oltp_taken_back,tests/unit/oltp-engine/test_oltp_taken_back.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp,,-Xlinker --wrap=evict_flush))
$(eval $(call unit_test,test_oltp_tables,tests/unit/oltp-engine/test_oltp_tables.c,liboltp))
$(eval $(call unit_test,test_oltp_stamp,tests/unit/oltp-engine/test_oltp_stamp.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_evict,tests/unit/oltp-engine/test_oltp_evict.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_scan,tests/unit/oltp-engine/test_oltp_scan.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_cutoff,tests/unit/oltp-engine/test_oltp_cutoff.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_idle,tests/unit/oltp-engine/test_oltp_idle.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test_single,test_oltp_recency_look,tests/unit/oltp-engine/test_oltp_recency_look.c,liboltp))
$(eval $(call unit_test,test_oltp_recency_engine,tests/unit/oltp-engine/test_oltp_recency_engine.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_moving,tests/unit/oltp-engine/test_oltp_moving.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_revoke,tests/unit/oltp-engine/test_oltp_revoke.c tests/unit/oltp-engine/rows_rig.c tests/unit/oltp-engine/ordered_rig.c tests/unit/oltp-engine/taker_rig.c tests/unit/oltp-engine/oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_restore,tests/unit/oltp-engine/test_oltp_restore.c tests/unit/oltp-engine/rows_rig.c tests/unit/oltp-engine/ordered_rig.c tests/unit/oltp-engine/restore_rig.c tests/unit/oltp-engine/taker_rig.c tests/unit/oltp-engine/oltp_memory_rig.c $(OLTP_FAULTS_SRC),liboltp,,-Xlinker --wrap=node_set_is_valid))
$(eval $(call unit_test,test_oltp_restore_load,tests/unit/oltp-engine/test_oltp_restore_load.c tests/unit/oltp-engine/restore_rig.c tests/unit/oltp-engine/taker_rig.c tests/unit/oltp-engine/oltp_memory_rig.c $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test,test_oltp_blocks_ebb,tests/unit/oltp-engine/test_oltp_blocks_ebb.c tests/unit/oltp-engine/oltp_memory_rig.c $(OLTP_FAULTS_SRC) $(OLTP_EBB_RIG_SRC),liboltp-server liboltp-bench liboltp monitord libebb))
$(eval $(call unit_test_single,test_oltp_dist_steps,tests/unit/oltp-engine/test_oltp_dist_steps.c,liboltp-dist))
$(eval $(call unit_test_single,test_oltp_dist_twophase,tests/unit/oltp-engine/test_oltp_dist_twophase.c,liboltp-dist))
$(eval $(call unit_test,test_oltp_dist_crash,tests/unit/oltp-engine/test_oltp_dist_crash.c,))
$(B)/tests/test_oltp_dist_crash: | $(B)/bin/oltp-node
$(eval $(call unit_test,test_oltp_dist_wire,tests/unit/oltp-engine/test_oltp_dist_wire.c,liboltp-dist liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_relocate_drain,tests/unit/oltp-engine/test_oltp_relocate_drain.c,liboltp-relocate))
$(eval $(call unit_test_single,test_oltp_relocate_precopy,tests/unit/oltp-engine/test_oltp_relocate_precopy.c,liboltp-relocate))
$(eval $(call unit_test_single,test_oltp_relocate_wire,tests/unit/oltp-engine/test_oltp_relocate_wire.c,liboltp-relocate))
$(eval $(call unit_test_single,test_oltp_units_age,tests/unit/oltp-engine/test_oltp_units_age.c,liboltp-relocate))
$(eval $(call unit_test_single,test_oltp_units_steps,tests/unit/oltp-engine/test_oltp_units_steps.c,liboltp-relocate))
$(eval $(call unit_test_model,test_oltp_units_model,tests/unit/oltp-engine/test_oltp_units_model.c $(OLTP_UNITS_MODEL_SRC),liboltp-relocate))
$(eval $(call unit_test_single,test_oltp_units_random,tests/unit/oltp-engine/test_oltp_units_random.c $(OLTP_UNITS_MODEL_SRC),liboltp-relocate))
$(eval $(call unit_test,test_oltp_log,tests/unit/oltp-engine/test_oltp_log.c tests/unit/oltp-engine/log_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_log_reach,tests/unit/oltp-engine/test_oltp_log_reach.c tests/unit/oltp-engine/log_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_log_watch,tests/unit/oltp-engine/test_oltp_log_watch.c tests/unit/oltp-engine/log_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_log_fail,tests/unit/oltp-engine/test_oltp_log_fail.c tests/unit/oltp-engine/log_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_log_threads,tests/unit/oltp-engine/test_oltp_log_threads.c tests/unit/oltp-engine/log_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_log_stalled,tests/unit/oltp-engine/test_oltp_log_stalled.c tests/unit/oltp-engine/log_rig.c,liboltp,,-Xlinker --wrap=log_chunk_open))
$(eval $(call unit_test_single,test_load_arrivals,tests/unit/oltp-engine/test_load_arrivals.c,liboltp-load liboltp))
$(eval $(call unit_test_single,test_load_requests,tests/unit/oltp-engine/test_load_requests.c,liboltp-load liboltp-bench liboltp))
$(eval $(call unit_test_single,test_load_pool,tests/unit/oltp-engine/test_load_pool.c,liboltp-load liboltp))
$(eval $(call unit_test_single,test_load_wire,tests/unit/oltp-engine/test_load_wire.c,liboltp-load liboltp-bench liboltp))
$(eval $(call unit_test_single,test_load_tpcc,tests/unit/oltp-engine/test_load_tpcc.c,liboltp-load liboltp-bench liboltp))
