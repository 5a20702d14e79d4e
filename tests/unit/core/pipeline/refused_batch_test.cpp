// How the parts of a refused batch run again.
#include "server/core/pipeline/refused_batch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace kilokv::server {
namespace {

class RefusedBatchTest : public ::testing::Test {
 protected:
  // A batch of eight parts of two transactions each.
  void SetUp() override {
    auto batch = std::make_unique<Batch>();
    engine::ColumnsBuilder b(&batch->columns, engine::KeyHashSecret{1, 2});
    for (std::uint32_t i = 0; i < 8; ++i) {
      BatchPart part;
      part.request = requests.emplace_back(std::make_shared<AdmittedRequest>());
      part.begin = 2 * i;
      part.end = part.begin + 2;
      part.admitted_batch = 4;
      batch->parts.push_back(part);
      for (int j = 0; j < 2; ++j) {
        b.begin(0, j == 0 ? 1000 : 0);
        b.op(engine::OpKind::get, b.key("key" + std::to_string(i)));
        b.end();
      }
    }
    refused.hold(std::move(batch));
  }
  // The parts that run next, by their place in the refused batch.
  std::vector<std::size_t> next() {
    Batch batch;
    batch.header.number = 7;
    refused.append_next(&batch);
    std::vector<std::size_t> places;
    for (const BatchPart& part : batch.parts) {
      const auto at =
          static_cast<std::size_t>(std::find(requests.begin(), requests.end(), part.request) - requests.begin());
      places.push_back(at);
      EXPECT_EQ(part.admitted_batch, 7u);
      EXPECT_EQ(part.end - part.begin, 2u);
      EXPECT_EQ(batch.columns.key(batch.columns.op_key[part.begin]), "key" + std::to_string(at));
      EXPECT_EQ(batch.expires[part.begin], 0u) << "it may wait";
      EXPECT_EQ(batch.expires[part.begin + 1], 1u) << "it must not";
    }
    return places;
  }

  using Places = std::vector<std::size_t>;
  std::vector<std::shared_ptr<AdmittedRequest>> requests;
  Pool<Batch> pool{4, 1 << 20};
  RefusedBatch refused{&pool};
};

TEST_F(RefusedBatchTest, HalfAsManyAfterARefusalAndTwiceAsManyAfterASuccess) {
  EXPECT_EQ(next(), (Places{0, 1, 2, 3}));
  refused.refused_again(false);
  EXPECT_EQ(next(), (Places{0, 1}));
  refused.refused_again(false);
  EXPECT_EQ(next(), Places{0});
  refused.passed();
  EXPECT_EQ(next(), (Places{1, 2}));
  refused.passed();
  EXPECT_EQ(next(), (Places{3, 4, 5, 6}));
  refused.passed();
  EXPECT_EQ(next(), Places{7});
  EXPECT_EQ(pool.bytes(), 0u);
  refused.passed();
  EXPECT_TRUE(refused.empty());
  EXPECT_GT(pool.bytes(), 0u) << "the batch is back in the pool";
}

TEST_F(RefusedBatchTest, OneThatIsRefusedAloneIsPassedOver) {
  for (int i = 0; i < 2; ++i) {
    next();
    refused.refused_again(false);
  }
  EXPECT_EQ(next(), Places{0});
  requests[0]->failed = true;
  refused.refused_again(true);
  EXPECT_EQ(next(), Places{1});
}

TEST_F(RefusedBatchTest, PartsOfFailedRequestsDoNotRun) {
  requests[0]->failed = requests[2]->failed = true;
  EXPECT_EQ(next(), (Places{1, 3, 4}));
}

}  // namespace
}  // namespace kilokv::server
