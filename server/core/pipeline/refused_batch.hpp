// A batch that the engine refused because the table is full. No part of it has run, and its number and versions are not
// used up.
//
// Its parts run again in smaller batches, in order: half as many at a time after each refusal, twice as many after each
// success. If a part is refused alone, it is the part that needs room, and only its request fails. So requests that
// write existing keys do not fail because of the others.
//
// Thread safety: the executor's thread alone.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "server/core/pipeline/batch.hpp"
#include "server/core/pipeline/pool.hpp"

namespace kilokv::server {

class RefusedBatch {
 public:
  // `pool`: takes the batch when all its parts have run or failed.
  explicit RefusedBatch(Pool<Batch>* pool) : pool_(pool) {}

  bool empty() const { return batch_ == nullptr; }
  // Requires: empty(); at least two parts, each with transactions.
  void hold(std::unique_ptr<Batch> batch);

  // The functions below require: not empty(). append_next() appends the next parts, without those of failed requests,
  // to `batch`, whose header is filled in.
  void append_next(Batch* batch);
  // Visits the parts that have neither run nor failed, with the columns in which their transactions are.
  void visit(const std::function<void(const engine::TransactionColumns&, const BatchPart&)>& visitor) const;
  // The parts that were appended last have run.
  void passed();
  // The parts that were appended last were refused again. `alone`: there was only one, and its request has failed.
  void refused_again(bool alone);

 private:
  void pass(std::size_t parts);

  Pool<Batch>* const pool_;
  std::unique_ptr<Batch> batch_;
  std::size_t next_ = 0;  // the parts before it have run or failed
  std::size_t step_ = 0;  // how many parts go at a time
};

}  // namespace kilokv::server
