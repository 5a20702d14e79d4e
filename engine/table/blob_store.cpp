#include "engine/table/blob_store.hpp"

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

void* BlobStore::CountingResource::do_allocate(std::size_t size, std::size_t alignment) {
  bytes += size;
  return std::pmr::new_delete_resource()->allocate(size, alignment);
}

void BlobStore::CountingResource::do_deallocate(void* memory, std::size_t size, std::size_t alignment) {
  bytes -= size;
  std::pmr::new_delete_resource()->deallocate(memory, size, alignment);
}

BlobStore::~BlobStore() = default;

std::uint64_t BlobStore::add(std::string_view bytes) {
  void* const memory = pool_.allocate(sizeof(Blob) + bytes.size(), alignof(Blob));
  Blob* const added = new (memory) Blob{hash_of(bytes), static_cast<std::uint32_t>(bytes.size()), 1};
  if (!bytes.empty()) std::memcpy(added->data(), bytes.data(), bytes.size());
  ++size_;
  return reinterpret_cast<std::uint64_t>(added);
}

std::string_view BlobStore::bytes(std::uint64_t word) { return {blob(word)->data(), blob(word)->size}; }

Hash128 BlobStore::content_hash(std::uint64_t word) { return blob(word)->hash; }

// The secret is empty, so that equal bytes have the same hash in every database.
Hash128 BlobStore::hash_of(std::string_view bytes) {
  const KeyId hash = hash_key(bytes, {});
  return {hash.low, hash.high};
}

void BlobStore::retain(std::uint64_t word) { ++blob(word)->references; }

void BlobStore::release(std::uint64_t word) {
  Blob* const released = blob(word);
  KILOKV_CHECK(released->references > 0);
  if (--released->references > 0) return;
  pool_.deallocate(released, sizeof(Blob) + released->size, alignof(Blob));
  --size_;
}

void BlobStore::release_through(BatchNumber batch) {
  while (!retired_.empty() && retired_.front().batch <= batch) {
    release(retired_.front().word);
    retired_.pop_front();
  }
}

}  // namespace kilokv::engine
