#pragma once
/// TraceDocument: a trace in Chrome's format, which is written piece by piece.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace weft {

/// Returns the text as JSON, in quotes.
std::string trace_text(std::string_view text);
/// Returns nanoseconds as microseconds.
std::string trace_us(std::int64_t ns);

/// The fields of an event's `args`, in JSON.
class TraceArgs {
 public:
  /// Adds a field. Leaves out an empty text.
  TraceArgs& add(std::string_view name, std::string_view text);
  TraceArgs& add(std::string_view name, std::uint64_t number);
  TraceArgs& add_us(std::string_view name, std::uint64_t ns);
  TraceArgs& add_true(std::string_view name, bool is_true);
  const std::string& fields() const { return fields_; }

 private:
  TraceArgs& add_raw(std::string_view name, std::string_view value);

  std::string fields_;
};

/// A thread of the trace. `process` must not be 0, because Perfetto takes 0 for the kernel.
struct TraceThread {
  int process = 0;
  int thread = 0;
};

class TraceDocument {
 public:
  explicit TraceDocument(const std::function<void(std::string_view)>& write) : write_(write) {}

  /// Begins the document. Times in the trace count from `first_ns`. The document's `otherData` has
  /// `about`, and the time of day at `first_ns`.
  void begin(TraceArgs about, std::int64_t first_ns, std::int64_t unix_minus_monotonic_ns);
  void name_process(int process, std::string_view name, std::uint64_t order);
  void name_thread(const TraceThread& thread, std::string_view name, std::uint64_t order);
  void add_slice(const TraceThread& thread, std::int64_t begin_ns, std::int64_t end_ns,
                 std::string_view category, std::string_view name, const TraceArgs& args);
  void add_mark(const TraceThread& thread, std::int64_t at_ns, std::string_view category,
                std::string_view name, const TraceArgs& args);
  /// Adds one end of an arrow. Both ends must be in slices.
  void add_flow(bool begins, std::uint64_t id, const TraceThread& thread, std::int64_t at_ns,
                std::string_view category, std::string_view name);
  void add_counter(int process, std::int64_t at_ns, std::string_view name, std::string_view series,
                   std::int64_t value);
  void finish();

 private:
  void write_text(std::string_view text);
  template <typename... Values>
  void add_event(fmt::format_string<Values...> format, Values&&... values) {
    std::string text(is_first_ ? "\n" : ",\n");
    is_first_ = false;
    fmt::format_to(std::back_inserter(text), format, std::forward<Values>(values)...);
    write_text(text);
  }
  void add_metadata(const TraceThread& thread, std::string_view what, const TraceArgs& args);

  const std::function<void(std::string_view)>& write_;
  std::int64_t first_ns_ = 0;
  std::string buffer_;
  bool is_first_ = true;
};

}  // namespace weft
