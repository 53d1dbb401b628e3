#include "tests/support/power_cut_files.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <weft/tensor/error.hpp>

namespace weft::testing {

class PowerCutFile : public NewFile {
 public:
  PowerCutFile(PowerCutFiles& files, int node) : files_(files), node_(node) {}
  void write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    files_.count();
    const std::lock_guard lock(files_.mutex_);
    auto& file = files_.nodes_[static_cast<std::size_t>(node_)].bytes;
    WEFT_CHECK(offset + bytes.size() <= file.size(), offset, bytes.size(), file.size());
    std::ranges::copy(bytes, file.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  void sync() override {
    files_.count();
    const std::lock_guard lock(files_.mutex_);
    auto& file = files_.nodes_[static_cast<std::size_t>(node_)];
    file.durable_bytes = file.bytes;
    file.is_durable = true;
  }

 private:
  PowerCutFiles& files_;
  const int node_;
};

void PowerCutFiles::count() {
  const std::lock_guard lock(mutex_);
  if (++calls_ >= cut_at_ && cut_at_ > 0) throw PowerCut{};
}

std::pair<int, std::string> PowerCutFiles::find_folder(const std::string& path) const {
  WEFT_CHECK(path.starts_with(root_), path);
  int folder = 0;
  std::string last;
  for (const auto& part : std::filesystem::path(path.substr(root_.size())).relative_path()) {
    if (!last.empty()) folder = nodes_[static_cast<std::size_t>(folder)].names.at(last);
    last = part.string();
  }
  return {folder, last};
}

void PowerCutFiles::change(Change change) {
  auto& names = nodes_[static_cast<std::size_t>(change.folder)].names;
  if (!change.from.empty()) names.erase(change.from);
  if (!change.to.empty()) names[change.to] = change.node;
  changes_.push_back(std::move(change));
}

std::unique_ptr<NewFile> PowerCutFiles::create_file(const std::string& path, std::uint64_t bytes) {
  count();
  const auto [folder, name] = find_folder(path);
  nodes_.push_back({.bytes = std::vector<std::byte>(bytes)});
  const int node = static_cast<int>(nodes_.size()) - 1;
  change({.folder = folder, .to = name, .node = node});
  return std::make_unique<PowerCutFile>(*this, node);
}

void PowerCutFiles::create_folder(const std::string& path) {
  count();
  const auto [folder, name] = find_folder(path);
  if (nodes_[static_cast<std::size_t>(folder)].names.contains(name)) return;
  nodes_.push_back({.is_folder = true});
  change({.folder = folder, .to = name, .node = static_cast<int>(nodes_.size()) - 1});
}

bool PowerCutFiles::rename(const std::string& from, const std::string& to) {
  count();
  const auto [folder, name] = find_folder(from);
  const auto [new_folder, new_name] = find_folder(to);
  WEFT_CHECK(folder == new_folder, from, to);
  const auto& names = nodes_[static_cast<std::size_t>(folder)].names;
  if (names.contains(new_name)) return false;
  change({.folder = folder, .from = name, .to = new_name, .node = names.at(name)});
  return true;
}

void PowerCutFiles::sync_folder(const std::string& path) {
  count();
  const auto [parent, name] = find_folder(path);
  const int folder = name.empty() ? 0 : nodes_[static_cast<std::size_t>(parent)].names.at(name);
  for (Change& change : changes_) {
    if (change.folder == folder) change.is_durable = true;
  }
}

std::vector<FolderEntry> PowerCutFiles::list(const std::string& path) const {
  const auto [parent, name] = find_folder(path);
  const int folder = name.empty() ? 0 : nodes_[static_cast<std::size_t>(parent)].names.at(name);
  std::vector<FolderEntry> entries;
  for (const auto& [entry, node] : nodes_[static_cast<std::size_t>(folder)].names) {
    entries.push_back({entry, nodes_[static_cast<std::size_t>(node)].is_folder});
  }
  return entries;
}

void PowerCutFiles::unlink(const std::string& path) {
  count();
  const auto [folder, name] = find_folder(path);
  change({.folder = folder, .from = name});
}

void PowerCutFiles::survive(Random& random, const std::string& to) const {
  std::vector<std::map<std::string, int>> names(nodes_.size());
  for (const Change& change : changes_) {
    if (!change.is_durable && random() % 2 == 0) continue;
    auto& folder = names[static_cast<std::size_t>(change.folder)];
    // If the change that made the old name was lost, the rename has no effect.
    if (!change.from.empty() && folder.erase(change.from) == 0 && !change.is_durable) continue;
    if (!change.to.empty()) folder[change.to] = change.node;
  }
  write_out(0, names, random, to);
}

void PowerCutFiles::write_out(int node, const std::vector<std::map<std::string, int>>& names,
                              Random& random, const std::string& to) const {
  for (const auto& [name, child] : names[static_cast<std::size_t>(node)]) {
    const Node& found = nodes_[static_cast<std::size_t>(child)];
    const std::string path = to + "/" + name;
    if (found.is_folder) {
      std::filesystem::create_directory(path);
      write_out(child, names, random, path);
      continue;
    }
    std::vector<std::byte> bytes = found.durable_bytes;
    if (!found.is_durable) {
      bytes = found.bytes;
      for (std::size_t at = 0; at < bytes.size(); at += kStorageAlignment) {
        const auto block =
            std::span(bytes).subspan(at).first(std::min(kStorageAlignment, bytes.size() - at));
        if (random() % 2 == 0) std::ranges::fill(block, std::byte{0});
      }
      if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    }
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
}

}  // namespace weft::testing
