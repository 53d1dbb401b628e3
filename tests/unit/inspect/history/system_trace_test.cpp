#include "inspect/history/system_trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "tests/property/seeds.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/trace_grammar.hpp"
#include "tests/unit/inspect/systems/made_system.hpp"

namespace weft::system_trace_test {
namespace {

using Json = nlohmann::json;
using testing::MadeSystem;
using testing::TraceGrammar;

constexpr std::int64_t kMs = 1'000'000;

struct Written {
  std::string text{};
  TraceCounts counts{};
  Json json() const { return Json::parse(text); }
};

Written trace_of(const SystemEvents& events, double last_s = 0) {
  Written written;
  written.counts =
      write_system_trace(events, last_s, [&](std::string_view piece) { written.text += piece; });
  return written;
}

/// Makes events of a system that began 50 s before its snapshot. Times are in ms since the system
/// began.
class MadeCalls {
 public:
  explicit MadeCalls(const MadeSystem& made) { events.system = made.snapshot; }

  void sent(double at_ms, std::uint32_t slot, std::uint32_t from, std::uint32_t row,
            std::uint64_t number, ActorFunctionKind function = ActorFunctionKind::call) {
    add(at_ms, slot,
        {.kind = CallEventKind::sent,
         .function = function,
         .row = row,
         .number = number,
         .value = from});
  }
  void answered(double at_ms, std::uint32_t slot, std::uint32_t from, std::uint32_t row,
                std::uint64_t number, Errc error = Errc{}) {
    add(at_ms, slot,
        {.kind = CallEventKind::answered,
         .function = ActorFunctionKind::call,
         .row = row,
         .number = number,
         .value = from | static_cast<std::uint64_t>(error) << 32U});
  }
  void ran(double begin_ms, double end_ms, std::uint32_t slot, std::uint32_t row,
           std::uint32_t peer, std::uint64_t number,
           ActorFunctionKind function = ActorFunctionKind::call) {
    add(end_ms, slot,
        {.kind = CallEventKind::ran,
         .function = function,
         .row = row,
         .peer = peer,
         .peer_incarnation = 1,
         .number = number});
    events.events.back().begin_ns = time_of(begin_ms);
  }
  void replied(double at_ms, std::uint32_t slot, std::uint32_t row, std::uint32_t peer,
               std::uint64_t number) {
    add(at_ms, slot,
        {.kind = CallEventKind::replied,
         .function = ActorFunctionKind::call,
         .row = row,
         .peer = peer,
         .peer_incarnation = 1,
         .number = number});
  }
  static std::int64_t time_of(double ms) {
    return 50 * MadeSystem::kSecond + static_cast<std::int64_t>(ms * kMs);
  }

  SystemEvents events{};

 private:
  void add(double at_ms, std::uint32_t slot, CallEvent event) {
    event.incarnation = 1;
    events.events.push_back({.slot = slot, .event = event, .at_ns = time_of(at_ms)});
  }
};

std::vector<Json> events_of(const Json& document, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : document.at("traceEvents")) {
    if (event.at("ph") == phase) found.push_back(event);
  }
  return found;
}

/// The program calls a[0] in process 1. During the call, a[0] asks b[0] in process 2.
MadeCalls two_calls() {
  MadeSystem made(3);
  made.add("a", {"ask"}, {1});
  made.add("b", {"get"}, {2});
  MadeCalls calls(made);
  calls.sent(1, 0, 0, 0, 7);
  calls.sent(3, 1, 1, 1, 9);
  calls.ran(4, 5, 2, 1, 1, 9);
  calls.answered(6, 1, 1, 1, 9);
  calls.ran(2, 7, 1, 0, 0, 7);
  calls.answered(8, 0, 0, 0, 7);
  return calls;
}

TEST(SystemTrace, IsGolden) {
  const Written written = trace_of(two_calls().events);
  testing::expect_golden("trace/calls.json", written.text);
  EXPECT_EQ(TraceGrammar::fault_of(written.json()), "");
  EXPECT_EQ(written.counts.slices, 4U);
  EXPECT_EQ(written.counts.flows, 4U) << "each call has an arrow to its function and one back";
  EXPECT_EQ(written.counts.dropped_flows, 0U);
}

TEST(SystemTrace, PutsCallsThatOverlapOnTracksOfTheirOwn) {
  MadeSystem made(2);
  made.add("a", {"ask"}, {1});
  MadeCalls calls(made);
  for (std::uint64_t i = 1; i <= 3; ++i) calls.sent(static_cast<double>(i), 0, 0, 0, i);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const auto at = static_cast<double>(10 * i);
    calls.ran(at, at + 1, 1, 0, 0, i);
    calls.answered(at + 2, 0, 0, 0, i);
  }
  calls.sent(40, 0, 0, 0, 4, ActorFunctionKind::tell);
  calls.ran(41, 42, 1, 0, 0, 4, ActorFunctionKind::tell);
  const Written written = trace_of(calls.events);
  EXPECT_EQ(TraceGrammar::fault_of(written.json()), "");
  EXPECT_EQ(written.counts.flows, 7U);
  std::vector<std::string> tracks;
  for (const Json& event : events_of(written.json(), "M")) {
    if (event.at("name") == "thread_name") tracks.push_back(event.at("args").at("name"));
  }
  EXPECT_EQ(tracks, (std::vector<std::string>{"calls", "calls 2", "calls 3", "a[0]"}));
}

