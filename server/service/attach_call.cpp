#include "server/service/attach_call.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "server/service/encode.hpp"
#include "server/service/identity.hpp"

namespace kilokv::server {
namespace {

// Upper bound of the bytes of a known request in a message, without its results.
constexpr std::uint64_t kKnownRequestBytes = 64;

// The state that its transactions make together.
v1::KnownRequest::State state_of(const ListedRequest& listed) {
  if (listed.decided == listed.transactions) return v1::KnownRequest::STATE_DECIDED;
  if (listed.decided > 0) return v1::KnownRequest::STATE_PARTLY_DECIDED;
  return listed.parked > 0 ? v1::KnownRequest::STATE_PARKED : v1::KnownRequest::STATE_QUEUED;
}

// Writes the results of one request after the other into the same message. What does not fit any more is left out.
class ListEncoder final : public ResultsEncoder {
 public:
  ListEncoder(std::uint64_t message_bytes_max, const KeySet* readable)
      : ResultsEncoder(message_bytes_max), readable_(readable), bytes_max_(message_bytes_max) {
    add_bytes(kMessageBytesBound);  // of the response, and of the first request
  }

  // The next results are those of this request. Returns false if the message has no room for it.
  bool begin(v1::KnownRequest* request) {
    if (request_ != nullptr) add_bytes(kKnownRequestBytes);
    request_ = request;
    return !is_full_ && message_bytes() <= bytes_max_;
  }
  // The request has no further results. Returns how many of them the message has.
  std::uint64_t end() {
    flush();
    return static_cast<std::uint64_t>(request_->results_size());
  }
  bool is_full() const { return is_full_; }

 private:
  bool open_for(BatchNumber /*batch*/) const override { return true; }
  void begin_message(const TransactionResult& /*first*/) override { is_full_ = true; }
  void put(const Transaction& transaction) override {
    if (is_full_) return;
    Transaction shown = transaction;
    if (!may_read(shown)) {
      shown.guard_value.reset();
      shown.reads.clear();
      shown.result.reads_dropped = true;
    }
    fill_row(shown, request_->add_results());
  }
  bool may_read(const Transaction& transaction) const {
    if (readable_ == nullptr) return true;
    if (transaction.guard_value && !readable_->contains(transaction.guard_value->key)) return false;
    return std::all_of(transaction.reads.begin(), transaction.reads.end(),
                       [this](const Read& read) { return readable_->contains(read.value.key); });
  }

  const KeySet* const readable_;
  const std::uint64_t bytes_max_;
  v1::KnownRequest* request_ = nullptr;
  bool is_full_ = false;
};

// Passes on all but the first transactions.
class SkippingVisitor final : public ResultVisitor {
 public:
  SkippingVisitor(std::uint32_t skipped, ResultVisitor* next) : skipped_(skipped), next_(next) {}
  void transaction(const TransactionResult& result) override {
    skips_ = skipped_ > 0;
    if (skips_) {
      --skipped_;
    } else {
      next_->transaction(result);
    }
  }
  void guard_value(const ReadValue& value) override {
    if (!skips_) next_->guard_value(value);
  }
  void read(std::uint32_t operation, const ReadValue& value) override {
    if (!skips_) next_->read(operation, value);
  }

 private:
  std::uint32_t skipped_;
  ResultVisitor* const next_;
  bool skips_ = false;
};

void fill_counts(const ListedRequest& listed, v1::KnownRequest* message) {
  message->set_number(listed.number);
  message->set_state(state_of(listed));
  message->set_transactions(listed.transactions);
  message->set_decided(listed.decided);
  message->set_parked(listed.parked);
  message->set_queued(listed.queued);
}

void go_on_at(std::uint64_t number, std::uint64_t result, v1::AttachSessionResponse* response) {
  response->set_more(true);
  response->set_next_number(number);
  response->set_next_result(result);
}

}  // namespace

Result<AttachTarget> attach_target(const v1::AttachSessionRequest& request, std::uint64_t message_bytes_max) {
  Result<SessionId> session = parse_session(request.session(), "session");
  if (!session.ok()) return session.status();
  AttachTarget target;
  target.session = *session;
  target.holder = request.holder();
  target.from = {request.from_number(), request.from_result()};
  target.bytes_max = message_bytes_max;
  if (request.attempt().empty()) return target;
  if (request.attempt().size() != sizeof target.attempt) {
    return Status::invalid({.field = "attempt",
                            .limit = std::to_string(sizeof target.attempt) + " bytes, or empty",
                            .actual = std::to_string(request.attempt().size()) + " bytes",
                            .setting = ""});
  }
  std::memcpy(&target.attempt, request.attempt().data(), sizeof target.attempt);
  return target;
}

void fill_list(const SessionList& list, const AttachTarget& target, const KeySet* readable,
               v1::AttachSessionResponse* response) {
  response->set_holder(list.holder);
  response->set_lease_us(static_cast<std::uint64_t>(list.lease_us));
  response->set_acknowledged_through(list.acknowledged_through);
  response->set_incarnation(list.incarnation.data(), list.incarnation.size());
  response->set_frozen(list.frozen);
  ListEncoder encoder(target.bytes_max, readable);
  for (const ListedRequest& listed : list.requests) {
    v1::KnownRequest* const message = response->add_requests();
    if (!encoder.begin(message)) {
      response->mutable_requests()->RemoveLast();
      return go_on_at(listed.number, 0, response);
    }
    fill_counts(listed, message);
    std::uint32_t skipped = listed.shown;
    for (const auto& slice : listed.results) {
      SkippingVisitor visitor(std::exchange(skipped, 0), &encoder);
      slice->visit(&visitor);
      if (encoder.is_full()) break;
    }
    const std::uint64_t shown = (listed.number == target.from.number ? target.from.results : 0) + encoder.end();
    if (shown < listed.decided) return go_on_at(listed.number, shown, response);
  }
  if (list.more) go_on_at(list.next_number, 0, response);
}

}  // namespace kilokv::server
