#pragma once
/// ExperienceWriter: gives rows to the loop of a running job, which reads them as a dataset
/// (experience()). Rows: the rows that are being written.
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

/// Rows in shared memory that are being written. They arrive together, by publish(). Rows that
/// aren't published are dropped with this object, or with the process. Movable. For one thread at a
/// time.
class Rows {
 public:
  Rows(Rows&&) noexcept;
  Rows& operator=(Rows&&) noexcept;
  ~Rows();

  std::int64_t size() const { return size_; }
  /// Returns the elements of a field of a row, 0 to size() - 1, whose values are unspecified before
  /// they are written. Throws not_found with the names of all fields; invalid_argument if T isn't
  /// the C++ type of the field's dtype, for a row that isn't there, and after publish().
  template <ChipElement T>
  std::span<T> get(std::string_view field, std::int64_t row) {
    const std::span<std::byte> bytes = find(field, *dtype_of<T>(), row);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  /// Gives the rows to the loop. They must not be written any more.
  void publish();

 private:
  friend class ExperienceWriter;
  Rows(std::shared_ptr<RowSink> sender, std::vector<std::uint32_t> blocks, std::int64_t size,
       std::uint64_t version);
  std::span<std::byte> find(std::string_view field, DType dtype, std::int64_t row);

  std::shared_ptr<RowSink> sender_;  ///< null once they are published
  std::vector<std::uint32_t> blocks_;
  std::int64_t size_ = 0;
  std::uint64_t version_ = 0;
};

struct ExperienceWriterOptions {
  double timeout_s = 300;  ///< the longest wait for room, and for the job's loop to begin
  std::stop_token stop{};  ///< ends a wait with the error cancelled
};

/// Writes rows for the job's loop. Copies are cheap. Thread-safe. The first loan() opens it, so the
/// job may still be starting when the object is made.
class ExperienceWriter {
 public:
  /// `job` is the id of a job of this user on this host (JobInfo::id), and `name` that of
  /// experience(). Throws invalid_argument.
  ExperienceWriter(std::string_view job, std::string_view name,
                   ExperienceWriterOptions options = {});

  /// Returns memory for `count` rows, made with this version of the parameters. Waits while the
  /// loop is behind, so that all memory has rows that it hasn't used yet. Throws invalid_argument
  /// for a count of less than 1 or more than the memory has, and on a thread that several actors
  /// share; timeout; cancelled, if a stop was requested; unavailable if the job has ended;
  /// not_found if there is no such job; and no_space if 256 processes write to this name.
  Rows loan(std::int64_t count, std::uint64_t version);

 private:
  friend class ActorContext;
  struct Source;
  ExperienceWriter(std::string_view job, std::string_view name, ExperienceWriterOptions options,
                   std::shared_ptr<JobHost> host);
  std::shared_ptr<Source> source_;
};

}  // namespace weft
