// Byte values. A record's word is the address of a Blob: content hash, size, reference count, bytes. The device only
// copies and compares words; bytes stay on the host.
//
// References: one for each record whose cell holds the blob, one for each retain(). A batch holds one for each constant
// it brought, so that whatever its results show stays readable. References given up by a batch are queued with its
// number and dropped by release_through(): an address is therefore never reused while somebody may still show it.
//
// Thread safety: none, except that bytes() may be called from any thread for a word whose blob is referenced: a blob's
// size and bytes never change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <string_view>

#include "engine/base/types.hpp"

namespace kilokv::engine {

class BlobStore {
 public:
  BlobStore() = default;
  ~BlobStore();
  BlobStore(const BlobStore&) = delete;
  BlobStore& operator=(const BlobStore&) = delete;

  // A new blob with one reference; returns its word.
  std::uint64_t add(std::string_view bytes);
  static std::string_view bytes(std::uint64_t word);
  static Hash128 content_hash(std::uint64_t word);
  static Hash128 hash_of(std::string_view bytes);  // a word's content_hash, without one

  void retain(std::uint64_t word);
  void release(std::uint64_t word);
  // Releases the word once release_through(batch) is called. Requires: `batch` never decreases.
  void release_after(BatchNumber batch, std::uint64_t word) { retired_.push_back({batch, word}); }
  void release_through(BatchNumber batch);

  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const { return upstream_.bytes + retired_.size() * sizeof(Retired); }

 private:
  struct Blob;
  struct Retired {
    BatchNumber batch;
    std::uint64_t word;
  };
  // What the pool took from the heap, counted.
  struct CountingResource final : std::pmr::memory_resource {
    std::size_t bytes = 0;

   private:
    void* do_allocate(std::size_t size, std::size_t alignment) override;
    void do_deallocate(void* memory, std::size_t size, std::size_t alignment) override;
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
  };

  static Blob* blob(std::uint64_t word) { return reinterpret_cast<Blob*>(word); }

  CountingResource upstream_;
  std::pmr::unsynchronized_pool_resource pool_{&upstream_};
  std::deque<Retired> retired_;
  std::size_t size_ = 0;
};

}  // namespace kilokv::engine
