#pragma once
/// Checks the rules that a trace in Chrome's format must follow so that Perfetto shows all of it.

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft::testing {

class TraceGrammar {
 public:
  /// Returns "" for a valid document, and otherwise the first fault.
  static std::string fault_of(const nlohmann::json& document) {
    TraceGrammar grammar;
    for (const auto& event : document.at("traceEvents")) {
      grammar.read(event);
      if (!grammar.fault_.empty()) return fmt::format("{}: {}", grammar.fault_, event.dump());
    }
    for (const auto& [id, flow] : grammar.flows_) {
      const std::string fault = grammar.fault_of_flow(flow);
      if (!fault.empty()) return fmt::format("flow {}: {}", id, fault);
    }
    return {};
  }

 private:
  using Thread = std::pair<int, int>;
  struct Span {
    std::int64_t begin;
    std::int64_t end;
  };
  struct FlowEvents {
    std::vector<nlohmann::json> begins;
    std::vector<nlohmann::json> ends;
  };

  static std::int64_t ns(const nlohmann::json& us) { return std::llround(us.get<double>() * 1e3); }
  static Thread thread(const nlohmann::json& event) { return {event.at("pid"), event.at("tid")}; }

  void expect(bool holds, const char* what) {
    if (!holds && fault_.empty()) fault_ = what;
  }

  void read(const nlohmann::json& event) {
    const std::string phase = event.at("ph");
    expect(event.at("pid").is_number_integer() && event.at("pid") > 0, "a number of a process");
    expect(event.at("name").is_string(), "a name");
    if (phase == "M") {
      if (event.at("name") == "thread_name") named_.insert(thread(event));
      return;
    }
    expect(event.at("ts").is_number() && event.at("ts") >= 0, "a time since the first event");
    if (phase == "C") {
      for (const auto& value : event.at("args")) expect(value.is_number(), "a counter's number");
      return;
    }
    expect(named_.contains(thread(event)), "a thread with a name");
    if (phase == "X") {
      read_slice(event);
    } else if (phase == "i") {
      expect(event.at("s") == "t", "an instant of a thread");
    } else if (phase == "s") {
      flows_[event.at("id")].begins.push_back(event);
    } else if (phase == "f") {
      flows_[event.at("id")].ends.push_back(event);
      expect(event.at("bp") == "e", "an end that belongs to the slice around it");
    } else {
      expect(false, "a phase");
    }
  }

  void read_slice(const nlohmann::json& event) {
    const Span span{ns(event.at("ts")), ns(event.at("ts")) + ns(event.at("dur"))};
    expect(event.at("dur").is_number() && span.end >= span.begin, "a duration");
    std::vector<Span>& all = slices_[thread(event)];
    std::vector<Span>& open = open_[thread(event)];
    expect(all.empty() || all.back().begin <= span.begin, "slices in order");
    while (!open.empty() && open.back().end <= span.begin) open.pop_back();
    expect(open.empty() || span.end <= open.back().end, "slices that nest");
    open.push_back(span);
    all.push_back(span);
  }

  std::string fault_of_flow(const FlowEvents& flow) const {
    if (flow.begins.size() != 1 || flow.ends.size() != 1) return "one beginning and one end";
    const auto& [begin, end] = std::pair(flow.begins.front(), flow.ends.front());
    if (begin.at("cat") != end.at("cat") || begin.at("name") != end.at("name")) {
      return "one name and category";
    }
    if (ns(begin.at("ts")) > ns(end.at("ts"))) return "ends before it begins";
    if (!is_in_slice(begin) || !is_in_slice(end)) return "ends that lie in slices";
    return {};
  }
  bool is_in_slice(const nlohmann::json& event) const {
    const auto slices = slices_.find(thread(event));
    if (slices == slices_.end()) return false;
    const std::int64_t at = ns(event.at("ts"));
    for (const Span& span : slices->second) {
      if (span.begin <= at && at < span.end) return true;
    }
    return false;
  }

  std::string fault_;
  std::set<Thread> named_;
  std::map<Thread, std::vector<Span>> slices_;
  std::map<Thread, std::vector<Span>> open_;
  std::map<std::uint64_t, FlowEvents> flows_;
};

}  // namespace weft::testing
