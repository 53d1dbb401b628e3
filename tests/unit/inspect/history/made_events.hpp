#pragma once
/// Makes the events of a job that doesn't exist.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "tests/unit/inspect/made_job.hpp"

namespace weft::testing {

/// Adds events to the rings of a job, each 1 us after the last event of any ring.
class MadeEvents {
 public:
  explicit MadeEvents(Snapshot& job) : job_(job) {
    const auto workers = job.header.num_workers;
    for (int worker = -1; worker < workers; ++worker) {
      for (const RingKind kind : {RingKind::loop, RingKind::link, RingKind::shared}) {
        job.rings.push_back({.kind = kind, .worker = worker});
      }
    }
    for (int chip = 0; chip < job.header.num_chips; ++chip) {
      const int worker = job.chip(chip)->worker;
      job.rings.push_back({.kind = RingKind::chip, .worker = worker, .chip = chip});
    }
  }

  void at(std::int64_t ns) { now_ns = ns; }
  void chip(int chip, Event event) { add(RingKind::chip, job_.chip(chip)->worker, chip, event); }
  void of(RingKind kind, int worker, Event event) { add(kind, worker, -1, event); }

  std::int64_t now_ns = 10'000'000'000;

 private:
  void add(RingKind kind, int worker, int chip, Event event) {
    event.at_ns = now_ns += 1000;
    for (EventRing& ring : job_.rings) {
      if (ring.kind == kind && ring.worker == worker && ring.chip == chip) {
        ring.events.push_back(event);
      }
    }
  }

  Snapshot& job_;
};

/// Returns a job of two workers with one chip each in step 16. Its events are a dot_general, an
/// all_reduce in which chip 0 waits, and messages between worker 0 and the trainer.
inline Snapshot step_of_two_chips() {
  MadeJob made(2, 1);
  Snapshot job = std::move(made.snapshot);
  job.unix_minus_monotonic_ns = 1'700'000'000'000'000'000;
  MadeEvents events(job);
  events.of(RingKind::shared, 0, {.kind = EventKind::message_out, .text = "lease", .number = 1});
  events.of(RingKind::link, -1,
            {.kind = EventKind::message_in, .peer = 0, .text = "lease", .number = 1});
  events.of(RingKind::link, -1,
            {.kind = EventKind::message_out, .peer = 0, .text = "grant", .number = 1});
  events.of(RingKind::link, 0, {.kind = EventKind::message_in, .text = "grant", .number = 1});
  events.of(RingKind::loop, 0, {.kind = EventKind::lease, .number = 16});
  events.of(RingKind::loop, 0, {.kind = EventKind::lease, .flags = kEventEnds, .number = 16});
  for (const int chip : {0, 1}) {
    events.chip(chip, {.kind = EventKind::step, .number = 16});
    events.chip(chip, {.kind = EventKind::run, .number = 33, .value = 0xabcdef});
    events.chip(chip, {.kind = EventKind::plan_step, .text = "dot_general at app.cpp:7"});
    events.chip(chip,
                {.kind = EventKind::plan_step, .text = "all_reduce 'w' at app.cpp:9", .number = 1});
    events.chip(chip,
                {.kind = EventKind::enter, .text = "all_reduce 'w'", .number = 5, .value = 64});
  }
  events.chip(1, {.kind = EventKind::leave, .text = "all_reduce 'w'", .number = 5});
  events.chip(
      0,
      {.kind = EventKind::leave, .peer = 1, .text = "all_reduce 'w'", .number = 5, .value = 6000});
  events.chip(0, {.kind = EventKind::commit, .peer = 1, .number = 15});
  events.chip(0, {.kind = EventKind::commit, .flags = kEventEnds, .peer = 1, .number = 15});
  for (const int chip : {0, 1}) {
    events.chip(chip,
                {.kind = EventKind::run, .flags = kEventEnds, .number = 33, .value = 0xabcdef});
  }
  events.of(RingKind::loop, 1, {.kind = EventKind::report, .number = 3});
  events.of(RingKind::shared, 1, {.kind = EventKind::log, .text = "a \"quoted\" line", .value = 2});
  return job;
}

}  // namespace weft::testing
