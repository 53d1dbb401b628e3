// Compares a file with the parameters to load, and describes where the file differs.

#include <weft/train/state.hpp>

#include <algorithm>
#include <map>

#include <fmt/ranges.h>
#include <weft/tensor/error.hpp>

#include "data/formats/in_quotes.hpp"
#include "data/remote/storages.hpp"
#include "spmd/base/nearest.hpp"
#include "spmd/tensor/node.hpp"
#include "spmd/tensor/trace.hpp"
#include "transport/storage/state_file.hpp"

namespace weft {
namespace {

/// The limit on faults that a message lists, so that the important ones are seen.
constexpr std::size_t kFaultsMax = 20;

constexpr std::int64_t kComparedBytes = std::int64_t{16} << 20;

/// A parameter of the program, and the tensor of the file from which it is loaded.
struct Match {
  std::size_t state = 0;
  std::size_t tensor = 0;
  std::vector<std::size_t> twins{};  ///< the file's tensors for the parameters that are tied to
                                     ///< this one
};

/// Throws invalid_argument unless the file's tensors `a` and `b` have the same elements, because
/// the program has tied them to one parameter. Reads a few rows at a time.
void require_equal(const StateFile& file, std::size_t a, std::size_t b, const TensorType& type) {
  if (file.is_same_place(a, b)) return;
  const std::int64_t rows = type.shape.size() == 0 ? 1 : type.shape[0];
  const std::int64_t row_bytes =
      std::max<std::int64_t>(type.bytes() / std::max<std::int64_t>(rows, 1), 1);
  const std::int64_t step = std::max<std::int64_t>(kComparedBytes / row_bytes, 1);
  for (std::int64_t row = 0; row < rows; row += step) {
    PlacedBox part = whole_box(type.shape);
    if (type.shape.size() > 0) {
      part.box.offsets[0] = row;
      part.box.dims[0] = part.room[0] = std::min(step, rows - row);
    }
    const auto bytes = static_cast<std::size_t>(TensorType{type.dtype, part.room}.bytes());
    std::vector<std::byte> first(bytes);
    std::vector<std::byte> second(bytes);
    const TensorSource::Target to_first{part, first.data()};
    const TensorSource::Target to_second{part, second.data()};
    file.source(a, type.dtype)->read({&to_first, 1});
    file.source(b, type.dtype)->read({&to_second, 1});
    if (first == second) continue;
    fail(Errc::invalid_argument,
         "load(\"{}\"): '{}' and '{}' have different elements in the file, but are one tied "
         "parameter here: don't tie them, or leave one of them out of the file",
         file.path(), file.tensors()[a].name, file.tensors()[b].name);
  }
}

class Matching {
 public:
  Matching(std::span<const Parameter> state, const StateFile& file, const LoadOptions& options)
      : state_(state), file_(file), options_(options) {
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
      by_name_.emplace(file.tensors()[i].name, i);
    }
    for (std::size_t i = 0; i < state.size(); ++i) match(i);
    note_unexpected();
  }

  /// Throws unless the file matches in every respect.
  void require(const std::source_location& where) const {
    std::vector<std::string> faults = faults_;
    std::size_t count = faults.size();
    if (!options_.partial) {
      count += missing_.size() + result_.unexpected.size();
      const auto has_room = [&] { return faults.size() < kFaultsMax; };
      for (std::size_t i = 0; i < missing_.size() && has_room(); ++i) {
        faults.push_back(text_of(missing_[i]));
      }
      for (std::size_t i = 0; i < result_.unexpected.size() && has_room(); ++i) {
        faults.push_back(fmt::format("the file has {}, which the loaded state doesn't have",
                                     in_quotes(result_.unexpected[i])));
      }
    }
    if (faults.empty()) return;
    faults.resize(std::min(faults.size(), kFaultsMax));
    const bool is_of_names = !result_.missing.empty() || !result_.unexpected.empty();
    fail(Errc::invalid_argument, "load(\"{}\") at {}: {}{}{}", file_.path(), file_line(where),
         fmt::join(faults, "; "),
         count > faults.size() ? fmt::format("; and {} more", count - faults.size()) : "",
         is_of_names && !options_.partial
             ? ". LoadOptions::rename maps names to names in the file; LoadOptions::partial "
               "loads only the tensors that both have"
             : "");
  }

  const std::vector<Match>& matches() const { return matches_; }
  LoadResult result() && { return std::move(result_); }

 private:
  struct Missing {
    std::string own;
    std::string in_file;
  };
  std::string text_of(const Missing& missing) const {
    std::vector<std::string> rest;  // names in the file that no parameter has
    for (const FileTensor& tensor : file_.tensors()) {
      if (!taken_.contains(tensor.name)) rest.push_back(tensor.name);
    }
    std::vector<std::string> near = nearest_names(missing.in_file, rest);
    for (std::string& other : near) other = in_quotes(other);
    return fmt::format(
        "'{}'{} is not in the file{}", missing.in_file,
        missing.in_file == missing.own ? "" : fmt::format(" (renamed from '{}')", missing.own),
        near.empty() ? "" : fmt::format(", which has {}", fmt::join(near, ", ")));
  }

