#include "engine/table/blob_store.hpp"

#include <bit>
#include <cstring>
#include <new>

#include "engine/base/check.hpp"
#include "engine/base/key_hash.hpp"

namespace kilokv::engine {

struct BlobStore::Blob {
  Hash128 hash;
  std::uint32_t size;
  std::uint32_t references;
  char* data() { return reinterpret_cast<char*>(this + 1); }
};

// The size classes of jemalloc. A long blob does not touch the rest of its class, so it counts whole pages.
std::size_t BlobStore::memory_of(std::size_t bytes) {
  constexpr std::size_t kClassMin = 16, kClassesFrom = 128, kPagesFrom = std::size_t{16} << 10, kPage = 4096;
  const std::size_t size = sizeof(Blob) + bytes;
  std::size_t step = kClassMin;
  if (size > kPagesFrom) {
    step = kPage;
  } else if (size > kClassesFrom) {
    step = std::bit_floor(size - 1) / 4;
  }
  return (size + step - 1) / step * step;
}

std::uint64_t BlobStore::add(std::string_view bytes) {
  void* const memory = ::operator new(sizeof(Blob) + bytes.size());
  Blob* const added = new (memory) Blob{hash_of(bytes), static_cast<std::uint32_t>(bytes.size()), 1};
  if (!bytes.empty()) std::memcpy(added->data(), bytes.data(), bytes.size());
  ++size_;
  bytes_ += memory_of(bytes.size());
  return reinterpret_cast<std::uint64_t>(added);
}

std::string_view BlobStore::bytes(std::uint64_t word) { return {blob(word)->data(), blob(word)->size}; }

Hash128 BlobStore::content_hash(std::uint64_t word) { return blob(word)->hash; }

// The secret is empty, so that equal bytes have the same hash in every database.
Hash128 BlobStore::hash_of(std::string_view bytes) {
  const KeyId hash = hash_key(bytes, {});
  return {hash.low, hash.high};
}

void BlobStore::retain(std::uint64_t word) {
  ++blob(word)->references;
  bytes_ += memory_of(blob(word)->size);
}

void BlobStore::release(std::uint64_t word) {
  Blob* const released = blob(word);
  KILOKV_CHECK(released->references > 0);
  bytes_ -= memory_of(released->size);
  if (--released->references > 0) return;
  --size_;
  ::operator delete(released);
}

void BlobStore::release_through(BatchNumber batch) {
  while (!retired_.empty() && retired_.front().batch <= batch) {
    release(retired_.front().word);
    retired_.pop_front();
  }
}

}  // namespace kilokv::engine
