// The calls of the conformance test (README.md), made with the C++ client. The objects of a script are in maps, by the
// names that it gives them.
//
// Thread safety: any thread may call answer(). Two calls for one interactive transaction must not overlap.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kilokv/client.hpp"
#include "kilokv/interactive.hpp"

namespace kilokv::conformance {

using Json = nlohmann::json;

class Adapter {
 public:
  // Has the one field ok, error, misuse or unsupported.
  Json answer(const Json& call);

 private:
  using Method = Json (Adapter::*)(const Json& call);
  // Who sends the transactions of a call. Without a session, `session` is null.
  struct Sender {
    std::shared_ptr<client::Client> client;
    std::shared_ptr<client::Session> session;
  };
  struct Interactive {
    Sender sender;  // must outlive the transaction
    client::InteractiveTransaction transaction;
  };

  static Method method(const std::string& name);

  Json open_client(const Json& call);
  Json close_client(const Json& call);
  Json open_session(const Json& call);
  Json attach_session(const Json& call);
  Json known_requests(const Json& call);
  Json acknowledge_through(const Json& call);
  Json close_session(const Json& call);
  Json execute(const Json& call);
  Json resume(const Json& call);
  Json cancel(const Json& call);
  Json get(const Json& call);
  Json scan(const Json& call);
  Json watch(const Json& call);
  Json list_parked(const Json& call);
  Json cancel_parked(const Json& call);
  Json status(const Json& call);
  Json list_sessions(const Json& call);
  Json begin(const Json& call);
  Json read(const Json& call);
  Json scan_in(const Json& call);
  Json write(const Json& call);
  Json commit(const Json& call);
  Json run_add(const Json& call);

  Json keep(const Json& call, Sender sender);
  std::shared_ptr<client::Client> client_of(const Json& call);
  std::shared_ptr<client::Session> session_of(const Json& call);
  Sender sender_of(const Json& call);
  std::shared_ptr<Interactive> transaction_of(const Json& call);

  std::mutex mutex_;  // of the maps
  std::map<std::string, std::shared_ptr<client::Client>> clients_;
  std::map<std::string, Sender> sessions_;
  std::map<std::string, std::shared_ptr<Interactive>> transactions_;
};

}  // namespace kilokv::conformance
