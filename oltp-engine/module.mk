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
OLTP_FAULTS_SRC := log_faults.c log_faults_disk.c log_faults_ops.c
# Two nodes that hand units over, for tests.
OLTP_UNITS_MODEL_SRC := units_model.c units_model_check.c
# A keyspace without sockets, for tests.
OLTP_KV_RIG_SRC := kv_audit.c kv_rig.c oltp_memory_rig.c $(OLTP_FAULTS_SRC)
# Two nodes with a keyspace each, for tests.
OLTP_MOVE_RIG_SRC := move_rig.c power_file.c move_pairs.c kv_audit.c $(OLTP_FAULTS_SRC)
# And clients of both that record what they see.
OLTP_MOVE_HISTORY_SRC := move_history.c $(OLTP_MOVE_RIG_SRC)
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

$(eval $(call unit_test,test_oltp_lock,,liboltp))
$(eval $(call unit_test,test_oltp_wound,,liboltp))
$(eval $(call unit_test,test_oltp_index,,liboltp))
$(eval $(call unit_test,test_oltp_tree,,liboltp))
$(eval $(call unit_test_single,test_oltp_ordered,ordered_rig.c,liboltp))
$(eval $(call unit_test_single,test_oltp_ordered_memory,ordered_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_phantom,ordered_rig.c ordered_stress.c,liboltp))
$(eval $(call unit_test,test_oltp_ordered_cold,ordered_rig.c ordered_stress.c oltp_memory_rig.c,liboltp))
$(eval $(call unit_test_single,test_oltp_hist,,liboltp))
$(eval $(call unit_test_single,test_oltp_zipf,,liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_txn,,liboltp))
$(eval $(call unit_test_single,test_oltp_check,check_script.c,liboltp-check))
$(eval $(call unit_test_single,test_oltp_check_random,check_script.c,liboltp-check))
$(eval $(call unit_test,test_oltp_history,record_rig.c oltp_memory_rig.c,liboltp-check liboltp))
$(eval $(call unit_test,test_oltp_history_crash,oltp_memory_rig.c,liboltp-check liboltp,,$(foreach f,oltp_durable_wait oltp_recover oltp_worker_epoch,-Xlinker --wrap=$(f))))
$(eval $(call unit_test_bulk,test_oltp_power,durable_rig.c $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test,test_oltp_volume,volume_rig.c durable_rig.c $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test_single,test_oltp_volume_power,volume_model.c volume_rig.c durable_rig.c $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test,test_oltp_volume_engine,volume_rig.c $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test_bulk,test_oltp_recover,durable_rig.c $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test_bulk,test_oltp_recover_cold,$(OLTP_FAULTS_SRC) oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_recover_lazy,lazy_rig.c $(OLTP_FAULTS_SRC) oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_recover_order,lazy_rig.c $(OLTP_FAULTS_SRC) oltp_memory_rig.c,liboltp))
$(eval $(call unit_test_bulk,test_oltp_recover_lives,lazy_rig.c $(OLTP_FAULTS_SRC) oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_durable_kill,,liboltp))
$(eval $(call unit_test_bulk,test_oltp_durable_nomem,alloc_faults.c durable_rig.c $(OLTP_FAULTS_SRC),liboltp,,$(foreach f,malloc calloc realloc aligned_alloc,-Xlinker --wrap=$(f))))
$(eval $(call unit_test,test_oltp_adopt,$(OLTP_FAULTS_SRC),liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_checkpoint_pace,,liboltp))
$(eval $(call unit_test_bulk,test_oltp_checkpoint_directory,$(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test,test_oltp_checkpoint_files,log_rig.c,liboltp,,$(foreach f,checkpoint_writer_open log_catalog_get log_recycle_before log_table_created,-Xlinker --wrap=$(f))))
$(eval $(call unit_test,test_oltp_recover_double,log_rig.c,liboltp))
$(eval $(call unit_test_single,test_oltp_recover_plan,,liboltp))
$(eval $(call unit_test_bulk,test_oltp_recover_redo,ordered_rig.c oltp_memory_rig.c,liboltp))
# Broken on purpose, with races: no sanitizer would let it run.
$(eval $(call unit_test_native,test_oltp_check_broken,broken_engine.c record_rig.c,liboltp-check liboltp,,$(foreach f,oltp_txn_read oltp_txn_update oltp_txn_scan oltp_txn_abort node_set_is_valid,-Xlinker --wrap=$(f))))
$(eval $(call unit_test,test_oltp_verify,,liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_tpcc,tpcc_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_tpcc_load,tpcc_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test_bulk,test_oltp_tpcc_check,tpcc_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_man))
$(B)/tests/test_oltp_man: | $(addprefix $(B)/bin/,oltp-bench oltp-check oltp-history oltp-index-bench \
	oltp-load oltp-node oltp-server oltp-volume)
$(eval $(call unit_test_single,test_oltp_usage))
$(B)/tests/test_oltp_usage: | $(addprefix $(B)/bin/,oltp-bench oltp-check oltp-history oltp-index-bench oltp-load oltp-miss-bound oltp-node \
	oltp-server oltp-volume vom-cost)
$(eval $(call unit_test,test_oltp_example))
$(B)/tests/test_oltp_example: | $(B)/bin/oltp-example-bank
$(eval $(call unit_test,test_oltp_progress,,liboltp-bench liboltp))
# Takes too long under sanitizers; test_oltp_moving has the like of it.
$(eval $(call unit_test_native,test_oltp_tpcc_cold,tpcc_rig.c oltp_memory_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test_bulk,test_oltp_tpcc_recover,tpcc_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test_bulk,test_oltp_workload,,liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_workload_draw,,liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_policy,,liboltp))
$(eval $(call unit_test_long,test_oltp_adapt,adapt_model.c,liboltp))
$(eval $(call unit_test,test_oltp_elastic,,liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_pool,,liboltp,,-Xlinker --wrap=pthread_setaffinity_np))
$(eval $(call unit_test,test_oltp_idle_worker,,liboltp))
$(eval $(call unit_test,test_oltp_feed,,liboltp))
$(eval $(call unit_test,test_oltp_drain,oltp_memory_rig.c,liboltp,,$(foreach f,clock_gettime io_queue_next io_queue_wait,-Xlinker --wrap=$(f))))
$(eval $(call unit_test_single,test_oltp_warm,,liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_options,,liboltp-bench liboltp))
$(eval $(call unit_test_single,test_resp_out,,liboltp-resp))
$(eval $(call unit_test_single,test_resp_parse,,liboltp-resp))
$(eval $(call unit_test,test_kv_hashes,$(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_scan,$(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_multi,durable_rig.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_admin,$(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_memory,$(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_recover,durable_rig.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_fcall,$(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test_long,test_kv_tpcc,$(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test_single,test_kv_any,durable_rig.c $(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_move_units,$(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_move_life,$(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp,,$(foreach f,facts_begin move_start ppoll kv_unit_remove_some,-Xlinker --wrap=$(f))))
$(eval $(call unit_test,test_move_facts,$(OLTP_FAULTS_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test_single,test_move_gates,,liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test_single,test_fence_talk,,liboltp-fence liboltp-auth))
$(eval $(call unit_test,test_fence_desk,,liboltp-fence liboltp-auth liboltp-server liboltp-bench))
$(eval $(call unit_test_bulk,test_move_fence,$(OLTP_MOVE_HISTORY_SRC),liboltp-check liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_move_fence_volumed,,liboltp-fence,jansson))
# With gates that are broken on purpose.
$(eval $(call unit_test_native,test_move_history,$(OLTP_MOVE_HISTORY_SRC),liboltp-check liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp,,-Xlinker --wrap=oltp_durable_wait))
$(eval $(call unit_test,test_move_copy,$(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test_bulk,test_move_cold,move_cold_rig.c oltp_memory_rig.c $(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test_long,test_move_refer,move_cold_rig.c oltp_memory_rig.c $(OLTP_MOVE_HISTORY_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp-check liboltp,,-Xlinker --wrap=oltp_places_poll))
# A disk that is slow.
$(eval $(call unit_test,test_move_refer_reuse,move_cold_rig.c oltp_memory_rig.c $(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp,,-Xlinker --wrap=oltp_places_begin))
# Where the steps of a unit are in which power is lost.
$(eval $(call unit_test_bulk,test_move_refer_power,move_cold_rig.c oltp_memory_rig.c $(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp,,$(foreach f,wire_put_message facts_write oltp_places_begin,-Xlinker --wrap=$(f))))
$(eval $(call unit_test,test_move_got_lost,$(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp,,-Xlinker --wrap=wire_put_message))
$(eval $(call unit_test,test_move_back,$(OLTP_MOVE_RIG_SRC),liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp,,-Xlinker --wrap=kv_unit_put))
$(eval $(call unit_test,test_move_crash,$(OLTP_MOVE_HISTORY_SRC),liboltp-check liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_kv_strings,$(OLTP_KV_RIG_SRC),liboltp-kv liboltp-resp liboltp))
$(eval $(call unit_test,test_oltp_net,net_rig.c kv_stub.c log_rig.c,liboltp-net liboltp-resp liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_net_drain,net_rig.c kv_stub.c log_rig.c,liboltp-net liboltp-resp liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_greeting,,liboltp-server liboltp-auth))
$(eval $(call unit_test,test_oltp_peer_volume,,liboltp-server liboltp))
$(eval $(call unit_test,test_oltp_handshake,,liboltp-server liboltp-auth liboltp-bench))
$(eval $(call unit_test_single,test_oltp_hmac,,liboltp-auth))
$(eval $(call unit_test_single,test_oltp_order,,liboltp-server))
$(eval $(call unit_test,test_oltp_net_listen,net_rig.c kv_stub.c log_rig.c,liboltp-net liboltp-resp liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_server,,liboltp-server liboltp-fence liboltp-auth liboltp-net liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp-bench liboltp libebb,,-Xlinker --wrap=accept4))
$(eval $(call unit_test,test_oltp_serve,oltp_memory_rig.c,liboltp-server liboltp-fence liboltp-auth liboltp-net liboltp-move liboltp-relocate liboltp-kv liboltp-resp liboltp-bench liboltp libebb))
$(eval $(call unit_test,test_oltp_source_ebb,$(OLTP_EBB_RIG_SRC),liboltp-server liboltp-bench liboltp monitord libebb))
$(eval $(call unit_test,test_oltp_storage,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test_long,test_oltp_cold,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_cold_volume,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_cold_compact,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test_long,test_oltp_cold_buffered,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_fetch,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_fetch_neighbours,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_table_blocks,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test_single,test_oltp_division,,liboltp))
$(eval $(call unit_test,test_oltp_cold_nomem,alloc_faults.c oltp_memory_rig.c,liboltp,,$(foreach f,malloc calloc realloc aligned_alloc,-Xlinker --wrap=$(f))))
$(eval $(call unit_test_long,test_oltp_baseline,,liboltp-bench liboltp))
$(eval $(call unit_test_long,test_oltp_promise,oltp_memory_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_recency,,liboltp))
$(eval $(call unit_test,test_oltp_vom_ebb,oltp_memory_rig.c,liboltp-server liboltp))
$(eval $(call unit_test,test_oltp_retire,,liboltp,,$(foreach f,evict_flush epoch_advance storage_slot_free,-Xlinker --wrap=$(f))))
$(eval $(call unit_test,test_oltp_taken_back,oltp_memory_rig.c,liboltp,,-Xlinker --wrap=evict_flush))
$(eval $(call unit_test,test_oltp_tables,,liboltp))
$(eval $(call unit_test,test_oltp_stamp,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_evict,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_scan,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_cutoff,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_idle,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test_single,test_oltp_recency_look,,liboltp))
$(eval $(call unit_test,test_oltp_recency_engine,oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_moving,oltp_memory_rig.c,liboltp-bench liboltp))
$(eval $(call unit_test,test_oltp_revoke,rows_rig.c ordered_rig.c taker_rig.c oltp_memory_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_restore,rows_rig.c ordered_rig.c restore_rig.c taker_rig.c oltp_memory_rig.c $(OLTP_FAULTS_SRC),liboltp,,-Xlinker --wrap=node_set_is_valid))
$(eval $(call unit_test,test_oltp_restore_load,restore_rig.c taker_rig.c oltp_memory_rig.c $(OLTP_FAULTS_SRC),liboltp))
$(eval $(call unit_test,test_oltp_blocks_ebb,oltp_memory_rig.c $(OLTP_FAULTS_SRC) $(OLTP_EBB_RIG_SRC),liboltp-server liboltp-bench liboltp monitord libebb))
$(eval $(call unit_test_single,test_oltp_dist_steps,,liboltp-dist))
$(eval $(call unit_test_long,test_oltp_dist_twophase,,liboltp-dist))
$(eval $(call unit_test,test_oltp_dist_crash))
$(B)/tests/test_oltp_dist_crash: | $(B)/bin/oltp-node
$(eval $(call unit_test,test_oltp_dist_wire,,liboltp-dist liboltp-bench liboltp))
$(eval $(call unit_test_single,test_oltp_relocate_drain,,liboltp-relocate))
$(eval $(call unit_test_single,test_oltp_relocate_precopy,,liboltp-relocate))
$(eval $(call unit_test_single,test_oltp_relocate_wire,,liboltp-relocate))
$(eval $(call unit_test_single,test_oltp_units_age,,liboltp-relocate))
$(eval $(call unit_test_single,test_oltp_units_steps,,liboltp-relocate))
$(eval $(call unit_test_long,test_oltp_units_model,$(OLTP_UNITS_MODEL_SRC),liboltp-relocate))
$(eval $(call unit_test_single,test_oltp_units_random,$(OLTP_UNITS_MODEL_SRC),liboltp-relocate))
$(eval $(call unit_test,test_oltp_log,log_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_log_reach,log_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_log_watch,log_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_log_fail,log_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_log_threads,log_rig.c,liboltp))
$(eval $(call unit_test,test_oltp_log_stalled,log_rig.c,liboltp,,-Xlinker --wrap=log_chunk_open))
$(eval $(call unit_test_single,test_load_arrivals,,liboltp-load liboltp))
$(eval $(call unit_test_single,test_load_requests,,liboltp-load liboltp-bench liboltp))
$(eval $(call unit_test_single,test_load_pool,,liboltp-load liboltp))
$(eval $(call unit_test_single,test_load_wire,,liboltp-load liboltp-bench liboltp))
$(eval $(call unit_test_single,test_load_tpcc,,liboltp-load liboltp-bench liboltp))
