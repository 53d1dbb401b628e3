#pragma once
/// ExperienceWriter: gives rows to the loop of a running job, which reads them as a dataset
/// (experience()). Rows: several rows while they are being written.
///
///   weft::ExperienceWriter steps(job_id, "steps");        // in an actor: ctx.experience("steps")
///   weft::Rows rows = steps.loan(length, view.version());  // waits if the loop is behind
///   for (int t = 0; t < length; ++t) rows.get<float>("return", t)[0] = returns[t];
///   rows.publish();

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <weft/tensor/element.hpp>
#include <weft/tensor/type.hpp>

namespace weft {

class ActorContext;
class JobHost;
class RowSink;

/// Several rows in shared memory while they are being written. publish() gives all of them to the
/// loop at once. If this object or the process ends before publish(), the rows are dropped.
/// Movable. One thread uses a Rows at a time.
class Rows {
 public:
  Rows(Rows&&) noexcept;
  Rows& operator=(Rows&&) noexcept;
  ~Rows();

  std::int64_t size() const { return size_; }
  /// Returns the elements of a field in row `row`, 0 to size() - 1; their values are unspecified
  /// until you write them. Throws not_found, with the names of all fields; invalid_argument if T
  /// isn't the C++ type of the field's dtype, if there is no such row, or after publish().
  template <ChipElement T>
  std::span<T> get(std::string_view field, std::int64_t row) {
    const std::span<std::byte> bytes = find(field, *dtype_of<T>(), row);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  /// Gives the rows to the loop. After that, don't write to them.
  void publish();

 private:
  friend class ExperienceWriter;
  Rows(std::shared_ptr<RowSink> sender, std::vector<std::uint32_t> blocks, std::int64_t size,
       std::uint64_t version);
  std::span<std::byte> find(std::string_view field, DType dtype, std::int64_t row);

  std::shared_ptr<RowSink> sender_;  ///< null after publish()
  std::vector<std::uint32_t> blocks_;
  std::int64_t size_ = 0;
  std::uint64_t version_ = 0;
};

struct ExperienceWriterOptions {
  double timeout_s = 300;  ///< seconds; the longest wait for room, or for the loop to begin
  std::stop_token stop{};  ///< a stop request ends waits with the error cancelled
};

/// Writes rows for a job's loop. Copies are cheap. Thread-safe. The connection to the job is made
/// by the first loan(), so the job may still be starting when this object is made.
class ExperienceWriter {
 public:
  /// `job` is the id of a job of this user on this host (JobInfo::id), and `name` is the name that
  /// the loop gives to experience(). Throws invalid_argument.
  ExperienceWriter(std::string_view job, std::string_view name,
                   ExperienceWriterOptions options = {});

  /// Returns memory for `count` rows, made with this version of the parameters. If all memory has
  /// rows that the loop hasn't used yet, waits for the loop. Throws invalid_argument if `count` is
  /// less than 1 or more than all the memory holds, or on a thread that several actors share;
  /// timeout; cancelled, if a stop was requested; unavailable if the job has ended; not_found if
  /// there is no such job; and no_space if 256 processes write under this name.
  Rows loan(std::int64_t count, std::uint64_t version);

 private:
  friend class ActorContext;
  struct Source;
  ExperienceWriter(std::string_view job, std::string_view name, ExperienceWriterOptions options,
                   std::shared_ptr<JobHost> host);
  std::shared_ptr<Source> source_;
};

}  // namespace weft
