#pragma once
/// A file system in memory that can lose power. Data that isn't durable then survives only in part.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/files/file_system.hpp"
#include "tests/support/checkpoint_world.hpp"

namespace weft::testing {

/// Thrown by the call during which the power fails, and by all later calls.
struct PowerCut {};

/// A file system as harsh as POSIX allows. When the power fails, each change of a folder that no
/// sync_folder() has made durable, and each block of 4096 bytes that no sync() has made durable,
/// survives or is lost at random.
class PowerCutFiles : public FileSystem {
 public:
  /// `root` is an existing folder that contains all paths.
  explicit PowerCutFiles(std::string root) : root_(std::move(root)) { nodes_.push_back({true}); }

  /// The call with this number, counted from 1, and all later calls throw PowerCut; with 0 no call
  /// does.
  void cut_at(std::uint64_t call) { cut_at_ = call; }
  std::uint64_t calls() const { return calls_; }
  /// Writes to the empty folder `to` the files that survive if the power fails now.
  void survive(Random& random, const std::string& to) const;

  std::unique_ptr<NewFile> create_file(const std::string& path, std::uint64_t bytes) override;
  void create_folder(const std::string& path) override;
  bool rename(const std::string& from, const std::string& to) override;
  void sync_folder(const std::string& path) override;
  std::vector<FolderEntry> list(const std::string& path) const override;
  void remove_file(const std::string& path) override { unlink(path); }
  void remove_folder(const std::string& path) override { unlink(path); }

 private:
  friend class PowerCutFile;
  struct Node {
    bool is_folder = false;
    std::map<std::string, int> names{};      // of a folder: the node of each name
    std::vector<std::byte> bytes{};          // of a file
    std::vector<std::byte> durable_bytes{};  // of a file; empty before its first sync()
    bool is_durable = false;
  };
  /// A change of a folder: removes the name `from`, and adds the name `to` for `node`. Either name
  /// may be empty.
  struct Change {
    int folder = 0;
    std::string from{};
    std::string to{};
    int node = -1;
    bool is_durable = false;
  };
  void count();
  std::pair<int, std::string> find_folder(const std::string& path) const;
  void unlink(const std::string& path);
  void change(Change change);
  void write_out(int node, const std::vector<std::map<std::string, int>>& names, Random& random,
                 const std::string& to) const;

  const std::string root_;
  std::vector<Node> nodes_;  // nodes_[0] is the root
  std::vector<Change> changes_;
  std::uint64_t cut_at_ = 0;
  std::uint64_t calls_ = 0;
  std::mutex mutex_;
};

}  // namespace weft::testing
