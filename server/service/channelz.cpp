#include "server/service/channelz.hpp"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace kilokv::server {
namespace {

using Json = nlohmann::json;

// A list of thousands of sockets takes milliseconds.
constexpr std::chrono::milliseconds kListPause{100};

// The text becomes an empty object if there is none, or if it is no object.
Json parse(char* text) {
  const std::unique_ptr<char, void (*)(void*)> owner(text, ::gpr_free);
  Json json = text == nullptr ? Json::object() : Json::parse(text, nullptr, false);
  return json.is_object() ? json : Json::object();
}

// Numbers of 64 bits are texts in the JSON of protobuf. A number that is 0 is left out.
std::int64_t number_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return 0;
  return std::strtoll(found->get_ref<const std::string&>().c_str(), nullptr, 10);
}

const Json& member(const Json& object, const char* name) {
  static const Json kEmpty = Json::object();
  const auto found = object.find(name);
  return found == object.end() ? kEmpty : *found;
}

}  // namespace

// The sockets of all servers of this process. (A program has one server. A test may have several.)
void Channelz::list_sockets() {
  sockets_.clear();
  const Json servers = parse(::grpc_channelz_get_servers(0));
  for (const Json& server : member(servers, "server")) {
    const std::int64_t id = number_of(member(server, "ref"), "serverId");
    std::int64_t next = 0;
    for (bool end = false; !end;) {
      const Json page = parse(::grpc_channelz_get_server_sockets(id, next, 0));
      for (const Json& socket : member(page, "socketRef")) {
        const std::int64_t number = number_of(socket, "socketId");
        const std::string name = socket.value("name", "");
        sockets_[name.substr(name.find(' ') + 1)] = number;  // "chttp2 ipv4:127.0.0.1:1234"
        next = number + 1;
      }
      end = page.value("end", false) || member(page, "socketRef").empty();  // only the last page says it
    }
  }
}

std::optional<CallCounts> Channelz::counts_of(const std::string& peer) {
  auto found = sockets_.find(peer);
  Json socket = found == sockets_.end() ? Json::object() : parse(::grpc_channelz_get_socket(found->second));
  if (socket.empty()) {  // a new connection, or a new one of an old name
    const auto now = std::chrono::steady_clock::now();
    if (now - listed_at_ < kListPause) return std::nullopt;
    listed_at_ = now;
    list_sockets();
    found = sockets_.find(peer);
    if (found == sockets_.end()) return std::nullopt;
    socket = parse(::grpc_channelz_get_socket(found->second));
  }
  const Json& data = member(member(socket, "socket"), "data");
  return CallCounts{.started = static_cast<std::uint64_t>(number_of(data, "streamsStarted")),
                    .answered = static_cast<std::uint64_t>(number_of(data, "streamsSucceeded")),
                    .failed = static_cast<std::uint64_t>(number_of(data, "streamsFailed"))};
}

}  // namespace kilokv::server
