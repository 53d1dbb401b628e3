#pragma once
/// Calls a callback before each call to the file system.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/files/file_system.hpp"

namespace weft::testing {

/// Forwards each call to the system's files, after it has called `before` with the call's name and
/// its number, counted from 1.
class WatchedFiles : public FileSystem {
 public:
  using Before = std::function<void(const char* call, std::uint64_t number)>;
  explicit WatchedFiles(Before before) : before_(std::move(before)) {}

  std::unique_ptr<NewFile> create_file(const std::string& path, std::uint64_t bytes) override {
    note("create");
    return std::make_unique<File>(*this, posix_file_system().create_file(path, bytes));
  }
  void create_folder(const std::string& path) override {
    note("mkdir");
    posix_file_system().create_folder(path);
  }
  bool rename(const std::string& from, const std::string& to) override {
    note("rename");
    return posix_file_system().rename(from, to);
  }
  void sync_folder(const std::string& path) override {
    note("fsync of a folder");
    posix_file_system().sync_folder(path);
  }
  std::vector<FolderEntry> list(const std::string& path) const override {
    return posix_file_system().list(path);
  }
  void remove_file(const std::string& path) override {
    note("unlink");
    posix_file_system().remove_file(path);
  }
  void remove_folder(const std::string& path) override {
    note("rmdir");
    posix_file_system().remove_folder(path);
  }
  std::uint64_t calls() const { return calls_; }

 private:
  class File : public NewFile {
   public:
    File(WatchedFiles& files, std::unique_ptr<NewFile> file)
        : files_(files), file_(std::move(file)) {}
    void write(std::uint64_t offset, std::span<const std::byte> bytes) override {
      files_.note("write");
      file_->write(offset, bytes);
    }
    void sync() override {
      files_.note("fsync");
      file_->sync();
    }

   private:
    WatchedFiles& files_;
    const std::unique_ptr<NewFile> file_;
  };
  void note(const char* call) { before_(call, ++calls_); }

  const Before before_;
  std::atomic<std::uint64_t> calls_{0};
};

}  // namespace weft::testing
