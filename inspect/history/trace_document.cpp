#include "inspect/history/trace_document.hpp"

#include <algorithm>
#include <ctime>
#include <iterator>

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

namespace weft {
namespace {

/// The number of bytes that are written at once.
constexpr std::size_t kPieceBytes = 1 << 16;

}  // namespace

std::string trace_text(std::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string trace_us(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

TraceArgs& TraceArgs::add(std::string_view name, std::string_view text) {
  return text.empty() ? *this : add_raw(name, trace_text(text));
}

TraceArgs& TraceArgs::add(std::string_view name, std::uint64_t number) {
  return add_raw(name, fmt::to_string(number));
}

TraceArgs& TraceArgs::add_us(std::string_view name, std::uint64_t ns) {
  return add_raw(name, fmt::format("{}.{:03}", ns / 1000, ns % 1000));
}

TraceArgs& TraceArgs::add_true(std::string_view name, bool is_true) {
  return is_true ? add_raw(name, "true") : *this;
}

TraceArgs& TraceArgs::add_raw(std::string_view name, std::string_view value) {
  fmt::format_to(std::back_inserter(fields_), "{}\"{}\":{}", fields_.empty() ? "" : ",", name,
                 value);
  return *this;
}

void TraceDocument::begin(TraceArgs about, std::int64_t first_ns,
                          std::int64_t unix_minus_monotonic_ns) {
  first_ns_ = first_ns;
  std::int64_t unix_ns = 0;
  if (__builtin_add_overflow(first_ns, unix_minus_monotonic_ns, &unix_ns)) unix_ns = 0;
  unix_ns = std::max<std::int64_t>(unix_ns, 0);
  const std::time_t seconds = unix_ns / 1'000'000'000;
  about
      .add("begin", fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z", fmt::gmtime(seconds),
                                unix_ns % 1'000'000'000))
      .add("begin_unix_ns", static_cast<std::uint64_t>(unix_ns));
  write_text(fmt::format("{{\"displayTimeUnit\":\"ns\",\"otherData\":{{{}}},\"traceEvents\":[",
                         about.fields()));
}

void TraceDocument::add_metadata(const TraceThread& thread, std::string_view what,
                                 const TraceArgs& args) {
  add_event(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", thread.process,
            thread.thread, what, args.fields());
}

void TraceDocument::name_process(int process, std::string_view name, std::uint64_t order) {
  const TraceThread thread{process, 1};
  add_metadata(thread, "process_name", TraceArgs().add("name", name));
  add_metadata(thread, "process_sort_index", TraceArgs().add("sort_index", order));
}

void TraceDocument::name_thread(const TraceThread& thread, std::string_view name,
                                std::uint64_t order) {
  add_metadata(thread, "thread_name", TraceArgs().add("name", name));
  add_metadata(thread, "thread_sort_index", TraceArgs().add("sort_index", order));
}

void TraceDocument::add_slice(const TraceThread& thread, std::int64_t begin_ns, std::int64_t end_ns,
                              std::string_view category, std::string_view name,
                              const TraceArgs& args) {
  add_event(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"cat":"{}","name":{},)"
            R"("args":{{{}}}}})",
            thread.process, thread.thread, trace_us(begin_ns - first_ns_),
            trace_us(end_ns - begin_ns), category, trace_text(name), args.fields());
}

void TraceDocument::add_mark(const TraceThread& thread, std::int64_t at_ns,
                             std::string_view category, std::string_view name,
                             const TraceArgs& args) {
  add_event(R"({{"ph":"i","s":"t","pid":{},"tid":{},"ts":{},"cat":"{}","name":{},"args":{{{}}}}})",
            thread.process, thread.thread, trace_us(at_ns - first_ns_), category, trace_text(name),
            args.fields());
}

void TraceDocument::add_flow(bool begins, std::uint64_t id, const TraceThread& thread,
                             std::int64_t at_ns, std::string_view category, std::string_view name) {
  add_event(R"({{"ph":{},"id":{},"pid":{},"tid":{},"ts":{},"cat":"{}","name":{}}})",
            begins ? R"("s")" : R"("f","bp":"e")", id, thread.process, thread.thread,
            trace_us(at_ns - first_ns_), category, trace_text(name));
}

void TraceDocument::add_counter(int process, std::int64_t at_ns, std::string_view name,
                                std::string_view series, std::int64_t value) {
  add_event(R"({{"ph":"C","pid":{},"ts":{},"name":{},"args":{{"{}":{}}}}})", process,
            trace_us(at_ns - first_ns_), trace_text(name), series, value);
}

void TraceDocument::finish() {
  write_text("\n]}\n");
  write_(buffer_);
  buffer_.clear();
}

void TraceDocument::write_text(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() < kPieceBytes) return;
  write_(buffer_);
  buffer_.clear();
}

}  // namespace weft
