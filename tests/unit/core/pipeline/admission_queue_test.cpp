// What the queue does with requests that were dropped. (Turns, costs and limits have tests of their own.)
#include "server/core/pipeline/admission_queue.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/memory_log.hpp"

namespace kilokv::server {
namespace {

class AdmissionQueueTest : public ::testing::Test {
 protected:
  // Its end asks whether another thread can use the queue meanwhile.
  class Asking : public ResponseSink {
   public:
    Asking(const AdmissionQueue* queue, std::vector<bool>* answers) : queue_(queue), answers_(answers) {}
    ~Asking() override {
      const auto used = std::make_shared<std::promise<void>>();
      std::thread([used, queue = queue_] {
        static_cast<void>(queue->oldest_us());
        used->set_value();
      }).detach();
      answers_->push_back(used->get_future().wait_for(std::chrono::seconds(5)) == std::future_status::ready);
    }
    void results(const ResultSlice& /*slice*/, bool /*last*/) override {}
    void fail(const Status& /*status*/) override {}

   private:
    const AdmissionQueue* const queue_;
    std::vector<bool>* const answers_;
  };

  std::shared_ptr<AdmittedRequest> pushed() {
    auto request = std::make_shared<AdmittedRequest>();
    request->content = std::make_unique<Request>();
    engine::ColumnsBuilder b(&request->content->transactions, {1, 2});
    b.begin();
    b.op(engine::OpKind::add, b.key("key"), engine::Operand::integer, 1);
    b.end();
    request->client = client;
    request->transactions = request->to_run = request->unanswered = 1;
    queue.estimate(request.get());
    EXPECT_TRUE(queue.charge(request.get()).ok());
    queue.push(request);
    return request;
  }
  void drop(std::shared_ptr<AdmittedRequest> request) {
    queue.drop(request.get());
    queue.finished(*request);
  }

  const DatabaseOptions options;
  MemoryLog log;
  DataBudget data{0, 0};
  AdmissionQueue queue{options, &log, &data};
  const std::shared_ptr<Client> client = std::make_shared<Client>("client");
};

// Those who submit need the lock. A client may drop very many requests at once.
TEST_F(AdmissionQueueTest, DroppedRequestsLeaveWithoutHoldingUpThoseWhoSubmit) {
  std::vector<bool> answers;
  for (int i = 0; i < 3; ++i) {
    auto request = pushed();
    request->sink = std::make_shared<Asking>(&queue, &answers);
    drop(std::move(request));
  }
  for (int i = 0; i < 500; ++i) drop(pushed());
  const auto stays = pushed();
  EXPECT_EQ(queue.next().request, stays);
  EXPECT_EQ(answers, std::vector<bool>(3, true));
  EXPECT_EQ(queue.ready(), 1u);
  queue.take(1, 1);
  queue.finished(*stays);
  EXPECT_EQ(queue.next().request, nullptr);
  EXPECT_EQ(queue.transactions() + queue.bytes(), 0u);
  EXPECT_EQ(client->queued_transactions.load() + client->queued_bytes.load() + client->log_bytes.load(), 0u);
  EXPECT_EQ(log.reserved(), 0u);
}

}  // namespace
}  // namespace kilokv::server
