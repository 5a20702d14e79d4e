// Writes what a database holds as seeds for the fuzz targets of storage, one file for each value:
//   dump_database DATA_DIR SEEDS_DIR
// It opens a copy of the folder, whose server has ended, without the server's checks.
#include <rocksdb/db.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "engine/base/check.hpp"
#include "server/storage/log_record.hpp"

namespace {

using namespace kilokv;
using namespace kilokv::server;

void write(const std::filesystem::path& folder, const std::string& content) {
  static int number = 0;
  std::filesystem::create_directories(folder);
  std::ofstream(folder / ("dump" + std::to_string(number++)), std::ios::binary) << content;
}

// The first byte of a seed for fuzz_access chooses the decoder.
void write_access(const std::filesystem::path& seeds, char choice, std::string_view value) {
  write(seeds / "access", choice + std::string(value));
}

// Writes the stored results of a record, and its changes of users, roles and tokens.
class Parts final : public RecoveryVisitor {
 public:
  explicit Parts(std::filesystem::path seeds) : seeds_(std::move(seeds)) {}
  Status identity(const DatabaseIdentity&) override { return {}; }
  Status state_record(const StoredRecord&) override { return {}; }
  Status session(const StoredSession&) override { return {}; }
  Status batch_begin(const engine::BatchHeader&, Version) override { return {}; }
  Status batch_write(const StoredRecord&) override { return {}; }
  Status batch_session(const SessionEntry& entry) override {
    if (entry.kind == SessionEntry::Kind::results) write(seeds_ / "stored_results", std::string(entry.results));
    return {};
  }
  Status access_table(std::string_view) override { return {}; }
  Status batch_access(std::string_view change) override {
    write_access(seeds_, '\0', change);
    return {};
  }
  Status batch_end(Hash128) override { return {}; }

 private:
  std::filesystem::path seeds_;
};

// The first byte of a seed for fuzz_stored_values chooses the decoder.
std::string choice_of(const std::string& family, const std::string& key) {
  if (family == "state") return "\1";
  if (family == "sessions") return "\2";
  if (key == "identity") return std::string(1, '\0');
  if (key == "checkpoint") return "\3";
  return "\4";
}

void dump(const std::string& family, const std::string& key, const std::string& value,
          const std::filesystem::path& seeds) {
  if (key == "access") write_access(seeds, '\1', value.substr(1));  // after the byte of its format
  if (family != "log") return write(seeds / "stored_values", choice_of(family, key) + value);
  write(seeds / "log_record", value.substr(0, value.size() - 4));  // the target appends the checksum
  const auto view = storage::RecordView::parse(value);
  Parts parts(seeds);
  KILOKV_CHECK(view.ok() && view->visit(&parts).ok());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: dump_database DATA_DIR SEEDS_DIR\n");
    return 2;
  }
  std::vector<std::string> names;
  KILOKV_CHECK(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), argv[1], &names).ok());
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  KILOKV_CHECK(rocksdb::DB::OpenForReadOnly(rocksdb::DBOptions(), argv[1], families, &handles, &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions(), handle));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      dump(handle->GetName(), it->key().ToString(), it->value().ToString(), argv[2]);
    }
    KILOKV_CHECK(it->status().ok());
    db->DestroyColumnFamilyHandle(handle);
  }
  return 0;
}
