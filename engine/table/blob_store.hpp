// The store of byte values. A record with a byte value holds the address of a Blob as its word. A blob has a content
// hash, a size, a reference count and its bytes. The bytes stay on the host. The device only copies and compares words.
//
// References: each record whose cell holds the blob has one reference, and each retain() adds one. A batch holds one
// for each constant that it brought, so that its results can still be read. A reference that a batch gives up is queued
// with the batch's number. release_through() drops it later. So an address is never reused while a result may still
// show it.
//
// Each blob is an allocation of its own, so that a value that is freed goes back to the allocator. A pool would keep
// it.
//
// Thread safety: none, with one exception. Any thread may call bytes() for a word whose blob is referenced, because a
// blob's size and bytes never change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>

#include "engine/base/types.hpp"

namespace kilokv::engine {

class BlobStore {
 public:
  // Requires of the destructor: no blob is left.
  BlobStore() = default;
  BlobStore(const BlobStore&) = delete;
  BlobStore& operator=(const BlobStore&) = delete;

  // Adds a blob with one reference. Returns its word.
  std::uint64_t add(std::string_view bytes);
  static std::string_view bytes(std::uint64_t word);
  static Hash128 content_hash(std::uint64_t word);
  static Hash128 hash_of(std::string_view bytes);  // the content_hash of these bytes; needs no blob

  void retain(std::uint64_t word);
  void release(std::uint64_t word);
  // Releases the word when release_through(batch) is called. Requires: `batch` never decreases from call to call.
  void release_after(BatchNumber batch, std::uint64_t word) { retired_.push_back({batch, word}); }
  void release_through(BatchNumber batch);

  std::size_t size() const { return size_; }
  // The memory of a blob with so many bytes, together with what an allocator of size classes adds.
  static std::size_t memory_of(std::size_t bytes);
  // A blob counts once for each reference, although it is there once: after a restart, each record has its own.
  std::size_t memory_bytes() const { return bytes_ + retired_.size() * sizeof(Retired); }

 private:
  struct Blob;
  struct Retired {
    BatchNumber batch;
    std::uint64_t word;
  };

  static Blob* blob(std::uint64_t word) { return reinterpret_cast<Blob*>(word); }

  std::deque<Retired> retired_;
  std::size_t size_ = 0, bytes_ = 0;
};

}  // namespace kilokv::engine