TEST(SystemTrace, CountsTheMessagesThatWait) {
  MadeSystem made(2);
  made.add("a", {"ask"}, {1});
  MadeCalls calls(made);
  calls.sent(1, 0, 0, 0, 1);
  calls.sent(2, 0, 0, 0, 2);
  calls.sent(3, 0, 0, 0, 3);
  calls.ran(4, 5, 1, 0, 0, 1);
  calls.ran(5, 6, 1, 0, 0, 2);
  calls.events.open.insert({.slot = 0, .incarnation = 1, .is_call = true, .number = 3});
  std::vector<int> depths;
  for (const Json& event : events_of(trace_of(calls.events).json(), "C")) {
    EXPECT_EQ(event.at("name"), "mailbox a[0]");
    depths.push_back(event.at("args").at("messages"));
  }
  EXPECT_EQ(depths, (std::vector<int>{1, 2, 3, 2, 1}));
}

TEST(SystemTrace, LeadsFromAReplyToItsCaller) {
  MadeCalls calls = two_calls();
  calls.events.events.resize(4);
  calls.ran(2, 2.5, 1, 0, 0, 7);
  calls.replied(7, 1, 0, 0, 7);
  calls.answered(8, 0, 0, 0, 7);
  const Written written = trace_of(calls.events);
  EXPECT_EQ(TraceGrammar::fault_of(written.json()), "");
  EXPECT_EQ(written.counts.flows, 4U);
  const std::vector<Json> begins = events_of(written.json(), "s");
  const auto is_reply = [](const Json& each) {
    return each.at("cat") == "reply flow" && each.at("ts") == 6000.0;
  };
  EXPECT_EQ(std::count_if(begins.begin(), begins.end(), is_reply), 1) << written.text;
}

TEST(SystemTrace, ShowsWhatHasNotEnded) {
  MadeSystem made(2);
  made.add("a", {"ask"}, {1});
  made.run(0, 0, 0, 49.99);
  made.actor(0).call = 7;
  MadeCalls calls(made);
  calls.sent(1, 0, 0, 0, 7);
  calls.events.awaited.insert({.slot = 0, .incarnation = 1, .is_call = true, .number = 7});
  const Written written = trace_of(calls.events);
  EXPECT_EQ(TraceGrammar::fault_of(written.json()), "");
  EXPECT_EQ(written.counts.unfinished, 2U);
  EXPECT_EQ(written.counts.flows, 1U);
  for (const Json& slice : events_of(written.json(), "X")) {
    EXPECT_TRUE(slice.at("args").at("unfinished").get<bool>());
    EXPECT_GT(slice.at("dur"), 49.9e6) << "microseconds";
  }
}

TEST(SystemTrace, CountsWhatTheRingsHaveLost) {
  MadeCalls calls = two_calls();
  calls.events.events.erase(calls.events.events.begin());  // the first call
  const Written written = trace_of(calls.events);
  EXPECT_EQ(TraceGrammar::fault_of(written.json()), "");
  EXPECT_EQ(written.counts.flows, 2U);
  EXPECT_EQ(written.counts.dropped_flows, 1U);
  EXPECT_EQ(written.counts.lost_begins, 1U);
}

TEST(SystemTrace, NamesTheErrorOfACall) {
  MadeCalls calls = two_calls();
  calls.events.events.pop_back();
  calls.answered(8, 0, 0, 0, 7, Errc::timeout);
  const Written written = trace_of(calls.events);
  EXPECT_EQ(TraceGrammar::fault_of(written.json()), "");
  EXPECT_EQ(written.counts.flows, 3U) << "a timeout is no answer";
  EXPECT_NE(written.text.find(R"("error":"timeout")"), std::string::npos) << written.text;
}

TEST(SystemTrace, ShowsTheTimeThatIsAskedFor) {
  const MadeCalls calls = two_calls();
  EXPECT_EQ(trace_of(calls.events, 1e30).text, trace_of(calls.events).text);
  const Written last = trace_of(calls.events, 50 - 0.0065);
  EXPECT_EQ(TraceGrammar::fault_of(last.json()), "");
  EXPECT_EQ(last.counts.slices, 2U);
  EXPECT_EQ(last.counts.flows, 2U);
  EXPECT_THROW(trace_of(MadeCalls(MadeSystem(1)).events), Error);
}

TEST(SystemTrace, FollowsTheGrammarWhateverTheEventsAre) {
  std::mt19937_64 random;
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  for (const std::uint64_t seed : testing::seeds(200)) {
    SCOPED_TRACE(seed);
    random.seed(seed);
    MadeSystem made(3);
    made.add("a", {"ask"}, {1, 2});
    if (below(2) == 0) made.run(below(2), 0, below(3), 0.001 * below(60'000));
    MadeCalls calls(made);
    for (std::uint32_t i = below(60); i > 0; --i) {
      const double at = below(100);
      const std::uint32_t number = below(8);
      switch (below(4)) {
        case 0: calls.sent(at, below(3), below(3), below(2), number); break;
        case 1: calls.answered(at, below(3), below(3), below(2), number); break;
        case 2: calls.ran(at - below(20), at, below(3), below(2), below(3), number); break;
        default: calls.replied(at, below(3), below(2), below(3), number); break;
      }
    }
    std::ranges::stable_sort(calls.events.events, {}, &SystemEvent::at_ns);
    for (const SystemEvent& each : calls.events.events) {
      if (below(4) == 0) calls.events.awaited.insert(each.message());
      if (below(4) == 0) calls.events.open.insert(each.message());
    }
    if (calls.events.events.empty()) continue;
    try {
      EXPECT_EQ(TraceGrammar::fault_of(trace_of(calls.events).json()), "");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::not_found);
    }
  }
}

}  // namespace
}  // namespace weft::system_trace_test
