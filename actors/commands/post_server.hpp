#pragma once
/// PostServer: takes commands for a job from other programs of this user (post_socket.hpp).

#include <poll.h>

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "actors/commands/command_posts.hpp"

namespace weft {

/// Only one thread may use it, but any thread may send answers. If a poster ends, its command stays
/// posted.
class PostServer {
 public:
  /// Listens at `path`. `posts` must outlive the object. Throws io.
  PostServer(const std::string& path, CommandPosts& posts);
  ~PostServer();
  PostServer(const PostServer&) = delete;
  PostServer& operator=(const PostServer&) = delete;

  /// Appends the descriptors for which poll() must wait. serve() gets them with poll()'s results.
  void add_to(std::vector<pollfd>& waits) const;
  void serve(const pollfd* waits);

 private:
  class Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;
  void accept_all();
  void take_request(const ConnectionPtr& connection);

  CommandPosts& posts_;
  int listener_ = -1;
  std::vector<ConnectionPtr> silent_;  ///< connections that haven't sent their request
};

}  // namespace weft