  void match(std::size_t i) {
    const std::string& own = state_[i].name();
    std::vector<std::size_t> found = find_by_any_name(i);
    if (found.empty()) {
      result_.missing.push_back(own);
      missing_.push_back({own, renamed(own)});
      return;
    }
    for (const std::size_t tensor : found) check(i, tensor);
    const std::size_t first = found.front();
    found.erase(found.begin());
    matches_.push_back({i, first, std::move(found)});
  }

  std::string renamed(const std::string& own) const {
    return options_.rename ? options_.rename(own) : own;
  }

  /// Finds the file's tensors that have the parameter's own name or the name of a parameter tied to
  /// it.
  std::vector<std::size_t> find_by_any_name(std::size_t i) {
    const std::string& own = state_[i].name();
    std::vector<std::string> names{own};
    const auto& aliases = state_[i].node()->aliases;
    names.insert(names.end(), aliases.begin(), aliases.end());
    std::vector<std::size_t> found;
    for (const std::string& each : names) {
      const std::string name = renamed(each);
      const auto [taken, is_new] = taken_.emplace(name, own);
      if (!is_new && taken->second != own) {
        faults_.push_back(
            fmt::format("'{}' and '{}' are both renamed to '{}'", taken->second, own, name));
      }
      const auto in_file = by_name_.find(name);
      if (is_new && in_file != by_name_.end()) found.push_back(in_file->second);
    }
    return found;
  }

  /// Records the differences between a parameter and its tensor in the file.
  void check(std::size_t i, std::size_t in_file) {
    const std::string& own = state_[i].name();
    const FileTensor& tensor = file_.tensors()[in_file];
    const TensorType& type = state_[i].type();
    if (tensor.shape != type.shape) {
      faults_.push_back(fmt::format("'{}' is {}, but in the file it is {}", own, type.to_string(),
                                    tensor.label()));
    } else if (tensor.dtype != static_cast<FileDType>(type.dtype) &&
               !(options_.cast && StateFile::can_cast(tensor.dtype, type.dtype))) {
      faults_.push_back(fmt::format(
          "'{}' is {}, but in the file it is {}{}", own, type.to_string(), tensor.label(),
          StateFile::can_cast(tensor.dtype, type.dtype) ? " (LoadOptions::cast converts it)" : ""));
    }
  }

  void note_unexpected() {
    const auto is_opt_state = [](const Parameter& parameter) {
      return parameter.node()->kind == InputKind::opt_state;
    };
    const bool wants_opt_state = std::ranges::any_of(state_, is_opt_state);
    for (const FileTensor& tensor : file_.tensors()) {
      if (taken_.contains(tensor.name)) continue;
      if (tensor.kind == StateKind::opt_state && !wants_opt_state) continue;
      result_.unexpected.push_back(tensor.name);
    }
  }

  const std::span<const Parameter> state_;
  const StateFile& file_;
  const LoadOptions& options_;
  std::map<std::string, std::size_t> by_name_;  // tensors of the file
  std::map<std::string, std::string> taken_;    // names in the file, with the parameters that use
                                                // them
  std::vector<Missing> missing_;
  std::vector<std::string> faults_;
  std::vector<Match> matches_;
  LoadResult result_;
};

}  // namespace

LoadResult load(std::span<const Parameter> state, const std::string& path,
                const LoadOptions& options, std::source_location where) {
  require_storage(path, "load: path");
  Runtime& runtime = Trace::current(where).runtime();
  const Mesh* mesh = runtime.mesh();
  const auto file = StateFile::open(path);
  Matching matching(state, *file, options);
  matching.require(where);
  for (const Match& match : matching.matches()) {
    require_no_recorded_use(state[match.state], where);
    for (const std::size_t twin : match.twins) {
      require_equal(*file, match.tensor, twin, state[match.state].type());
    }
  }
  std::vector<SourcePtr> sources;
  std::string listing;
  for (const Match& match : matching.matches()) {
    const Parameter& each = state[match.state];
    const SourcePtr& source = sources.emplace_back(file->source(match.tensor, each.type().dtype));
    listing +=
        fmt::format("load '{}' {} from '{}', digest {:016x}\n", each.name(),
                    each.type().to_string(), file->tensors()[match.tensor].name, source->digest());
  }
  runtime.require_alike(listing, {.function = "load", .loc = where});
  const bool is_same_mesh = mesh != nullptr && file->mesh() && *file->mesh() == *mesh;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Match& match = matching.matches()[i];
    const auto& laid_out = file->tensors()[match.tensor].sharding;
    set_source(state[match.state], std::move(sources[i]), is_same_mesh ? laid_out : std::nullopt,
               where);
  }
  LoadResult result = std::move(matching).result();
  result.metadata = file->metadata();
  return result;
}

}  // namespace weft
