#pragma once
/// Elements of messages without data of their own: the names with which messages begin, and the
/// pointers in messages that stay within a process.

#include <memory>

#include "actors/caf/version.hpp"

namespace weft {

struct DeviceLoad;
struct DeviceRun;
struct DeviceCall;
/// Plans and offsets are passed to device actors by pointer.
using DeviceLoadPtr = std::shared_ptr<const DeviceLoad>;
using DeviceRunPtr = std::shared_ptr<const DeviceRun>;
using DeviceCallPtr = std::shared_ptr<const DeviceCall>;

}  // namespace weft

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::DeviceLoadPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::DeviceRunPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::DeviceCallPtr)

CAF_BEGIN_TYPE_ID_BLOCK(weft_names, weft::kFirstTypeId)
CAF_ADD_ATOM(weft_names, weft, join_a, "join")
CAF_ADD_ATOM(weft_names, weft, start_a, "start")
CAF_ADD_ATOM(weft_names, weft, program_a, "program")
CAF_ADD_ATOM(weft_names, weft, asked_a, "asked")
CAF_ADD_ATOM(weft_names, weft, admit_a, "admit")
CAF_ADD_ATOM(weft_names, weft, lease_a, "lease")
CAF_ADD_ATOM(weft_names, weft, grant_a, "grant")
CAF_ADD_ATOM(weft_names, weft, report_a, "report")
CAF_ADD_ATOM(weft_names, weft, hashes_a, "hashes")
CAF_ADD_ATOM(weft_names, weft, data_a, "data")
CAF_ADD_ATOM(weft_names, weft, part_a, "part")
CAF_ADD_ATOM(weft_names, weft, join_parts_a, "joinparts")
CAF_ADD_ATOM(weft_names, weft, drop_parts_a, "dropparts")
CAF_ADD_ATOM(weft_names, weft, saved_a, "saved")
CAF_ADD_ATOM(weft_names, weft, ended_a, "ended")
CAF_ADD_ATOM(weft_names, weft, peer_ended_a, "peerended")
CAF_ADD_ATOM(weft_names, weft, started_a, "started")
CAF_ADD_ATOM(weft_names, weft, deadline_a, "deadline")
CAF_ADD_ATOM(weft_names, weft, link_grace_a, "linkgrace")
CAF_ADD_ATOM(weft_names, weft, process_a, "process")
CAF_ADD_ATOM(weft_names, weft, cancel_a, "cancel")
CAF_ADD_ATOM(weft_names, weft, unwind_a, "unwind")
CAF_ADD_ATOM(weft_names, weft, unwound_a, "unwound")
CAF_ADD_ATOM(weft_names, weft, restart_a, "restart")
CAF_ADD_ATOM(weft_names, weft, tick_a, "tick")
CAF_ADD_ATOM(weft_names, weft, asks_a, "asks")
CAF_ADD_ATOM(weft_names, weft, preempt_a, "preempt")
CAF_ADD_ATOM(weft_names, weft, pause_a, "pause")
CAF_ADD_ATOM(weft_names, weft, paused_a, "paused")
CAF_ADD_ATOM(weft_names, weft, end_at_a, "endat")
CAF_ADD_ATOM(weft_names, weft, grace_a, "grace")
CAF_ADD_ATOM(weft_names, weft, stop_a, "stop")
CAF_ADD_ATOM(weft_names, weft, hold_a, "hold")
CAF_ADD_ATOM(weft_names, weft, held_a, "held")
CAF_ADD_ATOM(weft_names, weft, let_go_a, "letgo")
CAF_ADD_ATOM(weft_names, weft, read_a, "read")
CAF_ADD_ATOM(weft_names, weft, waits_a, "waits")
CAF_ADD_ATOM(weft_names, weft, post_a, "post")
CAF_ADD_ATOM(weft_names, weft, host_a, "host")
CAF_ADD_ATOM(weft_names, weft, folder_a, "folder")
CAF_ADD_ATOM(weft_names, weft, keep_a, "keep")
CAF_ADD_ATOM(weft_names, weft, news_a, "news")
CAF_ADD_ATOM(weft_names, weft, prepare_a, "prepare")
CAF_ADD_ATOM(weft_names, weft, prepared_a, "prepared")
CAF_ADD_ATOM(weft_names, weft, launch_a, "launch")
CAF_ADD_ATOM(weft_names, weft, kill_a, "kill")
CAF_ADD_ATOM(weft_names, weft, abort_a, "abort")
CAF_ADD_ATOM(weft_names, weft, lost_a, "lost")
CAF_ADD_ATOM(weft_names, weft, status_a, "status")
CAF_ADD_ATOM(weft_names, weft, unlink_a, "unlink")
CAF_ADD_ATOM(weft_names, weft, wires_a, "wires")
CAF_ADD_ATOM(weft_names, weft, wire_lost_a, "wirelost")
CAF_ADD_ATOM(weft_names, weft, wire_grace_a, "wiregrace")
CAF_ADD_ATOM(weft_names, weft, beat_a, "beat")
CAF_ADD_ATOM(weft_names, weft, dropped_a, "dropped")
CAF_ADD_ATOM(weft_names, weft, load_a, "load")
CAF_ADD_ATOM(weft_names, weft, run_a, "run")
CAF_ADD_ATOM(weft_names, weft, call_a, "call")
WEFT_CAF_TYPE(weft_names, weft::DeviceLoadPtr, "weft::device_load")
WEFT_CAF_TYPE(weft_names, weft::DeviceRunPtr, "weft::device_run")
WEFT_CAF_TYPE(weft_names, weft::DeviceCallPtr, "weft::device_call")
CAF_END_TYPE_ID_BLOCK(weft_names)
