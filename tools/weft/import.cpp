#include "tools/weft/import.hpp"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "data/formats/npy.hpp"
#include "data/formats/npz.hpp"
#include "data/remote/input_file.hpp"
#include "data/remote/storages.hpp"
#include "tools/weft/tensor_choice.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/part_writer.hpp"
#include "transport/storage/state_file.hpp"

namespace weft {
namespace {

/// The maximum number of bytes of a part, which is in memory as a whole. Only a part with a single
/// tensor may be larger.
constexpr std::int64_t kPartBytes = std::int64_t{1} << 30;

struct ImportOptions {
  std::string source;
  std::string folder;
  std::uint64_t step = 0;
  std::uint64_t seed = 0;
  TensorChoice choice{};
};

/// A tensor that is to be imported.
struct Imported {
  StoredTensor tensor{};
  std::function<std::vector<std::byte>()> elements{};
};

/// Returns the dtype of the imported tensor. A type that weft doesn't have becomes the next wider
/// type that weft has.
DType imported_dtype(const FileTensor& tensor) {
  if (tensor.dtype < FileDType::i16) return static_cast<DType>(tensor.dtype);
  for (const DType wider : {DType::f32, DType::i32}) {
    if (StateFile::can_cast(tensor.dtype, wider)) return wider;
  }
  fail(Errc::unavailable, "'{}' is {}, which weft can't read: leave it out by --filter",
       tensor.name, tensor.label());
}

std::vector<Imported> tensors_of(const std::shared_ptr<const StateFile>& file,
                                 TensorChoice& choice) {
  std::vector<Imported> all;
  for (std::size_t i = 0; i < file->tensors().size(); ++i) {
    const FileTensor& tensor = file->tensors()[i];
    if (!choice.takes(tensor.name)) continue;
    const TensorType type{choice.cast(imported_dtype(tensor)), tensor.shape};
    all.push_back(
        {.tensor = {.name = choice.rename(tensor.name), .type = type, .kind = tensor.kind},
         .elements = [file, i, type] {
           std::vector<std::byte> elements(static_cast<std::size_t>(type.bytes()));
           const TensorSource::Target target{whole_box(type.shape), elements.data()};
           file->source(i, type.dtype)->read({&target, 1});
           return elements;
         }});
  }
  return all;
}

std::vector<Imported> arrays_of(const std::string& path, TensorChoice& choice) {
  const auto file = std::make_shared<const InputFile>(path);
  const ReadAt read = [file](std::uint64_t offset, std::span<std::byte> out) {
    file->read(offset, out);
  };
  std::vector<Imported> all;
  for (const ZipEntry& entry : npz_arrays(read_zip_directory(file->bytes(), read))) {
    if (!choice.takes(entry.name)) continue;
    const std::vector<std::byte> bytes = read_zip_entry(entry, read);
    const NpyHeader header = read_npy_header(bytes, bytes.size());
    if (!header.dtype) {
      fail(Errc::unavailable,
           "'{}' has elements of type '{}', which weft doesn't have: convert it, for example "
           "by .astype(np.float32), or leave it out by --filter",
           entry.name, header.descr);
    }
    const DType dtype = choice.cast(*header.dtype);
    all.push_back({.tensor = {.name = choice.rename(entry.name), .type = {dtype, header.shape}},
                   .elements = [entry, read, dtype] {
                     const std::vector<std::byte> again = read_zip_entry(entry, read);
                     const NpyHeader of = read_npy_header(again, again.size());
                     return cast_elements(to_row_major(of, std::span(again).subspan(of.data_begin)),
                                          *of.dtype, dtype);
                   }});
  }
  return all;
}

/// Divides the tensors into parts. Returns the index of each part's first tensor, and then the
/// number of tensors.
std::vector<std::size_t> divide(const std::vector<Imported>& all) {
  std::vector<std::size_t> begins{0};
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::int64_t more = all[i].tensor.type.bytes();
    if (i > begins.back() && bytes + more > kPartBytes) {
      begins.push_back(i);
      bytes = 0;
    }
    bytes += more;
  }
  begins.push_back(all.size());
  return begins;
}

void write(CheckpointManifest& manifest, const std::vector<Imported>& all, std::size_t begin,
           std::size_t end, const std::string& path) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<SourceShard> shards;
  for (std::size_t i = begin; i < end; ++i) {
    const TensorType& type = all[i].tensor.type;
    memory.push_back(all[i].elements());
    shards.push_back({.header = {.name = all[i].tensor.name,
                                 .type = type,
                                 .offsets = whole_box(type.shape).box.offsets,
                                 .dims = type.shape,
                                 .step = manifest.step},
                      .elements = memory.back().data(),
                      .room = type.shape});
  }
  const auto file = static_cast<std::uint32_t>(manifest.files.size() - 1);
  const std::atomic<bool> never{false};
  auto stored = write_part(posix_file_system(), path, shards, {.file = file}, never);
  for (std::size_t i = begin; i < end; ++i) {
    manifest.tensors.push_back(all[i].tensor);
    manifest.tensors.back().shards = {std::move(stored[i - begin])};
  }
}

int run(ImportOptions& options) {
  options.choice.prepare();
  options.folder = without_last_slash(options.folder);
  const std::vector<Imported> all =
      options.source.ends_with(".npz")
          ? arrays_of(options.source, options.choice)
          : tensors_of(StateFile::open(options.source), options.choice);
  FileSystem& files = posix_file_system();
  const CheckpointLock lock(options.folder, fmt::format("weft import (pid {})", ::getpid()));
  // An earlier import that was killed may have left an unfinished folder of this name.
  remove_unfinished(files, options.folder);
  const std::string unfinished =
      begin_checkpoint(files, options.folder, options.step, "import", options.step);
  CheckpointManifest manifest{.step = options.step, .seed = options.seed, .partial = true};
  const std::vector<std::size_t> begins = divide(all);
  const int num_parts = static_cast<int>(begins.size()) - 1;
  for (int part = 0; part < num_parts; ++part) {
    const std::string& name = manifest.files.emplace_back(part_name(part, num_parts));
    const auto at = static_cast<std::size_t>(part);
    write(manifest, all, begins[at], begins[at + 1], unfinished + "/" + name);
  }
  const std::string path = commit_checkpoint(files, options.folder, unfinished, manifest);
  fmt::print("{}: {} tensors\n", visible(path), all.size());
  return 0;
}

}  // namespace

void add_import(CLI::App& app, int& code) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = app.add_subcommand(
      "import", "make a checkpoint from other programs' tensors, at which run.resume can begin");
  command
      ->add_option("source", options->source,
                   "safetensors, a file of torch.save(), a Hugging Face folder, a checkpoint, or "
                   "a .npz of NumPy")
      ->required();
  command->add_option("-o,--output", options->folder, "the folder of checkpoints")->required();
  command->add_option("--step", options->step, "the step that the loop begins at")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "the seed of the run")->capture_default_str();
  options->choice.add_options(*command);
  command->footer(
      "Examples:\n"
      "  weft import model.safetensors -o checkpoints\n"
      "  weft import weights.npz -o checkpoints --step 640 --cast bf16\n"
      "\n"
      "A loop that continues from the checkpoint makes missing state itself, such as an "
      "optimizer's. f16 becomes f32.");
  command->callback([options, &code] { code = run(*options); });
}

}  // namespace weft
